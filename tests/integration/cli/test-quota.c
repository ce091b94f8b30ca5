/*
 * Limits, charges and held commands, by rationctl, the program, against a real daemon.
 */
#include "tests/integration/cli/shell.h"
#include "tests/support/proxy.h"
#include "tests/support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* until COMMAND; for half a minute at most. */
#define AWAIT(command) "for i in $(seq 600); do " command " && break; sleep 0.05; done\n"

static void limits_go_round(void **state)
{
	(void)state;
	shell("rationctl quota set requests/acme --max 10k --high 8k && rationctl quota set requests/acme --max 100 --per 1h &&\n"
	      "rationctl quota set 'requests/*' --max 1M --calendar month --shadow && rationctl quota set requests --rate 5k/m --burst 7 &&\n"
	      "rationctl quota set requests --low 5 --min 3 && rationctl quota show",
	      0,
	      "    max  high  low  min  window                  from      rule\n"
	      "      -     -    5    3  -                       run time  requests\n"
	      "      7     -    -    -  rate 5000/1m            run time  requests\n"
	      "1000000     -    -    -  calendar month, shadow  run time  requests/*\n"
	      "  10000  8000    -    -  -                       run time  requests/acme\n"
	      "    100     -    -    -  per 1h                  run time  requests/acme\n");
	shell("rationctl quota remove requests/acme --window none && rationctl quota show requests/acme",
	      0,
	      "    max  high  low  min  window                  from      rule\n"
	      "1000000     -    -    -  calendar month, shadow  run time  requests/*\n"
	      "    100     -    -    -  per 1h                  run time  requests/acme\n");
	shell("rationctl quota remove requests && rationctl quota remove 'requests/*' && rationctl quota remove requests/acme &&\n"
	      "rationctl quota show; rationctl quota remove requests",
	      3, "rationctl: requests: no limits were set at run time\n");
	shell("rationctl quota set 'a/**/b' --max 1", 2,
	      "rationctl: quota set: a/**/b: '**' can only be the last segment\n");
	shell("rationctl quota set a --max 1 --min 2", 2,
	      "rationctl: quota set: a: min is 2, more than max, 1\n");
}

static void explained(void **state)
{
	(void)state;
	shell("rationctl quota set requests --max 100 --min 20 && rationctl quota set 'requests/*' --max 60 --high 40 --min 10 &&\n"
	      "rationctl charge requests/acme/web 50 requests/umbrella 20 && rationctl add requests/acme/web 15; rationctl charge requests/acme/web 40; "
	      "rationctl quota explain requests/acme/web",
	      0,
	      "rationctl: these 2 together: over high at requests/acme: high 40, usage 50, left 10\n"
	      "rationctl: requests/acme/web 40: refused by requests/acme: max 60, usage 65, left 0; retry: never\n"
	      "rationctl: requests/acme/web 40: refused by requests: max 100, usage 85, left 15; retry: never\n"
	      "requests/acme/web: nothing more fits; nothing is left at requests/acme: max 60\n"
	      "\n"
	      "usage  max  left  high  peak  refused  forced  window  state            path\n"
	      "   65   60     0    40    65        1       5  -       binds, over max  requests/acme\n"
	      "   85  100    15     -    85        0       0  -                        requests\n"
	      "\n"
	      "protected against siblings:\n"
	      "usage  min  effective  low  effective  path\n"
	      "   65   10         10    0          0  requests/acme\n"
	      "   85   20         20    0          0  requests\n"
	      "\n"
	      "siblings that use more than is protected of them:\n"
	      "usage  effective min  effective low  path\n"
	      "   20             10              0  requests/umbrella\n"
	      "\n"
	      "rules:\n"
	      "window  from      rule\n"
	      "-       run time  requests/*\n"
	      "-       run time  requests\n");
	shell("rationctl get --check requests/umbrella; rationctl get --check requests/acme/web", 1,
	      "20  requests/umbrella\n"
	      "rationctl: requests/acme/web: over max at requests/acme: max 60, usage 65\n"
	      "65  requests/acme/web\n");
	shell("rationctl tree --limits", 0,
	      "total  own              usage  limit       path\n"
	      "   85    0  ████████▌      85    100  max  requests\n"
	      "   65    0  ██████████     65     60  max    acme\n"
	      "   65   65                                     web\n"
	      "   20   20  ███▎           20     60  max    umbrella\n");
	/* Nobody has a protection: there is nothing to say of siblings. */
	shell("rationctl quota set plain --max 100 && rationctl quota set 'plain/*' --max 60 && rationctl charge plain/a 5 plain/b 20 && "
	      "rationctl quota explain plain/a | grep -c sibling",
	      1, "0\n");
	shell("rationctl quota explain nothing", 3, "rationctl: no such path: nothing\n");
}

static void charged_to_the_edge(void **state)
{
	(void)state;
	shell("rationctl quota set requests --max 1000 --per 31d && rationctl charge requests/a 600 requests/b 399 && rationctl charge requests/c &&\n"
	      "rationctl get requests; rationctl charge requests/c 2>/dev/null; echo $?; rationctl get requests/c; rationctl charge --dry-run requests/c "
	      "2>/dev/null",
	      1, "1000  requests\n1\n1  requests/c\n");
	shell("rationctl charge requests/c 2>&1 | sed 's/; retry: in .*//'", 0,
	      "rationctl: requests/c 1: refused by requests: max 1000 per 31d, usage 1000, left 0\n");
	/* All or nothing. */
	shell("rationctl quota set other --max 5 && rationctl charge other/x 5 requests/a 1 2>/dev/null",
	      1, "");
	shell("rationctl charge other/x 5 && rationctl get other", 0, "5  other\n");
	shell("rationctl charge other/x 4611686018427387904", 1,
	      "rationctl: other/x 4611686018427387904: refused by other: max 5, usage 5, left 0; retry: never\n");
	shell("rationctl charge request/a", 3,
	      "rationctl: request/a 1: there is no metric request: nobody declared, counted or limited it\n");
	shell("rationctl uncharge other/x 2>/dev/null", 5, "");
}

static void charges_of_a_gauge_stay(void **state)
{
	(void)state;
	shell("rationctl metric set jobs --kind gauge && rationctl quota set jobs --max 3 && rationctl charge jobs/a 2 &&\n"
	      "rationctl charge jobs/b && rationctl get jobs; rationctl charge jobs/b; rationctl uncharge jobs/a && rationctl charge jobs/b &&\n"
	      "rationctl uncharge jobs/b 2 && rationctl uncharge jobs/a && rationctl get jobs",
	      0,
	      "3  jobs\n"
	      "rationctl: jobs/b 1: refused by jobs: max 3, usage 3, left 0; retry: when something is given back\n"
	      "0  jobs\n");
	shell("rationctl uncharge jobs/a 2>/dev/null", 5, "");
	/* A command leaves no session behind. */
	shell(AWAIT("test \"$(rationctl --json status | grep -o '\"sessions\": [0-9]*')\" = '\"sessions\": 1'"),
	      0, "");
}

static void lines_are_charges(void **state)
{
	(void)state;
	shell("rationctl quota set load --max 5050 && seq 1 101 | awk '{ print \"load/k\" $1 % 7, $1 }' | rationctl charge - | cut -f 1 | uniq -c",
	      0,
	      "rationctl: 1 of 101 charges were refused\n"
	      "    100 granted\n"
	      "      1 refused\n");
	/* One process asks, another answers, line by line. */
	shell("mkfifo $D/in $D/out; rationctl charge - <$D/in >$D/out & exec 3>$D/in 4<$D/out\n"
	      "echo load/x >&3; read -r line <&4; echo \"$line\"; rationctl quota set load --max 5051; echo load/x >&3; read -r line <&4\n"
	      "echo \"$line\"; exec 3>&-; wait $!",
	      1,
	      "refused\t1\tload/x\trefused by load: max 5050, usage 5050, left 0; retry: never\n"
	      "granted\t1\tload/x\n"
	      "rationctl: 1 of 2 charges were refused\n");
	/* Several at once: exactly as many as fit. */
	shell("rationctl quota set many --max 1234; for i in 1 2 3 4; do seq 1000 | sed 's,.*,many/k,' | rationctl charge - >$D/verdicts.$i "
	      "2>/dev/null & done; wait; cut -f 1 $D/verdicts.? | sort | uniq -c; rationctl get many",
	      0, "   1234 granted\n   2766 refused\n1234  many\n");
}

static void gauge(void)
{
	shell("rationctl metric set jobs --kind gauge && rationctl quota set jobs --max 3", 0, "");
}

static void commands_run(void **state)
{
	(void)state;
	gauge();
	shell("rationctl run --charge jobs/a:3 -- rationctl get jobs; rationctl get jobs", 0,
	      "3  jobs\n"
	      "0  jobs\n");
	shell("echo in | rationctl run --charge jobs/a -- sh -c 'cat; echo out; exit 42'", 42,
	      "in\nout\n");
	shell("rationctl run --charge jobs/a:4 -- touch $D/ran; echo $?; test -e $D/ran", 1,
	      "rationctl: jobs/a 4: refused by jobs: max 3, usage 0, left 3; retry: never\n1\n");
	shell("rationctl run --charge jobs/a -- no-such-command", 127,
	      "rationctl: run: 'no-such-command' can't be run: No such file or directory\n");
	shell("rationctl run --charge jobs/a -- /", 126,
	      "rationctl: run: '/' can't be run: Permission denied\n");
	shell("rationctl run --charge jobs/a --charge jobs/b -- sh -c 'kill -9 $$'", 137, "");
	/* No descriptor of ours is the command's. */
	shell("ls /proc/self/fd >$D/fds; rationctl run --charge jobs/a -- ls /proc/self/fd | diff $D/fds -",
	      0, "");
	shell("rationctl get jobs", 0, "0  jobs\n");
	/* On a counter it stays, and that is said. */
	shell("rationctl quota set runs --max 2 --per 31d; rationctl run --charge runs/a -- true",
	      0,
	      "rationctl: run: what was charged at runs/a stays charged: it is a counter, which only grows; what gauges are charged "
	      "goes back (rationctl metric set METRIC --kind gauge)\n");
	shell("rationctl run --charge runs/a -- true 2>/dev/null && rationctl get runs; rationctl run --charge runs/a -- true 2>/dev/null",
	      1, "2  runs\n");
	shell("rationctl run --charge jbos/a -- true", 3,
	      "rationctl: jbos/a 1: there is no metric jbos: nobody declared, counted or limited it\n");
}

static void signals_reach_the_command(void **state)
{
	(void)state;
	gauge();
	for (const char *const *name = (const char *const[]){ "TERM", "HUP", "USR1", "USR2", NULL };
	     *name != NULL; name++) {
		assert_int_equal(setenv("S", *name, 1), 0);
		shell("rationctl run --charge jobs/a -- sh -c 'trap \"echo caught; exit 5\" $S; : >$D/ready; while :; do sleep 0.01; done' &\n" AWAIT(
			      "test -e $D/ready") "kill -$S $!; wait $!; echo $?; rm $D/ready; rationctl get jobs",
		      0, "caught\n5\n0  jobs\n");
	}
	shell("rationctl run --charge jobs/a -- sleep 60 & " AWAIT(
		      "test \"$(rationctl get jobs)\" = '1  jobs'") "kill $!; wait $!",
	      143, "");
}

static void a_killed_one_holds_no_longer(void **state)
{
	(void)state;
	gauge();
	shell("rationctl run --charge jobs/a:3 -- sh -c 'echo $$ >$D/pid; exec sleep 60' & " AWAIT(
		      "test -s $D/pid") "rationctl get jobs; kill -9 $!; wait $! 2>/dev/null\n" AWAIT("test \"$(rationctl get jobs)\" = '0  jobs'")
	      /* What it ran goes on. */
	      "rationctl get jobs; kill $(cat $D/pid)",
	      0, "3  jobs\n0  jobs\n");
}

/* One holds all, five wait; each is seen waiting before the next one comes. */
static void who_comes_first_is_first(void **state)
{
	(void)state;
	gauge();
	shell("mkfifo $D/hold; rationctl run --charge jobs/h:3 -- cat $D/hold &\n" AWAIT(
		      "test \"$(rationctl get jobs)\" = '3  jobs'") "for n in 1 2 3 4 5; do\n"
								    "rationctl run --wait --charge jobs/$n:3 -- sh -c \"echo $n >>$D/order\" &\n" AWAIT(
									    "rationctl status | grep -q \"^charges_waiting *$n \"") "done\n"
																    "rationctl run --wait=10ms --charge jobs/6 -- false >/dev/null; echo $?; : >$D/hold; wait; tr '\\n' ' ' <$D/order; rationctl get jobs",
	      0,
	      "rationctl: jobs/6 1: refused by jobs: max 3, usage 3, left 0; retry: when something is given back\n"
	      "1\n"
	      "1 2 3 4 5 0  jobs\n");
}

static void never_more_at_once(void **state)
{
	(void)state;
	gauge();
	/* None waits: as many hold as there is room, to the last, and all others are refused. */
	shell("mkfifo $D/hold; for i in $(seq 30); do (rationctl run --charge jobs/$i -- cat $D/hold 2>/dev/null; echo $? >>$D/ended) & done\n" AWAIT(
		      "test \"$(cat $D/ended 2>/dev/null | wc -l)\" -ge 27") "rationctl get jobs; : >$D/hold; wait; sort $D/ended | uniq -c",
	      0,
	      "3  jobs\n"
	      "      3 0\n"
	      "     27 1\n");
	/* All wait: each gets its turn, and the log never has more than three between their beginnings and ends. */
	shell("for i in $(seq 60); do rationctl run --wait --charge jobs/$i -- sh -c 'echo 1 >>$D/turns; sleep 0.01; echo -1 >>$D/turns' & done; wait\n"
	      "awk '{ n += $1; most = n > most ? n : most } END { print NR, most, n }' $D/turns; rationctl get jobs",
	      0, "120 3 0\n0  jobs\n");
}

static void a_daemon_that_goes(void **state)
{
	struct test_daemon *daemon = *state;
	FILE *pipe = NULL;
	char output[1024];
	size_t len = 0;

	gauge();
	pipe = popen(
		"rationctl run --charge jobs/a -- sh -c 'until test -e $D/stop; do sleep 0.05; done; exit 9' 2>&1 | sed -u \"s,$D,D,\"",
		"r");
	assert_non_null(pipe);
	shell(AWAIT("test \"$(rationctl get jobs)\" = '1  jobs'"), 0, "");
	test_daemon_signal(daemon, SIGTERM);
	assert_int_equal(test_daemon_wait(daemon), 0);
	/* It says so within a few seconds, and the command goes on. */
	assert_non_null(fgets(output, sizeof(output), pipe));
	assert_non_null(strstr(output, "does not answer any more; the command goes on"));
	shell(": >$D/stop", 0, "");
	len = fread(output, 1, sizeof(output), pipe);
	assert_int_equal(len, 0);
	assert_int_equal(WEXITSTATUS(pclose(pipe)), 0);
	test_daemon_clean(daemon);
	assert_int_equal(shell_setup(state), 0);
}

static void a_daemon_started_anew(void **state)
{
	struct test_daemon *daemon = *state;

	gauge();
	shell("rationctl run --charge jobs/a -- sh -c 'until test -e $D/stop; do sleep 0.05; done; exit 9' >$D/said 2>&1 & " AWAIT(
		      "test \"$(rationctl get jobs)\" = '1  jobs'"),
	      0, "");
	test_daemon_signal(daemon, SIGKILL);
	(void)test_daemon_wait(daemon);
	test_daemon_spawn(daemon, NULL);
	test_daemon_await(daemon, "READY=1");
	gauge();
	shell("rationctl charge --dry-run jobs/a 3; : >$D/stop\n" AWAIT(
		      "grep -o 'what was charged at jobs/a was not held to the end' $D/said"),
	      0, "what was charged at jobs/a was not held to the end\n");
}

/* A connection that is cut, and back at once: what is held stays held. */
static void a_hiccup(void **state)
{
	struct test_daemon *daemon = *state;
	struct proxy *proxy = proxy_start(daemon->dir, daemon->socket);

	gauge();
	assert_int_equal(setenv("PROXY", proxy->url, 1), 0);
	shell("rationctl --socket $PROXY run --charge jobs/a:3 -- sh -c 'until test -e $D/stop; do sleep 0.05; done' >$D/said 2>&1 & " AWAIT(
		      "test \"$(rationctl get jobs)\" = '3  jobs'"),
	      0, "");
	for (int i = 0; i < 3; i++) {
		proxy_set_down(proxy, true);
		proxy_set_down(proxy, false);
		/* Longer than the session may be without a connection. */
		shell("sleep 1; rationctl get jobs; rationctl charge --dry-run jobs/b 2>/dev/null",
		      1, "3  jobs\n");
	}
	shell(": >$D/stop; " AWAIT(
		      "test \"$(rationctl get jobs)\" = '0  jobs'") "cat $D/said; rationctl get jobs",
	      0, "0  jobs\n");
	proxy_stop(proxy);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, shell_setup, shell_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(limits_go_round),
		TEST(explained),
		TEST(charged_to_the_edge),
		TEST(charges_of_a_gauge_stay),
		TEST(lines_are_charges),
		TEST(commands_run),
		TEST(signals_reach_the_command),
		TEST(a_killed_one_holds_no_longer),
		TEST(who_comes_first_is_first),
		TEST(never_more_at_once),
		TEST(a_daemon_that_goes),
		TEST(a_daemon_started_anew),
		TEST(a_hiccup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
