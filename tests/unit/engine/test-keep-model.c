/*
 * Random work by several workers, with cuts between any two steps of it, of which some get lost: at every checkpoint what is kept is what the
 * workers had brought when their cuts were taken; and an engine that is restored from it in the end is as the first one.
 */
#include "tests/unit/engine/keeper.h"

#define WORKERS 3u
#define BATCH 8
#define METRICS 3u
#define PLACES 4u

static const char *const metrics[METRICS] = { "m", "g", "e" };

/* What one worker has brought to one metric. */
struct brought {
	int64_t own, ahead;
};

struct model {
	struct test_random random;
	struct engine *engine;
	struct engine_worker *workers[WORKERS];
	struct keeper *keeper;
	int64_t s; /* now */
	int64_t leased[METRICS][PLACES][PLACES];
	struct brought brought[WORKERS][METRICS]; /* until now */
	struct brought kept[WORKERS][METRICS];	  /* until the cut that was merged last */
	struct brought cut[WORKERS][METRICS];	  /* until the cut that was taken */
	struct keeper_cut cuts[WORKERS];
	bool lost[WORKERS];
	uint32_t w; /* of the step that is being done */
};

static int64_t below(struct model *model, int64_t n)
{
	return (int64_t)test_random_below(&model->random, (uint64_t)n);
}

static void prepare(struct engine *engine)
{
	declare(engine, "g", GAUGE);
	declare(engine, "e", (struct engine_metric){ .expire_after_ns = SECOND });
	set_max(engine, "m/*", 100000);
	set_max(engine, "g", 500);
	set_max(engine, "g/*/*", 100);
	set_rule(engine, rule_per("m/*", 1000, 10));
	set_rule(engine, rule_rate("m/*/*", 5, 1000));
	set_rule(engine, rule_per("m", 10000, 60));
}

struct place {
	uint32_t metric, x, y;
	char path[32];
};

static struct place place_of(uint32_t metric, uint32_t x, uint32_t y)
{
	struct place place = { .metric = metric, .x = x, .y = y };

	/* y 0 is the one above. */
	if (y == 0) {
		(void)snprintf(place.path, sizeof(place.path), "%s/%u", metrics[metric], x);
	} else {
		(void)snprintf(place.path, sizeof(place.path), "%s/%u/%u", metrics[metric], x, y);
	}
	return place;
}

static struct place random_place(struct model *model)
{
	uint32_t metric = (uint32_t)below(model, METRICS);
	uint32_t x = (uint32_t)below(model, PLACES);

	return place_of(metric, x, (uint32_t)below(model, PLACES));
}

static struct brought *brings(struct model *model, const struct place *place)
{
	return &model->brought[model->w][place->metric];
}

static int64_t *leased(struct model *model, const struct place *place)
{
	return &model->leased[place->metric][place->x][place->y];
}

/* ---- steps ---- */

static void step_add(struct model *model, struct engine_worker *worker)
{
	struct place place = random_place(model);
	int64_t n = below(model, 2 * BATCH);
	struct engine_ref ref;

	assert_int_equal(engine_intern(model->engine, place.path, strlen(place.path),
				       model->s * SECOND, &ref),
			 0);
	n = place.metric == 1 && below(model, 2) ? -n : n;
	if (try_add(worker, ref, n) == 0) {
		brings(model, &place)->own += n;
	}
}

static void step_charge(struct model *model, struct engine_worker *worker)
{
	struct place places[2] = { random_place(model), random_place(model) };
	struct engine_charge_item items[2];
	struct engine_charge charge = { .items = items,
					.n = (size_t)below(model, 2) + 1,
					.time = at(model->s) };
	int r;

	for (size_t i = 0; i < 2; i++) {
		items[i] = (struct engine_charge_item){ places[i].path, strlen(places[i].path),
							below(model, 30) + 1 };
	}
	r = below(model, 4) == 0 ? engine_charge_again(worker, &charge, NULL)
				 : engine_charge(worker, &charge, NULL, NULL, NULL);
	for (size_t i = 0; r == 0 && i < charge.n; i++) {
		brings(model, &places[i])->own += items[i].n;
	}
}

static void step_uncharge(struct model *model, struct engine_worker *worker)
{
	struct place place = random_place(model);
	int64_t n = below(model, 20) + 1;

	if (uncharge(worker, place.path, n) == 0) {
		brings(model, &place)->own -= n;
	}
}

static void step_lease(struct model *model, struct engine_worker *worker)
{
	struct place place = random_place(model);
	int64_t n = below(model, 30) + 1;
	size_t len = strlen(place.path);
	int r;

	if (below(model, 4) == 0) {
		r = engine_lease_again(worker, place.path, len, n, at(model->s));
	} else {
		r = engine_lease(worker, place.path, len, n, at(model->s), NULL, NULL, &n);
	}
	if (r == 0) {
		*leased(model, &place) += n;
		brings(model, &place)->ahead += n;
	}
}

static void step_spend(struct model *model, struct engine_worker *worker)
{
	struct place place = random_place(model);
	int64_t n = below(model, *leased(model, &place) + 1);
	size_t len = strlen(place.path);

	if (n == 0) {
		return;
	}
	if (below(model, 3) == 0) {
		/* They stay what it is ahead by. */
		assert_int_equal(engine_lease_forfeit(worker, place.path, len, n, at(model->s)), 0);
		*leased(model, &place) -= n;
		return;
	}
	if (below(model, 2)) {
		assert_int_equal(engine_lease_spend(worker, place.path, len, n, at(model->s)), 0);
		brings(model, &place)->own += n;
	} else if (engine_lease_return(worker, place.path, len, n, at(model->s)) != 0) {
		assert_int_not_equal(place.metric, 1);
		return;
	}
	*leased(model, &place) -= n;
	brings(model, &place)->ahead -= n;
}

static void step_set(struct model *model, struct engine_worker *worker)
{
	struct place place = random_place(model);
	struct engine_reading before = { 0 };
	int64_t n = below(model, 50);

	engine_flush(model->engine, model->s);
	(void)engine_get(model->engine, place.path, strlen(place.path), &before);
	assert_int_equal(engine_set(worker, place.path, strlen(place.path), n, at(model->s)), 0);
	brings(model, &place)->own += n - before.own;
}

static void step_drop(struct model *model)
{
	struct place place = random_place(model);

	(void)drop(model->engine, place.path);
}

static void step_rejoin(struct model *model)
{
	/* The last one's cut comes first, and then the next takes its seat. */
	engine_leave(model->workers[model->w]);
	assert_int_equal(engine_join(model->engine, &model->workers[model->w]), 0);
	assert_int_equal(engine_seat(model->workers[model->w]), model->w);
}

/* The counts of a window are of growth as it folds: so that it is the window it came in, all is folded first. */
static void step_time(struct model *model)
{
	struct quota_time time;

	engine_flush(model->engine, 0);
	model->s += below(model, 4);
	time = at(model->s);
	engine_set_time(model->engine, &time);
}

static void step(struct model *model)
{
	struct engine_worker *worker;

	model->w = (uint32_t)below(model, WORKERS);
	worker = model->workers[model->w];
	switch (below(model, 24)) {
	default:
		step_add(model, worker);
		break;
	case 1:
	case 2:
	case 3:
		step_charge(model, worker);
		break;
	case 4:
	case 5:
		step_uncharge(model, worker);
		break;
	case 6:
	case 7:
		step_lease(model, worker);
		break;
	case 8:
	case 9:
		step_spend(model, worker);
		break;
	case 10:
		step_set(model, worker);
		break;
	case 11:
	case 12:
		step_drop(model);
		break;
	case 13:
		(void)engine_expire(model->engine, model->s * SECOND, 100);
		break;
	case 14:
		engine_flush(model->engine, 0);
		break;
	case 15:
		step_rejoin(model);
		break;
	}
}

static void steps(struct model *model, int64_t n)
{
	while (n-- > 0) {
		step(model);
	}
}

/* ---- checkpoints ---- */

static void check_kept(const struct model *model)
{
	struct brought is[METRICS] = { 0 }, should[METRICS] = { 0 };

	for (uint32_t id = 0; id < KEEPER_IDS; id++) {
		const struct keeper_counter *counter = &model->keeper->counters[id];

		for (uint32_t i = 0; counter->known && i < METRICS; i++) {
			if (counter->path[0] == metrics[i][0]) {
				is[i].own += counter->own;
				is[i].ahead += counter->ahead;
			}
		}
	}
	for (uint32_t w = 0; w < WORKERS; w++) {
		for (uint32_t i = 0; i < METRICS; i++) {
			should[i].own += model->kept[w][i].own;
			should[i].ahead += model->kept[w][i].ahead;
		}
	}
	for (uint32_t i = 0; i < METRICS; i++) {
		assert_int_equal(is[i].own, should[i].own);
		assert_int_equal(is[i].ahead, should[i].ahead);
	}
}

/* With work going on between its steps, unless `n` is 0; some cuts get lost if `lose`. */
static void checkpoint(struct model *model, int64_t n, bool lose)
{
	keeper_begin(model->keeper);
	steps(model, below(model, n + 1));
	for (uint32_t w = 0; w < WORKERS; w++) {
		keeper_cut(&model->cuts[w], model->workers[w], model->lost[w], model->s * SECOND);
		memcpy(model->cut[w], model->brought[w], sizeof(model->cut[w]));
		model->lost[w] = false;
		steps(model, below(model, n + 1));
	}
	keeper_births(model->keeper);
	steps(model, below(model, n + 1));
	for (uint32_t w = 0; w < WORKERS; w++) {
		/* What is gone has its last growth in this cut: it can't be done with before that is merged. */
		if (lose && model->keeper->n_due == 0 && below(model, 3) == 0) {
			model->lost[w] = true;
		} else {
			keeper_merge(model->keeper, &model->cuts[w]);
			memcpy(model->kept[w], model->cut[w], sizeof(model->kept[w]));
		}
	}
	keeper_end(model->keeper);
	check_kept(model);
}

/* All is merged: of the window that goes on no less is kept than was used. */
static void check_windows(struct model *model)
{
	struct quota_time time = at(model->s);

	for (uint32_t id = 0; id < KEEPER_IDS; id++) {
		const struct keeper_counter *counter = &model->keeper->counters[id];
		struct limit *limit =
			counter->known ? plane_first(&model->engine->planes, id) : NULL;

		for (; limit; limit = plane_next(limit)) {
			struct window window = quota_window(&limit->node);
			int64_t used = keeper_usage(limit, &time);

			if (window.kind != WINDOW_PER || used == 0) {
				continue;
			}
			assert_int_equal(limit->kept.at, window_number(&window, time.wall_ns));
			assert_true(kept_count(&limit->node, &limit->kept) >= used);
		}
	}
}

/* What leases have is theirs again, and what had been forfeited is not: it keeps no counter. */
static void check_leases(struct model *model, struct engine *engine)
{
	struct engine_worker *worker;

	assert_int_equal(engine_join(engine, &worker), 0);
	for (uint32_t i = 0; i < METRICS * PLACES * PLACES; i++) {
		struct place place =
			place_of(i / PLACES / PLACES, i / PLACES % PLACES, PLACES - 1 - i % PLACES);
		int64_t n = *leased(model, &place);
		size_t len = strlen(place.path);

		if (n > 0) {
			assert_int_equal(drop(engine, place.path), ENGINE_E_BUSY);
			assert_int_equal(
				engine_lease_forfeit(worker, place.path, len, n, at(model->s)), 0);
		}
		if (engine_get(engine, place.path, len, &(struct engine_reading){ 0 }) == 0) {
			assert_int_equal(drop(engine, place.path), 0);
		}
	}
	engine_leave(worker);
}

static void restore_leases(struct model *model, struct engine *engine)
{
	for (uint32_t i = 0; i < METRICS * PLACES * PLACES; i++) {
		struct place place = place_of(i / PLACES / PLACES, i / PLACES % PLACES, i % PLACES);
		int64_t n = *leased(model, &place);

		if (n > 0) {
			assert_int_equal(
				engine_restore_lease(engine, place.path, strlen(place.path), n), 0);
		}
	}
}

static void check_restored(struct model *model)
{
	struct engine *engine = make_kept(1000, WORKERS, BATCH);
	struct quota_time now = at(model->s), later = at(model->s + below(model, 8));

	engine_flush(model->engine, 0);
	engine_usage_settle(model->engine, &now);
	prepare(engine);
	keeper_restore(model->keeper, engine, later);
	restore_leases(model, engine);
	keeper_same(model->engine, engine, later);
	check_leases(model, engine);
	assert_null(engine_free(engine));
}

static void run(uint64_t salt)
{
	struct model *model = calloc(1, sizeof(*model));

	assert_non_null(model);
	test_random_init(&model->random, salt);
	model->s = 1000;
	model->engine = make_kept(1000, WORKERS, BATCH);
	prepare(model->engine);
	(void)engine_restored(model->engine, at(model->s));
	model->keeper = keeper_new(model->engine);
	for (uint32_t w = 0; w < WORKERS; w++) {
		assert_int_equal(engine_join(model->engine, &model->workers[w]), 0);
	}
	for (int i = 0; i < 60; i++) {
		steps(model, below(model, 100));
		checkpoint(model, 20, true);
		if (below(model, 3) == 0) {
			checkpoint(model, 0, false);
			check_windows(model);
			step_time(model);
		}
	}
	/* Twice: what was gone when the first began is done with. */
	checkpoint(model, 0, false);
	checkpoint(model, 0, false);
	check_restored(model);
	for (uint32_t w = 0; w < WORKERS; w++) {
		engine_leave(model->workers[w]);
	}
	assert_null(engine_free(model->engine));
	free(model->keeper);
	free(model);
}

static void test_model(void **state)
{
	(void)state;
	for (uint64_t salt = 0; salt < 30; salt++) {
		run(salt);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_model) };

	return RUN(tests);
}
