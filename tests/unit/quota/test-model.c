/*
 * lib/quota beside the model: the same random operations on both, every answer and every figure compared. Trees of several planes,
 * of every kind of window, with time that goes on, stands still, arrives late and is set back and forward.
 *
 * Rates here are ones that a bucket keeps exactly, and their amounts stay clear of RATE_MAX_DEBT: the model has neither edge.
 */
#include "tests/support/test.h"

#include "lib/quota/charge.h"
#include "lib/quota/rate.h"
#include "tests/unit/quota/model.h"

#include <string.h>

#define N_PLACES 13u /* 1 + 3 + 9: three levels */
#define MAX_ITEMS 6u
#define S INT64_C(1000000000)
#define DAY (86400 * S)

#ifdef __SANITIZE_THREAD__
#define N_OPERATIONS 60000u
#elif defined(__SANITIZE_ADDRESS__)
#define N_OPERATIONS 100000u
#else
#define N_OPERATIONS 300000u
#endif

struct world {
	struct quota_node nodes[N_PLACES];
	struct model_node model[N_PLACES];
	struct window window;
	struct quota_time time, late; /* late: a reading from some time ago */
	struct test_random random;
	bool big; /* amounts up to the ends of what there is */
};

static int64_t below(struct world *world, int64_t bound)
{
	return (int64_t)test_random_below(&world->random, (uint64_t)bound);
}

static bool one_in(struct world *world, int64_t n)
{
	return below(world, n) == 0;
}

static int64_t any_amount(struct world *world)
{
	if (world->big && one_in(world, 3)) {
		return 1 + below(world, INT64_C(1) << below(world, 63));
	}
	return 1 + below(world, one_in(world, 4) ? 60 : 6);
}

static int64_t any_limit(struct world *world, bool may_be_none)
{
	int64_t most = window_count_max(&world->window);
	int64_t limit;

	if (may_be_none && one_in(world, 4)) {
		return QUOTA_NONE;
	}
	if (world->big && one_in(world, 3)) {
		limit = below(world, INT64_C(1) << 62);
		return limit < most ? limit : most;
	}
	return below(world, 120);
}

static struct quota_limits any_limits(struct world *world)
{
	static const int64_t rates[][2] = { { 1, S },	    { 10, S },	      { 7, 60 * S },
					    { 256, S },	    { 100000, S },    { 1000, 7 * DAY },
					    { 1000, 1000 }, { 1000000000, S } };
	struct quota_limits limits = QUOTA_LIMITS_INIT;
	char text[QUOTA_LIMITS_TEXT];

	limits.shadow = one_in(world, 8);
	if (world->window.kind == WINDOW_RATE) {
		const int64_t *rate = rates[below(world, 8)];

		limits.rate = rate[0];
		limits.per_ns = rate[1];
		limits.burst = 1 + below(world, 50);
	} else {
		limits.max = any_limit(world, true);
		limits.high = any_limit(world, true);
		if (world->window.kind == WINDOW_NONE && one_in(world, 2)) {
			limits.min = any_limit(world, false);
			limits.min = limits.min < limits.max ? limits.min : limits.max;
			limits.low = any_limit(world, false);
		}
	}
	if (quota_limits_check(&world->window, &limits, text) != NULL) {
		fail_msg("%s", text);
	}
	return limits;
}

static void pass_time(struct world *world)
{
	int64_t long_step = world->window.kind == WINDOW_CALENDAR ? 40 * DAY : DAY;
	int64_t step;

	if (one_in(world, 64)) {
		world->late = world->time;
	}
	if (!one_in(world, 4)) {
		return;
	}
	step = below(world, one_in(world, 50) ? long_step : (one_in(world, 3) ? 2 * S : S / 50));
	world->time.mono_ns += step;
	world->time.wall_ns += step;
	if (one_in(world, 500)) {
		/* Set, by up to a day either way. */
		world->time.wall_ns += below(world, 2 * DAY) - DAY;
		world->time.mono_ns += 1;
	}
}

static size_t place_of(const struct world *world, const struct quota_node *node)
{
	return (size_t)(node - world->nodes);
}

static void compare_figures(struct world *world, const struct quota_time *time)
{
	for (size_t i = 0; i < N_PLACES; i++) {
		const struct model_node *model = &world->model[i];
		struct quota_reading reading;
		int64_t usage = model_usage(model, time);
		int64_t min, low;

		quota_read(&world->nodes[i], time, &reading);
		assert_int_equal(reading.usage, usage);
		assert_int_equal(reading.peak, model->peak);
		assert_int_equal(reading.refusals, model->refusals);
		assert_int_equal(reading.forced, model->forced);
		assert_int_equal(reading.lost, model->lost);
		assert_true(quota_limits_equal(&reading.limits, &model->limits));
		if (world->window.kind == WINDOW_NONE && !world->big) {
			assert_int_equal(reading.children_min,
					 model_children(model, world->model, N_PLACES, false));
			assert_int_equal(reading.children_low,
					 model_children(model, world->model, N_PLACES, true));
			for (int recursive = 0; recursive < 2; recursive++) {
				quota_effective(&world->nodes[i], recursive != 0, &min, &low);
				assert_int_equal(min, model_effective(model, world->model, N_PLACES,
								      false, recursive != 0));
				assert_int_equal(low, model_effective(model, world->model, N_PLACES,
								      true, recursive != 0));
			}
		}
	}
}

/* Asks each node first what it would say: that must be what the charge then hears. */
static bool foretold(struct world *world, const struct quota_item *items, size_t count,
		     const struct quota_time *time)
{
	struct quota_need needs[MAX_ITEMS * QUOTA_MAX_LEVELS];
	size_t n = quota_gather(items, count, needs);
	bool granted = true;

	for (size_t i = 0; i < n; i++) {
		struct quota_judgement judgement;
		const struct model_node *model = &world->model[place_of(world, needs[i].node)];

		quota_judge(needs[i].node, needs[i].n, time, &judgement);
		granted &= !judgement.refuses || judgement.shadow;
		assert_int_equal(judgement.retry_after_ms,
				 judgement.refuses ? model_retry_after_ms(model, needs[i].n, time)
						   : 0);
		if (i > 0) {
			assert_true(needs[i].step > needs[i - 1].step);
		}
	}
	return granted;
}

static void charge(struct world *world, const struct quota_time *time)
{
	struct quota_item items[MAX_ITEMS];
	struct model_item model_items[MAX_ITEMS];
	size_t count = one_in(world, 3) ? 1 + (size_t)below(world, MAX_ITEMS) : 1;
	uint64_t trail[MAX_ITEMS * QUOTA_MAX_LEVELS];
	struct quota_outcome outcome;
	struct model_outcome expected;
	bool granted, told;

	for (size_t i = 0; i < count; i++) {
		size_t place = (size_t)below(world, N_PLACES);
		int64_t n = any_amount(world);

		items[i] = (struct quota_item){ .node = &world->nodes[place], .n = n };
		model_items[i] = (struct model_item){ .node = &world->model[place], .n = n };
	}
	told = foretold(world, items, count, time);
	granted = model_charge_all(model_items, count, time, &expected);
	if (count == 1 && one_in(world, 2)) {
		assert_int_equal(quota_try_charge(items[0].node, items[0].n, time, &outcome),
				 granted ? 0 : QUOTA_E_REFUSED);
	} else {
		assert_true(quota_trail_len(items, count) <= sizeof(trail) / sizeof(trail[0]));
		assert_int_equal(quota_try_charge_all(items, count, time, trail, &outcome),
				 granted ? 0 : QUOTA_E_REFUSED);
	}
	/* At the far end of int64 a shadow refuses after all, which a judgement does not foresee. */
	if (!world->big) {
		assert_int_equal(told, granted);
	}
	assert_int_equal(outcome.shadow, expected.shadow);
	assert_int_equal(outcome.over_high, expected.over_high);
	if (granted) {
		assert_null(outcome.refused);
		return;
	}
	assert_non_null(outcome.refused);
	assert_int_equal(place_of(world, outcome.refused), expected.refused - world->model);
	assert_int_equal(outcome.item, expected.item);
	assert_int_equal(outcome.n, items[expected.item].n);
	assert_int_equal(outcome.usage, expected.usage);
	assert_int_equal(outcome.max, expected.max);
}

static void operate(struct world *world)
{
	const struct quota_time *time = one_in(world, 20) ? &world->late : &world->time;
	size_t place = (size_t)below(world, N_PLACES);
	struct quota_limits limits;
	int64_t n = any_amount(world);

	pass_time(world);
	switch (below(world, 16)) {
	case 0:
		limits = any_limits(world);
		quota_set_limits(&world->nodes[place], &limits, &world->time);
		model_set_limits(&world->model[place], &limits, &world->time);
		break;
	case 1:
	case 2:
		n = one_in(world, 4) ? -n : n;
		quota_charge(&world->nodes[place], n, time);
		model_force(&world->model[place], n, time);
		break;
	case 3:
	case 4:
	case 5:
	case 6:
		assert_int_equal(quota_uncharge(&world->nodes[place], n),
				 model_uncharge(&world->model[place], n) ? 0 : QUOTA_E_UNDERFLOW);
		break;
	default:
		charge(world, time);
		break;
	}
	n = any_amount(world);
	assert_int_equal(quota_retry_after_ms(&world->nodes[place], n, time),
			 model_retry_after_ms(&world->model[place], n, time));
}

static void run(const struct window *window, bool big, uint64_t stream)
{
	static struct world world;

	memset(&world, 0, sizeof(world));
	world.window = *window;
	world.big = big;
	test_random_init(&world.random, stream);
	world.time = (struct quota_time){ .wall_ns = 1583020800 * S - 3 * S, .mono_ns = 7 * DAY };
	world.late = world.time;
	for (size_t i = 0; i < N_PLACES; i++) {
		size_t parent = (i - 1) / 3;
		struct quota_limits limits = any_limits(&world);
		int64_t usage = below(&world, 10);

		quota_init(&world.nodes[i], window, i == 0 ? NULL : &world.nodes[parent], &limits,
			   usage, &world.time);
		model_init(&world.model[i], window, i == 0 ? NULL : &world.model[parent], &limits,
			   usage, &world.time);
	}
	for (size_t i = 0; i < N_OPERATIONS; i++) {
		operate(&world);
		if (i % 16 == 0) {
			compare_figures(&world, &world.time);
			compare_figures(&world, &world.late);
		}
	}
}

static const struct window none = { .kind = WINDOW_NONE };
static const struct window second = { .kind = WINDOW_PER, .duration_ns = S };
static const struct window odd = { .kind = WINDOW_PER, .duration_ns = 90 * S + 1 };
static const struct window day = { .kind = WINDOW_CALENDAR, .unit = WINDOW_DAY };
static const struct window week = { .kind = WINDOW_CALENDAR, .unit = WINDOW_WEEK };
static const struct window month = { .kind = WINDOW_CALENDAR, .unit = WINDOW_MONTH };
static const struct window rate = { .kind = WINDOW_RATE };

static void test_no_window(void **state)
{
	(void)state;
	run(&none, false, 1);
}

static void test_no_window_big_amounts(void **state)
{
	(void)state;
	run(&none, true, 2);
}

static void test_window_of_a_second(void **state)
{
	(void)state;
	run(&second, false, 3);
	run(&second, true, 4);
}

static void test_window_of_odd_length(void **state)
{
	(void)state;
	run(&odd, false, 5);
}

static void test_calendar(void **state)
{
	(void)state;
	run(&day, false, 6);
	run(&week, true, 7);
	run(&month, false, 8);
}

static void test_rate(void **state)
{
	(void)state;
	run(&rate, false, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_window),
		cmocka_unit_test(test_no_window_big_amounts),
		cmocka_unit_test(test_window_of_a_second),
		cmocka_unit_test(test_window_of_odd_length),
		cmocka_unit_test(test_calendar),
		cmocka_unit_test(test_rate),
	};

	return cmocka_run_group_tests_name("quota/model", tests, NULL, NULL);
}
