#pragma once
/*
 * bank: all slots of one owner by counter id, and which of them hold something back.
 *
 * Slots come in chunks of BANK_CHUNK, made when the owner first touches one of their ids; an owner that never sees a counter
 * spends nothing on it but address space. A slot never moves and is never freed before the bank.
 *
 * Dirty marks: one bit per id, set by the owner after it held something back, taken by a flusher:
 *
 *	owner				flusher
 *	slot_add(slot, ...)		bank_take(bank)		every bank: bits taken, kept aside
 *	bank_mark(bank, id)		fence_heavy()		once
 *					bank_visit(bank, ...)	every bank: reads the slots whose bits it took
 *
 * The owner tests a bit before it sets it, so that in the steady state it only reads a line that nobody writes. Why no mark is
 * lost: bank_mark's light fence stands between the store to the slot and the test, the flusher's heavy fence between the taking and
 * its reads. If the owner found its bit set, it tested before the flusher took it or the flusher has yet to come; in the first case the
 * heavy fence falls after the test, hence after the store to the slot, and the visit finds the growth.
 *
 * To find the few set bits among many ids the marks have a second level, one bit per word of the first. Its bit is set after the
 * word's, and taken before it, all sequentially consistent: an owner that still finds the upper bit set set its lower one
 * before the flusher looked there. (This needs the single owner: a second one could rely on a lower bit whose upper bit is yet to come.)
 *
 * Touched marks, where the owner wants to know which ids it brought something to since it last asked (a cut): one more bit per id. The flusher,
 * before it clears dirty marks, sets the touched ones of the same ids; for what is marked nowhere else (what is folded at once, or
 * isn't in a slot) the owner sets them itself. A cut is what is touched or dirty, and clears of the touched marks only those that it did
 * not find dirty:
 *
 *	owner				flusher, word by word
 *	bank_mark(bank, id)		d = dirty
 *	bank_cut:			touched |= d
 *	  d = dirty			dirty: d -> 0, or again if it is no longer d
 *	  t = touched; touched &= d
 *	  visits d | t
 *
 * Why a cut misses nothing that the owner marked before it, with no lock and no fence: if the cut finds the bit clear in dirty, the flusher cleared it
 * after the owner had set it or found it set. The flusher had set the touched bit before; and the owner acquires what it released by clearing. So
 * the cut finds the touched bit too, unless an earlier cut cleared it in between: but that one came before the owner's mark, and the dirty
 * bit was set from before the flusher set the touched one until after the mark, so that cut found it dirty and left the touched bit alone.
 * (If the owner set the bit anew after that cut, the flusher, which met it set, set the touched one after that.)
 *
 * ids: below the bank's max_ids, which the caller checks.
 *
 *			| touch, mark, cut | slot | take, visit
 * touch, mark, cut	|        X         |  -   |      -
 * slot			|        -         |  -   |      -
 * take, visit		|        -         |  -   |      X		(X = one thread at a time: the owner; the flusher)
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/hook.h"
#include "lib/count/fence.h"
#include "lib/count/slot.h"

#define BANK_CHUNK_BITS 8
#define BANK_CHUNK (1u << BANK_CHUNK_BITS)
#define BANK_MAX_IDS (1u << 26)

struct bank {
	/* Set by bank_init, read by all. What they point at is one mapping, which the kernel commits page by page where touched. */
	_Atomic(struct slot *) *chunks; /* by id / BANK_CHUNK; NULL until touched */
	_Atomic(uint64_t) *dirty;	/* by id: bits the owner sets */
	_Atomic(uint64_t) *upper;	/* by id / 64: words of `dirty` with a bit set */
	_Atomic(uint64_t) *touched;	/* as `dirty`; NULL: not asked for */
	uint64_t *taken;		/* the flusher's: as `dirty`, taken and not yet visited */
	uint64_t *taken_upper;		/* as `upper`, of `taken` */
	void *memory;
	size_t size;
	uint32_t max_ids;

	/* Written by the owner when it enters new ground, read by the flusher. */
	_Alignas(64) _Atomic(uint32_t) n_ids; /* no id at or above it was ever touched */
	_Atomic(uint32_t) n_chunks;	      /* for whoever asks how much memory is used */
};

/* max_ids: 1..BANK_MAX_IDS. `cuts`: bank_cut will be called. -ENOMEM, -EINVAL. */
int bank_init(struct bank *bank, uint32_t max_ids, bool cuts);
/* No thread uses the bank. Does nothing for a bank that is all zero. */
void bank_deinit(struct bank *bank);

/* The owner: its slot of this id, made if need be; NULL: no memory. */
struct slot *bank_touch(struct bank *bank, uint32_t id);

/* Anyone: the slot if it was ever touched, NULL otherwise. */
static inline struct slot *bank_slot(const struct bank *bank, uint32_t id)
{
	/* Acquire: pairs with the release in bank_touch, so that a new chunk is seen zeroed. */
	struct slot *chunk =
		atomic_load_explicit(&bank->chunks[id >> BANK_CHUNK_BITS], memory_order_acquire);

	return chunk != NULL ? &chunk[id & (BANK_CHUNK - 1)] : NULL;
}

/* The bit is clear: set it, and its upper one. */
void bank_mark_new(struct bank *bank, uint32_t id);

/* The owner, after it has added to a slot it touched: something is held back there. Contains the light fence. */
static inline void bank_mark(struct bank *bank, uint32_t id)
{
	/* Pairs with the fence_heavy between bank_take and bank_visit. */
	fence_light();
	RATION_HOOK();
	uint64_t bits = atomic_load_explicit(&bank->dirty[id / 64], memory_order_relaxed);

	if (__builtin_expect((bits >> (id % 64) & 1) == 0, 0)) {
		bank_mark_new(bank, id);
	}
	RATION_HOOK();
}

/* The owner, of a bank with cuts: something was brought to this id that bank_mark is not told of. Its slot need not have been touched. */
void bank_note_new(struct bank *bank, uint32_t id);

static inline void bank_note(struct bank *bank, uint32_t id)
{
	/* Relaxed, here and there: who clears it is this thread. */
	uint64_t bits = atomic_load_explicit(&bank->touched[id / 64], memory_order_relaxed);

	if ((bits >> (id % 64) & 1) == 0) {
		bank_note_new(bank, id);
	}
}

/* The owner, of a bank with cuts: visits every id that was marked or noted since the last cut, and perhaps some that were not. */
typedef void (*bank_cut_fn)(void *ctx, uint32_t id);
void bank_cut(struct bank *bank, bank_cut_fn visit, void *ctx);

/*
 * Anyone: some mark is set. False: of what the owner marked before, as far as the caller knows of it, everything was taken.
 */
bool bank_marked(const struct bank *bank);

/* The flusher, step 1: takes the marks. What was taken before and not visited stays taken. */
void bank_take(struct bank *bank);

/* The flusher, step 3, after fence_heavy: calls `visit` for every slot whose mark was taken. Returns how many. */
typedef void (*bank_visit_fn)(void *ctx, uint32_t id, struct slot *slot);
size_t bank_visit(struct bank *bank, bank_visit_fn visit, void *ctx);
