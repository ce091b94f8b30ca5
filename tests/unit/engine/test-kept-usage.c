/* Usage of windows and rates as the cuts have it: where it counts, what is told of it, and how it comes back. */
#include "tests/unit/engine/keeper.h"

#define BATCH 8

static const struct window per_10 = { .kind = WINDOW_PER, .duration_ns = 10 * SECOND };
static const struct window rate = { .kind = WINDOW_RATE };

/* "m/a per 10s 100: 5;" */
static void answer_usage(void *ctx, const struct engine_usage *is)
{
	char window[ENGINE_MAX_WINDOW_TEXT];
	int64_t number = is->window.kind == WINDOW_RATE ? is->number / SECOND : is->number;

	answer_add(ctx, "%.*s %s %" PRId64 ": %" PRId64 ";", (int)is->len, is->path,
		   engine_window_text(&is->window, window), number, is->count);
}

static const char *each(struct engine *engine, bool all)
{
	static struct answer answer;

	answer.text[0] = '\0';
	answer.len = 0;
	engine_usage_each(engine, all, answer_usage, &answer);
	return answer.text;
}

static void restore_usage(struct engine *engine, const char *path, struct window window,
			  int64_t number, int64_t count, int64_t s, int result)
{
	const struct engine_usage is = { path, strlen(path), window, number, count };
	const struct quota_time time = at(s);

	assert_int_equal(engine_restore_usage(engine, &is, &time), result);
}

static void usage_add(struct engine *engine, struct engine_ref ref, int64_t n, int64_t s)
{
	engine_usage_add(engine, ref.id, n, s * SECOND);
}

static void test_growth(void **state)
{
	struct engine *engine = make_kept(100, 1, BATCH);
	struct engine_ref ab, other;

	(void)state;
	set_rule(engine, rule_per("m/a", 100, 10));
	set_rule(engine, rule_per("m/*/*", 100, 10));
	set_rule(engine, rule_rate("m/a", 10, 100));
	set_max(engine, "m", 1000);
	(void)engine_restored(engine, at(1000));
	ab = intern(engine, "m/a/b");
	other = intern(engine, "other");
	assert_string_equal(each(engine, false), "");
	usage_add(engine, ab, 5, 1000);
	usage_add(engine, other, 5, 1000);
	assert_string_equal(each(engine, false),
			    "m/a/b per 10s 100: 5;m/a per 10s 100: 5;m/a rate 1000: 5;");
	assert_string_equal(each(engine, false), "");
	usage_add(engine, intern(engine, "m/a"), 2, 1001);
	usage_add(engine, ab, 1, 1001);
	assert_string_equal(each(engine, false),
			    "m/a per 10s 100: 8;m/a rate 1001: 3;m/a/b per 10s 100: 6;");
	usage_add(engine, ab, 1, 1010);
	assert_string_equal(each(engine, false),
			    "m/a/b per 10s 101: 1;m/a per 10s 101: 1;m/a rate 1010: 1;");
	assert_string_equal(each(engine, true),
			    "m/a per 10s 101: 1;m/a rate 1010: 1;m/a/b per 10s 101: 1;");
	(void)engine_free(engine);
}

/* What comes for a counter that is gone is its ancestors'; what was noted of it is forgotten. */
static void test_gone(void **state)
{
	struct engine *engine = make_kept(100, 1, BATCH);
	struct engine_ref ref;

	(void)state;
	set_rule(engine, rule_per("m", 100, 10));
	set_rule(engine, rule_per("m/*", 100, 10));
	(void)engine_restored(engine, at(1000));
	ref = intern(engine, "m/a");
	usage_add(engine, ref, 5, 1000);
	assert_int_equal(drop(engine, "m/a"), 0);
	usage_add(engine, ref, 2, 1000);
	assert_string_equal(each(engine, false), "m per 10s 100: 7;");
	(void)intern(engine, "m/a");
	assert_string_equal(each(engine, false), "");
	(void)engine_free(engine);
}

/* A limit that begins anew says so: a keeper may have something of one before it. */
static void test_begun(void **state)
{
	struct engine *engine = make_kept(100, 1, BATCH);
	struct engine_ref ref;

	(void)state;
	(void)engine_restored(engine, at(1000));
	ref = intern(engine, "m/a");
	set_rule(engine, rule_per("m/a", 100, 10));
	assert_string_equal(each(engine, false), "m/a per 10s 100: 0;");
	usage_add(engine, ref, 5, 1000);
	assert_string_equal(each(engine, false), "m/a per 10s 100: 5;");
	assert_int_equal(engine_rule_remove(engine, "m/a", 3, NULL, at(1000)), 0);
	usage_add(engine, ref, 5, 1000);
	assert_string_equal(each(engine, false), "");
	set_rule(engine, rule_per("m/a", 100, 10));
	usage_add(engine, ref, 1, 1000);
	assert_string_equal(each(engine, false), "m/a per 10s 100: 1;");
	(void)engine_free(engine);
}

/* What was added before a limit began comes in the cuts after it, and is not used of it. */
static void test_young(void **state)
{
	struct engine *engine = make_kept(100, 1, BATCH);
	const struct quota_time time = at(1000);
	struct engine_worker *worker;
	struct engine_ref ref;

	(void)state;
	(void)engine_restored(engine, time);
	engine_set_time(engine, &time);
	assert_int_equal(engine_join(engine, &worker), 0);
	ref = intern(engine, "m/a");
	add(worker, ref, 30);
	set_rule(engine, rule_per("m/a", 100, 10));
	set_rule(engine, rule_rate("m/a", 10, 100));
	add(worker, ref, 5);
	usage_add(engine, ref, 35, 1000);
	engine_usage_trim(engine, &time);
	assert_string_equal(each(engine, false), "m/a per 10s 100: 5;m/a rate 1000: 5;");
	/* The cut before had been taken before the limit began: the next one has the rest of what came before it. */
	usage_add(engine, ref, 2, 1000);
	engine_usage_trim(engine, &time);
	assert_string_equal(each(engine, false), "m/a per 10s 100: 5;m/a rate 1000: 5;");
	/* From then on cuts are right. */
	usage_add(engine, ref, 3, 1000);
	engine_usage_trim(engine, &time);
	assert_string_equal(each(engine, false), "m/a per 10s 100: 8;m/a rate 1000: 8;");
	engine_leave(worker);
	(void)engine_free(engine);
}

static void test_rate_changes(void **state)
{
	struct engine *engine = make_kept(100, 1, BATCH);
	struct engine_ref ref;

	(void)state;
	(void)engine_restored(engine, at(1000));
	ref = intern(engine, "m/a");
	set_rule(engine, rule_rate("m/a", 10, 100));
	usage_add(engine, ref, 50, 1000);
	set_rule(engine, rule_rate("m/a", 1, 200));
	assert_string_equal(each(engine, true), "m/a rate 1000: 50;");
	usage_add(engine, ref, 1, 1010);
	assert_string_equal(each(engine, true), "m/a rate 1010: 41;");
	(void)engine_free(engine);
}

static void test_settle(void **state)
{
	struct engine *engine = make_kept(100, 1, BATCH);
	struct quota_time time = at(1012);
	struct engine_worker *worker;

	(void)state;
	set_rule(engine, rule_per("m/a", 100, 10));
	set_rule(engine, rule_rate("m/a", 1, 100));
	declare(engine, "m", (struct engine_metric){ 0 });
	(void)engine_restored(engine, at(1000));
	assert_int_equal(engine_join(engine, &worker), 0);
	assert_int_equal(charge_at(worker, "m/a", 20, at(1010), NULL), 0);
	usage_add(engine, intern(engine, "m/a"), 3, 1010);
	(void)each(engine, false);
	engine_usage_settle(engine, &time);
	assert_string_equal(each(engine, false), "m/a per 10s 101: 20;m/a rate 1012: 18;");
	engine_usage_settle(engine, &time);
	assert_string_equal(each(engine, false), "");
	engine_leave(worker);
	(void)engine_free(engine);
}

static void test_restore(void **state)
{
	struct engine *engine = make_kept(100, 1, BATCH);

	(void)state;
	set_rule(engine, rule_per("m/a", 100, 10));
	set_rule(engine, rule_rate("m/a", 1, 100));
	set_max(engine, "m/a", 1000);
	assert_int_equal(engine_restore(engine, "m/a", 3, 500, 0, 1, NULL), 0);
	restore_usage(engine, "m/a", per_10, 100, 40, 1005, 0);
	restore_usage(engine, "m/a", rate, 1000 * SECOND, 40, 1005, 0);
	restore_usage(engine, "m/b", rate, 1000 * SECOND, 40, 1005, ENGINE_E_NOT_FOUND);
	restore_usage(engine, "m", per_10, 100, 40, 1005, ENGINE_E_NOT_FOUND);
	restore_usage(engine, "m/a", (struct window){ .kind = WINDOW_NONE }, 0, 40, 1005,
		      ENGINE_E_NOT_FOUND);
	restore_usage(engine, "", per_10, 100, 40, 1005, ENGINE_E_NOT_FOUND);
	assert_int_equal(usage_at(engine, "m/a", per_10, at(1005)), 40);
	assert_int_equal(usage_at(engine, "m/a", rate, at(1005)), 35);
	assert_int_equal(usage(engine, "m/a"), 500);
	/* Kept as it was, and told when it grows. */
	assert_string_equal(each(engine, false), "");
	assert_string_equal(each(engine, true), "m/a per 10s 100: 40;m/a rate 1000: 40;");
	(void)engine_restored(engine, at(1005));
	usage_add(engine, intern(engine, "m/a"), 1, 1006);
	assert_string_equal(each(engine, false), "m/a per 10s 100: 41;m/a rate 1006: 35;");
	(void)engine_free(engine);
}

/* More limits than there is room for at first. */
static void test_many(void **state)
{
	struct engine *engine = make_kept(2000, 1, BATCH);
	struct answer answer = { .len = 0 };
	char path[16];

	(void)state;
	set_rule(engine, rule_per("m/*", 100, 10));
	(void)engine_restored(engine, at(1000));
	for (int i = 0; i < 500; i++) {
		(void)snprintf(path, sizeof(path), "m/%d", i);
		usage_add(engine, intern(engine, path), 1, 1000);
		usage_add(engine, intern(engine, path), 1, 1000);
		answer_add(&answer, "m/%d per 10s 100: 2;", i);
	}
	assert_string_equal(each(engine, false), answer.text);
	(void)engine_free(engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth), cmocka_unit_test(test_gone),
		cmocka_unit_test(test_begun),  cmocka_unit_test(test_rate_changes),
		cmocka_unit_test(test_settle), cmocka_unit_test(test_restore),
		cmocka_unit_test(test_many),   cmocka_unit_test(test_young),
	};

	return RUN(tests);
}
