/*
 * Long requests: see struct serve_job.
 */
#include "daemon/connection.h"
#include "daemon/serve.h"
#include "daemon/worker.h"

#include <stdlib.h>

void serve_job_begin(struct connection *connection, struct serve_job *job)
{
	struct worker *worker = connection->worker;

	job->connection = connection;
	job->in = worker->in;
	job->out = (struct arena)ARENA_INIT(worker->out.limit);
	worker->in = (struct arena)ARENA_INIT(job->in.limit);
	worker->job = job;
	connection->working = true;
	worker_wake(worker);
}

static void end(struct worker *worker)
{
	struct serve_job *job = worker->job;

	job->connection->working = false;
	worker->job = NULL;
	/* The worker's own are somebody else's by now, who may be taking the session over. */
	arena_deinit(&job->in);
	arena_deinit(&job->out);
	free(job);
}

void serve_job_drop(struct connection *connection)
{
	if (connection->working) {
		end(connection->worker);
	}
}

struct connection *serve_job_connection(const struct worker *worker)
{
	return worker->job != NULL ? worker->job->connection : NULL;
}

void serve_job_more(struct worker *worker)
{
	struct serve_job *job = worker->job;
	struct arena out = worker->out;
	bool is_done;

	worker->out = job->out;
	is_done = job->more(job);
	job->out = worker->out;
	worker->out = out;
	if (is_done) {
		end(worker);
	}
}
