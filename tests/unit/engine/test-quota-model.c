/*
 * The quota part against a plain model, on random operations one after the other: rules of both layers come and go between adds, charges
 * of several items, dry runs, leases and removals, while time passes. Compared are all answers with all their bindings, all totals, and
 * what stands in every plane.
 *
 * The model knows no trees of planes, no slots and no unwinding. Usage without a window is what it is defined to be: the total, and what is
 * leased. For windows and rates, whose arithmetic has tests of its own (tests/unit/quota), it keeps one node for each counter and window,
 * each by itself. Which rule holds is found by trying all.
 *
 * In the second run growth is held back. It is flushed whenever time passes, so that it counts in the same windows; and gauges are only
 * added to, as windows count what comes in between two folds together.
 */
#include "tests/unit/engine/quota-support.h"

#define FANOUT 3
#define PER_METRIC (1 + FANOUT + FANOUT * FANOUT + FANOUT * FANOUT * FANOUT)
#define N_NODES (2 * PER_METRIC)
#define N_WINDOWS 5
#define MAX_RULES 24
#define OPERATIONS 60000

struct model_rule {
	bool there;
	char pattern[32];
	int window;
	struct quota_limits limits;
};

struct model_node {
	char path[16];
	int parent; /* -1: a metric */
	bool gauge;
	bool there;
	int64_t own;
	int64_t leased, forfeited; /* here alone */
	bool limited[N_WINDOWS];
	struct quota_limits limits[N_WINDOWS];
	struct quota_node *windows[N_WINDOWS]; /* each without a parent; NULL without a window */
};

struct model {
	struct bench bench;
	struct engine *engine;
	struct engine_worker *worker;
	struct test_random random;
	int64_t batch;
	struct quota_time now;
	struct model_node nodes[N_NODES];
	struct model_rule rules[2][MAX_RULES];
	uint64_t n_granted, n_refused, n_dry, n_leases, n_rules;
};

static const struct window windows[N_WINDOWS] = {
	{ .kind = WINDOW_NONE },
	{ .kind = WINDOW_PER, .duration_ns = 10 * SECOND },
	{ .kind = WINDOW_PER, .duration_ns = 60 * SECOND },
	{ .kind = WINDOW_CALENDAR, .unit = WINDOW_DAY },
	{ .kind = WINDOW_RATE },
};

static uint64_t below(struct model *model, uint64_t bound)
{
	return test_random_below(&model->random, bound);
}

/* ---- the tree ---- */

static int build(struct model *model, int at, int parent, const char *path, bool gauge, int depth)
{
	struct model_node *node = &model->nodes[at];
	int next = at + 1;

	(void)snprintf(node->path, sizeof(node->path), "%s", path);
	node->parent = parent;
	node->gauge = gauge;
	for (int i = 0; depth < 4 && i < FANOUT; i++) {
		char child[16];

		(void)snprintf(child, sizeof(child), "%.12s/%d", path, i);
		next = build(model, next, at, child, gauge, depth + 1);
	}
	return next;
}

static bool is_under(const struct model *model, int at, int ancestor)
{
	while (at != -1 && at != ancestor) {
		at = model->nodes[at].parent;
	}
	return at != -1;
}

static int64_t total_of(const struct model *model, int ancestor)
{
	int64_t sum = 0;

	for (int i = 0; i < N_NODES; i++) {
		sum += is_under(model, i, ancestor) ? model->nodes[i].own : 0;
	}
	return sum;
}

static int64_t used_of(const struct model *model, int at)
{
	int64_t sum = total_of(model, at);

	for (int i = 0; i < N_NODES; i++) {
		sum += is_under(model, i, at) ? model->nodes[i].leased + model->nodes[i].forfeited
					      : 0;
	}
	return sum;
}

/* ---- rules, by trying all ---- */

static const char *rest(const char *segments)
{
	const char *slash = strchr(segments, '/');

	return slash ? slash + 1 : "";
}

static size_t head(const char *segments)
{
	return strcspn(segments, "/");
}

static bool is(const char *segments, const char *text)
{
	return head(segments) == strlen(text) && memcmp(segments, text, strlen(text)) == 0;
}

static bool matches(const char *pattern, const char *path)
{
	if (!*pattern || !*path) {
		return !*pattern && !*path;
	}
	if (is(pattern, "**")) {
		return true;
	}
	if (!is(pattern, "*") &&
	    (head(pattern) != head(path) || memcmp(pattern, path, head(path)) != 0)) {
		return false;
	}
	return matches(rest(pattern), rest(path));
}

static bool overlap(const char *a, const char *b)
{
	if (!*a || !*b) {
		return !*a && !*b;
	}
	if (is(a, "**") || is(b, "**")) {
		return true;
	}
	if (!is(a, "*") && !is(b, "*") && (head(a) != head(b) || memcmp(a, b, head(a)) != 0)) {
		return false;
	}
	return overlap(rest(a), rest(b));
}

static int literal(const char *pattern)
{
	int n = 0;

	for (; *pattern && !is(pattern, "*") && !is(pattern, "**"); pattern = rest(pattern)) {
		n++;
	}
	return *pattern ? n : 100;
}

static bool ties(const struct model_rule *a, const struct model_rule *b)
{
	return a->there && b->there && a->window == b->window && literal(a->pattern) < 100 &&
	       literal(a->pattern) == literal(b->pattern) && strcmp(a->pattern, b->pattern) != 0 &&
	       overlap(a->pattern, b->pattern);
}

static const struct model_rule *rule_for(const struct model *model, int at, int window)
{
	const struct model_rule *best = NULL;

	for (int layer = ENGINE_RUN_TIME; layer >= ENGINE_FILE; layer--) {
		for (int i = 0; i < MAX_RULES; i++) {
			const struct model_rule *rule = &model->rules[layer][i];

			if (rule->there && rule->window == window &&
			    matches(rule->pattern, model->nodes[at].path) &&
			    (!best || literal(rule->pattern) > literal(best->pattern))) {
				best = rule;
			}
		}
	}
	return best;
}

static void limit_node(struct model *model, int at)
{
	struct model_node *node = &model->nodes[at];

	for (int w = 0; w < N_WINDOWS; w++) {
		const struct model_rule *rule = node->there ? rule_for(model, at, w) : NULL;

		if (rule && w > 0 && !node->limited[w]) {
			node->windows[w] = aligned_alloc(64, sizeof(struct quota_node));
			quota_init(node->windows[w], &windows[w], NULL, &rule->limits, 0,
				   &model->now);
		} else if (rule && w > 0 && !quota_limits_equal(&rule->limits, &node->limits[w])) {
			quota_set_limits(node->windows[w], &rule->limits, &model->now);
		} else if (!rule && node->limited[w]) {
			free(node->windows[w]);
			node->windows[w] = NULL;
		}
		node->limited[w] = rule != NULL;
		if (rule) {
			node->limits[w] = rule->limits;
		}
	}
}

static void limit_all(struct model *model)
{
	for (int i = 0; i < N_NODES; i++) {
		limit_node(model, i);
	}
}

static void make(struct model *model, int at)
{
	for (; at != -1 && !model->nodes[at].there; at = model->nodes[at].parent) {
		model->nodes[at].there = true;
		limit_node(model, at);
	}
}

/* ---- answers ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Bindings as a set. */
static void sort_answer(struct answer *answer)
{
	char copy[sizeof(answer->text)];
	char *parts[512];
	char *saved = NULL;
	size_t n = 0;

	memcpy(copy, answer->text, answer->len + 1);
	for (char *part = strtok_r(copy, ";", &saved); part; part = strtok_r(NULL, ";", &saved)) {
		parts[n++] = part;
	}
	qsort(parts, n, sizeof(parts[0]), by_text);
	answer->len = 0;
	answer->text[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		answer_add(answer, "%s;", parts[i]);
	}
}

static void judge(const struct model *model, int at, int window, int64_t n,
		  struct quota_judgement *judgement)
{
	const struct model_node *node = &model->nodes[at];
	const struct quota_limits *limits = &node->limits[window];

	if (window > 0) {
		quota_judge(node->windows[window], n, &model->now, judgement);
		return;
	}
	*judgement = (struct quota_judgement){
		.shadow = limits->shadow,
		.usage = used_of(model, at),
		.max = limits->max,
	};
	judgement->refuses = judgement->usage + n > limits->max && limits->max != QUOTA_NONE;
	judgement->left = limits->max == QUOTA_NONE ? QUOTA_NONE : limits->max - judgement->usage;
	judgement->left = judgement->left < 0 ? 0 : judgement->left;
	judgement->retry_after_ms = !node->gauge || n > limits->max ? -1 : 0;
}

struct item {
	int at;
	int64_t n;
};

static int64_t need_of(const struct model *model, const struct item *items, size_t n_items, int at)
{
	int64_t need = 0;

	for (size_t i = 0; i < n_items; i++) {
		need += is_under(model, items[i].at, at) ? items[i].n : 0;
	}
	return need;
}

static bool say(const struct model *model, int at, int window, int64_t need, bool granted,
		struct answer *answer)
{
	struct quota_judgement judgement;
	struct engine_binding binding = { .path = model->nodes[at].path,
					  .len = strlen(model->nodes[at].path),
					  .window = &windows[window] };
	int64_t high = model->nodes[at].limits[window].high;

	judge(model, at, window, need, &judgement);
	binding.limit = judgement.max;
	binding.usage = judgement.usage;
	binding.left = judgement.left;
	if (!granted && judgement.refuses) {
		binding.kind = judgement.shadow			     ? ENGINE_SHADOW
			       : windows[window].kind == WINDOW_RATE ? ENGINE_BINDS_RATE
								     : ENGINE_BINDS_MAX;
		binding.retry_after_ms = judgement.retry_after_ms;
		if (answer) {
			answer_binding(answer, &binding);
		}
	}
	if (granted) {
		binding.usage += need;
		if (binding.left != QUOTA_NONE) {
			binding.left = binding.left > need ? binding.left - need : 0;
		}
		if (judgement.shadow && binding.usage > judgement.max) {
			binding.kind = ENGINE_SHADOW;
			answer_binding(answer, &binding);
		}
		if (windows[window].kind != WINDOW_RATE && binding.usage > high) {
			binding.kind = ENGINE_OVER_HIGH;
			binding.limit = high;
			answer_binding(answer, &binding);
		}
	}
	return judgement.refuses && !judgement.shadow;
}

/* What a charge of these must say. All counters are there. */
static bool decide(const struct model *model, const struct item *items, size_t n_items,
		   struct answer *answer)
{
	bool refused = false;

	for (int at = 0; at < N_NODES; at++) {
		int64_t need = need_of(model, items, n_items, at);

		for (int w = 0; need > 0 && w < N_WINDOWS; w++) {
			if (model->nodes[at].limited[w]) {
				refused |= say(model, at, w, need, false, NULL);
			}
		}
	}
	answer->len = 0;
	answer->text[0] = '\0';
	for (int at = 0; at < N_NODES; at++) {
		int64_t need = need_of(model, items, n_items, at);

		for (int w = 0; need > 0 && w < N_WINDOWS; w++) {
			if (model->nodes[at].limited[w]) {
				(void)say(model, at, w, need, !refused, answer);
			}
		}
	}
	sort_answer(answer);
	return !refused;
}

/* Growth in the windows above. */
static void count(struct model *model, int at, int64_t n)
{
	for (; at != -1; at = model->nodes[at].parent) {
		for (int w = 1; n > 0 && w < N_WINDOWS; w++) {
			if (model->nodes[at].limited[w]) {
				quota_charge(model->nodes[at].windows[w], n, &model->now);
			}
		}
	}
}

/* ---- operations ---- */

static int pick(struct model *model)
{
	return (int)below(model, N_NODES);
}

static void do_add(struct model *model)
{
	int at = pick(model);
	struct model_node *node = &model->nodes[at];
	int64_t n = (int64_t)below(model, 40);
	struct engine_ref ref;

	if (node->gauge && model->batch == 1 && below(model, 2)) {
		n = -n;
	}
	assert_int_equal(engine_intern(model->engine, node->path, strlen(node->path),
				       model->now.wall_ns, &ref),
			 0);
	add(model->worker, ref, n);
	make(model, at);
	node->own += n;
	count(model, at, n);
}

/* The model's counters as if these were there; and back. */
static void imagine(struct model *model, const struct item *items, size_t n, bool there[N_NODES])
{
	for (int i = 0; i < N_NODES; i++) {
		there[i] = model->nodes[i].there;
	}
	for (size_t i = 0; i < n; i++) {
		make(model, items[i].at);
	}
}

static void forget(struct model *model, const bool there[N_NODES])
{
	for (int i = 0; i < N_NODES; i++) {
		if (model->nodes[i].there && !there[i]) {
			model->nodes[i].there = false;
			limit_node(model, i);
		}
	}
}

static void do_charge(struct model *model, bool dry_run)
{
	struct engine_charge_item asked[6];
	struct item items[6];
	size_t n = 1 + below(model, below(model, 3) ? 1 : 6);
	static struct answer expected, answer;
	bool there[N_NODES];
	bool granted;
	int r;

	for (size_t i = 0; i < n; i++) {
		items[i].at = pick(model);
		items[i].n = 1 + (int64_t)below(model, 30);
		asked[i].path = model->nodes[items[i].at].path;
		asked[i].len = strlen(asked[i].path);
		asked[i].n = items[i].n;
	}
	imagine(model, items, n, there);
	granted = decide(model, items, n, &expected);
	if (dry_run) {
		forget(model, there);
	}
	r = charge_items(model->worker, asked, n, model->now, dry_run, &answer, NULL);
	assert_int_equal(r, granted ? 0 : ENGINE_E_REFUSED);
	sort_answer(&answer);
	if (model->batch == 1 || !granted) {
		assert_string_equal(answer.text, expected.text);
	}
	for (size_t i = 0; granted && !dry_run && i < n; i++) {
		model->nodes[items[i].at].own += items[i].n;
		count(model, items[i].at, items[i].n);
	}
	model->n_dry += dry_run;
	model->n_granted += granted && !dry_run;
	model->n_refused += !granted && !dry_run;
}

static void do_uncharge(struct model *model)
{
	struct model_node *node = &model->nodes[pick(model)];
	int64_t n = 1 + (int64_t)below(model, 30);
	int expected = !node->there    ? ENGINE_E_NOT_FOUND
		       : !node->gauge  ? ENGINE_E_KIND
		       : node->own < n ? ENGINE_E_UNDERFLOW
				       : 0;

	assert_int_equal(engine_uncharge(model->worker, node->path, strlen(node->path), n,
					 model->now),
			 expected);
	node->own -= expected == 0 ? n : 0;
}

static void do_lease(struct model *model)
{
	int at = pick(model);
	struct model_node *node = &model->nodes[at];
	int64_t want = 1 + (int64_t)below(model, 60);
	int64_t left = INT64_MAX, granted = -1, expected;
	int r;

	make(model, at);
	for (int up = at; up != -1; up = model->nodes[up].parent) {
		for (int w = 0; w < N_WINDOWS; w++) {
			struct quota_judgement judgement;

			if (model->nodes[up].limited[w]) {
				judge(model, up, w, 1, &judgement);
				left = !judgement.shadow && judgement.left < left ? judgement.left
										  : left;
			}
		}
	}
	r = engine_lease(model->worker, node->path, strlen(node->path), want, model->now, NULL,
			 NULL, &granted);
	assert_int_equal(r, left > 0 ? 0 : ENGINE_E_REFUSED);
	if (r != 0) {
		return;
	}
	expected = left / 2 >= want ? want : left / 2 > 1 ? left / 2 : 1;
	if (model->batch == 1) {
		assert_int_equal(granted, expected);
	}
	assert_in_range(granted, 1, want);
	node->leased += granted;
	count(model, at, granted);
	model->n_leases++;
}

static void do_lease_end(struct model *model, uint64_t way)
{
	struct model_node *node = &model->nodes[pick(model)];
	int64_t n;

	if (node->leased == 0 || (way == 0 && !node->gauge)) {
		return;
	}
	n = 1 + (int64_t)below(model, (uint64_t)node->leased);
	if (way == 1) {
		assert_int_equal(engine_lease_forfeit(model->worker, node->path, strlen(node->path),
						      n, model->now),
				 0);
		node->forfeited += n;
	} else if (way == 2) {
		assert_int_equal(engine_lease_spend(model->worker, node->path, strlen(node->path),
						    n, model->now),
				 0);
		node->own += n;
	} else {
		assert_int_equal(engine_lease_return(model->worker, node->path, strlen(node->path),
						     n, model->now),
				 0);
	}
	node->leased -= n;
}

static void do_remove(struct model *model)
{
	int at = pick(model);
	struct model_node *node = &model->nodes[at];
	bool leaf = true;
	int expected;

	if (node->parent == -1) {
		return;
	}
	for (int i = 0; i < N_NODES; i++) {
		leaf = leaf && !(model->nodes[i].parent == at && model->nodes[i].there);
	}
	expected = !node->there		       ? ENGINE_E_NOT_FOUND
		   : !leaf || node->leased > 0 ? ENGINE_E_BUSY
					       : 0;
	assert_int_equal(drop(model->engine, node->path), expected);
	if (expected == 0) {
		model->nodes[node->parent].own += node->own;
		model->nodes[node->parent].forfeited += node->forfeited;
		node->own = node->forfeited = 0;
		node->there = false;
		limit_node(model, at);
	}
}

static void random_pattern(struct model *model, char pattern[32])
{
	size_t depth = 1 + below(model, 4);
	size_t len = (size_t)snprintf(pattern, 32, "%s", below(model, 2) ? "c" : "g");

	for (size_t i = 1; i < depth; i++) {
		if (below(model, 100) < 35) {
			len += (size_t)snprintf(pattern + len, 32 - len, "/*");
		} else {
			len += (size_t)snprintf(pattern + len, 32 - len, "/%d",
						(int)below(model, FANOUT));
		}
	}
	if (below(model, 100) < 15) {
		(void)snprintf(pattern + len, 32 - len, "/**");
	}
}

static struct model_rule random_rule(struct model *model)
{
	struct model_rule rule = { .there = true, .limits = QUOTA_LIMITS_INIT };
	/* Counters fill up, so limits must leave them more as time goes by. */
	int64_t scale = below(model, 3) ? 300 + (int64_t)(40 * model->n_granted) : 300;

	random_pattern(model, rule.pattern);
	rule.window = (int)below(model, N_WINDOWS);
	rule.limits.shadow = below(model, 5) == 0;
	if (rule.window == 4) {
		rule.limits.rate = 1 + (int64_t)below(model, 50);
		rule.limits.per_ns = SECOND * (1 + (int64_t)below(model, 3));
		rule.limits.burst = 1 + (int64_t)below(model, 200);
		return rule;
	}
	if (below(model, 8)) {
		rule.limits.max = (int64_t)below(model, (uint64_t)scale);
	}
	if (below(model, 3) == 0) {
		rule.limits.high = (int64_t)below(model, (uint64_t)scale);
	}
	return rule;
}

static struct engine_rule source_of(const struct model_rule *rule)
{
	return (struct engine_rule){ .pattern = rule->pattern,
				     .len = strlen(rule->pattern),
				     .window = windows[rule->window],
				     .limits = rule->limits };
}

static int find_node(const struct model *model, const char *path)
{
	for (int i = 0; i < N_NODES; i++) {
		if (strcmp(model->nodes[i].path, path) == 0) {
			return i;
		}
	}
	return -1;
}

static void make_exact(struct model *model, const struct model_rule *rule)
{
	int at = find_node(model, rule->pattern);

	if (at != -1) {
		make(model, at);
	}
}

static void do_set(struct model *model)
{
	struct model_rule *rules = model->rules[ENGINE_RUN_TIME];
	struct model_rule rule = random_rule(model);
	struct engine_rule source = source_of(&rule);
	int place = -1;
	bool tie = false;

	for (int i = MAX_RULES - 1; i >= 0; i--) {
		tie = tie || ties(&rule, &rules[i]);
		if (!rules[i].there) {
			place = i;
		}
	}
	for (int i = 0; i < MAX_RULES; i++) {
		if (rules[i].there && rules[i].window == rule.window &&
		    strcmp(rules[i].pattern, rule.pattern) == 0) {
			place = i;
		}
	}
	if (place == -1) {
		return;
	}
	assert_int_equal(engine_rule_set(model->engine, &source, model->now, NULL, NULL),
			 tie ? ENGINE_E_RULE : 0);
	if (!tie) {
		rules[place] = rule;
		limit_all(model);
		make_exact(model, &rule);
		model->n_rules++;
	}
}

static void do_unset(struct model *model)
{
	struct model_rule *rule = &model->rules[ENGINE_RUN_TIME][below(model, MAX_RULES)];

	if (rule->there) {
		assert_int_equal(engine_rule_remove(model->engine, rule->pattern,
						    strlen(rule->pattern), &windows[rule->window],
						    model->now),
				 0);
		rule->there = false;
		limit_all(model);
	}
}

static void do_replace(struct model *model)
{
	struct model_rule rules[MAX_RULES] = { 0 };
	struct engine_rule sources[MAX_RULES];
	size_t n = below(model, MAX_RULES / 3);
	bool wrong = false;

	for (size_t i = 0; i < n; i++) {
		rules[i] = random_rule(model);
		for (size_t j = 0; j < i; j++) {
			wrong = wrong || ties(&rules[i], &rules[j]) ||
				(rules[i].window == rules[j].window &&
				 strcmp(rules[i].pattern, rules[j].pattern) == 0);
		}
		sources[i] = source_of(&rules[i]);
	}
	assert_int_equal(engine_rules_replace(model->engine, sources, n, model->now, NULL, NULL),
			 wrong ? ENGINE_E_RULE : 0);
	if (!wrong) {
		memcpy(model->rules[ENGINE_FILE], rules, sizeof(rules));
		limit_all(model);
		for (size_t i = 0; i < n; i++) {
			make_exact(model, &rules[i]);
		}
	}
}

static void do_time(struct model *model)
{
	int64_t step = (int64_t)(below(model, 5) ? below(model, 2000) : below(model, 30000)) + 1;

	engine_flush(model->engine, model->now.wall_ns);
	if (below(model, 200) == 0) {
		step = 86400000;
	}
	model->now.wall_ns += step * 1000000;
	model->now.mono_ns += step * 1000000;
	engine_set_time(model->engine, &model->now);
}

static void compare(struct model *model)
{
	engine_flush(model->engine, model->now.wall_ns);
	for (int i = 0; i < N_NODES; i++) {
		const struct model_node *node = &model->nodes[i];
		struct engine_reading reading;

		assert_int_equal(engine_get(model->engine, node->path, strlen(node->path), &reading),
				 node->there ? 0 : ENGINE_E_NOT_FOUND);
		if (!node->there) {
			continue;
		}
		assert_int_equal(reading.own, node->own);
		assert_int_equal(reading.total, total_of(model, i));
		for (int w = 0; w < N_WINDOWS; w++) {
			struct quota_judgement judgement = { .usage = -1 };

			if (node->limited[w]) {
				judge(model, i, w, 0, &judgement);
			}
			assert_int_equal(usage_at(model->engine, node->path, windows[w], model->now),
					 judgement.usage);
		}
	}
}

static void operate(struct model *model)
{
	switch (below(model, 40)) {
	case 0:
		do_set(model);
		break;
	case 1:
		do_unset(model);
		break;
	case 2:
		if (below(model, 4) == 0) {
			do_replace(model);
		}
		break;
	case 3:
	case 4:
		do_remove(model);
		break;
	case 5:
	case 6:
		do_time(model);
		break;
	case 7:
		do_lease(model);
		break;
	case 8:
	case 9:
	case 10:
		do_lease_end(model, below(model, 3));
		break;
	case 11:
	case 12:
	case 13:
	case 14:
	case 15:
		do_charge(model, true);
		break;
	case 16:
	case 17:
	case 18:
	case 19:
	case 20:
	case 21:
		do_uncharge(model);
		break;
	case 22:
	case 23:
	case 24:
		do_add(model);
		break;
	default:
		do_charge(model, false);
		break;
	}
}

static void run(uint32_t batch, uint64_t stream)
{
	struct model *model = calloc(1, sizeof(*model));

	assert_non_null(model);
	test_random_init(&model->random, stream);
	model->bench = bench_new(10000, 1, batch);
	model->engine = model->bench.engine;
	model->worker = model->bench.workers[0];
	model->batch = batch;
	model->now = at(1000000);
	assert_int_equal(build(model, 0, -1, "c", false, 1), PER_METRIC);
	assert_int_equal(build(model, PER_METRIC, -1, "g", true, 1), N_NODES);
	declare(model->engine, "g", GAUGE);
	(void)intern(model->engine, "c");
	make(model, 0);
	(void)intern(model->engine, "g");
	make(model, PER_METRIC);
	engine_set_time(model->engine, &model->now);
	for (int i = 0; i < OPERATIONS; i++) {
		operate(model);
		if (i % 500 == 0) {
			compare(model);
		}
	}
	compare(model);
	(void)fprintf(stderr, "granted %d refused %d dry %d leases %d rules %d gates %d\n",
		      (int)model->n_granted, (int)model->n_refused, (int)model->n_dry,
		      (int)model->n_leases, (int)model->n_rules,
		      (int)stats(model->engine).gates_closed);
	assert_true(model->n_granted > OPERATIONS / 50 && model->n_refused > OPERATIONS / 50);
	for (int i = 0; i < N_NODES; i++) {
		for (int w = 0; w < N_WINDOWS; w++) {
			free(model->nodes[i].windows[w]);
		}
	}
	bench_free(&model->bench);
	free(model);
}

static void test_exact(void **state)
{
	(void)state;
	run(1, 0);
}

static void test_held_back(void **state)
{
	(void)state;
	run(32, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_held_back),
	};

	return RUN(tests);
}
