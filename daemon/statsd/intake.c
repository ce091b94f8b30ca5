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

/* By itself. */
static void add_now(struct intake *intake, const struct intake_line *line,
		    const struct statsd_key *key, uint32_t hash, struct statsd_amount amount,
		    struct engine_ref ref)
{
	enum statsd_reason reason;
	int r;

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
	const struct statsd_name *name;
	struct engine_ref ref;
	uint32_t hash;

	if (reason != STATSD_OK) {
		reject(intake, reason, line);
		return;
	}
	hash = statsd_names_hash(&intake->names, &parsed.key);
	name = statsd_names_find(&intake->names, &parsed.key, hash);
	if (name != NULL) {
		ref = name->ref;
	} else {
		reason = learn(intake, &parsed.key, hash, &ref);
	}
	if (reason != STATSD_OK) {
		reject(intake, reason, line);
		return;
	}
	if (!again) {
		stats_add(&intake->stats->unknown_fields, parsed.n_unknown);
	}
	add_now(intake, line, &parsed.key, hash, parsed.amount, ref);
}

/* A line, or some without a colon and one that has it. */
static void take_slow(struct intake *intake, const struct intake_line *lines, bool again)
{
	const char *at = lines->at, *end = at + lines->len;

	for (const char *newline; at < end; at = newline + 1) {
		struct intake_line line = { .at = at, .sender = lines->sender };

		newline = scan_for(at, end, '\n', '\n');
		line.len = (size_t)(newline - at);
		statsd_line_trim(&line.at, &line.len);
		if (line.len > 0) {
			take_in_full(intake, &line, again);
		}
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

static void add_items(struct intake *intake, size_t first, size_t n)
{
	struct failures failures;

	if (n == 0) {
		return;
	}
	failures.n = 0;
	engine_begin(intake->worker);
	(void)engine_add_many(intake->worker, intake->items + first, n, on_failed, &failures);
	engine_end(intake->worker);
	stats_add(&intake->stats->lines, n - failures.n);
	for (size_t i = 0; i < failures.n; i++) {
		take_slow(intake, &intake->waits[first + failures.items[i]].line,
			  /* again= */ true);
	}
}

static void take_alone(struct intake *intake, const struct intake_wait *wait,
		       const struct statsd_name *name)
{
	if (name == NULL) {
		take_slow(intake, &wait->line, /* again= */ false);
	} else {
		add_now(intake, &wait->line, &wait->parsed.key, wait->hash, wait->parsed.amount,
			name->ref);
	}
}

/* Nothing is where it was once names were forgotten. */
static inline const struct statsd_name *found(const struct intake *intake,
					      const struct intake_wait *wait, uint64_t n_forgotten)
{
	if (__builtin_expect(wait->name != NULL && intake->names.n_forgotten == n_forgotten &&
				     statsd_name_is(wait->name, &wait->parsed.key),
			     1)) {
		return wait->name;
	}
	return statsd_names_find(&intake->names, &wait->parsed.key, wait->hash);
}

/*
 * Each step for all of them before the next one, so that they wait for memory together. What can't be added with the others
 * comes after all that came before it: at the ends of the range of a total the order shows.
 */
static void end_group(struct intake *intake, size_t n)
{
	size_t first = 0;

	uint64_t n_forgotten;

	look_at_levels(intake);
	n_forgotten = intake->names.n_forgotten;
	for (size_t i = 0; i < n; i++) {
		struct intake_wait *wait = &intake->waits[i];

		wait->name = statsd_names_ask_entry(&intake->names, &wait->parsed.key, wait->hash);
	}
	for (size_t i = 0; i < n; i++) {
		const struct intake_wait *wait = &intake->waits[i];
		const struct statsd_name *name = found(intake, wait, n_forgotten);

		if (__builtin_expect(name == NULL || wait->parsed.amount.fraction != 0, 0)) {
			add_items(intake, first, i - first);
			take_alone(intake, wait, name);
			first = i + 1;
		} else {
			intake->items[i] =
				(struct engine_item){ name->ref, wait->parsed.amount.whole };
		}
	}
	add_items(intake, first, n - first);
}

void intake_settle(struct intake *intake)
{
	if (intake->n_waits > 0) {
		end_group(intake, intake->n_waits);
		intake->n_waits = 0;
	}
}

void intake_take(struct intake *intake, const char *bytes, size_t len,
		 const struct statsd_sender *sender)
{
	const char *at = bytes, *end = bytes + len;
	size_t n = intake->n_waits;

	while (at < end) {
		struct intake_wait *wait = &intake->waits[n];
		const char *next = statsd_line_quick(at, end, &wait->parsed);

		if (__builtin_expect(next == NULL, 0)) {
			wait->parsed = (struct statsd_line){ .key = { .name = at } };
			next = scan_for(at, end, '\n', '\n');
			next += next < end;
		}
		wait->line = (struct intake_line){ at, (size_t)(next - at), sender };
		wait->hash = statsd_names_hash(&intake->names, &wait->parsed.key);
		statsd_names_ask(&intake->names, wait->hash);
		if (++n == INTAKE_GROUP) {
			end_group(intake, n);
			n = 0;
		}
		at = next;
	}
	intake->n_waits = n;
}
