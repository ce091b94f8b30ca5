#pragma once
/*
 * percpu: counters that any thread may add to, one slot per CPU, for the client library.
 *
 * On x86-64, where glibc (2.35 or later) has registered restartable sequences with the kernel, an add is a plain `add` to the slot of
 * the CPU it runs on, inside such a sequence: a thread that is moved or interrupted before that instruction starts over, so each
 * slot has one writing CPU and no instruction is locked. Whether that is so is found when the counters are made. Elsewhere, and
 * in sanitizer builds, which can't see into the sequence, adds are atomic.
 *
 * Layout: counters come in blocks of PERCPU_BLOCK. A block is a run of pages, and a counter is known by its `base`, its slot on CPU 0:
 *
 *	page -1		struct percpu_head: dirty bits of the block's counters
 *	page c		CPU c's slots: base + c * PERCPU_PAGE		0 <= c < n_cpus
 *	page n_cpus	the shared slots, which are only ever added to atomically
 *
 * A page of a CPU that never adds is never committed. The shared page is there because a plain add and an atomic one to the same word
 * from two CPUs lose counts: whoever can't use a sequence now (aborted too often, CPU number beyond n_cpus, a thread that is not
 * registered) adds there. Without sequences all writers are atomic, and spread over all pages by thread.
 *
 * Dirty bits as in lib/count/bank.h, of a single level: the adder sets the counter's bit if it finds it clear, after its add and a
 * light fence; the collector takes the bits, makes a heavy fence, then visits. percpu_sweep does all three.
 *
 * Slots are not folded at a batch: `published` is moved by the collector alone.
 *
 * fork: the child's blocks start at zero (MADV_WIPEONFORK), so it has nothing to send that is its parent's. percpu_restart makes them
 * ready again, and does the same by hand where the kernel could not; adds before it are counted too.
 *
 * Unloading: the kernel may look at the sequence's descriptor after the add has returned, so a shared library with
 * percpu_add in it must never be unmapped: link it with -z nodelete.
 *
 *		| add | base | take, visit, sweep, restart | sum
 * add		|  -  |  -   |            -  (1)           |  -
 * base		|  -  |  X   |            -                |  -
 * take .. restart |  -  |  -   |         X                |  -
 * sum		|  -  |  -   |            -                |  -	(X = one thread at a time)
 * (1) not restart: it is for a process that has one thread.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/count/fence.h"
#include "lib/count/slot.h"

#if defined(__x86_64__) && !defined(SLOT_SANITIZED) && !defined(PERCPU_NO_RSEQ) && __has_include(<sys/rseq.h>)
#define PERCPU_RSEQ 1
#include <sys/rseq.h>
#endif

#define PERCPU_BLOCK 256u
#define PERCPU_PAGE 4096u /* PERCPU_BLOCK slots; also where the system's pages are larger */
#define PERCPU_MAX_COUNTERS (1u << 26)
#define PERCPU_MAX_CPUS 8192u
#define PERCPU_RETRIES 8 /* aborted sequences in a row, before the shared slot is taken */

_Static_assert(PERCPU_BLOCK * sizeof(struct slot) == PERCPU_PAGE, "one page per CPU and block");

/* In the page before CPU 0's. All zero in a forked child before percpu_restart: adds are then atomic, to CPU 0's page. */
struct percpu_head {
	/* Read by every add; the bits change twice between two collections at most. */
	_Atomic(uint64_t) dirty[PERCPU_BLOCK / 64];
	uint32_t rseq_cpus; /* CPUs whose slots are added to in a sequence: n_cpus or 0 */
	uint32_t n_cpus;

	/* The collector's own: bits taken and not yet visited. */
	_Alignas(64) uint64_t taken[PERCPU_BLOCK / 64];
};

struct percpu {
	_Atomic(struct slot *) *blocks; /* CPU 0's page of each block, NULL until made */
	uint32_t n_cpus;
	uint32_t rseq_cpus;
	uint32_t max_counters;
	_Atomic(uint32_t) end; /* blocks at and above it were never made */
	bool wiped;	       /* the kernel clears all blocks in a forked child */
};

/*
 * n_cpus: the CPUs there may ever be (sysconf(_SC_NPROCESSORS_CONF)), 1..PERCPU_MAX_CPUS; if it is too small, adds on the others are
 * slower, not lost. max_counters: 1..PERCPU_MAX_COUNTERS. -EINVAL, -ENOMEM.
 */
int percpu_init(struct percpu *percpu, uint32_t n_cpus, uint32_t max_counters);
/* No thread adds any more. Does nothing for one that is all zero. */
void percpu_deinit(struct percpu *percpu);

/* The counter `index` (below max_counters), made if need be; valid until percpu_deinit. NULL: no memory. */
struct slot *percpu_base(struct percpu *percpu, uint32_t index);

/* True if adds run in restartable sequences here; for tests, benchmarks and status texts. */
bool percpu_is_fast(const struct percpu *percpu);

/* Everything ever added to one counter, modulo 2^64. */
uint64_t percpu_sum(const struct slot *base);

/* What this counter's slots held back, which the caller now owes to its totals. 0: nothing. */
int64_t percpu_collect(struct slot *base);

typedef void (*percpu_visit_fn)(void *ctx, uint32_t index, struct slot *base);

/* Takes the dirty bits; then, after fence_heavy, visits the counters whose bits were taken. */
void percpu_take(struct percpu *percpu);
size_t percpu_visit(struct percpu *percpu, percpu_visit_fn visit, void *ctx);

/* All at once: `grown` is called for each counter with its growth (not 0). Everything whose add returned before the call is included. */
typedef void (*percpu_grown_fn)(void *ctx, uint32_t index, int64_t growth);
size_t percpu_sweep(struct percpu *percpu, percpu_grown_fn grown, void *ctx);

/* In a forked child, before it collects: what was held back at the fork is the parent's, and is forgotten here. */
void percpu_restart(struct percpu *percpu);

/* All of percpu_add, where the first attempt at a sequence failed or there is none. */
void percpu_add_slow(struct slot *base, int64_t n);

/* The counter's dirty bit is clear: set it. */
void percpu_mark_new(const struct slot *base);

static inline struct percpu_head *percpu_head(const struct slot *base)
{
	return (struct percpu_head *)(((uintptr_t)base & ~(uintptr_t)(PERCPU_PAGE - 1)) -
				      PERCPU_PAGE);
}

/* The counter's place in its block. */
static inline uint32_t percpu_place(const struct slot *base)
{
	return (uint32_t)((uintptr_t)base / sizeof(struct slot)) % PERCPU_BLOCK;
}

#ifdef PERCPU_RSEQ

#ifdef RATION_HOOKS
/*
 * For stress tests: the same as a load and a store with a pause between them. Now nearly every interruption falls into the sequence,
 * and one that was not started over would lose a count each time.
 */
#define PERCPU_COMMIT                      \
	"movq (%[base], %%rax), %%rdx\n\t" \
	"addq %[n], %%rdx\n\t"             \
	"movl $300, %%ecx\n"               \
	"5:\n\t"                           \
	"decl %%ecx\n\t"                   \
	"jnz 5b\n\t"                       \
	"movq %%rdx, (%[base], %%rax)\n"
#define PERCPU_CLOBBERS "rax", "rcx", "rdx", "memory", "cc"
#else
#define PERCPU_COMMIT "addq %[n], (%[base], %%rax)\n"
#define PERCPU_CLOBBERS "rax", "memory", "cc"
#endif

/*
 * One attempt; false: aborted, or not on a CPU below n_cpus (0: there are no sequences), and nothing was added.
 *
 * glibc keeps `struct rseq` at a fixed distance from the thread pointer. Its cpu_id is loaded inside the sequence, so that it is still
 * the CPU's when the add commits; a thread without registration finds a number above every CPU's there. Leaving the pointer to the
 * descriptor in place afterwards is allowed: the kernel clears it when it next finds it outside the sequence.
 */
static inline bool percpu_try_rseq(struct slot *base, int64_t n, uint32_t n_cpus)
{
	_Static_assert(offsetof(struct rseq, cpu_id) == 4 && offsetof(struct rseq, rseq_cs) == 8,
		       "as in the kernel's ABI");
	_Static_assert(RSEQ_SIG == 0x53053053,
		       "what glibc registered, and what stands before the abort label");

	/* Before anything else: without registration there may be no struct rseq to write to. */
	if (__builtin_expect(n_cpus == 0, 0)) {
		return false;
	}
	__asm__ goto(
		/* struct rseq_cs: version, flags, start, length, abort address */
		".pushsection __rseq_cs, \"aw\"\n\t"
		".balign 32\n"
		"3:\n\t"
		".long 0, 0\n\t"
		".quad 1f, 2f - 1f, 4f\n\t"
		".popsection\n\t"
		"leaq 3b(%%rip), %%rax\n\t"
		"movq %%rax, %%fs:8(%[area])\n"
		"1:\n\t"
		"movl %%fs:4(%[area]), %%eax\n\t"
		"cmpl %[n_cpus], %%eax\n\t"
		"jae %l[failed]\n\t"
		"shlq $12, %%rax\n\t" PERCPU_COMMIT "2:\n\t"
		/* The signature, as the operand of an instruction that traps (ud1), then where the kernel goes on an abort. */
		".pushsection .text.percpu_abort, \"ax\"\n\t"
		".byte 0x0f, 0xb9, 0x3d\n\t"
		".long 0x53053053\n"
		"4:\n\t"
		"jmp %l[failed]\n\t"
		".popsection\n"
		:
		: [area] "r"(__rseq_offset), [n_cpus] "r"(n_cpus), [n] "er"(n), [base] "r"(&base->count)
		: PERCPU_CLOBBERS
		: failed);
	return true;
failed:
	return false;
}

#endif

/* After an add: the counter has grown. Contains the light fence. */
static inline void percpu_mark(const struct slot *base)
{
	struct percpu_head *head = percpu_head(base);
	uint32_t place = percpu_place(base);

	/* Pairs with the fence_heavy between percpu_take and percpu_visit. */
	fence_light();
	uint64_t bits = atomic_load_explicit(&head->dirty[place / 64], memory_order_relaxed);

	if (__builtin_expect((bits >> (place % 64) & 1) == 0, 0)) {
		percpu_mark_new(base);
	}
}

/*
 * Add n to the counter, from any thread; also from a signal handler. Never waits, never allocates. Once it has returned, any sweep that
 * begins later includes it.
 */
static inline void percpu_add(struct slot *base, int64_t n)
{
#ifdef PERCPU_RSEQ
	if (__builtin_expect(percpu_try_rseq(base, n, percpu_head(base)->rseq_cpus), 1)) {
		percpu_mark(base);
		return;
	}
#endif
	percpu_add_slow(base, n);
}
