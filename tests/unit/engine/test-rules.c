/* Rules: patterns, which of them holds, layers, and what lint says of them. */
#include "tests/unit/engine/quota-support.h"

#include "lib/engine/pattern.h"
#include "lib/engine/rules.h"

static struct shape parse(const char *pattern)
{
	struct shape shape = { 0 };

	assert_null(pattern_parse(pattern, strlen(pattern), &shape));
	return shape;
}

static void refuse(const char *pattern)
{
	struct shape shape;

	assert_non_null(pattern_parse(pattern, strlen(pattern), &shape));
}

static void test_patterns(void **state)
{
	static const char deep[] = "a/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*";

	(void)state;
	assert_true(shape_exact(parse("a/b")));
	assert_int_equal(shape_rank(parse("a/b")), 17);
	assert_int_equal(shape_prefix(parse("a/*")), 1);
	assert_int_equal(shape_prefix(parse("a/**")), 1);
	assert_int_equal(shape_prefix(parse("a/b/*/c/**")), 2);
	assert_int_equal(parse("a/b/*/c/**").depth, 4);
	assert_true(parse("a/b/*/c/**").tail);
	assert_false(shape_exact(parse("a/b/**")));
	refuse("");
	refuse("*");
	refuse("**");
	refuse("*/a");
	refuse("a/**/b");
	refuse("a//b");
	refuse("a/.");
	refuse("a/");
	refuse("/a");
	refuse("a/\n");
	assert_int_equal(parse(deep).depth, 16);
	refuse("a/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*");
	refuse("a/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/**");
	/* A star within a segment is a star. */
	assert_true(shape_exact(parse("a/b*")));
}

static bool meet(const char *a, const char *b)
{
	return shapes_meet(parse(a), parse(b));
}

static void test_shapes_meet(void **state)
{
	(void)state;
	assert_true(meet("a/*", "a/b"));
	assert_false(meet("a/*", "a/*/c"));
	assert_true(meet("a/**", "a/*/c"));
	assert_true(meet("a/**", "a/b/**"));
	assert_false(meet("a/b/**", "a/*"));
	assert_true(meet("a/b/**", "a/*/c"));
}

static int check(const struct engine_rule *rules, size_t n, struct answer *answer)
{
	answer->len = 0;
	answer->text[0] = '\0';
	return engine_rules_check(rules, n, answer_fault, answer);
}

static struct engine_rule tagged(struct engine_rule rule, uint32_t tag)
{
	rule.tag = tag;
	return rule;
}

static void test_fatal(void **state)
{
	struct answer answer;
	struct engine_rule none = rule_max("m", 10);
	struct engine_rule rules[] = {
		tagged(rule_max("m/a", 10), 1),	    tagged(rule_max("m//a", 10), 2),
		tagged(rule_max("m/b", -1), 3),	    tagged(rule_max("m/a", 11), 4),
		tagged(rule_per("m/a", 10, 60), 5), tagged(rule_per("m/a", 10, 0), 6),
	};

	(void)state;
	assert_int_equal(check(&none, 1, &answer), 0);
	assert_string_equal(answer.text, "");
	assert_int_equal(check(rules, 6, &answer), 4);
	assert_string_equal(
		answer.text,
		"fatal 2,0: m//a: a segment is empty; segments are joined by single slashes, with "
		"none at either end\n"
		"fatal 3,0: m/b: max is -1, which is below 0\n"
		"fatal 4,1: m/a has limits without a window twice\n"
		"fatal 6,0: m/a: a window of 0 ns; from 1 s to 31 d can be had\n");
}

static void expect_tie(const char *a, const char *b, bool tie)
{
	struct engine_rule rules[] = { tagged(rule_max(a, 10), 1), tagged(rule_max(b, 10), 2) };
	struct answer answer;

	assert_int_equal(check(rules, 2, &answer), tie);
	rules[1] = tagged(rule_per(b, 10, 60), 2);
	assert_int_equal(check(rules, 2, &answer), 0);
}

static void test_ties(void **state)
{
	(void)state;
	expect_tie("m/*/a", "m/*/*", true);
	expect_tie("m/*/a", "m/*/b", false);
	expect_tie("m/*/a/*", "m/*/b/**", false);
	expect_tie("m/*/a/*", "m/*/a/**", true);
	expect_tie("m/**", "m/*", true);
	expect_tie("m/**", "m/a/**", false);
	expect_tie("m/*", "m/*/*", false);
	expect_tie("m/*/x/*", "m/*/*/y", true);
	expect_tie("m/*/x/z", "m/*/*/y", false);
	expect_tie("m/a/*", "m/*/b", false);
	expect_tie("m/*/b", "n/*/*", false);
	expect_tie("m/*/x/**", "m/*/*/y", true);
	expect_tie("m/*/x/**", "m/*/*", false);
}

/* Many templates with the same prefix are compared by look-ups. */
static void test_many_templates(void **state)
{
	static struct engine_rule rules[100000];
	static char patterns[100000][24];
	struct answer answer;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		(void)snprintf(patterns[i], sizeof(patterns[i]), i % 2 ? "m/*/%d/*" : "m/*/%d/x",
			       i);
		rules[i] = tagged(rule_max(patterns[i], 10), (uint32_t)i + 1);
	}
	assert_int_equal(check(rules, 100000, &answer), 0);
	(void)snprintf(patterns[500], sizeof(patterns[500]), "m/*/777/x");
	rules[500] = tagged(rule_max(patterns[500], 10), 501);
	assert_int_equal(check(rules, 100000, &answer), 1);
	assert_non_null(strstr(answer.text, "m/*/777/*"));
}

static void test_too_many(void **state)
{
	static char patterns[66][64];
	struct engine_rule rules[66];
	struct answer answer;

	(void)state;
	for (int i = 0; i < 9; i++) {
		rules[i] = rule_per("m", 10, i + 1);
	}
	assert_int_equal(check(rules, 8, &answer), 0);
	assert_int_equal(check(rules, 9, &answer), 1);
	for (int i = 0; i < 65; i++) {
		/* Seven segments, a wildcard where a bit of i + 1 is set, first ones told apart. */
		size_t len = (size_t)snprintf(patterns[i], sizeof(patterns[i]), "m/p%d", i);

		for (int bit = 0; bit < 7; bit++) {
			len += (size_t)snprintf(patterns[i] + len, sizeof(patterns[i]) - len, "/%c",
						(i + 1) >> bit & 1 ? '*' : 's');
		}
		rules[i] = rule_max(patterns[i], 10);
	}
	assert_int_equal(check(rules, 64, &answer), 0);
	assert_int_equal(check(rules, 65, &answer), 1);
}

static void test_unwise(void **state)
{
	struct answer answer;
	struct engine_rule rules[] = {
		tagged(rule_max("m", 100), 1),	    tagged(rule_max("m/a", 200), 2),
		tagged(rule_max("m/a/b", 150), 3),  tagged(rule_max("m/*/*/c", 300), 4),
		tagged(rule_per("m/a", 200, 5), 5), tagged(rule_max("n", 100), 6),
		tagged(rule_max("n/a", 100), 7),    tagged(rule_max("n/b/c", 100), 8),
	};

	(void)state;
	rules[5].limits.min = 50;
	rules[6].limits.min = 30;
	rules[7].limits.min = 30;
	rules[7].limits.high = 100;
	assert_int_equal(check(rules, 8, &answer), 0);
	assert_string_equal(
		answer.text,
		"2,1: m/a: max 200 (without a window) is never reached, as that of m above is 100\n"
		"4,1: m/*/*/c: max 300 (without a window) is never reached, as that of m above is "
		"100\n"
		"8,0: n/b/c: high 100 is never passed, as max is 100\n"
		"8,6: n: the min of what is below add up to 60, its own is 50\n");
}

static struct engine_rule rule_calendar(const char *pattern, int64_t max, enum window_unit unit)
{
	struct engine_rule rule = rule_max(pattern, max);

	rule.window = (struct window){ .kind = WINDOW_CALENDAR, .unit = unit };
	return rule;
}

#define HOUR_DAY "1,2: m/*: max 600 (per 1h) is never reached, as that per calendar day is 500\n"
#define HOUR_WEEK "1,3: m/*: max 600 (per 1h) is never reached, as that per calendar week is 499\n"
#define DAY_WEEK                                                                           \
	"2,3: m/*: max 500 (per calendar day) is never reached, as that per calendar week" \
	" is 499\n"

static void set_says(struct engine *engine, const struct engine_rule *rule, const char *text)
{
	struct answer answer = { .len = 0 };

	assert_int_equal(engine_rule_set(engine, rule, at(1000), answer_fault, &answer), 0);
	assert_string_equal(answer.text, text);
}

/* What a window holds, the longer one that it lies in holds too. */
static void test_unwise_windows(void **state)
{
	struct engine *engine = make_engine(100, 1, 1);
	struct answer answer = { .len = 0 };
	struct engine_rule rules[] = {
		tagged(rule_per("m/*", 600, 3600), 1),
		tagged(rule_calendar("m/*", 500, WINDOW_DAY), 2),
		tagged(rule_calendar("m/*", 499, WINDOW_WEEK), 3),
		/* None of these lies in another. */
		tagged(rule_max("n", 1), 4),
		tagged(rule_per("n", 10, 7), 5),
		tagged(rule_per("n", 9, 61), 6),
		tagged(rule_calendar("n", 8, WINDOW_WEEK), 7),
		tagged(rule_calendar("n", 7, WINDOW_MONTH), 8),
		tagged(rule_rate("n", 5, 1000), 9),
		/* A max that is as large can be reached; one that is never refused for says nothing; nor do other patterns. */
		tagged(rule_per("o", 5, 60), 10),
		tagged(rule_per("o", 5, 120), 11),
		tagged(rule_per("o", 4, 240), 12),
		tagged(rule_per("o/*", 5, 10), 13),
		tagged(rule_per("o/**", 4, 20), 14),
	};

	(void)state;
	rules[11].limits.shadow = true;
	assert_int_equal(check(rules, sizeof(rules) / sizeof(rules[0]), &answer), 0);
	assert_string_equal(answer.text, HOUR_WEEK HOUR_DAY DAY_WEEK);

	/* Of one that is set it is told whichever of the two it is, and by what holds now. */
	(void)intern(engine, "m");
	set_says(engine, &rules[1], "");
	set_says(engine, &rules[0], HOUR_DAY);
	set_says(engine, &rules[2], HOUR_WEEK DAY_WEEK);
	rules[0].limits.max = 499;
	set_says(engine, &rules[0], "");
	(void)engine_free(engine);
}

static void list(void *ctx, const struct engine_rule *rule, enum engine_layer layer,
		 bool overridden)
{
	answer_add(ctx, "%s%s %.*s %" PRId64 ";", layer == ENGINE_FILE ? "file" : "run",
		   overridden ? "(overridden)" : "", (int)rule->len, rule->pattern,
		   rule->limits.max);
}

static void expect_list(struct engine *engine, const char *expected)
{
	struct answer answer = { .len = 0 };

	engine_rules_list(engine, list, &answer);
	assert_string_equal(answer.text, expected);
}

static int replace(struct engine *engine, const struct engine_rule *rules, size_t n)
{
	return engine_rules_replace(engine, rules, n, at(1000), NULL, NULL);
}

static int64_t max_of(struct engine *engine, const char *path)
{
	int64_t max = -1;
	struct name *name;

	grace_enter();
	name = registry_find(engine->registry, path, strlen(path));
	if (name && plane_first(&engine->planes, name->id)) {
		max = atomic_load_explicit(&plane_first(&engine->planes, name->id)->node.max,
					   memory_order_relaxed);
	}
	grace_leave();
	return max;
}

static void test_layers(void **state)
{
	struct engine *engine = make_engine(100, 1, 32);
	struct engine_rule file[] = { rule_max("m/*", 10), rule_max("m/a/x", 20),
				      rule_max("m/**", 30), rule_max("m", 40) };

	(void)state;
	(void)intern(engine, "m/a/x");
	(void)intern(engine, "m/b/x");
	/* A tie: nothing is changed. */
	assert_int_equal(replace(engine, file, 4), ENGINE_E_RULE);
	expect_list(engine, "");
	assert_int_equal(stats(engine).planes, 0);
	file[2] = rule_max("m/a/**", 30);
	assert_int_equal(replace(engine, file, 4), 0);
	expect_list(engine, "file m/* 10;file m/a/x 20;file m/a/** 30;file m 40;");
	assert_int_equal(stats(engine).rules_file, 4);
	assert_int_equal(max_of(engine, "m"), 40);
	assert_int_equal(max_of(engine, "m/a"), 10);
	assert_int_equal(max_of(engine, "m/a/x"), 20);
	assert_int_equal(max_of(engine, "m/b/x"), -1);
	(void)intern(engine, "m/a/y/z");
	assert_int_equal(max_of(engine, "m/a/y/z"), 30);

	/* The same pattern: overridden. Another that is no less exact: wins, and the file's more exact one stays. */
	set_max(engine, "m/*", 11);
	set_max(engine, "m/*/*", 12);
	expect_list(engine, "file(overridden) m/* 10;file m/a/x 20;file m/a/** 30;file m 40;"
			    "run m/* 11;run m/*/* 12;");
	assert_int_equal(max_of(engine, "m/a"), 11);
	assert_int_equal(max_of(engine, "m/b"), 11);
	assert_int_equal(max_of(engine, "m/a/x"), 20);
	assert_int_equal(max_of(engine, "m/b/x"), 12);
	assert_int_equal(max_of(engine, "m/a/y/z"), 30);
	set_max(engine, "m/a/**", 13);
	set_max(engine, "m/a/x", 14);
	assert_int_equal(max_of(engine, "m/a/x"), 14);
	assert_int_equal(max_of(engine, "m/a/y/z"), 13);

	/* Another file, under what run time said. */
	assert_int_equal(replace(engine, file, 1), 0);
	assert_int_equal(max_of(engine, "m"), -1);
	assert_int_equal(max_of(engine, "m/a/x"), 14);
	assert_int_equal(engine_rule_remove(engine, "m/*", 3, NULL, at(1000)), 0);
	assert_int_equal(max_of(engine, "m/a"), 10);
	assert_int_equal(engine_rule_remove(engine, "m/a/x", 5, NULL, at(1000)), 0);
	assert_int_equal(max_of(engine, "m/a/x"), 13);
	assert_int_equal(engine_rule_remove(engine, "m/a/**", 6, NULL, at(1000)), 0);
	assert_int_equal(engine_rule_remove(engine, "m/*/*", 5, NULL, at(1000)), 0);
	assert_int_equal(engine_rule_remove(engine, "m/*/*", 5, NULL, at(1000)),
			 ENGINE_E_NOT_FOUND);
	assert_int_equal(replace(engine, NULL, 0), 0);
	assert_int_equal(stats(engine).planes, 0);
	assert_int_equal(stats(engine).rules_file + stats(engine).rules_run_time, 0);
	assert_int_equal(engine->rules.limited.n, 0);
	(void)engine_free(engine);
}

static void test_set_refused(void **state)
{
	struct engine *engine = make_engine(100, 1, 32);
	struct engine_rule rule = tagged(rule_max("m/*", 5), 7);
	struct answer answer = { .len = 0 };

	(void)state;
	for (int i = 0; i < 8; i++) {
		set_rule(engine, rule_per("m", 10, i + 1));
	}
	assert_int_equal(engine_rule_set(engine, &rule, at(1), answer_fault, &answer),
			 ENGINE_E_RULE);
	assert_string_equal(answer.text,
			    "fatal 7,0: m has limits of 9 different windows, in the file and set "
			    "at run time; there can be at most 8\n");
	assert_int_equal(engine_rule_remove(engine, "m", 1, NULL, at(1)), 0);
	set_max(engine, "m/*", 5);
	rule = rule_max("m/**", 5);
	assert_int_equal(engine_rule_set(engine, &rule, at(1), NULL, NULL), ENGINE_E_RULE);
	rule = rule_max("**", 5);
	assert_int_equal(engine_rule_set(engine, &rule, at(1), NULL, NULL), ENGINE_E_RULE);
	/* Refused, the old one stays. */
	rule = rule_max("m/*", -5);
	assert_int_equal(engine_rule_set(engine, &rule, at(1), NULL, NULL), ENGINE_E_RULE);
	expect_list(engine, "run m/* 5;");
	(void)engine_free(engine);
}

/* A path with limits of its own is counted as soon as its metric is known, and only then. */
static void test_paths_are_made(void **state)
{
	struct engine *engine = make_engine(4, 1, 32);

	(void)state;
	set_max(engine, "m/a", 5);
	assert_int_equal(stats(engine).counters, 0);
	declare(engine, "m", GAUGE);
	set_max(engine, "m/b", 5);
	assert_int_equal(stats(engine).counters, 2);
	assert_int_equal(max_of(engine, "m/b"), 5);
	set_max(engine, "m/c/d/e/f", 5); /* no room */
	assert_int_equal(stats(engine).counters, 2);
	(void)intern(engine, "m/a");
	assert_int_equal(max_of(engine, "m/a"), 5);
	assert_int_equal(get(engine, "m/a").kind, ENGINE_GAUGE);
	(void)engine_free(engine);
}

static void explained(void *ctx, const struct engine_explained *is)
{
	char window[ENGINE_MAX_WINDOW_TEXT];

	answer_add(ctx,
		   "%.*s %s %" PRId64 "/%" PRId64 " %s %.*s prot %" PRId64 ",%" PRId64 "%s%s%s;",
		   (int)is->len, is->path, engine_window_text(is->window, window), is->usage,
		   is->limits.max, is->layer == ENGINE_FILE ? "file" : "run", (int)is->pattern_len,
		   is->pattern, is->effective_min, is->effective_low, is->binds ? " binds" : "",
		   is->over_max ? " over" : "", is->frozen ? " frozen" : "");
}

static void sibling(void *ctx, const struct engine_sibling *is)
{
	answer_add(ctx, "%.*s %" PRId64 " prot %" PRId64 ",%" PRId64 ";", (int)is->len, is->path,
		   is->usage, is->effective_min, is->effective_low);
}

static void nothing(void *ctx, const struct engine_explained *is)
{
	(void)ctx;
	(void)is;
}

static void more_siblings(void *ctx, const struct engine_sibling *is)
{
	uint32_t *counts = ctx;

	counts[0]++;
	counts[1] = is->more;
}

/* Those beyond what is told of are counted, whatever their order. */
static void test_many_siblings(void **state)
{
	struct bench bench = bench_new(200, 1, 16);
	struct engine_rule rule = rule_max("m/p/me", 60);
	uint32_t counts[2] = { 0 };
	char path[16];

	(void)state;
	set_max(bench.engine, "m/p/*", 1000);
	rule.limits.low = 10;
	set_rule(bench.engine, rule);
	(void)intern(bench.engine, "m/p/me");
	for (int i = 0; i < 40; i++) {
		(void)snprintf(path, sizeof(path), "m/p/%d", i);
		add(bench.workers[0], intern(bench.engine, path), 1 + i * 7 % 40);
	}
	engine_flush(bench.engine, 0);
	assert_int_equal(engine_explain(bench.engine, "m/p/me", 6, at(1000), nothing, more_siblings,
					counts),
			 0);
	assert_int_equal(counts[0], ENGINE_MAX_SIBLINGS);
	assert_int_equal(counts[1], 40 - ENGINE_MAX_SIBLINGS);
	bench_free(&bench);
}

static void expect_siblings(struct bench *bench, const char *expected)
{
	struct answer answer = { .len = 0 };

	assert_int_equal(
		engine_explain(bench->engine, "m/p/1", 5, at(1000), nothing, sibling, &answer), 0);
	answer_add(&answer, "%s", "");
	assert_string_equal(answer.text, expected);
}

/* The published example: a parent with low 50, children with low 75, 25, 0 and 500 that use 50, 50, 50 and 0. */
static void test_explain(void **state)
{
	struct bench bench = bench_new(100, 1, 32);
	struct engine_worker *worker = bench.workers[0];
	struct answer answer = { .len = 0 };
	struct engine_rule rule;
	const int64_t low[] = { 75, 25, 0, 500 };
	char path[] = "m/p/0";

	(void)state;
	assert_int_equal(engine_explain(bench.engine, "m", 1, at(1), explained, sibling, &answer),
			 ENGINE_E_NOT_FOUND);
	assert_int_equal(engine_explain(bench.engine, "", 0, at(1), explained, sibling, &answer),
			 ENGINE_E_PATH);
	rule = rule_max("m", 140);
	rule.limits.low = 50;
	set_rule(bench.engine, rule);
	assert_int_equal(charge(worker, "m", 10), 0);
	rule = rule_max("m/p", QUOTA_NONE);
	rule.limits.low = 50;
	set_rule(bench.engine, rule);
	for (int i = 0; i < 4; i++) {
		path[4] = (char)('0' + i);
		rule = rule_max(path, 60);
		rule.limits.low = low[i];
		set_rule(bench.engine, rule);
		if (i < 3) {
			add(worker, intern(bench.engine, path), 50);
		}
	}
	set_rule(bench.engine, rule_per("m/p/*", 1000, 60));
	engine_flush(bench.engine, 0);
	assert_int_equal(
		engine_explain(bench.engine, "m/p/1", 5, at(1000), explained, sibling, &answer), 0);
	assert_string_equal(answer.text,
			    "m/p/1 without a window 50/60 run m/p/1 prot 0,16;"
			    "m/p/1 per 1m 0/1000 run m/p/* prot 0,0;"
			    "m/p without a window 150/9223372036854775807 run m/p prot 0,50;"
			    "m without a window 160/140 run m prot 0,50 binds over frozen;"
			    "m/p/2 50 prot 0,0;m/p/0 50 prot 0,33;");
	/* What nobody has is nothing to be held against siblings; and one of them who has it is enough. */
	for (int i = 0; i < 4; i++) {
		path[4] = (char)('0' + i);
		set_rule(bench.engine, rule_max(path, 60));
	}
	set_rule(bench.engine, rule_max("m/p", 1000));
	set_rule(bench.engine, rule_max("m", 140));
	expect_siblings(&bench, "");
	rule = rule_max("m/p/3", 60);
	rule.limits.min = 1;
	set_rule(bench.engine, rule);
	expect_siblings(&bench, "m/p/2 50 prot 0,0;m/p/0 50 prot 0,0;");
	set_rule(bench.engine, rule_max("m/p/3", 60));
	rule = rule_max("m/p/1", 60);
	rule.limits.low = 1;
	set_rule(bench.engine, rule);
	expect_siblings(&bench, "m/p/2 50 prot 0,0;m/p/0 50 prot 0,0;");
	/* What the parent has floats to those who claim nothing. */
	set_rule(bench.engine, rule_max("m/p/1", 60));
	rule = rule_max("m/p", 1000);
	rule.limits.low = 50;
	set_rule(bench.engine, rule);
	rule = rule_max("m", 140);
	rule.limits.low = 50;
	set_rule(bench.engine, rule);
	expect_siblings(&bench, "m/p/2 50 prot 0,16;m/p/0 50 prot 0,16;");
	bench_free(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),       cmocka_unit_test(test_shapes_meet),
		cmocka_unit_test(test_fatal),	       cmocka_unit_test(test_ties),
		cmocka_unit_test(test_many_templates), cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_unwise),	       cmocka_unit_test(test_unwise_windows),
		cmocka_unit_test(test_layers),	       cmocka_unit_test(test_set_refused),
		cmocka_unit_test(test_paths_are_made), cmocka_unit_test(test_explain),
		cmocka_unit_test(test_many_siblings),
	};

	return RUN(tests);
}
