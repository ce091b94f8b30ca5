#pragma once
/*
 * outbox: growth on its way to the daemon.
 *
 *   slots --collect--> unsent, one number per counter --cut--> numbered batches --> applied --> durable, and gone
 *
 * A counter whose `unsent` is not zero stands in the queue, once, and is cut in its turn. Batches have contiguous numbers and don't
 * change, so that the daemon can tell a repeat. They are kept until they are applied or, where the daemon has a state file, durable: should
 * the daemon be started anew without them they are sent once more. Growth that can't be cut yet stays merged in `unsent`: memory is bounded by the number of
 * counters and the bytes of batches kept, whatever is added and however long the daemon is away.
 *
 * Tickets: each place in the queue has a number. Everything that was collected before tickets_given was T is counted (or was given back
 * or reported) once outbox_settled(T), and can't be lost with the daemon once outbox_keeps(T) is false, too.
 *
 * Threads: all under the client's lock.
 */
#include "clients/c/counters.h"
#include "clients/c/loss.h"
#include "proto/message.h"

#define OUTBOX_MAX_ENTRIES \
	4000u /* of a batch: with the dearest handles and deltas still below 64 KiB */

struct batch {
	struct batch *next;
	uint64_t number;
	uint64_t ticket; /* the first that is in it */
	bool voided;	 /* empty by now (outbox_void) */
	size_t len;
	uint8_t *frame; /* as it is sent */
};

struct outbox {
	struct counters *counters;
	struct losses *losses;
	uint32_t first_queued, last_queued; /* handles; meaningless while n_queued is 0 */
	uint32_t n_queued;
	uint64_t tickets_given, tickets_cut;
	uint64_t given_back;		/* tickets_given after outbox_give_back was last called */
	struct batch *kept, *last_kept; /* oldest first */
	struct batch *
		unapplied; /* the first kept one that the daemon is not known to have applied; NULL: it has all */
	size_t kept_bytes; /* what they take in memory */
	size_t n_kept;
	uint64_t next_number;
	struct arena arena; /* of one batch at a time */
	uint32_t handles[OUTBOX_MAX_ENTRIES];
	int64_t deltas[OUTBOX_MAX_ENTRIES];
};

void outbox_init(struct outbox *outbox, struct counters *counters, struct losses *losses);
void outbox_deinit(struct outbox *outbox);

/* Forget all growth and all batches; numbers start again at 1. For the child of a fork, with a new session. */
void outbox_clear(struct outbox *outbox);

/* Add to a counter's unsent growth. False: that would leave int64; nothing was added. */
bool outbox_add(struct outbox *outbox, struct ration_counter *counter, int64_t n);

/*
 * As outbox_add, for growth that was in a batch: who waits for its first ticket must wait for `given_back` as well.
 */
bool outbox_give_back(struct outbox *outbox, struct ration_counter *counter, int64_t n);

/* Take in what all counters have grown by; what does not fit int64 together with what waits already is reported as lost. */
void outbox_collect(struct outbox *outbox);

/*
 * Make the next batch of what is queued, of at most max_entries. Counters that the daemon has just refused, or whose handle is
 * not below max_handles, are reported as lost instead. 0, *ret_batch is NULL if there was nothing to cut; -ENOMEM, nothing changed.
 */
int outbox_cut(struct outbox *outbox, uint32_t max_entries, uint32_t max_handles, int64_t now,
	       struct batch **ret_batch);

/* What a batch holds: valid until the next call with this outbox. 0 or -ENOMEM. */
int outbox_entries(struct outbox *outbox, const struct batch *batch, struct add *ret_add);

/* The batch outbox->unapplied is applied. Unless it is to be kept on, so that it can be told to another daemon, it is dropped. */
void outbox_applied(struct outbox *outbox, bool keep);
/* All batches up to this number are applied. */
void outbox_applied_until(struct outbox *outbox, uint64_t number, bool keep);
/* Drop the applied ones up to this number: they are in the daemon's state file. */
void outbox_durable_until(struct outbox *outbox, uint64_t number);
/* Another daemon: none is known to be applied. */
void outbox_unapply(struct outbox *outbox);
/* The daemon has applied them and forgotten it: empty those that are applied. 0 or -ENOMEM, some were. */
int outbox_void_applied(struct outbox *outbox);

/* Take entries out of a batch that the daemon has not counted, so that none will. 0 or -ENOMEM, nothing changed. */
int outbox_take_out(struct outbox *outbox, struct batch *batch, const struct item_error *errors,
		    size_t n_errors);

/* Replace a batch by an empty one of the same number, since numbers must have no gaps. 0 or -ENOMEM, nothing changed. */
int outbox_void(struct outbox *outbox, struct batch *batch);

/*
 * Nothing more will be sent: report everything that is unsent or in a batch that was not applied as lost, per counter, and drop all.
 * Returns the sum of its magnitudes, UINT64_MAX if that is too small.
 */
uint64_t outbox_give_up(struct outbox *outbox);

/* Is all growth up to this ticket (tickets_given at some time) in applied batches? */
bool outbox_settled(const struct outbox *outbox, uint64_t ticket);
/* ... and is some of it still kept? */
bool outbox_keeps(const struct outbox *outbox, uint64_t ticket);
