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
static void raise_to(_Atomic(int64_t) *mark, int64_t value)
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

static bool replace(struct quota_node *node, uint64_t *word, uint64_t next)
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
static uint64_t usage_of(const struct quota_node *node)
{
	return atomic_load_explicit(&node->usage, memory_order_acquire);
}

/* ---- no window ---- */

static bool plain_take(struct quota_node *node, int64_t n, uint64_t *ret_word,
		       struct quota_outcome *outcome)
{
	uint64_t word = usage_of(node);

	for (;;) {
		int64_t hard = level_hard(node);

		/* hard >= 0 and n > 0: no overflow. */
		if ((int64_t)word > hard - n) {
			outcome->usage = (int64_t)word;
			outcome->max = hard;
			return false;
		}
		if (!replace(node, &word, word + (uint64_t)n)) {
			continue;
		}
		if (__builtin_expect(level_hard(node) < hard, 0) &&
		    (int64_t)word > level_hard(node) - n) {
			/* Pairs with quota_set_limits: we see its max and go back, or it was stored after we took. */
			level_undo(node, n, word + (uint64_t)n);
			word = usage_of(node);
			continue;
		}
		if (hard == QUOTA_NONE &&
		    (int64_t)word > atomic_load_explicit(&node->max, memory_order_relaxed) - n) {
			outcome->shadow = true;
		}
		*ret_word = word + (uint64_t)n;
		return true;
	}
}

/* Forced: *ret_lost is what did not go in, by magnitude. */
static int64_t plain_force(struct quota_node *node, int64_t n, uint64_t *ret_lost)
{
	int64_t usage = (int64_t)usage_of(node);

	*ret_lost = 0;
	if (usage >= -FORCE_SAFE_USAGE && usage <= FORCE_SAFE_USAGE && n >= -FORCE_SAFE_AMOUNT &&
	    n <= FORCE_SAFE_AMOUNT) {
		RATION_HOOK();
		usage = (int64_t)atomic_fetch_add_explicit(&node->usage, (uint64_t)n,
							   memory_order_seq_cst) +
			n;
		RATION_HOOK();
		return usage;
	}
	for (;;) {
		uint64_t word = (uint64_t)usage;
		uint64_t lost = 0;
		int64_t sum;

		if (__builtin_add_overflow(usage, n, &sum)) {
			sum = n < 0 ? INT64_MIN : INT64_MAX;
			lost = n < 0 ? (uint64_t)sum - ((uint64_t)usage + (uint64_t)n)
				     : (uint64_t)usage + (uint64_t)n - (uint64_t)sum;
		}
		if (replace(node, &word, (uint64_t)sum)) {
			*ret_lost = lost;
			return sum;
		}
		usage = (int64_t)word;
	}
}

bool level_give(struct quota_node *node, int64_t n)
{
	uint64_t word = usage_of(node);

	do {
		if ((int64_t)word < n) {
			return false;
		}
	} while (!replace(node, &word, word - (uint64_t)n));
	return true;
}

/* ---- a window ---- */

/* All ones: the count has got beyond what it can tell, and stays there until its window is over. Every max is below. */
static uint64_t count_max(const struct quota_node *node)
{
	return (UINT64_C(1) << node->count_bits) - 1;
}

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
 * ours stays where we, with the later one, would not have left it either, or would have left it for this very window.
 */
static bool window_replace(struct quota_node *node, uint64_t *word, uint64_t base, uint64_t next,
			   const struct level_moment *moment)
{
	if (number_of(node, base) != number_of(node, *word)) {
		raise_to(&node->moved, moment->mono_ns);
	}
	return replace(node, word, next);
}

static bool window_take(struct quota_node *node, int64_t n, const struct level_moment *moment,
			uint64_t *ret_word, struct quota_outcome *outcome)
{
	uint64_t word = usage_of(node);

	for (;;) {
		int64_t hard = level_hard(node);
		uint64_t base = settled(node, word, moment);
		uint64_t count = base & count_max(node);
		uint64_t sum = count + (uint64_t)n;
		uint64_t lost = 0;

		/* max fits its bits: what is beyond them is refused here, unless there is no max. */
		if (sum > (uint64_t)hard) {
			outcome->usage = (int64_t)count;
			outcome->max = hard;
			return false;
		}
		if (sum > count_max(node)) {
			lost = sum - count_max(node);
			sum = count_max(node);
		}
		if (!window_replace(node, &word, base, base - count + sum, moment)) {
			continue;
		}
		if (__builtin_expect(level_hard(node) < hard, 0) &&
		    sum > (uint64_t)level_hard(node)) {
			/* As in plain_take. */
			level_undo(node, n, base - count + sum);
			word = usage_of(node);
			continue;
		}
		if (lost != 0) {
			level_tally(&node->lost, (int64_t)lost);
		}
		if (hard == QUOTA_NONE &&
		    count + (uint64_t)n >
			    (uint64_t)atomic_load_explicit(&node->max, memory_order_relaxed)) {
			outcome->shadow = true;
		}
		*ret_word = base - count + sum;
		return true;
	}
}

static void window_force(struct quota_node *node, int64_t n, const struct level_moment *moment)
{
	uint64_t word = usage_of(node);
	uint64_t base, count, sum, lost;

	do {
		base = settled(node, word, moment);
		count = base & count_max(node);
		/* count < 2^54 and n < 2^63. */
		sum = count + (uint64_t)n;
		lost = sum > count_max(node) ? sum - count_max(node) : 0;
		sum -= lost;
	} while (!window_replace(node, &word, base, base - count + sum, moment));

	if (lost != 0) {
		level_tally(&node->lost, (int64_t)lost);
	}
	raise_to(&node->peak, (int64_t)sum);
	if (sum + lost > (uint64_t)level_hard(node)) {
		uint64_t past = sum + lost - (uint64_t)level_hard(node);

		level_tally(&node->forced, past < (uint64_t)n ? (int64_t)past : n);
	}
}

static void window_undo(struct quota_node *node, int64_t n, uint64_t taken)
{
	uint64_t word = usage_of(node);

	do {
		uint64_t count = word & count_max(node);

		/* The window is over, and what was in it (or came again, the clock being set back); or the count has stopped telling. */
		if (number_of(node, word) != number_of(node, taken) || count < (uint64_t)n ||
		    count == count_max(node)) {
			return;
		}
	} while (!replace(node, &word, word - (uint64_t)n));
}

/* ---- a rate ---- */

static struct rate rate_of(const struct quota_node *node)
{
	return (struct rate){ .cost = node->cost, .scale = node->scale, .burst = node->burst };
}

/* What n makes of the bucket; `moved` before the word, as in window_replace, for rate_undo to see. */
static bool rate_replace(struct quota_node *node, uint64_t *word, const struct rate_taken *taken,
			 const struct level_moment *moment)
{
	if (taken->idle) {
		raise_to(&node->moved, moment->mono_ns);
	}
	return replace(node, word, taken->level);
}

static bool rate_level_take(struct quota_node *node, int64_t n, const struct level_moment *moment,
			    uint64_t *ret_word, struct quota_outcome *outcome)
{
	struct rate rate = rate_of(node);
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
	} while (!rate_replace(node, &word, &taken, moment));

	if (!taken.granted) {
		outcome->shadow = true;
		if (taken.lost != 0) {
			level_tally(&node->lost, taken.lost);
		}
	}
	*ret_word = taken.level;
	return true;
}

static void rate_force(struct quota_node *node, int64_t n, const struct level_moment *moment)
{
	struct rate rate = rate_of(node);
	uint64_t word = usage_of(node);
	struct rate_taken taken;
	int64_t used;

	do {
		taken = rate_take(&rate, word, n, moment->mono_ns);
	} while (!rate_replace(node, &word, &taken, moment));

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

static void rate_undo(struct quota_node *node, int64_t n, uint64_t taken)
{
	struct rate rate = rate_of(node);
	uint64_t word = usage_of(node);
	uint64_t next;

	do {
		next = rate_give(&rate, word, n, taken,
				 atomic_load_explicit(&node->moved, memory_order_acquire));
	} while (next != word && !replace(node, &word, next));
}

/* ---- any plane ---- */

bool level_take(struct quota_node *node, int64_t n, const struct level_moment *moment,
		uint64_t *ret_word, struct quota_outcome *outcome)
{
	bool shadow = outcome->shadow;
	bool taken;

	outcome->shadow = false;
	switch (node->kind) {
	case WINDOW_NONE:
		taken = plain_take(node, n, ret_word, outcome);
		break;
	case WINDOW_RATE:
		taken = rate_level_take(node, n, moment, ret_word, outcome);
		break;
	default:
		taken = window_take(node, n, moment, ret_word, outcome);
		break;
	}
	if (__builtin_expect(!taken || outcome->shadow, 0)) {
		level_tally(&node->refusals, 1);
	}
	if (!taken) {
		outcome->refused = node;
		outcome->n = n;
	}
	outcome->shadow |= shadow;
	return taken;
}

void level_undo(struct quota_node *node, int64_t n, uint64_t word)
{
	switch (node->kind) {
	case WINDOW_NONE:
		RATION_HOOK();
		(void)atomic_fetch_sub_explicit(&node->usage, (uint64_t)n, memory_order_seq_cst);
		RATION_HOOK();
		/* Not committed by us; but who propagated meanwhile has seen it. */
		level_protect(node);
		break;
	case WINDOW_RATE:
		rate_undo(node, n, word);
		break;
	default:
		window_undo(node, n, word);
		break;
	}
}

bool level_commit(struct quota_node *node, uint64_t word, const struct level_moment *moment)
{
	int64_t used;

	switch (node->kind) {
	case WINDOW_NONE:
		used = (int64_t)word;
		level_protect(node);
		break;
	case WINDOW_RATE: {
		struct rate rate = rate_of(node);

		raise_to(&node->peak, rate_used(&rate, word, moment->mono_ns));
		return false;
	}
	default:
		used = (int64_t)(word & count_max(node));
		break;
	}
	if (__builtin_expect(used > atomic_load_explicit(&node->peak, memory_order_relaxed), 0)) {
		raise_to(&node->peak, used);
	}
	return used > atomic_load_explicit(&node->high, memory_order_relaxed);
}

void level_force(struct quota_node *node, int64_t n, const struct level_moment *moment)
{
	int64_t usage, hard;
	uint64_t lost;

	if (node->kind != WINDOW_NONE) {
		if (n > 0 && node->kind == WINDOW_RATE) {
			rate_force(node, n, moment);
		} else if (n > 0) {
			window_force(node, n, moment);
		}
		return;
	}
	usage = plain_force(node, n, &lost);
	if (__builtin_expect(lost != 0, 0)) {
		level_tally(&node->lost, lost > INT64_MAX ? INT64_MAX : (int64_t)lost);
	}
	if (n > 0) {
		raise_to(&node->peak, usage);
		hard = level_hard(node);
		if (__builtin_expect(usage > hard, 0)) {
			level_tally(&node->forced, usage - hard < n ? usage - hard : n);
		}
	}
	level_protect(node);
}

/* ---- protections ---- */

/*
 * One of the two. The claim is compared first and exchanged only if it differs (with usage well above or below the setting it
 * mostly does not: that is what makes it cheap); the difference to what was replaced goes to the parent's sum, so the sum never
 * misses any of it. Then look again: T changed usage and then read the claim; S exchanged the claim and then read usage. By sequential consistency T
 * sees S's claim and corrects it, or S sees T's usage and does. So the last one to leave leaves it right.
 */
static void claim(const struct quota_node *node, const _Atomic(int64_t) *setting,
		  _Atomic(int64_t) *used, _Atomic(int64_t) *sum)
{
	for (;;) {
		int64_t usage = (int64_t)atomic_load_explicit(&node->usage, memory_order_seq_cst);
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
	}
}

void level_protect(struct quota_node *node)
{
	struct quota_node *parent = level_parent(node);

	if (parent == NULL) {
		return;
	}
	/* Nothing set, nothing to do: a claim from before is taken back by level_reclaim, with the same argument. */
	if (atomic_load_explicit(&node->min, memory_order_seq_cst) != 0) {
		claim(node, &node->min, &node->min_used, &parent->children_min);
	}
	if (atomic_load_explicit(&node->low, memory_order_seq_cst) != 0) {
		claim(node, &node->low, &node->low_used, &parent->children_low);
	}
}

void level_reclaim(struct quota_node *node)
{
	struct quota_node *parent = level_parent(node);

	if (parent != NULL && node->kind == WINDOW_NONE) {
		claim(node, &node->min, &node->min_used, &parent->children_min);
		claim(node, &node->low, &node->low_used, &parent->children_low);
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
		rate = rate_of(node);
		return rate_used(&rate, word, moment->mono_ns);
	default:
		return (int64_t)(settled(node, word, moment) & count_max(node));
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
