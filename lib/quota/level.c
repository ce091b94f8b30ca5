#include "lib/quota/level.h"

#include "lib/quota/protect.h"
#include "lib/quota/rate.h"

/*
 * As long as usage and amounts stay below these, a fetch_add can't wrap: it would take 2^22 threads, each between its look and its add.
 */
#define FORCE_SAFE_USAGE (INT64_C(1) << 62)
#define FORCE_SAFE_AMOUNT (INT64_C(1) << 40)

void level_moment(const struct quota_node *node, const struct quota_time *time,
		  struct level_moment *ret_moment)
{
	ret_moment->wall_ns = time->wall_ns;
	ret_moment->mono_ns = time->mono_ns > 0 ? time->mono_ns : 0;
	ret_moment->number = 0;
	if (node->kind == WINDOW_PER || node->kind == WINDOW_CALENDAR) {
		struct window window = quota_window(node);

		ret_moment->number = window_number(&window, time->wall_ns);
	}
}

void level_tally(_Atomic(int64_t) *figure, int64_t amount)
{
	int64_t old = atomic_load_explicit(figure, memory_order_relaxed);
	int64_t sum;

	/* Relaxed: figures for people, they order nothing. */
	do {
		if (__builtin_add_overflow(old, amount, &sum)) {
			sum = INT64_MAX;
		}
	} while (!atomic_compare_exchange_weak_explicit(figure, &old, sum, memory_order_relaxed,
							memory_order_relaxed));
}

/* Never lowers: for peak and moved. Release, for `moved`: whoever sees the usage that follows it sees it. */
static inline void raise_to(_Atomic(int64_t) *mark, int64_t value)
{
	int64_t old = atomic_load_explicit(mark, memory_order_relaxed);

	while (value > old) {
		RATION_HOOK();
		if (atomic_compare_exchange_weak_explicit(mark, &old, value, memory_order_release,
							  memory_order_relaxed)) {
			return;
		}
	}
}

static inline bool replace(struct quota_node *node, uint64_t *word, uint64_t next)
{
	bool replaced;

	RATION_HOOK();
	/* Sequentially consistent: see the head of level.h. A failure only looks again. */
	replaced = atomic_compare_exchange_weak_explicit(
		&node->usage, word, next, memory_order_seq_cst, memory_order_acquire);
	RATION_HOOK();
	return replaced;
}

/* Acquire: pairs with the exchange that wrote it; `moved` is then no older than the word. */
static inline uint64_t usage_of(const struct quota_node *node)
{
	return atomic_load_explicit(&node->usage, memory_order_acquire);
}

/* ---- protections ---- */

/*
 * One of the two claims; usage is what the caller's own step made of it. The claim is compared first and exchanged only if it differs (with usage
 * well above or below the setting it mostly does not: that is what makes it cheap); the difference to what was replaced goes to
 * the parent's sum, so the sum never misses any of it. After an exchange look again, at usage too: T changed usage and then read the
 * claim; S exchanged the claim and then read usage. By sequential consistency T sees S's claim and corrects it, or S sees T's usage and
 * does. The last to change usage has the right one in hand without looking: so at rest the claim is right.
 */
static void claim(const struct quota_node *node, int64_t usage, const _Atomic(int64_t) *setting,
		  _Atomic(int64_t) *used, _Atomic(int64_t) *sum)
{
	for (;;) {
		int64_t want =
			protect_used(usage, atomic_load_explicit(setting, memory_order_seq_cst));
		int64_t old;

		RATION_HOOK();
		if (atomic_load_explicit(used, memory_order_seq_cst) == want) {
			return;
		}
		RATION_HOOK();
		old = atomic_exchange_explicit(used, want, memory_order_seq_cst);
		RATION_HOOK();
		/* Relaxed: the sum is exact at rest; whoever reads it meanwhile reads a sum of some moment's claims. */
		(void)atomic_fetch_add_explicit(sum, want - old, memory_order_relaxed);
		RATION_HOOK();
		usage = (int64_t)atomic_load_explicit(&node->usage, memory_order_seq_cst);
	}
}

static void claim_both(struct quota_node *node, int64_t usage)
{
	struct quota_node *parent = level_parent(node);

	if (parent != NULL && node->kind == WINDOW_NONE) {
		claim(node, usage, &node->min, &node->min_used, &parent->children_min);
		claim(node, usage, &node->low, &node->low_used, &parent->children_low);
	}
}

void level_reclaim(struct quota_node *node)
{
	claim_both(node, (int64_t)atomic_load_explicit(&node->usage, memory_order_seq_cst));
}

/*
 * After our step has made usage what it says. Nothing set, nothing to do: a claim from before is taken back by who set it so
 * (level_reclaim), with the same argument.
 */
static inline void protect(struct quota_node *node, int64_t usage)
{
	if (__builtin_expect((atomic_load_explicit(&node->min, memory_order_seq_cst) |
			      atomic_load_explicit(&node->low, memory_order_seq_cst)) != 0,
			     0)) {
		claim_both(node, usage);
	}
}

/* ---- no window ---- */

static void plain_undo(struct quota_node *node, int64_t n)
{
	RATION_HOOK();
	uint64_t word = atomic_fetch_sub_explicit(&node->usage, (uint64_t)n, memory_order_seq_cst);
	RATION_HOOK();
	/* Not propagated by us; but who propagated meanwhile has seen it. */
	protect(node, (int64_t)(word - (uint64_t)n));
}

static inline bool is_shadow(const struct quota_node *node)
{
	return atomic_load_explicit(&node->shadow, memory_order_seq_cst);
}

static inline int64_t max_of(const struct quota_node *node)
{
	return atomic_load_explicit(&node->max, memory_order_seq_cst);
}

static inline bool plain_take(struct quota_node *node, int64_t n, uint64_t *ret_word,
			      bool *ret_shadow, struct quota_outcome *outcome)
{
	uint64_t word = usage_of(node);

	for (;;) {
		int64_t max = max_of(node);
		bool fits = (int64_t)word <= max - n; /* max >= 0 and n > 0: no overflow */
		bool shadow = !fits && is_shadow(node);

		if (__builtin_expect(!fits, 0) && (!shadow || (int64_t)word > INT64_MAX - n)) {
			outcome->usage = (int64_t)word;
			outcome->max = shadow ? QUOTA_NONE : max;
			return false;
		}
		if (!replace(node, &word, word + (uint64_t)n)) {
			continue;
		}
		/*
		 * Pairs with quota_set_limits: we see what it has stored and go back, or it stored that after we took. Read once: what
		 * is seen later may be another max again.
		 */
		int64_t now = max_of(node);

		if (__builtin_expect(now < max || shadow, 0) && (int64_t)word > now - n &&
		    !is_shadow(node)) {
			plain_undo(node, n);
			word = usage_of(node);
			continue;
		}
		*ret_shadow = shadow;
		*ret_word = word + (uint64_t)n;
		return true;
	}
}

/*
 * usage + n as far as it can be told; returns what can't, by magnitude. A fall first records the height it falls from: peak lags behind
 * usage while that only grows, and quota_read takes the higher of the two.
 */
static uint64_t plain_add(struct quota_node *node, int64_t n, int64_t *ret_usage)
{
	uint64_t word = usage_of(node);
	uint64_t lost;

	if (n >= 0 && n <= FORCE_SAFE_AMOUNT && (int64_t)word <= FORCE_SAFE_USAGE) {
		RATION_HOOK();
		word = atomic_fetch_add_explicit(&node->usage, (uint64_t)n, memory_order_seq_cst);
		RATION_HOOK();
		*ret_usage = (int64_t)word + n;
		return 0;
	}
	do {
		lost = 0;
		if (__builtin_add_overflow((int64_t)word, n, ret_usage)) {
			*ret_usage = n < 0 ? INT64_MIN : INT64_MAX;
			lost = n < 0 ? (uint64_t)*ret_usage - (word + (uint64_t)n)
				     : word + (uint64_t)n - (uint64_t)*ret_usage;
		}
		if (n < 0) {
			raise_to(&node->peak, (int64_t)word);
		}
	} while (!replace(node, &word, (uint64_t)*ret_usage));
	return lost;
}

static void plain_force(struct quota_node *node, int64_t n)
{
	int64_t hard = level_hard(node);
	int64_t usage;
	uint64_t lost = plain_add(node, n, &usage);

	if (__builtin_expect(lost != 0, 0)) {
		level_tally(&node->lost, lost > INT64_MAX ? INT64_MAX : (int64_t)lost);
	}
	if (__builtin_expect(usage > hard && n > 0, 0)) {
		level_tally(&node->forced, usage - hard < n ? usage - hard : n);
	}
	protect(node, usage);
}

bool level_give(struct quota_node *node, int64_t n)
{
	uint64_t word = usage_of(node);

	do {
		if ((int64_t)word < n) {
			return false;
		}
		raise_to(&node->peak, (int64_t)word);
	} while (!replace(node, &word, word - (uint64_t)n));
	protect(node, (int64_t)(word - (uint64_t)n));
	return true;
}

/* ---- a window ---- */

static uint64_t number_of(const struct quota_node *node, uint64_t word)
{
	return word >> node->count_bits;
}

/* A number as the word has it. */
static uint64_t short_number(const struct quota_node *node, int64_t number)
{
	return ((uint64_t)number << node->count_bits) >> node->count_bits;
}

/*
 * Does a charge at this moment count in the window that the word is of? Yes if that holds the moment; if who made it so read
 * the clock later than we did; or if it begins within the slack. Otherwise the clock has gone on, or was set.
 */
static bool stays(const struct quota_node *node, uint64_t word, const struct level_moment *moment)
{
	struct window window;
	int64_t later;

	if (__builtin_expect(number_of(node, word) == short_number(node, moment->number), 1)) {
		return true;
	}
	if (moment->mono_ns < atomic_load_explicit(&node->moved, memory_order_acquire)) {
		return true;
	}
	if (__builtin_add_overflow(moment->wall_ns, QUOTA_SLACK_NS, &later)) {
		return false;
	}
	window = quota_window(node);
	return number_of(node, word) == short_number(node, window_number(&window, later));
}

/* The word to count on from: as it is, or of the moment's own window with nothing in it. */
static uint64_t settled(const struct quota_node *node, uint64_t word,
			const struct level_moment *moment)
{
	return stays(node, word, moment) ? word : (uint64_t)moment->number << node->count_bits;
}

/*
 * word -> next, where next counts on from `base`. Rolling over, `moved` is raised first: so whoever finds the new window also finds
 * that it is later than they are, if it is. That our exchange may fail then does no harm: somebody with an older reading than
 * ours stays where we, with the later one, would not have left it either, or would have left it for this very window. As in
 * plain_add, peak takes the height of a window that is left.
 */
static bool window_replace(struct quota_node *node, uint64_t *word, uint64_t base, uint64_t next,
			   const struct level_moment *moment)
{
	if (number_of(node, base) != number_of(node, *word)) {
		raise_to(&node->moved, moment->mono_ns);
		raise_to(&node->peak, (int64_t)(*word & level_count_max(node)));
	}
	return replace(node, word, next);
}

static void window_undo(struct quota_node *node, int64_t n, uint64_t taken)
{
	uint64_t word = usage_of(node);

	do {
		uint64_t count = word & level_count_max(node);

		/* The window is over, and what was in it (or came again, the clock being set back); or the count has stopped telling. */
		if (number_of(node, word) != number_of(node, taken) || count < (uint64_t)n ||
		    count == level_count_max(node)) {
			return;
		}
	} while (!replace(node, &word, word - (uint64_t)n));
}

static inline bool window_take(struct quota_node *node, int64_t n,
			       const struct level_moment *moment, uint64_t *ret_word,
			       bool *ret_shadow, struct quota_outcome *outcome)
{
	uint64_t word = usage_of(node);

	for (;;) {
		int64_t max = max_of(node);
		uint64_t base = settled(node, word, moment);
		uint64_t count = base & level_count_max(node);
		uint64_t sum = count + (uint64_t)n;
		bool shadow = sum > (uint64_t)max && is_shadow(node);
		uint64_t told = sum < level_count_max(node) ? sum : level_count_max(node);

		/* max fits its bits: what is beyond them is refused here, unless there is no max, or it is a shadow. */
		if (sum > (uint64_t)max && !shadow) {
			outcome->usage = (int64_t)count;
			outcome->max = max;
			return false;
		}
		if (!window_replace(node, &word, base, base - count + told, moment)) {
			continue;
		}
		/* As in plain_take. */
		int64_t now = max_of(node);

		if (__builtin_expect(now < max || shadow, 0) && sum > (uint64_t)now &&
		    !is_shadow(node)) {
			window_undo(node, n, base - count + told);
			word = usage_of(node);
			continue;
		}
		if (__builtin_expect(sum != told, 0)) {
			level_tally(&node->lost, (int64_t)(sum - told));
		}
		*ret_shadow = shadow;
		*ret_word = base - count + told;
		return true;
	}
}

static void window_force(struct quota_node *node, int64_t n, const struct level_moment *moment)
{
	uint64_t word = usage_of(node);
	uint64_t base, count, sum, lost;

	do {
		base = settled(node, word, moment);
		count = base & level_count_max(node);
		/* count < 2^54 and n < 2^63. */
		sum = count + (uint64_t)n;
		lost = sum > level_count_max(node) ? sum - level_count_max(node) : 0;
		sum -= lost;
	} while (!window_replace(node, &word, base, base - count + sum, moment));

	if (lost != 0) {
		level_tally(&node->lost, (int64_t)lost);
	}
	if (sum + lost > (uint64_t)level_hard(node)) {
		uint64_t past = sum + lost - (uint64_t)level_hard(node);

		level_tally(&node->forced, past < (uint64_t)n ? (int64_t)past : n);
	}
}

/* ---- a rate ---- */

/* What n makes of the bucket; `moved` before the word, as in window_replace, for rate_undo to see. */
static bool bucket_replace(struct quota_node *node, uint64_t *word, const struct rate_taken *taken,
			   const struct level_moment *moment)
{
	if (taken->idle) {
		raise_to(&node->moved, moment->mono_ns);
	}
	return replace(node, word, taken->level);
}

static inline bool bucket_take(struct quota_node *node, int64_t n,
			       const struct level_moment *moment, uint64_t *ret_word,
			       bool *ret_shadow, struct quota_outcome *outcome)
{
	struct rate rate = level_rate(node);
	uint64_t word = usage_of(node);
	struct rate_taken taken;
	bool shadow;

	do {
		taken = rate_take(&rate, word, n, moment->mono_ns);
		shadow = atomic_load_explicit(&node->shadow, memory_order_relaxed);
		if (!taken.granted && !shadow) {
			outcome->usage = rate_used(&rate, word, moment->mono_ns);
			outcome->max = rate.burst;
			return false;
		}
	} while (!bucket_replace(node, &word, &taken, moment));

	if (!taken.granted) {
		*ret_shadow = true;
		if (taken.lost != 0) {
			level_tally(&node->lost, taken.lost);
		}
	}
	*ret_word = taken.level;
	return true;
}

static void bucket_force(struct quota_node *node, int64_t n, const struct level_moment *moment)
{
	struct rate rate = level_rate(node);
	uint64_t word = usage_of(node);
	struct rate_taken taken;
	int64_t used;

	do {
		taken = rate_take(&rate, word, n, moment->mono_ns);
	} while (!bucket_replace(node, &word, &taken, moment));

	used = rate_used(&rate, taken.level, moment->mono_ns);
	raise_to(&node->peak, used);
	if (taken.lost != 0) {
		level_tally(&node->lost, taken.lost);
	}
	if (!taken.granted && !atomic_load_explicit(&node->shadow, memory_order_relaxed)) {
		int64_t past = used - rate.burst;

		if (__builtin_add_overflow(past, taken.lost, &past) || past > n) {
			past = n;
		}
		level_tally(&node->forced, past);
	}
}

static void bucket_undo(struct quota_node *node, int64_t n, uint64_t taken)
{
	struct rate rate = level_rate(node);
	uint64_t word = usage_of(node);
	uint64_t next;

	do {
		next = rate_give(&rate, word, n, taken,
				 atomic_load_explicit(&node->moved, memory_order_acquire));
	} while (next != word && !replace(node, &word, next));
}

/* ---- a path ---- */

/* Asks for a node's usage to be written soon. A charge that read it first would have to ask again for the right to change it. */
static inline void ask_for(const struct quota_node *node)
{
#if defined(__x86_64__)
	/* What __builtin_prefetch compiles to here only reads, unless told of newer processors; older ones ignore this. */
	__asm__ __volatile__("prefetchw %0" : : "m"(*(const uint64_t *)&node->usage));
#else
	__builtin_prefetch(&node->usage, 1);
#endif
}

static bool note_refusal(struct quota_node *node, int64_t n, struct quota_outcome *outcome)
{
	level_tally(&node->refusals, 1);
	outcome->refused = node;
	outcome->n = n;
	return false;
}

static bool take_other(struct quota_node *node, int64_t n, const struct level_moment *moment,
		       uint64_t *ret_word, bool *ret_shadow, struct quota_outcome *outcome)
{
	if (node->kind == WINDOW_RATE) {
		return bucket_take(node, n, moment, ret_word, ret_shadow, outcome);
	}
	return window_take(node, n, moment, ret_word, ret_shadow, outcome);
}

bool level_take(struct quota_node *node, int64_t n, const struct level_moment *moment,
		uint64_t *trail, size_t *ret_taken, struct quota_outcome *outcome)
{
	bool is_plain = node->kind == WINDOW_NONE;
	size_t taken = 0;

	/* All ancestors at once: that is where several threads meet, and one after the other their lines would be waited for. */
	for (struct quota_node *at = level_parent(node); at != NULL; at = level_parent(at)) {
		ask_for(at);
	}
	for (; node != NULL; node = level_parent(node)) {
		bool shadow = false;
		bool granted =
			is_plain ? plain_take(node, n, &trail[taken], &shadow, outcome)
				 : take_other(node, n, moment, &trail[taken], &shadow, outcome);

		if (__builtin_expect(!granted, 0)) {
			*ret_taken = taken;
			return note_refusal(node, n, outcome);
		}
		if (__builtin_expect(shadow, 0)) {
			outcome->shadow = true;
			level_tally(&node->refusals, 1);
		}
		taken++;
	}
	*ret_taken = taken;
	return true;
}

void level_undo(struct quota_node *node, int64_t n, const uint64_t *trail, size_t taken)
{
	for (size_t i = 0; i < taken; i++, node = level_parent(node)) {
		switch (node->kind) {
		case WINDOW_NONE:
			plain_undo(node, n);
			break;
		case WINDOW_RATE:
			bucket_undo(node, n, trail[i]);
			break;
		default:
			window_undo(node, n, trail[i]);
			break;
		}
	}
}

/* A bucket's peak can't wait: it drains by itself. */
static void bucket_commit(struct quota_node *node, uint64_t word, int64_t mono_ns)
{
	struct rate rate = level_rate(node);

	raise_to(&node->peak, rate_used(&rate, word, mono_ns > 0 ? mono_ns : 0));
}

size_t level_commit(struct quota_node *node, const uint64_t *trail, int64_t mono_ns,
		    bool *ret_over_high)
{
	size_t depth = 0;

	for (; node != NULL; node = level_parent(node), depth++) {
		int64_t used = (int64_t)trail[depth];

		if (node->kind == WINDOW_RATE) {
			bucket_commit(node, trail[depth], mono_ns);
			continue;
		}
		if (node->kind == WINDOW_NONE) {
			protect(node, used);
		} else {
			used &= (int64_t)level_count_max(node);
		}
		if (__builtin_expect(used > atomic_load_explicit(&node->high, memory_order_relaxed),
				     0)) {
			*ret_over_high = true;
		}
	}
	return depth;
}

void level_force(struct quota_node *node, int64_t n, const struct level_moment *moment)
{
	for (; node != NULL; node = level_parent(node)) {
		if (node->kind == WINDOW_NONE) {
			plain_force(node, n);
		} else if (n > 0 && node->kind == WINDOW_RATE) {
			bucket_force(node, n, moment);
		} else if (n > 0) {
			window_force(node, n, moment);
		}
	}
}

/* ---- reading ---- */

int64_t level_units(const struct quota_node *node, uint64_t word, const struct level_moment *moment)
{
	struct rate rate;

	switch (node->kind) {
	case WINDOW_NONE:
		return (int64_t)word;
	case WINDOW_RATE:
		rate = level_rate(node);
		return rate_used(&rate, word, moment->mono_ns);
	default:
		return (int64_t)(settled(node, word, moment) & level_count_max(node));
	}
}

int64_t level_window(const struct quota_node *node, uint64_t word,
		     const struct level_moment *moment)
{
	uint64_t ahead;

	if (node->kind == WINDOW_NONE || node->kind == WINDOW_RATE || !stays(node, word, moment)) {
		return moment->number;
	}
	/* The word has the number's low bits: the one next to the moment's own that ends in them. */
	ahead = number_of(node, word) - (uint64_t)moment->number;
	return moment->number + ((int64_t)(ahead << node->count_bits) >> node->count_bits);
}
