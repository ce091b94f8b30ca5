/* tree: lives, the edge, and climbing. */
#include "lib/engine/tree.h"
#include "tests/unit/engine/support.h"

static void test_far(void **state)
{
	(void)state;
	assert_false(tree_far(0));
	assert_false(tree_far(TREE_EDGE - 1));
	assert_true(tree_far(TREE_EDGE));
	assert_false(tree_far(-TREE_EDGE + 1));
	assert_true(tree_far(-TREE_EDGE));
	assert_true(tree_far(INT64_MAX));
	assert_true(tree_far(INT64_MIN));
}

static void test_lives(void **state)
{
	struct tree tree;
	uint32_t first;

	(void)state;
	assert_int_equal(tree_init(&tree, TREE_CHUNK + 1), 0);
	assert_int_equal(tree_life(&tree, 0), LIFE_NONE);
	assert_int_equal(tree_life(&tree, TREE_CHUNK + 1), LIFE_NONE);
	assert_int_equal(tree_life(&tree, UINT32_MAX), LIFE_NONE);

	assert_int_equal(tree_reserve(&tree, 7), 0);
	assert_int_not_equal(tree_life(&tree, 7), 0);
	tree_start(&tree, 7, TREE_NONE, LIFE_GAUGE);
	first = tree_life(&tree, 7);
	assert_true(first & LIFE_LIVE);
	assert_true(first & LIFE_GAUGE);
	assert_false(first & LIFE_STRICT);
	assert_int_equal(tree_own(&tree, 7), 0);
	assert_int_equal(tree_fold(&tree, 7, -5), 0);
	assert_null(tree_base(&tree, 7));
	assert_int_equal(tree_base_reserve(&tree, 7), 0);
	assert_int_equal(tree_grow(&tree, 7, 3), 0);
	assert_false(tree_raise(&tree, 7, 100));
	assert_int_equal(tree_own(&tree, 7), -2);
	assert_int_equal(atomic_load_explicit(&tree_tally(&tree, 7)->total, memory_order_relaxed),
			 98);

	tree_mark_strict(&tree, 7);
	assert_int_equal(tree_life(&tree, 7), first | LIFE_STRICT);
	tree_kill(&tree, 7);
	assert_false(tree_life(&tree, 7) & (LIFE_LIVE | LIFE_STRICT | LIFE_GAUGE));
	tree_start(&tree, 7, TREE_NONE, LIFE_GAUGE);
	assert_int_not_equal(tree_life(&tree, 7), first);
	assert_int_equal(tree_own(&tree, 7), 0);
	assert_int_equal(atomic_load_explicit(&tree_tally(&tree, 7)->folded, memory_order_relaxed),
			 (uint64_t)-5);
	tree_deinit(&tree);
}

/* Flags come from the parent; the last id of all has a place. */
static void test_inheritance(void **state)
{
	struct tree tree;

	(void)state;
	assert_int_equal(tree_init(&tree, TREE_CHUNK + 1), 0);
	assert_int_equal(tree_reserve(&tree, 0), 0);
	assert_int_equal(tree_reserve(&tree, TREE_CHUNK), 0);
	tree_start(&tree, 0, TREE_NONE, LIFE_GAUGE);
	tree_mark_strict(&tree, 0);
	tree_start(&tree, TREE_CHUNK, 0, 0);
	assert_int_equal(tree_life(&tree, TREE_CHUNK) & (LIFE_GAUGE | LIFE_STRICT),
			 LIFE_GAUGE | LIFE_STRICT);
	assert_int_equal(atomic_load_explicit(&tree_tally(&tree, TREE_CHUNK)->root,
					      memory_order_relaxed),
			 0);

	assert_false(tree_raise(&tree, TREE_CHUNK, TREE_EDGE - 1));
	assert_true(tree_raise(&tree, TREE_CHUNK, 1));
	assert_int_equal(atomic_load_explicit(&tree_tally(&tree, 0)->total, memory_order_relaxed),
			 TREE_EDGE);
	tree_deinit(&tree);
}

/* Every generation of an id is used once, and then none. */
static void test_last_generation(void **state)
{
	struct tree tree;
	struct life *chunk;

	(void)state;
	assert_int_equal(tree_init(&tree, 10), 0);
	assert_int_equal(tree_reserve(&tree, 3), 0);
	chunk = atomic_load_explicit(&tree.lives[0], memory_order_relaxed);
	atomic_store_explicit(&chunk[3].word, (UINT32_MAX / LIFE_GENERATION - 1) * LIFE_GENERATION,
			      memory_order_relaxed);
	tree_start(&tree, 3, TREE_NONE, 0);
	tree_kill(&tree, 3);
	assert_int_not_equal(tree_life(&tree, 3), LIFE_NONE);
	tree_start(&tree, 3, TREE_NONE, 0);
	assert_int_equal(tree_life(&tree, 3) / LIFE_GENERATION, UINT32_MAX / LIFE_GENERATION);
	tree_kill(&tree, 3);
	assert_int_equal(tree_life(&tree, 3), LIFE_NONE);
	assert_int_equal(tree_life(&tree, 3), LIFE_NONE);
	tree_deinit(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_far),
		cmocka_unit_test(test_lives),
		cmocka_unit_test(test_inheritance),
		cmocka_unit_test(test_last_generation),
	};

	return RUN(tests);
}
