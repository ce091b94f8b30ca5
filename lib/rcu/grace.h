#pragma once
/*
 * grace: read sections and grace periods, the one wrapper around liburcu (its memb flavour).
 *
 * A reader enters a section, loads a pointer, uses what it points at, and leaves. A writer makes the object unreachable, waits for
 * a grace period, and frees it: every section that could still see the object has then been left.
 *
 *	reader				writer
 *	grace_enter()			old = atomic_exchange_explicit(&head, new, acq_rel)
 *	p = atomic_load_explicit	grace_wait()
 *		(&head, acquire)	free(old)
 *	... use *p ...
 *	grace_leave()
 *
 * Pointers are published with C11 atomics: release or acq_rel by the writer, acquire by the reader. liburcu serves the grace
 * periods alone (and lib/names its hash table).
 *
 * Contract: a thread calls grace_register before its first section and grace_unregister before it ends. grace_wait may be
 * called by any thread, registered or not, and by several at once, but never inside a section (it would wait for itself). A
 * section may nest, must not block for long, and costs no locked instruction.
 *
 * ThreadSanitizer knows nothing of a liburcu that was built without it, so this header tells it: what a section did happens
 * before the grace_wait that waited for it (grace_leave <-> grace_wait), and what was done to an object before it went into a
 * liburcu hash table happens before what a look-up finds there (grace_publish <-> grace_observe). In all other builds these
 * notes are nothing.
 *
 *			| enter/leave | wait | register/unregister
 * enter/leave		|      -      |  -   |         -
 * wait			|      -      |  -   |         -
 * register/unregister	|      -      |  -   |         -		(- = no exclusion needed)
 */
#include <stddef.h>
#include <stdint.h>

#include <urcu/urcu-memb.h>

#if defined(__SANITIZE_THREAD__)
#define GRACE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GRACE_TSAN 1
#endif
#endif

#ifdef GRACE_TSAN
#include <sanitizer/tsan_interface.h>

/* Only its address counts: what every section releases and every grace_wait acquires. */
extern char grace_tag;
#endif

void grace_register(void);
void grace_unregister(void);

/* Returns when every section that was open at the call has been left. */
void grace_wait(void);

/* Everything written to *p so far is seen by whoever finds p with grace_observe. Before adding p to a liburcu structure. */
static inline void grace_publish(const void *p)
{
#ifdef GRACE_TSAN
	__tsan_release((void *)(uintptr_t)p);
#else
	(void)p;
#endif
}

/* After finding p in a liburcu structure; p may be NULL. */
static inline void grace_observe(const void *p)
{
#ifdef GRACE_TSAN
	if (p != NULL) {
		__tsan_acquire((void *)(uintptr_t)p);
	}
#else
	(void)p;
#endif
}

static inline void grace_enter(void)
{
	urcu_memb_read_lock();
}

static inline void grace_leave(void)
{
#ifdef GRACE_TSAN
	__tsan_release(&grace_tag);
#endif
	urcu_memb_read_unlock();
}
