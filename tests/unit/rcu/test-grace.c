#include "tests/support/test.h"

#include "lib/rcu/grace.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

static void sleep_ms(long ms)
{
	struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	(void)nanosleep(&pause, NULL);
}

static void until(_Atomic(bool) *flag)
{
	while (!atomic_load_explicit(flag, memory_order_acquire)) {
		(void)sched_yield();
	}
}

static void set(_Atomic(bool) *flag)
{
	atomic_store_explicit(flag, true, memory_order_release);
}

struct meeting {
	_Atomic(bool) inside;
	_Atomic(bool) go;
	_Atomic(bool) waited;
	unsigned depth;
};

static void *reader(void *arg)
{
	struct meeting *meeting = arg;

	grace_register();
	for (unsigned i = 0; i < meeting->depth; i++) {
		grace_enter();
	}
	/* All but the outermost are left again: the section is still open. */
	for (unsigned i = 1; i < meeting->depth; i++) {
		grace_leave();
	}
	set(&meeting->inside);
	until(&meeting->go);
	grace_leave();
	grace_unregister();
	return NULL;
}

static void *waiter(void *arg)
{
	struct meeting *meeting = arg;

	grace_wait();
	set(&meeting->waited);
	return NULL;
}

static void wait_for_reader(unsigned depth)
{
	struct meeting meeting = { .depth = depth };
	pthread_t threads[2];

	assert_int_equal(pthread_create(&threads[0], NULL, reader, &meeting), 0);
	until(&meeting.inside);
	assert_int_equal(pthread_create(&threads[1], NULL, waiter, &meeting), 0);
	sleep_ms(50);
	assert_false(atomic_load_explicit(&meeting.waited, memory_order_acquire));
	set(&meeting.go);
	assert_int_equal(pthread_join(threads[1], NULL), 0);
	assert_true(atomic_load_explicit(&meeting.waited, memory_order_acquire));
	assert_int_equal(pthread_join(threads[0], NULL), 0);
}

static void test_waits_for_a_reader(void **state)
{
	(void)state;
	wait_for_reader(1);
}

static void test_waits_for_the_outermost_section(void **state)
{
	(void)state;
	wait_for_reader(3);
}

static void test_without_readers(void **state)
{
	(void)state;
	/* Not registered, and registered but in no section. */
	grace_wait();
	grace_register();
	grace_wait();
	grace_enter();
	grace_leave();
	grace_wait();
	grace_unregister();
}

/* ---- publish, read, unlink, wait, free ---- */

struct box {
	uint64_t a, b;
};

struct shelf {
	_Atomic(struct box *) box;
	_Atomic(bool) stop;
	_Atomic(uint64_t) torn;
};

static void *look(void *arg)
{
	struct shelf *shelf = arg;

	grace_register();
	while (!atomic_load_explicit(&shelf->stop, memory_order_relaxed)) {
		grace_enter();
		/* Pairs with the exchange in replace. */
		const struct box *box = atomic_load_explicit(&shelf->box, memory_order_acquire);

		if (box->a != ~box->b) {
			(void)atomic_fetch_add_explicit(&shelf->torn, 1, memory_order_relaxed);
		}
		grace_leave();
	}
	grace_unregister();
	return NULL;
}

static struct box *new_box(uint64_t value)
{
	struct box *box = malloc(sizeof(*box));

	assert_non_null(box);
	*box = (struct box){ .a = value, .b = ~value };
	return box;
}

static void replace(struct shelf *shelf, uint64_t value)
{
	struct box *old =
		atomic_exchange_explicit(&shelf->box, new_box(value), memory_order_acq_rel);

	grace_wait();
	/* Nobody looks any more: a plain write, which a reader that was not waited for would see. */
	old->a = 0;
	old->b = 0;
	free(old);
}

static void test_free_after_grace(void **state)
{
	struct shelf shelf = { .stop = false };
	pthread_t threads[3];

	(void)state;
	atomic_init(&shelf.box, new_box(0));
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, look, &shelf), 0);
	}
	for (uint64_t i = 1; i <= 300; i++) {
		replace(&shelf, i);
	}
	atomic_store_explicit(&shelf.stop, true, memory_order_relaxed);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	}
	assert_int_equal(atomic_load_explicit(&shelf.torn, memory_order_relaxed), 0);
	free(atomic_load_explicit(&shelf.box, memory_order_relaxed));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_for_a_reader),
		cmocka_unit_test(test_waits_for_the_outermost_section),
		cmocka_unit_test(test_without_readers),
		cmocka_unit_test(test_free_after_grace),
	};

	return cmocka_run_group_tests_name("rcu/grace", tests, NULL, NULL);
}
