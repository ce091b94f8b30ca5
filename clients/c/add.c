/*
 * Adding: the part of the library that must cost nothing. In the ordinary case ration_add is a leaf without a stack frame: an addition
 * in a restartable sequence and a look at the counter's dirty bit. All else is out of line and called last.
 *
 * In the child of a fork all dirty bits are clear at first, so that the first add finds the way to fork_resume without a question of
 * its own in the ordinary case.
 */
#include "clients/c/client.h"
#include "clients/c/fork.h"
#include "clients/c/include/ration.h"

static const char TEXT_RANGE[] = "more than 2^63 is waiting to be sent for this counter";

/* Exact, against all that waits for this counter. */
static __attribute__((noinline, cold)) void add_large(struct ration_counter *counter, int64_t n)
{
	struct ration *client = counter->client;

	if (fork_is_asleep()) {
		fork_resume();
	}
	(void)pthread_mutex_lock(&client->lock);
	if (!outbox_add(&client->outbox, counter, n)) {
		losses_add(&client->losses, counter, CODE_OUT_OF_RANGE, n, TEXT_RANGE,
			   sizeof(TEXT_RANGE) - 1);
	}
	(void)pthread_mutex_unlock(&client->lock);
}

/* The sequence was interrupted, or there are none here. */
static __attribute__((noinline)) void add_slow(struct ration_counter *counter, int64_t n)
{
	percpu_add_slow(counter->slots, n);
	if (__builtin_expect(fork_is_asleep(), 0)) {
		fork_resume();
	}
}

/* The first add since the last collection. */
static __attribute__((noinline)) void mark(struct ration_counter *counter)
{
	percpu_mark_new(counter->slots);
	if (__builtin_expect(fork_is_asleep(), 0)) {
		fork_resume();
	}
}

static inline bool try_fast(struct slot *slots, int64_t n)
{
#ifdef PERCPU_RSEQ
	return percpu_try_rseq(slots, n, percpu_head(slots)->rseq_cpus);
#else
	(void)slots;
	(void)n;
	return false;
#endif
}

static inline void add(struct ration_counter *counter, int64_t n)
{
	if (__builtin_expect(!try_fast(counter->slots, n), 0)) {
		add_slow(counter, n);
		return;
	}
	/* As percpu_mark does; pairs with the heavy fence in percpu_sweep. */
	fence_light();
	if (__builtin_expect((atomic_load_explicit(counter->dirty, memory_order_relaxed) &
			      counter->dirty_bit) == 0,
			     0)) {
		mark(counter);
	}
}

void ration_add(struct ration_counter *counter, int64_t n)
{
	/*
	 * A slot's growth between two collections must stay within int64: at 2^31 per add and 2^30 adds a second that takes four seconds,
	 * some eighty times the interval.
	 */
	if (__builtin_expect(n != (int32_t)n, 0)) {
		add_large(counter, n);
		return;
	}
	add(counter, n);
}

void ration_inc(struct ration_counter *counter)
{
	add(counter, 1);
}
