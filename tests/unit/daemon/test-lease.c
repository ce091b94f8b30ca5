#include "daemon/lease.h"

#include "lib/base/cursor.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

struct fixture {
	struct lease_book book;
	struct lease_table tables[3];
	struct lease_clock clock;
};

static struct lease_terms terms_of(uint32_t number, const char *path)
{
	return (struct lease_terms){ .path = path,
				     .len = strlen(path),
				     .agent = "me",
				     .agent_len = 2,
				     .number = number,
				     .ttl_ms = 5000 };
}

static struct lease *make(struct fixture *all, unsigned table, uint32_t number, const char *path,
			  int64_t units, int64_t expires_ns)
{
	const struct lease_terms terms = terms_of(number, path);
	struct lease *lease = NULL;

	assert_int_equal(lease_prepare(&all->tables[table], &all->clock, &all->book, &terms, 100000,
				       &lease),
			 0);
	lease_make(&all->tables[table], &all->clock, &all->book, lease, units, expires_ns);
	return lease;
}

static void end_all(struct fixture *all)
{
	for (unsigned i = 0; i < 3; i++) {
		while (all->tables[i].n > 0) {
			lease_end(&all->tables[i], &all->clock, &all->book,
				  all->tables[i].leases[all->tables[i].n / 2]);
		}
		lease_table_deinit(&all->tables[i]);
	}
	assert_int_equal(lease_next(&all->clock), INT64_MAX);
	assert_int_equal(lease_book_count(&all->book), 0);
	lease_clock_deinit(&all->clock);
	lease_book_deinit(&all->book);
}

static void test_limits(void **state)
{
	struct fixture all = { 0 };
	struct lease_terms terms = terms_of(1, "a/b");
	struct lease *lease, *other;

	(void)state;
	assert_int_equal(lease_book_init(&all.book, 3, 1), 0);
	assert_null(lease_find(&all.tables[0], 1));
	(void)make(&all, 0, 1, "a/b", 5, 100);
	assert_int_equal(lease_prepare(&all.tables[0], &all.clock, &all.book, &terms, 2, &lease),
			 LEASE_E_EXISTS);
	terms.number = UINT32_MAX;
	assert_int_equal(lease_prepare(&all.tables[0], &all.clock, &all.book, &terms, 1, &lease),
			 LEASE_E_FULL);
	assert_int_equal(lease_prepare(&all.tables[0], &all.clock, &all.book, &terms, 2, &lease),
			 0);
	lease_discard(&all.book, lease);
	assert_int_equal(lease_prepare(&all.tables[0], &all.clock, &all.book, &terms, 2, &lease),
			 0);
	assert_int_equal(lease_prepare(&all.tables[1], &all.clock, &all.book, &terms, 2, &other),
			 0);
	lease_make(&all.tables[1], &all.clock, &all.book, other, 1, 2);
	terms.number = 0;
	assert_int_equal(lease_prepare(&all.tables[1], &all.clock, &all.book, &terms, 2, &other),
			 LEASE_E_ALL);
	lease_make(&all.tables[0], &all.clock, &all.book, lease, 1, 2);
	assert_ptr_equal(lease_find(&all.tables[0], UINT32_MAX), lease);
	assert_null(lease_find(&all.tables[0], 2));
	end_all(&all);
}

static void test_expiry(void **state)
{
	struct fixture all = { 0 };
	struct lease *a, *b, *c;

	(void)state;
	assert_int_equal(lease_book_init(&all.book, 10, 1), 0);
	assert_null(lease_expire(&all.clock, INT64_MAX));
	a = make(&all, 0, 1, "a", 5, 300);
	b = make(&all, 0, 2, "a", 5, 100);
	c = make(&all, 1, 1, "a", 5, 200);
	assert_int_equal(lease_next(&all.clock), 100);
	assert_null(lease_expire(&all.clock, 99));
	assert_ptr_equal(lease_expire(&all.clock, 100), b);
	assert_null(lease_expire(&all.clock, 100));
	/* One that has expired comes back. */
	lease_renew(&all.clock, &all.book, b, 6, 250);
	lease_renew(&all.clock, &all.book, a, 6, 150);
	assert_ptr_equal(lease_expire(&all.clock, 1000), a);
	assert_ptr_equal(lease_expire(&all.clock, 1000), c);
	assert_ptr_equal(lease_expire(&all.clock, 1000), b);
	assert_null(lease_expire(&all.clock, 1000));
	assert_int_equal(b->units, 6);
	end_all(&all);
}

/* Whatever comes and goes, they expire in order. */
static void test_random(void **state)
{
	struct fixture all = { 0 };
	struct test_random random;
	int64_t now = 0;

	(void)state;
	assert_int_equal(lease_book_init(&all.book, 100000, 1), 0);
	test_random_init(&random, 0);
	for (unsigned step = 0; step < 100000; step++) {
		struct lease_table *table = &all.tables[test_random_below(&random, 3)];
		uint32_t number = (uint32_t)test_random_below(&random, 300);
		int64_t expires = now + 1 + (int64_t)test_random_below(&random, 1000);
		struct lease *lease = lease_find(table, number);

		if (lease == NULL) {
			lease = make(&all, (unsigned)(table - all.tables), number, "m/x", 1,
				     expires);
			assert_ptr_equal(lease_find(table, number), lease);
		} else if (test_random_below(&random, 3) == 0) {
			lease_end(table, &all.clock, &all.book, lease);
			assert_null(lease_find(table, number));
		} else {
			lease_renew(&all.clock, &all.book, lease, 2, expires);
		}
		if (step % 7 == 0) {
			now += (int64_t)test_random_below(&random, 20);
			while ((lease = lease_expire(&all.clock, now)) != NULL) {
				assert_true(lease->expires_ns <= now);
			}
		}
		assert_true(lease_next(&all.clock) > now);
	}
	for (int64_t last = 0;;) {
		int64_t next = lease_next(&all.clock);

		if (next == INT64_MAX) {
			break;
		}
		assert_true(next >= last);
		last = next;
		assert_non_null(lease_expire(&all.clock, next));
	}
	end_all(&all);
}

static void count(void *ctx, const struct lease *lease)
{
	unsigned *n = ctx;

	assert_memory_equal(lease->path + lease->len, "me", 2);
	(*n)++;
}

static void test_book(void **state)
{
	static const struct {
		const char *path;
		unsigned n;
	} cases[] = { { "a", 4 },    { "a/b", 2 }, { "a/b/c", 1 },
		      { "a/bb", 1 }, { "b", 0 },   { "a/", 0 } };
	struct fixture all = { 0 };

	(void)state;
	assert_int_equal(lease_book_init(&all.book, 10, 1), 0);
	(void)make(&all, 0, 1, "a", 1, 1);
	(void)make(&all, 0, 2, "a/b", 1, 1);
	(void)make(&all, 1, 1, "a/b/c", 1, 1);
	(void)make(&all, 1, 2, "a/bb", 1, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned n = 0;

		lease_book_each(&all.book, cases[i].path, strlen(cases[i].path), count, &n);
		assert_int_equal(n, cases[i].n);
	}
	end_all(&all);
}

/* What was saved says the same, and no other bytes are taken for it. */
static void test_saved(void **state)
{
	struct fixture all = { 0 };
	struct cursor_out out;
	struct cursor_in in;
	struct lease_terms terms;
	uint8_t bytes[512];
	int64_t units;
	size_t len;

	(void)state;
	assert_int_equal(lease_book_init(&all.book, 10, 1), 0);
	(void)make(&all, 0, 7, "a/b", INT64_C(1) << 62, 100);
	make(&all, 0, 9, "c", 0, 200)->gauge = true;
	assert_true(lease_save_bound(&all.tables[0]) <= sizeof(bytes));
	cursor_out_init(&out, bytes, sizeof(bytes));
	lease_save(&all.tables[0], &out);
	assert_true(cursor_out_ok(&out));
	len = cursor_out_len(&out);
	assert_true(len <= lease_save_bound(&all.tables[0]));
	cursor_in_init(&in, bytes, len);
	assert_int_equal(lease_load(&in, &terms, &units), 0);
	assert_int_equal(terms.number, 7);
	assert_int_equal(terms.ttl_ms, 5000);
	assert_false(terms.gauge);
	assert_int_equal(terms.len, 3);
	assert_memory_equal(terms.path, "a/b", 3);
	assert_int_equal(units, INT64_C(1) << 62);
	assert_int_equal(lease_load(&in, &terms, &units), 0);
	assert_int_equal(terms.number, 9);
	assert_true(terms.gauge);
	assert_int_equal(units, 0);
	assert_int_equal(cursor_in_left(&in), 0);
	cursor_in_init(&in, bytes, len - 1);
	assert_int_equal(lease_load(&in, &terms, &units), 0);
	assert_int_not_equal(lease_load(&in, &terms, &units), 0);
	end_all(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits), cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_random), cmocka_unit_test(test_book),
		cmocka_unit_test(test_saved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
