#include "tests/support/test.h"

#include "lib/quota/node.h"
#include "lib/quota/rate.h"

#define S INT64_C(1000000000)
#define DAY (86400 * S)

static const struct window none = { .kind = WINDOW_NONE };
static const struct window minute = { .kind = WINDOW_PER, .duration_ns = 60 * S };
static const struct window month = { .kind = WINDOW_CALENDAR, .unit = WINDOW_MONTH };
static const struct window rate = { .kind = WINDOW_RATE };

/* 2024-02-29 23:59:30 UTC */
#define NOW (INT64_C(1709251170) * S)

static struct quota_time at(int64_t after_ns)
{
	return (struct quota_time){ .wall_ns = NOW + after_ns, .mono_ns = DAY + after_ns };
}

/* Limits by max; by max and high. */
#define L(max_, ...) (&(struct quota_limits){ .max = (max_), .high = QUOTA_NONE, __VA_ARGS__ })
#define H(max_, high_, ...) (&(struct quota_limits){ .max = (max_), .high = (high_), __VA_ARGS__ })

static void init(struct quota_node *node, const struct window *window, struct quota_node *parent,
		 const struct quota_limits *limits, int64_t usage)
{
	struct quota_time time = at(0);
	char text[QUOTA_LIMITS_TEXT];
	const char *wrong = quota_limits_check(window, limits, text);

	if (wrong != NULL) {
		fail_msg("%s", wrong);
	}
	quota_init(node, window, parent, limits, usage, &time);
}

static int charge(struct quota_node *node, int64_t n, int64_t after_ns)
{
	struct quota_time time = at(after_ns);

	return quota_try_charge(node, n, &time, NULL);
}

static struct quota_reading read_at(const struct quota_node *node, int64_t after_ns)
{
	struct quota_time time = at(after_ns);
	struct quota_reading reading;

	quota_read(node, &time, &reading);
	return reading;
}

static int64_t usage(const struct quota_node *node)
{
	return read_at(node, 0).usage;
}

static int64_t retry(const struct quota_node *node, int64_t n, int64_t after_ns)
{
	struct quota_time time = at(after_ns);

	return quota_retry_after_ms(node, n, &time);
}

static void set(struct quota_node *node, const struct quota_limits *limits)
{
	struct quota_time time = at(0);

	quota_set_limits(node, limits, &time);
}

static void test_exactly_reaching_max_is_granted(void **state)
{
	struct quota_node node;

	(void)state;
	init(&node, &none, NULL, L(100), 0);
	assert_int_equal(charge(&node, 99, 0), 0);
	assert_int_equal(charge(&node, 2, 0), QUOTA_E_REFUSED);
	assert_int_equal(charge(&node, 1, 0), 0);
	assert_int_equal(charge(&node, 1, 0), QUOTA_E_REFUSED);
	assert_int_equal(usage(&node), 100);
	assert_int_equal(read_at(&node, 0).refusals, 2);
	assert_int_equal(read_at(&node, 0).peak, 100);
	assert_int_equal(read_at(&node, 0).left, 0);
	set(&node, L(0));
	assert_int_equal(quota_uncharge(&node, 100), 0);
	assert_int_equal(charge(&node, 1, 0), QUOTA_E_REFUSED);
}

static void test_all_or_nothing_up_the_path(void **state)
{
	struct quota_node root, middle, leaf;
	struct quota_outcome outcome;
	struct quota_time time = at(0);

	(void)state;
	init(&root, &none, NULL, L(10), 0);
	init(&middle, &none, &root, L(20), 0);
	init(&leaf, &none, &middle, L(30), 0);
	assert_int_equal(quota_depth(&leaf), 3);
	assert_int_equal(quota_try_charge(&leaf, 8, &time, &outcome), 0);
	assert_null(outcome.refused);
	/* The leaf and the middle would, the root does not: nothing changes, and no peak tells of it. */
	assert_int_equal(quota_try_charge(&leaf, 12, &time, &outcome), QUOTA_E_REFUSED);
	assert_ptr_equal(outcome.refused, &root);
	assert_int_equal(outcome.usage, 8);
	assert_int_equal(outcome.max, 10);
	assert_int_equal(outcome.n, 12);
	assert_int_equal(usage(&leaf), 8);
	assert_int_equal(usage(&middle), 8);
	assert_int_equal(usage(&root), 8);
	assert_int_equal(read_at(&leaf, 0).peak, 8);
	assert_int_equal(read_at(&middle, 0).peak, 8);
	/* The first from the leaf is named. */
	assert_int_equal(quota_try_charge(&leaf, 13, &time, &outcome), QUOTA_E_REFUSED);
	assert_ptr_equal(outcome.refused, &middle);
	assert_int_equal(quota_try_charge(&leaf, 23, &time, &outcome), QUOTA_E_REFUSED);
	assert_ptr_equal(outcome.refused, &leaf);
	assert_int_equal(read_at(&root, 0).refusals, 1);
	assert_int_equal(read_at(&middle, 0).refusals, 1);
	assert_int_equal(read_at(&leaf, 0).refusals, 1);
}

static void test_uncharge(void **state)
{
	struct quota_node root, a, b;

	(void)state;
	init(&root, &none, NULL, L(10), 0);
	init(&a, &none, &root, L(10), 0);
	init(&b, &none, &root, L(10), 0);
	assert_int_equal(charge(&a, 4, 0), 0);
	assert_int_equal(charge(&b, 6, 0), 0);
	assert_int_equal(quota_uncharge(&a, 5), QUOTA_E_UNDERFLOW);
	assert_int_equal(usage(&a), 4);
	assert_int_equal(usage(&root), 10);
	assert_int_equal(quota_uncharge(&a, INT64_MAX), QUOTA_E_UNDERFLOW);
	assert_int_equal(quota_uncharge(&a, 4), 0);
	assert_int_equal(quota_uncharge(&a, 1), QUOTA_E_UNDERFLOW);
	assert_int_equal(usage(&a), 0);
	assert_int_equal(usage(&root), 6);
	assert_int_equal(read_at(&root, 0).peak, 10);
	/* The leaf has it, the root does not: nothing changes either. */
	struct quota_time time = at(0);
	quota_charge(&root, -6, &time);
	assert_int_equal(quota_uncharge(&b, 1), QUOTA_E_UNDERFLOW);
	assert_int_equal(usage(&b), 6);
	assert_int_equal(usage(&root), 0);
	/* What is used up in a window stays used. */
	init(&a, &minute, NULL, L(10), 0);
	assert_int_equal(charge(&a, 4, 0), 0);
	assert_int_equal(quota_uncharge(&a, 4), 0);
	assert_int_equal(usage(&a), 4);
}

static void test_forced(void **state)
{
	struct quota_node root, leaf;
	struct quota_time time = at(0);

	(void)state;
	init(&root, &none, NULL, L(10), 0);
	init(&leaf, &none, &root, L(100), 0);
	quota_charge(&leaf, 8, &time);
	assert_int_equal(read_at(&root, 0).forced, 0);
	quota_charge(&leaf, 5, &time);
	assert_int_equal(usage(&root), 13);
	assert_int_equal(read_at(&root, 0).forced, 3);
	assert_int_equal(read_at(&root, 0).left, 0);
	quota_charge(&leaf, 5, &time);
	assert_int_equal(read_at(&root, 0).forced, 8);
	assert_int_equal(read_at(&root, 0).peak, 18);
	assert_int_equal(read_at(&leaf, 0).forced, 0);
	assert_int_equal(charge(&leaf, 1, 0), QUOTA_E_REFUSED);
	/* Over its max by adds alone, it shows it and refuses until it is below again. */
	quota_charge(&leaf, -9, &time);
	assert_int_equal(usage(&root), 9);
	assert_int_equal(charge(&leaf, 1, 0), 0);
	assert_int_equal(charge(&leaf, 1, 0), QUOTA_E_REFUSED);
	/* A gauge may be below 0; there is all the more room. */
	quota_charge(&leaf, -15, &time);
	assert_int_equal(usage(&root), -5);
	assert_int_equal(read_at(&root, 0).left, 15);
	assert_int_equal(charge(&leaf, 15, 0), 0);
	assert_int_equal(charge(&leaf, 1, 0), QUOTA_E_REFUSED);
}

static void test_saturation(void **state)
{
	struct quota_node node;
	struct quota_time time = at(0);

	(void)state;
	init(&node, &none, NULL, H(QUOTA_NONE, 5), 0);
	quota_charge(&node, INT64_MAX - 1, &time);
	assert_int_equal(charge(&node, 1, 0), 0);
	assert_int_equal(charge(&node, 1, 0), QUOTA_E_REFUSED);
	quota_charge(&node, 10, &time);
	assert_int_equal(usage(&node), INT64_MAX);
	assert_int_equal(read_at(&node, 0).lost, 10);
	quota_charge(&node, INT64_MIN, &time);
	assert_int_equal(usage(&node), -1);
	quota_charge(&node, INT64_MIN, &time);
	assert_int_equal(usage(&node), INT64_MIN);
	assert_int_equal(read_at(&node, 0).lost, 11);
	assert_int_equal(read_at(&node, 0).left, QUOTA_NONE);
	set(&node, L(5));
	assert_int_equal(read_at(&node, 0).left, INT64_MAX);
	quota_charge(&node, INT64_MAX, &time);
	assert_int_equal(usage(&node), -1);

	/* A windowed count: 38 bits for a minute. It says so, and the next window is right again. */
	init(&node, &minute, NULL, L(100), 0);
	quota_charge(&node, INT64_C(1) << 38, &time);
	assert_int_equal(usage(&node), (INT64_C(1) << 38) - 1);
	assert_int_equal(read_at(&node, 0).lost, 1);
	quota_charge(&node, INT64_MAX, &time);
	assert_int_equal(usage(&node), (INT64_C(1) << 38) - 1);
	assert_int_equal(read_at(&node, 0).lost, INT64_MAX);
	assert_int_equal(charge(&node, 100, 30 * S), 0);
	assert_int_equal(read_at(&node, 30 * S).usage, 100);
}

static void test_shadow(void **state)
{
	struct quota_node root, leaf;
	struct quota_outcome outcome;
	struct quota_time time = at(0);

	(void)state;
	init(&root, &none, NULL, L(100), 0);
	init(&leaf, &none, &root, L(10, .shadow = true), 0);
	assert_int_equal(quota_try_charge(&leaf, 10, &time, &outcome), 0);
	assert_false(outcome.shadow);
	assert_int_equal(quota_try_charge(&leaf, 1, &time, &outcome), 0);
	assert_true(outcome.shadow);
	assert_int_equal(usage(&leaf), 11);
	assert_int_equal(usage(&root), 11);
	assert_int_equal(read_at(&leaf, 0).refusals, 1);
	assert_int_equal(read_at(&leaf, 0).forced, 0);
	assert_int_equal(quota_try_charge(&leaf, 90, &time, &outcome), QUOTA_E_REFUSED);
	assert_true(outcome.shadow);
	assert_ptr_equal(outcome.refused, &root);
	assert_int_equal(usage(&leaf), 11);

	struct quota_judgement judgement;
	quota_judge(&leaf, 1, &time, &judgement);
	assert_true(judgement.refuses && judgement.shadow);
	set(&leaf, L(10));
	assert_int_equal(charge(&leaf, 1, 0), QUOTA_E_REFUSED);
	/* Windows and rates the same. */
	init(&leaf, &minute, NULL, L(10, .shadow = true), 10);
	assert_int_equal(quota_try_charge(&leaf, 5, &time, &outcome), 0);
	assert_true(outcome.shadow);
	assert_int_equal(usage(&leaf), 15);
	init(&leaf, &rate, NULL, L(QUOTA_NONE, .rate = 1, .per_ns = S, .burst = 3, .shadow = true),
	     3);
	assert_int_equal(quota_try_charge(&leaf, 5, &time, &outcome), 0);
	assert_true(outcome.shadow);
	assert_int_equal(usage(&leaf), 8);
	assert_int_equal(read_at(&leaf, 6 * S).usage, 2);
}

static void test_high(void **state)
{
	struct quota_node root, leaf;
	struct quota_outcome outcome;
	struct quota_judgement judgement;
	struct quota_time time = at(0);

	(void)state;
	init(&root, &none, NULL, H(QUOTA_NONE, 10), 0);
	init(&leaf, &none, &root, L(100), 0);
	assert_int_equal(quota_try_charge(&leaf, 10, &time, &outcome), 0);
	assert_false(outcome.over_high);
	assert_int_equal(quota_try_charge(&leaf, 1, &time, &outcome), 0);
	assert_true(outcome.over_high);
	quota_judge(&root, 0, &time, &judgement);
	assert_true(judgement.over_high);
	assert_false(judgement.refuses);
	assert_int_equal(judgement.left, QUOTA_NONE);
	quota_judge(&leaf, 0, &time, &judgement);
	assert_false(judgement.over_high);
	assert_int_equal(judgement.left, 89);
}

static void test_max_below_usage_freezes(void **state)
{
	struct quota_node node;

	(void)state;
	init(&node, &none, NULL, L(100), 80);
	set(&node, L(50));
	assert_int_equal(read_at(&node, 0).usage, 80);
	assert_int_equal(read_at(&node, 0).left, 0);
	assert_int_equal(charge(&node, 1, 0), QUOTA_E_REFUSED);
	assert_int_equal(retry(&node, 1, 0), 0);
	assert_int_equal(retry(&node, 51, 0), -1);
	assert_int_equal(quota_uncharge(&node, 30), 0);
	assert_int_equal(charge(&node, 1, 0), QUOTA_E_REFUSED);
	assert_int_equal(quota_uncharge(&node, 1), 0);
	assert_int_equal(charge(&node, 1, 0), 0);
	set(&node, L(QUOTA_NONE));
	assert_int_equal(charge(&node, QUOTA_MAX_LIMIT, 0), 0);
}

/* A burst on each side of a boundary: each side has its own max, no more. */
static void test_window_boundary(void **state)
{
	struct quota_node node;

	(void)state;
	init(&node, &month, NULL, L(10), 0);
	for (int64_t i = 0; i < 10; i++) {
		assert_int_equal(charge(&node, 1, 30 * S - 10 + i), 0);
		assert_int_equal(charge(&node, 10, 30 * S - 10 + i), QUOTA_E_REFUSED);
	}
	assert_int_equal(charge(&node, 1, 30 * S - 1), QUOTA_E_REFUSED);
	assert_int_equal(retry(&node, 1, 30 * S - 1), 1);
	assert_int_equal(retry(&node, 1, 0), 30000);
	assert_int_equal(read_at(&node, 30 * S).usage, 0);
	for (int64_t i = 0; i < 10; i++) {
		assert_int_equal(charge(&node, 1, 30 * S + i), 0);
	}
	assert_int_equal(charge(&node, 1, 30 * S + 10), QUOTA_E_REFUSED);
	/* March has 31 days. */
	assert_int_equal(retry(&node, 1, 30 * S), INT64_C(31) * 86400 * 1000);
	assert_int_equal(read_at(&node, 30 * S).window_start_ns, NOW + 30 * S);
	assert_int_equal(read_at(&node, 30 * S).window_end_ns, NOW + 30 * S + 31 * DAY);
}

/* A reading from before the roll-over counts in the window it finds, however old; it does not bring the old one back. */
static void test_late_arrival(void **state)
{
	struct quota_node node;

	(void)state;
	init(&node, &minute, NULL, L(10), 0);
	assert_int_equal(charge(&node, 9, 3600 * S), 0);
	assert_int_equal(charge(&node, 1, 0), 0);
	assert_int_equal(charge(&node, 1, 0), QUOTA_E_REFUSED);
	assert_int_equal(charge(&node, 1, 3600 * S), QUOTA_E_REFUSED);
	assert_int_equal(read_at(&node, 0).usage, 10);
	assert_int_equal(read_at(&node, 0).window_start_ns,
			 read_at(&node, 3600 * S).window_start_ns);
	/* The window still goes on with the clock. */
	assert_int_equal(charge(&node, 10, 3661 * S), 0);
}

/* The wall clock is set: nobody whose window is empty is refused, nothing is negative. */
static void test_wall_clock_steps(void **state)
{
	const int64_t steps[] = { -DAY, DAY, -DAY, -2, -400 * DAY, 400 * DAY, 61 * S, -61 * S };
	struct quota_time time = at(0);
	struct quota_node node;
	struct quota_outcome outcome;

	(void)state;
	init(&node, &minute, NULL, L(10), 0);
	assert_int_equal(quota_try_charge(&node, 10, &time, NULL), 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		time.wall_ns += steps[i];
		time.mono_ns += 1;
		struct quota_reading reading;

		quota_read(&node, &time, &reading);
		if (steps[i] == -2) {
			/* Not a window's worth: the same window. */
			assert_int_equal(reading.usage, 10);
			continue;
		}
		assert_int_equal(reading.usage, 0);
		assert_int_equal(quota_try_charge(&node, 10, &time, &outcome), 0);
		assert_int_equal(quota_try_charge(&node, 1, &time, &outcome), QUOTA_E_REFUSED);
		assert_int_equal(outcome.usage, 10);
	}
}

/* Set back by less than the slack into the window before: that one is not begun anew. */
static void test_slack(void **state)
{
	struct quota_time time = at(30 * S);
	struct quota_node node;

	(void)state;
	init(&node, &minute, NULL, L(10), 0);
	assert_int_equal(quota_try_charge(&node, 7, &time, NULL), 0);
	time.mono_ns += 5;
	time.wall_ns -= QUOTA_SLACK_NS;
	assert_int_equal(quota_try_charge(&node, 3, &time, NULL), 0);
	assert_int_equal(quota_try_charge(&node, 1, &time, NULL), QUOTA_E_REFUSED);
	assert_int_equal(quota_retry_after_ms(&node, 1, &time), 61000);
	time.wall_ns -= 1;
	assert_int_equal(quota_try_charge(&node, 10, &time, NULL), 0);
}

static void test_rate(void **state)
{
	struct quota_node root, leaf;
	struct quota_outcome outcome;
	struct quota_time time = at(0);

	(void)state;
	init(&root, &rate, NULL, L(QUOTA_NONE, .rate = 10, .per_ns = S, .burst = 5), 0);
	init(&leaf, &rate, &root, L(QUOTA_NONE, .rate = 100, .per_ns = S, .burst = 50), 0);
	assert_int_equal(charge(&leaf, 5, 0), 0);
	assert_int_equal(quota_try_charge(&leaf, 1, &time, &outcome), QUOTA_E_REFUSED);
	assert_ptr_equal(outcome.refused, &root);
	assert_int_equal(outcome.max, 5);
	assert_int_equal(outcome.usage, 5);
	assert_int_equal(usage(&leaf), 5);
	assert_int_equal(retry(&root, 1, 0), 100);
	assert_int_equal(retry(&root, 5, 0), 500);
	assert_int_equal(retry(&root, 6, 0), -1);
	assert_int_equal(charge(&leaf, 1, 100000000 - 1), QUOTA_E_REFUSED);
	assert_int_equal(charge(&leaf, 1, 100000000), 0);
	/* Another rate: what is used stays used. */
	time = at(100000000);
	quota_set_limits(&root, L(QUOTA_NONE, .rate = 1, .per_ns = S, .burst = 20), &time);
	assert_int_equal(read_at(&root, 100000000).usage, 5);
	assert_int_equal(read_at(&root, 100000000).left, 15);
	assert_int_equal(read_at(&root, 100000000).limits.burst, 20);
	assert_int_equal(retry(&root, 20, 100000000), 5000);
	/* Forced: a debt, which delays. */
	quota_charge(&root, 25, &time);
	assert_int_equal(read_at(&root, 100000000).usage, 30);
	assert_int_equal(read_at(&root, 100000000).left, 0);
	assert_int_equal(read_at(&root, 100000000).forced, 10);
	assert_int_equal(read_at(&root, 100000000).peak, 30);
	assert_int_equal(retry(&root, 1, 100000000), 11000);
	quota_charge(&root, -100, &time);
	assert_int_equal(read_at(&root, 100000000).usage, 30);
}

static void test_starts_from(void **state)
{
	struct quota_node node;

	(void)state;
	init(&node, &none, NULL, L(10), 25);
	assert_int_equal(usage(&node), 25);
	assert_int_equal(read_at(&node, 0).peak, 25);
	init(&node, &none, NULL, L(10), -25);
	assert_int_equal(usage(&node), -25);
	assert_int_equal(read_at(&node, 0).peak, 0);
	init(&node, &minute, NULL, L(10), 4);
	assert_int_equal(usage(&node), 4);
	assert_int_equal(read_at(&node, 30 * S).usage, 0);
	init(&node, &rate, NULL, L(QUOTA_NONE, .rate = 1, .per_ns = S, .burst = 5), 4);
	assert_int_equal(usage(&node), 4);
	assert_int_equal(read_at(&node, S).usage, 3);
	assert_true(node.owner == NULL);
}

static void test_claims_move_with_the_parent(void **state)
{
	struct quota_node root, middle, leaf;
	struct quota_time time = at(0);
	int64_t min, low;

	(void)state;
	init(&root, &none, NULL, L(QUOTA_NONE, .min = 50, .low = 50), 150);
	init(&leaf, &none, &root, L(QUOTA_NONE, .min = 30, .low = 10), 20);
	assert_int_equal(read_at(&root, 0).children_min, 20);
	assert_int_equal(read_at(&root, 0).children_low, 10);
	/* A limit is set between the two. */
	init(&middle, &none, &root, L(QUOTA_NONE, .min = 5), 20);
	quota_reparent(&leaf, &middle);
	assert_int_equal(read_at(&root, 0).children_min, 5);
	assert_int_equal(read_at(&root, 0).children_low, 0);
	assert_int_equal(read_at(&middle, 0).children_min, 20);
	assert_int_equal(read_at(&middle, 0).children_low, 10);
	quota_charge(&leaf, 15, &time);
	assert_int_equal(read_at(&middle, 0).children_min, 30);
	quota_effective(&leaf, false, &min, &low);
	assert_int_equal(min, 5); /* 30 claimed, 5 there */
	assert_int_equal(low, 0);
	/* Taken away again. */
	quota_reparent(&leaf, &root);
	quota_detach(&middle);
	assert_int_equal(read_at(&root, 0).children_min, 30);
	assert_int_equal(read_at(&root, 0).children_low, 10);
	quota_effective(&leaf, false, &min, &low);
	assert_int_equal(min, 30);
	assert_int_equal(low, 10);
	set(&leaf, L(QUOTA_NONE));
	assert_int_equal(read_at(&root, 0).children_min, 0);
	assert_int_equal(read_at(&root, 0).children_low, 0);
	quota_detach(&leaf);
	quota_effective(&leaf, false, &min, &low);
	assert_int_equal(min, 0);
}

/* The scenario of test-protect.c, on nodes; and what is refused leaves no claim behind. */
static void test_effective(void **state)
{
	static const int64_t low_set[] = { 75, 25, 0, 500 }, used[] = { 50, 50, 50, 0 };
	static const int64_t expected[] = { 33, 16, 0, 0 };
	struct quota_node top, parent, child[4];
	int64_t min, low;

	(void)state;
	init(&top, &none, NULL, L(150, .low = 50), 0);
	init(&parent, &none, &top, L(QUOTA_NONE, .low = 50), 0);
	for (size_t i = 0; i < 4; i++) {
		init(&child[i], &none, &parent, L(QUOTA_NONE, .low = low_set[i]), 0);
		if (used[i] > 0) {
			assert_int_equal(charge(&child[i], used[i], 0), 0);
		}
	}
	assert_int_equal(charge(&child[0], 10, 0), QUOTA_E_REFUSED);
	assert_int_equal(charge(&child[3], 10, 0), QUOTA_E_REFUSED);
	assert_int_equal(read_at(&parent, 0).children_low, 75);
	for (size_t i = 0; i < 4; i++) {
		for (int recursive = 0; recursive < 2; recursive++) {
			quota_effective(&child[i], recursive != 0, &min, &low);
			assert_int_equal(low, expected[i]);
			assert_int_equal(min, 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exactly_reaching_max_is_granted),
		cmocka_unit_test(test_all_or_nothing_up_the_path),
		cmocka_unit_test(test_uncharge),
		cmocka_unit_test(test_forced),
		cmocka_unit_test(test_saturation),
		cmocka_unit_test(test_shadow),
		cmocka_unit_test(test_high),
		cmocka_unit_test(test_max_below_usage_freezes),
		cmocka_unit_test(test_window_boundary),
		cmocka_unit_test(test_late_arrival),
		cmocka_unit_test(test_wall_clock_steps),
		cmocka_unit_test(test_slack),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_starts_from),
		cmocka_unit_test(test_claims_move_with_the_parent),
		cmocka_unit_test(test_effective),
	};

	return cmocka_run_group_tests_name("quota/node", tests, NULL, NULL);
}
