/*
 * Rules: of the configuration and of run time, listed and explained, checked and reloaded.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire-quota.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 20000

static struct request set_request(const char *pattern)
{
	return (struct request){
		.type = REQUEST_QUOTA_SET,
		.quota_set = { .pattern = text_of(pattern), .source = text_of("") },
	};
}

static void test_set_list_remove(void **state)
{
	struct test_daemon *daemon = test_daemon_start(
		"workers = 2\n[quota a/*]\nmax = 5\nper = 1m\n\n[quota a/b]\nmax = 100\n");
	struct wire *wire = wire_open(daemon->socket);
	const struct request list = { .type = REQUEST_QUOTA_LIST, .quota_list = text_of("") };
	struct request set = set_request("a/b"), remove = { .type = REQUEST_QUOTA_REMOVE };
	struct reply reply;
	char where[128];

	(void)state;
	(void)wire_greet(wire, 1, 0, 1);
	set.quota_set.limits.has_max = true;
	set.quota_set.limits.max = 200;
	reply = wire_call(wire, &set);
	assert_int_equal(reply.type, REPLY_QUOTA_OK);
	set.quota_set.pattern = text_of("a/b/c");
	reply = wire_call(wire, &set);
	assert_int_equal(reply.quota_ok.n_notes, 0);
	set.quota_set.limits.max = 201;
	reply = wire_call(wire, &set);
	assert_int_equal(reply.type, REPLY_QUOTA_OK);
	assert_int_equal(reply.quota_ok.n_notes, 1);
	assert_true(wire_text_has(reply.quota_ok.notes[0], "a/b/c"));

	reply = wire_call(wire, &list);
	assert_int_equal(reply.type, REPLY_QUOTA_RULES);
	assert_int_equal(reply.quota_rules.cursor.len, 0);
	assert_int_equal(reply.quota_rules.n_rules, 4);
	(void)snprintf(where, sizeof(where), "%s:4", daemon->config_path);
	assert_true(wire_text_is(reply.quota_rules.rules[0].pattern, "a/*"));
	assert_true(wire_text_is(reply.quota_rules.rules[0].source, where));
	assert_int_equal(reply.quota_rules.rules[0].window.kind, RULE_WINDOW_PER);
	assert_int_equal(reply.quota_rules.rules[0].window.duration_ms, 60000);
	assert_int_equal(reply.quota_rules.rules[0].layer, RULE_FILE);
	assert_false(reply.quota_rules.rules[0].overridden);
	assert_false(reply.quota_rules.rules[0].limits.has_high);
	assert_true(wire_text_is(reply.quota_rules.rules[1].pattern, "a/b"));
	assert_true(reply.quota_rules.rules[1].overridden);
	assert_true(wire_text_is(reply.quota_rules.rules[2].pattern, "a/b"));
	assert_int_equal(reply.quota_rules.rules[2].layer, RULE_RUN_TIME);
	assert_int_equal(reply.quota_rules.rules[2].limits.max, 200);

	assert_true(wire_charge(wire, 1, "a/b", 5, NULL));
	assert_false(wire_charge(wire, 2, "a/b", 196, NULL));
	remove.quota_remove = (struct rule_remove){ .pattern = text_of("a/b") };
	assert_int_equal(wire_call(wire, &remove).type, REPLY_QUOTA_OK);
	(void)wire_send(wire, &remove);
	wire_expect_error(wire, CODE_NOT_FOUND, "no such rule");
	reply = wire_call(wire, &list);
	assert_int_equal(reply.quota_rules.n_rules, 3);
	assert_false(reply.quota_rules.rules[1].overridden);
	remove.quota_remove =
		(struct rule_remove){ .pattern = text_of("a/b/c"), .all_windows = true };
	assert_int_equal(wire_call(wire, &remove).type, REPLY_QUOTA_OK);
	(void)wire_free(wire);
	test_daemon_await_log(daemon, "set quota a/b: without a window, max 200");
	test_daemon_await_log(daemon, "removed quota a/b/c: all windows");
	test_daemon_stop(daemon);
}

static void test_bad_rules(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 1\n[quota a/*/c]\nmax = 1\n");
	struct wire *wire = wire_open(daemon->socket);
	struct request set, remove = { .type = REQUEST_QUOTA_REMOVE };
	struct request list = { .type = REQUEST_QUOTA_LIST, .quota_list = text_of("not a cursor") };
	struct request explain = { .type = REQUEST_QUOTA_EXPLAIN };

	(void)state;
	(void)wire_hello(wire, 0, 0, 0, NULL);
#define SET_FAILS(pattern_, text_, ...)                                                   \
	do {                                                                              \
		set = set_request(pattern_);                                              \
		set.quota_set.limits = (struct rule_limits){ .has_max = true, .max = 5 }; \
		__VA_ARGS__;                                                              \
		wire_fails(wire, &set, CODE_INVALID_ARGUMENT, (text_), 0);                \
	} while (0)
	SET_FAILS("", "");
	SET_FAILS("*", "");
	SET_FAILS("a//b", "");
	SET_FAILS("a/\xff", "");
	SET_FAILS("a/**/b", "");
	SET_FAILS("a", "max -1 is out of range", set.quota_set.limits.max = -1);
	SET_FAILS("a", "max 9223372036854775807 is out of range",
		  set.quota_set.limits.max = INT64_MAX);
	SET_FAILS("a", "high", set.quota_set.limits.has_high = true;
		  set.quota_set.limits.high = INT64_MIN);
	SET_FAILS("a", "low", set.quota_set.limits.low = -1);
	SET_FAILS("a", "min", set.quota_set.limits.min = 6);
	SET_FAILS("a", "window kind 9", set.quota_set.window.kind = (enum rule_window_kind)9);
	SET_FAILS("a", "unit 7", set.quota_set.window.kind = RULE_WINDOW_CALENDAR;
		  set.quota_set.window.unit = (enum rule_window_unit)7);
	SET_FAILS("a", "", set.quota_set.window.kind = RULE_WINDOW_PER;
		  set.quota_set.window.duration_ms = 999);
	SET_FAILS("a", "", set.quota_set.window.kind = RULE_WINDOW_PER;
		  set.quota_set.window.duration_ms = UINT64_MAX);
	SET_FAILS("a", "", set.quota_set.window.kind = RULE_WINDOW_PER;
		  set.quota_set.window.duration_ms = 1000;
		  set.quota_set.limits.max = INT64_C(1) << 40);
	SET_FAILS("a", "", set.quota_set.window.kind = RULE_WINDOW_RATE);
	SET_FAILS("a", "", set.quota_set.window.kind = RULE_WINDOW_RATE;
		  set.quota_set.limits =
			  (struct rule_limits){ .rate = 1, .per_ms = UINT64_MAX, .burst = 1 });
	SET_FAILS("a/*/*", "", set.quota_set.limits.low = 1;
		  set.quota_set.window.kind = RULE_WINDOW_PER;
		  set.quota_set.window.duration_ms = 1000);
	/* A tie within the layer of run time. */
	wire_quota_max(wire, "b/*/c", 5);
	SET_FAILS("b/*/*", "");
	assert_int_equal(wire_status(wire, "rules_run_time"), 1);
	assert_int_equal(wire_status(wire, "rules_file"), 1);

	remove.quota_remove =
		(struct rule_remove){ .pattern = text_of("a//b"), .all_windows = true };
	wire_fails(wire, &remove, CODE_INVALID_ARGUMENT, "", 0);
	remove.quota_remove.pattern = text_of("a/*/c");
	wire_fails(wire, &remove, CODE_NOT_FOUND, "at run time", 0);
	remove.quota_remove = (struct rule_remove){
		.pattern = text_of("b/*/c"),
		.window = { .kind = RULE_WINDOW_PER, .duration_ms = 5 },
	};
	wire_fails(wire, &remove, CODE_INVALID_ARGUMENT, "window of 5 ms", 0);
	remove.quota_remove.window.kind = (enum rule_window_kind)4;
	wire_fails(wire, &remove, CODE_INVALID_ARGUMENT, "window kind 4", 0);
	wire_fails(wire, &list, CODE_INVALID_ARGUMENT, "not a cursor", 0);
	explain.quota_explain = text_of("nowhere");
	wire_fails(wire, &explain, CODE_NOT_FOUND, "no such counter", 0);
	explain.quota_explain = text_of("a//");
	wire_fails(wire, &explain, CODE_INVALID_ARGUMENT, "a segment is empty", 0);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

/* More rules than one page has; a change between two pages is told. */
static void test_long_list(void **state)
{
	size_t size = 1 << 20, len = 0;
	char *config = malloc(size);
	struct request list = { .type = REQUEST_QUOTA_LIST, .quota_list = text_of("") };
	struct test_daemon *daemon;
	struct wire *wire;
	struct reply reply;
	char cursor[64];
	size_t n = 0;

	(void)state;
	assert_non_null(config);
	for (unsigned i = 0; i < 10000; i++) {
		len += (size_t)snprintf(config + len, size - len,
					"[quota list/of/many/rules/%05u]\nmax = %u\n", i, i);
	}
	daemon = test_daemon_start(config);
	free(config);
	wire = wire_open(daemon->socket);
	(void)wire_hello(wire, 0, 0, 0, NULL);
	for (;;) {
		reply = wire_call(wire, &list);
		assert_int_equal(reply.type, REPLY_QUOTA_RULES);
		for (size_t i = 0; i < reply.quota_rules.n_rules; i++) {
			assert_int_equal(reply.quota_rules.rules[i].limits.max, n + i);
		}
		n += reply.quota_rules.n_rules;
		if (reply.quota_rules.cursor.len == 0) {
			break;
		}
		assert_true(reply.quota_rules.cursor.len <= sizeof(cursor));
		memcpy(cursor, reply.quota_rules.cursor.at, reply.quota_rules.cursor.len);
		list.quota_list = (struct text){ cursor, reply.quota_rules.cursor.len };
	}
	assert_int_equal(n, 10000);
	wire_quota_max(wire, "other", 1);
	wire_fails(wire, &list, CODE_FAILED_PRECONDITION, "begin again", 0);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

static void test_explain(void **state)
{
	struct test_daemon *daemon = test_daemon_start(
		"workers = 2\n[quota r]\nmax = 1000\nlow = 50\n[quota r/*]\nmax = 10\nper = 1m\n"
		"[quota r/*]\nlow = 75\n");
	struct wire *wire = wire_open(daemon->socket);
	const struct request explain = { .type = REQUEST_QUOTA_EXPLAIN,
					 .quota_explain = text_of("r/a/b") };
	const struct explained_level *level;
	struct reply reply;
	char where[128];

	(void)state;
	(void)wire_greet(wire, 1, 0, 1);
	assert_true(wire_charge(wire, 1, "r/a/b", 4, NULL));
	assert_false(wire_charge(wire, 2, "r/a/b", 7, NULL));
	assert_true(wire_charge(wire, 3, "r/z", 10, NULL));
	wire_intern(wire, 0, "r/a/b");
	assert_false(wire_add(wire, 1, 0, 3));
	reply = wire_call(wire, &explain);
	assert_int_equal(reply.type, REPLY_QUOTA_EXPLAINED);
	assert_int_equal(reply.quota_explained.n_levels, 3);
	for (size_t i = 0; i < 3; i++) {
		level = &reply.quota_explained.levels[i];
		if (wire_text_is(level->path, "r")) {
			(void)snprintf(where, sizeof(where), "%s:4", daemon->config_path);
			assert_int_equal(level->usage, 17);
			assert_int_equal(level->left, 983);
			assert_int_equal(level->ends_in_ms, 0);
			assert_true(level->limits.has_max);
			assert_int_equal(level->limits.low, 50);
			assert_false(level->binds);
		} else if (level->window.kind == RULE_WINDOW_PER) {
			(void)snprintf(where, sizeof(where), "%s:7", daemon->config_path);
			assert_int_equal(level->usage, 7);
			assert_int_equal(level->left, 3);
			assert_int_equal(level->refusals, 1);
			assert_in_range(level->ends_in_ms, 0, 60000);
			assert_true(level->binds);
			assert_true(wire_text_is(level->pattern, "r/*"));
		} else {
			(void)snprintf(where, sizeof(where), "%s:10", daemon->config_path);
			assert_int_equal(level->usage, 7);
			assert_false(level->limits.has_max);
			assert_int_equal(level->effective_low, 7);
		}
		assert_int_equal(level->layer, RULE_FILE);
		assert_true(wire_text_is(level->source, where));
	}
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

/* ---- configuration ---- */

static int check_config(const char *config, char **ret_log)
{
	static const char *const check[] = { "--check-config", NULL };
	struct test_daemon *daemon = test_daemon_prepare(config);
	int status;

	test_daemon_spawn(daemon, check);
	status = test_daemon_wait(daemon);
	assert_true(WIFEXITED(status));
	*ret_log = test_daemon_log(daemon);
	test_daemon_clean(daemon);
	return WEXITSTATUS(status);
}

static void test_check_config(void **state)
{
	char *log;

	(void)state;
	assert_int_equal(check_config("[quota a]\nmax = 10\n[quota a/b]\nmax = 20\n", &log), 0);
	assert_non_null(strstr(log, "warning: "));
	assert_non_null(strstr(log, "conf:5: a/b"));
	free(log);
	/* All faults, each with its place. */
	assert_int_equal(
		check_config(
			"[quota a]\nmax = 1\nmin = 2\n[quota b/*/c]\nmax = 1\n[quota b/*/*]\nmax = 1\n"
			"[quota c]\nburst = 3\n[quota d]\nper = 1m\nmax = 100T\n[quota e/**/x]\nmax = 1\n",
			&log),
		78);
	assert_non_null(strstr(log, "conf:3: "));
	assert_non_null(strstr(log, "conf:8: "));
	assert_non_null(strstr(log, "conf:10: [quota c]: burst goes with rate"));
	assert_non_null(strstr(log, "conf:12: "));
	assert_non_null(strstr(log, "conf:15: "));
	assert_non_null(strstr(log, "the configuration has 5 errors"));
	free(log);
}

static void test_reload(void **state)
{
	struct test_daemon *daemon = test_daemon_start(
		"workers = 2\n[metric g]\nkind = gauge\n[quota g/*]\nmax = 10\n[quota g/gone]\nhigh = 1\n");
	struct wire *wire = wire_open(daemon->socket);

	(void)state;
	(void)wire_greet(wire, 1, 0, 1);
	assert_true(wire_charge(wire, 1, "g/a", 10, NULL));
	assert_false(wire_charge(wire, 2, "g/a", 1, NULL));
	wire_quota_max(wire, "g/set", 3);
	test_daemon_configure(daemon,
			      "workers = 2\n[metric g]\nkind = gauge\n[quota g/*]\nmax = 11\n");
	test_daemon_signal(daemon, SIGHUP);
	test_daemon_await(daemon, "READY=1");
	assert_true(wire_charge(wire, 3, "g/a", 1, NULL));
	assert_false(wire_charge(wire, 4, "g/a", 1, NULL));
	assert_int_equal(wire_status(wire, "rules_file"), 1);
	/* What was set at run time stays, and holds. */
	assert_int_equal(wire_status(wire, "rules_run_time"), 1);
	assert_false(wire_charge(wire, 5, "g/set", 4, NULL));
	/* An error keeps what ran: metrics and quotas both. */
	test_daemon_configure(
		daemon,
		"workers = 2\n[metric g]\nkind = gauge\nmax_counters = 3\n[quota g/*]\nmax = 50\n[quota g/x]\nmin = 5\nmax = 1\n");
	test_daemon_signal(daemon, SIGHUP);
	test_daemon_await_log(daemon, "what ran before goes on");
	assert_false(wire_charge(wire, 6, "g/a", 1, NULL));
	test_daemon_configure(daemon,
			      "workers = 2\n[metric g]\nkind = counter\n[quota g/*]\nmax = 50\n");
	test_daemon_signal(daemon, SIGHUP);
	test_daemon_await_log(daemon, "kind can't change");
	assert_false(wire_charge(wire, 7, "g/a", 1, NULL));
	assert_int_equal(wire_status(wire, "reloads_failed"), 2);
	test_daemon_configure(daemon, NULL);
	test_daemon_signal(daemon, SIGHUP);
	test_daemon_await(daemon, "READY=1");
	test_daemon_await(daemon, "READY=1");
	test_daemon_await(daemon, "READY=1");
	assert_true(wire_charge(wire, 8, "g/a", 1000, NULL));
	assert_int_equal(wire_status(wire, "rules_file"), 0);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

/* Rules come and go, and faulty files are refused, while clients charge: the one max that all good files have holds all the time. */

#define HOLDERS 4u

static const char *const files[] = {
	"workers = 3\n[metric x]\nkind = gauge\n[quota x/sum]\nmax = 3\n[quota x/*]\nmax = 1G\nper = 1h\n",
	"workers = 3\n[metric x]\nkind = gauge\n[quota x/sum]\nmax = 1000\n[quota x/a]\nmax = 1\nmin = 2\n",
	"workers = 3\n[metric x]\nkind = gauge\n[quota x/**]\nhigh = 1\nshadow = yes\n[quota x/sum]\nmax = 3\n[quota x]\nmax = 9\n",
	"workers = 3\n[metric x]\nkind = counter\n[quota x/sum]\nmax = 1000\n",
};

struct holder {
	struct test_daemon *daemon;
	uint32_t session;
	pthread_t thread;
	_Atomic(bool) *stop;
	_Atomic(int) *held;
	uint64_t n_granted, n_refused, n_wrong;
};

/* What another one has given back may not be counted as such yet: this counts first down, then gives back. */
static void *hold(void *arg)
{
	struct holder *holder = arg;
	struct wire *wire = wire_open(holder->daemon->socket);
	uint64_t number = 1;
	char path[32];

	(void)snprintf(path, sizeof(path), "x/sum/%u", holder->session);
	(void)wire_greet(wire, holder->session, 0, 1);
	while (!atomic_load_explicit(holder->stop, memory_order_relaxed)) {
		if (!wire_charge(wire, number++, path, 1, NULL)) {
			holder->n_refused++;
			continue;
		}
		holder->n_granted++;
		holder->n_wrong +=
			atomic_fetch_add_explicit(holder->held, 1, memory_order_seq_cst) >= 3;
		(void)atomic_fetch_sub_explicit(holder->held, 1, memory_order_seq_cst);
		(void)wire_uncharge(wire, number++, path, 1);
	}
	(void)wire_free(wire);
	return NULL;
}

static void test_reload_under_load(void **state)
{
	struct test_daemon *daemon = test_daemon_start(files[0]);
	struct holder holders[HOLDERS];
	struct wire *wire = wire_open(daemon->socket);
	_Atomic(bool) stop = false;
	_Atomic(int) held = 0;
	uint64_t wrong = 0, granted = 0;

	(void)state;
	(void)wire_greet(wire, 1, 0, 1);
	for (uint32_t i = 0; i < HOLDERS; i++) {
		holders[i] = (struct holder){
			.daemon = daemon, .session = 2 + i, .stop = &stop, .held = &held
		};
		assert_int_equal(pthread_create(&holders[i].thread, NULL, hold, &holders[i]), 0);
	}
	for (unsigned i = 0; i < 100; i++) {
		unsigned file = i % 4;

		test_daemon_configure(daemon, files[file]);
		test_daemon_signal(daemon, SIGHUP);
		test_daemon_await(daemon, "READY=1");
		/* All of a good one; all of the one before it after a faulty one. */
		assert_int_equal(wire_status(wire, "rules_file"), file < 2 ? 2 : 3);
	}
	atomic_store_explicit(&stop, true, memory_order_relaxed);
	for (unsigned i = 0; i < HOLDERS; i++) {
		assert_int_equal(pthread_join(holders[i].thread, NULL), 0);
		wrong += holders[i].n_wrong;
		granted += holders[i].n_granted;
	}
	assert_int_equal(wrong, 0);
	assert_true(granted > 0);
	assert_int_equal(wire_status(wire, "reloads"), 50);
	assert_int_equal(wire_status(wire, "reloads_failed"), 50);
	assert_int_equal(wire_total(wire, "x", CONSISTENCY_EXACT), 0);
	assert_int_equal(wire_usage(wire, "x/sum"), 0);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set_list_remove),	  cmocka_unit_test(test_bad_rules),
		cmocka_unit_test(test_long_list),	  cmocka_unit_test(test_explain),
		cmocka_unit_test(test_check_config),	  cmocka_unit_test(test_reload),
		cmocka_unit_test(test_reload_under_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
