#include "tests/support/daemon.h"

#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef RATIOND_PROGRAM
#define RATIOND_PROGRAM "rationd"
#endif

#define MAX_MORE 16u

int64_t test_now_ms(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Where the daemon's notifications come in. */
static int open_notify(const char *dir)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/notify", dir);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

void test_daemon_configure(struct test_daemon *daemon, const char *config)
{
	FILE *file = fopen(daemon->config_path, "we");

	assert_non_null(file);
	(void)fprintf(file, "[daemon]\nlisten = %s\n%s", daemon->url, config != NULL ? config : "");
	assert_int_equal(fclose(file), 0);
}

struct test_daemon *test_daemon_prepare(const char *config)
{
	struct test_daemon *daemon = calloc(1, sizeof(*daemon));

	assert_non_null(daemon);
	(void)snprintf(daemon->dir, sizeof(daemon->dir), "/tmp/rationd-test-XXXXXX");
	assert_non_null(mkdtemp(daemon->dir));
	(void)snprintf(daemon->socket, sizeof(daemon->socket), "%s/socket", daemon->dir);
	(void)snprintf(daemon->url, sizeof(daemon->url), "unix:%s", daemon->socket);
	(void)snprintf(daemon->config_path, sizeof(daemon->config_path), "%s/conf", daemon->dir);
	(void)snprintf(daemon->log_path, sizeof(daemon->log_path), "%s/log", daemon->dir);
	(void)snprintf(daemon->state_path, sizeof(daemon->state_path), "%s/state.db", daemon->dir);
	daemon->notify_fd = open_notify(daemon->dir);
	test_daemon_configure(daemon, config);
	return daemon;
}

static void become_daemon(const struct test_daemon *daemon, const char *const *more)
{
	const char *program = getenv("RATIOND");
	const char *argv[6 + MAX_MORE] = { "rationd", "--config", daemon->config_path };
	char notify[96];
	size_t n = 3;
	int log = open(daemon->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	/* It must not outlive a test that crashed. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)snprintf(notify, sizeof(notify), "%s/notify", daemon->dir);
	(void)setenv("NOTIFY_SOCKET", notify, 1);
	(void)unsetenv("JOURNAL_STREAM");
	if (daemon->keeps) {
		argv[n++] = "--state";
		argv[n++] = daemon->state_path;
	} else {
		argv[n++] = "--ephemeral";
	}
	while (more != NULL && *more != NULL && n < 5 + MAX_MORE) {
		argv[n++] = *more++;
	}
	(void)dup2(log, STDERR_FILENO);
	(void)execv(program != NULL ? program : RATIOND_PROGRAM, (char *const *)(uintptr_t)argv);
	_exit(127);
}

void test_daemon_spawn(struct test_daemon *daemon, const char *const *more)
{
	daemon->pid = fork();
	assert_true(daemon->pid >= 0);
	if (daemon->pid == 0) {
		become_daemon(daemon, more);
	}
}

struct test_daemon *test_daemon_start(const char *config)
{
	struct test_daemon *daemon = test_daemon_prepare(config);

	test_daemon_spawn(daemon, NULL);
	test_daemon_await(daemon, "READY=1");
	return daemon;
}

/* For a failed wait: what the daemon had to say. */
static void fail_with_log(const struct test_daemon *daemon, const char *text)
{
	char *log = test_daemon_log(daemon);

	(void)fprintf(stderr, "%s; the daemon's log:\n%s\n", text, log);
	free(log);
	fail_msg("%s", text);
}

char *test_daemon_notification(struct test_daemon *daemon)
{
	struct pollfd poll_fd = { .fd = daemon->notify_fd, .events = POLLIN };
	char *text = calloc(1, 4096);
	ssize_t n;

	assert_non_null(text);
	for (int waited = 0; poll(&poll_fd, 1, 100) == 0; waited += 100) {
		int status;

		if (daemon->pid != 0 && waitpid(daemon->pid, &status, WNOHANG) == daemon->pid) {
			daemon->pid = 0;
			fail_with_log(daemon, "the daemon has ended");
		}
		if (waited >= TEST_DAEMON_PATIENCE_MS) {
			fail_with_log(daemon, "no notification came");
		}
	}
	n = recv(daemon->notify_fd, text, 4095, 0);
	assert_true(n >= 0);
	return text;
}

static int has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (const char *at = text; at != NULL; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, line, len) == 0 && (at[len] == '\n' || at[len] == '\0')) {
			return 1;
		}
	}
	return 0;
}

void test_daemon_await(struct test_daemon *daemon, const char *line)
{
	int found = 0;

	while (!found) {
		char *text = test_daemon_notification(daemon);

		found = has_line(text, line);
		free(text);
	}
}

void test_daemon_drop_notifications(struct test_daemon *daemon)
{
	char text[4096];

	while (recv(daemon->notify_fd, text, sizeof(text), MSG_DONTWAIT) >= 0) {
		/* the next */
	}
}

void test_daemon_signal(struct test_daemon *daemon, int number)
{
	assert_true(daemon->pid > 0);
	assert_int_equal(kill(daemon->pid, number), 0);
}

int test_daemon_wait(struct test_daemon *daemon)
{
	int64_t until = test_now_ms() + TEST_DAEMON_PATIENCE_MS;
	const struct timespec pause = { .tv_nsec = 5000000 };
	int status = 0;
	pid_t pid = daemon->pid;

	assert_true(pid > 0);
	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (test_now_ms() > until) {
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, &status, 0);
			daemon->pid = 0;
			fail_with_log(daemon, "the daemon did not end");
		}
		(void)nanosleep(&pause, NULL);
	}
	daemon->pid = 0;
	return status;
}

static char *read_all(const char *path)
{
	FILE *file = fopen(path, "re");
	size_t size = 1 << 20, len;
	char *text = calloc(1, size + 1);

	assert_non_null(text);
	if (file != NULL) {
		len = fread(text, 1, size, file);
		text[len] = '\0';
		(void)fclose(file);
	}
	return text;
}

char *test_daemon_log(const struct test_daemon *daemon)
{
	return read_all(daemon->log_path);
}

void test_daemon_await_log(const struct test_daemon *daemon, const char *text)
{
	int64_t until = test_now_ms() + TEST_DAEMON_PATIENCE_MS;
	const struct timespec pause = { .tv_nsec = 5000000 };

	for (;;) {
		char *log = test_daemon_log(daemon);
		int found = strstr(log, text) != NULL;

		free(log);
		if (found) {
			return;
		}
		if (test_now_ms() > until) {
			(void)fprintf(stderr, "wanted in the log: %s\n", text);
			fail_with_log(daemon, "the log does not have it");
		}
		(void)nanosleep(&pause, NULL);
	}
}

int64_t test_daemon_cpu_ns(const struct test_daemon *daemon)
{
	struct timespec used;
	clockid_t id;

	assert_int_equal(clock_getcpuclockid(daemon->pid, &id), 0);
	assert_int_equal(clock_gettime(id, &used), 0);
	return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

int64_t test_daemon_rss(const struct test_daemon *daemon)
{
	char path[64];
	char *text;
	long long pages;

	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)daemon->pid);
	text = read_all(path);
	assert_non_null(strchr(text, ' '));
	pages = strtoll(strchr(text, ' '), NULL, 10);
	free(text);
	return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

void test_daemon_restart(struct test_daemon *daemon, int number)
{
	int status;

	test_daemon_signal(daemon, number);
	status = test_daemon_wait(daemon);
	if (number == SIGTERM && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
		fail_with_log(daemon, "the daemon did not exit with 0");
	}
	test_daemon_drop_notifications(daemon);
	test_daemon_spawn(daemon, NULL);
	test_daemon_await(daemon, "READY=1");
}

void test_daemon_clean(struct test_daemon *daemon)
{
	char *dir = strdup(daemon->dir);
	void *state = dir;

	assert_int_equal(daemon->pid, 0);
	(void)close(daemon->notify_fd);
	free(daemon);
	(void)test_dir_teardown(&state);
}

void test_daemon_stop(struct test_daemon *daemon)
{
	int status;

	test_daemon_signal(daemon, SIGTERM);
	status = test_daemon_wait(daemon);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fail_with_log(daemon, "the daemon did not exit with 0");
	}
	test_daemon_clean(daemon);
}
