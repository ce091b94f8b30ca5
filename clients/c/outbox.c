#include "clients/c/outbox.h"

#include "proto/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OUTBOX_ARENA (8u << 20)

static const char TEXT_RANGE[] = "more than 2^63 is waiting to be sent for this counter";
static const char TEXT_HANDLES[] = "the daemon takes no more counters from one client";
static const char TEXT_UNDELIVERED[] = "not acknowledged by the daemon when the client was closed";
static const char TEXT_REFUSED[] = "the daemon has refused this path a moment ago";

void outbox_init(struct outbox *outbox, struct counters *counters, struct losses *losses)
{
	*outbox = (struct outbox){
		.counters = counters,
		.losses = losses,
		.next_number = 1,
		.arena = ARENA_INIT(OUTBOX_ARENA),
	};
}

static void free_batch(struct batch *batch)
{
	free(batch->frame);
	free(batch);
}

static size_t cost_of(const struct batch *batch)
{
	return sizeof(*batch) + batch->len;
}

static void drop_oldest(struct outbox *outbox)
{
	struct batch *batch = outbox->kept;

	outbox->kept = batch->next;
	if (outbox->unapplied == batch) {
		outbox->unapplied = batch->next;
	}
	outbox->kept_bytes -= cost_of(batch);
	outbox->n_kept--;
	free_batch(batch);
}

static void drop_batches(struct outbox *outbox)
{
	while (outbox->kept != NULL) {
		drop_oldest(outbox);
	}
}

void outbox_deinit(struct outbox *outbox)
{
	drop_batches(outbox);
	arena_deinit(&outbox->arena);
}

/* ---- the queue ---- */

static void enqueue(struct outbox *outbox, struct ration_counter *counter)
{
	if (counter->queued) {
		return;
	}
	if (outbox->n_queued == 0) {
		outbox->first_queued = counter->handle;
	} else {
		counters_at(outbox->counters, outbox->last_queued)->next_queued = counter->handle;
	}
	outbox->last_queued = counter->handle;
	outbox->n_queued++;
	outbox->tickets_given++;
	counter->queued = true;
}

static struct ration_counter *dequeue(struct outbox *outbox)
{
	struct ration_counter *counter = counters_at(outbox->counters, outbox->first_queued);

	outbox->first_queued = counter->next_queued;
	outbox->n_queued--;
	outbox->tickets_cut++;
	counter->queued = false;
	return counter;
}

void outbox_clear(struct outbox *outbox)
{
	while (outbox->n_queued > 0) {
		dequeue(outbox)->unsent = 0;
	}
	drop_batches(outbox);
	outbox->next_number = 1;
}

bool outbox_add(struct outbox *outbox, struct ration_counter *counter, int64_t n)
{
	int64_t sum;

	if (__builtin_add_overflow(counter->unsent, n, &sum)) {
		return false;
	}
	counter->unsent = sum;
	enqueue(outbox, counter);
	return true;
}

bool outbox_give_back(struct outbox *outbox, struct ration_counter *counter, int64_t n)
{
	if (!outbox_add(outbox, counter, n)) {
		return false;
	}
	outbox->given_back = outbox->tickets_given;
	return true;
}

static void lose(struct outbox *outbox, const struct ration_counter *counter, uint32_t code,
		 int64_t amount, const char *text)
{
	losses_add(outbox->losses, counter, code, amount, text, strlen(text));
}

static void take_in(void *ctx, struct ration_counter *counter, int64_t growth)
{
	struct outbox *outbox = ctx;

	if (!outbox_add(outbox, counter, growth)) {
		lose(outbox, counter, CODE_OUT_OF_RANGE, growth, TEXT_RANGE);
	}
}

void outbox_collect(struct outbox *outbox)
{
	counters_collect(outbox->counters, take_in, outbox);
}

/* ---- batches ---- */

static int encode(struct outbox *outbox, uint64_t number, size_t n_entries, size_t *ret_len,
		  uint8_t **ret_frame)
{
	const struct request request = {
		.id = number * 2 + 1, /* odd, see link.h */
		.type = REQUEST_ADD,
		.add = {
			.batch = number,
			.n_handles = n_entries,
			.n_deltas = n_entries,
			.handles = outbox->handles,
			.deltas = outbox->deltas,
		},
	};
	const uint8_t *bytes;
	uint8_t *frame;
	size_t len;
	int r;

	arena_reset(&outbox->arena);
	r = request_encode(&outbox->arena, &request, &bytes, &len);
	if (r < 0) {
		return r;
	}
	frame = malloc(len);
	if (frame == NULL) {
		return -ENOMEM;
	}
	memcpy(frame, bytes, len);
	*ret_frame = frame;
	*ret_len = len;
	return 0;
}

/* Whether this counter's growth is not worth sending; then it is reported. */
static bool lost_at_once(struct outbox *outbox, const struct ration_counter *counter,
			 uint32_t max_handles, int64_t now)
{
	if (counter->handle >= max_handles) {
		lose(outbox, counter, CODE_RESOURCE_EXHAUSTED, counter->unsent, TEXT_HANDLES);
		return true;
	}
	if (counter->refused_until > now) {
		lose(outbox, counter, counter->refused_code, counter->unsent,
		     counter->refused_text[0] != '\0' ? counter->refused_text : TEXT_REFUSED);
		return true;
	}
	return false;
}

/* Move growth from the queue to handles[] and deltas[]. */
static size_t pick(struct outbox *outbox, uint32_t max_entries, uint32_t max_handles, int64_t now)
{
	size_t n = 0;

	while (outbox->n_queued > 0 && n < max_entries) {
		struct ration_counter *counter = dequeue(outbox);

		if (counter->unsent != 0 && !lost_at_once(outbox, counter, max_handles, now)) {
			outbox->handles[n] = counter->handle;
			outbox->deltas[n] = counter->unsent;
			n++;
		}
		counter->unsent = 0;
	}
	return n;
}

/* Undo pick() for want of memory. It can't overflow: nothing was added in between. */
static void put_back(struct outbox *outbox, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ration_counter *counter = counters_at(outbox->counters, outbox->handles[i]);

		counter->unsent = outbox->deltas[i];
		enqueue(outbox, counter);
	}
}

static void keep(struct outbox *outbox, struct batch *batch)
{
	if (outbox->kept == NULL) {
		outbox->kept = batch;
	} else {
		outbox->last_kept->next = batch;
	}
	outbox->last_kept = batch;
	if (outbox->unapplied == NULL) {
		outbox->unapplied = batch;
	}
	outbox->kept_bytes += cost_of(batch);
	outbox->n_kept++;
	outbox->next_number = batch->number + 1;
}

int outbox_cut(struct outbox *outbox, uint32_t max_entries, uint32_t max_handles, int64_t now,
	       struct batch **ret_batch)
{
	uint64_t ticket = outbox->tickets_cut;
	struct batch *batch;
	size_t n;

	if (max_entries > OUTBOX_MAX_ENTRIES) {
		max_entries = OUTBOX_MAX_ENTRIES;
	}
	batch = malloc(sizeof(*batch));
	if (batch == NULL) {
		return -ENOMEM;
	}
	*batch = (struct batch){ .number = outbox->next_number, .ticket = ticket };
	n = pick(outbox, max_entries, max_handles, now);
	if (n == 0) {
		free(batch);
		*ret_batch = NULL;
		return 0;
	}
	if (encode(outbox, batch->number, n, &batch->len, &batch->frame) < 0) {
		put_back(outbox, n);
		free(batch);
		return -ENOMEM;
	}
	keep(outbox, batch);
	*ret_batch = batch;
	return 0;
}

int outbox_entries(struct outbox *outbox, const struct batch *batch, struct add *ret_add)
{
	struct request request;
	const uint8_t *message;
	size_t len, used;
	int r;

	if (frame_find(batch->frame, batch->len, MESSAGE_MAX_FRAME, &message, &len, &used) !=
	    FRAME_OK) {
		return -EBADMSG;
	}
	arena_reset(&outbox->arena);
	r = request_decode(&outbox->arena, message, len, &request);
	if (r < 0) {
		return r;
	}
	*ret_add = request.add;
	return 0;
}

void outbox_applied(struct outbox *outbox, bool keep)
{
	outbox->unapplied = outbox->unapplied->next;
	while (!keep && outbox->kept != outbox->unapplied) {
		drop_oldest(outbox);
	}
}

void outbox_applied_until(struct outbox *outbox, uint64_t number, bool keep)
{
	while (outbox->unapplied != NULL && outbox->unapplied->number <= number) {
		outbox_applied(outbox, keep);
	}
}

void outbox_durable_until(struct outbox *outbox, uint64_t number)
{
	while (outbox->kept != outbox->unapplied && outbox->kept->number <= number) {
		drop_oldest(outbox);
	}
}

void outbox_unapply(struct outbox *outbox)
{
	outbox->unapplied = outbox->kept;
}

/* Replace what is in a batch by handles[] and deltas[]. */
static int replace(struct outbox *outbox, struct batch *batch, size_t n_entries)
{
	uint8_t *frame;
	size_t len;
	int r;

	r = encode(outbox, batch->number, n_entries, &len, &frame);
	if (r < 0) {
		return r;
	}
	outbox->kept_bytes -= cost_of(batch);
	free(batch->frame);
	batch->frame = frame;
	batch->len = len;
	batch->voided = n_entries == 0;
	outbox->kept_bytes += cost_of(batch);
	return 0;
}

int outbox_void(struct outbox *outbox, struct batch *batch)
{
	return replace(outbox, batch, 0);
}

int outbox_void_applied(struct outbox *outbox)
{
	for (struct batch *batch = outbox->kept; batch != outbox->unapplied; batch = batch->next) {
		int r = outbox_void(outbox, batch);

		if (r < 0) {
			return r;
		}
	}
	return 0;
}

int outbox_take_out(struct outbox *outbox, struct batch *batch, const struct item_error *errors,
		    size_t n_errors)
{
	struct add entries;
	size_t n = 0;
	int r;

	r = outbox_entries(outbox, batch, &entries);
	if (r < 0) {
		return r;
	}
	memcpy(outbox->deltas, entries.deltas, entries.n_deltas * sizeof(outbox->deltas[0]));
	for (size_t i = 0; i < n_errors; i++) {
		if (errors[i].index < entries.n_handles) {
			outbox->deltas[errors[i].index] = 0; /* which no entry has */
		}
	}
	for (size_t i = 0; i < entries.n_handles; i++) {
		if (outbox->deltas[i] != 0) {
			outbox->handles[n] = entries.handles[i];
			outbox->deltas[n] = outbox->deltas[i];
			n++;
		}
	}
	return replace(outbox, batch, n);
}

static uint64_t add_magnitude(uint64_t sum, int64_t n)
{
	uint64_t magnitude = n < 0 ? -(uint64_t)n : (uint64_t)n;

	return __builtin_add_overflow(sum, magnitude, &sum) ? UINT64_MAX : sum;
}

/* What is in batches that were not applied goes back to the counters; returns the magnitude of what does not fit there and was reported. */
static uint64_t reclaim(struct outbox *outbox)
{
	uint64_t sum = 0;

	for (const struct batch *batch = outbox->unapplied; batch != NULL; batch = batch->next) {
		struct add entries;

		if (outbox_entries(outbox, batch, &entries) < 0) {
			continue;
		}
		for (size_t i = 0; i < entries.n_handles; i++) {
			struct ration_counter *counter =
				counters_at(outbox->counters, entries.handles[i]);

			if (!outbox_add(outbox, counter, entries.deltas[i])) {
				lose(outbox, counter, CODE_UNAVAILABLE, entries.deltas[i],
				     TEXT_UNDELIVERED);
				sum = add_magnitude(sum, entries.deltas[i]);
			}
		}
	}
	return sum;
}

uint64_t outbox_give_up(struct outbox *outbox)
{
	uint64_t sum = reclaim(outbox);

	while (outbox->n_queued > 0) {
		struct ration_counter *counter = dequeue(outbox);

		if (counter->unsent != 0) {
			lose(outbox, counter, CODE_UNAVAILABLE, counter->unsent, TEXT_UNDELIVERED);
			sum = add_magnitude(sum, counter->unsent);
		}
		counter->unsent = 0;
	}
	drop_batches(outbox);
	return sum;
}

/* Is everything before this ticket in batches before this one (NULL: in any)? */
static bool is_before(const struct outbox *outbox, const struct batch *batch, uint64_t ticket)
{
	return (batch == NULL ? outbox->tickets_cut : batch->ticket) >= ticket;
}

bool outbox_settled(const struct outbox *outbox, uint64_t ticket)
{
	return is_before(outbox, outbox->unapplied, ticket);
}

bool outbox_keeps(const struct outbox *outbox, uint64_t ticket)
{
	return !is_before(outbox, outbox->kept, ticket);
}
