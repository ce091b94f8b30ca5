#include "clients/cli/command.h"

#include "clients/cli/adding.h"
#include "clients/cli/amount.h"
#include "clients/cli/lines.h"
#include "clients/cli/text.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define PROGRESS_NS (200 * INT64_C(1000000))
#define PROGRESS_LINES 256
#define SHOWN_MAX 64 /* bytes of a word that is wrong */

/* ---- add PATH [N] ---- */

/* What is wrong with PATH or N is said before the daemon is asked for. */
static bool add_one(struct adding *adding, const char *path, const char *text, int64_t *ret_n)
{
	struct ration_counter *counter = NULL;
	int64_t n = 0;
	enum amount_error error = amount_parse(text, &n);

	if (error != AMOUNT_OK) {
		char *safe = text_safe_string(text);

		cli_fail(adding->cli, CLI_USAGE, RATION_INVALID_ARGUMENT, "add: N '%s': %s",
			 safe != NULL ? safe : "", amount_error_text(error));
		free(safe);
		return false;
	}
	if (!adding_begin(adding)) {
		return false;
	}
	counter = ration_counter(adding->client, path);
	if (counter == NULL) {
		cli_answer(adding->cli, -errno, path);
		return false;
	}
	if (!adding_reach(adding)) {
		return false;
	}
	ration_add(counter, n);
	*ret_n = n;
	return adding_finish(adding) && adding->n_losses == 0;
}

static void run_one(struct cli *cli, const struct args *args)
{
	const char *path = args->operands[0];
	struct adding adding;
	int64_t n = 0;

	adding_init(&adding, cli, /* single= */ true);
	if (add_one(&adding, path, args->n_operands > 1 ? args->operands[1] : "1", &n)) {
		cli_put(cli, "path", json_string(path));
		cli_put(cli, "n", json_exact(n));
	}
	adding_deinit(&adding);
}

/* ---- add - ---- */

/* One run over standard input. */
struct reading {
	struct adding adding;
	struct cli *cli;
	int signals; /* a signalfd, or -1 */
	json_t *bad; /* wrong lines, for --json */
	uint64_t n_bad;
	uint64_t n_added;
	int64_t progress_at;
	struct lines lines;
};

static int64_t monotonic_ns(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void show_progress(struct reading *reading)
{
	int64_t now = 0;

	if (!reading->cli->err_terminal) {
		return;
	}
	now = monotonic_ns();
	if (reading->progress_at != 0 && now - reading->progress_at < PROGRESS_NS) {
		return;
	}
	reading->progress_at = now;
	(void)pthread_mutex_lock(&reading->adding.lock);
	(void)fprintf(reading->cli->err, "\r%" PRIu64 " lines, %" PRIu64 " wrong\033[K",
		      reading->lines.number, reading->n_bad);
	(void)fflush(reading->cli->err);
	reading->cli->progress = true;
	(void)pthread_mutex_unlock(&reading->adding.lock);
}

/* read(2) that a signal ends, with ECANCELED. */
static ssize_t read_input(void *ctx, void *buffer, size_t size)
{
	struct reading *reading = ctx;
	struct pollfd fds[] = { { reading->cli->in, POLLIN, 0 }, { reading->signals, POLLIN, 0 } };
	struct signalfd_siginfo info;

	show_progress(reading);
	while (poll(fds, 2, -1) < 0) {
		if (errno != EINTR) {
			return -1;
		}
	}
	if ((fds[1].revents & POLLIN) &&
	    read(reading->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		reading->cli->signal = (int)info.ssi_signo;
		errno = ECANCELED;
		return -1;
	}
	return read(reading->cli->in, buffer, size);
}

static void bad_line(struct reading *reading, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void bad_line(struct reading *reading, const char *format, ...)
{
	uint64_t number = reading->lines.number;
	char *text = NULL;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0) {
		text = NULL;
	}
	va_end(ap);
	(void)pthread_mutex_lock(&reading->adding.lock);
	reading->n_bad++;
	cli_fail(reading->cli, CLI_USAGE, RATION_INVALID_ARGUMENT, "line %" PRIu64 ": %s", number,
		 text != NULL ? text : "wrong");
	adding_list(&reading->adding, reading->bad,
		    json_pack("{s:o, s:s}", "line", json_exact((int64_t)number), "text",
			      text != NULL ? text : "wrong"));
	(void)pthread_mutex_unlock(&reading->adding.lock);
	free(text);
}

/* Something that ends the reading. */
static void fail_input(struct reading *reading, const char *what, int error)
{
	(void)pthread_mutex_lock(&reading->adding.lock);
	cli_fail(reading->cli, CLI_SYSTEM, RATION_INTERNAL,
		 "standard input, after line %" PRIu64 ": %s: %s", reading->lines.number, what,
		 strerror(error));
	(void)pthread_mutex_unlock(&reading->adding.lock);
}

/* False: there is no use in going on. */
static bool add_path(struct reading *reading, const struct line *line)
{
	struct ration_counter *counter = adding_counter(&reading->adding, line->path);
	int error = errno;
	char *why = NULL;

	if (counter != NULL) {
		ration_add(counter, line->n);
		reading->n_added++;
		return true;
	}
	if (reading->adding.client == NULL) {
		return false;
	}
	if (error != EINVAL) {
		fail_input(reading, "no counter", error);
		return false;
	}
	why = text_safe_string(ration_error());
	bad_line(reading, "%s", why != NULL ? why : "not a path");
	free(why);
	return true;
}

static bool add_line(struct reading *reading, char *text, size_t len)
{
	struct line line;
	char *word = NULL;

	switch (line_parse(text, len, &line)) {
	case LINE_OK:
		return add_path(reading, &line);
	case LINE_E_NUL:
		bad_line(reading, "a zero byte is in it; text is right, PATH N or PATH");
		break;
	case LINE_E_NUMBER:
		word = text_safe(line.number, strlen(line.number), SHOWN_MAX);
		bad_line(reading, "N '%s': %s (a line is PATH N, or PATH if no blank is in it)",
			 word != NULL ? word : "", amount_error_text(line.amount_error));
		free(word);
		break;
	case LINE_E_LONG:
		bad_line(reading, "longer than %d bytes; PATH N is shorter", LINES_MAX_BYTES);
		break;
	case LINE_E_NOTHING:
	default:
		break;
	}
	return true;
}

static void read_lines(struct reading *reading)
{
	char *text = NULL;
	size_t len = 0;
	int r = 0;
	bool go_on = true;

	while (go_on && (r = lines_next(&reading->lines, &text, &len)) > 0) {
		go_on = add_line(reading, text, len);
		if (reading->lines.number % PROGRESS_LINES == 0) {
			show_progress(reading);
		}
	}
	if (r < 0 && r != -ECANCELED) {
		fail_input(reading, "it can't be read", -r);
	}
}

static void sum_up(struct reading *reading)
{
	struct cli *cli = reading->cli;

	if (cli->signal != 0) {
		cli_note(cli, "(interrupted)");
	}
	cli_note(cli, "%" PRIu64 " lines: %" PRIu64 " added, %" PRIu64 " wrong",
		 reading->lines.number, reading->n_added, reading->n_bad);
	cli_put(cli, "lines", json_exact((int64_t)reading->lines.number));
	cli_put(cli, "added", json_exact((int64_t)reading->n_added));
	cli_put(cli, "bad", json_exact((int64_t)reading->n_bad));
	cli_put(cli, "bad_lines", json_incref(reading->bad));
	cli_put(cli, "losses", json_incref(reading->adding.losses));
}

/* An interrupt and SIGTERM, but where our parent has them ignored. Before libration's thread starts, which is to leave them to us. */
static int block_signals(sigset_t *ret_before)
{
	static const int numbers[] = { SIGINT, SIGTERM };
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sigaction action;

		if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN) {
			(void)sigaddset(&set, numbers[i]);
		}
	}
	(void)pthread_sigmask(SIG_BLOCK, &set, ret_before);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void run_lines(struct cli *cli)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	sigset_t before;

	if (reading == NULL) {
		cli->no_memory = true;
		return;
	}
	reading->cli = cli;
	reading->bad = json_array();
	reading->signals = block_signals(&before);
	lines_init(&reading->lines, read_input, reading);
	adding_init(&reading->adding, cli, /* single= */ false);
	if (adding_begin(&reading->adding) && adding_reach(&reading->adding)) {
		read_lines(reading);
		/* From here a further interrupt ends us at once. */
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (reading->adding.client != NULL) {
			(void)adding_finish(&reading->adding);
		}
		sum_up(reading);
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (reading->signals >= 0) {
		(void)close(reading->signals);
	}
	adding_deinit(&reading->adding);
	json_decref(reading->bad);
	free(reading);
}

void cmd_add(struct cli *cli, const struct args *args)
{
	if (strcmp(args->operands[0], "-") != 0) {
		run_one(cli, args);
	} else if (args->n_operands > 1) {
		cli_fail(cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			 "add: '-' takes no N; each line has its own");
	} else {
		run_lines(cli);
	}
}
