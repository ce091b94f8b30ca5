#include "tests/support/test.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define PATIENCE_NS INT64_C(60000000000)

uint64_t test_seed(void)
{
	static uint64_t seed;

	if (seed == 0) {
		const char *given = getenv("RATION_SEED");

		if (given != NULL) {
			seed = strtoull(given, NULL, 0);
		} else if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
			abort();
		}
		seed = seed != 0 ? seed : 1;
		(void)fprintf(stderr, "RATION_SEED=%" PRIu64 "\n", seed);
	}
	return seed;
}

void test_random_init(struct test_random *random, uint64_t stream)
{
	/* splitmix64's finish: neighbouring streams start far apart. */
	uint64_t z = test_seed() + (stream + 1) * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	random->state = z != 0 ? z : 1;
}

uint64_t test_random_next(struct test_random *random)
{
	uint64_t x = random->state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	random->state = x;
	return x * UINT64_C(0x2545f4914f6cdd1d);
}

uint64_t test_random_below(struct test_random *random, uint64_t bound)
{
	return (uint64_t)(((unsigned __int128)test_random_next(random) * bound) >> 64);
}

int64_t test_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

bool test_goes_on(int64_t until_ns, bool enough)
{
	int64_t late_ns = test_now_ns() - until_ns;

	return late_ns < 0 || (!enough && late_ns < PATIENCE_NS);
}

int test_dir_setup(void **state)
{
	const char *parent = getenv("TMPDIR");
	char *path = NULL;

	if (asprintf(&path, "%s/rationd-test-XXXXXX", parent != NULL ? parent : "/tmp") < 0) {
		return -1;
	}
	if (mkdtemp(path) == NULL) {
		free(path);
		return -1;
	}
	*state = path;
	return 0;
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *where)
{
	(void)stat;
	(void)type;
	(void)where;
	return remove(path);
}

int test_dir_teardown(void **state)
{
	char *path = *state;
	int r = nftw(path, remove_one, /* nopenfd= */ 16, FTW_DEPTH | FTW_PHYS);

	free(path);
	*state = NULL;
	return r;
}

char *test_dir_file(void **state, const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s", (char *)*state, name) >= 0);
	return path;
}
