/*
 * registry under concurrent use: creators, removers, finders and walkers at once, with yields between the atomic steps.
 *
 * `ready` is written where the engine sets up what it keeps by id, with plain stores: ThreadSanitizer reports a name that can
 * be reached before its preparation, or whose id comes back while somebody may still be at the old name.
 */
#include "lib/names/registry.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/hook.h"
#include "lib/rcu/grace.h"
#include "tests/support/test.h"

#define BRANCHES 6u
#define LASTING 24u  /* a/A .. f/D, there all along */
#define CEILING 200u /* less than there are paths, so that creation is refused at times */
#define RUN_NS INT64_C(700000000)

#define GROWN 60000u	   /* names, at most */
#define ENOUGH_GROWN 2048u /* the table has been grown */

struct stress {
	struct registry *registry;
	struct name *lasting[LASTING];
	int64_t ready[CEILING];
	_Atomic(bool) stop;
	_Atomic(uint32_t) made; /* test_growth: m/0 .. m/(made - 1) are there */
	_Atomic(uint64_t) n_created, n_refused, n_removed, n_found, n_walks, n_resumed_off;
};

struct worker {
	struct stress *stress;
	struct test_random random;
	pthread_t thread;
};

/* Relaxed: only ends loops and counts for the summary; joining the threads orders the rest. */
static bool running(struct stress *stress)
{
	return !atomic_load_explicit(&stress->stop, memory_order_relaxed);
}

static void count(_Atomic(uint64_t) *counter)
{
	(void)atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* cmocka's assertions leave the thread by longjmp, which only its own thread may do. */
static void check(bool right, const char *what)
{
	if (!right) {
		(void)fprintf(stderr, "%s\n", what);
		__builtin_trap();
	}
}

static size_t random_path(struct worker *worker, char path[8])
{
	size_t len = 0;

	for (uint64_t depth = 1 + test_random_below(&worker->random, 3); depth > 0; depth--) {
		path[len++] = (char)('a' + (char)test_random_below(&worker->random, BRANCHES));
		path[len++] = '/';
	}
	return len - 1;
}

static int make_ready(void *ctx, struct name *const *names, size_t n_names)
{
	struct stress *stress = ctx;

	for (size_t i = 0; i < n_names; i++) {
		check(names[i]->id < CEILING, "an id beyond the ceiling");
		stress->ready[names[i]->id] = names[i]->born;
	}
	return 0;
}

static void check_name(struct stress *stress, const struct name *name)
{
	check(stress->ready[name->id] == name->born, "the id was prepared for another name");
	if (name->parent) {
		check(name->parent->len < name->len && name->path[name->parent->len] == '/' &&
			      memcmp(name->parent->path, name->path, name->parent->len) == 0,
		      "the parent is not the path's parent");
		check(name->parent->born < name->born, "older than its parent");
	}
}

static void *run_creator(void *argument)
{
	struct worker *worker = argument;
	struct stress *stress = worker->stress;

	grace_register();
	while (running(stress)) {
		struct name *name = NULL;
		char path[8];
		size_t len = random_path(worker, path);
		int r;

		registry_lock(stress->registry);
		r = registry_create(stress->registry, path, len, 0, make_ready, stress, &name);
		check(r == 0 || r == REGISTRY_E_FULL, "creation failed");
		if (r == 0) {
			check_name(stress, name);
		}
		registry_unlock(stress->registry);
		count(r ? &stress->n_refused : &stress->n_created);
	}
	grace_unregister();
	return NULL;
}

static void *run_remover(void *argument)
{
	struct worker *worker = argument;
	struct stress *stress = worker->stress;

	grace_register();
	while (running(stress)) {
		struct name *gone[4];
		size_t n = 0;

		registry_lock(stress->registry);
		for (unsigned i = 0; i < 40 && n < 4; i++) {
			char path[8];
			size_t len = random_path(worker, path);
			struct name *name;

			grace_enter();
			name = registry_find(stress->registry, path, len);
			grace_leave();
			if (name &&
			    !atomic_load_explicit(&name->first_child, memory_order_relaxed)) {
				registry_unlink(stress->registry, name);
				gone[n++] = name;
			}
		}
		registry_unlock(stress->registry);
		grace_wait();
		registry_lock(stress->registry);
		while (n > 0) {
			registry_release(stress->registry, gone[--n]);
			count(&stress->n_removed);
		}
		registry_unlock(stress->registry);
	}
	grace_unregister();
	return NULL;
}

static void *run_finder(void *argument)
{
	struct worker *worker = argument;
	struct stress *stress = worker->stress;

	grace_register();
	while (running(stress)) {
		char path[8];
		size_t len = random_path(worker, path);
		struct name *name;

		grace_enter();
		name = registry_find(stress->registry, path, len);
		for (const struct name *up = name; up; up = up->parent) {
			check_name(stress, up);
		}
		check(!name || (name->len == len && memcmp(name->path, path, len) == 0),
		      "found another path");
		grace_leave();
		if (name) {
			count(&stress->n_found);
		}
	}
	grace_unregister();
	return NULL;
}

struct visited {
	bool path[1 + BRANCHES][1 + BRANCHES][1 + BRANCHES];
	bool lasting[LASTING];
	size_t n_lasting;
};

static void visit(struct stress *stress, const struct name *name, struct visited *visited)
{
	size_t at[3] = { 0 };

	check_name(stress, name);
	if (name->path[name->len - 1] < 'a') {
		for (size_t i = 0; i < LASTING; i++) {
			if (name == stress->lasting[i]) {
				check(!visited->lasting[i], "a lasting name visited twice");
				visited->lasting[i] = true;
				visited->n_lasting++;
			}
		}
		return;
	}
	for (size_t i = 0; i < name->depth; i++) {
		at[i] = 1 + (size_t)(name->path[2 * i] - 'a');
	}
	check(!visited->path[at[0]][at[1]][at[2]], "a path visited twice");
	visited->path[at[0]][at[1]][at[2]] = true;
}

/* One walk over everything, in sections of a few names. */
static void walk_once(struct worker *worker)
{
	struct stress *stress = worker->stress;
	struct visited visited = { 0 };
	struct registry_cursor cursor;
	struct registry_walk walk;
	struct name *name;
	bool started = false;

	do {
		uint64_t page = 1 + test_random_below(&worker->random, 10);

		grace_enter();
		registry_walk_init(&walk, stress->registry, NULL, UINT32_MAX);
		name = started ? registry_resume(&walk, &cursor) : registry_first(&walk);
		if (started && !registry_find(stress->registry, cursor.path, cursor.len)) {
			count(&stress->n_resumed_off);
		}
		started = true;
		for (; name; name = registry_next(&walk, name)) {
			visit(stress, name, &visited);
			if (--page == 0) {
				registry_save(name, &cursor);
				break;
			}
		}
		grace_leave();
		(void)sched_yield(); /* let names go between the sections */
	} while (name);
	check(visited.n_lasting == LASTING, "a lasting name was not visited");
}

static void *run_walker(void *argument)
{
	struct worker *worker = argument;

	grace_register();
	while (running(worker->stress)) {
		walk_once(worker);
		count(&worker->stress->n_walks);
	}
	grace_unregister();
	return NULL;
}

static uint64_t so_far(const _Atomic(uint64_t) *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static bool all_was_done(const struct stress *stress)
{
	return so_far(&stress->n_removed) > 0 && so_far(&stress->n_found) > 0 &&
	       so_far(&stress->n_walks) > 0;
}

static bool has_grown(const struct stress *stress)
{
	return atomic_load_explicit(&stress->made, memory_order_relaxed) > ENOUGH_GROWN;
}

static void run(struct stress *stress, void *(*const *mains)(void *), size_t n,
		bool (*enough)(const struct stress *stress))
{
	int64_t until = test_now_ns() + RUN_NS;
	struct worker workers[16];

	assert_true(n <= 16);
	ration_hook_seed(test_seed());
	for (size_t i = 0; i < n; i++) {
		workers[i].stress = stress;
		test_random_init(&workers[i].random, i);
		assert_int_equal(pthread_create(&workers[i].thread, NULL, mains[i], &workers[i]),
				 0);
	}
	while (test_goes_on(until, enough(stress))) {
		(void)usleep(1000);
	}
	atomic_store_explicit(&stress->stop, true, memory_order_relaxed);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
	}
}

static void test_everything_at_once(void **state)
{
	static void *(*const mains[])(void *) = {
		run_creator, run_creator, run_remover, run_remover,
		run_finder,  run_finder,  run_walker,  run_walker,
	};
	static struct stress stress;
	uint32_t n = 0;
	struct registry_walk walk;

	(void)state;
	assert_int_equal(registry_new(&stress.registry, CEILING, test_seed()), 0);
	for (unsigned i = 0; i < LASTING; i++) {
		/* The eldest of their siblings: a walker that loses its way among the others misses them. */
		const char path[] = { (char)('a' + (char)(i % BRANCHES)), '/',
				      (char)('A' + (char)(i / BRANCHES)) };

		registry_lock(stress.registry);
		assert_int_equal(registry_create(stress.registry, path, sizeof(path), 0, make_ready,
						 &stress, &stress.lasting[i]),
				 0);
		registry_unlock(stress.registry);
	}
	run(&stress, mains, sizeof(mains) / sizeof(*mains), all_was_done);

	grace_enter();
	registry_walk_init(&walk, stress.registry, NULL, UINT32_MAX);
	for (struct name *name = registry_first(&walk); name; name = registry_next(&walk, name)) {
		assert_ptr_equal(registry_find(stress.registry, name->path, name->len), name);
		n++;
	}
	grace_leave();
	assert_int_equal(n, registry_count(stress.registry));
	print_message(
		"%lu created or found, %lu refused, %lu removed, %lu found, %lu walks, %lu resumed off the list\n",
		(unsigned long)stress.n_created, (unsigned long)stress.n_refused,
		(unsigned long)stress.n_removed, (unsigned long)stress.n_found,
		(unsigned long)stress.n_walks, (unsigned long)stress.n_resumed_off);
	assert_true(all_was_done(&stress));
	registry_free(stress.registry);
}

static void *run_grower(void *argument)
{
	struct stress *stress = ((struct worker *)argument)->stress;

	grace_register();
	for (uint32_t i = 0; i < GROWN && running(stress); i++) {
		struct name *name;
		char path[16];
		int len = snprintf(path, sizeof(path), "m/%u", i);

		registry_lock(stress->registry);
		check(registry_create(stress->registry, path, (size_t)len, 0, NULL, NULL, &name) ==
			      0,
		      "creation failed");
		registry_unlock(stress->registry);
		atomic_store_explicit(&stress->made, i + 1,
				      memory_order_release); /* partner: run_seeker */
	}
	grace_unregister();
	return NULL;
}

/* What has been made is found, whatever the table is doing. */
static void *run_seeker(void *argument)
{
	struct worker *worker = argument;
	struct stress *stress = worker->stress;

	grace_register();
	while (running(stress)) {
		uint32_t made = atomic_load_explicit(
			&stress->made, memory_order_acquire); /* partner: run_grower */
		char path[16];
		int len;

		if (made == 0) {
			continue;
		}
		len = snprintf(path, sizeof(path), "m/%u",
			       (uint32_t)test_random_below(&worker->random, made));
		grace_enter();
		check(registry_find(stress->registry, path, (size_t)len),
		      "lost while the table grew");
		grace_leave();
	}
	grace_unregister();
	return NULL;
}

static void test_growth(void **state)
{
	static void *(*const mains[])(void *) = { run_grower, run_seeker, run_seeker };
	static struct stress stress;

	(void)state;
	assert_int_equal(registry_new(&stress.registry, GROWN + 1, test_seed()), 0);
	run(&stress, mains, sizeof(mains) / sizeof(*mains), has_grown);
	assert_true(registry_count(stress.registry) > ENOUGH_GROWN);
	registry_free(stress.registry);
}

static int setup(void **state)
{
	(void)state;
	grace_register();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	grace_unregister();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything_at_once),
		cmocka_unit_test(test_growth),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
