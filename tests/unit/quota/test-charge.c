#include "tests/support/test.h"

#include "lib/quota/charge.h"

#include <string.h>

#define S INT64_C(1000000000)

static const struct window none = { .kind = WINDOW_NONE };
static const struct window minute = { .kind = WINDOW_PER, .duration_ns = 60 * S };
static const struct window rate = { .kind = WINDOW_RATE };
static const struct quota_time now = { .wall_ns = 6000 * S, .mono_ns = 100 * S };

/* Limits by max. */
#define L(max_, ...) (&(struct quota_limits){ .max = (max_), .high = QUOTA_NONE, __VA_ARGS__ })

/* Two paths under one root, in three planes. */
struct planes {
	struct quota_node root[3], a[3], b[3];
};

static void init(struct planes *planes)
{
	const struct window *windows[] = { &none, &minute, &rate };
	const struct quota_limits *wide[] = { L(100), L(100),
					      L(QUOTA_NONE, .rate = 1, .per_ns = S, .burst = 100) };
	const struct quota_limits *narrow[] = {
		L(50), L(60), L(QUOTA_NONE, .rate = 1, .per_ns = S, .burst = 70)
	};

	for (size_t i = 0; i < 3; i++) {
		quota_init(&planes->root[i], windows[i], NULL, wide[i], 0, &now);
		quota_init(&planes->a[i], windows[i], &planes->root[i], narrow[i], 0, &now);
		quota_init(&planes->b[i], windows[i], &planes->root[i], narrow[i], 0, &now);
	}
}

static int64_t usage(const struct quota_node *node)
{
	struct quota_reading reading;

	quota_read(node, &now, &reading);
	return reading.usage;
}

static void check_usage(const struct planes *planes, int64_t root, int64_t a, int64_t b)
{
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(usage(&planes->root[i]), root);
		assert_int_equal(usage(&planes->a[i]), a);
		assert_int_equal(usage(&planes->b[i]), b);
	}
}

/* Item by item, the planes of one path next to each other. */
static size_t fill(struct planes *planes, struct quota_item *items, int64_t a, int64_t b)
{
	for (size_t i = 0; i < 3; i++) {
		items[i] = (struct quota_item){ &planes->a[i], a };
		items[3 + i] = (struct quota_item){ &planes->b[i], b };
	}
	return 6;
}

static void test_all_or_nothing(void **state)
{
	struct planes planes;
	struct quota_item items[6];
	uint64_t trail[12];
	struct quota_outcome outcome;

	(void)state;
	init(&planes);
	assert_int_equal(fill(&planes, items, 40, 45), 6);
	assert_int_equal(quota_trail_len(items, 6), 12);
	assert_int_equal(quota_try_charge_all(items, 6, &now, trail, &outcome), 0);
	check_usage(&planes, 85, 40, 45);
	/* The last node of all is the one that refuses: everything goes back. */
	(void)fill(&planes, items, 6, 5);
	quota_set_limits(&planes.root[2], L(QUOTA_NONE, .rate = 1, .per_ns = S, .burst = 95), &now);
	assert_int_equal(quota_try_charge_all(items, 6, &now, trail, &outcome), QUOTA_E_REFUSED);
	assert_ptr_equal(outcome.refused, &planes.root[2]);
	assert_int_equal(outcome.item, 5);
	assert_int_equal(outcome.n, 5);
	assert_int_equal(outcome.usage, 91);
	assert_int_equal(outcome.max, 95);
	check_usage(&planes, 85, 40, 45);
	/* Exactly what fits. */
	(void)fill(&planes, items, 5, 5);
	assert_int_equal(quota_try_charge_all(items, 6, &now, trail, &outcome), 0);
	check_usage(&planes, 95, 45, 50);
	quota_return_all(items, 6, trail);
	check_usage(&planes, 85, 40, 45);
}

static void test_first_by_item_then_plane_then_leaf(void **state)
{
	struct planes planes;
	struct quota_item items[6];
	uint64_t trail[12];
	struct quota_outcome outcome;

	(void)state;
	init(&planes);
	/* 65: refused by a in two planes, the first of which is named. */
	(void)fill(&planes, items, 65, 10);
	assert_int_equal(quota_try_charge_all(items, 6, &now, trail, &outcome), QUOTA_E_REFUSED);
	assert_ptr_equal(outcome.refused, &planes.a[0]);
	assert_int_equal(outcome.item, 0);
	/* a has room; with b the root has not in any plane, b itself not in the first. */
	(void)fill(&planes, items, 50, 51);
	assert_int_equal(quota_try_charge_all(items, 6, &now, trail, &outcome), QUOTA_E_REFUSED);
	assert_ptr_equal(outcome.refused, &planes.b[0]);
	assert_int_equal(outcome.item, 3);
	quota_set_limits(&planes.b[0], L(80), &now);
	assert_int_equal(quota_try_charge_all(items, 6, &now, trail, &outcome), QUOTA_E_REFUSED);
	assert_ptr_equal(outcome.refused, &planes.root[0]);
	assert_int_equal(outcome.usage, 50);
	check_usage(&planes, 0, 0, 0);
}

static void test_the_same_node_twice(void **state)
{
	struct planes planes;
	struct quota_item items[3];
	uint64_t trail[6];
	struct quota_outcome outcome;

	(void)state;
	init(&planes);
	for (size_t i = 0; i < 3; i++) {
		items[i] = (struct quota_item){ &planes.a[0], 17 };
	}
	assert_int_equal(quota_try_charge_all(items, 3, &now, trail, &outcome), QUOTA_E_REFUSED);
	assert_int_equal(outcome.item, 2);
	assert_int_equal(outcome.usage, 34);
	assert_int_equal(usage(&planes.a[0]), 0);
	items[2].n = 16;
	assert_int_equal(quota_try_charge_all(items, 3, &now, trail, &outcome), 0);
	assert_int_equal(usage(&planes.a[0]), 50);
	assert_int_equal(usage(&planes.root[0]), 50);
}

static void test_gather(void **state)
{
	struct planes planes;
	struct quota_item items[4];
	struct quota_need needs[8];

	(void)state;
	init(&planes);
	items[0] = (struct quota_item){ &planes.b[0], 10 };
	items[1] = (struct quota_item){ &planes.a[1], 20 };
	items[2] = (struct quota_item){ &planes.a[0], 30 };
	items[3] = (struct quota_item){ &planes.b[0], 40 };
	assert_int_equal(quota_gather(items, 4, needs), 5);
	assert_ptr_equal(needs[0].node, &planes.b[0]);
	assert_int_equal(needs[0].n, 50);
	assert_int_equal(needs[0].item, 0);
	assert_ptr_equal(needs[1].node, &planes.root[0]);
	assert_int_equal(needs[1].n, 80);
	assert_ptr_equal(needs[2].node, &planes.a[1]);
	assert_ptr_equal(needs[3].node, &planes.root[1]);
	assert_int_equal(needs[3].n, 20);
	assert_ptr_equal(needs[4].node, &planes.a[0]);
	assert_int_equal(needs[4].item, 2);
	/* A sum beyond int64. */
	items[0].n = items[1].n = items[2].n = items[3].n = QUOTA_MAX_LIMIT;
	assert_int_equal(quota_gather(items, 4, needs), 5);
	assert_int_equal(needs[1].n, INT64_MAX);
	assert_int_equal(quota_gather(items, 0, needs), 0);
}

/* 10,000 items: one refused at the very end, and then granted. */
static void test_many_items(void **state)
{
	static struct quota_node root, nodes[100];
	static struct quota_item items[10000];
	static uint64_t trail[20000];
	static struct quota_need needs[20000];
	struct quota_outcome outcome;

	(void)state;
	quota_init(&root, &none, NULL, L(9999), 0, &now);
	for (size_t i = 0; i < 100; i++) {
		quota_init(&nodes[i], &none, &root, L(100), 0, &now);
	}
	for (size_t i = 0; i < 10000; i++) {
		items[i] = (struct quota_item){ &nodes[i % 100], 1 };
	}
	assert_int_equal(quota_try_charge_all(items, 10000, &now, trail, &outcome),
			 QUOTA_E_REFUSED);
	assert_int_equal(outcome.item, 9999);
	assert_ptr_equal(outcome.refused, &root);
	assert_int_equal(usage(&root), 0);
	assert_int_equal(quota_gather(items, 10000, needs), 101);
	assert_int_equal(needs[1].n, 10000);
	quota_set_limits(&root, L(10000), &now);
	assert_int_equal(quota_try_charge_all(items, 10000, &now, trail, &outcome), 0);
	assert_int_equal(usage(&root), 10000);
	for (size_t i = 0; i < 100; i++) {
		assert_int_equal(usage(&nodes[i]), 100);
	}
}

/* What was charged in a window that is over, or has drained from a bucket, is not taken from what others have charged since. */
static void test_return_too_late(void **state)
{
	struct planes planes;
	struct quota_item items[2] = { { &planes.a[1], 10 }, { &planes.a[2], 10 } };
	struct quota_time later = { .wall_ns = now.wall_ns + 60 * S,
				    .mono_ns = now.mono_ns + 60 * S };
	struct quota_reading reading;
	uint64_t trail[4], trail2[4];

	(void)state;
	init(&planes);
	assert_int_equal(quota_try_charge_all(items, 2, &now, trail, NULL), 0);
	assert_int_equal(quota_try_charge_all(items, 2, &later, trail2, NULL), 0);
	quota_return_all(items, 2, trail);
	quota_read(&planes.a[1], &later, &reading);
	assert_int_equal(reading.usage, 10);
	quota_read(&planes.a[2], &later, &reading);
	assert_int_equal(reading.usage, 10);
	quota_return_all(items, 2, trail2);
	quota_read(&planes.root[1], &later, &reading);
	assert_int_equal(reading.usage, 0);
	quota_read(&planes.root[2], &later, &reading);
	assert_int_equal(reading.usage, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_or_nothing),
		cmocka_unit_test(test_first_by_item_then_plane_then_leaf),
		cmocka_unit_test(test_the_same_node_twice),
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_many_items),
		cmocka_unit_test(test_return_too_late),
	};

	return cmocka_run_group_tests_name("quota/charge", tests, NULL, NULL);
}
