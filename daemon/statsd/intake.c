#include "daemon/statsd/intake.h"

#include "daemon/clock.h"
#include "daemon/statsd/path.h"
#include "lib/engine/engine.h"
#include "lib/rcu/grace.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

int intake_init(struct intake *intake, size_t limit, const uint64_t seed[2])
{
	return statsd_names_init(&intake->names, limit, seed);
}

void intake_deinit(struct intake *intake)
{
	statsd_names_deinit(&intake->names);
	statsd_carry_deinit(&intake->carry);
}

void intake_reject(struct intake *intake, enum statsd_reason reason, const char *line, size_t len,
		   const struct statsd_sender *sender)
{
	stats_add(&intake->stats->rejected[reason], 1);
	statsd_complain(&intake->complaints, reason, line, len, sender, clock_coarse_ns());
}

static void reject(struct intake *intake, enum statsd_reason reason, const struct intake_line *line)
{
	intake_reject(intake, reason, line->at, line->len, line->sender);
}

/* ---- names that are new ---- */

static void forget_names(struct intake *intake)
{
	uint64_t before = intake->names.n_forgotten;

	statsd_names_forget(&intake->names);
	stats_add(&intake->stats->names_forgotten, intake->names.n_forgotten - before);
}

/* Other levels, other paths: what was learned before no longer holds. Acquire: pairs with the release in statsd_set_levels. */
static const struct statsd_levels *current_levels(struct intake *intake)
{
	const struct statsd_levels *levels =
		atomic_load_explicit(intake->levels, memory_order_acquire);

	grace_observe(levels);
	if (levels != NULL && levels->generation != intake->generation) {
		intake->generation = levels->generation;
		forget_names(intake);
	}
	return levels;
}

static void look_at_levels(struct intake *intake)
{
	grace_enter();
	(void)current_levels(intake);
	grace_leave();
}

static enum statsd_reason path_of(struct intake *intake, const struct statsd_key *key, char *path,
				  size_t *ret_len)
{
	enum statsd_reason reason;
	unsigned n_dropped = 0;

	grace_enter();
	reason = statsd_path(key->name, key->name_len, key->tags, key->tags_len,
			     current_levels(intake), path, ret_len, &n_dropped);
	grace_leave();
	stats_add(&intake->stats->tags_dropped, n_dropped);
	return reason;
}

/* The counter for a name that was accepted, from the engine. */
static enum statsd_reason intern(struct intake *intake, const struct statsd_key *key,
				 struct engine_ref *ret_ref)
{
	char path[PATH_MAX_BYTES];
	size_t len;
	enum statsd_reason reason = path_of(intake, key, path, &len);

	if (reason != STATSD_OK) {
		return reason;
	}
	stats_add(&intake->stats->names_learned, 1);
	/* The path is one: what is left is that there is no room for it, in the registry or in memory. */
	return engine_intern(intake->engine, path, len, clock_wall_ns(), ret_ref) == 0
		       ? STATSD_OK
		       : STATSD_cardinality;
}

/* Whether or not it can be kept. */
static enum statsd_reason learn(struct intake *intake, const struct statsd_key *key, uint32_t hash,
				struct engine_ref *ret_ref)
{
	enum statsd_reason reason = intern(intake, key, ret_ref);
	uint64_t before = intake->names.n_forgotten;

	if (reason == STATSD_OK) {
		(void)statsd_names_insert(&intake->names, key, hash, *ret_ref);
		stats_add(&intake->stats->names_forgotten, intake->names.n_forgotten - before);
	}
	return reason;
}

/* The counter was removed since: another one takes its place. */
static enum statsd_reason renew(struct intake *intake, const struct statsd_key *key, uint32_t hash,
				struct engine_ref *ret_ref)
{
	enum statsd_reason reason = intern(intake, key, ret_ref);
	/* After that, since names may have been forgotten over new levels. */
	struct statsd_name *name = statsd_names_find(&intake->names, key, hash);

	if (reason == STATSD_OK && name != NULL) {
		name->ref = *ret_ref;
	}
	return reason;
}

/* ---- adding ---- */

static enum statsd_reason reason_of(int error)
{
	switch (error) {
	case 0:
		return STATSD_OK;
	case ENGINE_E_NEGATIVE:
		return STATSD_negative;
	case ENGINE_E_OVERFLOW:
		return STATSD_out_of_range;
	default:
		return STATSD_cardinality; /* no memory for its slot */
	}
}

/* May the value be negative here? Asked where the carry hides that it is. */
static bool may_sink(struct intake *intake, const struct statsd_key *key)
{
	struct engine_metric metric = { 0 };
	size_t len = 0;

	while (len < key->name_len && key->name[len] != '.' && key->name[len] != '/') {
		len++;
	}
	return engine_metric(intake->engine, key->name, len, &metric) == 0 &&
	       metric.kind == ENGINE_GAUGE;
}

static int add_whole(struct intake *intake, struct engine_ref ref, int64_t whole)
{
	int r;

	engine_begin(intake->worker);
	r = engine_add(intake->worker, ref, whole);
	engine_end(intake->worker);
	return r;
}

/* With what was left over before; what is left over now is kept if it was added. */
static int add_fraction(struct intake *intake, const struct statsd_key *key,
			struct statsd_amount amount, struct engine_ref ref)
{
	struct statsd_carried *carried = statsd_carry_of(&intake->carry, ref);
	int r;

	if (carried == NULL) {
		return -ENOMEM;
	}
	if (amount.whole < 0 && !may_sink(intake, key)) {
		return ENGINE_E_NEGATIVE;
	}
	if (!statsd_amount_add(&amount, (struct statsd_amount){ 0, carried->fraction })) {
		return ENGINE_E_OVERFLOW;
	}
	r = add_whole(intake, ref, amount.whole);
	if (r == 0) {
		carried->fraction = amount.fraction;
	}
	return r;
}

static int add_one(struct intake *intake, const struct statsd_key *key, struct statsd_amount amount,
		   struct engine_ref ref)
{
	return amount.fraction != 0 ? add_fraction(intake, key, amount, ref)
				    : add_whole(intake, ref, amount.whole);
}

static void add_items(struct intake *intake);

/* With the others of its group. */
static inline void add_later(struct intake *intake, const struct intake_line *line, int64_t whole,
			     struct engine_ref ref)
{
	size_t i = intake->n_items++;

	intake->items[i] = (struct engine_item){ ref, whole };
	intake->lines[i] = *line;
	if (__builtin_expect(i + 1 == INTAKE_GROUP, 0)) {
		add_items(intake);
	}
}

/* By itself, after all that came before it: at the ends of the range of a total the order shows. */
static void add_now(struct intake *intake, const struct intake_line *line,
		    const struct statsd_key *key, uint32_t hash, struct statsd_amount amount,
		    struct engine_ref ref)
{
	enum statsd_reason reason;
	int r;

	if (intake->n_items > 0) {
		add_items(intake);
	}
	r = add_one(intake, key, amount, ref);
	reason = reason_of(r);
	if (r == ENGINE_E_GONE) {
		reason = renew(intake, key, hash, &ref);
		if (reason == STATSD_OK) {
			/* Gone again within microseconds: whoever removes it so fast does not want it counted. */
			reason = reason_of(add_one(intake, key, amount, ref));
		}
	}
	if (reason != STATSD_OK) {
		reject(intake, reason, line);
	} else {
		stats_add(&intake->stats->lines, 1);
	}
}

/* ---- lines that are looked at in full ---- */

/*
 * A line of which nothing is known: everything is checked. `again`: it was to be added with the others, and failed.
 */
static void take_in_full(struct intake *intake, const struct intake_line *line, bool again)
{
	struct statsd_line parsed;
	enum statsd_reason reason =
		statsd_line_parse(line->at, line->len, intake->scratch, &parsed);
	const struct statsd_key key = {
		.name = parsed.name,
		.tags = parsed.tags,
		.name_len = parsed.name_len,
		.tags_len = parsed.tags_len,
	};
	const struct statsd_name *name;
	struct engine_ref ref;
	uint32_t hash;

	if (reason != STATSD_OK) {
		reject(intake, reason, line);
		return;
	}
	hash = statsd_names_hash(&intake->names, &key);
	name = statsd_names_find(&intake->names, &key, hash);
	if (name != NULL) {
		ref = name->ref;
	} else {
		reason = learn(intake, &key, hash, &ref);
	}
	if (reason != STATSD_OK) {
		reject(intake, reason, line);
		return;
	}
	if (!again) {
		stats_add(&intake->stats->unknown_fields, parsed.n_unknown);
	}
	if (again || parsed.amount.fraction != 0) {
		add_now(intake, line, &key, hash, parsed.amount, ref);
	} else {
		add_later(intake, line, parsed.amount.whole, ref);
	}
}

static void take_slow(struct intake *intake, struct intake_line line)
{
	statsd_line_trim(&line.at, &line.len);
	if (line.len > 0) {
		take_in_full(intake, &line, /* again= */ false);
	}
}

/* ---- groups ---- */

struct failures {
	uint16_t items[INTAKE_GROUP];
	size_t n;
};

static void on_failed(void *ctx, size_t index, int error)
{
	struct failures *failures = ctx;

	(void)error;
	failures->items[failures->n++] = (uint16_t)index;
}

static void add_items(struct intake *intake)
{
	size_t n = intake->n_items;
	struct failures failures;

	failures.n = 0;
	engine_begin(intake->worker);
	(void)engine_add_many(intake->worker, intake->items, n, on_failed, &failures);
	engine_end(intake->worker);
	intake->n_items = 0;
	stats_add(&intake->stats->lines, n - failures.n);
	for (size_t i = 0; i < failures.n; i++) {
		struct intake_line line = intake->lines[failures.items[i]];

		statsd_line_trim(&line.at, &line.len);
		take_in_full(intake, &line, /* again= */ true);
	}
}

static inline void take_found(struct intake *intake, const struct intake_line *line,
			      const struct statsd_key *key, uint32_t hash,
			      struct statsd_amount amount, const struct statsd_name *name)
{
	if (__builtin_expect(name == NULL, 0)) {
		take_slow(intake, *line);
	} else if (__builtin_expect(amount.fraction != 0, 0)) {
		add_now(intake, line, key, hash, amount, name->ref);
	} else {
		add_later(intake, line, amount.whole, name->ref);
	}
}

static void end_searches(struct intake *intake)
{
	for (size_t i = 0; i < intake->n_searches; i++) {
		statsd_names_ask_entry(&intake->names, intake->searches[i].hash);
	}
	for (size_t i = 0; i < intake->n_searches; i++) {
		const struct intake_search *search = &intake->searches[i];

		take_found(intake, &search->line, &search->key, search->hash, search->amount,
			   statsd_names_find(&intake->names, &search->key, search->hash));
	}
	intake->n_searches = 0;
}

static void begin_search(struct intake *intake, const struct intake_line *line,
			 const struct statsd_key *key, uint32_t hash, struct statsd_amount amount)
{
	if (intake->n_searches == INTAKE_SEARCHES) {
		end_searches(intake);
	}
	intake->searches[intake->n_searches++] =
		(struct intake_search){ .line = *line, .key = *key, .amount = amount, .hash = hash };
	statsd_names_ask(&intake->names, hash);
}

void intake_settle(struct intake *intake)
{
	end_searches(intake);
	if (intake->n_items > 0) {
		add_items(intake);
	}
}

void intake_take(struct intake *intake, const char *bytes, size_t len,
		 const struct statsd_sender *sender)
{
	const char *at = bytes, *end = bytes + len;

	look_at_levels(intake);
	while (at < end) {
		struct intake_line line = { .at = at, .sender = sender };
		struct statsd_line quick;
		struct statsd_key key;
		uint32_t hash;

		if (__builtin_expect(!statsd_line_quick(&at, end, &quick), 0)) {
			at = scan_for(at, end, '\n', '\n');
			line.len = (size_t)(at++ - line.at);
			take_slow(intake, line);
			continue;
		}
		line.len = (size_t)(at - line.at) - (at[-1] == '\n');
		key = (struct statsd_key){ quick.name, quick.tags, quick.name_len, quick.tags_len };
		hash = statsd_names_hash(&intake->names, &key);
		if (intake->names.n < INTAKE_FEW) {
			take_found(intake, &line, &key, hash, quick.amount,
				   statsd_names_find(&intake->names, &key, hash));
		} else {
			begin_search(intake, &line, &key, hash, quick.amount);
		}
	}
}
