#include "clients/cli/input.h"

#include "clients/cli/text.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define PROGRESS_LINES 256
#define SHOWN_MAX 64 /* bytes of a word that is wrong */

static void lock(struct input *input)
{
	if (input->lock != NULL) {
		(void)pthread_mutex_lock(input->lock);
	}
}

static void unlock(struct input *input)
{
	if (input->lock != NULL) {
		(void)pthread_mutex_unlock(input->lock);
	}
}

static void show_progress(struct input *input)
{
	lock(input);
	cli_progress(input->cli, &input->progress_at, "%" PRIu64 " lines, %" PRIu64 " wrong",
		     input->lines.number, input->n_bad);
	unlock(input);
}

/* read(2) that a signal ends, with ECANCELED. */
static ssize_t read_input(void *ctx, void *buffer, size_t size)
{
	struct input *input = ctx;
	struct pollfd fds[] = { { input->fd, POLLIN, 0 }, { input->signals, POLLIN, 0 } };
	struct signalfd_siginfo info;

	show_progress(input);
	(void)fflush(input->cli->out);
	while (poll(fds, 2, -1) < 0) {
		if (errno != EINTR) {
			return -1;
		}
	}
	if ((fds[1].revents & POLLIN) &&
	    read(input->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		input->cli->signal = (int)info.ssi_signo;
		errno = ECANCELED;
		return -1;
	}
	return read(input->fd, buffer, size);
}

/* An interrupt and SIGTERM, but where our parent has them ignored. */
static int block_signals(void)
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
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

struct input *input_new(struct cli *cli, pthread_mutex_t *mutex, bool catch_signals)
{
	struct input *input = calloc(1, sizeof(*input));

	if (input == NULL) {
		cli->no_memory = true;
		return NULL;
	}
	input->cli = cli;
	input->fd = cli->in;
	input->name = "standard input";
	input->lock = mutex;
	input->bad = json_array();
	(void)pthread_sigmask(SIG_BLOCK, NULL, &input->before);
	input->signals = catch_signals ? block_signals() : -1;
	lines_init(&input->lines, read_input, input);
	return input;
}

void input_from(struct input *input, int fd, const char *name)
{
	input->fd = fd;
	input->name = name;
}

void input_release(struct input *input)
{
	(void)pthread_sigmask(SIG_SETMASK, &input->before, NULL);
}

struct input *input_free(struct input *input)
{
	if (input != NULL) {
		input_release(input);
		if (input->signals >= 0) {
			(void)close(input->signals);
		}
		json_decref(input->bad);
		free(input);
	}
	return NULL;
}

void input_bad(struct input *input, const char *format, ...)
{
	uint64_t number = input->lines.number;
	char *text = NULL;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0) {
		text = NULL;
	}
	va_end(ap);
	lock(input);
	input->n_bad++;
	cli_fail(input->cli, CLI_USAGE, RATION_INVALID_ARGUMENT, "line %" PRIu64 ": %s", number,
		 text != NULL ? text : "wrong");
	cli_list(input->cli, input->bad,
		 json_pack("{s:o, s:s}", "line", json_exact((int64_t)number), "text",
			   text != NULL ? text : "wrong"));
	unlock(input);
	free(text);
}

void input_fail(struct input *input, const char *what, int error)
{
	char *name = text_safe_string(input->name);

	lock(input);
	cli_fail(input->cli, CLI_SYSTEM, RATION_INTERNAL, "%s, after line %" PRIu64 ": %s: %s",
		 name != NULL ? name : "", input->lines.number, what, strerror(error));
	unlock(input);
	free(name);
}

/* Is it a line to work on? What is wrong with one is reported. */
static bool parse(struct input *input, char *text, size_t len, struct line *ret_line)
{
	char *word = NULL;

	switch (line_parse(text, len, ret_line)) {
	case LINE_OK:
		return true;
	case LINE_E_NUL:
		input_bad(input, "a zero byte is in it; text is right, PATH N or PATH");
		break;
	case LINE_E_NUMBER:
		word = text_safe(ret_line->number, strlen(ret_line->number), SHOWN_MAX);
		input_bad(input, "N '%s': %s (a line is PATH N, or PATH if no blank is in it)",
			  word != NULL ? word : "", amount_error_text(ret_line->amount_error));
		free(word);
		break;
	case LINE_E_LONG:
		input_bad(input, "longer than %d bytes; PATH N is shorter", LINES_MAX_BYTES);
		break;
	case LINE_E_NOTHING:
	default:
		break;
	}
	return false;
}

bool input_next_text(struct input *input, char **ret_text, size_t *ret_len)
{
	int r = lines_next(&input->lines, ret_text, ret_len);

	if (r > 0 && input->lines.number % PROGRESS_LINES == 0) {
		show_progress(input);
	}
	if (r < 0 && r != -ECANCELED) {
		input_fail(input, "it can't be read", -r);
	}
	return r > 0;
}

bool input_next(struct input *input, struct line *ret_line)
{
	char *text = NULL;
	size_t len = 0;

	while (input_next_text(input, &text, &len)) {
		if (parse(input, text, len, ret_line)) {
			return true;
		}
	}
	return false;
}
