#pragma once
/*
 * input: lines from standard input or a file, of PATH N or others, for commands that read them: wrong ones are reported by number, a signal ends the
 * reading so that what was read is not lost, and progress is shown to people.
 *
 * Thread safety: one thread. If others use `cli` too they do so with `lock` held, and so does this.
 */
#include "clients/cli/cli.h"
#include "clients/cli/lines.h"

#include <pthread.h>
#include <signal.h>

struct input {
	struct cli *cli;
	int fd; /* standard input, or another */
	const char *name;
	pthread_mutex_t *lock; /* NULL: nobody else uses `cli` */
	int signals;	       /* a signalfd, or -1 */
	sigset_t before;       /* what was blocked */
	json_t *bad;	       /* wrong lines, for --json */
	uint64_t n_bad;
	int64_t progress_at;
	struct lines lines;
};

/*
 * catch_signals: an interrupt or SIGTERM ends the reading and sets cli->signal, until input_release. Before libration's thread starts,
 * which is to leave them to us. NULL: no memory, which was noted.
 */
struct input *input_new(struct cli *cli, pthread_mutex_t *mutex, bool catch_signals);
struct input *input_free(struct input *input);

/*
 * The next line that is right; valid until the next call. Standard output is flushed before it waits for more. False: the end, a signal,
 * or a failure, which was reported.
 */
bool input_next(struct input *input, struct line *ret_line);

/* The next line, whatever it is; as lines_next has it. */
bool input_next_text(struct input *input, char **ret_text, size_t *ret_len);

/* Read from there instead of standard input. Before the first line. */
void input_from(struct input *input, int fd, const char *name);

/* The last line is wrong after all. */
void input_bad(struct input *input, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Something that ends the reading. `error`: an errno. */
void input_fail(struct input *input, const char *what, int error);

/* From here on a signal does what it does to any process. */
void input_release(struct input *input);
