#include "lib/base/hook.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

static _Atomic(bool) hook_seeded;
static _Atomic(uint64_t) hook_seed;
static _Atomic(uint64_t) hook_streams;

static uint64_t stream_start(void)
{
	/* Relaxed: any number will do, as long as no two threads get the same one. */
	uint64_t stream = atomic_fetch_add_explicit(&hook_streams, 1, memory_order_relaxed);
	uint64_t seed = atomic_load_explicit(&hook_seed, memory_order_relaxed);
	uint64_t state = (seed + stream + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return state != 0 ? state : 1;
}

void ration_hook(void)
{
	static _Thread_local uint64_t state;
	uint64_t x = state;

	if (x == 0) {
		if (!atomic_load_explicit(&hook_seeded, memory_order_relaxed)) {
			return;
		}
		x = stream_start();
	}
	/* xorshift64 (Marsaglia 2003), full period, never 0. */
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	state = x;
	/* High bits: the low ones of a xorshift started from neighbouring seeds are alike for a while. */
	if (x >> 61 == 0) {
		(void)sched_yield();
	}
}

void ration_hook_seed(uint64_t seed)
{
	atomic_store_explicit(&hook_seed, seed, memory_order_relaxed);
	atomic_store_explicit(&hook_streams, 0, memory_order_relaxed);
	atomic_store_explicit(&hook_seeded, true, memory_order_relaxed);
}
