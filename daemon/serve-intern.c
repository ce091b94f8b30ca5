/*
 * Intern: a long one is done some at a time, so that no other client waits for all of it.
 *
 * A worker has one such job at most, with what it was decoded to; whoever comes with another one meanwhile keeps its frame and comes
 * again. So what long Interns cost in memory has a bound, and short ones of others pass between.
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
	struct connection *connection;
	uint64_t id;
	struct intern intern;	    /* in `in` */
	size_t at;		    /* paths before this one are done */
	struct serve_errors errors; /* in `out` */
	struct arena in, out;
};

/* The paths from `at` up to `end`. */
static void intern_some(struct connection *connection, const struct intern *intern, size_t at,
			size_t end, struct serve_errors *errors)
{
	struct worker *worker = connection->worker;
	int64_t now = clock_wall_ns();

	worker->intern_left -= end - at < worker->intern_left ? end - at : worker->intern_left;
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

/* ---- jobs ---- */

/* Takes the arena that the request was decoded into from the worker, which gets a new one. False: no memory. */
static bool begin_job(struct connection *connection, uint64_t id, const struct intern *intern)
{
	struct worker *worker = connection->worker;
	struct intern_job *job = calloc(1, sizeof(*job));

	if (job == NULL) {
		return false;
	}
	*job = (struct intern_job){
		.connection = connection,
		.id = id,
		.intern = *intern,
		.in = worker->in,
		.out = ARENA_INIT(worker->out.limit),
	};
	worker->in = (struct arena)ARENA_INIT(job->in.limit);
	worker->intern_job = job;
	connection->interning = true;
	return true;
}

static void end_job(struct worker *worker)
{
	struct intern_job *job = worker->intern_job;

	job->connection->interning = false;
	worker->intern_job = NULL;
	/* The worker's own are somebody else's by now, who may be taking the session over. */
	arena_deinit(&job->in);
	arena_deinit(&job->out);
	free(job);
}

void serve_intern_drop(struct connection *connection)
{
	if (connection->interning) {
		end_job(connection->worker);
	}
}

struct connection *serve_intern_connection(const struct worker *worker)
{
	return worker->intern_job != NULL ? worker->intern_job->connection : NULL;
}

void serve_intern_more(struct worker *worker)
{
	struct intern_job *job = worker->intern_job;
	struct arena out = worker->out;
	size_t left = job->intern.n_paths - job->at;
	size_t end = job->at + (left < SERVE_INTERN_TURN ? left : SERVE_INTERN_TURN);

	worker->out = job->out; /* where its errors are */
	intern_some(job->connection, &job->intern, job->at, end, &job->errors);
	job->at = end;
	if (end == job->intern.n_paths) {
		answer(job->connection, job->id, &job->intern, &job->errors);
	}
	job->out = worker->out;
	worker->out = out;
	if (end == job->intern.n_paths) {
		end_job(worker);
	}
}

int serve_intern(struct connection *connection, const struct request *request)
{
	const struct intern *intern = &request->intern;
	struct worker *worker = connection->worker;
	struct serve_errors errors = { 0 };
	bool is_long = intern->n_paths > SERVE_INTERN_TURN;

	if (!serve_check_session(connection, request->id) ||
	    !serve_check_items(connection, request->id, intern->n_paths, "paths")) {
		return SERVE_OK;
	}
	if (is_long && worker->intern_job != NULL) {
		return SERVE_E_LATER;
	}
	if (!reserve(connection, request->id, intern)) {
		return SERVE_OK;
	}
	if (!is_long) {
		intern_some(connection, intern, 0, intern->n_paths, &errors);
		answer(connection, request->id, intern, &errors);
	} else if (begin_job(connection, request->id, intern)) {
		worker_wake(worker);
	} else {
		serve_error(connection, request->id, CODE_RESOURCE_EXHAUSTED,
			    "the daemon is out of memory");
	}
	return SERVE_OK;
}
