/*
 * Adding: the part of the library that must cost nothing. Apart from it the functions here are for amounts no one adds every day, and for
 * the first add after a fork.
 */
#include "clients/c/client.h"
#include "clients/c/fork.h"
#include "clients/c/include/ration.h"

/*
 * What goes to the slots directly. A slot's growth between two collections must stay within int64: at 2^32 per add and 2^30 adds a
 * second that takes two seconds, some forty times the interval.
 */
#define ADD_MAX (INT64_C(1) << 32)

static const char TEXT_RANGE[] = "more than 2^63 is waiting to be sent for this counter";

/* Exact, against all that waits for this counter. Kept out of line so that ration_add needs no stack frame. */
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

static __attribute__((noinline, cold)) void resume(void)
{
	fork_resume();
}

void ration_add(struct ration_counter *counter, int64_t n)
{
	if (__builtin_expect((uint64_t)n + ADD_MAX > 2 * (uint64_t)ADD_MAX, 0)) {
		add_large(counter, n);
		return;
	}
	percpu_add(counter->slots, n);
	if (__builtin_expect(fork_is_asleep(), 0)) {
		resume();
	}
}

void ration_inc(struct ration_counter *counter)
{
	percpu_add(counter->slots, 1);
	if (__builtin_expect(fork_is_asleep(), 0)) {
		resume();
	}
}
