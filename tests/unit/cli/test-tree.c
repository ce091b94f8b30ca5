#include "tests/support/test.h"

#include "clients/cli/tree.h"

#include <stdlib.h>
#include <string.h>

static void add(struct tree *tree, const char *path, int64_t total)
{
	assert_true(tree_add(tree, path, &(struct tree_node){ .total = total }));
}

static void assert_order(const struct tree *tree, const char *const *paths)
{
	for (size_t i = 0; i < tree->n; i++) {
		assert_string_equal(tree->order[i]->path, paths[i]);
	}
	assert_null(paths[tree->n]);
}

static void by_name(void **state)
{
	struct tree tree;

	(void)state;
	tree_init(&tree);
	add(&tree, "b", 1);
	add(&tree, "a", 5);
	add(&tree, "a b", 9);
	add(&tree, "a/x", 2);
	add(&tree, "a/x/y", 2);
	add(&tree, "a!", 7);
	assert_true(tree_arrange(&tree, false));
	assert_order(&tree, (const char *const[]){ "a", "a/x", "a/x/y", "a b", "a!", "b", NULL });
	assert_string_equal(tree_name(tree.order[0]), "a");
	assert_string_equal(tree_name(tree.order[2]), "y");
	assert_int_equal(tree.order[2]->level, 2);
	tree_deinit(&tree);
}

static void by_total(void **state)
{
	struct tree tree;

	(void)state;
	tree_init(&tree);
	add(&tree, "a", 5);
	add(&tree, "b", 50);
	add(&tree, "a/small", 1);
	add(&tree, "a/large", 3);
	add(&tree, "a/large/deep", 100);
	add(&tree, "a/also", 1);
	add(&tree, "b/x", INT64_MIN);
	add(&tree, "b/y", INT64_MAX);
	assert_true(tree_arrange(&tree, true));
	assert_order(&tree, (const char *const[]){ "b", "b/y", "b/x", "a", "a/large",
						   "a/large/deep", "a/also", "a/small", NULL });
	tree_deinit(&tree);
}

/* A parent was removed while the walk went on. */
static void a_missing_parent(void **state)
{
	struct tree tree;

	(void)state;
	tree_init(&tree);
	add(&tree, "a/b/c", 1);
	add(&tree, "a", 1);
	add(&tree, "x/y", 1);
	assert_true(tree_arrange(&tree, false));
	assert_int_equal(tree.order[1]->level, 1);
	assert_string_equal(tree_name(tree.order[1]), "b/c");
	assert_int_equal(tree.order[2]->level, 0);
	assert_string_equal(tree_name(tree.order[2]), "x/y");
	tree_deinit(&tree);
}

static void lines(void **state)
{
	struct tree tree;

	(void)state;
	tree_init(&tree);
	add(&tree, "a", 1);
	add(&tree, "a/b", 1);
	add(&tree, "a/b/c", 1);
	add(&tree, "a/d", 1);
	add(&tree, "a/d/e", 1);
	assert_true(tree_arrange(&tree, false));
	assert_int_equal(tree.order[1]->open, 1U << 1);
	assert_int_equal(tree.order[2]->open, 1U << 1);
	assert_int_equal(tree.order[3]->open, 0);
	assert_int_equal(tree.order[4]->open, 0);
	tree_deinit(&tree);
}

static void nothing(void **state)
{
	struct tree tree;

	(void)state;
	tree_init(&tree);
	assert_true(tree_arrange(&tree, true));
	tree_deinit(&tree);
}

/* However nodes come, and with whatever parents missing: each subtree is in one piece, its top first. */
static void any_order_of_arrival(void **state)
{
	struct test_random random;
	struct tree tree;

	(void)state;
	test_random_init(&random, 1);
	tree_init(&tree);
	for (int i = 0; i < 1000; i++) {
		char path[16];
		size_t depth = 1 + test_random_below(&random, 5);

		for (size_t level = 0; level < depth; level++) {
			path[2 * level] = (char)('a' + (char)test_random_below(&random, 4));
			path[2 * level + 1] = level + 1 < depth ? '/' : '\0';
		}
		add(&tree, path, (int64_t)test_random_below(&random, 5));
	}
	assert_true(tree_arrange(&tree, true));
	for (size_t i = 0; i < tree.n; i++) {
		const struct tree_node *node = tree.order[i];
		const struct tree_node *before = i > 0 ? tree.order[i - 1] : NULL;

		while (before != NULL && before != node->parent) {
			before = before->parent;
		}
		assert_ptr_equal(before, node->parent);
	}
	tree_deinit(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_name),	    cmocka_unit_test(by_total),
		cmocka_unit_test(a_missing_parent), cmocka_unit_test(lines),
		cmocka_unit_test(nothing),	    cmocka_unit_test(any_order_of_arrival),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
