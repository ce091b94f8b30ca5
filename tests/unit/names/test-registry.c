/*
 * registry: creation, ids, the ceiling, lists, walks that stop and go on; and random operations compared with a plain table.
 */
#include "lib/names/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rcu/grace.h"
#include "tests/support/test.h"

static struct registry *new_registry(uint32_t max_names)
{
	struct registry *registry = NULL;

	assert_int_equal(registry_new(&registry, max_names, test_seed()), 0);
	return registry;
}

static int create_with(struct registry *registry, const char *path, int64_t now,
		       registry_prepare prepare, void *ctx, struct name **ret_name)
{
	int r;

	assert_int_equal(path_check(path, strlen(path), NULL), PATH_OK);
	registry_lock(registry);
	r = registry_create(registry, path, strlen(path), now, prepare, ctx, ret_name);
	registry_unlock(registry);
	return r;
}

static struct name *create(struct registry *registry, const char *path)
{
	struct name *name = NULL;

	assert_int_equal(create_with(registry, path, 0, NULL, NULL, &name), 0);
	return name;
}

/*
 * This test has a single thread, so it may hold what it finds beyond the section. It asserts nothing inside one: a failed
 * assertion leaves the function, and whoever waits for a grace period next would wait for ever.
 */
static struct name *find(struct registry *registry, const char *path)
{
	struct name *name;

	grace_enter();
	name = registry_find(registry, path, strlen(path));
	grace_leave();
	return name;
}

static void unlink_name(struct registry *registry, struct name *name)
{
	registry_lock(registry);
	registry_unlink(registry, name);
	registry_unlock(registry);
}

static void release(struct registry *registry, struct name *name)
{
	grace_wait();
	registry_lock(registry);
	registry_release(registry, name);
	registry_unlock(registry);
}

static void remove_path(struct registry *registry, const char *path)
{
	struct name *name = find(registry, path);

	assert_non_null(name);
	unlink_name(registry, name);
	release(registry, name);
}

/* The paths of a walk joined by blanks. */
static void expect_walk(struct registry *registry, const char *root, uint32_t depth,
			const char *expected)
{
	char got[4096] = "";
	size_t len = 0;
	struct registry_walk walk;

	grace_enter();
	registry_walk_init(&walk, registry,
			   root ? registry_find(registry, root, strlen(root)) : NULL, depth);
	for (struct name *name = registry_first(&walk); name; name = registry_next(&walk, name)) {
		len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%.*s", len ? " " : "",
					name->len, name->path);
	}
	grace_leave();
	assert_string_equal(got, expected);
}

static void test_new(void **state)
{
	struct registry *registry = NULL;

	(void)state;
	assert_int_equal(registry_new(&registry, 0, 1), -EINVAL);
	assert_int_equal(registry_new(&registry, (1u << 26) + 1, 1), -EINVAL);
	assert_null(registry);
	assert_int_equal(registry_new(&registry, 1u << 26, 1), 0);
	assert_null(registry_free(registry));
	assert_null(registry_free(NULL));
}

static void test_create_and_find(void **state)
{
	struct registry *registry = new_registry(100);
	struct name *web = create(registry, "requests/acme/web");
	struct name *acme = find(registry, "requests/acme");
	struct name *requests = find(registry, "requests");

	(void)state;
	assert_ptr_equal(find(registry, "requests/acme/web"), web);
	assert_ptr_equal(create(registry, "requests/acme/web"), web);
	assert_ptr_equal(create(registry, "requests"), requests);
	assert_ptr_equal(web->parent, acme);
	assert_ptr_equal(acme->parent, requests);
	assert_null(requests->parent);
	assert_ptr_equal(registry_root(web), requests);
	assert_ptr_equal(registry_root(requests), requests);
	assert_int_equal(requests->depth, 1);
	assert_int_equal(web->depth, 3);
	assert_int_equal(requests->id, 0);
	assert_int_equal(acme->id, 1);
	assert_int_equal(web->id, 2);
	assert_int_equal(registry_count(registry), 3);
	assert_int_equal(registry_newest(registry), web->born);

	assert_null(find(registry, "requests/acme/we"));
	assert_null(find(registry, "requests/"));
	assert_null(find(registry, ""));
	assert_null(find(registry, "acme"));
	registry_free(registry);
}

static void test_longest_path(void **state)
{
	struct registry *registry = new_registry(100);
	char path[PATH_MAX_BYTES + 2];
	struct name *name;

	(void)state;
	for (size_t i = 0; i < PATH_MAX_BYTES; i++) {
		path[i] = i % 33 == 32 ? '/' : 'x';
	}
	path[PATH_MAX_BYTES] = '\0';
	name = create(registry, path);
	assert_int_equal(name->depth, PATH_MAX_SEGMENTS);
	assert_int_equal(name->len, PATH_MAX_BYTES);
	assert_ptr_equal(find(registry, path), name);
	assert_int_equal(registry_count(registry), PATH_MAX_SEGMENTS);
	path[PATH_MAX_BYTES] = 'x';
	path[PATH_MAX_BYTES + 1] = '\0';
	assert_null(find(registry, path));
	registry_free(registry);
}

static void test_births_increase(void **state)
{
	static const int64_t times[] = { 1000, 1000, 5, 2000, -7, 0 };
	static const int64_t births[] = { 1000, 1001, 1002, 2000, 2001, 2002 };
	struct registry *registry = new_registry(100);
	struct name *name;

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		char path[] = { (char)('a' + (char)i), '\0' };

		assert_int_equal(create_with(registry, path, times[i], NULL, NULL, &name), 0);
		assert_true(name->born == births[i]);
	}
	assert_int_equal(create_with(registry, "g/h", 3000, NULL, NULL, &name), 0);
	assert_true(name->parent->born == 3000 && name->born == 3001);
	registry_free(registry);
}

struct prepared {
	struct registry *registry;
	char paths[256];
	int result;
	uint32_t ids[PATH_MAX_SEGMENTS];
};

static int prepare(void *ctx, struct name *const *names, size_t n_names)
{
	struct prepared *prepared = ctx;
	size_t len = strlen(prepared->paths);

	for (size_t i = 0; i < n_names; i++) {
		struct name *found;

		grace_enter();
		found = registry_find(prepared->registry, names[i]->path, names[i]->len);
		grace_leave();
		assert_null(found);
		if (i > 0) {
			assert_ptr_equal(names[i]->parent, names[i - 1]);
			assert_true(names[i]->born > names[i - 1]->born);
		}
		prepared->ids[i] = names[i]->id;
		len += (size_t)snprintf(prepared->paths + len, sizeof(prepared->paths) - len,
					"%.*s ", names[i]->len, names[i]->path);
	}
	return prepared->result;
}

static void test_prepare(void **state)
{
	struct registry *registry = new_registry(100);
	struct prepared prepared = { .registry = registry };
	struct name *name = NULL;

	(void)state;
	assert_int_equal(create_with(registry, "a/b", 0, prepare, &prepared, &name), 0);
	assert_string_equal(prepared.paths, "a a/b ");
	assert_int_equal(create_with(registry, "a/b/c/d", 0, prepare, &prepared, &name), 0);
	assert_string_equal(prepared.paths, "a a/b a/b/c a/b/c/d ");
	assert_int_equal(create_with(registry, "a/b/c", 0, prepare, &prepared, &name), 0);
	assert_string_equal(prepared.paths, "a a/b a/b/c a/b/c/d ");

	/* A refusal leaves nothing, and the same ids come again. */
	name = NULL;
	for (int i = 0; i < 3; i++) {
		prepared.result = i == 0 ? 77 : -ENOMEM;
		prepared.paths[0] = '\0';
		assert_int_equal(create_with(registry, "a/x/y", 0, prepare, &prepared, &name),
				 prepared.result);
		assert_string_equal(prepared.paths, "a/x a/x/y ");
		assert_int_equal(prepared.ids[0], 4);
		assert_int_equal(prepared.ids[1], 5);
		assert_null(name);
		assert_null(find(registry, "a/x"));
		assert_int_equal(registry_count(registry), 4);
	}
	expect_walk(registry, NULL, UINT32_MAX, "a a/b a/b/c a/b/c/d");
	registry_free(registry);
}

static void test_ceiling(void **state)
{
	struct registry *registry = new_registry(4);
	struct name *name = NULL;

	(void)state;
	assert_int_equal(create_with(registry, "a/b/c/d/e", 0, NULL, NULL, &name), REGISTRY_E_FULL);
	assert_int_equal(registry_count(registry), 0);
	assert_null(find(registry, "a"));
	create(registry, "a/b");
	assert_int_equal(create_with(registry, "a/b/c/d/e", 0, NULL, NULL, &name), REGISTRY_E_FULL);
	assert_null(find(registry, "a/b/c"));
	create(registry, "a/b/c/d");
	assert_int_equal(create_with(registry, "z", 0, NULL, NULL, &name), REGISTRY_E_FULL);
	assert_null(name);
	/* What is there is found at the ceiling. */
	assert_int_equal(create_with(registry, "a/b/c", 0, NULL, NULL, &name), 0);

	/* An unlinked name keeps its place until it is released. */
	name = find(registry, "a/b/c/d");
	unlink_name(registry, name);
	assert_int_equal(registry_count(registry), 4);
	assert_int_equal(create_with(registry, "z", 0, NULL, NULL, &(struct name *){ NULL }),
			 REGISTRY_E_FULL);
	release(registry, name);
	assert_int_equal(create(registry, "z")->id, 3);
	registry_free(registry);
}

static void test_ids_again(void **state)
{
	struct registry *registry = new_registry(100);
	struct name *old, *new;

	(void)state;
	create(registry, "m/a");
	create(registry, "m/b");
	create(registry, "m/c");
	remove_path(registry, "m/a");
	remove_path(registry, "m/c");
	assert_int_equal(create(registry, "m/d")->id, 3); /* the last one freed */
	assert_int_equal(create(registry, "m/e")->id, 1);
	assert_int_equal(create(registry, "m/f")->id, 4);

	/* The path is free at once, the id is not. */
	old = find(registry, "m/b");
	unlink_name(registry, old);
	assert_null(find(registry, "m/b"));
	new = create(registry, "m/b");
	assert_ptr_not_equal(old, new);
	assert_int_equal(new->id, 5);
	assert_true(new->born > old->born);
	release(registry, old);
	assert_ptr_equal(find(registry, "m/b"), new);
	assert_int_equal(create(registry, "m/g")->id, 2);
	registry_free(registry);
}

static void test_walk_order_and_depth(void **state)
{
	struct registry *registry = new_registry(100);

	(void)state;
	expect_walk(registry, NULL, UINT32_MAX, "");
	create(registry, "a/b/c");
	create(registry, "x/y");
	create(registry, "a/d");
	create(registry, "a/b/e");
	expect_walk(registry, NULL, UINT32_MAX, "x x/y a a/d a/b a/b/e a/b/c");
	expect_walk(registry, NULL, 0, "");
	expect_walk(registry, NULL, 1, "x a");
	expect_walk(registry, NULL, 2, "x x/y a a/d a/b");
	expect_walk(registry, "a", 0, "a");
	expect_walk(registry, "a", 1, "a a/d a/b");
	expect_walk(registry, "a", UINT32_MAX, "a a/d a/b a/b/e a/b/c");
	expect_walk(registry, "a/b", 1, "a/b a/b/e a/b/c");
	expect_walk(registry, "a/b/c", UINT32_MAX, "a/b/c");
	registry_free(registry);
}

static void test_walk_from_unlinked(void **state)
{
	struct registry *registry = new_registry(100);
	struct registry_walk walk;
	struct name *one, *two, *first;

	(void)state;
	first = create(registry, "m/1");
	two = create(registry, "m/2");
	one = create(registry, "m/3");
	registry_walk_init(&walk, registry, NULL, UINT32_MAX);
	/* A walker that stands on a name when it and the next one go gets to what is left. */
	unlink_name(registry, one);
	unlink_name(registry, two);
	create(registry, "m/4");
	assert_ptr_equal(registry_next(&walk, one), two);
	assert_ptr_equal(registry_next(&walk, two), first);
	assert_null(registry_next(&walk, first));
	expect_walk(registry, NULL, UINT32_MAX, "m m/4 m/1");
	release(registry, one);
	release(registry, two);
	registry_free(registry);
}

/* Save at `at`, do nothing else, and see that what comes next is `next`. */
static void expect_resume(struct registry *registry, const char *root,
			  const struct registry_cursor *cursor, const char *next)
{
	struct registry_walk walk;
	struct name *name;

	grace_enter();
	registry_walk_init(&walk, registry,
			   root ? registry_find(registry, root, strlen(root)) : NULL, UINT32_MAX);
	name = registry_resume(&walk, cursor);
	grace_leave();
	if (next) {
		assert_non_null(name);
		assert_int_equal(name->len, strlen(next));
		assert_memory_equal(name->path, next, name->len);
	} else {
		assert_null(name);
	}
}

static void test_resume_after_removals(void **state)
{
	struct registry *registry = new_registry(100);
	struct registry_cursor cursor;

	(void)state;
	create(registry, "a/z");
	create(registry, "a/b/c/1");
	create(registry, "a/b/c/2");
	create(registry, "a/b/c/3");
	/* a a/b a/b/c a/b/c/3 a/b/c/2 a/b/c/1 a/z */
	registry_save(find(registry, "a/b/c/2"), &cursor);
	assert_true(registry_cursor_valid(&cursor));
	expect_resume(registry, NULL, &cursor, "a/b/c/1");
	expect_resume(registry, "a/b/c/2", &(struct registry_cursor){ 0 }, NULL);
	expect_resume(registry, "a/b/c", &cursor, "a/b/c/1");
	expect_resume(registry, "a/b/c/2", &cursor, NULL);
	expect_resume(registry, "a/z", &cursor, NULL); /* not of this walk */

	remove_path(registry, "a/b/c/2");
	expect_resume(registry, NULL, &cursor, "a/b/c/1");
	create(registry, "a/b/c/2"); /* another one: it is in front now */
	expect_resume(registry, NULL, &cursor, "a/b/c/1");
	remove_path(registry, "a/b/c/1");
	expect_resume(registry, NULL, &cursor, "a/z");
	expect_resume(registry, "a/b/c", &cursor, NULL);

	/* The whole branch goes, and comes again. */
	remove_path(registry, "a/b/c/2");
	remove_path(registry, "a/b/c/3");
	remove_path(registry, "a/b/c");
	expect_resume(registry, NULL, &cursor, "a/z");
	remove_path(registry, "a/b");
	expect_resume(registry, NULL, &cursor, "a/z");
	create(registry, "a/b/c/2");
	create(registry, "a/b/c/1");
	expect_resume(registry, NULL, &cursor, "a/z");
	expect_resume(registry, "a/b", &cursor, NULL);
	remove_path(registry, "a/z");
	expect_resume(registry, NULL, &cursor, NULL);
	registry_free(registry);
}

static void test_resume_of_metrics(void **state)
{
	struct registry *registry = new_registry(100);
	struct registry_cursor cursor;

	(void)state;
	create(registry, "1");
	create(registry, "2");
	registry_save(create(registry, "3"), &cursor);
	create(registry, "4");
	remove_path(registry, "3");
	expect_resume(registry, NULL, &cursor, "2");
	create(registry, "3/new");
	expect_resume(registry, NULL, &cursor, "2");
	expect_resume(registry, "3", &cursor, NULL); /* the root is another one now */
	registry_free(registry);
}

static void test_forged_cursors(void **state)
{
	struct registry *registry = new_registry(100);
	struct registry_walk walk;
	struct registry_cursor cursor;
	struct test_random random;

	(void)state;
	test_random_init(&random, 1);
	create(registry, "a/b/c");
	create(registry, "a/d");
	memset(&cursor, 0, sizeof(cursor));
	assert_false(registry_cursor_valid(&cursor));
	for (unsigned i = 0; i < 20000; i++) {
		registry_save(find(registry, i % 2 ? "a/b/c" : "a/d"), &cursor);
		for (unsigned j = 0; j < 1 + i % 4; j++) {
			/* Mostly where it hurts: lengths, depth, path, and the births that count. */
			size_t where = test_random_below(&random, i % 3 ? 12 : sizeof(cursor));

			((unsigned char *)&cursor)[where] =
				(unsigned char)test_random_next(&random);
		}
		if (i % 5 == 0) {
			cursor.born[i % PATH_MAX_SEGMENTS] = INT64_MAX;
		}
		registry_walk_init(&walk, registry, i % 7 ? NULL : find(registry, "a"),
				   (uint32_t)(i % 4));
		(void)registry_resume(&walk, &cursor);
	}
	registry_free(registry);
}

/*
 * The model: every path of up to LEVELS segments out of BRANCHES letters has a number, and a row in a table. Number 0 is "", the
 * parent of the metrics; the children of n are n * BRANCHES + 1 .. n * BRANCHES + BRANCHES.
 */
#define BRANCHES 4u
#define LEVELS 4u
#define PATHS (1u + 4u + 16u + 64u + 256u)

struct row {
	bool present;
	bool visited, all_along; /* of the walk under way */
	uint32_t id;
	int64_t born;
};

struct model {
	struct registry *registry;
	struct row rows[PATHS];
	struct test_random random;
	uint32_t n;
};

static size_t path_of(uint32_t number, char path[2 * LEVELS])
{
	uint32_t chain[LEVELS];
	size_t n = 0, len = 0;

	for (; number > 0; number = (number - 1) / BRANCHES) {
		chain[n++] = (number - 1) % BRANCHES;
	}
	while (n-- > 0) {
		path[len++] = (char)('a' + chain[n]);
		path[len++] = '/';
	}
	return len > 0 ? len - 1 : 0;
}

static uint32_t number_of(const char *path, size_t len)
{
	uint32_t number = 0;

	for (size_t i = 0; i < len; i += 2) {
		number = number * BRANCHES + 1 + (uint32_t)(path[i] - 'a');
	}
	return number;
}

static bool model_has_child(const struct model *model, uint32_t number)
{
	for (uint32_t i = number * BRANCHES + 1; i <= number * BRANCHES + BRANCHES && i < PATHS;
	     i++) {
		if (model->rows[i].present) {
			return true;
		}
	}
	return false;
}

static void model_create(struct model *model, uint32_t number)
{
	char path[2 * LEVELS];
	size_t len = path_of(number, path);
	struct name *name = NULL;

	registry_lock(model->registry);
	assert_int_equal(registry_create(model->registry, path, len,
					 (int64_t)test_random_below(&model->random, 5000), NULL,
					 NULL, &name),
			 0);
	registry_unlock(model->registry);
	for (; name; name = name->parent, number = (number - 1) / BRANCHES) {
		struct row *row = &model->rows[number];

		if (row->present) {
			assert_true(row->id == name->id && row->born == name->born);
			continue;
		}
		*row = (struct row){
			.present = true, .visited = row->visited, .id = name->id, .born = name->born
		};
		model->n++;
	}
	assert_int_equal(number, 0);
}

static void model_remove(struct model *model, uint32_t number)
{
	char path[2 * LEVELS + 1];

	if (!model->rows[number].present || model_has_child(model, number)) {
		return;
	}
	path[path_of(number, path)] = '\0';
	remove_path(model->registry, path);
	model->rows[number].present = false;
	model->rows[number].all_along = false;
	model->n--;
}

static void model_change(struct model *model)
{
	uint32_t number = 1 + (uint32_t)test_random_below(&model->random, PATHS - 1);

	if (test_random_below(&model->random, 5) < 2) {
		model_create(model, number);
	} else {
		model_remove(model, number);
	}
}

/* Below `number`, by birth, youngest first; each must be what the registry's walk meets next. Returns that. */
static struct name *check_below(struct model *model, const struct registry_walk *walk,
				struct name *name, uint32_t number)
{
	int64_t before = INT64_MAX;

	for (;;) {
		uint32_t best = 0;

		for (uint32_t i = number * BRANCHES + 1;
		     i <= number * BRANCHES + BRANCHES && i < PATHS; i++) {
			const struct row *row = &model->rows[i];

			if (row->present && row->born < before &&
			    (!best || row->born > model->rows[best].born)) {
				best = i;
			}
		}
		if (!best) {
			return name;
		}
		assert_non_null(name);
		assert_int_equal(number_of(name->path, name->len), best);
		assert_int_equal(name->id, model->rows[best].id);
		before = model->rows[best].born;
		name = check_below(model, walk, registry_next(walk, name), best);
	}
}

static void check_all(struct model *model)
{
	bool used[PATHS] = { false };
	struct registry_walk walk;

	assert_int_equal(registry_count(model->registry), model->n);
	registry_walk_init(&walk, model->registry, NULL, UINT32_MAX);
	assert_null(check_below(model, &walk, registry_first(&walk), 0));
	for (uint32_t i = 1; i < PATHS; i++) {
		char path[2 * LEVELS + 1];
		struct name *name;

		path[path_of(i, path)] = '\0';
		name = find(model->registry, path);
		assert_true(!name == !model->rows[i].present);
		if (name) {
			assert_true(name->id < PATHS && !used[name->id]);
			used[name->id] = true;
		}
	}
}

static bool is_below(uint32_t number, uint32_t root)
{
	while (number > root) {
		number = (number - 1) / BRANCHES;
	}
	return number == root;
}

static bool visit(struct model *model, struct name *name)
{
	struct row *row = &model->rows[number_of(name->path, name->len)];
	bool right = row->present && row->id == name->id && !row->visited;

	row->visited = true;
	return right;
}

/* A walk in pages of a few names with changes between them. */
static void check_paged_walk(struct model *model)
{
	uint32_t root =
		(uint32_t)test_random_below(&model->random, 1 + BRANCHES + BRANCHES * BRANCHES);
	char path[2 * LEVELS];
	size_t len = path_of(root, path);
	struct registry_cursor cursor;
	bool started = false, right = true;

	if (root > 0 && !model->rows[root].present) {
		return;
	}
	for (uint32_t i = 0; i < PATHS; i++) {
		model->rows[i].visited = false;
		model->rows[i].all_along = i > 0 && model->rows[i].present && is_below(i, root);
	}
	for (;;) {
		uint64_t page = 1 + test_random_below(&model->random, 6);
		struct registry_walk walk;
		struct name *name;

		grace_enter();
		name = registry_find(model->registry, path, len);
		if (root > 0 && !name) {
			grace_leave();
			break;
		}
		registry_walk_init(&walk, model->registry, name, UINT32_MAX);
		name = started ? registry_resume(&walk, &cursor) : registry_first(&walk);
		started = true;
		while (name) {
			right = visit(model, name) && right;
			if (--page == 0) {
				registry_save(name, &cursor);
				break;
			}
			name = registry_next(&walk, name);
		}
		grace_leave();
		assert_true(right);
		if (!name) {
			break;
		}
		for (uint64_t i = test_random_below(&model->random, 8); i > 0; i--) {
			model_change(model);
		}
	}
	for (uint32_t i = 0; i < PATHS; i++) {
		assert_true(!model->rows[i].all_along || model->rows[i].visited);
	}
}

static void test_model(void **state)
{
	static struct model model;

	(void)state;
	model = (struct model){ .registry = new_registry(PATHS) };
	test_random_init(&model.random, 2);
	for (unsigned round = 0; round < 300; round++) {
		for (unsigned i = 0; i < 20; i++) {
			model_change(&model);
		}
		check_all(&model);
		check_paged_walk(&model);
	}
	registry_free(model.registry);
}

/* Well beyond several doublings of the table. */
static void test_many(void **state)
{
	enum {
		MANY = 50000
	};
	struct registry *registry = new_registry(MANY + 1);
	char path[32];

	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(path, sizeof(path), "m/%u", i);
		assert_int_equal(create(registry, path)->id, i + 1);
	}
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(path, sizeof(path), "m/%u", i);
		assert_int_equal(find(registry, path)->id, i + 1);
	}
	assert_int_equal(create_with(registry, "n", 0, NULL, NULL, &(struct name *){ NULL }),
			 REGISTRY_E_FULL);
	registry_free(registry);
}

static int setup(void **state)
{
	(void)state;
	grace_register();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	grace_unregister();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),
		cmocka_unit_test(test_create_and_find),
		cmocka_unit_test(test_longest_path),
		cmocka_unit_test(test_births_increase),
		cmocka_unit_test(test_prepare),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_ids_again),
		cmocka_unit_test(test_walk_order_and_depth),
		cmocka_unit_test(test_walk_from_unlinked),
		cmocka_unit_test(test_resume_after_removals),
		cmocka_unit_test(test_resume_of_metrics),
		cmocka_unit_test(test_forged_cursors),
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
