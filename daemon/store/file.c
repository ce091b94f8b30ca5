#include "daemon/store/file.h"

#include "daemon/store/schema.h"
#include "daemon/store/step.h"
#include "lib/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODE 0640
#define MAGIC "SQLite format 3" /* with its NUL the first 16 bytes */
#define START \
	20u /* bytes of the header that are looked at here; the last two say what it takes to write and to read the file: 1 or 2 */

static const char *const beside[] = { "-wal", "-shm" };

__attribute__((format(printf, 3, 4))) static int fail(int error, char why[STORE_MAX_WHY],
						      const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(why, STORE_MAX_WHY, format, arguments);
	va_end(arguments);
	return error;
}

static char *with_suffix(const char *path, const char *suffix)
{
	char *name;

	return asprintf(&name, "%s%s", path, suffix) >= 0 ? name : NULL;
}

uint64_t file_size(const char *path, const char *suffix)
{
	_cleanup_free_ char *name = with_suffix(path, suffix);
	struct stat stat_of;

	return name != NULL && stat(name, &stat_of) == 0 ? (uint64_t)stat_of.st_size : 0;
}

uint64_t file_identity(const char *path, const char *suffix)
{
	_cleanup_free_ char *name = with_suffix(path, suffix);
	struct stat stat_of;

	return name != NULL && stat(name, &stat_of) == 0 ? (uint64_t)stat_of.st_ino : 0;
}

bool file_has_log(const char *path)
{
	return file_size(path, "-wal") > 0;
}

char *file_uri(const char *path, const char *query)
{
	static const char plain[] =
		"/-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t size = strlen("file:") + 3 * strlen(path) + strlen(query) + 1;
	char *uri = malloc(size);
	size_t at;

	if (uri == NULL) {
		return NULL;
	}
	at = (size_t)snprintf(uri, size, "file:");
	for (; *path != '\0'; path++) {
		bool is_plain = strchr(plain, *path) != NULL;

		at += (size_t)snprintf(uri + at, size - at, is_plain ? "%c" : "%%%02X",
				       (unsigned char)*path);
	}
	memcpy(uri + at, query, strlen(query) + 1);
	return uri;
}

/* The directory's entries are on the disk. */
static int sync_directory(const char *path)
{
	_cleanup_free_ char *copy = strdup(path);
	char *slash = copy != NULL ? strrchr(copy, '/') : NULL;
	_cleanup_close_ int fd = -1;

	if (copy == NULL) {
		return -ENOMEM;
	}
	if (slash != NULL) {
		slash[slash == copy ? 1 : 0] = '\0';
	}
	fd = open(slash != NULL ? copy : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 && fsync(fd) == 0 ? 0 : -errno;
}

/* ---- making ---- */

/* An empty state file's bytes; to be given back with sqlite3_free. */
static unsigned char *empty_file(sqlite3_int64 *ret_size)
{
	sqlite3 *db = NULL;
	unsigned char *bytes = NULL;
	int rc =
		sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

	if (rc == SQLITE_OK) {
		rc = sqlite3_exec(db, "PRAGMA page_size = 4096", NULL, NULL, NULL);
	}
	if (rc == SQLITE_OK) {
		rc = schema_make(db);
	}
	if (rc == SQLITE_OK) {
		bytes = sqlite3_serialize(db, "main", ret_size, 0);
	}
	(void)sqlite3_close(db);
	return bytes;
}

static int write_all(int fd, const unsigned char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno != EINTR) {
			return -errno;
		}
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return fsync(fd) == 0 ? 0 : -errno;
}

static int write_empty(int fd)
{
	sqlite3_int64 size = 0;
	unsigned char *bytes = empty_file(&size);
	int r = bytes != NULL ? write_all(fd, bytes, (size_t)size) : -ENOMEM;

	sqlite3_free(bytes);
	return r;
}

/*
 * The file comes into being whole, under its name at once, locked: written beside it under another name first. *ret_fd stays -1 if another daemon was
 * faster.
 */
static int make(const char *path, const char *new_path, int *ret_fd)
{
	_cleanup_close_ int fd = open(new_path, O_RDWR | O_CREAT | O_CLOEXEC, MODE);
	struct stat by_fd, by_name;
	int r;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0) {
		return -errno;
	}
	/* Whoever had the lock before us may have given the file its name, and this one is not ours to write to. */
	if (fstat(fd, &by_fd) < 0 || stat(new_path, &by_name) < 0) {
		return errno == ENOENT ? 0 : -errno;
	}
	if (by_fd.st_ino != by_name.st_ino) {
		return 0;
	}
	if (ftruncate(fd, 0) < 0) {
		return -errno;
	}
	r = write_empty(fd);
	STORE_STEP();
	if (r == 0 && link(new_path, path) < 0) {
		r = -errno;
	}
	STORE_STEP();
	(void)unlink(new_path);
	if (r == 0) {
		r = sync_directory(path);
	}
	if (r == 0) {
		*ret_fd = fd;
		fd = -1;
	}
	return r == -EEXIST ? 0 : r;
}

/* ---- taking ---- */

int file_lock(const char *path, int *ret_fd, char why[STORE_MAX_WHY])
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT) {
		return -ENOENT;
	}
	if (fd < 0) {
		return fail(STORE_E_IO, why, "%s: can't be opened: %s", path, strerror(errno));
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		return errno == EWOULDBLOCK
			       ? fail(STORE_E_LOCKED, why, "%s: another rationd has it", path)
			       : fail(STORE_E_IO, why, "%s: can't be locked: %s", path,
				      strerror(errno));
	}
	*ret_fd = fd;
	fd = -1;
	return 0;
}

/* What no file of SQLite's can be is said before SQLite says it, in better words. */
static int check_start(const char *path, int fd, char why[STORE_MAX_WHY])
{
	char start[START];
	struct stat stat_of;
	ssize_t n = pread(fd, start, sizeof(start), 0);

	if (n < 0 || fstat(fd, &stat_of) < 0) {
		return fail(STORE_E_IO, why, "%s: can't be read: %s", path, strerror(errno));
	}
	if (!S_ISREG(stat_of.st_mode)) {
		return fail(STORE_E_DAMAGED, why, "%s: is not a regular file", path);
	}
	if (n == 0) {
		return fail(
			STORE_E_DAMAGED, why,
			"%s: is empty, which a state file never is (remove it to begin a new one)",
			path);
	}
	if ((size_t)n < sizeof(start) || memcmp(start, MAGIC, sizeof(MAGIC)) != 0) {
		return fail(STORE_E_DAMAGED, why, "%s: is not a state file of rationd", path);
	}
	/* Else SQLite would read it, and only say when it is to write that it can't. */
	for (size_t i = START - 2; i < START; i++) {
		if (start[i] < 1 || start[i] > 2) {
			return fail(STORE_E_DAMAGED, why, "%s: is damaged: its header", path);
		}
	}
	return 0;
}

int file_take(const char *path, int *ret_fd, char why[STORE_MAX_WHY])
{
	_cleanup_free_ char *new_path = with_suffix(path, "-new");
	_cleanup_close_ int fd = -1;
	int r = -ENOENT;

	if (new_path == NULL) {
		return -ENOMEM;
	}
	while ((r = file_lock(path, &fd, why)) == -ENOENT) {
		if (file_has_log(path)) {
			return fail(
				STORE_E_DAMAGED, why,
				"%s: is not there, but its log is: %s-wal holds what was counted last",
				path, path);
		}
		r = make(path, new_path, &fd);
		if (r == -EWOULDBLOCK) {
			return fail(STORE_E_LOCKED, why, "%s: another rationd is making it", path);
		}
		if (r < 0) {
			return fail(STORE_E_IO, why, "%s: can't be made: %s", path, strerror(-r));
		}
		if (fd >= 0) {
			break;
		}
	}
	if (r == 0) {
		r = check_start(path, fd, why);
	}
	if (r == 0) {
		*ret_fd = fd;
		fd = -1;
	}
	return r;
}

/* ---- renaming ---- */

int file_rename(const char *path, const char *to)
{
	/* The file first: without it, what lies beside it is refused rather than taken for something else. */
	if (rename(path, to) < 0 && errno != ENOENT) {
		return -errno;
	}
	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
		_cleanup_free_ char *from_name = with_suffix(path, beside[i]);
		_cleanup_free_ char *to_name = with_suffix(to, beside[i]);

		STORE_STEP();
		if (from_name == NULL || to_name == NULL) {
			return -ENOMEM;
		}
		if (rename(from_name, to_name) < 0 && errno != ENOENT) {
			return -errno;
		}
	}
	return sync_directory(path);
}
