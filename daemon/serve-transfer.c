/*
 * What exporting, importing and resetting ask for: the list of metrics, and own values that are set. Long ones are done some at a time
 * (struct serve_job).
 */
#include "daemon/serve.h"

#include "daemon/clock.h"
#include "daemon/connection.h"
#include "daemon/daemon.h"
#include "daemon/keep.h"
#include "daemon/worker.h"
#include "lib/engine/engine.h"
#include "lib/engine/keep.h"
#include "lib/names/path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TRANSFER_MAX_METRICS 65536u /* in an answer; whether they fit a frame is another matter */

/* ---- MetricList ---- */

struct metrics_draft {
	struct arena *arena;
	struct metric *metrics;
	size_t n, size;
	bool no_room;
};

static bool make_room(struct metrics_draft *draft)
{
	size_t size = draft->size > 0 ? draft->size * 2 : 64;
	struct metric *metrics;

	if (draft->n < draft->size) {
		return true;
	}
	metrics = arena_alloc(draft->arena, size * sizeof(*metrics));
	if (metrics == NULL) {
		return false;
	}
	if (draft->n > 0) {
		memcpy(metrics, draft->metrics, draft->n * sizeof(*metrics));
	}
	draft->metrics = metrics;
	draft->size = size;
	return true;
}

static void put_metric(struct metrics_draft *draft, const char *name, size_t len,
		       struct metric metric)
{
	char *copy = make_room(draft) ? arena_alloc(draft->arena, len) : NULL;

	if (copy == NULL) {
		draft->no_room = true;
		return;
	}
	memcpy(copy, name, len);
	metric.name = (struct text){ .at = copy, .len = len };
	draft->metrics[draft->n++] = metric;
}

static void put_declared(void *ctx, const char *name, size_t len,
			 const struct engine_metric *metric)
{
	put_metric(ctx, name, len,
		   (struct metric){
			   .kind = metric->kind == ENGINE_GAUGE ? KIND_GAUGE : KIND_COUNTER,
			   .max_counters = metric->max_counters,
			   .overflow = metric->overflow,
			   .expire_after_ms = (uint64_t)metric->expire_after_ns / 1000000,
		   });
}

static void put_counted(void *ctx, const struct engine_entry *entry)
{
	put_metric(ctx, entry->path, entry->len, (struct metric){ .kind = KIND_COUNTER });
}

static int compare(const void *a, const void *b)
{
	const struct metric *x = a, *y = b;
	size_t len = x->name.len < y->name.len ? x->name.len : y->name.len;
	int order = memcmp(x->name.at, y->name.at, len);

	return order != 0 ? order : (x->name.len > y->name.len) - (x->name.len < y->name.len);
}

/* By name, each once: the first n_declared are so already, and may be among the others too. */
static void arrange(struct metrics_draft *draft, size_t n_declared)
{
	size_t n = n_declared;

	for (size_t i = n_declared; i < draft->n; i++) {
		if (n_declared == 0 || bsearch(&draft->metrics[i], draft->metrics, n_declared,
					       sizeof(*draft->metrics), compare) == NULL) {
			draft->metrics[n++] = draft->metrics[i];
		}
	}
	draft->n = n;
	if (n > 0) {
		qsort(draft->metrics, n, sizeof(*draft->metrics), compare);
	}
}

void serve_metric_list(struct connection *connection, const struct request *request)
{
	struct worker *worker = connection->worker;
	struct engine *engine = worker->daemon->engine;
	struct metrics_draft draft = { .arena = &worker->out };
	struct engine_cursor cursor = { 0 };
	struct reply reply = { .id = request->id, .type = REPLY_METRICS };
	size_t n_declared;
	bool done = false;

	engine_metrics(engine, put_declared, &draft);
	n_declared = draft.n;
	(void)engine_walk(engine, "", 0, 1, TRANSFER_MAX_METRICS, &cursor, put_counted, &draft,
			  &done);
	if (draft.no_room || !done) {
		serve_error(connection, request->id, CODE_RESOURCE_EXHAUSTED,
			    "there are too many metrics to list them in one answer");
		return;
	}
	arrange(&draft, n_declared);
	reply.metrics = (struct metric_list){ .n_metrics = draft.n, .metrics = draft.metrics };
	connection_reply(connection, &reply);
}

/* ---- ImportCounters ---- */

struct import_job {
	struct serve_job job;
	struct import import;	    /* in job.in */
	size_t at;		    /* items before this one are done */
	struct serve_errors errors; /* in job.out */
};

static void import_some(struct connection *connection, const struct import *import, size_t at,
			size_t end, struct serve_errors *errors)
{
	struct worker *worker = connection->worker;
	const struct quota_time time = daemon_time();

	keep_note(worker);
	worker->turn_left -= end - at < worker->turn_left ? end - at : worker->turn_left;
	for (; at < end && !connection->lost; at++) {
		const struct import_item *item = &import->items[at];
		int r = engine_set(worker->engine, item->path.at, item->path.len, item->own, time);

		if (r != 0) {
			serve_errors_add(
				connection, errors, at, serve_engine_code(r),
				r == ENGINE_E_NEGATIVE
					? "a negative value of a counter that only grows; declare the metric as a gauge"
					: serve_engine_text(r, item->path));
		}
	}
}

static void imported(struct connection *connection, uint64_t id, const struct import *import,
		     const struct serve_errors *errors)
{
	struct worker *worker = connection->worker;
	const struct reply reply = {
		.id = id,
		.type = REPLY_IMPORTED,
		.imported = { .errors = errors->items, .n_errors = errors->n },
	};

	log_event(&worker->daemon->log, LOG_KIND_CONTROL, clock_monotonic_ns(), LOG_INFO,
		  &(struct log_about){ .id = LOG_ID_SET, .peer = connection->peer },
		  "set %zu own values", import->n_items - errors->n);
	connection_reply(connection, &reply);
}

static bool import_more(struct serve_job *job)
{
	/* It comes first in it. */
	struct import_job *self = (struct import_job *)job;
	size_t left = self->import.n_items - self->at;
	size_t end = self->at + (left < SERVE_TURN ? left : SERVE_TURN);

	if (!keep_reach_begin(job->connection->worker)) {
		return false;
	}
	import_some(job->connection, &self->import, self->at, end, &self->errors);
	keep_reach_end(job->connection->worker);
	self->at = end;
	if (end < self->import.n_items) {
		return false;
	}
	imported(job->connection, job->id, &self->import, &self->errors);
	return true;
}

static void begin_import(struct connection *connection, uint64_t id, const struct import *import)
{
	struct import_job *self = calloc(1, sizeof(*self));

	if (self == NULL) {
		serve_error(connection, id, CODE_RESOURCE_EXHAUSTED, "the daemon is out of memory");
		return;
	}
	self->job = (struct serve_job){ .id = id, .more = import_more };
	self->import = *import;
	serve_job_begin(connection, &self->job);
}

int serve_import(struct connection *connection, const struct request *request)
{
	const struct import *import = &request->import;
	struct serve_errors errors = { 0 };

	if (!serve_check_items(connection, request->id, import->n_items, "values")) {
		return SERVE_OK;
	}
	if (import->n_items <= SERVE_TURN) {
		if (!keep_reach_begin(connection->worker)) {
			return SERVE_E_LATER;
		}
		import_some(connection, import, 0, import->n_items, &errors);
		keep_reach_end(connection->worker);
		imported(connection, request->id, import, &errors);
	} else if (connection->worker->job != NULL) {
		return SERVE_E_LATER;
	} else {
		begin_import(connection, request->id, import);
	}
	return SERVE_OK;
}

/* ---- Reset ---- */

struct reset_job {
	struct serve_job job;
	struct text root; /* in job.in */
	struct engine_cursor cursor;
	uint64_t n; /* counters looked at */
};

/* What one turn is to set to 0. */
struct reset_part {
	struct arena *arena;
	struct text paths[SERVE_TURN];
	size_t n, n_seen;
	bool no_memory;
};

static void note_path(void *ctx, const struct engine_entry *entry)
{
	struct reset_part *part = ctx;
	char *path;

	part->n_seen++;
	if (entry->reading.own == 0) {
		return;
	}
	path = arena_alloc(part->arena, entry->len);
	if (path == NULL) {
		part->no_memory = true;
		return;
	}
	memcpy(path, entry->path, entry->len);
	part->paths[part->n++] = (struct text){ .at = path, .len = entry->len };
}

/* The next counters of the subtree. 0, or what the engine says. */
static int reset_some(struct reset_job *self, bool *ret_done)
{
	struct worker *worker = self->job.connection->worker;
	const struct quota_time time = daemon_time();
	struct reset_part part = { .arena = &worker->out };
	int r;

	keep_note(worker);
	arena_reset(&worker->out);
	r = engine_walk(worker->daemon->engine, self->root.at, self->root.len, UINT32_MAX,
			SERVE_TURN, &self->cursor, note_path, &part, ret_done);
	if (r == 0 && part.no_memory) {
		r = -ENOMEM;
	}
	for (size_t i = 0; i < part.n && r == 0; i++) {
		r = engine_set(worker->engine, part.paths[i].at, part.paths[i].len, 0, time);
	}
	self->n += part.n_seen;
	return r;
}

static bool reset_more(struct serve_job *job)
{
	/* It comes first in it. */
	struct reset_job *self = (struct reset_job *)job;
	struct connection *connection = job->connection;
	struct reply reply = { .id = job->id, .type = REPLY_RESET };
	bool is_done = false;
	int r;

	if (!keep_reach_begin(connection->worker)) {
		return false;
	}
	r = reset_some(self, &is_done);
	keep_reach_end(connection->worker);
	if (r != 0) {
		serve_error(connection, job->id, serve_engine_code(r), "%s",
			    serve_engine_text(r, self->root));
		return true;
	}
	if (!is_done) {
		return false;
	}
	log_event(&connection->worker->daemon->log, LOG_KIND_CONTROL, clock_monotonic_ns(),
		  LOG_INFO,
		  &(struct log_about){
			  .id = LOG_ID_SET, .peer = connection->peer, .path = self->root },
		  "reset %.*s and what is below it", (int)self->root.len, self->root.at);
	reply.reset.counters = self->n;
	connection_reply(connection, &reply);
	return true;
}

int serve_reset(struct connection *connection, const struct request *request)
{
	struct text root = request->reset;
	enum path_error fault = path_check(root.at, root.len, NULL);
	struct reset_job *self;

	if (fault != PATH_OK) {
		serve_error(connection, request->id, CODE_INVALID_ARGUMENT, "%s",
			    path_error_text(fault));
		return SERVE_OK;
	}
	if (connection->worker->job != NULL) {
		return SERVE_E_LATER;
	}
	self = calloc(1, sizeof(*self));
	if (self == NULL) {
		serve_error(connection, request->id, CODE_RESOURCE_EXHAUSTED,
			    "the daemon is out of memory");
		return SERVE_OK;
	}
	self->job = (struct serve_job){ .id = request->id, .more = reset_more };
	self->root = root;
	/* A counter of which all is held back looks like one that has nothing. */
	engine_flush(connection->worker->daemon->engine, clock_wall_ns());
	serve_job_begin(connection, &self->job);
	return SERVE_OK;
}
