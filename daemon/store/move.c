#include "daemon/store/file.h"
#include "daemon/store/state.h"
#include "lib/base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MAX_TIME 32u

/* 2026-11-30T18:04:22Z, or without what is not for the name of a file. */
static void time_text(int64_t wall_ns, bool for_name, char text[MAX_TIME])
{
	time_t seconds = (time_t)(wall_ns / INT64_C(1000000000));
	struct tm tm;

	if (gmtime_r(&seconds, &tm) == NULL ||
	    strftime(text, MAX_TIME, for_name ? "%Y%m%dT%H%M%SZ" : "%Y-%m-%dT%H:%M:%SZ", &tm) == 0) {
		(void)snprintf(text, MAX_TIME, "%lld", (long long)seconds);
	}
}

/* A number, of a file that may be anything: -1, nothing can be said. */
static int64_t ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int64_t number = -1;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW) {
		number = sqlite3_column_int64(statement, 0);
	}
	(void)sqlite3_finalize(statement);
	return number;
}

/* What can be read of the file, whatever is wrong with it. */
static int say_what_is_lost(const char *path, char ret_lost[STORE_MAX_WHY])
{
	_cleanup_free_ char *uri = file_uri(path, "?mode=ro");
	sqlite3 *db = NULL;
	int64_t counters = -1, sessions = -1, rules = -1, saved_ns = -1;
	char when[MAX_TIME] = "an unknown time";

	if (uri == NULL) {
		return -ENOMEM;
	}
	if (sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
			    NULL) == SQLITE_OK) {
		(void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
		counters = ask(db, "SELECT count(*) FROM counter NOT INDEXED");
		sessions = ask(db, "SELECT count(*) FROM session");
		rules = ask(db, "SELECT count(*) FROM rule");
		saved_ns = ask(db, "SELECT value FROM meta WHERE key = 'saved'");
	}
	(void)sqlite3_close(db);
	if (saved_ns > 0) {
		time_text(saved_ns, /* for_name= */ false, when);
	}
	if (counters < 0) {
		(void)snprintf(ret_lost, STORE_MAX_WHY, "nothing of it can be read");
	} else {
		(void)snprintf(
			ret_lost, STORE_MAX_WHY,
			"%lld counters, %lld limits set at run time and %lld sessions, as of %s",
			(long long)counters, (long long)(rules > 0 ? rules : 0),
			(long long)(sessions > 0 ? sessions : 0), when);
	}
	return 0;
}

int store_move_aside(const char *path, int64_t wall_ns, char ret_moved_to[STORE_MAX_WHY],
		     char ret_lost[STORE_MAX_WHY])
{
	_cleanup_close_ int lock = -1;
	char when[MAX_TIME];
	int r = file_lock(path, &lock, ret_lost);

	if (r != 0 && r != -ENOENT) {
		return r;
	}
	time_text(wall_ns, /* for_name= */ true, when);
	if ((size_t)snprintf(ret_moved_to, STORE_MAX_WHY, "%s.aside-%s", path, when) >=
	    STORE_MAX_WHY) {
		r = -ENAMETOOLONG;
	} else {
		r = say_what_is_lost(path, ret_lost);
	}
	if (r == 0) {
		r = file_rename(path, ret_moved_to);
	}
	if (r < 0 && r != -ENOMEM) {
		(void)snprintf(ret_lost, STORE_MAX_WHY, "%s: can't be moved aside: %s", path,
			       strerror(-r));
		r = STORE_E_IO;
	}
	return r;
}
