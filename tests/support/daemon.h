#pragma once
/*
 * test_daemon: a real rationd on a unix socket in a temporary folder.
 *
 *	struct test_daemon *daemon = test_daemon_start(NULL);
 *	... connect to daemon->socket ...
 *	test_daemon_stop(daemon);	// SIGTERM, and it must exit with 0
 *
 * test_daemon_start returns once the daemon has said READY=1, for it listens to the daemon's notifications. Every wait ends with a
 * failed assertion after TEST_DAEMON_PATIENCE_MS. The program is $RATIOND, or the one of this build.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TEST_DAEMON_PATIENCE_MS 30000

struct test_daemon {
	pid_t pid; /* 0: it has ended */
	char dir[64];
	char socket[96];      /* the path of the unix socket */
	char url[104];	      /* "unix:" and that path */
	char config_path[96]; /* read by the daemon at SIGHUP too */
	char log_path[96];    /* what it wrote to standard error */
	char state_path[96];
	bool keeps; /* it has a state file there, from the next spawn on; else it is ephemeral */
	int notify_fd;
};

/* `config`: lines of [daemon], to which more sections may be added; NULL: none. It listens on ->socket in any case. */
struct test_daemon *test_daemon_start(const char *config);

/* The parts: a folder and a configuration, but no process yet; then a process with more arguments, NULL-terminated, or NULL. */
struct test_daemon *test_daemon_prepare(const char *config);
void test_daemon_spawn(struct test_daemon *daemon, const char *const *more);
/* Write another configuration, in the same way. */
void test_daemon_configure(struct test_daemon *daemon, const char *config);

/* Wait for a notification that has this line. */
void test_daemon_await(struct test_daemon *daemon, const char *line);
/* The next notification, as sent; free it. */
char *test_daemon_notification(struct test_daemon *daemon);

/* Those of one that has ended: the next one would wait if there were too many. */
void test_daemon_drop_notifications(struct test_daemon *daemon);

void test_daemon_signal(struct test_daemon *daemon, int number);
/* Wait for its end: what waitpid says. */
int test_daemon_wait(struct test_daemon *daemon);

/* All that it has logged; free it. */
char *test_daemon_log(const struct test_daemon *daemon);
/* Wait until the log has `text`. */
void test_daemon_await_log(const struct test_daemon *daemon, const char *text);

/* Its CPU time so far. */
int64_t test_daemon_cpu_ns(const struct test_daemon *daemon);
/* Its resident memory. */
int64_t test_daemon_rss(const struct test_daemon *daemon);

/* End it by this signal, SIGTERM (which must give status 0) or SIGKILL, and start it again on the same state file. */
void test_daemon_restart(struct test_daemon *daemon, int number);

/* SIGTERM, exit status 0, folder removed, memory freed. */
void test_daemon_stop(struct test_daemon *daemon);
/* The same without a process: after test_daemon_wait. */
void test_daemon_clean(struct test_daemon *daemon);

/* Milliseconds of the monotonic clock. */
int64_t test_now_ms(void);
