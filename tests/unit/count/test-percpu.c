#include "tests/support/test.h"

#include "lib/count/percpu.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOME 1000u

static uint32_t n_cpus(void)
{
	return (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
}

struct grown {
	int64_t by[SOME];
	size_t n;
};

static void grown_one(void *ctx, uint32_t index, int64_t growth)
{
	struct grown *grown = ctx;

	grown->by[index] += growth;
	grown->n++;
}

/* Sweeps into a zeroed `grown`; returns how many counters had grown. */
static size_t sweep(struct percpu *percpu, struct grown *grown)
{
	memset(grown, 0, sizeof(*grown));

	size_t n = percpu_sweep(percpu, grown_one, grown);

	assert_int_equal(n, grown->n);
	return n;
}

static void test_limits(void **state)
{
	struct percpu percpu = { 0 };

	(void)state;
	percpu_deinit(&percpu);
	assert_int_equal(percpu_init(&percpu, 0, 1), -EINVAL);
	assert_int_equal(percpu_init(&percpu, PERCPU_MAX_CPUS + 1, 1), -EINVAL);
	assert_int_equal(percpu_init(&percpu, 1, 0), -EINVAL);
	assert_int_equal(percpu_init(&percpu, 1, PERCPU_MAX_COUNTERS + 1), -EINVAL);
	assert_int_equal(percpu_init(&percpu, PERCPU_MAX_CPUS, PERCPU_MAX_COUNTERS), 0);

	struct slot *base = percpu_base(&percpu, PERCPU_MAX_COUNTERS - 1);

	assert_non_null(base);
	percpu_add(base, 3);
	assert_int_equal(percpu_sum(base), 3);
	percpu_deinit(&percpu);
	percpu_deinit(&percpu);
}

static void test_add_and_sweep(void **state)
{
	static const uint32_t indices[] = { 0, 1, 63, 64, 255, 256, 257, SOME - 1 };
	static struct grown grown;
	struct percpu percpu;

	(void)state;
	assert_int_equal(percpu_init(&percpu, n_cpus(), SOME), 0);
	assert_int_equal(sweep(&percpu, &grown), 0);
	for (size_t i = 0; i < sizeof(indices) / sizeof(indices[0]); i++) {
		struct slot *base = percpu_base(&percpu, indices[i]);

		assert_non_null(base);
		assert_ptr_equal(percpu_base(&percpu, indices[i]), base);
		assert_int_equal(percpu_sum(base), 0);
		for (int k = 0; k < 100; k++) {
			percpu_add(base, (int64_t)indices[i] + 1);
		}
		assert_int_equal(percpu_sum(base), 100 * (indices[i] + 1));
		assert_int_equal(sweep(&percpu, &grown), 1);
		assert_int_equal(grown.by[indices[i]], 100 * (indices[i] + 1));
		assert_int_equal(sweep(&percpu, &grown), 0);
		/* Never zeroed. */
		assert_int_equal(percpu_sum(base), 100 * (indices[i] + 1));
	}
	for (size_t i = 0; i < sizeof(indices) / sizeof(indices[0]); i++) {
		percpu_add(percpu_base(&percpu, indices[i]), -7);
	}
	assert_int_equal(sweep(&percpu, &grown), sizeof(indices) / sizeof(indices[0]));
	assert_int_equal(grown.by[255], -7);
	percpu_deinit(&percpu);
}

static void test_int64_edges(void **state)
{
	static struct grown grown;
	struct percpu percpu;
	struct slot *base;

	(void)state;
	assert_int_equal(percpu_init(&percpu, n_cpus(), SOME), 0);
	base = percpu_base(&percpu, 5);
	assert_non_null(base);
	percpu_add(base, INT64_MAX);
	assert_int_equal(sweep(&percpu, &grown), 1);
	assert_true(grown.by[5] == INT64_MAX);
	percpu_add(base, INT64_MIN);
	assert_int_equal(sweep(&percpu, &grown), 1);
	assert_true(grown.by[5] == INT64_MIN);
	percpu_add(base, 1);
	percpu_add(base, -1);
	percpu_add(base, 0);
	assert_int_equal(sweep(&percpu, &grown), 0);
	assert_true(percpu_sum(base) == UINT64_MAX);
	percpu_deinit(&percpu);
}

/* CPUs that n_cpus does not know of: their threads add to the shared slot, and nothing is lost. */
static void test_cpu_beyond_n_cpus(void **state)
{
	struct percpu percpu;
	cpu_set_t before, one;
	struct slot *base;
	int used = 0;

	(void)state;
	assert_int_equal(percpu_init(&percpu, 1, SOME), 0);
	base = percpu_base(&percpu, 300);
	assert_non_null(base);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	for (size_t cpu = 0; cpu < CPU_SETSIZE && used < 4; cpu++) {
		if (!CPU_ISSET(cpu, &before)) {
			continue;
		}
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);

		uint64_t shared = slot_count(base + PERCPU_BLOCK);

		percpu_add(base, 10);
		used++;
		if (percpu_is_fast(&percpu)) {
			assert_int_equal(slot_count(base + PERCPU_BLOCK) - shared,
					 cpu > 0 ? 10 : 0);
		}
	}
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(percpu_sum(base), 10 * used);
	assert_int_equal(percpu_collect(base), 10 * used);
	assert_int_equal(percpu_collect(base), 0);
	percpu_deinit(&percpu);
}

/* What an add does where glibc has no sequences for it: atomic, on pages chosen by thread. */
static void test_without_sequences(void **state)
{
	static struct grown grown;
	struct percpu percpu;
	struct slot *base;

	(void)state;
	assert_int_equal(percpu_init(&percpu, n_cpus(), SOME), 0);
	percpu.rseq_cpus = 0;
	assert_false(percpu_is_fast(&percpu));
	base = percpu_base(&percpu, 9);
	assert_non_null(base);
	for (int i = 0; i < 10; i++) {
		percpu_add(base, 2);
	}
	assert_int_equal(percpu_sum(base), 20);
	assert_int_equal(sweep(&percpu, &grown), 1);
	assert_int_equal(grown.by[9], 20);
	percpu_deinit(&percpu);
}

static void *add_one(void *arg)
{
	percpu_add(arg, 1);
	return NULL;
}

static void test_uses_sequences_where_it_can(void **state)
{
	struct percpu percpu;
	pthread_t thread;
	struct slot *base;

	(void)state;
	assert_int_equal(percpu_init(&percpu, n_cpus(), SOME), 0);
	base = percpu_base(&percpu, 0);
	assert_non_null(base);
	percpu_add(base, 1);
	assert_int_equal(pthread_create(&thread, NULL, add_one, base), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(percpu_sum(base), 2);
#ifdef PERCPU_RSEQ
	if (__rseq_size != 0) {
		assert_true(percpu_is_fast(&percpu));
		/* None of it went to the shared page. */
		assert_int_equal(slot_count(base + (size_t)n_cpus() * PERCPU_BLOCK), 0);
	} else {
		print_message(
			"no restartable sequences in this process: atomic adds tested alone\n");
	}
#else
	assert_false(percpu_is_fast(&percpu));
#endif
	percpu_deinit(&percpu);
}

/* ---- fork ---- */

/* 0 if the child has its own counts alone. */
static int child_of_fork(struct percpu *percpu, struct slot *base)
{
	static struct grown grown;

	percpu_add(base, 30);
	percpu_restart(percpu);
	/* Where the kernel wiped the blocks, what was added before the restart counts; otherwise it can't be told from the parent's. */
	int64_t early = percpu->wiped ? 30 : 0;

	percpu_add(base, 3);
	percpu_add(percpu_base(percpu, SOME - 1), 4);
	memset(&grown, 0, sizeof(grown));
	(void)percpu_sweep(percpu, grown_one, &grown);
	if (grown.by[2] != early + 3 || grown.by[SOME - 1] != 4 || grown.by[3] != 0) {
		return 1;
	}
	return percpu_sweep(percpu, grown_one, &grown) == 0 ? 0 : 2;
}

/* As on a kernel that can't wipe. */
static void keep_on_fork(struct percpu *percpu, struct slot *base)
{
	size_t size = ((size_t)percpu->n_cpus + 2) * PERCPU_PAGE;

	assert_int_equal(madvise(percpu_head(base), size, MADV_KEEPONFORK), 0);
	percpu->wiped = false;
}

static void fork_with(bool wiped)
{
	static struct grown grown;
	struct percpu percpu;
	struct slot *base;
	int status = -1;

	fence_setup();
	assert_int_equal(percpu_init(&percpu, n_cpus(), SOME), 0);
	base = percpu_base(&percpu, 2);
	assert_non_null(base);
	assert_non_null(percpu_base(&percpu, SOME - 1));
	if (!wiped) {
		keep_on_fork(&percpu, base);
		keep_on_fork(&percpu, percpu_base(&percpu, SOME - 1));
	}
	percpu_add(base, 100);
	percpu_add(percpu_base(&percpu, 3), 5);
	/* Half-way through a sweep: taken, not visited. */
	percpu_take(&percpu);
	percpu_add(base, 1);

	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		_exit(child_of_fork(&percpu, base));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	/* The parent keeps all it had. */
	assert_int_equal(sweep(&percpu, &grown), 2);
	assert_int_equal(grown.by[2], 101);
	assert_int_equal(grown.by[3], 5);
	percpu_deinit(&percpu);
}

static void test_fork(void **state)
{
	(void)state;
	fork_with(true);
}

static void test_fork_without_wiping(void **state)
{
	(void)state;
	fork_with(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_add_and_sweep),
		cmocka_unit_test(test_int64_edges),
		cmocka_unit_test(test_cpu_beyond_n_cpus),
		cmocka_unit_test(test_without_sequences),
		cmocka_unit_test(test_uses_sequences_where_it_can),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_fork_without_wiping),
	};

	return cmocka_run_group_tests_name("count/percpu", tests, NULL, NULL);
}
