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
static enum statsd_reason learn(struct intake *intake, const struct intake_line *line,
				struct engine_ref *ret_ref)
{
	enum statsd_reason reason = intern(intake, &line->key, ret_ref);
	uint64_t before = intake->names.n_forgotten;

	if (reason == STATSD_OK) {
		(void)statsd_names_insert(&intake->names, &line->key, line->hash, *ret_ref);
		stats_add(&intake->stats->names_forgotten, intake->names.n_forgotten - before);
	}
	return reason;
}

/* A line of which nothing is known: everything is checked. False: it was rejected. */
static bool read_in_full(struct intake *intake, struct intake_line *line)
{
	struct statsd_line parsed;
	enum statsd_reason reason =
		statsd_line_parse(line->at, line->len, intake->scratch, &parsed);

	if (reason != STATSD_OK) {
		reject(intake, reason, line);
		return false;
	}
	line->key = (struct statsd_key){
		.name = parsed.name,
		.tags = parsed.tags,
		.name_len = parsed.name_len,
		.tags_len = parsed.tags_len,
	};
	line->amount = parsed.amount;
	line->n_unknown = parsed.n_unknown;
	line->hash = statsd_names_hash(&intake->names, &line->key);
	return true;
}

/* The counter of a line that was not found as it stands. False: it was rejected. */
static bool resolve(struct intake *intake, struct intake_line *line, struct engine_ref *ret_ref)
{
	const struct statsd_name *name;
	enum statsd_reason reason;

	statsd_line_trim(&line->at, &line->len);
	if (!read_in_full(intake, line)) {
		return false;
	}
	name = statsd_names_find(&intake->names, &line->key, line->hash);
	if (name != NULL) {
		*ret_ref = name->ref;
		return true;
	}
	reason = learn(intake, line, ret_ref);
	if (reason != STATSD_OK) {
		reject(intake, reason, line);
	}
	return reason == STATSD_OK;
}

/* The counter was removed since: another one takes its place. */
static enum statsd_reason renew(struct intake *intake, const struct intake_line *line,
				struct engine_ref *ret_ref)
{
	struct statsd_name *name = statsd_names_find(&intake->names, &line->key, line->hash);
	enum statsd_reason reason;

	if (name == NULL) {
		return learn(intake, line, ret_ref);
	}
	reason = intern(intake, &line->key, ret_ref);
	/* It may have been forgotten over new levels. */
	name = statsd_names_find(&intake->names, &line->key, line->hash);
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

/* With what was left over before; what is left over now is kept if it was added. */
static int add_fraction(struct intake *intake, const struct intake_line *line,
			struct engine_ref ref)
{
	struct statsd_carried *carried = statsd_carry_of(&intake->carry, ref);
	struct statsd_amount sum = line->amount;
	int r;

	if (carried == NULL) {
		return -ENOMEM;
	}
	if (sum.whole < 0 && !may_sink(intake, &line->key)) {
		return ENGINE_E_NEGATIVE;
	}
	if (!statsd_amount_add(&sum, (struct statsd_amount){ 0, carried->fraction })) {
		return ENGINE_E_OVERFLOW;
	}
	engine_begin(intake->worker);
	r = engine_add(intake->worker, ref, sum.whole);
	engine_end(intake->worker);
	if (r == 0) {
		carried->fraction = sum.fraction;
	}
	return r;
}

static int add_one(struct intake *intake, const struct intake_line *line, struct engine_ref ref)
{
	int r;

	if (line->amount.fraction != 0) {
		return add_fraction(intake, line, ref);
	}
	engine_begin(intake->worker);
	r = engine_add(intake->worker, ref, line->amount.whole);
	engine_end(intake->worker);
	return r;
}

/* One that could not be added with the others, for `error`. */
static void retry(struct intake *intake, struct intake_line *line, int error)
{
	enum statsd_reason reason;
	struct engine_ref ref;

	if (error == ENGINE_E_GONE) {
		reason = renew(intake, line, &ref);
		if (reason != STATSD_OK) {
			reject(intake, reason, line);
			return;
		}
		error = add_one(intake, line, ref);
	}
	/* Gone again within microseconds: whoever removes it that fast does not want it counted. */
	if (error != 0) {
		reject(intake, reason_of(error), line);
		return;
	}
	stats_add(&intake->stats->lines, 1);
}

/* What is added together: lines of whole amounts whose counters are known. */
struct batch {
	struct engine_item items[INTAKE_GROUP];
	uint16_t lines[INTAKE_GROUP]; /* of the group */
	size_t n;
	struct {
		uint16_t line;
		int error;
	} failed[INTAKE_GROUP];
	size_t n_failed;
};

static void on_failed(void *ctx, size_t index, int error)
{
	struct batch *batch = ctx;

	batch->failed[batch->n_failed].line = batch->lines[index];
	batch->failed[batch->n_failed++].error = error;
}

static void find_counters(struct intake *intake, struct batch *batch)
{
	for (size_t i = 0; i < intake->n; i++) {
		struct intake_line *line = &intake->group[i];
		const struct statsd_name *name =
			statsd_names_find(&intake->names, &line->key, line->hash);
		struct engine_ref ref;

		if (__builtin_expect(name != NULL, 1)) {
			ref = name->ref;
		} else if (!resolve(intake, line, &ref)) {
			continue;
		}
		stats_add(&intake->stats->unknown_fields, line->n_unknown);
		if (__builtin_expect(line->amount.fraction != 0, 0)) {
			retry(intake, line, add_fraction(intake, line, ref));
			continue;
		}
		batch->items[batch->n] = (struct engine_item){ ref, line->amount.whole };
		batch->lines[batch->n++] = (uint16_t)i;
	}
}

void intake_settle(struct intake *intake)
{
	struct batch batch;

	batch.n = batch.n_failed = 0;
	grace_enter();
	(void)current_levels(intake);
	grace_leave();
	for (size_t i = 0; i < intake->n; i++) {
		statsd_names_ask_entry(&intake->names, intake->group[i].hash);
	}
	find_counters(intake, &batch);
	engine_begin(intake->worker);
	(void)engine_add_many(intake->worker, batch.items, batch.n, on_failed, &batch);
	engine_end(intake->worker);
	stats_add(&intake->stats->lines, batch.n - batch.n_failed);
	for (size_t i = 0; i < batch.n_failed; i++) {
		retry(intake, &intake->group[batch.failed[i].line], batch.failed[i].error);
	}
	intake->n = 0;
}

/* ---- taking lines ---- */

static struct intake_line *push(struct intake *intake)
{
	if (intake->n == INTAKE_GROUP) {
		intake_settle(intake);
	}
	return &intake->group[intake->n++];
}

/* Of a shape that the quick reader does not take: at once, since the scratch is for one line. */
static void take_slow(struct intake *intake, const char *at, size_t len,
		      const struct statsd_sender *sender)
{
	struct intake_line line = { .at = at, .len = len, .sender = sender };
	struct engine_ref ref;
	int r;

	statsd_line_trim(&line.at, &line.len);
	if (line.len == 0 || !resolve(intake, &line, &ref)) {
		return;
	}
	stats_add(&intake->stats->unknown_fields, line.n_unknown);
	r = add_one(intake, &line, ref);
	retry(intake, &line, r);
}

void intake_take(struct intake *intake, const char *bytes, size_t len,
		 const struct statsd_sender *sender)
{
	const char *at = bytes, *end = bytes + len;

	while (at < end) {
		const char *start = at;
		struct statsd_line quick;
		struct intake_line *line;

		if (__builtin_expect(!statsd_line_quick(&at, end, &quick), 0)) {
			at = scan_for(start, end, '\n', '\n');
			take_slow(intake, start, (size_t)(at - start), sender);
			at++;
			continue;
		}
		line = push(intake);
		line->key = (struct statsd_key){
			.name = quick.name,
			.tags = quick.tags,
			.name_len = quick.name_len,
			.tags_len = quick.tags_len,
		};
		line->amount = quick.amount;
		line->at = start;
		line->len = (size_t)(at - start) - (at[-1] == '\n');
		line->n_unknown = 0;
		line->sender = sender;
		line->hash = statsd_names_hash(&intake->names, &line->key);
		statsd_names_ask(&intake->names, line->hash);
	}
}
