#include "clients/c/commit.h"

#include "clients/c/include/ration.h"
#include "proto/message.h"

#include <stdio.h>

uint64_t commit_want(struct commit *commit, uint64_t next_batch)
{
	if (next_batch > commit->behind) {
		commit->behind = next_batch;
	}
	return ++commit->wanted;
}

int64_t commit_due_at(const struct commit *commit)
{
	return commit->at + (commit->code == 0 ? COMMIT_PAUSE_MS : COMMIT_RETRY_MS);
}

bool commit_is_due(const struct commit *commit, bool full, uint64_t first_unsent, int64_t now)
{
	if (commit->id != 0) {
		return false;
	}
	if (commit->wanted > commit->done) {
		return first_unsent >= commit->behind;
	}
	return full && now >= commit_due_at(commit);
}

void commit_asked(struct commit *commit, uint64_t id, int64_t now)
{
	commit->id = id;
	commit->asked = commit->wanted;
	commit->at = now;
}

static void note(struct commit *commit, int code, const char *text, size_t len)
{
	commit->code = code;
	(void)snprintf(commit->text, sizeof(commit->text), "%.*s", (int)len, text);
}

bool commit_take(struct commit *commit, const struct reply *reply, int64_t now)
{
	static const struct text none = { .at = "the daemon has no state file", .len = 28 };

	if (commit->id == 0 || reply->id != commit->id) {
		return false;
	}
	if (reply->type == REPLY_FLUSHED && reply->flushed.durable) {
		note(commit, RATION_OK, "", 0);
	} else if (reply->type == REPLY_ERROR && reply->error.code != CODE_OK &&
		   reply->error.code <= INT32_MAX) {
		note(commit, (int)reply->error.code, reply->error.text.at, reply->error.text.len);
	} else {
		/* A daemon older than the question. */
		note(commit, RATION_FAILED_PRECONDITION, none.at, none.len);
	}
	commit->id = 0;
	commit->done = commit->asked;
	commit->at = now;
	return true;
}

void commit_broken(struct commit *commit)
{
	commit->id = 0;
	commit->code = 0;
}
