#pragma once
/*
 * run: one rationctl command line within the test, and what came out of it.
 */
#include "clients/cli/cli.h"

struct run {
	int status;
	char *out;
	char *err;
};

struct run_setting {
	const char *input; /* NULL: no standard input */
	size_t input_len;  /* 0: strlen(input) */
	bool terminal;	   /* all three are one, with UTF-8 */
	int watch_ms;	   /* as in struct cli */
};

/* words: the command line after "rationctl", NULL at the end. The last result is freed by the next run, or run_free. */
const struct run *run_words(const struct run_setting *setting, const char *const *words);
void run_free(void);

/* For cmocka: a fake libration that knows nothing. At the end every client that was opened must be closed. */
int run_setup(void **state);
int run_teardown(void **state);

#define RUN(...) run_words(NULL, (const char *const[]){ __VA_ARGS__, NULL })
#define RUN_INPUT(text, ...)                                \
	run_words(&(struct run_setting){ .input = (text) }, \
		  (const char *const[]){ __VA_ARGS__, NULL })
#define RUN_TERMINAL(text, ...)                                               \
	run_words(&(struct run_setting){ .input = (text), .terminal = true }, \
		  (const char *const[]){ __VA_ARGS__, NULL })

/* The three at once: what is printed is part of the interface. */
#define assert_run(run_, status_, out_, err_)            \
	do {                                             \
		const struct run *got_ = run_;           \
		assert_string_equal(got_->err, err_);    \
		assert_string_equal(got_->out, out_);    \
		assert_int_equal(got_->status, status_); \
	} while (0)
