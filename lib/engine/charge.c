#include "lib/engine/charge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/engine/keep.h"
#include "lib/engine/ledger.h"
#include "lib/engine/state.h"
#include "lib/engine/strict.h"
#include "lib/engine/worker.h"

/* What charging_run goes round again for. */
#define AGAIN INT32_MAX

/* ---- the request ---- */

static int check_items(const struct engine_charge_item *items, size_t n, int64_t *ret_sum,
		       size_t *ret_index)
{
	int64_t sum = 0;

	if (n == 0 || n > ENGINE_CHARGE_MAX_ITEMS) {
		*ret_index = n == 0 ? 0 : ENGINE_CHARGE_MAX_ITEMS;
		return ENGINE_E_AMOUNT;
	}
	for (size_t i = 0; i < n; i++) {
		if (items[i].n < 1 || items[i].n > ENGINE_AMOUNT_MAX ||
		    __builtin_add_overflow(sum, items[i].n, &sum)) {
			*ret_index = i;
			return ENGINE_E_AMOUNT;
		}
	}
	*ret_sum = sum;
	return 0;
}

int charging_init(struct charging *charging, struct engine_worker *worker,
		  const struct engine_charge_item *items, size_t n, const struct quota_time *time,
		  size_t *ret_index)
{
	int64_t sum = 0;
	int r = check_items(items, n, &sum, ret_index);

	/* Not the whole of it: the small arrays are large. */
	charging->targets = NULL;
	charging->asks = NULL;
	charging->trail = NULL;
	charging->needs = NULL;
	if (r != 0) {
		return r;
	}
	charging->worker = worker;
	charging->engine = worker->engine;
	charging->items = items;
	charging->n = n;
	charging->time = *time;
	charging->binding = NULL;
	charging->totals = true;
	charging->again = false;
	charging->sum = sum;
	charging->locked = false;
	charging->turn = false;
	if (n <= CHARGE_SMALL) {
		charging->targets = charging->small_targets;
		charging->asks = charging->small_asks;
		charging->trail = charging->small_trail;
		charging->needs = charging->small_needs;
		charging->steps_room = CHARGE_SMALL_STEPS;
	} else {
		charging->targets = malloc(n * sizeof(*charging->targets));
		charging->asks = malloc(n * ENGINE_MAX_PLANES * sizeof(*charging->asks));
		charging->steps_room = 0;
		if (!charging->targets || !charging->asks) {
			return -ENOMEM;
		}
	}
	for (size_t i = 0; i < n; i++) {
		charging->targets[i] = (struct target){ .n = items[i].n };
	}
	return 0;
}

void charging_deinit(struct charging *charging)
{
	if (charging->targets != charging->small_targets) {
		free(charging->targets);
		free(charging->asks);
		free(charging->trail);
		free(charging->needs);
	}
}

int charging_room(struct charging *charging)
{
	size_t steps;

	if (charging->targets == charging->small_targets) {
		return 0;
	}
	steps = quota_trail_len(charging->asks, charging->n_asks);
	if (steps <= charging->steps_room) {
		return 0;
	}
	free(charging->trail);
	free(charging->needs);
	charging->trail = malloc(steps * sizeof(*charging->trail));
	charging->needs = malloc(steps * sizeof(*charging->needs));
	charging->steps_room = charging->trail && charging->needs ? steps : 0;
	return charging->steps_room > 0 ? 0 : -ENOMEM;
}

/* ---- its counters ---- */

/* What a charge will read of a counter, asked for at once: among many counters none of it is at hand. */
static inline void ask_for(const struct engine *engine, uint32_t id)
{
	const struct base *base = tree_base(&engine->tree, id);

	__builtin_prefetch(tree_tally(&engine->tree, id), 1);
	if (base) {
		__builtin_prefetch(base, 1);
	}
	plane_ask_for(&engine->planes, id);
}

/*
 * A counter that is found by its path, or that an earlier round made for the path (which may be ENGINE_OTHER's, where the path itself
 * is never found).
 */
static bool find_target(struct charging *charging, size_t i)
{
	struct target *target = &charging->targets[i];
	struct engine *engine = charging->engine;
	struct name *name =
		registry_find(engine->registry, charging->items[i].path, charging->items[i].len);
	uint32_t life;

	if (name) {
		ask_for(engine, name->id);
		life = tree_life(&engine->tree, name->id);
		target->ref = (struct engine_ref){ name->id, life_ref(life) };
	} else {
		life = tree_life(&engine->tree, target->ref.id);
		if (life_ref(life) != target->ref.life) {
			return false;
		}
	}
	charging->strict = charging->strict || (life & LIFE_STRICT);
	charging->closed = charging->closed || (life & LIFE_CLOSED);
	return life & LIFE_LIVE;
}

/* False: not all; *ret_missing is the first. */
static bool find_targets(struct charging *charging, size_t *ret_missing)
{
	charging->strict = !strict_amount_is_small(charging->sum);
	charging->closed = false;
	for (size_t i = 0; i < charging->n; i++) {
		if (!find_target(charging, i)) {
			*ret_missing = i;
			return false;
		}
	}
	return true;
}

bool charge_known(struct engine *engine, const char *path, size_t len)
{
	bool known;

	grace_enter();
	known = registry_find(engine->registry, path, rules_metric_len(path, len)) != NULL;
	grace_leave();
	return known || metrics_find(&engine->metrics, path, len) ||
	       rules_limited(&engine->rules, path, len);
}

static int check_path(struct charging *charging, size_t i)
{
	const struct engine_charge_item *item = &charging->items[i];
	struct engine *engine = charging->engine;
	bool known;

	if (path_check(item->path, item->len, NULL) != PATH_OK) {
		return ENGINE_E_PATH;
	}
	registry_lock(engine->registry);
	known = charging->again || charge_known(engine, item->path, item->len);
	registry_unlock(engine->registry);
	return known ? 0 : ENGINE_E_NOT_FOUND;
}

static bool is_there(struct charging *charging, size_t i)
{
	bool there;

	grace_enter();
	there = find_target(charging, i);
	grace_leave();
	return there;
}

/* All from the first missing one on. No counter is made before it is known that no path is wrong. */
static int make_targets(struct charging *charging, size_t first, size_t *ret_index)
{
	int r = 0;

	for (size_t i = first; r == 0 && i < charging->n; i++) {
		*ret_index = i;
		r = is_there(charging, i) ? 0 : check_path(charging, i);
	}
	for (size_t i = first; r == 0 && i < charging->n; i++) {
		const struct engine_charge_item *item = &charging->items[i];

		*ret_index = i;
		if (!is_there(charging, i)) {
			r = engine_intern(charging->engine, item->path, item->len,
					  charging->time.wall_ns, &charging->targets[i].ref);
		}
	}
	return r;
}

/* ---- its limits ---- */

static int find_limits(struct charging *charging)
{
	struct engine *engine = charging->engine;

	charging->n_asks = 0;
	for (size_t i = 0; i < charging->n; i++) {
		struct limit *limits[ENGINE_MAX_PLANES];
		size_t n = plane_nearest(&engine->planes, &engine->tree,
					 charging->targets[i].ref.id, limits);

		if (ledger_reserve(charging->worker, charging->targets[i].ref.id) < 0 ||
		    tree_base_reserve(&engine->tree, charging->targets[i].ref.id) < 0) {
			return -ENOMEM;
		}
		for (size_t j = 0; j < n; j++) {
			charging->asks[charging->n_asks++] =
				(struct quota_item){ &limits[j]->node, charging->targets[i].n };
		}
	}
	return charging_room(charging);
}

/* ---- its totals ---- */

bool charge_add(struct engine *engine, uint32_t id, int64_t n)
{
	return (tree_grow(&engine->tree, id, n) & TREE_MET_EDGE) || strict_base_is_far(engine, id);
}

static void add_totals(struct charging *charging)
{
	struct fold_line *line = &charging->worker->fold;

	fold_begin(line);
	for (size_t i = 0; i < charging->n; i++) {
		uint32_t id = charging->targets[i].ref.id;
		int64_t n = charging->targets[i].n;

		ledger_write(charging->worker, id, n, 0, n);
		if (charge_add(charging->engine, id, n)) {
			charging->turn = true;
			charging->turn_ref = charging->targets[i].ref;
		}
	}
	fold_end(line);
}

/* ---- strict metrics ---- */

struct sum {
	uint32_t id;
	int64_t n;
};

static int by_id(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static bool sums_fit(const struct engine *engine, struct sum *sums, size_t n, bool own)
{
	qsort(sums, n, sizeof(*sums), by_id);
	for (size_t i = 0; i < n;) {
		uint32_t id = sums[i].id;
		int64_t sum = 0, after;
		int64_t is = own ? worker_own(engine, id)
				 : atomic_load_explicit(&tree_tally(&engine->tree, id)->total,
							memory_order_relaxed);

		for (; i < n && sums[i].id == id; i++) {
			sum += sums[i].n; /* at most the sum of all items */
		}
		if (__builtin_add_overflow(is, sum, &after)) {
			return false;
		}
	}
	return true;
}

/* Several items can meet in one counter. 0, ENGINE_E_OVERFLOW, -ENOMEM. */
static int check_totals(const struct charging *charging)
{
	const struct engine *engine = charging->engine;
	_cleanup_free_ struct sum *sums = NULL;
	size_t n = 0;

	if (charging->n <= 1) {
		return strict_fits(engine, charging->targets[0].ref.id, charging->sum)
			       ? 0
			       : ENGINE_E_OVERFLOW;
	}
	sums = malloc(charging->n * PATH_MAX_SEGMENTS * sizeof(*sums));
	if (!sums) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < charging->n; i++) {
		sums[n++] = (struct sum){ charging->targets[i].ref.id, charging->targets[i].n };
	}
	if (!sums_fit(engine, sums, n, true)) {
		return ENGINE_E_OVERFLOW;
	}
	n = 0;
	for (size_t i = 0; i < charging->n; i++) {
		uint32_t id = charging->targets[i].ref.id;

		for (; id != TREE_NONE; id = tree_parent(&engine->tree, id)) {
			sums[n++] = (struct sum){ id, charging->targets[i].n };
		}
	}
	return sums_fit(engine, sums, n, false) ? 0 : ENGINE_E_OVERFLOW;
}

/* The gate is open: who closes it holds the lock. */
static int decide_locked(struct charging *charging)
{
	struct engine *engine = charging->engine;
	int r;

	for (size_t i = 0; i < charging->n; i++) {
		uint32_t life = tree_life(&engine->tree, charging->targets[i].ref.id);

		if (life_ref(life) != charging->targets[i].ref.life) {
			return AGAIN;
		}
	}
	for (size_t i = 0; !strict_amount_is_small(charging->sum) && i < charging->n; i++) {
		strict_ensure(engine, charging->targets[i].ref.id);
	}
	r = check_totals(charging);
	if (r == 0) {
		r = find_limits(charging);
	}
	if (r == 0) {
		r = charging->decide(charging);
	}
	if (charging->turn) {
		strict_ensure(engine, charging->turn_ref.id);
		charging->turn = false;
	}
	return r;
}

static int run_locked(struct charging *charging)
{
	int r;

	registry_lock(charging->engine->registry);
	charging->locked = true;
	r = decide_locked(charging);
	charging->locked = false;
	registry_unlock(charging->engine->registry);
	return r;
}

/* ---- all of it ---- */

static void flush_for(struct charging *charging)
{
	state_count_own(&charging->worker->charge_flushes);
	flush_all(charging->engine, charging->time.wall_ns);
}

/* In a read section, which is left. */
static int run_once(struct charging *charging, bool *flushed, size_t *ret_index)
{
	struct engine *engine = charging->engine;
	size_t missing = 0;
	int r;

	if (gate_closed(&engine->gate)) {
		grace_leave();
		gate_wait(&engine->gate);
		return AGAIN;
	}
	if (!find_targets(charging, &missing)) {
		grace_leave();
		r = make_targets(charging, missing, ret_index);
		return r == 0 ? AGAIN : r;
	}
	if (charging->closed) {
		grace_leave();
		remove_wait(engine);
		return AGAIN;
	}
	r = find_limits(charging);
	if (r == 0 && !*flushed && !charging->again && verdict_near(charging) &&
	    flush_pending(engine)) {
		grace_leave();
		*flushed = true;
		flush_for(charging);
		return AGAIN;
	}
	if (r == 0 && charging->totals && charging->strict) {
		grace_leave();
		return run_locked(charging);
	}
	if (r == 0) {
		r = charging->decide(charging);
	}
	grace_leave();
	return r;
}

int charging_run(struct charging *charging, size_t *ret_index)
{
	bool flushed = false;
	int r;

	planes_set_time(&charging->engine->planes, &charging->time);
	worker_pause(charging->worker);
	do {
		grace_enter();
		r = run_once(charging, &flushed, ret_index);
	} while (r == AGAIN);
	worker_resume(charging->worker);
	if (charging->turn) {
		strict_turn(charging->worker, charging->turn_ref);
	}
	if (r == 0) {
		state_count_own(&charging->worker->charges_granted);
	} else if (r == ENGINE_E_REFUSED) {
		state_count_own(&charging->worker->charges_refused);
	}
	return r;
}

static int decide(struct charging *charging)
{
	int r = quota_try_charge_all(charging->asks, charging->n_asks, &charging->time,
				     charging->trail, &charging->outcome);

	if (r != 0) {
		verdict_refused(charging);
		return ENGINE_E_REFUSED;
	}
	add_totals(charging);
	if (__builtin_expect(charging->outcome.over_high || charging->outcome.shadow, 0)) {
		verdict_granted(charging);
	}
	return 0;
}

/* ---- again ---- */

void charging_force(struct charging *charging)
{
	for (size_t i = 0; i < charging->n_asks; i++) {
		plane_charge(plane_of(charging->asks[i].node), charging->asks[i].n,
			     &charging->time);
	}
}

static int decide_again(struct charging *charging)
{
	charging_force(charging);
	add_totals(charging);
	return 0;
}

int engine_charge_again(struct engine_worker *worker, const struct engine_charge *charge,
			size_t *ret_index)
{
	struct charging charging;
	size_t index = 0;
	int r = charging_init(&charging, worker, charge->items, charge->n, &charge->time, &index);

	if (r == 0) {
		charging.decide = decide_again;
		charging.again = true;
		r = charging_run(&charging, &index);
	}
	charging_deinit(&charging);
	if (r != 0 && ret_index) {
		*ret_index = index;
	}
	return r;
}

/* ---- dry runs ---- */

/* As charging_run, but nothing is made, and nothing decided. */
static int run_dry(struct charging *charging, size_t *ret_index)
{
	struct engine *engine = charging->engine;
	size_t missing;
	int r = 0;

	if (flush_pending(engine)) {
		flush_for(charging);
	}
	gate_enter(&engine->gate);
	if (!find_targets(charging, &missing)) {
		grace_leave();
		return dry_run_missing(charging, ret_index);
	}
	r = find_limits(charging);
	if (r == 0) {
		r = verdict_dry(charging) ? 0 : ENGINE_E_REFUSED;
	}
	grace_leave();
	return r;
}

int engine_charge(struct engine_worker *worker, const struct engine_charge *charge,
		  engine_binding_fn binding, void *ctx, size_t *ret_index)
{
	struct charging charging;
	size_t index = 0;
	int r = charging_init(&charging, worker, charge->items, charge->n, &charge->time, &index);

	if (r == 0) {
		charging.binding = binding;
		charging.ctx = ctx;
		charging.decide = decide;
		if (charge->dry_run) {
			worker_pause(worker);
			r = run_dry(&charging, &index);
			worker_resume(worker);
		} else {
			r = charging_run(&charging, &index);
		}
	}
	charging_deinit(&charging);
	if (r != 0 && r != ENGINE_E_REFUSED && ret_index) {
		*ret_index = index;
	}
	return r;
}
