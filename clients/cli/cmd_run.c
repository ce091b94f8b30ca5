#include "clients/cli/command.h"

#include "clients/cli/charging.h"
#include "clients/cli/text.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

/*
 * How long the daemon holds the charge once our connection is gone: so long a hiccup may last, and so long a killed rationctl's charge
 * may outlive it. On one machine a connection only breaks when an end of it does.
 */
#define LIFETIME_UNIX_MS 2000
#define LIFETIME_TCP_MS 15000

/* How often the daemon is looked for, and how long it may take to answer. */
#define WATCH_MS 2000
#define PATIENCE_MS 2000

/* What is passed on to the command. */
static const int forwarded[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

/* A command that runs. */
struct running {
	struct cli *cli;
	struct ration *client;
	sigset_t set;	 /* what is waited for */
	sigset_t before; /* what was blocked before, and is for the command */
	pid_t pid;
	bool away; /* the daemon did not answer when it was last looked for */
};

/* ---- signals ---- */

/* From here on signals wait for us. What our parent has ignored stays so, for the command as well. */
static void block_signals(struct running *running)
{
	struct sigaction action;

	(void)sigemptyset(&running->set);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++) {
		if (sigaction(forwarded[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN) {
			(void)sigaddset(&running->set, forwarded[i]);
		}
	}
	/* An ignored SIGCHLD would reap the command by itself. */
	if (sigaction(SIGCHLD, NULL, &action) == 0 && action.sa_handler == SIG_IGN) {
		(void)signal(SIGCHLD, SIG_DFL);
	}
	(void)sigaddset(&running->set, SIGCHLD);
	(void)pthread_sigmask(SIG_BLOCK, &running->set, &running->before);
}

static void pass_on(const struct running *running, const siginfo_t *info)
{
	/* A terminal's interrupt comes from the kernel, and goes to the whole process group: the command has it already. */
	if (info->si_signo != SIGCHLD && info->si_code != SI_KERNEL) {
		(void)kill(running->pid, info->si_signo);
	}
}

/* ---- the daemon, meanwhile ---- */

/* `away`: it did not answer just now. */
static void say_where(struct running *running, bool away, const char *command)
{
	struct cli *cli = running->cli;
	char *url = NULL;

	if (away == running->away) {
		return;
	}
	running->away = away;
	url = text_safe_string(cli_socket(cli));
	if (running->away) {
		cli_warn(
			cli,
			"the daemon at %s does not answer any more; the command %s, and what it was charged may be held no longer",
			url != NULL ? url : "", command);
	} else {
		cli_warn(
			cli,
			"the daemon at %s answers again; it holds the charge unless it was started anew",
			url != NULL ? url : "");
	}
	free(url);
}

static void watch(struct running *running)
{
	int r = ration_get(running->client, NULL, 0, RATION_CACHED, PATIENCE_MS, NULL, NULL);

	say_where(running, r < 0, "goes on");
}

/* ---- the command ---- */

static bool start(struct running *running, char **argv)
{
	struct cli *cli = running->cli;
	posix_spawnattr_t attributes;
	char *safe = NULL;
	int r = posix_spawnattr_init(&attributes);

	if (r == 0) {
		(void)posix_spawnattr_setsigmask(&attributes, &running->before);
		(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
		r = posix_spawnp(&running->pid, argv[0], NULL, &attributes, argv, environ);
		(void)posix_spawnattr_destroy(&attributes);
	}
	if (r != 0) {
		safe = text_safe_string(argv[0]);
		cli_fail(cli, CLI_SYSTEM, RATION_INTERNAL, "run: '%s' can't be run: %s",
			 safe != NULL ? safe : "", strerror(r));
		cli_ran(cli, r == ENOENT ? 127 : 126);
		free(safe);
	}
	return r == 0;
}

/* Until the command has ended; its status as a shell has it. */
static int attend(struct running *running)
{
	int ms = running->cli->watch_ms > 0 ? running->cli->watch_ms : WATCH_MS;
	const struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
	int status = 0;

	for (;;) {
		siginfo_t info = { 0 };
		int number = sigtimedwait(&running->set, &info, &pause);

		if (waitpid(running->pid, &status, WNOHANG) == running->pid) {
			return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		}
		if (number > 0) {
			pass_on(running, &info);
		} else if (errno == EAGAIN) {
			watch(running);
		}
	}
}

/* On a counter a charge stays, and nothing is held that could be lost. */
static bool is_gauge(const struct running *running, const char *path)
{
	struct ration_value value = { 0 };
	int r = ration_get(running->client, &path, 1, RATION_CACHED, PATIENCE_MS, &value, NULL);

	return r == 0 && (value.code != RATION_OK || value.kind == RATION_GAUGE);
}

/* So that the room is there when we have ended. What can't be given back now is so when the session ends. */
static void give_back(struct running *running, const struct charging *charging)
{
	for (size_t i = 0; i < charging->n; i++) {
		const char *path = charging->items[i].path;
		int r = ration_uncharge(running->client, path, charging->items[i].amount,
					/* detached= */ false, PATIENCE_MS);
		char *safe = NULL;

		if (r < 0 && r != -ECANCELED) {
			say_where(running, true, "has ended");
			return;
		}
		/* -ECANCELED: the session was lost on the way, and with it what it held. */
		if (r == -ECANCELED || r == RATION_NOT_FOUND || r == RATION_FAILED_PRECONDITION) {
			safe = text_safe_string(path);
			cli_warn(
				running->cli,
				is_gauge(running, path)
					? "run: what was charged at %s was not held to the end: the daemon was started anew, or out of reach for too long"
					: "run: what was charged at %s stays charged: it is a counter, which only grows; what gauges are charged goes back (rationctl metric set METRIC --kind gauge)",
				safe != NULL ? safe : "");
			free(safe);
		}
	}
}

static void run_charged(struct running *running, const struct charging *charging, char **argv)
{
	block_signals(running);
	if (start(running, argv)) {
		cli_ran(running->cli, attend(running));
	}
	give_back(running, charging);
	(void)pthread_sigmask(SIG_SETMASK, &running->before, NULL);
}

/* ---- run ---- */

static struct ration *open_client(struct cli *cli)
{
	struct ration_options options = RATION_OPTIONS_INIT;

	options.session_lifetime_ms =
		strncmp(cli_socket(cli), "unix:", 5) == 0 ? LIFETIME_UNIX_MS : LIFETIME_TCP_MS;
	return cli_client(cli, &options);
}

/* False: reported. */
static bool read_options(struct charging *charging, const struct args *args)
{
	if (args->n_list == 0) {
		cli_fail(
			charging->cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			"run: what to charge is missing; rationctl run --charge PATH[:N] -- COMMAND... is right");
		return false;
	}
	for (size_t i = 0; i < args->n_list; i++) {
		if (!charging_option(charging, args->list[i])) {
			return false;
		}
	}
	return true;
}

void cmd_run(struct cli *cli, const struct args *args)
{
	struct ration_charge_options options = charging_options(args);
	struct running running = { .cli = cli };
	struct charging charging;

	charging_init(&charging, cli, "run");
	if (read_options(&charging, args) && (running.client = open_client(cli)) != NULL &&
	    charging_charge(&charging, running.client, &options) == 0) {
		/* Standard output is the command's. */
		json_decref(cli->object);
		cli->object = NULL;
		run_charged(&running, &charging, args->operands);
	}
	charging_deinit(&charging);
}
