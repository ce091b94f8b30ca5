#include "lib/count/bank.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Parts of a bank start on pages of their own, so that the owner's and the flusher's share no line. */
#define PART_ALIGN 4096u
#define LINE 64u

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static size_t part_size(size_t n, size_t size)
{
	return round_up(n * size, PART_ALIGN);
}

int bank_init(struct bank *bank, uint32_t max_ids, bool cuts)
{
	if (max_ids == 0 || max_ids > BANK_MAX_IDS) {
		return -EINVAL;
	}

	size_t n_words = round_up(max_ids, 64) / 64;
	size_t n_upper = round_up(n_words, 64) / 64;
	size_t chunks =
		part_size(round_up(max_ids, BANK_CHUNK) / BANK_CHUNK, sizeof(bank->chunks[0]));
	size_t words = part_size(n_words, sizeof(uint64_t));
	size_t upper = part_size(n_upper, sizeof(uint64_t));
	size_t size = chunks + 2 * words + 2 * upper + (cuts ? words : 0);
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED) {
		return -ENOMEM;
	}
	*bank = (struct bank){
		.chunks = (void *)memory,
		.dirty = (void *)(memory + chunks),
		.upper = (void *)(memory + chunks + words),
		.taken = (void *)(memory + chunks + words + upper),
		.taken_upper = (void *)(memory + chunks + 2 * words + upper),
		.touched = cuts ? (void *)(memory + chunks + 2 * words + 2 * upper) : NULL,
		.memory = memory,
		.size = size,
		.max_ids = max_ids,
	};
	return 0;
}

void bank_deinit(struct bank *bank)
{
	if (bank->memory == NULL) {
		return;
	}
	size_t n = round_up(atomic_load_explicit(&bank->n_ids, memory_order_acquire), BANK_CHUNK) /
		   BANK_CHUNK;

	for (size_t i = 0; i < n; i++) {
		free(atomic_load_explicit(&bank->chunks[i], memory_order_acquire));
	}
	(void)munmap(bank->memory, bank->size);
	*bank = (struct bank){ 0 };
}

/* The owner will mark or note this id. */
static void reach(struct bank *bank, uint32_t id)
{
	if (atomic_load_explicit(&bank->n_ids, memory_order_relaxed) <= id) {
		/* Sequentially consistent as the marks are: whoever finds a mark at or above the old n_ids finds the new one. */
		atomic_store_explicit(&bank->n_ids, (id | (BANK_CHUNK - 1)) + 1,
				      memory_order_seq_cst);
	}
}

static struct slot *new_chunk(struct bank *bank, uint32_t id)
{
	size_t size = BANK_CHUNK * sizeof(struct slot);
	struct slot *chunk = aligned_alloc(LINE, size);

	if (chunk == NULL) {
		return NULL;
	}
	memset(chunk, 0, size);
	reach(bank, id);
	RATION_HOOK();
	/* Release: pairs with bank_slot. */
	atomic_store_explicit(&bank->chunks[id >> BANK_CHUNK_BITS], chunk, memory_order_release);
	atomic_store_explicit(&bank->n_chunks,
			      atomic_load_explicit(&bank->n_chunks, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	return chunk;
}

struct slot *bank_touch(struct bank *bank, uint32_t id)
{
	struct slot *slot = bank_slot(bank, id);

	if (__builtin_expect(slot != NULL, 1)) {
		return slot;
	}
	struct slot *chunk = new_chunk(bank, id);

	return chunk != NULL ? &chunk[id & (BANK_CHUNK - 1)] : NULL;
}

void bank_mark_new(struct bank *bank, uint32_t id)
{
	uint32_t word = id / 64;
	uint64_t upper_bit = UINT64_C(1) << (word % 64);

	/*
	 * Sequentially consistent against bank_take, which clears the upper bit and then looks at the word: either the load here finds
	 * the upper bit cleared, and sets it again for the next flush, or bank_take finds the lower bit.
	 */
	(void)atomic_fetch_or_explicit(&bank->dirty[word], UINT64_C(1) << (id % 64),
				       memory_order_seq_cst);
	RATION_HOOK();
	if ((atomic_load_explicit(&bank->upper[word / 64], memory_order_seq_cst) & upper_bit) == 0) {
		RATION_HOOK();
		(void)atomic_fetch_or_explicit(&bank->upper[word / 64], upper_bit,
					       memory_order_seq_cst);
	}
}

void bank_note_new(struct bank *bank, uint32_t id)
{
	reach(bank, id);
	/* An exchange, since the flusher sets others. */
	(void)atomic_fetch_or_explicit(&bank->touched[id / 64], UINT64_C(1) << (id % 64),
				       memory_order_relaxed);
}

bool bank_marked(const struct bank *bank)
{
	size_t n_words = atomic_load_explicit(&bank->n_ids, memory_order_seq_cst) / 64;

	for (size_t u = 0; u * 64 < n_words; u++) {
		/* Acquire: pairs with take_word; who finds a bit cleared finds what the flusher did before. */
		if (atomic_load_explicit(&bank->upper[u], memory_order_acquire) != 0) {
			return true;
		}
	}
	return false;
}

/* The bits of *word, cleared there. Loaded first: an exchange would claim the line also where there is nothing to take. */
static uint64_t take_word(_Atomic(uint64_t) *word)
{
	if (atomic_load_explicit(word, memory_order_seq_cst) == 0) {
		return 0;
	}
	RATION_HOOK();
	uint64_t bits = atomic_exchange_explicit(word, 0, memory_order_seq_cst);

	RATION_HOOK();
	return bits;
}

/* The same, with cuts: each bit is set in `touched` while it is still set here. Release, by the exchange: pairs with bank_cut. */
static uint64_t hand_word(_Atomic(uint64_t) *word, _Atomic(uint64_t) *touched)
{
	uint64_t bits = atomic_load_explicit(word, memory_order_seq_cst);

	do {
		if (bits == 0) {
			return 0;
		}
		RATION_HOOK();
		(void)atomic_fetch_or_explicit(touched, bits, memory_order_relaxed);
		RATION_HOOK();
	} while (!atomic_compare_exchange_weak_explicit(word, &bits, 0, memory_order_seq_cst,
							memory_order_seq_cst));
	RATION_HOOK();
	return bits;
}

static uint32_t lowest(uint64_t bits)
{
	return (uint32_t)__builtin_ctzll(bits);
}

void bank_take(struct bank *bank)
{
	size_t n_words = atomic_load_explicit(&bank->n_ids, memory_order_seq_cst) / 64;

	for (size_t u = 0; u * 64 < n_words; u++) {
		for (uint64_t uppers = take_word(&bank->upper[u]); uppers != 0;
		     uppers &= uppers - 1) {
			size_t word = u * 64 + lowest(uppers);
			uint64_t bits = bank->touched != NULL ? hand_word(&bank->dirty[word],
									  &bank->touched[word])
							      : take_word(&bank->dirty[word]);

			if (bits != 0) {
				bank->taken[word] |= bits;
				bank->taken_upper[u] |= UINT64_C(1) << (word % 64);
			}
		}
	}
}

static size_t visit_word(struct bank *bank, size_t word, bank_visit_fn visit, void *ctx)
{
	size_t n = 0;

	for (uint64_t bits = bank->taken[word]; bits != 0; bits &= bits - 1) {
		uint32_t id = (uint32_t)(word * 64) + lowest(bits);

		visit(ctx, id, bank_slot(bank, id));
		n++;
	}
	bank->taken[word] = 0;
	return n;
}

size_t bank_visit(struct bank *bank, bank_visit_fn visit, void *ctx)
{
	size_t n_words = atomic_load_explicit(&bank->n_ids, memory_order_seq_cst) / 64;
	size_t n = 0;

	for (size_t u = 0; u * 64 < n_words; u++) {
		for (uint64_t uppers = bank->taken_upper[u]; uppers != 0; uppers &= uppers - 1) {
			n += visit_word(bank, u * 64 + lowest(uppers), visit, ctx);
		}
		bank->taken_upper[u] = 0;
	}
	return n;
}

/* What was brought since the last cut to the ids of one word; see the head of bank.h. */
static uint64_t cut_word(_Atomic(uint64_t) *dirty, _Atomic(uint64_t) *touched)
{
	/* Acquire: pairs with the release in hand_word; who finds a bit cleared finds it in `touched`. */
	uint64_t marked = atomic_load_explicit(dirty, memory_order_acquire);
	uint64_t noted;

	RATION_HOOK();
	noted = atomic_load_explicit(touched, memory_order_relaxed);
	if ((noted & ~marked) != 0) {
		RATION_HOOK();
		noted = atomic_fetch_and_explicit(touched, marked, memory_order_relaxed);
	}
	RATION_HOOK();
	return marked | noted;
}

/* Looks at every word: the upper bits are the flusher's, and can be gone while a lower one is still there. */
void bank_cut(struct bank *bank, bank_cut_fn visit, void *ctx)
{
	size_t n_words = atomic_load_explicit(&bank->n_ids, memory_order_relaxed) / 64;

	for (size_t word = 0; word < n_words; word++) {
		for (uint64_t bits = cut_word(&bank->dirty[word], &bank->touched[word]); bits != 0;
		     bits &= bits - 1) {
			visit(ctx, (uint32_t)(word * 64) + lowest(bits));
		}
	}
}
