/* Usage by the wall clock: of windows and rates, as it grows, as the node has it, and back into a node. */
#include "tests/support/test.h"

#include "lib/quota/kept.h"

#include <string.h>

#define SECOND INT64_C(1000000000)
#define PER ((struct window){ .kind = WINDOW_PER, .duration_ns = 10 * SECOND })
#define RATE ((struct window){ .kind = WINDOW_RATE })

static struct quota_time at(int64_t wall_ns, int64_t mono_ns)
{
	return (struct quota_time){ .wall_ns = wall_ns, .mono_ns = mono_ns };
}

static void init(struct quota_node *node, struct window window)
{
	struct quota_limits limits = QUOTA_LIMITS_INIT;
	struct quota_time time = at(0, 0);

	if (window.kind == WINDOW_RATE) {
		limits.rate = 10;
		limits.per_ns = SECOND;
		limits.burst = 100;
	} else {
		limits.max = 1000;
	}
	quota_init(node, &window, NULL, &limits, 0, &time);
}

static int64_t usage(const struct quota_node *node, int64_t wall_ns, int64_t mono_ns)
{
	struct quota_time time = at(wall_ns, mono_ns);
	struct quota_reading reading;

	quota_read(node, &time, &reading);
	return reading.usage;
}

static void test_window(void **state)
{
	struct quota_node node;
	struct kept kept;

	(void)state;
	init(&node, PER);
	kept_init(&node, &kept, 25 * SECOND);
	assert_int_equal(kept.at, 2);
	assert_int_equal(kept_count(&node, &kept), 0);
	kept_add(&node, &kept, 3, 26 * SECOND);
	kept_add(&node, &kept, 4, 29 * SECOND);
	assert_int_equal(kept_count(&node, &kept), 7);
	kept_add(&node, &kept, 5, 30 * SECOND);
	assert_int_equal(kept.at, 3);
	assert_int_equal(kept_count(&node, &kept), 5);
	/* Late by no more than the slack. */
	kept_add(&node, &kept, 1, 30 * SECOND - QUOTA_SLACK_NS);
	assert_int_equal(kept.at, 3);
	assert_int_equal(kept_count(&node, &kept), 6);
	/* Set back. */
	kept_add(&node, &kept, 2, 30 * SECOND - QUOTA_SLACK_NS - 1);
	assert_int_equal(kept.at, 2);
	assert_int_equal(kept_count(&node, &kept), 2);
	/* No more than can be told. */
	kept_add(&node, &kept, INT64_MAX, 25 * SECOND);
	kept_add(&node, &kept, INT64_MAX, 25 * SECOND);
	assert_int_equal(kept_count(&node, &kept), window_count_max(&PER) + 1);
}

static void test_rate(void **state)
{
	const int64_t long_ago = INT64_MIN / 4, now = INT64_MAX / 2;
	struct quota_node node;
	struct kept kept;

	(void)state;
	init(&node, RATE);
	kept_init(&node, &kept, 100 * SECOND);
	kept_add(&node, &kept, 20, 100 * SECOND);
	assert_int_equal(kept_count(&node, &kept), 20);
	kept_add(&node, &kept, 1, 101 * SECOND);
	assert_int_equal(kept_count(&node, &kept), 11);
	/* Late: nothing has drained since, and it does not drain twice. */
	kept_add(&node, &kept, 1, 101 * SECOND - QUOTA_SLACK_NS);
	assert_int_equal(kept_count(&node, &kept), 12);
	assert_int_equal(kept.at, 101 * SECOND);
	/* Set back: as full as it was. */
	kept_add(&node, &kept, 1, 50 * SECOND);
	assert_int_equal(kept_count(&node, &kept), 13);
	kept_add(&node, &kept, 1, 51 * SECOND);
	assert_int_equal(kept_count(&node, &kept), 4);
	kept_add(&node, &kept, 1, 60 * SECOND);
	assert_int_equal(kept_count(&node, &kept), 1);
	/* However long nothing comes. */
	kept_init(&node, &kept, long_ago);
	kept_add(&node, &kept, 50, long_ago);
	for (int64_t later = SECOND * 86400; later < INT64_MAX / 4; later *= 2) {
		struct kept copy = kept;

		kept_add(&node, &copy, 1, long_ago + later);
		assert_int_equal(kept_count(&node, &copy), 1);
	}
	kept_add(&node, &kept, 1, now);
	assert_int_equal(kept_count(&node, &kept), 1);
	/* Rounded up. */
	kept_add(&node, &kept, 1, now + 1);
	assert_int_equal(kept_count(&node, &kept), 2);
}

/* Growth that is told a little later is told in full: never less than the node has. */
static void test_never_less(void **state)
{
	const struct window windows[] = { PER, RATE };
	struct test_random random;

	(void)state;
	test_random_init(&random, 1);
	for (int round = 0; round < 200; round++) {
		struct quota_node node;
		struct kept kept;
		int64_t now = 1000 * SECOND;

		init(&node, windows[round % 2]);
		kept_init(&node, &kept, now);
		for (int step = 0; step < 100; step++) {
			int64_t n = (int64_t)test_random_below(&random, 30) + 1;
			struct quota_time time;

			now += (int64_t)test_random_below(&random, (uint64_t)(2 * SECOND));
			time = at(now, now - 7 * SECOND);
			quota_charge(&node, n, &time);
			now += (int64_t)test_random_below(&random, (uint64_t)(SECOND / 2));
			kept_add(&node, &kept, n, now);
			if (kept.at == window_number(&PER, now) || round % 2) {
				assert_true(kept_count(&node, &kept) >=
					    usage(&node, now, now - 7 * SECOND));
			}
		}
	}
}

/* Settled, kept, restored into another node under other clocks: the same usage. */
static void test_round_trip(void **state)
{
	const struct window windows[] = { PER, RATE };
	struct test_random random;

	(void)state;
	test_random_init(&random, 2);
	for (int round = 0; round < 500; round++) {
		int64_t wall = (int64_t)test_random_below(&random, 1000000) * SECOND / 7;
		int64_t mono = (int64_t)test_random_below(&random, 1000000) * SECOND / 3;
		int64_t n = (int64_t)test_random_below(&random, 200) + 1;
		int64_t gap = (int64_t)test_random_below(&random, (uint64_t)(12 * SECOND));
		struct quota_time time = at(wall, mono), later = at(wall + gap, 5);
		struct quota_node node, twin;
		struct kept kept, copy;

		init(&node, windows[round % 2]);
		init(&twin, windows[round % 2]);
		quota_charge(&node, n, &time);
		kept_init(&node, &kept, 0);
		assert_true(kept_settle(&node, &kept, &time));
		assert_false(kept_settle(&node, &kept, &time));
		assert_int_equal(kept_count(&node, &kept), n);
		kept_set(&twin, &copy, kept.at, kept_count(&node, &kept));
		kept_restore(&twin, &copy, &later);
		assert_int_equal(usage(&twin, wall + gap, 5), usage(&node, wall + gap, mono + gap));
		/* And it goes on. */
		quota_charge(&twin, 3, &later);
		later = at(wall + gap, mono + gap);
		quota_charge(&node, 3, &later);
		assert_int_equal(usage(&twin, wall + gap + SECOND, 5 + SECOND),
				 usage(&node, wall + gap + SECOND, mono + gap + SECOND));
	}
}

static void test_restore(void **state)
{
	struct quota_time time = at(101 * SECOND, 1000 * SECOND);
	struct quota_reading reading;
	struct quota_node node;
	struct kept kept;

	(void)state;
	init(&node, PER);
	kept_set(&node, &kept, 10, 400);
	kept_restore(&node, &kept, &time);
	assert_int_equal(usage(&node, 101 * SECOND, 1000 * SECOND), 400);
	quota_read(&node, &time, &reading);
	assert_int_equal(reading.peak, 400);
	assert_int_equal(quota_try_charge(&node, 601, &time, NULL), QUOTA_E_REFUSED);
	assert_int_equal(quota_try_charge(&node, 600, &time, NULL), 0);
	assert_int_equal(usage(&node, 110 * SECOND, 1009 * SECOND), 0);
	/* Over. */
	init(&node, PER);
	kept_set(&node, &kept, 9, 400);
	kept_restore(&node, &kept, &time);
	assert_int_equal(usage(&node, 101 * SECOND, 1000 * SECOND), 0);
	/* The clock was set back while nobody looked: that window is not this one. */
	init(&node, PER);
	kept_set(&node, &kept, 12, 400);
	kept_restore(&node, &kept, &time);
	assert_int_equal(usage(&node, 101 * SECOND, 1000 * SECOND), 0);
	/* Nonsense is kept within bounds. */
	kept_set(&node, &kept, 10, INT64_MAX);
	kept_restore(&node, &kept, &time);
	assert_int_equal(usage(&node, 101 * SECOND, 1000 * SECOND), window_count_max(&PER) + 1);
	kept_set(&node, &kept, 10, -1);
	assert_int_equal(kept_count(&node, &kept), 0);
	/* A bucket drains by the wall clock meanwhile; if that was set back, not at all. */
	init(&node, RATE);
	kept_set(&node, &kept, 100 * SECOND, 60);
	kept_restore(&node, &kept, &time);
	assert_int_equal(usage(&node, 101 * SECOND, 1000 * SECOND), 50);
	kept_set(&node, &kept, 500 * SECOND, 60);
	kept_restore(&node, &kept, &time);
	assert_int_equal(usage(&node, 101 * SECOND, 1000 * SECOND), 60);
	kept_set(&node, &kept, 0, 60);
	kept_restore(&node, &kept, &time);
	assert_int_equal(usage(&node, 101 * SECOND, 1000 * SECOND), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_window),	   cmocka_unit_test(test_rate),
		cmocka_unit_test(test_never_less), cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_restore),
	};

	return cmocka_run_group_tests_name("quota/kept", tests, NULL, NULL);
}
