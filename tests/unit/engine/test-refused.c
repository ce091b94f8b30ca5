/* refused: the most refused prefixes. */
#include "lib/engine/refused.h"
#include "tests/unit/engine/support.h"

static void note(struct refused *refused, const char *path)
{
	refused_note(refused, path, strlen(path));
}

static void test_order(void **state)
{
	struct refused refused = REFUSED_INIT;
	struct engine_refused list[ENGINE_MAX_REFUSED];

	(void)state;
	assert_int_equal(refused_list(&refused, list), 0);
	note(&refused, "a/b/1");
	note(&refused, "a/b/2");
	note(&refused, "a/c/1");
	note(&refused, "a/b/2");
	note(&refused, "metric");
	note(&refused, "metric2");
	assert_int_equal(refused_list(&refused, list), 3);
	assert_string_equal(list[0].prefix, "a/b");
	assert_int_equal(list[0].count, 3);
	assert_string_equal(list[1].prefix, "");
	assert_int_equal(list[1].count, 2);
	assert_string_equal(list[2].prefix, "a/c");
}

/* Among many that come once, one that comes often is listed, and its count is not too small, nor too large by more than n / 16. */
static void test_heavy_one_is_found(void **state)
{
	struct refused refused = REFUSED_INIT;
	struct engine_refused list[ENGINE_MAX_REFUSED];
	const uint64_t n = 10000, heavy = n / 10;
	uint64_t sum = 0;
	char path[32];

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		(void)snprintf(path, sizeof(path), i % 10 == 9 ? "x/heavy/%u" : "x/%u/y",
			       (unsigned)i);
		note(&refused, path);
	}
	assert_int_equal(refused_list(&refused, list), ENGINE_MAX_REFUSED);
	assert_string_equal(list[0].prefix, "x/heavy");
	assert_in_range(list[0].count, heavy, heavy + n / ENGINE_MAX_REFUSED);
	for (size_t i = 0; i < ENGINE_MAX_REFUSED; i++) {
		assert_true(i == 0 || list[i].count <= list[i - 1].count);
		sum += list[i].count;
	}
	assert_int_equal(sum, n);
}

static void test_longest(void **state)
{
	struct refused refused = REFUSED_INIT;
	struct engine_refused list[ENGINE_MAX_REFUSED];
	char path[PATH_MAX_BYTES];

	(void)state;
	memset(path, 'x', sizeof(path));
	for (size_t i = 100; i < sizeof(path); i += 100) {
		path[i] = '/';
	}
	path[PATH_MAX_BYTES - 2] = '/';
	refused_note(&refused, path, sizeof(path));
	assert_int_equal(refused_list(&refused, list), 1);
	assert_int_equal(strlen(list[0].prefix), PATH_MAX_BYTES - 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_heavy_one_is_found),
		cmocka_unit_test(test_longest),
	};

	return RUN(tests);
}
