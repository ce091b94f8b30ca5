#include "clients/c/answer.h"

#include "clients/c/client.h"
#include "clients/c/include/ration.h"
#include "clients/c/link.h"

#include <errno.h>
#include <string.h>

#define ANSWER_MIN_FRAME 1024u /* less than this is no limit we can work with */

static bool is_ours(uint32_t code)
{
	return code != CODE_UNAVAILABLE && code != CODE_ABORTED &&
	       code != CODE_RESOURCE_EXHAUSTED && code != CODE_DEADLINE_EXCEEDED;
}

/* ---- Welcome ---- */

static enum session_fate fate_of(const struct link *link, const struct welcome *welcome)
{
	const struct text *incarnation = &welcome->incarnation;
	bool same = link->incarnation_len > 0 && incarnation->len == link->incarnation_len &&
		    memcmp(incarnation->at, link->incarnation, link->incarnation_len) == 0;

	if (welcome->resumed && same) {
		return SESSION_RESUMED;
	}
	/* Resumed, but the Welcome that said restored was lost: nothing was sent to this daemon yet. */
	if (welcome->restored || welcome->resumed) {
		return SESSION_RESTORED;
	}
	return same ? SESSION_LOST : SESSION_ANEW;
}

static void note_daemon(struct link *link, const struct welcome *welcome)
{
	link->limits = welcome->limits;
	link->begun = true;
	link->keeps = welcome->keeps;
	link->incarnation_len = 0;
	if (welcome->incarnation.len == LINK_INCARNATION) {
		link->incarnation_len = LINK_INCARNATION;
		memcpy(link->incarnation, welcome->incarnation.at, LINK_INCARNATION);
	}
}

/* Which of the kept batches are to be sent: PROTOCOL.md, section 5. */
static int sort_batches(struct outbox *outbox, const struct welcome *welcome,
			enum session_fate fate)
{
	int r = 0;

	switch (fate) {
	case SESSION_RESUMED:
		outbox_unapply(outbox);
		outbox_applied_until(outbox, welcome->last_batch, welcome->keeps);
		outbox_durable_until(outbox, welcome->durable_batch);
		break;
	case SESSION_LOST:
		r = outbox_void_applied(outbox);
		outbox_unapply(outbox);
		break;
	case SESSION_RESTORED:
	case SESSION_ANEW:
		outbox_unapply(outbox);
		outbox_applied_until(outbox, welcome->last_batch, /* keep= */ false);
		break;
	}
	return r;
}

/* Another daemon may take less in one request than the one for which a batch to be sent was cut: have its growth cut anew. */
static int fit_kept(struct link *link)
{
	struct outbox *outbox = link->outbox;

	for (struct batch *batch = outbox->unapplied; batch != NULL; batch = batch->next) {
		struct add entries;
		int r;

		r = outbox_entries(outbox, batch, &entries);
		if (r < 0) {
			return r;
		}
		if (entries.n_handles <= link->limits.max_items &&
		    batch->len <= link->limits.max_frame) {
			continue;
		}
		for (size_t i = 0; i < entries.n_handles; i++) {
			struct ration_counter *counter =
				counters_at(link->counters, entries.handles[i]);

			if (!outbox_give_back(outbox, counter, entries.deltas[i])) {
				losses_add(link->losses, counter, CODE_OUT_OF_RANGE,
					   entries.deltas[i], "", 0);
			}
		}
		r = outbox_void(outbox, batch);
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

static void take_welcome(struct link *link, const struct welcome *welcome, int64_t now)
{
	struct outbox *outbox = link->outbox;
	enum session_fate fate = fate_of(link, welcome);
	bool lost = false;

	if (welcome->version != MESSAGE_VERSION) {
		link_fail(link, now,
			  "the daemon speaks version %u of the protocol, this library %u",
			  welcome->version, MESSAGE_VERSION);
		return;
	}
	if (welcome->limits.max_items == 0 || welcome->limits.max_frame < ANSWER_MIN_FRAME) {
		link_fail(link, now, "the daemon's limits leave no room for a request");
		return;
	}
	if (fate == SESSION_LOST && link->begun) {
		/* Its state file may still have operations of the session, under numbers that ours would be given again. */
		link_leave_session(link);
		link_fail(link, now, "the daemon has forgotten the session");
		return;
	}
	if (welcome->last_batch >= outbox->next_number) {
		/* Not a session of ours. What was never sent can't be among what it has applied: start another one. */
		link_leave_session(link);
		link_fail(link, now,
			  "the daemon knows the session by batches that were never sent");
		return;
	}
	if (!operations_welcome(link->operations, welcome, fate, now, &lost)) {
		link_leave_session(link);
		link_fail(link, now,
			  "the daemon knows the session by operations that were never sent");
		return;
	}
	note_daemon(link, welcome);
	if (lost) {
		leases_lost(link->client, now);
	}
	leases_back(link->client);
	interns_welcome(&link->interns, link->connection, fate == SESSION_RESUMED,
			welcome->last_batch);
	if (sort_batches(outbox, welcome, fate) < 0 || fit_kept(link) < 0) {
		link_fail(link, now, "no memory");
		return;
	}
	link->to_send = outbox->unapplied;
	link->heard_at = now;
	link->state = LINK_UP;
	link->text[0] = '\0';
}

/* ---- Interned ---- */

static void refuse_run(struct link *link, const struct intern_run *run,
		       const struct error_body *error, int64_t now)
{
	for (uint32_t i = 0; i < run->n; i++) {
		interns_refused(&link->interns, counters_at(link->counters, run->first + i),
				error->code, &error->text, now);
	}
}

static void take_interned(struct link *link, uint64_t id, const struct interned *interned,
			  int64_t now)
{
	const struct intern_run *run = interns_oldest(&link->interns);

	if (run == NULL || run->id != id) {
		link_fail(link, now, "a reply to a request that was not made");
		return;
	}
	for (size_t i = 0; i < interned->n_errors; i++) {
		const struct item_error *error = &interned->errors[i];

		if (error->index < run->n) {
			interns_refused(&link->interns,
					counters_at(link->counters, run->first + error->index),
					error->code, &error->text, now);
		}
	}
	interns_drop_oldest(&link->interns);
	link->backoff = 0;
}

/* ---- Applied ---- */

/*
 * The daemon has no counter behind this handle (nor did it refuse the path just before): it was removed. Tell the path again and give
 * the growth back. False: that was done several times within a second, and no metric lets its counters go so soon.
 *
 * Other batches that were under way at the same time meet the same answer, and no strike: interned_on is 0 until the path is told again,
 * and what was sent before that is below interned_before.
 */
static bool give_back(struct link *link, struct ration_counter *counter, uint64_t batch,
		      int64_t delta, int64_t now)
{
	if (counter->interned_on != 0 && batch >= counter->interned_before) {
		counter->interned_on = 0;
		counter->strikes = now - counter->struck_at > INTERN_STRIKES_MS
					   ? 1
					   : (uint8_t)(counter->strikes + 1);
		counter->struck_at = now;
		if (counter->strikes >= INTERN_MAX_STRIKES) {
			counter->strikes = 0;
			return false;
		}
	}
	return outbox_give_back(link->outbox, counter, delta);
}

static void take_item_error(struct link *link, uint64_t batch, const struct item_error *error,
			    uint32_t handle, int64_t delta, int64_t now)
{
	struct ration_counter *counter = counters_at(link->counters, handle);

	/* The daemon says no more than that there is no counter: the reason came with the Interned. */
	if (counter->refused_until > now) {
		losses_add(link->losses, counter, counter->refused_code, delta,
			   counter->refused_text, strlen(counter->refused_text));
		return;
	}
	if (error->code == CODE_NOT_FOUND && give_back(link, counter, batch, delta, now)) {
		return;
	}
	losses_add(link->losses, counter, error->code, delta, error->text.at, error->text.len);
}

static void take_item_errors(struct link *link, uint64_t batch, const struct applied *applied,
			     const struct add *entries, int64_t now)
{
	for (size_t i = 0; i < applied->n_errors; i++) {
		const struct item_error *error = &applied->errors[i];

		if (error->index < entries->n_handles) {
			take_item_error(link, batch, error, entries->handles[error->index],
					entries->deltas[error->index], now);
		}
	}
}

static void take_applied(struct link *link, const struct applied *applied, int64_t now)
{
	struct outbox *outbox = link->outbox;
	struct batch *batch = outbox->unapplied;
	struct add entries;

	if (batch == NULL || batch == link->to_send || applied->batch != batch->number) {
		link_fail(link, now, "an acknowledgement of a batch that was not sent");
		return;
	}
	if (applied->n_errors > 0) {
		if (outbox_entries(outbox, batch, &entries) < 0) {
			link_fail(link, now, "no memory");
			return;
		}
		take_item_errors(link, batch->number, applied, &entries, now);
		/* Another daemon would count them, with what was given back of them. */
		if (link->keeps &&
		    outbox_take_out(outbox, batch, applied->errors, applied->n_errors) < 0) {
			(void)outbox_void(outbox, batch);
		}
	}
	outbox_applied(outbox, link->keeps);
	link->backoff = 0;
	link->faults = 0;
}

/* ---- Durable ---- */

static void take_durable(struct link *link, const struct durable *durable)
{
	outbox_durable_until(link->outbox, durable->batch);
	operations_durable(link->operations, durable->operation);
}

/* ---- all others ---- */

/* A request as a whole was refused. */
static void take_error(struct link *link, uint64_t id, const struct error_body *error, int64_t now)
{
	const struct intern_run *run = interns_oldest(&link->interns);

	if (run != NULL && run->id == id) {
		refuse_run(link, run, error, now);
		interns_drop_oldest(&link->interns);
	} else if (id == link->ping_id) {
		link->ping_id = 0;
	} else if (is_ours(error->code)) {
		link_fault(link, error->code, &error->text, now);
	} else {
		link_fail(link, now, "the daemon refuses: %s: %.*s",
			  ration_code_name((int)error->code), (int)error->text.len, error->text.at);
	}
}

static void take_goodbye(struct link *link, const struct error_body *goodbye, int64_t now)
{
	if (is_ours(goodbye->code)) {
		link_fault(link, goodbye->code, &goodbye->text, now);
	} else {
		if (goodbye->code == CODE_ABORTED) {
			/* Somebody else has it, a copy of this process perhaps: to take it back would go on for ever. */
			link_leave_session(link);
		}
		link_fail(link, now, "the daemon ended the connection: %s: %.*s",
			  ration_code_name((int)goodbye->code), (int)goodbye->text.len,
			  goodbye->text.at);
	}
}

static void take_greeting(struct link *link, const struct reply *reply, int64_t now)
{
	if (reply->type == REPLY_WELCOME && reply->id == link->hello_id) {
		take_welcome(link, &reply->welcome, now);
	} else if (reply->type == REPLY_ERROR || reply->type == REPLY_GOODBYE) {
		link_fail(link, now, "the daemon refuses: %s: %.*s",
			  ration_code_name((int)reply->error.code), (int)reply->error.text.len,
			  reply->error.text.at);
	} else if (reply->type != REPLY_NONE) {
		link_fail(link, now, "the daemon did not begin with a welcome");
	}
}

/* Ids of batches are odd. */
static bool take_operation(struct link *link, const struct reply *reply, int64_t now)
{
	int r = (reply->id & 1) != 0 ? 0
				     : operations_take(link->operations, reply, &link->arena, now);

	if (r == -EBADMSG) {
		link_fail(link, now, "a reply that does not fit its request");
	} else if (r == -ENOMEM) {
		link_fail(link, now, "no memory to keep an answer");
	} else if (r < 0) {
		link_fail(link, now, "the daemon did not take an operation's number");
	} else if (r > 0) {
		link->backoff = 0;
	}
	return r != 0;
}

void answer_take(struct link *link, const struct reply *reply, int64_t now)
{
	if (link->state == LINK_GREETING) {
		take_greeting(link, reply, now);
		return;
	}
	if (commit_take(&link->commit, reply, now) || take_operation(link, reply, now)) {
		return;
	}
	switch (reply->type) {
	case REPLY_INTERNED:
		take_interned(link, reply->id, &reply->interned, now);
		break;
	case REPLY_APPLIED:
		take_applied(link, &reply->applied, now);
		break;
	case REPLY_DURABLE:
		take_durable(link, &reply->durable);
		break;
	case REPLY_PONG:
		link->ping_id = 0;
		break;
	case REPLY_ERROR:
		take_error(link, reply->id, &reply->error, now);
		break;
	case REPLY_GOODBYE:
		take_goodbye(link, &reply->goodbye, now);
		break;
	default:
		/* A newer daemon may say what this version does not know. */
		break;
	}
}
