#include "lib/count/pending.h"

static void count_up(_Atomic(uint64_t) *word)
{
	uint64_t value = atomic_load_explicit(word, memory_order_relaxed);

	/* Only the share's own thread writes it. */
	atomic_store_explicit(word, value + 1, memory_order_relaxed);
}

void pending_signal(struct pending *pending, struct pending_share *share)
{
	int64_t threshold = pending_threshold(pending);
	int64_t step = share->local;

	share->local = 0;
	RATION_HOOK();
	/*
	 * Sequentially consistent, as are the marks' exchanges in lib/count/bank.c and the one in pending_reset: if this load finds
	 * the word as it was before a reset, then that flusher, which takes the marks after its reset, finds the mark set before.
	 */
	if (atomic_load_explicit(&pending->word, memory_order_seq_cst) > threshold) {
		count_up(&share->skipped);
		return;
	}
	RATION_HOOK();
	/* More than the threshold means no more than that: the sum can't overflow, however large a step is. */
	(void)atomic_fetch_add_explicit(&pending->word, step <= threshold ? step : threshold + 1,
					memory_order_relaxed);
	count_up(&share->signals);
}

bool pending_due(const struct pending *pending)
{
	/* Acquire: pairs with pending_reset; what the flusher did before that is seen by who finds the word low because of it. */
	return atomic_load_explicit(&pending->word, memory_order_acquire) >
	       pending_threshold(pending);
}

int64_t pending_bound(const struct pending *pending, uint32_t workers)
{
	return pending_threshold(pending) + (int64_t)workers * (PENDING_STEP - 1);
}

void pending_reset(struct pending *pending)
{
	/* Pairs with pending_signal. An exchange, not a store: it is ordered before the taking of the marks. */
	(void)atomic_exchange_explicit(&pending->word, 0, memory_order_seq_cst);
	RATION_HOOK();
}
