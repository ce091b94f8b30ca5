#pragma once
/*
 * fence: a store-load barrier that costs its frequent side nothing.
 *
 *	often (the light side)		seldom (the heavy side)
 *	store count			clear mark
 *	fence_light()			fence_heavy()
 *	load mark			load count
 *
 * One of the two sees the other: the light side finds the mark cleared, or the heavy side finds the count. The light side is a
 * compiler barrier; the heavy one makes every running thread of the process pass a full barrier (membarrier(2), private
 * expedited: a few microseconds). Where the kernel does not have that call both sides are full fences, and the light side costs
 * what a locked instruction costs.
 *
 * The mode is the process's, since the registration is. fence_setup is called once before any other thread uses a fence
 * (more calls do no harm); without it both sides are full fences, which is right as well.
 */
#include <stdatomic.h>

#if defined(__SANITIZE_THREAD__)
#define FENCE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FENCE_TSAN 1
#endif
#endif

enum fence_mode {
	FENCE_FULL,	  /* full fences on both sides */
	FENCE_ASYMMETRIC, /* compiler barrier and membarrier */
	FENCE_BROKEN,	  /* compiler barrier and nothing: to show in tests that it is needed */
};

/* Written by fence_setup and fence_force alone. Hidden: a shared library then loads it directly, not by way of its GOT. */
extern _Atomic(int) fence_mode __attribute__((visibility("hidden")));

#ifdef FENCE_TSAN
extern _Atomic(int) fence_dummy __attribute__((visibility("hidden")));
#endif

/* Registers the process with membarrier and chooses the mode. */
void fence_setup(void);

/* For tests and benchmarks: this mode from now on. No other thread may be between its fence and what it guards. */
void fence_force(enum fence_mode mode);

void fence_heavy(void);

static inline void fence_full(void)
{
#ifdef FENCE_TSAN
	/* ThreadSanitizer has no fences; a sequentially consistent read-modify-write is as good here. */
	(void)atomic_fetch_add_explicit(&fence_dummy, 1, memory_order_seq_cst);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* Pairs with fence_heavy. */
static inline void fence_light(void)
{
	int mode = atomic_load_explicit(&fence_mode, memory_order_relaxed);

	if (__builtin_expect(mode == FENCE_FULL, 0)) {
		fence_full();
	} else {
		atomic_signal_fence(memory_order_seq_cst);
	}
}
