#include "clients/c/link.h"

#include "clients/c/answer.h"
#include "clients/c/client.h"
#include "clients/c/clock.h"
#include "clients/c/error.h"
#include "clients/c/include/ration.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define LINK_ARENA MESSAGE_ARENA_LIMIT
#define LINK_ENTRY_BYTES 16u /* of a handle and a delta at their longest */
#define LINK_FRAME_EXTRA 64u

static int new_session(struct link *link)
{
	if (getrandom(link->session, sizeof(link->session), 0) != (ssize_t)sizeof(link->session)) {
		return -errno;
	}
	memcpy(&link->random, link->session, sizeof(link->random));
	link->random |= 1;
	link->begun = false;
	return 0;
}

int link_init(struct link *link)
{
	link->stream = (struct stream)STREAM_INIT;
	link->arena = (struct arena)ARENA_INIT(LINK_ARENA);
	link->next_id = 2;
	link->full_since = CLOCK_NEVER;
	interns_init(&link->interns);
	(void)snprintf(link->text, sizeof(link->text), "not connected yet");
	return new_session(link);
}

void link_deinit(struct link *link)
{
	stream_close(&link->stream);
	dial_end(&link->dial);
	interns_deinit(&link->interns);
	arena_deinit(&link->arena);
}

void link_forget(struct link *link)
{
	stream_close(&link->stream);
	/* If the parent's thread was resolving a name its list is unfinished, and stays where it is. */
	if (link->dialing) {
		link->dial = (struct dial){ .address = link->address };
		link->dialing = false;
	}
	dial_end(&link->dial);
	interns_forget(&link->interns);
	link->state = LINK_DOWN;
	link->to_send = NULL;
	link->retry_at = 0;
	link->backoff = 0;
	link->faults = 0;
	link->commit = (struct commit){ 0 };
	link->incarnation_len = 0;
	(void)new_session(link);
}

void link_leave_session(struct link *link)
{
	(void)new_session(link);
}

/* ---- ending ---- */

/* xorshift64 (Marsaglia 2003). */
static uint64_t random_below(struct link *link, uint64_t bound)
{
	link->random ^= link->random << 13;
	link->random ^= link->random >> 7;
	link->random ^= link->random << 17;
	return link->random % bound;
}

static void plan_retry(struct link *link, int64_t now)
{
	if (link->backoff == 0) {
		link->backoff = LINK_BACKOFF_MIN_MS;
	} else if (link->backoff < LINK_BACKOFF_MAX_MS) {
		link->backoff *= 2;
	}
	if (link->backoff > LINK_BACKOFF_MAX_MS) {
		link->backoff = LINK_BACKOFF_MAX_MS;
	}
	link->retry_at = now + 1 + (int64_t)random_below(link, (uint64_t)link->backoff);
}

void link_fail(struct link *link, int64_t now, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(link->text, sizeof(link->text), format, args);
	va_end(args);
	stream_close(&link->stream);
	dial_end(&link->dial);
	link->state = LINK_DOWN;
	link->to_send = NULL;
	commit_broken(&link->commit);
	plan_retry(link, now);
	leases_away(link->client);
}

/* There is nobody at the address. */
static void unreachable(struct link *link, int64_t now, const char *why)
{
	link_fail(link, now, "%s", why);
	link->n_unreachable++;
	operations_unreachable(link->operations, now);
}

static void lose_batch(struct link *link, struct batch *batch, uint32_t code,
		       const struct text *text)
{
	struct add entries;

	if (outbox_entries(link->outbox, batch, &entries) < 0) {
		return;
	}
	for (size_t i = 0; i < entries.n_handles; i++) {
		losses_add(link->losses, counters_at(link->counters, entries.handles[i]), code,
			   entries.deltas[i], text->at, text->len);
	}
	(void)outbox_void(link->outbox, batch);
}

void link_fault(struct link *link, uint32_t code, const struct text *text, int64_t now)
{
	struct batch *oldest = link->outbox->unapplied;
	uint64_t number = oldest == NULL ? 0 : oldest->number;

	link->faults = number == link->fault_batch ? link->faults + 1 : 1;
	link->fault_batch = number;
	if (oldest != NULL && !oldest->voided && link->faults >= LINK_MAX_FAULTS) {
		lose_batch(link, oldest, code, text);
		link->faults = 0;
	}
	link_fail(link, now, "the daemon ended the connection: %s: %.*s",
		  ration_code_name((int)code), (int)text->len, text->at);
}

/* ---- beginning ---- */

bool link_wants_dial(const struct link *link, int64_t now)
{
	return link->state == LINK_DOWN && now >= link->retry_at;
}

/* The next address behind the name, or failure. */
static void connect_next(struct link *link, int before, int64_t now)
{
	int fd, r;

	r = dial_next(&link->dial, &fd);
	if (r < 0) {
		/* All were tried; of a unix socket's one attempt `before` knows more. */
		unreachable(link, now, strerror(before < 0 ? -before : -r));
		return;
	}
	stream_close(&link->stream);
	stream_open(&link->stream, fd);
	link->state = LINK_CONNECTING;
	link->expires_at = now + LINK_CONNECT_MS;
}

void link_dialed(struct link *link, int r, int64_t now)
{
	link->dialing = false;
	if (r < 0) {
		unreachable(link, now, ration_error());
		return;
	}
	connect_next(link, 0, now);
}

/* Append one request; the arena is reset. 0 or -ENOMEM. */
static int put_request(struct link *link, struct request *request, uint64_t *ret_id)
{
	const uint8_t *bytes;
	size_t len;
	int r;

	arena_reset(&link->arena);
	request->id = link->next_id;
	r = request_encode(&link->arena, request, &bytes, &len);
	if (r == 0) {
		r = stream_put(&link->stream, bytes, len);
	}
	if (r == 0) {
		*ret_id = link->next_id;
		link->next_id += 2;
	}
	return r;
}

static void connected(struct link *link, int64_t now)
{
	const struct batch *oldest = link->outbox->kept;
	struct request hello = {
		.type = REQUEST_HELLO,
		.hello = {
			.version = MESSAGE_VERSION,
			.session = { .at = (const char *)link->session, .len = sizeof(link->session) },
			.lifetime_ms = link->lifetime_ms,
			.next_batch = oldest == NULL ? link->outbox->next_number : oldest->number,
			.agent = text_of("libration/" RATION_VERSION),
			.next_operation = operations_next(link->operations),
			.incarnation = { .at = (const char *)link->incarnation, .len = link->incarnation_len },
		},
	};
	int r = dial_check(link->stream.fd);

	if (r < 0) {
		connect_next(link, r, now);
		return;
	}
	dial_end(&link->dial);
	if (put_request(link, &hello, &link->hello_id) < 0) {
		link_fail(link, now, "no memory");
		return;
	}
	link->connection++;
	link->ping_id = 0;
	link->state = LINK_GREETING;
	link->expires_at = now + LINK_CONNECT_MS;
}

void link_hurry(struct link *link, int64_t now)
{
	if (link->state == LINK_DOWN && link->backoff > LINK_BACKOFF_MIN_MS) {
		link->backoff = 0;
		link->retry_at = now;
	}
}

bool link_is_up(const struct link *link)
{
	return link->state == LINK_UP;
}

/* ---- sending ---- */

static bool answer_is_due(const struct link *link)
{
	const struct batch *oldest = link->outbox->unapplied;

	return link->ping_id != 0 || link->interns.n > 0 || link->operations->n_due > 0 ||
	       link->operations->answered.n_due > 0 || (oldest != NULL && oldest != link->to_send);
}

/* Put a kept batch on this connection, behind the paths it needs. 0 or -ENOMEM. */
static int put_batch(struct link *link, struct batch *batch)
{
	struct add entries;
	int r;

	r = outbox_entries(link->outbox, batch, &entries);
	if (r == 0) {
		r = interns_tell(&link->interns, link->counters, &link->stream, &link->limits,
				 batch->number, &entries, &link->next_id);
	}
	if (r == 0) {
		r = stream_put(&link->stream, batch->frame, batch->len);
	}
	return r;
}

/* How many entries this daemon takes in one request. */
static uint32_t max_entries(const struct link *link)
{
	uint32_t fit = (link->limits.max_frame - LINK_FRAME_EXTRA) / LINK_ENTRY_BYTES;

	return fit < link->limits.max_items ? fit : link->limits.max_items;
}

/* The next batch to be sent: a kept one, or a new one if there is room for it; NULL: none. */
static int next_batch(struct link *link, int64_t now, struct batch **ret_batch)
{
	int r;

	if (link->to_send != NULL) {
		*ret_batch = link->to_send;
		return 0;
	}
	if (link->outbox->kept_bytes >= link->max_unacknowledged) {
		*ret_batch = NULL;
		return 0;
	}
	r = outbox_cut(link->outbox, max_entries(link), link->limits.max_handles, now, ret_batch);
	link->to_send = r == 0 ? *ret_batch : NULL;
	return r;
}

static int put_operations(struct link *link, int64_t now)
{
	return operations_put(link->operations, &link->stream, &link->arena, LINK_MAX_PENDING,
			      &link->next_id, now);
}

bool link_send(struct link *link, int64_t now)
{
	bool was_due = answer_is_due(link);
	int r;

	r = put_operations(link, now);
	if (!was_due && answer_is_due(link)) {
		link->heard_at = now;
	}
	if (r == 0) {
		r = stream_flush(&link->stream);
	}
	return r == 0 && stream_pending(&link->stream) == 0;
}

static bool is_half_full(const struct link *link)
{
	return link->keeps && (link->outbox->kept_bytes >= link->max_unacknowledged / 2 ||
			       link->operations->answered.bytes >= link->operations->max_bytes / 2);
}

/* 0 or -ENOMEM. */
static int put_flush(struct link *link, int64_t now)
{
	struct request flush = { .type = REQUEST_FLUSH, .flush = { .durable = true } };
	uint64_t id, first_unsent = link->to_send == NULL ? UINT64_MAX : link->to_send->number;
	int r;

	if (answered_is_untold(&link->operations->answered) ||
	    !commit_is_due(&link->commit, is_half_full(link), first_unsent, now)) {
		return 0;
	}
	r = put_request(link, &flush, &id);
	if (r == 0) {
		commit_asked(&link->commit, id, now);
	}
	return r;
}

/*
 * New operations don't wait for a disk that fails or is stuck: then the oldest of those that are kept are let go. Growth does wait, merged
 * in the process: that costs nobody anything.
 */
static void let_go(struct link *link, int64_t now)
{
	if (!operations_are_full(link->operations)) {
		link->full_since = CLOCK_NEVER;
		return;
	}
	if (link->full_since == CLOCK_NEVER) {
		link->full_since = now;
	}
	if (link->commit.code != 0 || now - link->full_since >= LINK_FULL_MS) {
		/* And some more, so that not each waits anew. */
		answered_shrink(&link->operations->answered, link->operations->max_bytes / 4 * 3);
	}
}

static void fill_output(struct link *link, int64_t now)
{
	bool was_due = answer_is_due(link);

	let_go(link, now);

	if (put_operations(link, now) < 0) {
		link_fail(link, now, "no memory to send");
		return;
	}
	while (stream_pending(&link->stream) < LINK_MAX_PENDING) {
		struct batch *batch;
		int r;

		r = next_batch(link, now, &batch);
		if (r == 0 && batch == NULL) {
			break;
		}
		if (r == 0) {
			r = put_batch(link, batch);
		}
		if (r < 0) {
			link_fail(link, now, "no memory to send");
			return;
		}
		link->to_send = batch->next;
	}
	if (put_flush(link, now) < 0) {
		link_fail(link, now, "no memory to send");
		return;
	}
	if (!was_due && answer_is_due(link)) {
		link->heard_at = now;
	}
}

static void ping_if_idle(struct link *link, int64_t now)
{
	struct request ping = { .type = REQUEST_PING };

	if (link->address->is_unix || answer_is_due(link) || now - link->heard_at < LINK_IDLE_MS) {
		return;
	}
	if (put_request(link, &ping, &link->ping_id) == 0) {
		link->heard_at = now;
	}
}

/* ---- receiving ---- */

/* All whole messages that were read; stops when one of them ended the connection. */
static void read_messages(struct link *link, int64_t now)
{
	const uint8_t *message;
	size_t len;
	int r = 0;

	while (link->state >= LINK_GREETING &&
	       (r = stream_next(&link->stream, &message, &len)) == 0) {
		struct reply reply;

		arena_reset(&link->arena);
		r = reply_decode(&link->arena, message, len, &reply);
		if (r < 0) {
			break;
		}
		link->heard_at = now;
		answer_take(link, &reply, now);
	}
	if (link->state >= LINK_GREETING && r < 0 && r != -EAGAIN) {
		link_fail(link, now, r == -ENOMEM ? "no memory for a reply" : "a malformed reply");
	}
}

static void receive(struct link *link, int64_t now)
{
	int r = stream_fill(&link->stream, /* wait= */ false);

	/* What came before the end counts: acknowledgements, or a Goodbye that tells why. */
	read_messages(link, now);
	if (r < 0 && r != -EAGAIN && link->state >= LINK_GREETING) {
		link_fail(link, now, "%s", strerror(-r));
	}
}

static void check_time(struct link *link, int64_t now)
{
	if (link->state == LINK_CONNECTING && now >= link->expires_at) {
		connect_next(link, -ETIMEDOUT, now);
	} else if (link->state == LINK_GREETING && now >= link->expires_at) {
		link_fail(link, now, "the daemon does not answer");
	} else if (link->state == LINK_UP && answer_is_due(link) &&
		   now - link->heard_at >= LINK_ANSWER_MS) {
		link_fail(link, now, "the daemon does not answer any more");
	}
}

void link_step(struct link *link, short revents, int64_t now)
{
	int r;

	if (link->state == LINK_CONNECTING && revents != 0) {
		connected(link, now);
	} else if (link->state >= LINK_GREETING && (revents & ~POLLOUT) != 0) {
		receive(link, now);
	}
	check_time(link, now);
	if (link->state == LINK_UP) {
		fill_output(link, now);
	}
	if (link->state == LINK_UP) {
		ping_if_idle(link, now);
	}
	if (link->state >= LINK_GREETING) {
		r = stream_flush(&link->stream);
		if (r < 0) {
			/* The daemon may have said why before it closed. */
			receive(link, now);
		}
		if (r < 0 && link->state >= LINK_GREETING) {
			link_fail(link, now, "%s", strerror(-r));
		}
	}
}

int link_fd(const struct link *link, short *ret_events)
{
	*ret_events = link->state == LINK_CONNECTING ? POLLOUT : POLLIN;
	if (link->state >= LINK_GREETING && stream_pending(&link->stream) > 0) {
		*ret_events = POLLIN | POLLOUT;
	}
	return link->state == LINK_DOWN ? -1 : link->stream.fd;
}

static int64_t deadline_up(const struct link *link)
{
	int64_t at = link->address->is_unix ? CLOCK_NEVER : link->heard_at + LINK_IDLE_MS;

	if (answer_is_due(link)) {
		at = link->heard_at + LINK_ANSWER_MS;
	}
	if (link->commit.id == 0 && is_half_full(link) && commit_due_at(&link->commit) < at) {
		at = commit_due_at(&link->commit);
	}
	if (link->full_since != CLOCK_NEVER && link->full_since + LINK_FULL_MS < at) {
		at = link->full_since + LINK_FULL_MS;
	}
	return at;
}

int64_t link_deadline(const struct link *link)
{
	switch (link->state) {
	case LINK_DOWN:
		return link->retry_at;
	case LINK_UP:
		return deadline_up(link);
	default:
		return link->expires_at;
	}
}

/* ---- the end ---- */

/* 0: there is something to read, or room to write. */
static int wait_for_stream(struct link *link, int64_t deadline)
{
	struct pollfd one = { .fd = link->stream.fd, .events = POLLIN };
	int r;

	if (stream_pending(&link->stream) > 0) {
		one.events = POLLIN | POLLOUT;
	}
	r = poll(&one, 1, clock_poll_timeout(deadline));
	if (r < 0) {
		return errno == EINTR ? 0 : -errno;
	}
	return r == 0 ? -ETIMEDOUT : 0;
}

/* -EAGAIN: it has not come yet. */
static int find_ended(struct link *link, uint64_t id)
{
	const uint8_t *message;
	size_t len;
	int r;

	while ((r = stream_next(&link->stream, &message, &len)) == 0) {
		struct reply reply;

		arena_reset(&link->arena);
		r = reply_decode(&link->arena, message, len, &reply);
		if (r < 0) {
			return r;
		}
		if (reply.id == id) {
			return reply.type == REPLY_ENDED ? 0 : -EOPNOTSUPP;
		}
	}
	return r;
}

int link_end_session(struct link *link, int64_t deadline)
{
	struct request end = { .type = REQUEST_END };
	uint64_t id = 0;
	int r;

	if (link->state != LINK_UP) {
		return -ENOTCONN;
	}
	r = put_request(link, &end, &id);
	while (r == 0) {
		r = stream_flush(&link->stream);
		if (r == 0) {
			r = wait_for_stream(link, deadline);
		}
		if (r == 0) {
			r = stream_fill(&link->stream, /* wait= */ false);
		}
		if (r == 0 && (r = find_ended(link, id)) == 0) {
			return 0;
		}
		r = r == -EAGAIN ? 0 : r;
	}
	return r;
}
