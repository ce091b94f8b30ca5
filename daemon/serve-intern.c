/*
 * Intern: a long one is done some at a time (struct serve_job), so that no other client waits for all of it.
 */
#include "daemon/serve.h"

#include "daemon/clock.h"
#include "daemon/connection.h"
#include "daemon/daemon.h"
#include "daemon/session.h"
#include "daemon/worker.h"
#include "lib/engine/engine.h"

#include <inttypes.h>
#include <stdlib.h>

struct intern_job {
	struct serve_job job;
	struct intern intern;	    /* in job.in */
	size_t at;		    /* paths before this one are done */
	struct serve_errors errors; /* in job.out */
};

/* The paths from `at` up to `end`. */
static void intern_some(struct connection *connection, const struct intern *intern, size_t at,
			size_t end, struct serve_errors *errors)
{
	struct worker *worker = connection->worker;
	int64_t now = clock_wall_ns();

	worker->turn_left -= end - at < worker->turn_left ? end - at : worker->turn_left;
	for (; at < end && !connection->lost; at++) {
		struct engine_ref ref = { .id = SESSION_NO_ID };
		struct text path = intern->paths[at];
		int r = engine_intern(worker->daemon->engine, path.at, path.len, now, &ref);

		if (r != 0) {
			ref.id = SESSION_NO_ID;
			serve_errors_add(connection, errors, at, serve_engine_code(r),
					 serve_engine_text(r, path));
		}
		session_bind(connection->session, intern->first_handle + (uint32_t)at, ref);
	}
}

static void answer(struct connection *connection, uint64_t id, const struct intern *intern,
		   const struct serve_errors *errors)
{
	const struct reply reply = {
		.id = id,
		.type = REPLY_INTERNED,
		.interned = { .errors = errors->items, .n_errors = errors->n },
	};

	stats_add(&connection->worker->stats.paths_interned, intern->n_paths - errors->n);
	keep_note(connection->worker);
	connection_reply(connection, &reply);
}

/* Room for its handles; else it was answered. */
static bool reserve(struct connection *connection, uint64_t id, const struct intern *intern)
{
	struct worker *worker = connection->worker;

	switch (session_reserve(connection->session, &worker->daemon->directory,
				(uint64_t)intern->first_handle + intern->n_paths,
				(uint64_t)worker->settings.max_handles)) {
	case 0:
		return true;
	case SESSION_E_HANDLE:
		serve_error(connection, id, CODE_OUT_OF_RANGE, "a handle must be below %" PRIi64,
			    worker->settings.max_handles);
		return false;
	case SESSION_E_FULL:
		serve_error(
			connection, id, CODE_RESOURCE_EXHAUSTED,
			"all sessions together have as many handles as they may have (max_handles_total)");
		return false;
	default:
		serve_error(connection, id, CODE_RESOURCE_EXHAUSTED, "the daemon is out of memory");
		return false;
	}
}

static bool more(struct serve_job *job)
{
	/* It comes first in it. */
	struct intern_job *self = (struct intern_job *)job;
	size_t left = self->intern.n_paths - self->at;
	size_t end = self->at + (left < SERVE_TURN ? left : SERVE_TURN);

	intern_some(job->connection, &self->intern, self->at, end, &self->errors);
	self->at = end;
	if (end < self->intern.n_paths) {
		return false;
	}
	answer(job->connection, job->id, &self->intern, &self->errors);
	return true;
}

static void begin_job(struct connection *connection, uint64_t id, const struct intern *intern)
{
	struct intern_job *self = calloc(1, sizeof(*self));

	if (self == NULL) {
		serve_error(connection, id, CODE_RESOURCE_EXHAUSTED, "the daemon is out of memory");
		return;
	}
	self->job = (struct serve_job){ .id = id, .more = more };
	self->intern = *intern;
	serve_job_begin(connection, &self->job);
}

int serve_intern(struct connection *connection, const struct request *request)
{
	const struct intern *intern = &request->intern;
	struct worker *worker = connection->worker;
	struct serve_errors errors = { 0 };
	bool is_long = intern->n_paths > SERVE_TURN;

	if (!serve_check_session(connection, request->id) ||
	    !serve_check_items(connection, request->id, intern->n_paths, "paths")) {
		return SERVE_OK;
	}
	if (is_long && worker->job != NULL) {
		return SERVE_E_LATER;
	}
	if (!reserve(connection, request->id, intern)) {
		return SERVE_OK;
	}
	if (!is_long) {
		intern_some(connection, intern, 0, intern->n_paths, &errors);
		answer(connection, request->id, intern, &errors);
	} else {
		begin_job(connection, request->id, intern);
	}
	return SERVE_OK;
}
