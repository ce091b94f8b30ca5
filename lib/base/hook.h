#pragma once
/*
 * hook: RATION_HOOK() stands between two atomic steps, where another thread could come in.
 *
 * In a normal build it is nothing. With -DRATION_HOOKS (the rooms' hooked variants, for stress tests) it gives the processor
 * away now and then, at random, so that interleavings which are rare on an idle machine happen often.
 *
 * Thread safety: any thread.
 */

#ifdef RATION_HOOKS

#include <stdint.h>

/* Yields about once in eight calls, from the first seed on. Each thread has a random stream of its own, started from the seed at its first call. */
void ration_hook(void);

/* Set before the threads that are to use it start. Streams are numbered by the order in which threads first call the hook. */
void ration_hook_seed(uint64_t seed);

#define RATION_HOOK() ration_hook()

#else

#define RATION_HOOK() ((void)0)

#endif
