#include "lib/count/fold.h"

#include <sched.h>

/* A fold is a walk up a few levels: if it takes longer than this many looks, its thread was probably interrupted. */
#define FOLD_SPINS 200

static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

void fold_wait(const struct fold_line *line)
{
	/* Acquire: pairs with the release in fold_end. */
	uint64_t seq = atomic_load_explicit(&line->seq, memory_order_acquire);
	unsigned spins = 0;

	if (seq % 2 == 0) {
		return;
	}
	while (atomic_load_explicit(&line->seq, memory_order_acquire) == seq) {
		if (++spins < FOLD_SPINS) {
			relax();
		} else {
			(void)sched_yield();
		}
	}
}
