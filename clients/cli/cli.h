#pragma once
/*
 * cli: what every command of rationctl works with: where it reads and writes, how it reports what went wrong, and the client.
 *
 * A command reports each failure with cli_fail and goes on or returns, as it sees fit; the exit status is the gravest status
 * reported. With --json a run prints exactly one object; it has a member "error" if and only if the exit status is not 0.
 *
 * Thread safety: one thread, except where a function says otherwise.
 */
#include <jansson.h>
#include <ration.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses; `cli_statuses` has the words for each. */
enum cli_status {
	CLI_DONE = 0,
	CLI_REFUSED = 1,   /* by a quota */
	CLI_USAGE = 2,	   /* wrong usage, or bad input lines */
	CLI_NO_PATH = 3,   /* no such path */
	CLI_NO_DAEMON = 4, /* not there, or no answer in time */
	CLI_ANSWERED = 5,  /* the daemon answered an error */
	CLI_SYSTEM = 6,	   /* output can't be written, input can't be read, no memory */
	_CLI_STATUS_COUNT,
};

struct cli_status_info {
	int gravity; /* of several, the gravest is the exit status */
	const char *meaning;
};
extern const struct cli_status_info cli_statuses[_CLI_STATUS_COUNT];

#define CLI_TIMEOUT_DEFAULT_MS 10000

struct cli {
	int in;
	FILE *out;
	FILE *err;
	bool in_terminal;
	bool out_terminal;
	bool err_terminal;
	bool utf8; /* the locale's */

	int watch_ms; /* how often run looks for the daemon; 0: as cmd_run.c says */

	bool json;
	const char *socket; /* NULL: libration's default */
	int timeout_ms;

	struct ration *client;
	json_t *object; /* with --json: what will be printed */
	json_t *error;	/* the gravest so far */
	enum cli_status status;
	bool progress; /* a progress line stands on `err` */
	bool no_memory;
	int signal; /* not 0: it ended the run, and is to end the process too, once all is delivered and printed */
	bool ran; /* the COMMAND of run, or in vain: the exit status is not ours but `ran_status` */
	int ran_status;
};

/* Run one command line. argv[0] is the program's name. Returns the exit status; prints all there is to print. */
int cli_run(struct cli *cli, int argc, char **argv);

/* Report on `err`, as "rationctl: TEXT", and remember for the exit status and "error". `code`: an enum ration_code. */
void cli_fail(struct cli *cli, enum cli_status status, int code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* One line on `err`, as "rationctl: TEXT", of what is no failure: for scripts' logs as for people. */
void cli_warn(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One line on `err` for people alone: nothing where `err` is not a terminal. */
void cli_note(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * How far a long run is, in one line on `err` that the next one replaces, for people alone, and a few times a second at most. *at is 0 at first.
 */
void cli_progress(struct cli *cli, int64_t *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Add a member to the object; takes the reference. Does nothing (but to drop `value`) without --json. */
void cli_put(struct cli *cli, const char *key, json_t *value);

/* Append to a list for --json, as long as it is short: of lines of input there may be any number. Takes the reference. */
#define CLI_LISTED_MAX 100
void cli_list(struct cli *cli, json_t *array, json_t *item);

/* The exit status is that of another command, or 126 or 127 for one that could not be run. */
void cli_ran(struct cli *cli, int status);

/* An integer as JSON readers everywhere keep it exact: up to 2^53 an integer, above a string. NULL: no memory. */
#define JSON_EXACT_MAX (INT64_C(1) << 53)
json_t *json_exact(int64_t number);

/* ---- the daemon ---- */

/*
 * The client of this run, opened at the first call. NULL: reported. `options` counts at the first call alone; NULL: a session that ends
 * with its connection, so that a command leaves nothing behind.
 */
struct ration *cli_client(struct cli *cli, const struct ration_options *options);

/* How messages call the daemon's place: the --socket, or what libration takes without one. */
const char *cli_socket(const struct cli *cli);

/* Report what a libration function returned if it is not 0. `path`: what it was about, or NULL. */
void cli_answer(struct cli *cli, int r, const char *path);

/* What libration said of its last failure, made safe, or `otherwise`. To be freed; NULL: no memory. */
char *cli_reason(const char *otherwise);

/* How far an answer may be off: members error_bound and age_ms with --json, a note for people else. */
void cli_view(struct cli *cli, const struct ration_view *view);
