/* lease: units that are charged before they are spent; and what is given back. */
#include "lib/engine/charge.h"
#include "lib/engine/intern.h"
#include "lib/engine/keep.h"
#include "lib/engine/ledger.h"
#include "lib/engine/state.h"
#include "lib/engine/strict.h"
#include "lib/engine/worker.h"

/* ---- leases ---- */

/* What is left of the least generous of those who refuse. */
static int64_t left_of(const struct charging *charging)
{
	int64_t left = INT64_MAX;

	for (size_t i = 0; i < charging->n_asks; i++) {
		struct quota_node *node = charging->asks[i].node;

		for (; node; node = atomic_load_explicit(&node->parent, memory_order_acquire)) {
			struct quota_judgement judgement;

			quota_judge(node, 1, &charging->time, &judgement);
			if (!judgement.shadow && judgement.left < left) {
				left = judgement.left;
			}
		}
	}
	return left;
}

static int64_t share_of(int64_t left, int64_t want)
{
	if (left / 2 >= want) {
		return want;
	}
	return left / 2 > 1 ? left / 2 : 1;
}

static int try_units(struct charging *charging, int64_t n)
{
	for (size_t i = 0; i < charging->n_asks; i++) {
		charging->asks[i].n = n;
	}
	return quota_try_charge_all(charging->asks, charging->n_asks, &charging->time,
				    charging->trail, &charging->outcome);
}

/* n units are charged. */
static void leased(struct charging *charging, int64_t n)
{
	uint32_t id = charging->targets[0].ref.id;

	plane_lease(&charging->engine->planes, &charging->engine->tree, id, n);
	ledger_write(charging->worker, id, 0, n, n);
	charging->targets[0].n = n;
}

/* Others may take what was left meanwhile: then half as many, in the end one. */
static int decide(struct charging *charging)
{
	struct engine *engine = charging->engine;
	uint32_t id = charging->targets[0].ref.id;
	int64_t n = share_of(left_of(charging), charging->sum);
	int r = plane_lease_reserve(&engine->planes, &engine->tree, id);

	if (r < 0) {
		return r;
	}
	while (try_units(charging, n) != 0) {
		if (n == 1) {
			verdict_refused(charging);
			return ENGINE_E_REFUSED;
		}
		n /= 2;
	}
	leased(charging, n);
	if (charging->outcome.over_high || charging->outcome.shadow) {
		verdict_granted(charging);
	}
	return 0;
}

static int decide_again(struct charging *charging)
{
	struct engine *engine = charging->engine;
	int r = plane_lease_reserve(&engine->planes, &engine->tree, charging->targets[0].ref.id);

	if (r < 0) {
		return r;
	}
	charging_force(charging);
	leased(charging, charging->sum);
	return 0;
}

int engine_lease_again(struct engine_worker *worker, const char *path, size_t len, int64_t units,
		       struct quota_time time)
{
	const struct engine_charge_item item = { .path = path, .len = len, .n = units };
	struct charging charging;
	size_t index;
	int r = charging_init(&charging, worker, &item, 1, &time, &index);

	if (r == 0) {
		charging.decide = decide_again;
		charging.again = true;
		charging.totals = false;
		r = charging_run(&charging, &index);
	}
	charging_deinit(&charging);
	return r;
}

int engine_lease(struct engine_worker *worker, const char *path, size_t len, int64_t want,
		 struct quota_time time, engine_binding_fn binding, void *ctx, int64_t *ret_granted)
{
	const struct engine_charge_item item = { .path = path, .len = len, .n = want };
	struct charging charging;
	size_t index;
	int r = charging_init(&charging, worker, &item, 1, &time, &index);

	if (r == 0) {
		charging.binding = binding;
		charging.ctx = ctx;
		charging.decide = decide;
		charging.totals = false;
		r = charging_run(&charging, &index);
	}
	if (r == 0) {
		*ret_granted = charging.targets[0].n;
	}
	charging_deinit(&charging);
	return r;
}

/* ---- what is given back, and what is spent ---- */

struct giving {
	struct engine_worker *worker;
	struct engine *engine;
	int64_t n;
	bool turn; /* `ref`'s metric came beyond the edge */
	struct engine_ref ref;
	int (*give)(struct giving *giving);
	int64_t growth; /* of the totals by it */
	bool gauge_only;
	bool or_ancestor; /* of a counter that was removed or never made: the nearest one's */
	bool again;	  /* it was given before, and is whatever there is now */
};

static int give_locked(struct giving *giving)
{
	struct engine *engine = giving->engine;
	uint32_t life = tree_life(&engine->tree, giving->ref.id);

	if (life_ref(life) != giving->ref.life) {
		return ENGINE_E_GONE;
	}
	strict_ensure(engine, giving->ref.id);
	if (!strict_fits(engine, giving->ref.id, giving->growth)) {
		return ENGINE_E_OVERFLOW;
	}
	return giving->give(giving);
}

/* ENGINE_OTHER before the ancestor itself: there was no room for the path, or else what is not there is looked for above it. */
static struct name *find_or_ancestor(const struct giving *giving, const char *path, size_t len)
{
	struct engine *engine = giving->engine;
	struct name *name = registry_find(engine->registry, path, len);

	while (!name && giving->or_ancestor && (len = path_parent(path, len)) > 0) {
		name = intern_find_other(engine, path, len);
		if (!name) {
			name = registry_find(engine->registry, path, len);
		}
	}
	return name;
}

/* In a read section, which is left. ENGINE_E_GONE: it is being removed or was meanwhile, or may be. */
static int give_once(struct giving *giving, const char *path, size_t len)
{
	struct engine *engine = giving->engine;
	const struct name *name = find_or_ancestor(giving, path, len);
	uint32_t life = name ? tree_life(&engine->tree, name->id) : 0;
	int r = 0;

	if (name) {
		giving->ref = (struct engine_ref){ name->id, life_ref(life) };
	}
	if (!name || !(life & LIFE_LIVE) || (life & LIFE_CLOSED)) {
		r = name ? ENGINE_E_GONE : ENGINE_E_NOT_FOUND;
	} else if (giving->gauge_only && !(life & LIFE_GAUGE)) {
		r = ENGINE_E_KIND;
	}
	if (r == 0) {
		r = ledger_reserve_up(giving->worker, giving->ref.id);
	}
	if (r == 0) {
		r = tree_base_reserve_up(&engine->tree, giving->ref.id);
	}
	if (r == 0 && giving->growth != 0 &&
	    ((life & LIFE_STRICT) || !strict_amount_is_small(giving->n))) {
		grace_leave();
		registry_lock(engine->registry);
		r = give_locked(giving);
		registry_unlock(engine->registry);
		return r;
	}
	if (r == 0) {
		r = giving->give(giving);
	}
	grace_leave();
	return r;
}

static int give_through_gate(struct giving *giving, const char *path, size_t len)
{
	gate_enter(&giving->engine->gate);
	return give_once(giving, path, len);
}

static int give(struct giving *giving, const char *path, size_t len, const struct quota_time *time)
{
	struct engine *engine = giving->engine;
	bool again = false;
	int r;

	if (path_check(path, len, NULL) != PATH_OK) {
		return ENGINE_E_PATH;
	}
	if (giving->n < 1 || giving->n > ENGINE_AMOUNT_MAX) {
		return ENGINE_E_AMOUNT;
	}
	planes_set_time(&engine->planes, time);
	worker_pause(giving->worker);
	r = give_through_gate(giving, path, len);
	while (r == ENGINE_E_GONE || (r == ENGINE_E_UNDERFLOW && giving->or_ancestor && !again)) {
		/*
		 * Who removes it holds the lock until nobody finds it any more, and until what was leased there is its parent's.
		 */
		remove_wait(engine);
		again = r == ENGINE_E_UNDERFLOW;
		r = give_through_gate(giving, path, len);
	}
	worker_resume(giving->worker);
	if (giving->turn) {
		strict_turn(giving->worker, giving->ref);
	}
	return r;
}

/* Takes n off the own value if it has as much, or again; of several who try, those whom it has enough for. */
static bool take_own(struct engine *engine, uint32_t id, int64_t n, bool again)
{
	_Atomic(uint64_t) *base = &tree_base(&engine->tree, id)->word;
	uint64_t is = atomic_load_explicit(base, memory_order_relaxed);

	do {
		if (!again && (int64_t)(is + worker_counted(engine, id)) < n) {
			return false;
		}
		RATION_HOOK();
	} while (!atomic_compare_exchange_weak_explicit(
		base, &is, is - (uint64_t)n, memory_order_relaxed, memory_order_relaxed));
	return true;
}

/*
 * The totals first, so that they never show more than the planes grant. The planes are not asked: own values are what was granted and
 * added, and each plane has of a counter's total what the total has.
 */
static int uncharge(struct giving *giving)
{
	struct engine *engine = giving->engine;
	uint32_t id = giving->ref.id;

	if (!take_own(engine, id, giving->n, giving->again)) {
		return ENGINE_E_UNDERFLOW;
	}
	ledger_write(giving->worker, id, -giving->n, 0, 0);
	fold_begin(&giving->worker->fold);
	giving->turn = tree_raise(&engine->tree, id, -giving->n) || strict_base_is_far(engine, id);
	plane_force(&engine->planes, &engine->tree, id, -giving->n);
	fold_end(&giving->worker->fold);
	return 0;
}

static int give_own(struct engine_worker *worker, const char *path, size_t len, int64_t n,
		    const struct quota_time *time, bool again)
{
	struct giving giving = {
		.worker = worker,
		.engine = worker->engine,
		.n = n,
		.growth = -n,
		.give = uncharge,
		.gauge_only = true,
		.again = again,
	};

	return give(&giving, path, len, time);
}

int engine_uncharge(struct engine_worker *worker, const char *path, size_t len, int64_t n,
		    struct quota_time time)
{
	return give_own(worker, path, len, n, &time, /* again= */ false);
}

int engine_uncharge_again(struct engine_worker *worker, const char *path, size_t len, int64_t n,
			  struct quota_time time)
{
	int r = give_own(worker, path, len, n, &time, /* again= */ true);

	if (r == ENGINE_E_NOT_FOUND) {
		struct engine_ref ref;

		r = engine_intern(worker->engine, path, len, time.wall_ns, &ref);
		if (r == 0) {
			r = give_own(worker, path, len, n, &time, /* again= */ true);
		}
	}
	return r;
}

/* Leased units by where they are kept: at the counter, or at ancestors if it was removed since. */
struct parts {
	size_t n;
	uint32_t ids[PATH_MAX_SEGMENTS];
	int64_t units[PATH_MAX_SEGMENTS];
};

static void put_back(const struct engine *engine, const struct parts *parts)
{
	for (size_t i = 0; i < parts->n; i++) {
		plane_lease(&engine->planes, &engine->tree, parts->ids[i], parts->units[i]);
	}
}

/* All that is given, or false. */
static bool take_units(const struct giving *giving, struct parts *parts)
{
	const struct engine *engine = giving->engine;
	int64_t left = giving->n;

	parts->n = 0;
	for (uint32_t id = giving->ref.id; left > 0 && id != TREE_NONE;
	     id = tree_parent(&engine->tree, id)) {
		int64_t units = plane_lease_take(&engine->planes, &engine->tree, id, left);

		if (units > 0) {
			parts->ids[parts->n] = id;
			parts->units[parts->n++] = units;
			left -= units;
		}
	}
	if (left > 0) {
		put_back(engine, parts);
	}
	return left == 0;
}

static int spend(struct giving *giving)
{
	struct engine *engine = giving->engine;
	struct parts parts;

	if (!take_units(giving, &parts)) {
		return ENGINE_E_UNDERFLOW;
	}
	fold_begin(&giving->worker->fold);
	for (size_t i = 0; i < parts.n; i++) {
		ledger_write(giving->worker, parts.ids[i], parts.units[i], -parts.units[i], 0);
		giving->turn |= charge_add(engine, parts.ids[i], parts.units[i]);
	}
	fold_end(&giving->worker->fold);
	return 0;
}

/* What becomes of units that are leased. */
static int give_leased(struct giving giving, const char *path, size_t len,
		       const struct quota_time *time)
{
	giving.engine = giving.worker->engine;
	giving.or_ancestor = true;
	return give(&giving, path, len, time);
}

int engine_lease_spend(struct engine_worker *worker, const char *path, size_t len, int64_t n,
		       struct quota_time time)
{
	return give_leased((struct giving){ .worker = worker, .n = n, .growth = n, .give = spend },
			   path, len, &time);
}

static int return_units(struct giving *giving)
{
	struct engine *engine = giving->engine;
	struct parts parts;

	if (!take_units(giving, &parts)) {
		return ENGINE_E_UNDERFLOW;
	}
	for (size_t i = 0; i < parts.n; i++) {
		ledger_write(giving->worker, parts.ids[i], 0, -parts.units[i], 0);
		plane_force(&engine->planes, &engine->tree, parts.ids[i], -parts.units[i]);
	}
	return 0;
}

static int forfeit(struct giving *giving)
{
	struct engine *engine = giving->engine;
	struct parts parts;

	if (!take_units(giving, &parts)) {
		return ENGINE_E_UNDERFLOW;
	}
	for (size_t i = 0; i < parts.n; i++) {
		plane_lease_forfeit(&engine->planes, &engine->tree, parts.ids[i], parts.units[i]);
	}
	return 0;
}

int engine_lease_forfeit(struct engine_worker *worker, const char *path, size_t len, int64_t n,
			 struct quota_time time)
{
	return give_leased((struct giving){ .worker = worker, .n = n, .give = forfeit }, path, len,
			   &time);
}

int engine_lease_return(struct engine_worker *worker, const char *path, size_t len, int64_t n,
			struct quota_time time)
{
	return give_leased(
		(struct giving){
			.worker = worker, .n = n, .give = return_units, .gauge_only = true },
		path, len, &time);
}
