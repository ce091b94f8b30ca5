/*
 * rationctl, the program, against a real daemon: as a shell would run it.
 */
#include "tests/integration/cli/shell.h"
#include "tests/support/test.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void what_is_added_is_there_at_once(void **state)
{
	(void)state;
	shell("rationctl add requests/acme/web && rationctl add requests/acme 2k && rationctl get requests",
	      0, "2001  requests\n");
	shell("rationctl tree", 0,
	      "total   own  path\n"
	      " 2001     0  requests\n"
	      " 2001  2000    acme\n"
	      "    1     1      web\n");
	shell("rationctl --json get --exact requests/acme", 0,
	      "{\"values\": [{\"path\": \"requests/acme\", \"kind\": \"counter\", \"leaf\": false, \"own\": 2000, \"total\": 2001}], "
	      "\"error_bound\": 0, \"age_ms\": 0}\n");
}

static void every_exit_status(void **state)
{
	(void)state;
	shell("rationctl add requests/a 1", 0, "");
	shell("rationctl get", 2,
	      "rationctl: get: an argument is missing; rationctl get PATH... is right\n");
	shell("rationctl add a//b", 2, "rationctl: \"a//b\" is not a path: a segment is empty\n");
	shell("rationctl get requests/b requests/a", 3,
	      "rationctl: no such path: requests/b\n1  requests/a\n");
	shell("rationctl tree b", 3, "rationctl: no such path: b\n");
	shell("rationctl metric show b", 3, "rationctl: no such metric: b\n");
	shell("rationctl --socket unix:$D/nobody flush 2>&1 | sed \"s,$D,D,\"", 0,
	      "rationctl: no daemon at unix:D/nobody: No such file or directory; is rationd running? --socket URL says where\n");
	shell("rationctl --socket unix:$D/nobody flush 2>/dev/null", 4, "");
	shell("rationctl add requests/a -1 2>/dev/null", 5, "");
	shell("rationctl metric set requests --kind gauge 2>/dev/null", 5, "");
	shell("rationctl get requests/a >/dev/full", 6,
	      "rationctl: output could not be written: No space left on device\n");
	shell("rationctl add - <&-", 6,
	      "rationctl: standard input, after line 0: it can't be read: Bad file descriptor\n");
	shell("rationctl get requests/a >&-", 6,
	      "rationctl: output could not be written: Bad file descriptor\n");
	shell("rationctl add - </", 6,
	      "rationctl: standard input, after line 0: it can't be read: Is a directory\n");
}

static void lines_count_exactly(void **state)
{
	(void)state;
	shell("seq 1 100000 | awk '{ print \"load/k\" $1 % 1000, $1 }' | rationctl add - && rationctl get load load/k0",
	      0, "5000050000  load\n   5050000  load/k0\n");
	shell("printf 'mixed/a 5\\nmixed/b x\\n\\n# no\\nmixed/a\\nmixed/c d 7\\nmixed//e 1\\n' | rationctl add -",
	      2,
	      "rationctl: line 2: N 'x': not a number; give one like 12, -3, 4k or 2Mi (a line is PATH N, or PATH if no blank is in it)\n"
	      "rationctl: line 7: \"mixed//e\" is not a path: a segment is empty\n");
	shell("rationctl tree mixed", 0,
	      "total  own  path\n"
	      "   13    0  mixed\n"
	      "    6    6    a\n"
	      "    7    7    c d\n");
	shell("printf 'mixed/a 7\nmixed/a -1\n' | rationctl add - && echo never; rationctl get mixed/a",
	      0,
	      "rationctl: line 2: -1 at mixed/a: mixed is a counter, which only grows; declare it a gauge before it is counted "
	      "(rationctl metric set mixed --kind gauge), or add N of 0 and above\n13  mixed/a\n");
}

static void several_processes_at_once(void **state)
{
	(void)state;
	shell("for i in 1 2 3 4; do seq 1 50000 | awk '{ print \"shared/\" $1 % 10, 3 }' | rationctl add - & done; wait; "
	      "rationctl get shared shared/7",
	      0, "600000  shared\n 60000  shared/7\n");
}

static void gauges_go_down(void **state)
{
	(void)state;
	shell("rationctl metric set jobs --kind gauge && rationctl add jobs/running 5 && rationctl add jobs/running -7 && "
	      "rationctl get jobs",
	      0, "-2  jobs\n");
}

static void numbers_are_exact_to_the_edge(void **state)
{
	(void)state;
	shell("rationctl add big/one 9223372036854775807 && rationctl get --exact big", 0,
	      "9223372036854775807  big\n");
	shell("rationctl add big/one 1", 5,
	      "rationctl: not counted: big/one 1: the daemon answered OUT_OF_RANGE: the total would leave the range of 64 bits\n");
	shell("rationctl --json get big | grep -o '\"total\": [^}]*'", 0,
	      "\"total\": \"9223372036854775807\"\n");
}

static void a_reader_that_has_had_enough(void **state)
{
	(void)state;
	shell("seq 1 20000 | sed 's,^,many/,' | rationctl add - && rationctl tree | head -n 1", 0,
	      "total  own  path\n");
}

/* The end of a pipe that never ends: what has come in is counted when the interrupt comes. */
static void an_interrupt_loses_nothing(void **state)
{
	(void)state;
	/* A background job of a shell without job control ignores SIGINT, and so do we then; SIGTERM it is. */
	shell("mkfifo $D/lines; rationctl add - <$D/lines & pid=$!; exec 3>$D/lines; printf 'pipe/a 5\\npipe/b 6\\nhalf' >&3\n"
	      "until rationctl get pipe/b >/dev/null 2>&1; do sleep 0.05; done\n"
	      "kill -TERM $pid; wait $pid 2>/dev/null; echo $?; rationctl get pipe; rationctl get half",
	      3, "143\n11  pipe\nrationctl: no such path: half\n");
}

static void a_daemon_that_goes(void **state)
{
	struct test_daemon *daemon = *state;
	FILE *pipe = popen("rationctl --timeout 300ms add - 2>&1", "w");

	/* Connected; then the daemon is gone before the lines are all there. */
	assert_non_null(pipe);
	assert_true(fputs("away/a 5\n", pipe) != EOF && fflush(pipe) == 0);
	shell("until rationctl get away/a >/dev/null 2>&1; do sleep 0.05; done", 0, "");
	test_daemon_signal(daemon, SIGTERM);
	assert_int_equal(test_daemon_wait(daemon), 0);
	assert_true(fputs("away/a 7\n", pipe) != EOF);
	assert_int_equal(WEXITSTATUS(pclose(pipe)), 4);
	test_daemon_clean(daemon);
	*state = test_daemon_start(NULL);
}

static void status_is_the_daemons(void **state)
{
	(void)state;
	shell("rationctl add a 1; rationctl status | awk '$1 == \"counters\" || $1 == \"state\" { print $1, $2 }'",
	      0, "state running\ncounters 1\n");
	shell("rationctl flush && rationctl --json flush", 0, "{\"flushed\": true}\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, shell_setup, shell_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_added_is_there_at_once),
		TEST(every_exit_status),
		TEST(lines_count_exactly),
		TEST(several_processes_at_once),
		TEST(gauges_go_down),
		TEST(numbers_are_exact_to_the_edge),
		TEST(a_reader_that_has_had_enough),
		TEST(an_interrupt_loses_nothing),
		TEST(a_daemon_that_goes),
		TEST(status_is_the_daemons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
