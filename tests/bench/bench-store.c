/*
 * What the state file costs: a commit in which 1,000 and 100,000 counters changed, beside a plain SQLite commit of one row on the same
 * disk; opening and loading a million counters; bytes a counter.
 *
 *	bench-store [DIRECTORY]		default /var/tmp; the file is made there and removed
 *
 * Whatever the figures, the exit status is 1 only if the file does not say afterwards what was counted, or a counter takes more than 150 bytes of it.
 */
#include "daemon/store/store.h"
#include "lib/engine/engine.h"
#include "lib/rcu/grace.h"
#include "tests/bench/measure.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N_COUNTERS 1000000u
#define N_TEAMS 1000u
#define ROUNDS 21u
#define MAX_BYTES 150

struct bench {
	char path[400];
	struct store *store;
	uint64_t grown; /* of every counter that a commit touched */
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)fprintf(stderr, "bench-store: ");
	(void)vfprintf(stderr, format, arguments);
	(void)fprintf(stderr, "\n");
	va_end(arguments);
	exit(1);
}

static double wall_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void remove_file(const struct bench *bench)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };

	for (size_t i = 0; i < 3; i++) {
		char name[420];

		(void)snprintf(name, sizeof(name), "%s%s", bench->path, suffixes[i]);
		(void)unlink(name);
	}
}

/* ---- a load whose sink does next to nothing ---- */

struct sums {
	uint32_t counters;
	int64_t own;
};

static int skip_metric(void *ctx, const char *name, size_t len, const struct engine_metric *metric)
{
	(void)ctx, (void)name, (void)len, (void)metric;
	return 0;
}

static int skip_rule(void *ctx, const struct engine_rule *rule)
{
	(void)ctx, (void)rule;
	return 0;
}

static int sum_counter(void *ctx, const char *path, size_t len, int64_t own, int64_t ahead,
		       int64_t born_ns, uint32_t *ret_id)
{
	struct sums *sums = ctx;

	(void)path, (void)len, (void)ahead, (void)born_ns;
	*ret_id = sums->counters++;
	sums->own += own;
	return 0;
}

static int skip_usage(void *ctx, const struct engine_usage *usage)
{
	(void)ctx, (void)usage;
	return 0;
}

static int skip_session(void *ctx, const struct store_session *session)
{
	(void)ctx, (void)session;
	return 0;
}

static int skip_held(void *ctx, const struct cut_held *held)
{
	(void)ctx, (void)held;
	return 0;
}

/* The same into an engine, as the daemon does. */
static int restore_counter(void *ctx, const char *path, size_t len, int64_t own, int64_t ahead,
			   int64_t born_ns, uint32_t *ret_id)
{
	return engine_restore(ctx, path, len, own, ahead, born_ns, ret_id);
}

static void measure_engine(struct bench *bench)
{
	const struct engine_options options = {
		.max_counters = N_COUNTERS, .max_workers = 1, .cpus = 1, .seed = 1, .keep = true
	};
	const struct quota_time time = { .wall_ns = 1700000000000000000 };
	struct engine *engine = NULL;
	const struct store_sink empty = { .metric = skip_metric,
					  .rule = skip_rule,
					  .counter = restore_counter,
					  .usage = skip_usage,
					  .session = skip_session,
					  .held = skip_held };
	struct store_sink sink = empty;
	struct engine_reading reading;
	char why[STORE_MAX_WHY] = "";
	double start = wall_ns();

	grace_register();
	if (engine_new(&engine, &options) != 0) {
		die("no memory");
	}
	sink.ctx = engine;
	if (store_open(bench->path, &bench->store, why) != 0 ||
	    store_load(bench->store, &sink, why) != 0) {
		die("%s", why);
	}
	(void)engine_restored(engine, time);
	printf("start with %u counters, into an engine: %.0f ms in all\n", N_COUNTERS,
	       (wall_ns() - start) / 1e6);
	if (engine_get(engine, "requests", 8, &reading) != 0 ||
	    reading.total != (int64_t)bench->grown * N_COUNTERS) {
		die("the engine has another total than was counted");
	}
	(void)engine_free(engine);
	grace_unregister();
	bench->store = store_close(bench->store);
}

static void open_and_load(struct bench *bench, struct sums *sums, bool say)
{
	const struct store_sink sink = { .ctx = sums,
					 .metric = skip_metric,
					 .rule = skip_rule,
					 .counter = sum_counter,
					 .usage = skip_usage,
					 .session = skip_session,
					 .held = skip_held };
	char why[STORE_MAX_WHY] = "";
	double start = wall_ns(), opened;

	*sums = (struct sums){ .counters = 0 };
	if (store_open(bench->path, &bench->store, why) != 0) {
		die("%s", why);
	}
	opened = wall_ns();
	if (store_load(bench->store, &sink, why) != 0) {
		die("%s", why);
	}
	if (say) {
		printf("start with %u counters: open and check %.0f ms, load %.0f ms\n",
		       sums->counters, (opened - start) / 1e6, (wall_ns() - opened) / 1e6);
	}
}

/* ---- */

static void born(struct bench *bench, uint32_t id, uint32_t parent, const char *path)
{
	const struct engine_born is = { .id = id,
					.parent = parent,
					.path = path,
					.len = strlen(path),
					.born_ns = (int64_t)id + 1700000000000000000 };

	if (store_born(bench->store, &is) != 0) {
		die("no memory");
	}
}

static void commit(struct bench *bench)
{
	char why[STORE_MAX_WHY] = "";

	if (store_commit(bench->store, why) != 0) {
		die("%s", why);
	}
}

static void tidy(struct bench *bench)
{
	char why[STORE_MAX_WHY] = "";

	if (store_tidy(bench->store, why) != 0) {
		die("%s", why);
	}
}

/* Paths of 30 bytes. */
static void name_all(struct bench *bench)
{
	double start = wall_ns(), cpu_start = measure_cpu_ns();
	char path[64];

	born(bench, 0, ENGINE_NO_ID, "requests");
	for (uint32_t id = 1; id < N_COUNTERS; id++) {
		if (id <= N_TEAMS) {
			(void)snprintf(path, sizeof(path), "requests/tenant-%06u", id);
			born(bench, id, 0, path);
		} else {
			(void)snprintf(path, sizeof(path), "requests/tenant-%06u/%07u",
				       1 + id % N_TEAMS, id);
			born(bench, id, 1 + id % N_TEAMS, path);
		}
	}
	commit(bench);
	tidy(bench);
	printf("first commit of %u names: %.0f ms, of it %.0f ms of processor time\n", N_COUNTERS,
	       (wall_ns() - start) / 1e6, (measure_cpu_ns() - cpu_start) / 1e6);
}

/* Growth of n counters, spread over all of them in stretches as they come from interning them together. */
static void grow(struct bench *bench, struct engine_growth *growth, uint32_t n)
{
	struct cut cut = { .growth = growth, .n_growth = n, .wall_ns = 1700000000000000000 };

	bench->grown++;
	for (uint32_t i = 0; i < n; i++) {
		growth[i] = (struct engine_growth){ .id = i, .added = bench->grown };
	}
	if (store_merge(bench->store, &cut, NULL, NULL) != 0) {
		die("no memory");
	}
}

/* The growth of a counter that a smaller run did not touch is what it missed, too. */
static void measure_commits(struct bench *bench, uint32_t n)
{
	struct engine_growth *growth = calloc(n, sizeof(*growth));
	double wall[ROUNDS], cpu[ROUNDS], merge[ROUNDS];
	struct store_stats before, after;

	if (growth == NULL) {
		die("no memory");
	}
	store_stats(bench->store, &before);
	for (unsigned i = 0; i < ROUNDS; i++) {
		double cpu_start = measure_cpu_ns();
		double start, cpu_merged;

		grow(bench, growth, n);
		cpu_merged = measure_cpu_ns();
		start = wall_ns();
		commit(bench);
		wall[i] = wall_ns() - start;
		cpu[i] = measure_cpu_ns() - cpu_merged;
		merge[i] = cpu_merged - cpu_start;
		tidy(bench);
	}
	store_stats(bench->store, &after);
	printf("commit of %6u changed counters: %.2f ms, of it %.2f ms of processor time; %.2f ms more to merge; %" PRIu64
	       " KiB\n",
	       n, measure_median(wall, ROUNDS) / 1e6, measure_median(cpu, ROUNDS) / 1e6,
	       measure_median(merge, ROUNDS) / 1e6, (after.bytes - before.bytes) / ROUNDS / 1024);
	free(growth);
}

static void check_sql(int rc, const char *what)
{
	if (rc != SQLITE_OK && rc != SQLITE_DONE) {
		die("%s: %s", what, sqlite3_errstr(rc));
	}
}

/* What the least commit costs here: one row, in a log, with fsync. */
static void measure_plain(const struct bench *bench)
{
	struct bench other = *bench;
	double wall[ROUNDS], cpu[ROUNDS];
	sqlite3 *db;
	sqlite3_stmt *put;

	(void)snprintf(other.path, sizeof(other.path), "%.380s.plain", bench->path);
	remove_file(&other);
	check_sql(sqlite3_open(other.path, &db), "open");
	check_sql(sqlite3_exec(db,
			       "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
			       "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER)",
			       NULL, NULL, NULL),
		  "make");
	check_sql(sqlite3_prepare_v2(db, "REPLACE INTO t VALUES (1, ?)", -1, &put, NULL),
		  "prepare");
	for (unsigned i = 0; i < ROUNDS; i++) {
		double cpu_start = measure_cpu_ns();
		double start = wall_ns();

		check_sql(sqlite3_bind_int64(put, 1, (sqlite3_int64)i), "bind");
		check_sql(sqlite3_step(put), "commit");
		check_sql(sqlite3_reset(put), "commit");
		wall[i] = wall_ns() - start;
		cpu[i] = measure_cpu_ns() - cpu_start;
	}
	printf("plain SQLite commit of one row: %.2f ms, of it %.2f ms of processor time\n",
	       measure_median(wall, ROUNDS) / 1e6, measure_median(cpu, ROUNDS) / 1e6);
	check_sql(sqlite3_finalize(put), "finalize");
	check_sql(sqlite3_close(db), "close");
	remove_file(&other);
}

int main(int argc, char **argv)
{
	struct bench bench = { .grown = 0 };
	struct store_stats stats;
	struct sums sums;
	int64_t expected;
	double bytes;

	(void)snprintf(bench.path, sizeof(bench.path), "%s/bench-store-%d.db",
		       argc > 1 ? argv[1] : "/var/tmp", (int)getpid());
	remove_file(&bench);
	open_and_load(&bench, &sums, /* say= */ false);
	name_all(&bench);
	measure_plain(&bench);
	measure_commits(&bench, 1);
	measure_commits(&bench, 1000);
	measure_commits(&bench, 100000);
	measure_commits(&bench, N_COUNTERS);
	bench.store = store_close(bench.store);

	open_and_load(&bench, &sums, /* say= */ true);
	store_stats(bench.store, &stats);
	bench.store = store_close(bench.store);
	measure_engine(&bench);
	remove_file(&bench);
	bytes = (double)stats.file_bytes / N_COUNTERS;
	printf("file: %.1f bytes a counter\n", bytes);
	/* Every counter was in the last cut. */
	expected = (int64_t)bench.grown * N_COUNTERS;
	if (sums.counters != N_COUNTERS || sums.own != expected || bytes > MAX_BYTES) {
		die("%u counters with %" PRId64 " in all, and not %u with %" PRId64, sums.counters,
		    sums.own, N_COUNTERS, expected);
	}
	return 0;
}
