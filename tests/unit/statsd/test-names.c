#include "daemon/statsd/names.h"

#include "daemon/statsd/carry.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static const uint64_t seed[2] = { 17, 4711 };

struct text {
	char bytes[64 + SCAN_SLACK];
};

static struct statsd_key key_of(struct text *text, unsigned number)
{
	int len = snprintf(text->bytes, 64, "name.%u", number);
	size_t tags = number % 3 == 0 ? (size_t)len / 2 : 0;

	return (struct statsd_key){ .name = text->bytes,
				    .name_len = (size_t)len - tags,
				    .tags = text->bytes + len - tags,
				    .tags_len = tags };
}

static struct statsd_name *find(struct statsd_names *names, unsigned number)
{
	struct text text = { 0 };
	struct statsd_key key = key_of(&text, number);

	return statsd_names_find(names, &key, statsd_names_hash(names, &key));
}

static bool insert(struct statsd_names *names, unsigned number)
{
	struct text text = { 0 };
	struct statsd_key key = key_of(&text, number);

	return statsd_names_insert(names, &key, statsd_names_hash(names, &key),
				   (struct engine_ref){ number, number + 1 }) != NULL;
}

static void test_many(void **state)
{
	struct statsd_names names;

	(void)state;
	assert_int_equal(statsd_names_init(&names, 64 << 20, seed), 0);
	for (unsigned i = 0; i < 200000; i++) {
		assert_null(find(&names, i));
		assert_true(insert(&names, i));
	}
	for (unsigned i = 0; i < 200000; i++) {
		struct statsd_name *name = find(&names, i);

		assert_non_null(name);
		assert_int_equal(name->ref.id, i);
		assert_int_equal(name->ref.life, i + 1);
	}
	assert_null(find(&names, 200000));
	assert_int_equal(names.n, 200000);
	assert_int_equal(names.n_forgotten, 0);
	statsd_names_deinit(&names);
}

/* The parts count, not only the bytes. */
static void test_parts(void **state)
{
	struct text text = { "abcdef" };
	struct statsd_key key = { text.bytes, text.bytes + 4, 4, 2 },
			  other = { text.bytes, text.bytes + 3, 3, 3 };
	struct statsd_names names;

	(void)state;
	assert_int_equal(statsd_names_init(&names, 1 << 20, seed), 0);
	assert_non_null(statsd_names_insert(&names, &key, statsd_names_hash(&names, &key),
					    (struct engine_ref){ 1, 1 }));
	assert_non_null(statsd_names_find(&names, &key, statsd_names_hash(&names, &key)));
	assert_null(statsd_names_find(&names, &other, statsd_names_hash(&names, &key)));
	statsd_names_deinit(&names);
}

/* All of one hash: found all the same. More than the table takes of it: not kept, and nothing is lost. */
static void test_one_hash(void **state)
{
	struct statsd_names names;
	unsigned n = 0;

	(void)state;
	assert_int_equal(statsd_names_init(&names, 1 << 20, seed), 0);
	for (; n < 200; n++) {
		struct text text = { 0 };
		struct statsd_key key = key_of(&text, n);

		assert_non_null(
			statsd_names_insert(&names, &key, UINT32_MAX, (struct engine_ref){ n, 1 }));
	}
	for (unsigned i = 0; i < n; i++) {
		struct text text = { 0 };
		struct statsd_key key = key_of(&text, i);
		struct statsd_name *name = statsd_names_find(&names, &key, UINT32_MAX);

		assert_non_null(name);
		assert_int_equal(name->ref.id, i);
	}
	statsd_names_deinit(&names);
}

/* Names of other hashes that one row is for: those it has no room for are in the rows behind it. */
static void test_full_row(void **state)
{
	struct statsd_names names;
	const unsigned n = 2 * SCAN_WORDS + 3;

	(void)state;
	assert_int_equal(statsd_names_init(&names, 1 << 20, seed), 0);
	for (unsigned i = 0; i < n; i++) {
		struct text text = { 0 };
		struct statsd_key key = key_of(&text, i);

		assert_null(statsd_names_find(&names, &key, i + 1));
		assert_null(statsd_names_ask_entry(&names, &key, i + 1));
		assert_non_null(
			statsd_names_insert(&names, &key, i + 1, (struct engine_ref){ i, 1 }));
	}
	for (unsigned i = 0; i < n; i++) {
		struct text text = { 0 };
		struct statsd_key key = key_of(&text, i);
		struct statsd_name *name = statsd_names_find(&names, &key, i + 1);

		assert_non_null(name);
		assert_int_equal(name->ref.id, i);
		assert_ptr_equal(statsd_names_ask_entry(&names, &key, i + 1), name);
		/* Found under its own hash alone. */
		assert_null(statsd_names_find(&names, &key, (i + 1) % n + 1));
	}
	statsd_names_deinit(&names);
}

static void test_limit(void **state)
{
	struct statsd_names names;
	unsigned n = 0;

	(void)state;
	assert_int_equal(statsd_names_init(&names, 1 << 20, seed), 0);
	while (names.n_forgotten == 0) {
		assert_true(insert(&names, n++));
	}
	/* The one that had no room is there, the others are not. */
	assert_int_equal(names.n, 1);
	assert_int_equal(names.n_forgotten, n - 1);
	assert_non_null(find(&names, n - 1));
	assert_null(find(&names, 0));
	for (unsigned i = 0; i < 1000; i++) {
		assert_true(find(&names, i) != NULL || insert(&names, i));
	}
	assert_non_null(find(&names, 0));
	statsd_names_deinit(&names);
}

static void test_carry(void **state)
{
	struct statsd_carry carry = { 0 };
	struct statsd_carried *first;

	(void)state;
	first = statsd_carry_of(&carry, (struct engine_ref){ 5, 7 });
	assert_non_null(first);
	assert_int_equal(first->fraction, 0);
	first->fraction = 99;
	assert_non_null(statsd_carry_of(&carry, (struct engine_ref){ 3000000, 7 }));
	assert_int_equal(statsd_carry_of(&carry, (struct engine_ref){ 5, 7 })->fraction, 99);
	/* Another counter under the same number. */
	assert_int_equal(statsd_carry_of(&carry, (struct engine_ref){ 5, 9 })->fraction, 0);
	statsd_carry_deinit(&carry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),	 cmocka_unit_test(test_parts),
		cmocka_unit_test(test_one_hash), cmocka_unit_test(test_full_row),
		cmocka_unit_test(test_limit),	 cmocka_unit_test(test_carry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
