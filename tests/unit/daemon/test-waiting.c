/*
 * Waiting: who is told when, and who may try.
 */
#include "daemon/waiting.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX 8

struct fixture {
	struct waiting waiting;
	struct waiter waiters[MAX];
	struct engine_charge_item items[MAX][2];
	unsigned woken[2];
};

static void wake(void *ctx, unsigned worker)
{
	struct fixture *all = ctx;

	all->woken[worker]++;
}

static void begin(struct fixture *all)
{
	memset(all, 0, sizeof(*all));
	assert_int_equal(waiting_init(&all->waiting, 2, 1, wake, all), 0);
	waiting_set_limits(&all->waiting, 100, 1 << 20);
}

static struct waiter *join(struct fixture *all, unsigned i, const char *path, const char *second)
{
	struct waiter *waiter = &all->waiters[i];

	all->items[i][0] = (struct engine_charge_item){ .path = path, .len = strlen(path), .n = 1 };
	if (second != NULL) {
		all->items[i][1] =
			(struct engine_charge_item){ .path = second, .len = strlen(second), .n = 1 };
	}
	waiter->worker = i % 2;
	waiter->items = all->items[i];
	waiter->n_items = second != NULL ? 2 : 1;
	assert_int_equal(waiting_join(&all->waiting, waiter, 100), 0);
	return waiter;
}

static bool stand(struct fixture *all, struct waiter *waiter, const char *one, const char *two)
{
	struct text nodes[2] = { text_of(one), text_of(two != NULL ? two : "") };
	bool anew;

	assert_int_equal(waiting_stand(&all->waiting, waiter, nodes, two != NULL ? 2 : 1, &anew),
			 0);
	return anew;
}

static bool is_its_turn(struct fixture *all, struct waiter *waiter)
{
	bool its_turn;

	assert_int_equal(waiting_turn(&all->waiting, waiter, &its_turn), 0);
	return its_turn;
}

static void wake_at(struct fixture *all, const char *path)
{
	waiting_wake(&all->waiting, path, strlen(path));
}

/* The one that is told now, and nobody else. */
static void expect_told(struct fixture *all, struct waiter *waiter)
{
	struct waiter *first = waiting_next(&all->waiting, 0), *second;

	if (first == NULL) {
		first = waiting_next(&all->waiting, 1);
	}
	assert_ptr_equal(first, waiter);
	second = waiting_next(&all->waiting, 0);
	assert_null(second);
	second = waiting_next(&all->waiting, 1);
	assert_null(second);
}

static void end(struct fixture *all)
{
	assert_int_equal(waiting_count(&all->waiting), 0);
	assert_int_equal(all->waiting.bytes, 0);
	assert_int_equal(all->waiting.n_nodes, 0);
	waiting_deinit(&all->waiting);
}

static void test_one_queue(void **state)
{
	struct fixture all;
	struct waiter *a, *b, *c;

	(void)state;
	begin(&all);
	a = join(&all, 0, "m/x/1", NULL);
	assert_true(is_its_turn(&all, a));
	assert_true(stand(&all, a, "m/x", NULL));
	assert_false(stand(&all, a, "m/x", NULL));
	b = join(&all, 1, "m/x/2", NULL);
	assert_false(is_its_turn(&all, b));
	c = join(&all, 2, "m/x", NULL);
	assert_false(is_its_turn(&all, c));
	expect_told(&all, NULL);
	/* Above, beside and below: nobody. */
	wake_at(&all, "m");
	wake_at(&all, "m/xx");
	wake_at(&all, "m/y/x");
	expect_told(&all, NULL);
	wake_at(&all, "m/x/other");
	assert_int_equal(all.woken[0], 1);
	wake_at(&all, "m/x");
	/* Told once, however often. */
	assert_int_equal(all.woken[0], 1);
	expect_told(&all, a);
	assert_true(is_its_turn(&all, a));
	waiting_leave(&all.waiting, a);
	expect_told(&all, b);
	assert_true(is_its_turn(&all, b));
	assert_false(is_its_turn(&all, c));
	/* One in the middle or at the end leaves: the others are not told. */
	waiting_leave(&all.waiting, c);
	expect_told(&all, NULL);
	waiting_leave(&all.waiting, b);
	expect_told(&all, NULL);
	end(&all);
}

/* Who comes later may not pass a node at which an earlier one stands, though it was refused elsewhere only. */
static void test_nodes_on_the_way(void **state)
{
	struct fixture all;
	struct waiter *a, *b;

	(void)state;
	begin(&all);
	a = join(&all, 0, "m/x/1", NULL);
	assert_true(stand(&all, a, "m", NULL));
	b = join(&all, 1, "m/y/1", NULL);
	assert_true(stand(&all, b, "m/y", NULL));
	wake_at(&all, "m/y");
	assert_ptr_equal(waiting_next(&all.waiting, 0), a);
	assert_ptr_equal(waiting_next(&all.waiting, 1), b);
	assert_false(is_its_turn(&all, b));
	/* The first is refused below now; the second one's way is free. */
	assert_true(stand(&all, a, "m/x", NULL));
	expect_told(&all, b);
	assert_true(is_its_turn(&all, b));
	assert_false(stand(&all, b, "m/y", NULL));
	waiting_leave(&all.waiting, a);
	waiting_leave(&all.waiting, b);
	end(&all);
}

/* One stands at several nodes: first everywhere, or it may not try; told wherever something comes back. */
static void test_several_nodes(void **state)
{
	struct fixture all;
	struct waiter *a, *b, *c;

	(void)state;
	begin(&all);
	a = join(&all, 0, "m/x", NULL);
	(void)stand(&all, a, "m/x", NULL);
	b = join(&all, 1, "n/y", "m/x");
	assert_false(is_its_turn(&all, b));
	c = join(&all, 2, "n/y", NULL);
	assert_true(is_its_turn(&all, c)); /* the other is not known to be refused at n/y */
	assert_true(stand(&all, c, "n/y", NULL));
	waiting_leave(&all.waiting, a);
	expect_told(&all, b);
	/* It came before c, so it is its turn at n/y too, and c's no more once it stands there. */
	assert_true(is_its_turn(&all, b));
	assert_true(stand(&all, b, "n/y", "m/x"));
	assert_false(is_its_turn(&all, c));
	wake_at(&all, "n/y");
	expect_told(&all, b);
	wake_at(&all, "m/x");
	expect_told(&all, b);
	waiting_wake_all(&all.waiting);
	expect_told(&all, b);
	/* Refused at one of them only: the other's next is told. */
	assert_false(stand(&all, b, "m/x", NULL));
	expect_told(&all, c);
	assert_true(is_its_turn(&all, c));
	waiting_leave(&all.waiting, b);
	waiting_leave(&all.waiting, c);
	end(&all);
}

static void test_limits(void **state)
{
	struct fixture all;
	struct waiter *a;
	struct waiter extra = { .worker = 0 };
	struct text node = text_of("m/somewhere/that/is/not/short");
	bool anew;

	(void)state;
	begin(&all);
	waiting_set_limits(&all.waiting, 2, 1000);
	a = join(&all, 0, "m/x", NULL);
	assert_int_equal(waiting_join(&all.waiting, &extra, 901), WAITING_E_FULL);
	assert_int_equal(waiting_join(&all.waiting, &extra, 900), 0);
	assert_int_equal(waiting_stand(&all.waiting, a, &node, 1, &anew), WAITING_E_FULL);
	waiting_leave(&all.waiting, &extra);
	(void)join(&all, 1, "m/x", NULL);
	assert_int_equal(waiting_join(&all.waiting, &extra, 1), WAITING_E_FULL);
	/* A limit below what there is keeps what there is. */
	waiting_set_limits(&all.waiting, 0, 0);
	assert_int_equal(waiting_join(&all.waiting, &extra, 0), WAITING_E_FULL);
	waiting_leave(&all.waiting, a);
	waiting_leave(&all.waiting, &all.waiters[1]);
	end(&all);
}

/* One leaves while it is told. */
static void test_leaves_when_told(void **state)
{
	struct fixture all;
	struct waiter *a, *b;

	(void)state;
	begin(&all);
	a = join(&all, 0, "m/x", NULL);
	(void)stand(&all, a, "m/x", NULL);
	b = join(&all, 1, "m/x", NULL);
	assert_false(is_its_turn(&all, b));
	wake_at(&all, "m/x");
	waiting_leave(&all.waiting, a);
	expect_told(&all, b);
	waiting_leave(&all.waiting, b);
	end(&all);
}

/* Many nodes; every one of them can be found again, and each is told by what is below it. */
static void test_many_nodes(void **state)
{
	enum {
		N = 5000
	};
	struct fixture all;
	struct waiter *waiters = calloc(N, sizeof(*waiters));
	struct engine_charge_item *items = calloc(N, sizeof(*items));
	char(*paths)[32] = calloc(N, sizeof(*paths));

	(void)state;
	assert_true(waiters != NULL && items != NULL && paths != NULL);
	begin(&all);
	waiting_set_limits(&all.waiting, N, 64 << 20);
	for (unsigned i = 0; i < N; i++) {
		int len = snprintf(paths[i], sizeof(paths[i]), "m/%u/%u", i % 50, i);
		struct text node = { paths[i], (size_t)len };
		bool anew;

		items[i] = (struct engine_charge_item){ .path = paths[i], .len = (size_t)len };
		waiters[i].items = &items[i];
		waiters[i].n_items = 1;
		assert_int_equal(waiting_join(&all.waiting, &waiters[i], 10), 0);
		assert_int_equal(waiting_stand(&all.waiting, &waiters[i], &node, 1, &anew), 0);
	}
	assert_int_equal(all.waiting.n_nodes, N);
	for (unsigned i = 0; i < N; i++) {
		char below[40];

		(void)snprintf(below, sizeof(below), "%s/x", paths[i]);
		wake_at(&all, below);
		assert_ptr_equal(waiting_next(&all.waiting, 0), &waiters[i]);
		assert_null(waiting_next(&all.waiting, 0));
	}
	waiting_wake_all(&all.waiting);
	for (unsigned i = 0; i < N; i++) {
		assert_non_null(waiting_next(&all.waiting, 0));
	}
	for (unsigned i = 0; i < N; i++) {
		waiting_leave(&all.waiting, &waiters[i]);
	}
	end(&all);
	free(waiters);
	free(items);
	free(paths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_queue),	 cmocka_unit_test(test_nodes_on_the_way),
		cmocka_unit_test(test_several_nodes),	 cmocka_unit_test(test_limits),
		cmocka_unit_test(test_leaves_when_told), cmocka_unit_test(test_many_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
