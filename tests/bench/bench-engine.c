/*
 * What the engine costs: an add and a get at 1 thousand, 100 thousand and 1 million counters; memory, creation and a walk at a
 * million; adds beside a reader that walks (the A/B of counts read without locks, and without a look at the slots); and flushes that
 * readers share.
 *
 *	bench-engine [ROUNDS]	an odd number; default 5
 *
 * Nanoseconds are of the thread's processor time, medians over rounds; the cases of one comparison take turns within a round. Every case
 * finds all it has added in the totals afterwards: the exit status is 1 if not, whatever the figures.
 */
#include "lib/engine/state.h"
#include "lib/engine/worker.h"
#include "lib/rcu/grace.h"
#include "tests/bench/measure.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FRAME 256u /* adds between engine_begin and engine_end, as of one frame */
#define PATH_BYTES 30
#define PER_GROUP 1000u
#define ADDS (1u << 22)
#define GETS (1u << 19)
#define MILLION 1000000u
#define WALKED 100000u

static unsigned n_rounds = 5;
static int status;

static double seconds(clockid_t clock)
{
	struct timespec time;

	(void)clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void require(bool condition, const char *what)
{
	if (!condition) {
		(void)fprintf(stderr, "bench-engine: %s\n", what);
		status = 1;
	}
}

static void must(int r, const char *what)
{
	if (r != 0) {
		(void)fprintf(stderr, "bench-engine: %s: %d\n", what, r);
		exit(1);
	}
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* ---- an engine with n counters ---- */

struct path {
	char bytes[PATH_BYTES + 1];
};

struct stage {
	struct engine *engine;
	uint32_t n; /* leaves */
	struct path *paths;
	struct engine_ref *refs;
	uint32_t *order; /* a random one */
	int64_t added;
};

/* "requests/00042/000000000042042" */
static struct path path_of(uint32_t i)
{
	char text[64];
	struct path path;

	(void)snprintf(text, sizeof(text), "requests/%05u/%015u", i / PER_GROUP, i);
	memcpy(path.bytes, text, sizeof(path.bytes));
	return path;
}

static void shuffle(uint32_t *order, uint32_t n)
{
	uint64_t state = 88172645463325252u;

	for (uint32_t i = 0; i < n; i++) {
		order[i] = i;
	}
	for (uint32_t i = n - 1; i > 0; i--) {
		uint32_t j = (uint32_t)(next_random(&state) % (i + 1)), other = order[i];

		order[i] = order[j];
		order[j] = other;
	}
}

static struct engine *make_engine(uint32_t n)
{
	const struct engine_options options = {
		.max_counters = n + n / PER_GROUP + 2,
		.max_workers = 2,
		.cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
		.seed = 1,
	};
	struct engine *engine = NULL;

	must(engine_new(&engine, &options), "engine_new");
	return engine;
}

static void intern(struct engine *engine, const struct path *path, struct engine_ref *ret_ref)
{
	must(engine_intern(engine, path->bytes, PATH_BYTES, 1, ret_ref), "engine_intern");
}

static struct stage stage_new(uint32_t n)
{
	struct stage stage = {
		.engine = make_engine(n),
		.n = n,
		.paths = calloc(n, sizeof(*stage.paths)),
		.refs = calloc(n, sizeof(*stage.refs)),
		.order = calloc(n, sizeof(*stage.order)),
	};

	must(!stage.paths || !stage.refs || !stage.order, "no memory");
	for (uint32_t i = 0; i < n; i++) {
		stage.paths[i] = path_of(i);
		intern(stage.engine, &stage.paths[i], &stage.refs[i]);
	}
	shuffle(stage.order, n);
	return stage;
}

static int64_t exact_total(struct engine *engine)
{
	struct engine_view view;
	struct engine_reading reading;

	engine_refresh(engine, ENGINE_EXACT, 0, &view);
	must(engine_get(engine, "requests", strlen("requests"), &reading), "engine_get");
	return reading.total;
}

static void stage_free(struct stage *stage)
{
	require(exact_total(stage->engine) == stage->added, "adds were lost");
	(void)engine_free(stage->engine);
	free(stage->paths);
	free(stage->refs);
	free(stage->order);
}

/* ---- add and get ---- */

static double add_one_by_one(struct stage *stage, struct engine_worker *worker,
			     const struct engine_ref *refs, uint32_t n_ops)
{
	double start = measure_cpu_ns();
	uint32_t at = 0;

	for (uint32_t i = 0; i < n_ops; i += FRAME) {
		engine_begin(worker);
		for (uint32_t j = 0; j < FRAME; j++) {
			(void)engine_add(worker, refs[at], 1);
			at = at + 1 == stage->n ? 0 : at + 1;
		}
		engine_end(worker);
	}
	stage->added += n_ops;
	return (measure_cpu_ns() - start) / n_ops;
}

static double add_in_batches(struct stage *stage, struct engine_worker *worker,
			     const struct engine_item *items, uint32_t n_ops)
{
	double start = measure_cpu_ns();
	uint32_t at = 0;

	for (uint32_t i = 0; i < n_ops; i += FRAME) {
		engine_begin(worker);
		require(engine_add_many(worker, items + at, FRAME, NULL, NULL) == 0,
			"an add failed");
		engine_end(worker);
		at = at + 2 * FRAME > stage->n ? 0 : at + FRAME;
	}
	stage->added += n_ops;
	return (measure_cpu_ns() - start) / n_ops;
}

static double get_random(const struct stage *stage)
{
	double start = measure_cpu_ns();
	struct engine_reading reading;

	for (uint32_t i = 0; i < GETS; i++) {
		const struct path *path = &stage->paths[stage->order[i % stage->n]];

		must(engine_get(stage->engine, path->bytes, PATH_BYTES, &reading), "engine_get");
	}
	return (measure_cpu_ns() - start) / GETS;
}

enum {
	SEQUENTIAL,
	RANDOM,
	BATCHES,
	GET,
	N_CASES
};

static void measure_size(uint32_t n, double ret_ns[N_CASES])
{
	struct stage stage = stage_new(n);
	struct engine_ref *random = calloc(n, sizeof(*random));
	struct engine_item *items = calloc(n, sizeof(*items));
	double ns[N_CASES][MEASURE_MAX_ROUNDS];
	struct engine_worker *worker;

	must(!random || !items, "no memory");
	for (uint32_t i = 0; i < n; i++) {
		random[i] = stage.refs[stage.order[i]];
		items[i] = (struct engine_item){ random[i], 1 };
	}
	must(engine_join(stage.engine, &worker), "engine_join");
	(void)add_one_by_one(&stage, worker, stage.refs, n / FRAME * FRAME + FRAME);
	for (unsigned round = 0; round < n_rounds; round++) {
		ns[SEQUENTIAL][round] = add_one_by_one(&stage, worker, stage.refs, ADDS);
		ns[RANDOM][round] = add_one_by_one(&stage, worker, random, ADDS);
		ns[BATCHES][round] = add_in_batches(&stage, worker, items, ADDS);
		ns[GET][round] = get_random(&stage);
	}
	for (int i = 0; i < N_CASES; i++) {
		ret_ns[i] = measure_median(ns[i], n_rounds);
	}
	engine_leave(worker);
	stage_free(&stage);
	free(random);
	free(items);
}

static void bench_sizes(void)
{
	static const uint32_t sizes[] = { 1000, WALKED, MILLION };

	(void)printf(
		"ns an operation, by number of counters (batches of %u adds; a get is by path)\n",
		FRAME);
	(void)printf("%10s %15s %15s %15s %15s\n", "counters", "add, in order", "add, random",
		     "add_many, rnd", "get, random");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double ns[N_CASES];

		measure_size(sizes[i], ns);
		(void)printf("%10u %15.2f %15.2f %15.2f %15.1f\n", sizes[i], ns[SEQUENTIAL],
			     ns[RANDOM], ns[BATCHES], ns[GET]);
	}
}

/* ---- a million ---- */

static double resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	char line[100], *resident;

	if (!file || !fgets(line, sizeof(line), file)) {
		exit(1);
	}
	(void)fclose(file);
	(void)strtoul(line, &resident, 10); /* all of its size comes before */
	return (double)strtoul(resident, NULL, 10) * (double)sysconf(_SC_PAGESIZE);
}

static void count_entry(void *ctx, const struct engine_entry *entry)
{
	int64_t *sum = ctx;

	*sum += entry->reading.own;
}

static double walk_once(struct engine *engine, size_t page, int64_t *ret_sum)
{
	struct engine_cursor cursor = { 0 };
	double start = seconds(CLOCK_MONOTONIC);
	bool done = false;

	*ret_sum = 0;
	while (!done) {
		must(engine_walk(engine, "", 0, UINT32_MAX, page, &cursor, count_entry, ret_sum,
				 &done),
		     "engine_walk");
	}
	return seconds(CLOCK_MONOTONIC) - start;
}

/* In a process of its own, so that nothing else's memory is in the figure. */
static void measure_million(void)
{
	const uint32_t leaves = MILLION - MILLION / PER_GROUP - 1;
	struct engine_ref *refs = malloc(leaves * sizeof(*refs));
	struct engine_worker *workers[2];
	double before, start, created, flushed;
	struct engine_stats stats;
	struct engine *engine;
	int64_t sum;

	must(!refs, "no memory");
	memset(refs, 0, leaves * sizeof(*refs));
	before = resident_bytes();
	start = seconds(CLOCK_MONOTONIC);
	engine = make_engine(MILLION);
	for (uint32_t i = 0; i < leaves; i++) {
		struct path path = path_of(i);

		intern(engine, &path, &refs[i]);
	}
	created = seconds(CLOCK_MONOTONIC) - start;
	for (int i = 0; i < 2; i++) {
		must(engine_join(engine, &workers[i]), "engine_join");
		engine_begin(workers[i]);
		for (uint32_t j = 0; j < leaves; j++) {
			must(engine_add(workers[i], refs[j], 1), "engine_add");
		}
		engine_end(workers[i]);
	}
	start = seconds(CLOCK_MONOTONIC);
	engine_flush(engine, 0);
	flushed = seconds(CLOCK_MONOTONIC) - start;
	engine_stats(engine, &stats);
	(void)printf(
		"\n%u counters with paths of %d bytes, 2 workers that have touched all of them\n",
		stats.counters, PATH_BYTES);
	(void)printf("  resident memory a counter, all of the engine   %6.1f bytes\n",
		     (resident_bytes() - before) / stats.counters);
	(void)printf("  creating them                                  %6.2f s\n", created);
	(void)printf("  flushing 2 x %u slots                      %6.3f s\n", leaves, flushed);
	(void)printf("  walking them, pages of 1000                    %6.2f s\n",
		     walk_once(engine, 1000, &sum));
	require(sum == 2 * (int64_t)leaves, "the walk's sum is wrong");
	require(exact_total(engine) == 2 * (int64_t)leaves, "adds were lost");
	engine_leave(workers[0]);
	engine_leave(workers[1]);
	(void)engine_free(engine);
	free(refs);
}

static void bench_million(void)
{
	int child_status = 0;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		grace_register();
		measure_million();
		grace_unregister();
		(void)fflush(stdout);
		_exit(status);
	}
	require(pid > 0 && waitpid(pid, &child_status, 0) == pid && child_status == 0,
		"the million failed");
}

/* ---- adds beside a walk ---- */

/* Two threads are side by side only while both have a processor: where they had not, the case is run again. */
#define MAX_TRIES 12u
#define ENOUGH 0.95 /* of the time */
#define WALK_BOUND 0.95
#define PAGE 1000u /* of a walk */

struct cost {
	double wall_ns, cpu_ns;
	double share; /* of the time, of the thread that had a processor for less of it */
};

enum lock {
	NO_LOCK,
	LOCK_FRAME,
	LOCK_ADD
};

struct side {
	struct stage *stage;
	struct engine *walked; /* the stage's, or another one, whose walk nothing waits for */
	uint32_t n_added_to;   /* of the counters, random ones */
	enum lock lock;
	bool slots; /* the walk reads own values from the workers' slots, too */
	pthread_mutex_t mutex;
	_Atomic(bool) stop;
	_Atomic(uint64_t) walks;
	double reader_share; /* the reader's, when it has ended */
};

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static void walk_page(struct side *side, struct engine_cursor *cursor, int64_t *sum, bool *ret_done)
{
	must(engine_walk(side->walked, "", 0, UINT32_MAX, PAGE, cursor, count_entry, sum, ret_done),
	     "engine_walk");
}

/* As engine_walk would, were own values read from there. Which counters these are does not matter: a walk reads all of them. */
static void read_slots(const struct side *side, uint32_t *at, int64_t *sum)
{
	uint32_t n = atomic_load_explicit(&side->walked->tree.n_ids, memory_order_relaxed);

	for (uint32_t i = 0; i < PAGE; i++) {
		*at = *at + 1 < n ? *at + 1 : 0;
		*sum += worker_own(side->walked, *at);
	}
}

/* One page after the other; in the locked variants each under the lock. */
static void *walk_on(void *ctx)
{
	struct side *side = ctx;
	bool locked = side->lock != NO_LOCK && side->walked == side->stage->engine;
	struct engine_cursor cursor = { 0 };
	double start, cpu_start;
	int64_t sum = 0;
	uint32_t at = 0;

	grace_register();
	pin(1);
	start = seconds(CLOCK_MONOTONIC);
	cpu_start = measure_cpu_ns();
	while (!atomic_load_explicit(&side->stop, memory_order_relaxed)) {
		bool done;

		if (locked) {
			(void)pthread_mutex_lock(&side->mutex);
		}
		walk_page(side, &cursor, &sum, &done);
		if (side->slots) {
			read_slots(side, &at, &sum);
		}
		if (locked) {
			(void)pthread_mutex_unlock(&side->mutex);
		}
		if (done) {
			cursor.len = 0;
			atomic_fetch_add_explicit(&side->walks, 1, memory_order_relaxed);
		}
	}
	side->reader_share =
		(measure_cpu_ns() - cpu_start) / 1e9 / (seconds(CLOCK_MONOTONIC) - start);
	grace_unregister();
	return NULL;
}

static void add_locked(struct side *side, struct engine_worker *worker,
		       const struct engine_ref *refs)
{
	for (uint32_t i = 0; i < FRAME; i++) {
		if (side->lock == LOCK_ADD) {
			(void)pthread_mutex_lock(&side->mutex);
		}
		(void)engine_add(worker, refs[i], 1);
		if (side->lock == LOCK_ADD) {
			(void)pthread_mutex_unlock(&side->mutex);
		}
	}
}

/* Wall time, since waiting for a lock is what it is about; the processor time beside it, which a busy machine disturbs less. */
static struct cost add_beside(struct side *side, struct engine_worker *worker,
			      const struct engine_ref *refs)
{
	uint32_t n_ops = side->lock == NO_LOCK ? 4 * ADDS : ADDS;
	double start = seconds(CLOCK_MONOTONIC), cpu_start = measure_cpu_ns();
	double wall, cpu;
	uint32_t at = 0;

	for (uint32_t i = 0; i < n_ops; i += FRAME) {
		if (side->lock == LOCK_FRAME) {
			(void)pthread_mutex_lock(&side->mutex);
		}
		engine_begin(worker);
		add_locked(side, worker, refs + at);
		engine_end(worker);
		if (side->lock == LOCK_FRAME) {
			(void)pthread_mutex_unlock(&side->mutex);
		}
		at = at + 2 * FRAME > side->n_added_to ? 0 : at + FRAME;
	}
	side->stage->added += n_ops;
	wall = (seconds(CLOCK_MONOTONIC) - start) * 1e9;
	cpu = measure_cpu_ns() - cpu_start;
	return (struct cost){ wall / n_ops, cpu / n_ops, cpu / wall };
}

static struct cost try_with_reader(struct side *side, enum lock lock, bool reader,
				   struct engine_worker *worker, const struct engine_ref *refs)
{
	struct cost cost;
	pthread_t thread;

	side->lock = lock;
	atomic_store_explicit(&side->stop, false, memory_order_relaxed);
	if (reader) {
		must(pthread_create(&thread, NULL, walk_on, side), "pthread_create");
	}
	cost = add_beside(side, worker, refs);
	atomic_store_explicit(&side->stop, true, memory_order_relaxed);
	if (reader) {
		(void)pthread_join(thread, NULL);
		cost.share = side->reader_share < cost.share ? side->reader_share : cost.share;
	}
	return cost;
}

/* The try in which both had the most of a processor; who waits for a lock has none, so with locks the first. */
static struct cost add_with_reader(struct side *side, enum lock lock, bool reader,
				   struct engine_worker *worker, const struct engine_ref *refs)
{
	struct cost best = try_with_reader(side, lock, reader, worker, refs);

	for (unsigned i = 1; lock == NO_LOCK && best.share < ENOUGH && i < MAX_TRIES; i++) {
		struct cost cost = try_with_reader(side, lock, reader, worker, refs);

		best = cost.share > best.share ? cost : best;
	}
	return best;
}

/* One round of one variant, alone and beside the walk. */
struct pair {
	double alone[MEASURE_MAX_ROUNDS], other[MEASURE_MAX_ROUNDS], beside[MEASURE_MAX_ROUNDS];
	double throughput[MEASURE_MAX_ROUNDS],
		cpu_throughput[MEASURE_MAX_ROUNDS]; /* beside : alone */
	double control[MEASURE_MAX_ROUNDS];	    /* beside : other, processor time */
	double share[MEASURE_MAX_ROUNDS];
	uint64_t walks;
};

static void measure_pair(struct side *side, struct engine *apart, enum lock lock,
			 struct engine_worker *worker, const struct engine_ref *refs,
			 unsigned round, struct pair *pair)
{
	struct cost alone = add_with_reader(side, lock, false, worker, refs), other, beside;

	/* The control: as much work for the other processor, none of it on what the adds touch. */
	side->walked = apart;
	other = add_with_reader(side, lock, true, worker, refs);
	side->walked = side->stage->engine;
	atomic_store_explicit(&side->walks, 0, memory_order_relaxed);
	beside = add_with_reader(side, lock, true, worker, refs);
	pair->walks += atomic_load_explicit(&side->walks, memory_order_relaxed);
	pair->alone[round] = alone.wall_ns;
	pair->other[round] = other.wall_ns;
	pair->beside[round] = beside.wall_ns;
	pair->throughput[round] = alone.wall_ns / beside.wall_ns;
	pair->cpu_throughput[round] = alone.cpu_ns / beside.cpu_ns;
	pair->control[round] = other.cpu_ns / beside.cpu_ns;
	pair->share[round] = alone.share < beside.share ? alone.share : beside.share;
}

/* Adds that come back to few of the counters, as most do, and adds all over them: then each meets lines that the walk has just read. */
static const struct walk_case {
	const char *name;
	enum lock lock;
	uint32_t n_added_to;
	bool slots;
} walk_cases[] = {
	{ "no lock, 1024 of them", NO_LOCK, 1024, false },
	{ "no lock, all of them", NO_LOCK, WALKED, false },
	{ "and the slots, 1024", NO_LOCK, 1024, true },
	{ "and the slots, all", NO_LOCK, WALKED, true },
	{ "lock a frame, 1024", LOCK_FRAME, 1024, false },
	{ "lock an add, 1024", LOCK_ADD, 1024, false },
};
#define N_WALK_CASES (sizeof(walk_cases) / sizeof(walk_cases[0]))

static void print_pairs(struct pair *pairs)
{
	(void)printf(
		"\nns an add (wall time) to some of %u counters: alone; beside a thread that walks another engine's;\n"
		"beside one that walks these, where there is a lock under it, or reading the workers' slots too. Then throughput beside it: against alone,\n"
		"by the clock and by processor time; against the other walk, by processor time. Share: of the time, how\n"
		"much both threads had a processor; below %.2f the clock has measured what else this machine does\n",
		WALKED, ENOUGH);
	(void)printf("%24s %8s %10s %10s %9s %9s %10s %7s %7s\n", "", "alone", "other walk",
		     "this walk", "to alone", "cpu", "to other", "share", "walks");
	for (size_t i = 0; i < N_WALK_CASES; i++) {
		struct pair *pair = &pairs[i];

		(void)printf("%24s %8.2f %10.2f %10.2f %9.3f %9.3f %10.3f %7.2f %7llu\n",
			     walk_cases[i].name, measure_median(pair->alone, n_rounds),
			     measure_median(pair->other, n_rounds),
			     measure_median(pair->beside, n_rounds),
			     measure_median(pair->throughput, n_rounds),
			     measure_median(pair->cpu_throughput, n_rounds),
			     measure_median(pair->control, n_rounds),
			     measure_median(pair->share, n_rounds),
			     (unsigned long long)pair->walks);
	}
	for (size_t i = 0; i < N_WALK_CASES; i++) {
		bool side_by_side = measure_median(pairs[i].share, n_rounds) >= ENOUGH;
		double ratio = measure_median(
			side_by_side ? pairs[i].throughput : pairs[i].cpu_throughput, n_rounds);

		if (walk_cases[i].lock == NO_LOCK && !walk_cases[i].slots) {
			(void)printf(
				"%s: throughput beside a walk : alone, by %s %.3f, bound %.2f, %s\n",
				walk_cases[i].name, side_by_side ? "the clock" : "processor time",
				ratio, WALK_BOUND, ratio >= WALK_BOUND ? "met" : "MISSED");
		}
	}
}

static void bench_walk_beside(void)
{
	static struct pair pairs[N_WALK_CASES];
	struct stage stage = stage_new(WALKED), apart = stage_new(WALKED);
	struct side side = { .stage = &stage,
			     .walked = stage.engine,
			     .n_added_to = WALKED,
			     .mutex = PTHREAD_MUTEX_INITIALIZER };
	struct engine_ref *refs = calloc(stage.n, sizeof(*refs));
	struct engine_worker *worker;

	must(!refs, "no memory");
	for (uint32_t i = 0; i < stage.n; i++) {
		refs[i] = stage.refs[stage.order[i]];
	}
	must(engine_join(stage.engine, &worker), "engine_join");
	pin(0);
	(void)add_with_reader(&side, NO_LOCK, false, worker, refs);
	for (unsigned round = 0; round < n_rounds; round++) {
		for (size_t i = 0; i < N_WALK_CASES; i++) {
			side.n_added_to = walk_cases[i].n_added_to;
			side.slots = walk_cases[i].slots;
			measure_pair(&side, apart.engine, walk_cases[i].lock, worker, refs, round,
				     &pairs[i]);
		}
	}
	print_pairs(pairs);
	engine_leave(worker);
	stage_free(&stage);
	stage_free(&apart);
	free(refs);
}

/* ---- flushes that readers share ---- */

#define N_READERS 8

static void *read_exact(void *ctx)
{
	struct side *side = ctx;
	struct engine_view view;

	grace_register();
	while (!atomic_load_explicit(&side->stop, memory_order_relaxed)) {
		engine_refresh(side->stage->engine, ENGINE_EXACT, 0, &view);
		atomic_fetch_add_explicit(&side->walks, 1, memory_order_relaxed);
	}
	grace_unregister();
	return NULL;
}

static void bench_shared_flush(void)
{
	struct stage stage = stage_new(WALKED);
	struct side side = { .stage = &stage };
	struct engine_worker *worker;
	struct engine_stats before, after;
	pthread_t readers[N_READERS];
	double ns;

	must(engine_join(stage.engine, &worker), "engine_join");
	(void)add_one_by_one(&stage, worker, stage.refs, ADDS);
	(void)printf("\nexact reads while a worker adds to %u counters\n", WALKED);
	(void)printf("%10s %15s %15s %15s %15s\n", "readers", "ns an add", "reads", "flushes run",
		     "reads a flush");
	for (int n = 1; n <= N_READERS; n *= 2) {
		engine_stats(stage.engine, &before);
		atomic_store_explicit(&side.stop, false, memory_order_relaxed);
		atomic_store_explicit(&side.walks, 0, memory_order_relaxed);
		for (int i = 0; i < n; i++) {
			must(pthread_create(&readers[i], NULL, read_exact, &side),
			     "pthread_create");
		}
		ns = add_one_by_one(&stage, worker, stage.refs, 4 * ADDS);
		atomic_store_explicit(&side.stop, true, memory_order_relaxed);
		for (int i = 0; i < n; i++) {
			(void)pthread_join(readers[i], NULL);
		}
		engine_stats(stage.engine, &after);
		(void)printf("%10d %15.2f %15llu %15llu %15.2f\n", n, ns,
			     (unsigned long long)atomic_load_explicit(&side.walks,
								      memory_order_relaxed),
			     (unsigned long long)(after.flushes_run - before.flushes_run),
			     (double)atomic_load_explicit(&side.walks, memory_order_relaxed) /
				     (double)(after.flushes_run - before.flushes_run));
	}
	engine_leave(worker);
	stage_free(&stage);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		n_rounds = (unsigned)strtoul(argv[1], NULL, 10);
		if (n_rounds % 2 == 0 || n_rounds > MEASURE_MAX_ROUNDS) {
			(void)fprintf(stderr,
				      "usage: bench-engine [ROUNDS]\nROUNDS is odd, 1 .. %u\n",
				      MEASURE_MAX_ROUNDS);
			return 2;
		}
	}
	/* First, as its process begins as a copy of this one. */
	bench_million();
	grace_register();
	bench_sizes();
	bench_walk_beside();
	bench_shared_flush();
	grace_unregister();
	return status;
}
