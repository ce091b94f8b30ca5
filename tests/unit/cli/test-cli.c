/*
 * The whole of rationctl against a fake libration: what each command line prints, to the letter, and its exit status.
 */
#include "tests/support/test.h"

#include "tests/unit/cli/fake.h"
#include "tests/unit/cli/run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- add ---- */

static void add_counts(void **state)
{
	(void)state;
	assert_run(RUN("add", "requests/acme"), 0, "", "");
	assert_int_equal(fake_own("requests/acme"), 1);
	assert_string_equal(fake.url, "unix:/run/rationd/rationd.sock");
	assert_run(RUN("add", "requests/acme", "2k"), 0, "", "");
	assert_int_equal(fake_own("requests/acme"), 2001);
	assert_run(RUN("--json", "add", "requests/acme", "9007199254740993"), 0,
		   "{\"path\": \"requests/acme\", \"n\": \"9007199254740993\"}\n", "");
	assert_run(RUN("add", "--json", "requests/acme", "1"), 0,
		   "{\"path\": \"requests/acme\", \"n\": 1}\n", "");
}

static void add_takes_negative_numbers(void **state)
{
	struct ration_metric gauge = RATION_METRIC_INIT;

	(void)state;
	gauge.kind = RATION_GAUGE;
	assert_int_equal(ration_metric_set(NULL, "jobs", &gauge, 1), 0);
	assert_run(RUN("add", "jobs/running", "-5"), 0, "", "");
	assert_int_equal(fake_own("jobs/running"), -5);
	assert_run(RUN("add", "--", "jobs/running", "-5"), 0, "", "");
	assert_int_equal(fake_own("jobs/running"), -10);
}

#define ONLY_GROWS                                                                                  \
	"which only grows; declare it a gauge before it is counted (rationctl metric set requests " \
	"--kind gauge), or add N of 0 and above"

static void add_is_refused(void **state)
{
	(void)state;
	assert_run(RUN("add", "requests/acme", "-5"), 5, "",
		   "rationctl: add: -5 at requests/acme: requests is a counter, " ONLY_GROWS "\n");
	assert_run(
		RUN("add", "requests/acme", "-5", "--json"), 5,
		"{\"error\": {\"status\": 5, \"code\": \"INVALID_ARGUMENT\", \"text\": \"add: -5 at requests/acme: requests is a "
		"counter, " ONLY_GROWS "\"}}\n",
		"rationctl: add: -5 at requests/acme: requests is a counter, " ONLY_GROWS "\n");
	fake.refused = "requests/acme";
	assert_run(
		RUN("add", "requests/acme", "5"), 5, "",
		"rationctl: not counted: requests/acme 5: the daemon answered RESOURCE_EXHAUSTED: the metric has all the counters "
		"it may have\n");
}

/* What is added together would hide it: 7 and -1 make 6. */
static void add_reports_lines_that_take_off_a_counter(void **state)
{
	struct ration_metric gauge = RATION_METRIC_INIT;
	unsigned asked = 0;

	(void)state;
	gauge.kind = RATION_GAUGE;
	assert_int_equal(ration_metric_set(NULL, "jobs", &gauge, 1), 0);
	fake_count("requests", 1);
	asked = fake.n_asked;
	assert_run(
		RUN_INPUT(
			"requests/zed 7\njobs/a 3\nrequests/zed -1\njobs/a -2\nrequests -1\nnone/x -1\njobs/b -1\n",
			"add", "-"),
		2, "",
		"rationctl: line 3: -1 at requests/zed: requests is a counter, " ONLY_GROWS "\n"
		"rationctl: line 5: -1 at requests: requests is a counter, " ONLY_GROWS "\n"
		"rationctl: line 6: -1 at none/x: none is a counter, which only grows; declare it a gauge before it is "
		"counted (rationctl metric set none --kind gauge), or add N of 0 and above\n");
	assert_int_equal(fake_own("requests/zed"), 7);
	assert_int_equal(fake_own("jobs/a"), 1);
	assert_int_equal(fake_own("jobs/b"), -1);
	/* Once for each metric, between the question whether the daemon is there and the fold at the end. */
	assert_int_equal(fake.n_asked - asked, 1 + 3 + 1);
	/* The daemon goes away: no line is taken on trust. */
	fake.away_from = fake.n_asked + 2;
	fake.away_until = fake.away_from + 1;
	fake.text = "no answer";
	assert_int_equal(RUN_INPUT("requests/zed 7\nrequests/zed -1\n", "add", "-")->status, 4);
	assert_int_equal(fake_own("requests/zed"), 14);
}

static void add_says_what_is_wrong(void **state)
{
	(void)state;
	assert_run(RUN("add"), 2, "",
		   "rationctl: add: an argument is missing; rationctl add PATH [N] is right\n");
	assert_run(
		RUN("add", "a", "1", "2"), 2, "",
		"rationctl: add: '2' is one argument too many; rationctl add PATH [N] is right\n");
	assert_run(RUN("add", "a", "1.5"), 2, "",
		   "rationctl: add: N '1.5': not a whole number; give one like 12, -3, 4k or 2Mi\n");
	assert_run(
		RUN("add", "a", "9223372036854775808"), 2, "",
		"rationctl: add: N '9223372036854775808': beyond 64 bits; -9223372036854775808 .. 9223372036854775807 is the "
		"range\n");
	assert_run(RUN("add", "a//b"), 2, "",
		   "rationctl: \"a//b\" is not a path: an empty segment\n");
	assert_run(RUN("add", "a\033[2J"), 2, "",
		   "rationctl: \"a\\x1b[2J\" is not a path: an empty segment\n");
	assert_run(RUN("add", "-", "5"), 2, "",
		   "rationctl: add: '-' takes no N; each line has its own\n");
}

static void add_without_a_daemon(void **state)
{
	(void)state;
	fake.result = -ENOTCONN;
	fake.text = "connection refused";
	assert_run(
		RUN("add", "a"), 4, "",
		"rationctl: no daemon at unix:/run/rationd/rationd.sock: connection refused; is rationd running? --socket URL says where\n");
	assert_run(
		RUN_INPUT("a 5\n", "add", "-"), 4, "",
		"rationctl: no daemon at unix:/run/rationd/rationd.sock: connection refused; is rationd running? --socket URL says where\n");
	fake.text = "Permission denied";
	assert_run(
		RUN("add", "a"), 4, "",
		"rationctl: no way to unix:/run/rationd/rationd.sock: Permission denied; its owner and the members of its group may open it\n");
	/* A path that is none is wrong with or without a daemon. */
	assert_run(RUN("add", "a//b"), 2, "",
		   "rationctl: \"a//b\" is not a path: an empty segment\n");
}

static void a_daemon_that_refuses(void **state)
{
	(void)state;
	fake.result = -ENOTCONN;
	fake.text =
		"not connected to the daemon at unix:/x: the daemon refuses: RESOURCE_EXHAUSTED: too many sessions";
	assert_run(RUN("get", "a"), 4, "",
		   "rationctl: no connection to the daemon at unix:/run/rationd/rationd.sock: "
		   "the daemon refuses: RESOURCE_EXHAUSTED: too many sessions\n");
}

static void add_is_not_confirmed(void **state)
{
	(void)state;
	fake.flush_result = -ETIMEDOUT;
	assert_run(
		RUN("--timeout", "1500ms", "add", "a", "7"), 4, "",
		"rationctl: the daemon at unix:/run/rationd/rationd.sock did not answer within 1s 500ms; --timeout allows more\n"
		"rationctl: 7 of what was added (in magnitude) is not confirmed by the daemon at "
		"unix:/run/rationd/rationd.sock, and may be missing\n");
	assert_int_equal(fake.timeout_ms, 1500);
}

static void add_reads_lines(void **state)
{
	(void)state;
	assert_run(RUN_INPUT("# comment\n\nrequests/acme 5\nrequests/acme\na b 3\n", "add", "-"), 0,
		   "", "");
	assert_int_equal(fake_own("requests/acme"), 6);
	assert_int_equal(fake_own("a b"), 3);
	/* No newline at the end. */
	assert_run(RUN_INPUT("requests/acme 5", "--json", "add", "-"), 0,
		   "{\"lines\": 1, \"added\": 1, \"bad\": 0, \"bad_lines\": [], \"losses\": []}\n",
		   "");
	assert_int_equal(fake_own("requests/acme"), 11);
	assert_run(RUN_INPUT("", "add", "-"), 0, "", "");
}

static void add_reports_bad_lines_and_goes_on(void **state)
{
	const char *errors =
		"rationctl: line 2: N 'x5': not a number; give one like 12, -3, 4k or 2Mi (a line is PATH N, or PATH if no "
		"blank is in it)\n"
		"rationctl: line 3: \"a//b\" is not a path: an empty segment\n";

	(void)state;
	assert_run(RUN_INPUT("good 1\nrequests/acme x5\na//b 1\ngood 2\n", "add", "-"), 2, "",
		   errors);
	assert_int_equal(fake_own("good"), 3);
	assert_run(
		RUN_INPUT("good 1\nrequests/acme x5\na//b 1\ngood 2\n", "--json", "add", "-"), 2,
		"{\"lines\": 4, \"added\": 2, \"bad\": 2, \"bad_lines\": ["
		"{\"line\": 2, \"text\": \"N 'x5': not a number; give one like 12, -3, 4k or 2Mi (a line is PATH N, or PATH if no "
		"blank is in it)\"}, "
		"{\"line\": 3, \"text\": \"\\\"a//b\\\" is not a path: an empty segment\"}], \"losses\": [], "
		"\"error\": {\"status\": 2, \"code\": \"INVALID_ARGUMENT\", \"text\": \"line 2: N 'x5': not a number; give one "
		"like 12, -3, 4k or 2Mi (a line is PATH N, or PATH if no blank is in it)\"}}\n",
		errors);
	assert_int_equal(fake_own("good"), 6);
}

static void add_reports_losses(void **state)
{
	(void)state;
	fake.refused = "full/one";
	assert_run(
		RUN_INPUT("full/one 4\nfine 1\nbad x\n", "add", "-"), 5, "",
		"rationctl: line 3: N 'x': not a number; give one like 12, -3, 4k or 2Mi (a line is PATH N, or PATH if no blank is "
		"in it)\n"
		"rationctl: not counted: full/one 4: the daemon answered RESOURCE_EXHAUSTED: the metric has all the counters it "
		"may have\n");
	assert_int_equal(fake_own("fine"), 1);
}

static void add_opens_another_client_where_one_is_full(void **state)
{
	(void)state;
	fake.max_counters = 2;
	assert_run(RUN_INPUT("a 1\nb 2\nc 3\nw 4\na 5\ne 6\n", "add", "-"), 0, "", "");
	assert_int_equal(fake_own("a"), 6);
	assert_int_equal(fake_own("b"), 2);
	assert_int_equal(fake_own("c"), 3);
	assert_int_equal(fake_own("w"), 4);
	assert_int_equal(fake_own("e"), 6);
	assert_int_equal(fake.n_opened, 3);
}

static void add_shows_progress_on_a_terminal(void **state)
{
	(void)state;
	assert_run(
		RUN_TERMINAL("a 1\nb x\n", "add", "-"), 2, "",
		"\r0 lines, 0 wrong\033[K\r\033[K"
		"rationctl: line 2: N 'x': not a number; give one like 12, -3, 4k or 2Mi (a line is PATH N, or PATH if no blank is "
		"in it)\n"
		"2 lines: 1 added, 1 wrong\n");
}

static void add_ends_at_a_signal(void **state)
{
	struct cli cli = { 0 };
	char *argv[] = { (char[]){ "rationctl" }, (char[]){ "add" }, (char[]){ "-" }, NULL };
	int ends[2];
	sigset_t set;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "a 1\nb 2\nhalf", 12), 12);
	/* Pending from the beginning: it is seen before the input is. */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	assert_int_equal(raise(SIGTERM), 0);
	cli = (struct cli){ .in = ends[0], .out = stdout, .err = stderr };
	assert_int_equal(cli_run(&cli, 3, argv), 0);
	assert_int_equal(cli.signal, SIGTERM);
	assert_int_equal(fake_own("a"), 0);
	assert_int_equal(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
	assert_int_equal(close(ends[0]), 0);
	assert_int_equal(close(ends[1]), 0);
}

static void add_can_not_read(void **state)
{
	struct cli cli = { 0 };
	char *argv[] = { (char[]){ "rationctl" }, (char[]){ "add" }, (char[]){ "-" }, NULL };
	char *err = NULL;
	size_t err_len = 0;

	(void)state;
	cli = (struct cli){ /* none */ .in = 1 << 20,
			    .out = stdout,
			    .err = open_memstream(&err, &err_len) };
	assert_int_equal(cli_run(&cli, 3, argv), 6);
	assert_int_equal(fclose(cli.err), 0);
	assert_string_equal(
		err,
		"rationctl: standard input, after line 0: it can't be read: Bad file descriptor\n");
	free(err);
}

/* ---- get ---- */

static void get_prints_totals(void **state)
{
	(void)state;
	fake_some_counts();
	assert_run(RUN("get", "requests"), 0, "1043  requests\n", "");
	assert_int_equal(fake.consistency, RATION_FRESH);
	assert_run(RUN("get", "--exact", "requests", "errors", "requests/acme"), 0,
		   "1043  requests\n"
		   "   7  errors\n"
		   "  43  requests/acme\n",
		   "");
	assert_int_equal(fake.consistency, RATION_EXACT);
	assert_run(RUN("get", "errors", "--cached"), 0, "7  errors\n", "");
	assert_int_equal(fake.consistency, RATION_CACHED);
}

static void get_prints_json(void **state)
{
	(void)state;
	fake_some_counts();
	fake.view = (struct ration_view){ 128, 12 };
	fake_count("large", INT64_C(9007199254740992));
	fake_count("larger", INT64_MIN);
	assert_run(
		RUN("--json", "get", "requests/acme", "large", "larger"), 0,
		"{\"values\": ["
		"{\"path\": \"requests/acme\", \"kind\": \"counter\", \"leaf\": false, \"own\": 1, \"total\": 43}, "
		"{\"path\": \"large\", \"kind\": \"counter\", \"leaf\": true, \"own\": 9007199254740992, \"total\": "
		"9007199254740992}, "
		"{\"path\": \"larger\", \"kind\": \"counter\", \"leaf\": true, \"own\": \"-9223372036854775808\", \"total\": "
		"\"-9223372036854775808\"}], "
		"\"error_bound\": 128, \"age_ms\": 12}\n",
		"");
}

static void get_says_how_far_it_is_off_to_people(void **state)
{
	(void)state;
	fake_some_counts();
	fake.view = (struct ration_view){ 128, 12 };
	assert_run(RUN_TERMINAL(NULL, "get", "errors"), 0, "7  errors\n",
		   "(each total may be 128 behind; --exact waits for all)\n");
	assert_run(RUN("get", "errors"), 0, "7  errors\n", "");
}

static void get_of_what_is_not_there(void **state)
{
	(void)state;
	fake_some_counts();
	assert_run(RUN("get", "nothing", "errors"), 3, "7  errors\n",
		   "rationctl: no such path: nothing\n");
	assert_run(
		RUN("get", "a//b", "nothing"), 2, "",
		"rationctl: 'a//b' is not a path; segments of 1 to 128 bytes joined by '/' are, at most 16 of them and 512 bytes, like "
		"requests/acme/web\n"
		"rationctl: no such path: nothing\n");
	assert_run(
		RUN("--json", "get", "nothing", "errors"), 3,
		"{\"values\": [{\"path\": \"nothing\", \"code\": \"NOT_FOUND\"}, "
		"{\"path\": \"errors\", \"kind\": \"counter\", \"leaf\": true, \"own\": 7, \"total\": 7}], "
		"\"error_bound\": 0, \"age_ms\": 0, "
		"\"error\": {\"status\": 3, \"code\": \"NOT_FOUND\", \"text\": \"no such path: nothing\"}}\n",
		"rationctl: no such path: nothing\n");
	assert_run(
		RUN("--json", "get", "\xff"), 2,
		"{\"values\": [{\"path\": \"\\\\xff\", \"code\": \"INVALID_ARGUMENT\"}], \"error_bound\": 0, \"age_ms\": 0, "
		"\"error\": {\"status\": 2, \"code\": \"INVALID_ARGUMENT\", \"text\": \"'\\\\xff' is not a path; segments of 1 to 128 "
		"bytes joined by '/' are, at most 16 of them and 512 bytes, like requests/acme/web\"}}\n",
		"rationctl: '\\xff' is not a path; segments of 1 to 128 bytes joined by '/' are, at most 16 of them and 512 bytes, like "
		"requests/acme/web\n");
}

/* ---- tree ---- */

static void tree_prints_all(void **state)
{
	(void)state;
	fake_some_counts();
	assert_run(RUN("tree"), 0,
		   "total   own  path\n"
		   "    7     7  errors\n"
		   " 1043     0  requests\n"
		   "   43     1    acme\n"
		   "   30    30      mail\n"
		   "   12    12      web\n"
		   " 1000  1000    umbrella\n",
		   "");
	assert_int_equal(fake.depth, UINT32_MAX);
}

static void tree_draws_on_a_terminal(void **state)
{
	(void)state;
	fake_some_counts();
	assert_run(RUN_TERMINAL(NULL, "tree", "--sort", "total"), 0,
		   "total   own  path\n"
		   " 1043     0  requests\n"
		   " 1000  1000  ├── umbrella\n"
		   "   43     1  └── acme\n"
		   "   30    30      ├── mail\n"
		   "   12    12      └── web\n"
		   "    7     7  errors\n",
		   "");
	fake_count("requests/acme/web/old/er", 5);
	assert_run(RUN_TERMINAL(NULL, "tree", "requests"), 0,
		   "total   own  path\n"
		   " 1048     0  requests\n"
		   "   48     1  ├── acme\n"
		   "   30    30  │   ├── mail\n"
		   "   17    12  │   └── web\n"
		   "    5     0  │       └── old\n"
		   "    5     5  │           └── er\n"
		   " 1000  1000  └── umbrella\n",
		   "");
}

static void tree_prints_a_part(void **state)
{
	(void)state;
	fake_some_counts();
	assert_run(RUN("tree", "requests/acme", "--depth", "0"), 0,
		   "total  own  path\n"
		   "   43    1  requests/acme\n",
		   "");
	assert_run(RUN("tree", "--depth=1", "--exact"), 0,
		   "total  own  path\n"
		   "    7    7  errors\n"
		   " 1043    0  requests\n",
		   "");
	assert_int_equal(fake.consistency, RATION_EXACT);
	assert_run(RUN("tree", "nothing"), 3, "", "rationctl: no such path: nothing\n");
	assert_run(RUN("tree", "--depth", "-1"), 2, "",
		   "rationctl: tree: --depth '-1': out of range; 0 .. 4294967294 is right\n");
	assert_run(RUN("tree", "--sort", "size"), 2, "",
		   "rationctl: tree: --sort 'size': not a choice; one of name|total is\n");
}

static void tree_of_nothing(void **state)
{
	(void)state;
	assert_run(RUN("tree"), 0, "", "");
	assert_run(RUN_TERMINAL(NULL, "tree"), 0, "", "(nothing has been counted yet)\n");
	assert_run(RUN("--json", "tree"), 0,
		   "{\"path\": \"\", \"nodes\": [], \"error_bound\": 0, \"age_ms\": 0}\n", "");
}

static void tree_prints_json(void **state)
{
	(void)state;
	fake_count("jobs/a b", 5);
	assert_run(
		RUN("--json", "tree"), 0,
		"{\"path\": \"\", \"nodes\": ["
		"{\"path\": \"jobs\", \"depth\": 1, \"kind\": \"counter\", \"leaf\": false, \"own\": 0, \"total\": 5}, "
		"{\"path\": \"jobs/a b\", \"depth\": 2, \"kind\": \"counter\", \"leaf\": true, \"own\": 5, \"total\": 5}], "
		"\"error_bound\": 0, \"age_ms\": 0}\n",
		"");
}

/* ---- flush, status, metric, version ---- */

static void flush_folds(void **state)
{
	(void)state;
	assert_run(RUN("flush"), 0, "", "");
	assert_run(RUN("flush", "--json"), 0, "{\"flushed\": true}\n", "");
	assert_int_equal(fake.n_folded, 2);
}

static void status_prints_all(void **state)
{
	(void)state;
	assert_run(RUN("status"), 0,
		   "version              0.1.0  the daemon's version\n"
		   "counters             12345  counters there are\n"
		   "adds      9007199254740993  increments received\n",
		   "");
	assert_run(
		RUN("--json", "status"), 0,
		"{\"status\": {\"version\": \"0.1.0\", \"counters\": 12345, \"adds\": \"9007199254740993\"}}\n",
		"");
}

static void reload_tells_what_was_found(void **state)
{
	static const struct ration_finding notes[] = { { false, "workers has changed" } };
	static const struct ration_finding errors[] = { { true, "a:1: not\nso" },
							{ true, "a:2: nor so" },
							{ false, "workers has changed" } };

	(void)state;
	assert_run(RUN("reload"), 0, "", "");
	assert_run(RUN("reload", "--json"), 0, "{\"reloaded\": true}\n", "");

	fake.findings = notes;
	fake.n_findings = 1;
	assert_run(RUN("reload"), 0, "", "rationctl: workers has changed\n");
	assert_run(RUN("reload", "--json"), 0,
		   "{\"reloaded\": true, \"notes\": [\"workers has changed\"]}\n",
		   "rationctl: workers has changed\n");

	fake.findings = errors;
	fake.n_findings = 3;
	assert_run(
		RUN("reload"), 5, "",
		"rationctl: a:1: not\\x0aso\nrationctl: a:2: nor so\nrationctl: workers has changed\n");
	assert_run(
		RUN("reload", "--json"), 5,
		"{\"reloaded\": false, \"notes\": [\"workers has changed\"], "
		"\"error\": {\"status\": 5, \"code\": \"INVALID_ARGUMENT\", \"text\": \"a:1: not\\\\x0aso\"}}\n",
		"rationctl: a:1: not\\x0aso\nrationctl: a:2: nor so\nrationctl: workers has changed\n");

	fake.n_findings = 0;
	fake.result = RATION_PERMISSION_DENIED;
	fake.text = "you may not";
	assert_run(RUN("reload"), 5, "",
		   "rationctl: the daemon answered PERMISSION_DENIED: you may not\n");
}

static void metric_is_set_and_shown(void **state)
{
	(void)state;
	assert_run(RUN("metric", "set", "requests", "--max-counters", "50k", "--overflow", "yes"),
		   0, "", "");
	assert_run(RUN("metric", "set", "jobs", "--kind=gauge", "--expire-after", "90m"), 0, "",
		   "");
	assert_run(RUN("metric", "show", "requests", "jobs"), 0,
		   "kind     max-counters  overflow  expire-after  metric\n"
		   "counter         50000  yes       never         requests\n"
		   "gauge             any  no        1h 30m        jobs\n",
		   "");
	/* What is not named stays. */
	assert_run(
		RUN("--json", "metric", "set", "jobs", "--max-counters", "7"), 0,
		"{\"metric\": {\"name\": \"jobs\", \"kind\": \"gauge\", \"max_counters\": 7, \"overflow\": false, "
		"\"expire_after_ms\": 5400000}}\n",
		"");
	assert_run(
		RUN("--json", "metric", "show", "requests"), 0,
		"{\"metrics\": [{\"name\": \"requests\", \"kind\": \"counter\", \"max_counters\": 50000, \"overflow\": true, "
		"\"expire_after_ms\": 0}]}\n",
		"");
	fake_count("requests/a", 1);
	fake_count("errors", 1);
	assert_run(RUN("metric", "show"), 0,
		   "kind     max-counters  overflow  expire-after  metric\n"
		   "counter           any  no        never         errors\n"
		   "counter         50000  yes       never         requests\n",
		   "");
}

static void metric_says_what_is_wrong(void **state)
{
	(void)state;
	assert_run(RUN("metric", "show", "nothing"), 3, "", "rationctl: no such metric: nothing\n");
	assert_run(
		RUN("metric", "set", "requests/acme"), 2, "",
		"rationctl: 'requests/acme' is not the name of a metric; the first segment of a path is, like requests\n");
	assert_run(
		RUN("metric", "show", "/x"), 2, "",
		"rationctl: '/x' is not the name of a metric; the first segment of a path is, like requests\n");
	assert_run(
		RUN("metric", "set", "a", "--max-counters", "4294967296"), 2, "",
		"rationctl: metric set: --max-counters '4294967296': out of range; 0 .. 4294967295 is right\n");
	assert_run(
		RUN("metric", "set", "a", "--expire-after", "5"), 2, "",
		"rationctl: metric set: --expire-after '5': not a duration's unit; ms s m h d are, as in 500ms or 10s\n");
}

static void version(void **state)
{
	(void)state;
	assert_run(RUN("version"), 0, "rationctl 0.1.0\nlibration 0.1.0\n", "");
	assert_run(RUN("--version"), 0, "rationctl 0.1.0\nlibration 0.1.0\n", "");
	assert_run(RUN("--json", "version"), 0,
		   "{\"rationctl\": \"0.1.0\", \"libration\": \"0.1.0\"}\n", "");
}

/* ---- help, wrong usage, failures ---- */

static void help_is_printed(void **state)
{
	char *help = NULL;

	(void)state;
	assert_int_equal(RUN("--help")->status, 0);
	help = strdup(RUN("help")->out);
	assert_non_null(strstr(
		help,
		"\n  add PATH [N]           count N, or 1, at PATH; 'add -' reads lines of PATH N\n"));
	assert_non_null(strstr(help, "\n  metric set NAME        declare a metric, or change it\n"));
	assert_non_null(strstr(help, "\n  4  no daemon, or it did not answer in time\n"));
	assert_run(RUN("-h"), 0, help, "");
	free(help);
	assert_run(
		RUN("flush", "--help"), 0,
		"rationctl flush: have the daemon fold all that its workers hold back\n"
		"\n"
		"usage: rationctl [options] flush\n"
		"\n"
		"When it returns, every total includes all that the daemon had received. Totals\n"
		"do so within the daemon's flush interval anyway, and 'get --exact' asks for it\n"
		"by itself. With --durable it returns when all of that is in the daemon's state\n"
		"file too, with limits and metrics that were set: the exit status is 5 if the\n"
		"daemon has none, or can't write it.\n"
		"\n"
		"options:\n"
		"  --durable              return when it is in the daemon's state file, too\n"
		"  --socket URL           where the daemon is: unix:PATH or tcp:HOST:PORT; else\n"
		"                         $RATIOND_SOCKET, else unix:/run/rationd/rationd.sock\n"
		"  --json                 print one JSON object, errors included\n"
		"  --timeout D            how long to wait for the daemon, like 500ms or 1m; else\n"
		"                         10s\n"
		"  --help                 print help and exit\n",
		"");
	help = strdup(RUN("metric", "set", "--help")->out);
	assert_run(RUN("help", "metric", "set"), 0, help, "");
	free(help);
	help = strdup(RUN("metric", "--help")->out);
	assert_string_equal(help, "rationctl metric has these commands:\n"
				  "  metric show [NAME...]  print what metrics are declared to be\n"
				  "  metric set NAME        declare a metric, or change it\n");
	assert_run(RUN("help", "metric"), 0, help, "");
	free(help);
	/* No line is too long for a terminal. */
	for (const char *line = RUN("help", "add")->out; *line != '\0';
	     line += strcspn(line, "\n") + 1) {
		assert_in_range(strcspn(line, "\n"), 0, 80);
	}
}

static void unknown_words(void **state)
{
	(void)state;
	assert_run(RUN("stauts"), 2, "",
		   "rationctl: unknown command 'stauts'; did you mean 'status'?\n");
	assert_run(
		RUN("list"), 2, "",
		"rationctl: unknown command 'list'; one of add, get, tree, charge, uncharge, run, quota, flush, status, reload, metric, export, import, reset, version, help is right\n");
	assert_run(RUN("metric"), 2, "",
		   "rationctl: metric: a word is missing after it; one of show, set is right\n");
	assert_run(RUN("metric", "sho"), 2, "",
		   "rationctl: unknown command 'metric sho'; did you mean 'metric show'?\n");
	assert_run(RUN("help", "gte"), 2, "",
		   "rationctl: unknown command 'gte'; did you mean 'get'?\n");
	assert_run(RUN("get", "--exat", "a"), 2, "",
		   "rationctl: get: unknown option --exat; did you mean --exact?\n");
	assert_run(
		RUN("flush", "--exact"), 2, "",
		"rationctl: flush: unknown option --exact; 'rationctl flush --help' lists the options\n");
	assert_run(RUN("--jsno", "get", "a"), 2, "",
		   "rationctl: unknown option --jsno; did you mean --json?\n");
	assert_run(RUN("get", "-x"), 2, "",
		   "rationctl: get: unknown option -x; 'rationctl get --help' lists the options\n");
	assert_run(RUN("get", "--exact=yes", "a"), 2, "",
		   "rationctl: get: a value was given in --exact=yes; this option takes none\n");
	assert_run(RUN("tree", "--depth"), 2, "",
		   "rationctl: tree: a value is missing after --depth; --depth N is right\n");
	assert_run(
		RUN("get", "--exact", "--cached", "a"), 2, "",
		"rationctl: get: an option contradicts another: --cached; it does not go with --exact\n");
	assert_run(RUN("--timeout", "0", "flush"), 2, "",
		   "rationctl: --timeout '0': out of range; 1ms .. 24d is right\n");
	assert_run(RUN("flush", "extra"), 2, "",
		   "rationctl: flush: 'extra' is one argument too many; rationctl flush is right\n");
	assert_run(
		RUN("--json", "stauts"), 2,
		"{\"error\": {\"status\": 2, \"code\": \"INVALID_ARGUMENT\", \"text\": \"unknown command 'stauts'; did you mean "
		"'status'?\"}}\n",
		"rationctl: unknown command 'stauts'; did you mean 'status'?\n");
	assert_int_equal(run_words(NULL, (const char *const[]){ NULL })->status, 2);
	assert_int_equal(fake.n_opened, 0);
}

static void abbreviated_options(void **state)
{
	(void)state;
	fake_some_counts();
	assert_run(RUN("get", "--ex", "errors"), 0, "7  errors\n", "");
	assert_int_equal(fake.consistency, RATION_EXACT);
}

static void which_daemon(void **state)
{
	(void)state;
	assert_run(RUN("flush", "--socket", "tcp:localhost:4242"), 0, "", "");
	assert_string_equal(fake.url, "tcp:localhost:4242");
	assert_int_equal(setenv("RATIOND_SOCKET", "unix:/tmp/x.sock", 1), 0);
	assert_run(RUN("flush"), 0, "", "");
	assert_string_equal(fake.url, "unix:/tmp/x.sock");
	assert_run(RUN("--socket", "unix:/tmp/y.sock", "flush"), 0, "", "");
	assert_string_equal(fake.url, "unix:/tmp/y.sock");
	assert_run(
		RUN("--socket", "/tmp/y.sock", "flush"), 2, "",
		"rationctl: '/tmp/y.sock' is no place of a daemon; unix:PATH or tcp:HOST:PORT is right (--socket)\n");
	assert_int_equal(setenv("RATIOND_SOCKET", "http://x", 1), 0);
	assert_run(
		RUN("flush"), 2, "",
		"rationctl: 'http://x' is no place of a daemon; unix:PATH or tcp:HOST:PORT is right ($RATIOND_SOCKET)\n");
	assert_int_equal(unsetenv("RATIOND_SOCKET"), 0);
}

/* Each command, with each thing that a daemon can do wrong. */
static void every_failure(void **state)
{
	static const char *const commands[][5] = {
		{ "get", "a" },
		{ "tree" },
		{ "flush" },
		{ "status" },
		{ "metric", "show", "a" },
		{ "metric", "show" },
		{ "metric", "set", "a" },
		{ "add", "a", "1" },
	};
	static const struct {
		int result;
		int status;
		const char *err;
	} failures[] = {
		{ -ENOTCONN, 4,
		  "rationctl: no daemon at unix:/run/rationd/rationd.sock: why; is rationd running? --socket URL says where\n" },
		{ -ETIMEDOUT, 4,
		  "rationctl: the daemon at unix:/run/rationd/rationd.sock did not answer within 10s; --timeout allows more\n" },
		{ -ENOMEM, 6, "rationctl: why\n" },
	};

	(void)state;
	fake.text = "why";
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		for (size_t j = 0; j < sizeof(failures) / sizeof(failures[0]); j++) {
			fake.result = failures[j].result;
			assert_run(run_words(NULL, commands[i]), failures[j].status, "",
				   failures[j].err);
		}
		fake.result = RATION_INTERNAL;
		assert_int_equal(run_words(NULL, commands[i])->status, 5);
		assert_non_null(strstr(run_words(NULL, commands[i])->err,
				       "the daemon answered INTERNAL: why\n"));
	}
}

static void output_that_can_not_be_written(void **state)
{
	struct cli cli = { 0 };
	char *argv[] = { (char[]){ "rationctl" }, (char[]){ "get" }, (char[]){ "errors" }, NULL };
	char *err = NULL;
	size_t err_len = 0;

	(void)state;
	fake_some_counts();
	cli = (struct cli){ .out = fopen("/dev/full", "w"), .err = open_memstream(&err, &err_len) };
	assert_non_null(cli.out);
	assert_int_equal(cli_run(&cli, 3, argv), 6);
	(void)fclose(cli.out);
	assert_int_equal(fclose(cli.err), 0);
	assert_string_equal(err,
			    "rationctl: output could not be written: No space left on device\n");
	free(err);
}

static void a_reader_that_has_had_enough(void **state)
{
	struct cli cli = { 0 };
	char *argv[] = { (char[]){ "rationctl" }, (char[]){ "get" }, (char[]){ "errors" }, NULL };
	int ends[2];

	(void)state;
	fake_some_counts();
	assert_true(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(close(ends[0]), 0);
	cli = (struct cli){ .out = fdopen(ends[1], "w"), .err = stderr };
	assert_int_equal(cli_run(&cli, 3, argv), 0);
	(void)fclose(cli.out);
	assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, run_setup, run_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(add_counts),
		TEST(add_takes_negative_numbers),
		TEST(add_is_refused),
		TEST(add_reports_lines_that_take_off_a_counter),
		TEST(add_says_what_is_wrong),
		TEST(add_without_a_daemon),
		TEST(add_is_not_confirmed),
		TEST(a_daemon_that_refuses),
		TEST(add_reads_lines),
		TEST(add_reports_bad_lines_and_goes_on),
		TEST(add_reports_losses),
		TEST(add_opens_another_client_where_one_is_full),
		TEST(add_shows_progress_on_a_terminal),
		TEST(add_ends_at_a_signal),
		TEST(add_can_not_read),
		TEST(get_prints_totals),
		TEST(get_prints_json),
		TEST(get_says_how_far_it_is_off_to_people),
		TEST(get_of_what_is_not_there),
		TEST(tree_prints_all),
		TEST(tree_draws_on_a_terminal),
		TEST(tree_prints_a_part),
		TEST(tree_of_nothing),
		TEST(tree_prints_json),
		TEST(flush_folds),
		TEST(reload_tells_what_was_found),
		TEST(status_prints_all),
		TEST(metric_is_set_and_shown),
		TEST(metric_says_what_is_wrong),
		TEST(version),
		TEST(help_is_printed),
		TEST(unknown_words),
		TEST(abbreviated_options),
		TEST(which_daemon),
		TEST(every_failure),
		TEST(output_that_can_not_be_written),
		TEST(a_reader_that_has_had_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
