/* family: names as they should be, and no two the same, whatever metrics there are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/expose/family.h"
#include "tests/support/test.h"

struct world {
	const char *const *names;
	size_t n;
};

static bool exists(void *ctx, const char *name, size_t len)
{
	const struct world *world = ctx;

	for (size_t i = 0; i < world->n; i++) {
		if (strlen(world->names[i]) == len && memcmp(world->names[i], name, len) == 0) {
			return true;
		}
	}
	return false;
}

static const char *name_of(const struct world *world, const char *name, bool counter,
			   const char *unit)
{
	static char text[FAMILY_MAX_NAME + 2];
	const struct family_metric metric = {
		.name = name, .len = strlen(name), .counter = counter, .unit = unit
	};
	bool has_unit;
	size_t len = family_name(&metric, exists, (void *)(uintptr_t)world, text, &has_unit);

	assert_in_range(len, 1, FAMILY_MAX_NAME);
	text[len] = has_unit ? '!' : '\0';
	text[len + 1] = '\0';
	return text;
}

static void expect(const char *name, bool counter, const char *unit, const char *expected)
{
	const char *const names[] = { name };
	const struct world world = { names, 1 };

	assert_string_equal(name_of(&world, name, counter, unit), expected);
}

static void test_alone(void **state)
{
	char longest[PATH_MAX_SEGMENT + 1], expected[FAMILY_MAX_NAME + 2] = "U__";

	(void)state;
	expect("requests", true, "", "requests");
	expect("requests_total", true, "", "requests");
	expect("requests_total", false, "", "requests_total");
	expect("a:b", true, "", "a:b");
	expect("http-requests", true, "", "U__http_2d_requests");
	expect("a.b_c", false, "", "U__a_2e_b__c");
	expect("9lives", true, "", "U___39_lives");
	expect("U__a", true, "", "U__U____a");
	expect("rationd_x", true, "", "U__rationd__x");
	expect("rationd", true, "", "rationd");
	expect("x_created", false, "", "U__x__created");
	expect("x_total_total", true, "", "U__x__total__total");
	expect("_total", true, "", "_total");
	expect("gr\xc3\xb6\xc3\x9f"
	       "e \xe2\x82\xac \xf0\x9f\x98\x80",
	       true, "", "U__gr_f6__df_e_20__20ac__20__1f600_");
	memset(longest, '.', PATH_MAX_SEGMENT);
	longest[PATH_MAX_SEGMENT] = '\0';
	for (size_t i = 0; i < PATH_MAX_SEGMENT; i++) {
		memcpy(expected + 3 + 4 * i, "_2e_", 5);
	}
	expect(longest, true, "", expected);
}

static void test_units(void **state)
{
	(void)state;
	/* Together they would be one of rationd's own. */
	expect("rationd", true, "folds", "U__rationd");
	expect("rationd_total", true, "folds", "U__rationd__total");
	expect("rationd", true, "", "rationd");
	expect("traffic", true, "bytes", "traffic_bytes!");
	expect("traffic_bytes", true, "bytes", "traffic_bytes!");
	expect("traffic_total", true, "bytes", "traffic_bytes!");
	expect("traffic_bytes_total", true, "bytes", "traffic_bytes!");
	expect("bytes", true, "bytes", "bytes_bytes!");
	expect("a-b", true, "bytes", "U__a_2d_b");
}

static void test_meeting(void **state)
{
	static const char *const names[] = { "x", "x_total", "y", "y_bytes", "z", "z_bytes_total" };
	const struct world world = { names, 6 };

	(void)state;
	assert_string_equal(name_of(&world, "x", true, ""), "x");
	assert_string_equal(name_of(&world, "x_total", true, ""), "U__x__total");
	assert_string_equal(name_of(&world, "x_total", false, ""), "U__x__total");
	assert_string_equal(name_of(&world, "y", true, "bytes"), "U__y");
	assert_string_equal(name_of(&world, "y_bytes", true, ""), "y_bytes");
	assert_string_equal(name_of(&world, "z", true, "bytes"), "U__z");
	assert_string_equal(name_of(&world, "z_bytes_total", true, ""), "z_bytes");
}

/* Every name that a family takes: its own, and those of its samples. */
static void test_unique(void **state)
{
	static const char *const parts[] = { "x", "_total", "_created", "_bytes", "-", "U__", "_" };
	static const char *const units[] = { "", "bytes" };
	enum {
		N = 12,
		ROUNDS = 20000
	};
	struct test_random random;

	(void)state;
	test_random_init(&random, 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		char names[N][PATH_MAX_SEGMENT], taken[3 * N][FAMILY_MAX_NAME + 16];
		const char *list[N];
		struct world world = { list, 0 };
		size_t n_taken = 0;

		while (world.n < N) {
			char *name = names[world.n];

			name[0] = '\0';
			for (uint64_t i = test_random_below(&random, 4) + 1; i > 0; i--) {
				const char *part = parts[test_random_below(&random, 7)];

				(void)snprintf(name + strlen(name), PATH_MAX_SEGMENT - strlen(name),
					       "%s", part);
			}
			if (!exists(&world, name, strlen(name))) {
				list[world.n++] = name;
			}
		}
		for (size_t i = 0; i < N; i++) {
			bool counter = test_random_below(&random, 2) == 1;
			static const char *const tails[] = { "", "_total", "_created" };
			char base[FAMILY_MAX_NAME + 2];

			(void)snprintf(base, sizeof(base), "%s",
				       name_of(&world, list[i], counter,
					       units[test_random_below(&random, 2)]));
			base[strcspn(base, "!")] = '\0';
			for (size_t t = 0; t < (counter ? 3 : 1); t++) {
				(void)snprintf(taken[n_taken], sizeof(taken[0]), "%s%s", base,
					       tails[t]);
				for (size_t k = 0; k < n_taken; k++) {
					if (strcmp(taken[k], taken[n_taken]) == 0) {
						fail_msg("two families take the name %s", taken[k]);
					}
				}
				n_taken++;
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_meeting),
		cmocka_unit_test(test_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
