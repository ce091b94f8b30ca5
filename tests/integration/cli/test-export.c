/*
 * What is exported from a real daemon and imported into another one is the same there; reset.
 */
#include "tests/integration/cli/shell.h"
#include "tests/support/test.h"

static void an_export_is_the_same_after_import(void **state)
{
	(void)state;
	shell("rationctl metric set jobs --kind gauge --expire-after 1d && rationctl metric set few --max-counters 10 &&"
	      "rationctl add jobs/a -5 && rationctl add requests/acme/web 7 && rationctl add requests/acme 3 &&"
	      "rationctl add big/one 9223372036854775807 && rationctl add 'requests/with \"quotes\" and gr\303\274n' 1 &&"
	      "rationctl quota set jobs --max 64 --high 48 && rationctl quota set 'requests/*' --rate 10/s --burst 20 &&"
	      "rationctl quota set requests --max 9007199254740993 --calendar month --shadow",
	      0, "");
	shell("rationctl export >$D/one && grep -c . $D/one && head -c 20 $D/one && tail -n 1 $D/one",
	      0, "17\n{\"rationd_export\":1,{\"end\":16}\n");
	/* Somebody changes it meanwhile. */
	shell("rationctl add jobs/a 100 && rationctl add requests/acme/web 100 && rationctl quota remove jobs && "
	      "rationctl quota set 'requests/*' --rate 1/s --burst 1",
	      0, "");
	shell("rationctl import --dry-run $D/one && rationctl get jobs/a", 0, "95  jobs/a\n");
	shell("rationctl import $D/one && rationctl get jobs requests/acme big && rationctl quota show",
	      0,
	      "                 -5  jobs\n"
	      "                 10  requests/acme\n"
	      "9223372036854775807  big\n"
	      "             max  high  low  min  window                  from      rule\n"
	      "              64    48    -    -  -                       run time  jobs\n"
	      "9007199254740993     -    -    -  calendar month, shadow  run time  requests\n"
	      "              20     -    -    -  rate 10/1s              run time  requests/*\n");
	shell("rationctl export >$D/two; sort $D/one | grep -v rationd_export >$D/a; sort $D/two | grep -v rationd_export | cmp - $D/a",
	      0, "");
}

static void a_hundred_thousand_counters(void **state)
{
	(void)state;
	shell("seq 1 100000 | awk '{ print \"load/\" $1 % 100 \"/\" $1, $1 }' | rationctl add - && rationctl export >$D/one &&"
	      "wc -l <$D/one && rationctl reset --yes load && rationctl get load",
	      0, "100104\n0  load\n");
	shell("rationctl import <$D/one && rationctl get load load/7/7", 0,
	      "5000050000  load\n         7  load/7/7\n");
	shell("head -n 1000 $D/one | rationctl import", 2,
	      "rationctl: after line 1000: the last line of the export is missing, so it is not whole; all that is there was imported\n");
}

static void what_the_daemon_refuses_is_told(void **state)
{
	(void)state;
	shell("rationctl add requests/a 1; printf '{\"rationd_export\":1}\\n{\"counter\":\"requests//b\",\"own\":1}\\n"
	      "{\"counter\":\"requests/b\",\"own\":-1}\\n{\"metric\":\"requests\",\"kind\":\"gauge\"}\\n"
	      "{\"counter\":\"requests/c\",\"own\":2}\\n{\"end\":5}\\n' | rationctl import; echo $?; rationctl get requests",
	      0,
	      "rationctl: line 2: requests//b: the daemon answered INVALID_ARGUMENT: a segment is empty; segments are joined by single slashes, with none "
	      "at either end\n"
	      "rationctl: line 3: requests/b: the daemon answered INVALID_ARGUMENT: a negative value of a counter that only grows; declare "
	      "the metric as a gauge\n"
	      "rationctl: line 4: requests: the daemon answered FAILED_PRECONDITION: the kind can't change while the metric has counters\n"
	      "5\n3  requests\n");
}

static void a_daemon_without_a_file_is_not_durable(void **state)
{
	(void)state;
	shell("rationctl add --durable requests/a 5 2>$D/err; echo $?; grep -o FAILED_PRECONDITION $D/err; rationctl get requests/a; "
	      "rationctl flush --durable >/dev/null 2>&1; echo $?",
	      0, "5\nFAILED_PRECONDITION\n5  requests/a\n5\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, shell_setup, shell_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_export_is_the_same_after_import),
		TEST(a_hundred_thousand_counters),
		TEST(what_the_daemon_refuses_is_told),
		TEST(a_daemon_without_a_file_is_not_durable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
