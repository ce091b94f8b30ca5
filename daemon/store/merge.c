#include "daemon/store/state.h"
#include "lib/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct bytes_view text(const char *at, size_t len)
{
	return (struct bytes_view){ .at = (const uint8_t *)at, .len = len };
}

/* ---- names ---- */

int store_born(struct store *store, const struct engine_born *born)
{
	struct row row = { .table = TABLE_COUNTER };
	uint32_t number = IMAGE_NO_ROW;
	int r;

	if (image_row(&store->image, born->id) != IMAGE_NO_ROW) {
		return 0;
	}
	r = rowset_reserve(&store->changes[TABLE_COUNTER], 1);
	if (r == 0) {
		r = image_new_row(&store->image, born->id, &number);
	}
	if (r < 0) {
		return r;
	}
	row.cells[0].number = number;
	row.cells[1].number =
		born->parent != ENGINE_NO_ID ? image_row(&store->image, born->parent) : 0;
	row.cells[2].bytes = text(born->path, born->len);
	row.cells[3].number = born->born_ns;
	r = rowset_add(&store->changes[TABLE_COUNTER], &row, /* gone= */ false);
	if (r < 0) {
		(void)image_free_row(&store->image, born->id, ENGINE_NO_ID);
	}
	return r;
}

int store_gone(struct store *store, uint32_t id, uint32_t parent)
{
	struct row row = { .table = TABLE_COUNTER };
	uint32_t number = image_row(&store->image, id);
	struct rowset *changes = &store->changes[TABLE_COUNTER];
	struct rowset_entry *entry;
	int r;

	if (number == IMAGE_NO_ROW) {
		return 0;
	}
	row.cells[0].number = number;
	r = rowset_reserve(changes, 1);
	if (r < 0) {
		return r;
	}
	entry = rowset_entry_new(&row, /* gone= */ true);
	if (entry == NULL) {
		return -ENOMEM;
	}
	r = image_free_row(&store->image, id, parent);
	if (r < 0) {
		free(entry);
		return r;
	}
	rowset_put(changes, entry);
	return 0;
}

/* ---- cuts ---- */

static int reserve_growth(struct store *store, const struct cut *cut)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < cut->n_growth; i++) {
		const struct engine_growth *growth = &cut->growth[i];

		if (image_knows(&store->image, growth->id)) {
			r = image_reserve(&store->image, cut->seat, growth);
		} else if (!image_is_old(&store->image, cut->seat, growth)) {
			r = -ENOENT;
		}
	}
	return r;
}

static void grow(struct store *store, const struct cut *cut, store_used_fn used, void *ctx)
{
	for (size_t i = 0; i < cut->n_growth; i++) {
		const struct engine_growth *growth = &cut->growth[i];

		if (!image_is_old(&store->image, cut->seat, growth)) {
			int64_t n = image_grow(&store->image, cut->seat, growth);

			if (n > 0 && used != NULL) {
				used(ctx, growth->id, n);
			}
		}
	}
}

static void session_row(const struct cut_session *session, struct row *row)
{
	*row = (struct row){ .table = TABLE_SESSION };
	row->cells[0].bytes = (struct bytes_view){ .at = session->id, .len = sizeof(session->id) };
	row->cells[1].number = session->over;
	row->cells[2].number = (int64_t)session->last_batch;
	row->cells[3].number = (int64_t)session->last_operation;
	row->cells[4].number = session->lifetime_ns;
	row->cells[5].bytes = session->agent;
	row->cells[6].bytes = session->answers;
	row->cells[7].bytes = session->leases;
}

/* What it held before is forgotten with it: what is told of what it holds from now on has this stamp or a later one. */
static int end_session(struct store *store, const struct row *row)
{
	struct rowset_entry *entry = rowset_entry_new(row, /* gone= */ true);
	int r = entry != NULL ? rowset_reserve(&store->ended, 1) : -ENOMEM;

	if (r == 0) {
		r = rowset_add(&store->changes[TABLE_SESSION], row, /* gone= */ true);
	}
	if (r < 0) {
		free(entry);
		return r;
	}
	rowset_entry_stamp(entry, ++store->ends);
	rowset_put(&store->ended, entry);
	return 0;
}

/* Answers and leases at NULL are what is to be written already; or nothing, if the session began anew; or what the file says (at NULL still). */
static void fill_in(const struct rowset_entry *before, struct row *row)
{
	static const uint8_t nothing[1];
	struct row old;

	if (before == NULL) {
		return;
	}
	rowset_entry_row(before, &old);
	for (unsigned i = 6; i < 8; i++) {
		if (row->cells[i].bytes.at == NULL) {
			row->cells[i].bytes = rowset_entry_gone(before)
						      ? (struct bytes_view){ .at = nothing }
						      : old.cells[i].bytes;
		}
	}
}

static int merge_session(struct store *store, const struct cut_session *session)
{
	struct rowset *changes = &store->changes[TABLE_SESSION];
	struct row row;

	session_row(session, &row);
	if (session->ended) {
		return end_session(store, &row);
	}
	fill_in(rowset_find(changes, &row), &row);
	return rowset_add(changes, &row, /* gone= */ false);
}

static void held_row(const struct cut_held *held, struct row *row)
{
	*row = (struct row){ .table = TABLE_HELD };
	row->cells[0].bytes =
		(struct bytes_view){ .at = held->session, .len = sizeof(held->session) };
	row->cells[1].bytes = text(held->path, held->len);
	row->cells[2].number = held->amount;
}

static struct rowset_entry *held_entry(const struct cut_held *held)
{
	struct row row;

	held_row(held, &row);
	return rowset_entry_new(&row, held->amount == 0 && !cut_held_is_detached(held));
}

/* All entries or none (-ENOMEM). */
static int make_held(const struct cut *cut, struct rowset_entry **entries)
{
	for (size_t i = 0; i < cut->n_held; i++) {
		entries[i] = held_entry(&cut->held[i]);
		if (entries[i] == NULL) {
			while (i > 0) {
				free(entries[--i]);
			}
			return -ENOMEM;
		}
	}
	return 0;
}

/* What nobody holds is told as a difference by each worker: they add up until the commit. */
static void put_held(struct store *store, const struct cut_held *held, struct rowset_entry *entry)
{
	struct rowset *changes = &store->changes[TABLE_HELD];
	struct rowset_entry *before = NULL;

	if (cut_held_is_detached(held)) {
		struct row row;

		held_row(held, &row);
		before = rowset_find(changes, &row);
	}
	if (before != NULL) {
		rowset_entry_add(before, held->amount);
		free(entry);
	} else {
		rowset_entry_stamp(entry, store->ends);
		rowset_put(changes, entry);
	}
}

int store_merge(struct store *store, const struct cut *cut, store_used_fn used, void *ctx)
{
	_cleanup_free_ struct rowset_entry **held =
		calloc(cut->n_held + 1, sizeof(struct rowset_entry *));
	int r = held != NULL ? reserve_growth(store, cut) : -ENOMEM;

	if (r == 0) {
		r = rowset_reserve(&store->changes[TABLE_HELD], cut->n_held);
	}
	for (size_t i = 0; r == 0 && i < cut->n_sessions; i++) {
		r = merge_session(store, &cut->sessions[i]);
	}
	if (r == 0) {
		r = make_held(cut, held);
	}
	if (r < 0) {
		return r;
	}
	grow(store, cut, used, ctx);
	for (size_t i = 0; i < cut->n_held; i++) {
		put_held(store, &cut->held[i], held[i]);
	}
	store->wall_ns = cut->wall_ns > store->wall_ns ? cut->wall_ns : store->wall_ns;
	return 0;
}

/* ---- the rest ---- */

static void metric_row(const struct store_metric *metric, struct row *row)
{
	*row = (struct row){ .table = TABLE_METRIC };
	row->cells[0].bytes = text(metric->name, metric->len);
	row->cells[1].number = metric->metric.kind;
	row->cells[2].number = metric->metric.max_counters;
	row->cells[3].number = metric->metric.overflow;
	row->cells[4].number = metric->metric.expire_after_ns;
}

static void window_values(const struct window *window, struct cell cells[3])
{
	cells[0].number = window->kind;
	/* What does not matter for the kind is the same for all of it: these are keys. */
	cells[1].number = window->kind == WINDOW_CALENDAR ? window->unit : 0;
	cells[2].number = window->kind == WINDOW_PER ? window->duration_ns : 0;
}

static void rule_row(const struct engine_rule *rule, struct row *row)
{
	const struct quota_limits *limits = &rule->limits;

	*row = (struct row){ .table = TABLE_RULE };
	row->cells[0].bytes = text(rule->pattern, rule->len);
	window_values(&rule->window, &row->cells[1]);
	row->cells[4].number = limits->max;
	row->cells[5].number = limits->high;
	row->cells[6].number = limits->low;
	row->cells[7].number = limits->min;
	row->cells[8].number = limits->shadow;
	row->cells[9].number = limits->rate;
	row->cells[10].number = limits->per_ns;
	row->cells[11].number = limits->burst;
}

/* What of `a` is not in `b`, or says something else there, becomes a change: to be put, or (`gone`) to be taken out where `b` has not its key. */
static int differences(struct rowset *changes, const struct rowset *a, const struct rowset *b,
		       bool gone)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->n; i++) {
		const struct rowset_entry *other;
		struct row row;

		rowset_entry_row(a->entries[i], &row);
		other = rowset_find(b, &row);
		if (other == NULL || (!gone && !rowset_entry_equal(a->entries[i], other))) {
			r = rowset_add(changes, &row, gone);
		}
	}
	return r;
}

/* `was` becomes what `is` says, and what differs is noted; or nothing happens (-ENOMEM). */
static int replace(struct rowset *changes, struct rowset *was, struct rowset *is)
{
	struct rowset delta = { 0 };
	int r = differences(&delta, was, is, /* gone= */ true);

	if (r == 0) {
		r = differences(&delta, is, was, /* gone= */ false);
	}
	if (r == 0) {
		r = rowset_move(changes, &delta);
	}
	if (r == 0) {
		struct rowset old = *was;

		*was = *is;
		*is = old;
	}
	rowset_deinit(&delta);
	return r;
}

int store_set_metrics(struct store *store, const struct store_metric *metrics, size_t n)
{
	struct rowset set = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct row row;

		metric_row(&metrics[i], &row);
		r = rowset_add(&set, &row, /* gone= */ false);
	}
	if (r == 0) {
		r = replace(&store->changes[TABLE_METRIC], &store->metrics, &set);
	}
	rowset_deinit(&set);
	return r;
}

int store_set_rules(struct store *store, const struct engine_rule *rules, size_t n)
{
	struct rowset set = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct row row;

		rule_row(&rules[i], &row);
		r = rowset_add(&set, &row, /* gone= */ false);
	}
	if (r == 0) {
		r = replace(&store->changes[TABLE_RULE], &store->rules, &set);
	}
	rowset_deinit(&set);
	return r;
}

int store_usage(struct store *store, const struct engine_usage *usage)
{
	struct row row = { .table = TABLE_USAGE };

	row.cells[0].bytes = text(usage->path, usage->len);
	window_values(&usage->window, &row.cells[1]);
	row.cells[4].number = usage->number;
	row.cells[5].number = usage->count;
	return rowset_add(&store->changes[TABLE_USAGE], &row, usage->count == 0);
}
