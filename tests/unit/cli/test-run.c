/*
 * rationctl run, against a fake libration: real commands, what becomes of their status, of signals and of the charge.
 */
#include "tests/support/test.h"

#include "tests/unit/cli/fake.h"
#include "tests/unit/cli/run.h"

#include <errno.h>
#include <fcntl.h>
#include <paths.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/test-cli-run.XXXXXX";

static int teardown(void **state)
{
	/* What was charged was given back, and no command is left. */
	return run_teardown(state) == 0 && fake.held == 0 && fake_own("jobs") == 0 &&
			       waitpid(-1, NULL, WNOHANG) == -1
		       ? 0
		       : -1;
}

static int make_folder(void **state)
{
	(void)state;
	/* The usual PATH: with a folder that may not be looked into, what is not there can't be said not to be. */
	return mkdtemp(folder) != NULL && setenv("F", folder, 1) == 0 &&
			       setenv("PATH", _PATH_STDPATH, 1) == 0
		       ? 0
		       : -1;
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static char *file(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void status_is_passed_on(void **state)
{
	(void)state;
	assert_run(RUN("run", "--charge", "jobs", "--", "true"), 0, "", "");
	assert_string_equal(fake.charged, "jobs 1");
	assert_false(fake.charge_options.detached);
	assert_int_equal(fake.charge_options.wait_ms, 0);
	assert_int_equal(fake.options.session_lifetime_ms, 2000);
	assert_run(RUN("run", "--charge", "jobs", "--", "false"), 1, "", "");
	assert_run(RUN("run", "--charge", "jobs", "--", "sh", "-c", "exit 255"), 255, "", "");
	assert_run(RUN("run", "--charge", "jobs", "--", "sh", "-c", "kill -KILL $$"), 128 + SIGKILL,
		   "", "");
	assert_run(RUN("run", "--charge", "jobs", "--", "sh", "-c", "kill -TERM $$"), 128 + SIGTERM,
		   "", "");
	/* Without the two dashes too: what follows COMMAND is its own. */
	assert_run(RUN("run", "--charge", "jobs", "sh", "-c", "exit $#", "--json", "--help", "-x"),
		   2, "", "");
	assert_run(RUN("--socket", "tcp:h:1", "run", "--charge", "jobs", "true"), 0, "", "");
	assert_int_equal(fake.options.session_lifetime_ms, 15000);
}

static void commands_that_can_not_be_run(void **state)
{
	FILE *plain = fopen(file("plain"), "w");
	FILE *nonsense = fopen(file("nonsense"), "w");
	char *err = NULL;

	(void)state;
	assert_non_null(plain);
	assert_non_null(nonsense);
	assert_int_equal(fclose(plain), 0);
	assert_true(fputs("\001\002\n", nonsense) != EOF);
	assert_int_equal(fclose(nonsense), 0);
	assert_int_equal(chmod(file("nonsense"), 0755), 0);
	assert_run(RUN("run", "--charge", "jobs", "--", "no-such-command"), 127, "",
		   "rationctl: run: 'no-such-command' can't be run: No such file or directory\n");
	assert_run(RUN("run", "--charge", "jobs", "--", ""), 127, "",
		   "rationctl: run: '' can't be run: No such file or directory\n");
	assert_true(asprintf(&err, "rationctl: run: '%s' can't be run: Permission denied\n",
			     file("plain")) > 0);
	assert_run(RUN("run", "--charge", "jobs", "--", file("plain")), 126, "", err);
	free(err);
	assert_true(asprintf(&err, "rationctl: run: '%s' can't be run: Exec format error\n",
			     file("nonsense")) > 0);
	assert_run(RUN("run", "--charge", "jobs", "--", file("nonsense")), 126, "", err);
	free(err);
	assert_run(
		RUN("--json", "run", "--charge", "jobs", "--", "no-such-command"), 127,
		"{\"error\": {\"status\": 127, \"code\": \"INTERNAL\", \"text\": \"run: 'no-such-command' can't be run: No such file "
		"or directory\"}}\n",
		"rationctl: run: 'no-such-command' can't be run: No such file or directory\n");
}

static void several_charges_are_one(void **state)
{
	(void)state;
	assert_run(RUN("run", "--charge", "jobs:3", "--charge=jobs/a", "--charge", "a:b/c:2k", "--",
		       "true"),
		   0, "", "");
	assert_string_equal(fake.charged, "jobs 3, jobs/a 1, a:b/c 2000");
	assert_int_equal(fake.n_charges, 1);
	assert_int_equal(fake_own("jobs/a"), 0);
	assert_int_equal(fake_own("a:b/c"), 0);
}

static void refused_is_not_run(void **state)
{
	(void)state;
	assert_run(RUN("quota", "set", "jobs", "--max", "2"), 0, "", "");
	assert_run(
		RUN("run", "--charge", "jobs/a:3", "--", "touch", file("ran")), 1, "",
		"rationctl: jobs/a 3: refused by jobs: max 2, usage 0, left 2; retry: when something is given back\n");
	assert_int_equal(access(file("ran"), F_OK), -1);
	assert_run(RUN("run", "--charge", "jobs/a:2", "--", "touch", file("ran")), 0, "", "");
	assert_int_equal(access(file("ran"), F_OK), 0);
	assert_int_equal(RUN("--json", "run", "--charge", "jobs/a:3", "--", "true")->status, 1);
	assert_memory_equal(RUN("--json", "run", "--charge", "jobs/a:3", "--", "true")->out,
			    "{\"granted\": false, ", 19);
	/* What was asked for is there for whoever reads JSON only if nothing was run. */
	assert_run(RUN("--json", "run", "--charge", "jobs/a:2", "--", "true"), 0, "", "");
	assert_run(RUN("run", "--json", "--charge", "jobs/a:2", "--", "false"), 1, "", "");
}

static void waits_for_room(void **state)
{
	(void)state;
	assert_run(RUN("run", "--charge", "jobs", "--wait", "--", "true"), 0, "", "");
	assert_int_equal(fake.charge_options.wait_ms, UINT32_MAX);
	assert_run(RUN("run", "--wait=2s", "--charge", "jobs", "true"), 0, "", "");
	assert_int_equal(fake.charge_options.wait_ms, 2000);
	assert_run(
		RUN("run", "--charge", "jobs", "--wait", "2s", "true"), 2, "",
		"rationctl: run: a value stands apart from its option: --wait 2s; --wait=2s is right\n");
}

static void wrong_usage(void **state)
{
	(void)state;
	assert_run(
		RUN("run", "--", "true"), 2, "",
		"rationctl: run: what to charge is missing; rationctl run --charge PATH[:N] -- COMMAND... is right\n");
	assert_run(
		RUN("run", "--charge", "jobs"), 2, "",
		"rationctl: run: an argument is missing; rationctl run --charge PATH[:N] -- COMMAND... is right\n");
	assert_run(RUN("run", "--charge", "jobs:", "--", "true"), 2, "",
		   "rationctl: run: N '': a number is missing; give one like 12, -3, 4k or 2Mi\n");
	assert_run(RUN("run", "--charge", "jobs:x", "--", "true"), 2, "",
		   "rationctl: run: N 'x': not a number; give one like 12, -3, 4k or 2Mi\n");
	assert_run(RUN("run", "--charge", "jobs:0", "--", "true"), 2, "",
		   "rationctl: run: N '0': out of range; 1 .. 4611686018427387904 is right\n");
	assert_run(RUN("run", "--charge", ":5", "--", "true"), 2, "",
		   "rationctl:  5: not a path\n");
	assert_run(RUN("run", "--charge", "jobs", "-x", "true"), 2, "",
		   "rationctl: run: unknown option -x; 'rationctl run --help' lists the options\n");
}

/* A command that has begun to run when the file is there; sends a signal to us then. */
static void *send_when_there(void *arg)
{
	while (access(file("ready"), F_OK) != 0) {
		(void)usleep(1000);
	}
	(void)kill(getpid(), *(int *)arg);
	return NULL;
}

static void signals_are_passed_on(void **state)
{
	static int numbers[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	static const char catching[] =
		"for s in TERM INT HUP QUIT USR1 USR2; do trap \"echo $s >$F/got; exit 42\" $s; done; "
		"touch $F/ready; while :; do sleep 0.01; done";

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		pthread_t thread;
		sigset_t set, before;

		/* Blocked here, so that the thread has it so; as libration's are. */
		(void)sigfillset(&set);
		assert_int_equal(pthread_sigmask(SIG_SETMASK, &set, &before), 0);
		assert_int_equal(pthread_create(&thread, NULL, send_when_there, &numbers[i]), 0);
		assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
		assert_run(RUN("run", "--charge", "jobs", "--", "sh", "-c", catching), 42, "", "");
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(unlink(file("ready")), 0);
		/* It ends with the status of a signal too where nobody catches it. */
		assert_int_equal(pthread_sigmask(SIG_SETMASK, &set, &before), 0);
		assert_int_equal(pthread_create(&thread, NULL, send_when_there, &numbers[i]), 0);
		assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
		assert_run(RUN("run", "--charge", "jobs", "--", "sh", "-c",
			       "ulimit -c 0; touch $F/ready; exec sleep 30"),
			   128 + numbers[i], "", "");
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(unlink(file("ready")), 0);
	}
}

/* What we have blocked is not blocked for it, and what is ignored stays ignored. */
static void the_command_has_its_signals(void **state)
{
	(void)state;
	assert_true(signal(SIGHUP, SIG_IGN) != SIG_ERR);
	assert_true(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	assert_run(
		RUN("run", "--charge", "jobs", "--", "sh", "-c",
		    "grep -q '^SigBlk:[[:space:]]*0*$' /proc/self/status && kill -HUP $$; exit 7"),
		7, "", "");
	assert_true(signal(SIGHUP, SIG_DFL) != SIG_ERR);
	assert_true(signal(SIGCHLD, SIG_DFL) != SIG_ERR);
}

/* It sees nothing of us: neither descriptors, nor less of standard input. */
static void the_command_has_its_streams(void **state)
{
	int saved = dup(STDIN_FILENO);
	FILE *input = tmpfile();

	(void)state;
	assert_non_null(input);
	assert_true(fputs("one\ntwo\n", input) != EOF && fflush(input) == 0);
	rewind(input);
	assert_int_equal(dup2(fileno(input), STDIN_FILENO), STDIN_FILENO);
	assert_run(RUN("run", "--charge", "jobs", "--", "sh", "-c", "cat >$F/seen"), 0, "", "");
	assert_run(RUN("run", "--charge", "jobs", "--", "sh", "-c",
		       "printf 'one\\ntwo\\n' | cmp - $F/seen"),
		   0, "", "");
	assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
	assert_int_equal(close(saved), 0);
	assert_int_equal(fclose(input), 0);
}

static void the_daemon_goes_and_comes(void **state)
{
	const struct run *run = NULL;

	(void)state;
	/* The charge and a first look are answered, the next two are not. */
	fake.away_from = 3;
	fake.away_until = 5;
	run = run_words(&(struct run_setting){ .watch_ms = 20 },
			(const char *const[]){ "run", "--charge", "jobs", "sleep", "0.5", NULL });
	assert_int_equal(run->status, 0);
	assert_true(fake.n_asked > 6);
	assert_string_equal(
		run->err,
		"rationctl: the daemon at unix:/run/rationd/rationd.sock does not answer any more; the command goes on, and what "
		"it was charged may be held no longer\n"
		"rationctl: the daemon at unix:/run/rationd/rationd.sock answers again; it holds the charge unless it was started "
		"anew\n");
}

/* Before it was looked for: the command was short. */
static void the_daemon_is_gone_at_the_end(void **state)
{
	(void)state;
	fake.away_from = 2;
	fake.away_until = 100;
	assert_run(
		RUN("run", "--charge", "jobs", "--", "false"), 1, "",
		"rationctl: the daemon at unix:/run/rationd/rationd.sock does not answer any more; the command has ended, and what "
		"it was charged may be held no longer\n");
	/* With the session it goes back. */
	fake.away_until = 0;
	assert_int_equal(ration_uncharge(NULL, "jobs", 1, false, 1), 0);
}

static void what_is_not_held_to_the_end(void **state)
{
	struct ration_metric gauge = RATION_METRIC_INIT;

	(void)state;
	gauge.kind = RATION_GAUGE;
	assert_int_equal(ration_metric_set(NULL, "jobs", &gauge, 1), 0);
	fake.forgets = true;
	assert_run(
		RUN("run", "--charge", "jobs:2", "--charge", "requests/a", "--", "false"), 1, "",
		"rationctl: run: what was charged at jobs was not held to the end: the daemon was started anew, or out of reach for "
		"too long\n"
		"rationctl: run: what was charged at requests/a stays charged: it is a counter, which only grows; what gauges are "
		"charged goes back (rationctl metric set METRIC --kind gauge)\n");
	fake.forgets_late = true;
	assert_run(
		RUN("run", "--charge", "jobs:2", "--", "false"), 1, "",
		"rationctl: run: what was charged at jobs was not held to the end: the daemon was started anew, or out of reach for "
		"too long\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, run_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(status_is_passed_on),
		TEST(commands_that_can_not_be_run),
		TEST(several_charges_are_one),
		TEST(refused_is_not_run),
		TEST(waits_for_room),
		TEST(wrong_usage),
		TEST(signals_are_passed_on),
		TEST(the_command_has_its_signals),
		TEST(the_command_has_its_streams),
		TEST(the_daemon_goes_and_comes),
		TEST(the_daemon_is_gone_at_the_end),
		TEST(what_is_not_held_to_the_end),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
