/*
 * Get, Walk, Flush: what was counted.
 */
#include "daemon/serve.h"

#include "daemon/clock.h"
#include "daemon/connection.h"
#include "daemon/daemon.h"
#include "daemon/worker.h"
#include "lib/engine/engine.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WALK_PAGE_BYTES ((size_t)32 << 10) /* what a page is meant to have */
#define WALK_MIN_ENTRIES 32u
#define WALK_MAX_ENTRIES 1024u /* of the longest paths they still fit a frame */

static_assert(WALK_MAX_ENTRIES * 600u < MESSAGE_MAX_FRAME, "a page of 512-byte paths fits a frame");

static enum engine_consistency engine_consistency_of(enum consistency consistency)
{
	switch (consistency) {
	case CONSISTENCY_CACHED:
		return ENGINE_CACHED;
	case CONSISTENCY_EXACT:
		return ENGINE_EXACT;
	case CONSISTENCY_FRESH:
		break;
	}
	return ENGINE_FRESH;
}

static bool check_consistency(struct connection *connection, uint64_t id,
			      enum consistency consistency)
{
	if (consistency_known(consistency)) {
		return true;
	}
	serve_error(connection, id, CODE_INVALID_ARGUMENT,
		    "consistency %d does not exist; 0 is fresh, 1 cached, 2 exact",
		    (int)consistency);
	return false;
}

static struct view refresh(struct connection *connection, enum consistency consistency)
{
	struct engine_view view;

	engine_refresh(connection->worker->daemon->engine, engine_consistency_of(consistency),
		       clock_wall_ns(), &view);
	return (struct view){
		.present = true,
		.error_bound = (uint64_t)view.error_bound,
		.age_ms = view.age_ns > 0 ? ((uint64_t)view.age_ns + 999999) / 1000000 : 0,
	};
}

static struct value value_of(const struct engine_reading *reading)
{
	return (struct value){
		.kind = reading->kind == ENGINE_GAUGE ? KIND_GAUGE : KIND_COUNTER,
		.leaf = reading->leaf,
		.own = reading->own,
		.total = reading->total,
		.text = text_of(""),
	};
}

/* ---- Get ---- */

static void get_all(struct connection *connection, const struct get *get, struct value *values)
{
	struct engine *engine = connection->worker->daemon->engine;
	size_t n_texts = 0;

	for (size_t i = 0; i < get->n_paths; i++) {
		struct engine_reading reading;
		int r = engine_get(engine, get->paths[i].at, get->paths[i].len, &reading);

		if (r == 0) {
			values[i] = value_of(&reading);
			continue;
		}
		values[i] = (struct value){ .code = serve_engine_code(r), .text = text_of("") };
		if (n_texts++ < SERVE_MAX_TEXTS) {
			values[i].text = text_of(serve_engine_text(r, get->paths[i]));
		}
	}
}

void serve_get(struct connection *connection, const struct request *request)
{
	const struct get *get = &request->get;
	struct reply reply = { .id = request->id, .type = REPLY_VALUES };
	struct value *values;

	if (!check_consistency(connection, request->id, get->consistency) ||
	    !serve_check_items(connection, request->id, get->n_paths, "paths")) {
		return;
	}
	values = arena_alloc(&connection->worker->out, get->n_paths * sizeof(*values));
	if (values == NULL) {
		serve_error(connection, request->id, CODE_RESOURCE_EXHAUSTED,
			    "the daemon is out of memory");
		return;
	}
	reply.values.view = refresh(connection, get->consistency);
	get_all(connection, get, values);
	reply.values.values = values;
	reply.values.n_values = get->n_paths;
	connection_reply(connection, &reply);
}

/* ---- Walk ---- */

struct walk_job {
	SIMPLEQ_ENTRY(walk_job) link;
	uint64_t id;
	uint32_t depth;
	uint64_t left; /* entries that may still be sent */
	size_t per_page;
	struct view view; /* to go with the first page */
	struct engine_cursor cursor;
	size_t root_len;
	char root[];
};

struct page_draft {
	struct arena *arena;
	struct entry *entries;
	size_t n, size, bytes;
	bool no_memory;
};

static void add_entry(void *ctx, const struct engine_entry *from)
{
	struct page_draft *draft = ctx;
	char *path = arena_alloc(draft->arena, from->len);

	if (path == NULL || draft->n == draft->size) {
		draft->no_memory = true;
		return;
	}
	memcpy(path, from->path, from->len);
	draft->entries[draft->n++] = (struct entry){
		.path = { .at = path, .len = from->len },
		.depth = from->depth,
		.value = value_of(&from->reading),
	};
	draft->bytes += from->len + 24;
}

static void drop_job(struct connection *connection, struct walk_job *job)
{
	SIMPLEQ_REMOVE(&connection->walks, job, walk_job, link);
	connection->n_walks--;
	free(job);
}

void serve_walks_drop(struct connection *connection)
{
	while (!SIMPLEQ_EMPTY(&connection->walks)) {
		drop_job(connection, SIMPLEQ_FIRST(&connection->walks));
	}
}

/* Paths differ in length from tree to tree: ask for as many next time as would have filled this page. */
static size_t next_page_size(const struct page_draft *draft)
{
	size_t n = draft->n > 0 ? WALK_PAGE_BYTES / (draft->bytes / draft->n) : WALK_MIN_ENTRIES;

	return n < WALK_MIN_ENTRIES   ? WALK_MIN_ENTRIES
	       : n > WALK_MAX_ENTRIES ? WALK_MAX_ENTRIES
				      : n;
}

/* One page of one walk; true if it was the last. */
static bool send_page(struct connection *connection, struct walk_job *job)
{
	struct worker *worker = connection->worker;
	size_t limit = job->left < job->per_page ? (size_t)job->left : job->per_page;
	struct page_draft draft = { .arena = &worker->out, .size = limit };
	struct reply reply = { .id = job->id, .type = REPLY_PAGE, .page = { .view = job->view } };
	bool done = false;
	int r;

	draft.entries = arena_alloc(&worker->out, limit * sizeof(*draft.entries));
	if (draft.entries == NULL) {
		serve_error(connection, job->id, CODE_RESOURCE_EXHAUSTED,
			    "the daemon is out of memory");
		return true;
	}
	r = engine_walk(worker->daemon->engine, job->root, job->root_len, job->depth, limit,
			&job->cursor, add_entry, &draft, &done);
	if (r != 0 || draft.no_memory) {
		struct text root = { .at = job->root, .len = job->root_len };

		r = r != 0 ? r : -ENOMEM;
		serve_error(connection, job->id, serve_engine_code(r), "%s",
			    serve_engine_text(r, root));
		return true;
	}
	job->left -= draft.n;
	job->per_page = next_page_size(&draft);
	job->view.present = false;
	reply.page.entries = draft.entries;
	reply.page.n_entries = draft.n;
	reply.page.last = done || job->left == 0;
	if (reply.page.last && !done) {
		reply.page.cursor = (struct text){ .at = (const char *)job->cursor.bytes,
						   .len = job->cursor.len };
	}
	connection_reply(connection, &reply);
	return reply.page.last;
}

void serve_walks(struct connection *connection, unsigned max_pages)
{
	for (unsigned i = 0; i < max_pages && connection->n_walks > 0 && !connection->lost; i++) {
		struct walk_job *job = SIMPLEQ_FIRST(&connection->walks);

		if (send_page(connection, job)) {
			drop_job(connection, job);
		} else {
			SIMPLEQ_REMOVE_HEAD(&connection->walks, link);
			SIMPLEQ_INSERT_TAIL(&connection->walks, job, link);
		}
	}
}

static struct walk_job *job_new(const struct request *request)
{
	const struct walk *walk = &request->walk;
	struct walk_job *job = calloc(1, sizeof(*job) + walk->root.len);

	if (job != NULL) {
		job->id = request->id;
		job->depth = walk->depth;
		job->left = walk->limit != 0 ? walk->limit : UINT64_MAX;
		job->per_page = WALK_PAGE_BYTES / 64;
		job->cursor.len = (uint16_t)walk->cursor.len;
		memcpy(job->cursor.bytes, walk->cursor.at, walk->cursor.len);
		job->root_len = walk->root.len;
		memcpy(job->root, walk->root.at, walk->root.len);
	}
	return job;
}

void serve_walk(struct connection *connection, const struct request *request)
{
	const struct walk *walk = &request->walk;
	struct walk_job *job;

	if (!check_consistency(connection, request->id, walk->consistency)) {
		return;
	}
	if (connection->n_walks >= (uint64_t)connection->worker->settings.max_walks) {
		serve_error(
			connection, request->id, CODE_RESOURCE_EXHAUSTED,
			"%u walks are under way on this connection, and no more are allowed; wait for one to end",
			connection->n_walks);
		return;
	}
	if (walk->cursor.len > ENGINE_CURSOR_MAX) {
		serve_error(connection, request->id, CODE_INVALID_ARGUMENT, "%s",
			    serve_engine_text(ENGINE_E_CURSOR, walk->root));
		return;
	}
	job = job_new(request);
	if (job == NULL) {
		serve_error(connection, request->id, CODE_RESOURCE_EXHAUSTED,
			    "the daemon is out of memory");
		return;
	}
	job->view = refresh(connection, walk->consistency);
	SIMPLEQ_INSERT_TAIL(&connection->walks, job, link);
	connection->n_walks++;
	/* The first page at once: most walks have no other. */
	if (send_page(connection, job)) {
		drop_job(connection, job);
	}
}

/* ---- Flush ---- */

void serve_flush(struct connection *connection, const struct request *request)
{
	const struct reply reply = { .id = request->id, .type = REPLY_FLUSHED };

	engine_flush(connection->worker->daemon->engine, clock_wall_ns());
	if (request->flush.durable) {
		keep_wait(connection, request->id);
		return;
	}
	connection_reply(connection, &reply);
}
