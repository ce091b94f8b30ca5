/*
 * export, import, reset, and what is to be durable, against a fake libration.
 */
#include "tests/support/test.h"

#include "clients/cli/record.h"
#include "tests/unit/cli/fake.h"
#include "tests/unit/cli/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- durable ---- */

static void add_and_flush_durably(void **state)
{
	(void)state;
	assert_run(RUN("add", "--durable", "requests/a", "5"), 0, "", "");
	assert_int_equal(fake.n_durable, 1);
	assert_int_equal(fake.n_folded, 0);
	assert_int_equal(fake_own("requests/a"), 5);
	assert_run(RUN_INPUT("requests/a 1\nrequests/b 2\n", "add", "-", "--durable"), 0, "", "");
	assert_int_equal(fake.n_durable, 2);
	assert_run(RUN("flush", "--durable"), 0, "", "");
	assert_run(RUN("--json", "flush", "--durable"), 0,
		   "{\"flushed\": true, \"durable\": true}\n", "");
	assert_int_equal(fake.n_durable, 4);
	assert_run(RUN("flush"), 0, "", "");
	assert_int_equal(fake.n_durable, 4);
	assert_int_equal(fake.n_folded, 1);
}

static void a_disk_that_fails(void **state)
{
	(void)state;
	fake.durable_result = RATION_UNAVAILABLE;
	fake.text = "no space left on device";
	assert_run(RUN("add", "--durable", "requests/a", "5"), 5, "",
		   "rationctl: the daemon answered UNAVAILABLE: no space left on device\n");
	/* It is counted all the same. */
	assert_int_equal(fake_own("requests/a"), 5);
	assert_run(RUN("flush", "--durable"), 5, "",
		   "rationctl: the daemon answered UNAVAILABLE: no space left on device\n");
}

/* ---- export ---- */

/* The same but for the first line, which has the time. */
static void assert_export(const char *expected, int status, const char *err)
{
	const struct run *run = RUN("export");
	const char *rest = strchr(run->out, '\n');

	assert_non_null(rest);
	assert_memory_equal(run->out, "{\"rationd_export\":1,\"time\":\"20", 30);
	assert_string_equal(rest + 1, expected);
	assert_string_equal(run->err, err);
	assert_int_equal(run->status, status);
}

static void some_of_all(void)
{
	struct ration_metric gauge = RATION_METRIC_INIT;
	struct ration_limits limits = RATION_LIMITS_INIT;

	gauge.kind = RATION_GAUGE;
	gauge.expire_after_ms = 60000;
	assert_int_equal(ration_metric_set(NULL, "jobs", &gauge, 1), 0);
	limits.has_max = true;
	limits.max = INT64_C(1) << 62;
	limits.window.kind = RATION_PER;
	limits.window.duration_ms = 60000;
	fake_rule("requests/*", &limits, "rationd.conf:3");
	limits.window = (struct ration_window){ .kind = RATION_CALENDAR, .unit = RATION_MONTH };
	limits.max = 0;
	limits.shadow = true;
	assert_int_equal(ration_quota_set(NULL, "requests/*", &limits, 1, NULL, NULL), 0);
	limits = (struct ration_limits)RATION_LIMITS_INIT;
	limits.window.kind = RATION_RATE;
	limits.rate = 10;
	limits.per_ms = 1000;
	limits.burst = 20;
	assert_int_equal(ration_quota_set(NULL, "jobs", &limits, 1, NULL, NULL), 0);
	fake_count("requests/acme/\"web\"", 12);
	fake_count("requests/acme", INT64_MAX - 12);
	fake_count("jobs/gr\303\274n", -5);
}

static const char lines_of_all[] =
	"{\"metric\":\"jobs\",\"kind\":\"gauge\",\"max_counters\":0,\"overflow\":false,\"expire_after_ms\":60000}\n"
	"{\"quota\":\"requests/*\",\"layer\":\"file\",\"window\":\"per 1m\",\"max\":\"4611686018427387904\",\"high\":null,\"low\":0,\"min\":0,"
	"\"shadow\":false,\"duration_ms\":60000}\n"
	"{\"quota\":\"requests/*\",\"layer\":\"run time\",\"window\":\"calendar month\",\"max\":0,\"high\":null,\"low\":0,\"min\":0,"
	"\"shadow\":true}\n"
	"{\"quota\":\"jobs\",\"layer\":\"run time\",\"window\":\"rate\",\"max\":null,\"high\":null,\"low\":0,\"min\":0,\"shadow\":false,"
	"\"rate\":10,\"per_ms\":1000,\"burst\":20}\n"
	"{\"counter\":\"requests\",\"own\":0}\n"
	"{\"counter\":\"requests/acme\",\"own\":\"9223372036854775795\"}\n"
	"{\"counter\":\"requests/acme/\\\"web\\\"\",\"own\":12}\n"
	"{\"counter\":\"jobs\",\"own\":0}\n"
	"{\"counter\":\"jobs/gr\303\274n\",\"own\":-5}\n"
	"{\"end\":10}\n";

static void export_prints_all(void **state)
{
	(void)state;
	assert_export("{\"end\":1}\n", 0, "");
	some_of_all();
	assert_export(lines_of_all, 0, "");
}

static void an_export_that_breaks_off_has_no_end(void **state)
{
	(void)state;
	fake_count("requests", 1);
	fake.away_from = 4;
	fake.away_until = 5;
	assert_export(
		"", 4,
		"rationctl: the daemon at unix:/run/rationd/rationd.sock did not answer within 10s; --timeout allows more\n");
	fake.n_asked = 0;
	assert_int_equal(RUN("--json", "export")->status, 4);
	fake.away_from = 0;
	fake.result = -ENOTCONN;
	fake.text = "no daemon at x: Connection refused";
	assert_run(
		RUN("export"), 4, "",
		"rationctl: no daemon at unix:/run/rationd/rationd.sock: Connection refused; is rationd running? --socket URL says where\n");
}

/* ---- import ---- */

#define HEAD "{\"rationd_export\":1}\n"

static void what_was_exported_is_imported(void **state)
{
	char *text = NULL;

	(void)state;
	some_of_all();
	text = strdup(RUN("export")->out);
	assert_non_null(text);
	fake_reset();
	assert_run(
		RUN_INPUT(text, "import", "--dry-run"), 0, "",
		"rationctl: note: 1 limits were those of a daemon's configuration, and are left to it\n");
	assert_int_equal(fake.n_opened, 0);
	assert_run(
		RUN_INPUT(text, "import", "--durable", "--json"), 0,
		"{\"counters\": 5, \"metrics\": 1, \"quotas\": 2, \"quotas_of_file\": 1, \"bad\": 0, \"bad_lines\": []}\n",
		"rationctl: note: 1 limits were those of a daemon's configuration, and are left to it\n");
	assert_int_equal(fake.n_durable, 1);
	assert_int_equal(fake_own("requests/acme"), INT64_MAX - 12);
	assert_int_equal(fake_own("requests/acme/\"web\""), 12);
	assert_int_equal(fake_own("jobs/gr\303\274n"), -5);
	assert_int_equal(fake.metrics[0].metric.kind, RATION_GAUGE);
	assert_int_equal(fake.metrics[0].metric.expire_after_ms, 60000);
	assert_int_equal(fake.n_rules, 2);
	assert_int_equal(fake.rules[0].rule.limits.window.unit, RATION_MONTH);
	assert_true(fake.rules[0].rule.limits.has_max);
	assert_true(fake.rules[0].rule.limits.shadow);
	assert_false(fake.rules[1].rule.limits.has_max);
	assert_int_equal(fake.rules[1].rule.limits.burst, 20);
	free(text);
}

static void wrong_lines_are_told_and_the_others_count(void **state)
{
	(void)state;
	assert_run(
		RUN_INPUT(HEAD "nonsense\n"
			       "[1]\n"
			       "\n"
			       "{\"counter\":\"requests/a\",\"own\":5}\n"
			       "{\"counter\":\"requests/b\"}\n"
			       "{\"counter\":\"requests/b\",\"own\":1.5}\n"
			       "{\"counter\":\"\",\"own\":1}\n"
			       "{\"counter\":\"requests/c\",\"own\":\"12k\"}\n"
			       "{\"counter\":\"requests//c\",\"own\":1}\n"
			       "{\"counter\":\"requests/c\",\"own\":-1}\n"
			       "{\"metric\":\"jobs\",\"kind\":\"meter\"}\n"
			       "{\"quota\":\"jobs\"}\n"
			       "{\"quota\":\"jobs\",\"layer\":\"run time\",\"window\":\"per 1m\"}\n"
			       "{\"quota\":\"jobs\",\"layer\":\"run time\",\"max\":-1}\n"
			       "{\"rationd_export\":1}\n"
			       "{\"other\":1}\n"
			       "{\"counter\":\"requests/d\",\"own\":\"7\",\"more\":1}\n"
			       "{\"end\":17}\n",
			  "import"),
		5, "",
		"rationctl: line 2: not JSON: '[' or '{' expected near 'nonsense'\n"
		"rationctl: line 3: not a JSON object\n"
		"rationctl: line 6: own must be a whole number\n"
		"rationctl: line 7: own must be a whole number\n"
		"rationctl: line 8: counter must be a string that is not empty\n"
		"rationctl: line 9: own must be a whole number\n"
		"rationctl: line 12: its kind must be \"counter\" or \"gauge\"\n"
		"rationctl: line 13: its layer must be \"file\" or \"run time\"\n"
		"rationctl: line 14: its window must be null, \"rate\", \"calendar day\" (or week, month), or \"per D\" with a duration_ms\n"
		"rationctl: line 15: its limits must be numbers from 0 on, shadow true or false\n"
		"rationctl: line 16: the first line of an export, where one is under way\n"
		"rationctl: line 17: not a line of an export: an object with \"counter\", \"metric\" or \"quota\" is\n"
		"rationctl: line 10: requests//c: the daemon answered INVALID_ARGUMENT: not a path\n"
		"rationctl: line 11: requests/c: the daemon answered INVALID_ARGUMENT\n");
	assert_int_equal(fake_own("requests/a"), 5);
	assert_int_equal(fake_own("requests/d"), 7);
}

static void a_file_that_is_not_whole(void **state)
{
	(void)state;
	assert_run(
		RUN_INPUT(HEAD "{\"counter\":\"requests/a\",\"own\":5}\n", "import"), 2, "",
		"rationctl: after line 2: the last line of the export is missing, so it is not whole; all that is there was imported\n");
	assert_int_equal(fake_own("requests/a"), 5);
	assert_run(RUN_INPUT(HEAD "{\"end\":2}\n", "import", "--dry-run"), 2, "",
		   "rationctl: line 2: 2 lines were to be before this one, and 1 are\n");
	assert_run(RUN_INPUT(HEAD "{\"end\":1}\n{\"counter\":\"a\",\"own\":5}\n", "import"), 2, "",
		   "rationctl: line 3: it is behind the last line of the export\n");
}

static void what_is_no_export_is_not_imported(void **state)
{
	(void)state;
	assert_run(
		RUN_INPUT("requests/a 5\n", "import"), 2, "",
		"rationctl: line 1: this is no export of rationctl; its first line is {\"rationd_export\":1,...}\n");
	assert_run(
		RUN_INPUT("\n{\"counter\":\"a\",\"own\":5}\n" HEAD, "import"), 2, "",
		"rationctl: line 2: this is no export of rationctl; its first line is {\"rationd_export\":1,...}\n");
	assert_run(RUN_INPUT("{\"rationd_export\":2}\n{\"counter\":\"a\",\"own\":5}\n", "import"),
		   2, "",
		   "rationctl: line 1: an export of version 2; this rationctl reads version 1\n");
	assert_run(
		RUN_INPUT("", "import"), 2, "",
		"rationctl: after line 0: the last line of the export is missing, so it is not whole; all that is there was imported\n");
	assert_int_equal(fake.n_imports, 0);
	assert_int_equal(fake_own("a"), 0);
	assert_run(RUN("import", "/nowhere/at/all"), 6, "",
		   "rationctl: /nowhere/at/all: No such file or directory\n");
}

static void who_may_not_import_is_told_once(void **state)
{
	(void)state;
	fake.result = RATION_PERMISSION_DENIED;
	fake.text = "only root may";
	assert_run(
		RUN_INPUT(
			HEAD
			"{\"metric\":\"a\",\"kind\":\"gauge\"}\n{\"metric\":\"b\",\"kind\":\"gauge\"}\n{\"end\":3}\n",
			"import"),
		5, "", "rationctl: the daemon answered PERMISSION_DENIED: only root may\n");
	assert_run(RUN_INPUT(HEAD "{\"counter\":\"a\",\"own\":5}\n{\"end\":2}\n", "import"), 5, "",
		   "rationctl: the daemon answered PERMISSION_DENIED: only root may\n");
}

/* ---- reset ---- */

static void reset_wants_to_be_meant(void **state)
{
	(void)state;
	fake_count("requests/acme/web", 12);
	fake_count("requests/other", 5);
	assert_run(
		RUN("reset", "requests/acme"), 2, "",
		"rationctl: reset: there is no terminal to ask on whether it is meant; --yes says that it is\n");
	assert_run(RUN_TERMINAL("n\n", "reset", "requests/acme"), 2, "",
		   "reset requests/acme and all below it, 12 in total, to 0? [y/N] "
		   "rationctl: reset: not confirmed, and nothing was changed\n");
	assert_run(RUN_TERMINAL("", "reset", "requests/acme"), 2, "",
		   "reset requests/acme and all below it, 12 in total, to 0? [y/N] "
		   "rationctl: reset: not confirmed, and nothing was changed\n");
	assert_int_equal(fake_own("requests/acme/web"), 12);
	assert_run(
		RUN_TERMINAL("yes\n", "reset", "requests/acme"), 0, "",
		"reset requests/acme and all below it, 12 in total, to 0? [y/N] 2 counters are at 0\n");
	assert_int_equal(fake_own("requests/acme/web"), 0);
	assert_int_equal(fake_own("requests/other"), 5);
	assert_run(RUN("reset", "--yes", "requests"), 0, "", "");
	assert_int_equal(fake_own("requests/other"), 0);
	fake_count("requests/other", 5);
	assert_run(RUN("--json", "reset", "--yes", "requests"), 0,
		   "{\"counters\": 4, \"was\": 5}\n", "");
	assert_run(RUN("reset", "--yes", "nothing"), 3, "", "rationctl: no such path: nothing\n");
}

/* ---- lines ---- */

static void numbers_of_every_form(void **state)
{
	static const struct {
		const char *own;
		bool good;
		int64_t number;
	} cases[] = {
		{ "0", true, 0 },
		{ "-1", true, -1 },
		{ "9223372036854775807", true, INT64_MAX },
		{ "9223372036854775808", false, 0 },
		{ "\"9223372036854775807\"", true, INT64_MAX },
		{ "\"-9223372036854775808\"", true, INT64_MIN },
		{ "\"9223372036854775808\"", false, 0 },
		{ "\"\"", false, 0 },
		{ "\" 1\"", false, 0 },
		{ "\"+1\"", false, 0 },
		{ "\"-\"", false, 0 },
		{ "\"0x10\"", false, 0 },
		{ "1e3", false, 0 },
		{ "null", false, 0 },
		{ "true", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[100], why[RECORD_WHY_BYTES];
		struct record record;
		bool good;

		(void)snprintf(text, sizeof(text), "{\"counter\":\"a\",\"own\":%s}", cases[i].own);
		good = record_parse(text, strlen(text), &record, why);
		assert_int_equal(good, cases[i].good);
		if (good) {
			assert_int_equal(record.number, cases[i].number);
			record_deinit(&record);
		}
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, run_setup, run_teardown)
	const struct CMUnitTest tests[] = {
		TEST(add_and_flush_durably),
		TEST(a_disk_that_fails),
		TEST(export_prints_all),
		TEST(an_export_that_breaks_off_has_no_end),
		TEST(what_was_exported_is_imported),
		TEST(wrong_lines_are_told_and_the_others_count),
		TEST(a_file_that_is_not_whole),
		TEST(what_is_no_export_is_not_imported),
		TEST(who_may_not_import_is_told_once),
		TEST(reset_wants_to_be_meant),
		TEST(numbers_of_every_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
