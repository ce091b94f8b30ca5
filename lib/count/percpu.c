#include "lib/count/percpu.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/base/hook.h"

/* Whether glibc has registered this process's threads. It may not (old kernel, valgrind, switched off by a tunable). */
static bool have_rseq(void)
{
#ifdef PERCPU_RSEQ
	return __rseq_size != 0;
#else
	return false;
#endif
}

static struct slot *line_of(struct slot *base, uint32_t line)
{
	return base + (size_t)line * PERCPU_BLOCK;
}

static size_t block_size(uint32_t n_cpus)
{
	/* The head, the CPUs' pages, the shared page. */
	return ((size_t)n_cpus + 2) * PERCPU_PAGE;
}

int percpu_init(struct percpu *percpu, uint32_t n_cpus, uint32_t max_counters)
{
	if (n_cpus == 0 || n_cpus > PERCPU_MAX_CPUS || max_counters == 0 ||
	    max_counters > PERCPU_MAX_COUNTERS) {
		return -EINVAL;
	}
	/* calloc: the table is committed as far as it is used. */
	*percpu = (struct percpu){
		.blocks = calloc((max_counters - 1) / PERCPU_BLOCK + 1, sizeof(percpu->blocks[0])),
		.n_cpus = n_cpus,
		.rseq_cpus = have_rseq() ? n_cpus : 0,
		.max_counters = max_counters,
		.wiped = true,
	};
	return percpu->blocks != NULL ? 0 : -ENOMEM;
}

void percpu_deinit(struct percpu *percpu)
{
	uint32_t end = atomic_load_explicit(&percpu->end, memory_order_acquire);

	for (uint32_t i = 0; i < end; i++) {
		struct slot *block = atomic_load_explicit(&percpu->blocks[i], memory_order_acquire);

		if (block != NULL) {
			(void)munmap(percpu_head(block), block_size(percpu->n_cpus));
		}
	}
	free(percpu->blocks);
	*percpu = (struct percpu){ 0 };
}

static void head_init(const struct percpu *percpu, struct percpu_head *head)
{
	head->n_cpus = percpu->n_cpus;
	head->rseq_cpus = percpu->rseq_cpus;
}

static struct slot *new_block(struct percpu *percpu)
{
	size_t size = block_size(percpu->n_cpus);
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED) {
		return NULL;
	}
	/* A huge page would commit the pages of all CPUs at once. Ignoring failure: that costs memory alone. */
	(void)madvise(memory, size, MADV_NOHUGEPAGE);
	if (madvise(memory, size, MADV_WIPEONFORK) < 0) {
		percpu->wiped = false;
	}
	head_init(percpu, (struct percpu_head *)(void *)memory);
	return (struct slot *)(void *)(memory + PERCPU_PAGE);
}

struct slot *percpu_base(struct percpu *percpu, uint32_t index)
{
	uint32_t place = index / PERCPU_BLOCK;
	struct slot *block = atomic_load_explicit(&percpu->blocks[place], memory_order_acquire);

	if (block == NULL) {
		block = new_block(percpu);
		if (block == NULL) {
			return NULL;
		}
		/* Release: pairs with the collector's loads in block_at, which see the block's head filled in. */
		atomic_store_explicit(&percpu->blocks[place], block, memory_order_release);
		RATION_HOOK();
		if (atomic_load_explicit(&percpu->end, memory_order_relaxed) <= place) {
			/* Release: pairs with the acquire of `end` in the collector's loops. */
			atomic_store_explicit(&percpu->end, place + 1, memory_order_release);
		}
	}
	return &block[index % PERCPU_BLOCK];
}

bool percpu_is_fast(const struct percpu *percpu)
{
	return percpu->rseq_cpus != 0;
}

uint64_t percpu_sum(const struct slot *base)
{
	uint32_t n_cpus = percpu_head(base)->n_cpus;
	uint64_t sum = 0;

	for (uint32_t line = 0; line <= n_cpus; line++) {
		sum += slot_count(base + (size_t)line * PERCPU_BLOCK);
	}
	return sum;
}

int64_t percpu_collect(struct slot *base)
{
	uint32_t n_cpus = percpu_head(base)->n_cpus;
	uint64_t sum = 0;

	for (uint32_t line = 0; line <= n_cpus; line++) {
		int64_t growth;

		if (slot_claim(line_of(base, line), &growth)) {
			sum += (uint64_t)growth;
		}
	}
	return (int64_t)sum;
}

/* ---- adding ---- */

/*
 * Where sequences are used, the shared page alone is free of plain adds. Where they are not, all pages are, and threads spread
 * over them: a thread keeps its page, and neighbouring stacks hash far apart.
 */
static uint32_t atomic_line(const struct percpu_head *head)
{
	if (head->rseq_cpus != 0) {
		return head->n_cpus;
	}
	uint64_t hash = (uint64_t)(uintptr_t)pthread_self() * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)((hash >> 32) % ((uint64_t)head->n_cpus + 1));
}

static bool retry(struct slot *base, int64_t n)
{
#ifdef PERCPU_RSEQ
	for (int i = 0; i < PERCPU_RETRIES; i++) {
		if (percpu_try_rseq(base, n, percpu_head(base)->rseq_cpus)) {
			return true;
		}
	}
#else
	(void)base;
	(void)n;
#endif
	return false;
}

void percpu_add_slow(struct slot *base, int64_t n)
{
	if (!retry(base, n)) {
		struct slot *slot = line_of(base, atomic_line(percpu_head(base)));

		RATION_HOOK();
		/* Release: pairs with slot_count. */
		(void)atomic_fetch_add_explicit(&slot->count, (uint64_t)n, memory_order_release);
		RATION_HOOK();
	}
	percpu_mark(base);
}

void percpu_mark_new(const struct slot *base)
{
	struct percpu_head *head = percpu_head(base);
	uint32_t place = percpu_place(base);

	RATION_HOOK();
	(void)atomic_fetch_or_explicit(&head->dirty[place / 64], UINT64_C(1) << (place % 64),
				       memory_order_seq_cst);
	RATION_HOOK();
}

/* ---- collecting ---- */

static struct slot *block_at(const struct percpu *percpu, uint32_t place)
{
	return atomic_load_explicit(&percpu->blocks[place], memory_order_acquire);
}

static void take_block(struct percpu_head *head)
{
	for (size_t i = 0; i < PERCPU_BLOCK / 64; i++) {
		/* Loaded first: an exchange would take the line from the adders also where there is nothing to take. */
		if (atomic_load_explicit(&head->dirty[i], memory_order_relaxed) != 0) {
			RATION_HOOK();
			head->taken[i] |=
				atomic_exchange_explicit(&head->dirty[i], 0, memory_order_seq_cst);
			RATION_HOOK();
		}
	}
}

void percpu_take(struct percpu *percpu)
{
	uint32_t end = atomic_load_explicit(&percpu->end, memory_order_acquire);

	for (uint32_t place = 0; place < end; place++) {
		struct slot *block = block_at(percpu, place);

		if (block != NULL) {
			take_block(percpu_head(block));
		}
	}
}

static size_t visit_block(struct slot *block, uint32_t first, percpu_visit_fn visit, void *ctx)
{
	struct percpu_head *head = percpu_head(block);
	size_t n = 0;

	for (uint32_t i = 0; i < PERCPU_BLOCK / 64; i++) {
		uint64_t bits = head->taken[i];

		head->taken[i] = 0;
		for (; bits != 0; bits &= bits - 1) {
			uint32_t place = i * 64 + (uint32_t)__builtin_ctzll(bits);

			visit(ctx, first + place, &block[place]);
			n++;
		}
	}
	return n;
}

size_t percpu_visit(struct percpu *percpu, percpu_visit_fn visit, void *ctx)
{
	uint32_t end = atomic_load_explicit(&percpu->end, memory_order_acquire);
	size_t n = 0;

	for (uint32_t place = 0; place < end; place++) {
		struct slot *block = block_at(percpu, place);

		if (block != NULL) {
			n += visit_block(block, place * PERCPU_BLOCK, visit, ctx);
		}
	}
	return n;
}

struct sweep {
	percpu_grown_fn grown;
	void *ctx;
	size_t n;
};

static void sweep_one(void *ctx, uint32_t index, struct slot *base)
{
	struct sweep *sweep = ctx;
	int64_t growth = percpu_collect(base);

	if (growth != 0) {
		sweep->grown(sweep->ctx, index, growth);
		sweep->n++;
	}
}

size_t percpu_sweep(struct percpu *percpu, percpu_grown_fn grown, void *ctx)
{
	struct sweep sweep = { .grown = grown, .ctx = ctx };

	percpu_take(percpu);
	fence_heavy();
	(void)percpu_visit(percpu, sweep_one, &sweep);
	return sweep.n;
}

/* ---- fork ---- */

/* Reads all slots, and writes to those alone that held something back, so that few pages are copied. */
static void discard_block(struct slot *block, uint32_t n_cpus)
{
	for (uint32_t line = 0; line <= n_cpus; line++) {
		for (uint32_t place = 0; place < PERCPU_BLOCK; place++) {
			int64_t growth;

			(void)slot_claim(&line_of(block, line)[place], &growth);
		}
	}
}

void percpu_restart(struct percpu *percpu)
{
	uint32_t end = atomic_load_explicit(&percpu->end, memory_order_acquire);

	for (uint32_t place = 0; place < end; place++) {
		struct slot *block = block_at(percpu, place);

		if (block == NULL) {
			continue;
		}
		if (!percpu->wiped) {
			discard_block(block, percpu->n_cpus);
		}
		head_init(percpu, percpu_head(block));
	}
}
