/*
 * Reload: asked here, done by the main thread, and answered here again.
 */
#include "daemon/serve.h"

#include "daemon/clock.h"
#include "daemon/connection.h"
#include "daemon/daemon.h"
#include "daemon/reload-desk.h"
#include "daemon/worker.h"

#include <stdlib.h>
#include <string.h>

void serve_reload(struct connection *connection, const struct request *request)
{
	struct worker *worker = connection->worker;
	struct reload_job *job;

	if (connection->reload != NULL) {
		serve_error(connection, request->id, CODE_FAILED_PRECONDITION,
			    "a reload that was asked for on this connection is under way");
		return;
	}
	job = calloc(1, sizeof(*job));
	if (job != NULL) {
		job->letter = worker_letter_reloaded(job);
	}
	if (job == NULL || job->letter == NULL) {
		(void)reload_job_free(job);
		serve_error(connection, request->id, CODE_RESOURCE_EXHAUSTED,
			    "the daemon is out of memory");
		return;
	}
	job->worker = worker;
	job->connection = connection;
	job->id = request->id;
	connection->reload = job;
	log_peer(&worker->daemon->log, LOG_KIND_CONTROL, clock_monotonic_ns(), LOG_INFO,
		 connection->peer, "asks for a reload");
	reload_desk_bring(&worker->daemon->reload_desk, job);
}

void serve_reload_drop(struct connection *connection)
{
	if (connection->reload != NULL) {
		connection->reload->connection = NULL;
		connection->reload = NULL;
	}
}

/* The texts of one kind, valid UTF-8; false: no memory. */
static bool list(struct arena *arena, struct reload_told *told, char kind, size_t n,
		 const struct text **ret_texts)
{
	struct text *texts = arena_alloc(arena, (n + 1) * sizeof(*texts));
	size_t done = 0;

	if (texts == NULL) {
		return false;
	}
	for (char *at = told->bytes; at < told->bytes + told->len; at += strlen(at) + 1) {
		if (*at == kind && done < n) {
			texts[done++] = text_of(at + 1);
		}
	}
	*ret_texts = texts;
	return true;
}

static void answer(struct connection *connection, struct reload_job *job)
{
	struct reload_told *told = &job->told;
	struct arena *arena = &connection->worker->out;
	struct reply reply = {
		.id = job->id,
		.type = REPLY_RELOADED,
		.reloaded = { .good = told->good,
			      .n_errors = told->n_errors,
			      .n_notes = told->n_notes,
			      .omitted = told->omitted },
	};

	if (!list(arena, told, RELOAD_TOLD_ERROR, told->n_errors, &reply.reloaded.errors) ||
	    !list(arena, told, RELOAD_TOLD_NOTE, told->n_notes, &reply.reloaded.notes)) {
		connection->lost = true;
	} else {
		connection_reply(connection, &reply);
	}
	connection_settle(connection);
}

void serve_reloaded(struct reload_job *job)
{
	struct connection *connection = job->connection;

	if (connection != NULL) {
		connection->reload = NULL;
		arena_reset(&connection->worker->out);
		answer(connection, job);
	}
	(void)reload_job_free(job);
}
