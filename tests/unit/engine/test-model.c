/*
 * The engine against a plain model: random sequences of everything it can do, on one thread. Every result must be the model's, and after
 * an exact refresh every own, every total and every walk.
 *
 * The model: two metrics, one of each kind, with all paths of up to three segments of three letters below them; a node's own is a
 * number, its total the sum over the nodes below.
 */
#include "tests/unit/engine/support.h"

#define FANOUT 3
#define PER_METRIC (1 + FANOUT + FANOUT * FANOUT + FANOUT * FANOUT * FANOUT)
#define NODES (2 * PER_METRIC)
#define NONE (-1)
#define MAX_COUNTERS 50
#define METRIC_CEILING 30
#define STALE 32
#define N_WORKERS 3

struct node {
	char path[16];
	int parent, first_child; /* FANOUT of them, or NONE */
	bool gauge;
	bool there;
	int64_t own;
	uint64_t born; /* order of creation */
	struct engine_ref ref;
};

/* How often each result was met in all runs: a test that never sees an error tests little. */
static uint64_t met[ENGINE_E_CURSOR + 1];

static void expect(int r, int expected)
{
	assert_int_equal(r, expected);
	met[expected]++;
}

struct model {
	struct node nodes[NODES];
	uint64_t births;
	uint32_t counters;
	struct engine_ref stale[STALE];
	uint32_t n_stale;
};

static int build(struct model *model, int at, int parent, bool gauge, int *next, int depth)
{
	struct node *node = &model->nodes[at];

	node->parent = parent;
	node->gauge = gauge;
	node->first_child = NONE;
	if (depth < 3) {
		node->first_child = *next;
		*next += FANOUT;
		for (int i = 0; i < FANOUT; i++) {
			struct node *child = &model->nodes[node->first_child + i];

			size_t len = strlen(node->path);

			memcpy(child->path, node->path, len);
			child->path[len] = '/';
			child->path[len + 1] = (char)('a' + i);
			(void)build(model, node->first_child + i, at, gauge, next, depth + 1);
		}
	}
	return at;
}

static void model_init(struct model *model)
{
	int next = 2;

	*model = (struct model){ 0 };
	(void)snprintf(model->nodes[0].path, sizeof(model->nodes[0].path), "c");
	(void)snprintf(model->nodes[1].path, sizeof(model->nodes[1].path), "g");
	(void)build(model, 0, NONE, false, &next, 0);
	(void)build(model, 1, NONE, true, &next, 0);
	assert_int_equal(next, NODES);
}

static __int128 model_total(const struct model *model, int at)
{
	const struct node *node = &model->nodes[at];
	__int128 sum = node->there ? node->own : 0;

	for (int i = 0; node->first_child != NONE && i < FANOUT; i++) {
		sum += model_total(model, node->first_child + i);
	}
	return sum;
}

static bool fits(__int128 n)
{
	return n >= INT64_MIN && n <= INT64_MAX;
}

static bool is_leaf(const struct model *model, int at)
{
	const struct node *node = &model->nodes[at];

	for (int i = 0; node->first_child != NONE && i < FANOUT; i++) {
		if (model->nodes[node->first_child + i].there) {
			return false;
		}
	}
	return true;
}

static uint32_t of_metric(const struct model *model, bool gauge)
{
	uint32_t n = 0;

	for (int i = 0; i < NODES; i++) {
		n += model->nodes[i].there && model->nodes[i].gauge == gauge;
	}
	return n;
}

/* ---- operations ---- */

static void op_intern(struct model *model, struct bench *bench, int at)
{
	struct node *node = &model->nodes[at];
	struct engine_ref ref = { 0 };
	int chain[4], n = 0;
	int expected = 0;
	int r = engine_intern(bench->engine, node->path, strlen(node->path), 0, &ref);

	for (int i = at; i != NONE && !model->nodes[i].there; i = model->nodes[i].parent) {
		chain[n++] = i;
	}
	if (n > 0 && !node->gauge && of_metric(model, false) + (uint32_t)n > METRIC_CEILING) {
		expected = ENGINE_E_METRIC_FULL;
	} else if (n > 0 && model->counters + (uint32_t)n > MAX_COUNTERS) {
		expected = ENGINE_E_FULL;
	}
	expect(r, expected);
	if (r != 0) {
		return;
	}
	while (n > 0) {
		struct node *made = &model->nodes[chain[--n]];

		made->there = true;
		made->own = 0;
		made->born = ++model->births;
		made->ref = intern(bench->engine, made->path);
		model->counters++;
	}
	assert_int_equal(ref.id, node->ref.id);
	assert_int_equal(ref.life, node->ref.life);
}

static int64_t some_amount(struct test_random *random, bool gauge)
{
	uint64_t kind = test_random_below(random, 40);
	int64_t n = (int64_t)test_random_below(random, 8);

	if (kind == 0) {
		n = INT64_MAX - n;
	} else if (kind < 4) {
		n = (int64_t)(test_random_next(random) >> (1 + test_random_below(random, 40)));
	} else if (kind < 8) {
		n = (int64_t)test_random_below(random, 100);
	}
	if ((gauge && test_random_below(random, 2) == 0) || test_random_below(random, 50) == 0) {
		n = kind == 0 ? -n - 1 : -n;
	}
	return n;
}

static void op_add(struct model *model, struct bench *bench, struct test_random *random, int at)
{
	struct node *node = &model->nodes[at];
	struct engine_worker *worker = bench->workers[test_random_below(random, N_WORKERS)];
	int64_t n = some_amount(random, node->gauge);
	int expected = 0;

	if (!node->there) {
		return;
	}
	if (n < 0 && !node->gauge) {
		expected = ENGINE_E_NEGATIVE;
	} else if (!fits((__int128)node->own + n)) {
		expected = ENGINE_E_OVERFLOW;
	}
	for (int i = at; i != NONE && expected == 0; i = model->nodes[i].parent) {
		expected = fits(model_total(model, i) + n) ? 0 : ENGINE_E_OVERFLOW;
	}
	expect(try_add(worker, node->ref, n), expected);
	node->own += expected == 0 ? n : 0;
	assert_int_equal(worker_own(bench->engine, node->ref.id), node->own);
}

static void op_add_stale(struct model *model, struct bench *bench, struct test_random *random)
{
	if (model->n_stale > 0) {
		uint64_t n = model->n_stale < STALE ? model->n_stale : STALE;

		assert_int_equal(try_add(bench->workers[0],
					 model->stale[test_random_below(random, n)],
					 (int64_t)(test_random_next(random) >> 1)),
				 ENGINE_E_GONE);
	}
}

static void op_remove(struct model *model, struct bench *bench, int at)
{
	struct node *node = &model->nodes[at];
	int expected = 0;

	if (!node->there) {
		expected = ENGINE_E_NOT_FOUND;
	} else if (!is_leaf(model, at)) {
		expected = ENGINE_E_BUSY;
	} else if (node->parent != NONE &&
		   !fits((__int128)node->own + model->nodes[node->parent].own)) {
		expected = ENGINE_E_OVERFLOW;
	}
	expect(drop(bench->engine, node->path), expected);
	if (expected == 0) {
		if (node->parent != NONE) {
			model->nodes[node->parent].own += node->own;
		}
		node->there = false;
		model->counters--;
		model->stale[model->n_stale++ % STALE] = node->ref;
	}
}

static void op_change_worker(struct bench *bench, struct test_random *random)
{
	struct engine_worker **worker = &bench->workers[test_random_below(random, N_WORKERS)];

	engine_leave(*worker);
	assert_int_equal(engine_join(bench->engine, worker), 0);
}

/* ---- comparison ---- */

struct check {
	const struct model *model;
	bool seen[NODES];
	size_t n;
};

static int find(const struct model *model, const char *path, size_t len)
{
	for (int i = 0; i < NODES; i++) {
		if (strlen(model->nodes[i].path) == len &&
		    memcmp(model->nodes[i].path, path, len) == 0) {
			return i;
		}
	}
	return NONE;
}

static void check_entry(void *ctx, const struct engine_entry *entry)
{
	struct check *check = ctx;
	int at = find(check->model, entry->path, entry->len);
	const struct node *node = &check->model->nodes[at];

	assert_int_not_equal(at, NONE);
	assert_true(node->there);
	assert_false(check->seen[at]);
	assert_true(node->parent == NONE || check->seen[node->parent]);
	assert_int_equal(entry->reading.own, node->own);
	assert_int_equal(entry->reading.total, (int64_t)model_total(check->model, at));
	assert_int_equal(entry->reading.leaf, is_leaf(check->model, at));
	assert_int_equal(entry->reading.kind, node->gauge ? ENGINE_GAUGE : ENGINE_COUNTER);
	/* Among siblings the newest comes first. */
	for (int i = 0; i < NODES; i++) {
		const struct node *other = &check->model->nodes[i];

		assert_false(check->seen[i] && other->parent == node->parent &&
			     other->born < node->born);
	}
	check->seen[at] = true;
	check->n++;
}

static void compare(const struct model *model, struct bench *bench, struct test_random *random)
{
	struct check check = { .model = model };
	struct engine_cursor cursor = { 0 };
	bool done = false;

	(void)refresh(bench->engine, ENGINE_EXACT, 0);
	while (!done) {
		assert_int_equal(engine_walk(bench->engine, "", 0, UINT32_MAX,
					     test_random_below(random, 20) + 1, &cursor,
					     check_entry, &check, &done),
				 0);
	}
	assert_int_equal(check.n, model->counters);
	assert_int_equal(stats(bench->engine).counters, model->counters);
}

static void run(struct test_random *random, uint32_t batch)
{
	struct bench bench = bench_new(MAX_COUNTERS, N_WORKERS, batch);
	struct model model;

	model_init(&model);
	declare(bench.engine, "c", (struct engine_metric){ .max_counters = METRIC_CEILING });
	declare(bench.engine, "g", (struct engine_metric){ .kind = ENGINE_GAUGE });
	for (int i = 0; i < 3000; i++) {
		int at = (int)test_random_below(random, NODES);
		uint64_t op = test_random_below(random, 100);

		if (op < 15) {
			op_intern(&model, &bench, at);
		} else if (op < 80) {
			op_add(&model, &bench, random, at);
		} else if (op < 84) {
			op_add_stale(&model, &bench, random);
		} else if (op < 94) {
			op_remove(&model, &bench, at);
		} else if (op < 95) {
			op_change_worker(&bench, random);
		} else if (op < 98) {
			engine_flush(bench.engine, 0);
		} else {
			compare(&model, &bench, random);
		}
	}
	compare(&model, &bench, random);
	bench_free(&bench);
}

static void test_random_sequences(void **state)
{
	static const uint32_t batches[] = { 1, 2, 8, 32, 1000 };
	struct test_random random;

	(void)state;
	test_random_init(&random, 0);
	for (int round = 0; round < 400; round++) {
		run(&random, batches[round % 5]);
	}
	for (int i = ENGINE_OK; i <= ENGINE_E_BUSY; i++) {
		assert_true(met[i] > 0 || i == ENGINE_E_PATH || i == ENGINE_E_GONE ||
			    i == ENGINE_E_KIND);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_sequences),
	};

	return RUN(tests);
}
