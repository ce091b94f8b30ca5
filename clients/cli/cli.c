#include "clients/cli/cli.h"

#include "clients/cli/amount.h"
#include "clients/cli/command.h"
#include "clients/cli/help.h"
#include "clients/cli/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_SOCKET "unix:/run/rationd/rationd.sock"

const struct cli_status_info cli_statuses[_CLI_STATUS_COUNT] = {
	[CLI_DONE] = { 0, "done" },
	[CLI_REFUSED] = { 1, "refused by a quota, or (get --check) over one" },
	[CLI_USAGE] = { 3, "wrong usage, or (add -, charge -, import) some lines were wrong" },
	[CLI_NO_PATH] = { 2, "no such path, or no such metric" },
	[CLI_NO_DAEMON] = { 6, "no daemon, or it did not answer in time" },
	[CLI_ANSWERED] = { 4, "the daemon answered an error" },
	[CLI_SYSTEM] = { 5,
			 "the system failed: output could not be written, input not be read, no memory" },
};

/* ---- reporting ---- */

static void clear_progress(struct cli *cli)
{
	if (cli->progress) {
		(void)fputs("\r\033[K", cli->err);
		cli->progress = false;
	}
}

void cli_fail(struct cli *cli, enum cli_status status, int code, const char *format, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0) {
		text = NULL;
		cli->no_memory = true;
	}
	va_end(ap);
	clear_progress(cli);
	(void)fprintf(cli->err, "rationctl: %s\n", text != NULL ? text : "no memory");
	if (cli_statuses[status].gravity > cli_statuses[cli->status].gravity) {
		cli->status = status;
		json_decref(cli->error);
		cli->error = json_pack("{s:i, s:s, s:s}", "status", (int)status, "code",
				       ration_code_name(code), "text",
				       text != NULL ? text : "no memory");
	}
	free(text);
}

void cli_warn(struct cli *cli, const char *format, ...)
{
	va_list ap;

	clear_progress(cli);
	(void)fputs("rationctl: ", cli->err);
	va_start(ap, format);
	(void)vfprintf(cli->err, format, ap);
	va_end(ap);
	(void)fputc('\n', cli->err);
	(void)fflush(cli->err);
}

void cli_note(struct cli *cli, const char *format, ...)
{
	va_list ap;

	if (!cli->err_terminal) {
		return;
	}
	clear_progress(cli);
	va_start(ap, format);
	(void)vfprintf(cli->err, format, ap);
	va_end(ap);
	(void)fputc('\n', cli->err);
}

#define PROGRESS_NS (200 * INT64_C(1000000))

static int64_t monotonic_ns(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void cli_progress(struct cli *cli, int64_t *at, const char *format, ...)
{
	int64_t now = 0;
	va_list ap;

	if (!cli->err_terminal) {
		return;
	}
	now = monotonic_ns();
	if (*at != 0 && now - *at < PROGRESS_NS) {
		return;
	}
	*at = now;
	(void)fputc('\r', cli->err);
	va_start(ap, format);
	(void)vfprintf(cli->err, format, ap);
	va_end(ap);
	(void)fputs("\033[K", cli->err);
	(void)fflush(cli->err);
	cli->progress = true;
}

void cli_put(struct cli *cli, const char *key, json_t *value)
{
	if (!cli->json) {
		json_decref(value);
		return;
	}
	if (cli->object == NULL) {
		cli->object = json_object();
	}
	if (json_object_set_new(cli->object, key, value) != 0) {
		cli->no_memory = true;
	}
}

void cli_list(struct cli *cli, json_t *array, json_t *item)
{
	if (!cli->json || json_array_size(array) >= CLI_LISTED_MAX) {
		json_decref(item);
	} else {
		cli->no_memory |= json_array_append_new(array, item) != 0;
	}
}

void cli_ran(struct cli *cli, int status)
{
	cli->ran = true;
	cli->ran_status = status;
	if (cli->error != NULL) {
		cli->no_memory |=
			json_object_set_new(cli->error, "status", json_integer(status)) != 0;
	}
}

/* ---- the daemon ---- */

const char *cli_socket(const struct cli *cli)
{
	const char *environment = getenv("RATIOND_SOCKET");

	if (cli->socket != NULL) {
		return cli->socket;
	}
	return environment != NULL && environment[0] != '\0' ? environment : DEFAULT_SOCKET;
}

struct ration *cli_client(struct cli *cli, const struct ration_options *options)
{
	const char *url = cli_socket(cli);
	struct ration_options leave_nothing = RATION_OPTIONS_INIT;

	if (cli->client != NULL) {
		return cli->client;
	}
	leave_nothing.session_lifetime_ms = 0;
	cli->client = ration_open(url, options != NULL ? options : &leave_nothing);
	if (cli->client == NULL && errno == EINVAL) {
		char *safe = text_safe_string(url);

		cli_fail(cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			 "'%s' is no place of a daemon; unix:PATH or tcp:HOST:PORT is right (%s)",
			 safe != NULL ? safe : "",
			 cli->socket != NULL ? "--socket" : "$RATIOND_SOCKET");
		free(safe);
	} else if (cli->client == NULL) {
		cli_fail(cli, CLI_SYSTEM, RATION_INTERNAL, "no client: %s", strerror(errno));
	}
	return cli->client;
}

char *cli_reason(const char *otherwise)
{
	const char *text = ration_error();

	return text_safe_string(text[0] != '\0' ? text : otherwise);
}

/* "no daemon at /run/x.sock: Connection refused": libration says the first part too, but not with the URL. What is left is why. */
static const char *without_place(const char *why)
{
	bool placed = strncmp(why, "no daemon at ", 13) == 0 ||
		      strncmp(why, "not connected to ", 17) == 0;
	const char *colon = placed ? strstr(why, ": ") : NULL;

	return colon != NULL ? colon + 2 : why;
}

/* There is a daemon, for it was it that said so: "the daemon refuses: RESOURCE_EXHAUSTED: ..." */
static bool is_of_the_daemon(const char *why)
{
	return strncmp(why, "the daemon ", 11) == 0;
}

void cli_answer(struct cli *cli, int r, const char *path)
{
	char *safe = path != NULL ? text_safe_string(path) : NULL;
	char *why = r > 0 ? cli_reason(ration_code_name(r)) : cli_reason(strerror(-r));
	char *url = text_safe_string(cli_socket(cli));
	char duration[AMOUNT_DURATION_BYTES];

	if (why == NULL || url == NULL || (path != NULL && safe == NULL)) {
		cli_fail(cli, CLI_SYSTEM, RATION_INTERNAL, "no memory");
	} else if (r == RATION_NOT_FOUND && path != NULL) {
		cli_fail(cli, CLI_NO_PATH, r, "no such path: %s", safe);
	} else if (r == RATION_INVALID_ARGUMENT && path != NULL) {
		cli_fail(cli, CLI_USAGE, r, "'%s': %s", safe, why);
	} else if (r > 0) {
		cli_fail(cli, CLI_ANSWERED, r, "%s%sthe daemon answered %s: %s",
			 path != NULL ? safe : "", path != NULL ? ": " : "", ration_code_name(r),
			 why);
	} else if (r == -ENOTCONN && is_of_the_daemon(without_place(why))) {
		cli_fail(cli, CLI_NO_DAEMON, RATION_UNAVAILABLE,
			 "no connection to the daemon at %s: %s", url, without_place(why));
	} else if (r == -ENOTCONN && strcmp(without_place(why), strerror(EACCES)) == 0) {
		cli_fail(cli, CLI_NO_DAEMON, RATION_UNAVAILABLE,
			 "no way to %s: %s; its owner and the members of its group may open it",
			 url, without_place(why));
	} else if (r == -ENOTCONN) {
		cli_fail(cli, CLI_NO_DAEMON, RATION_UNAVAILABLE,
			 "no daemon at %s: %s; is rationd running? --socket URL says where", url,
			 without_place(why));
	} else if (r == -ETIMEDOUT) {
		cli_fail(cli, CLI_NO_DAEMON, RATION_DEADLINE_EXCEEDED,
			 "the daemon at %s did not answer within %s; --timeout allows more", url,
			 amount_format_duration((uint64_t)cli->timeout_ms, duration));
	} else if (r == -EINVAL) {
		cli_fail(cli, CLI_USAGE, RATION_INVALID_ARGUMENT, "%s", why);
	} else if (r < 0) {
		cli_fail(cli, CLI_SYSTEM, RATION_INTERNAL, "%s", why);
	}
	free(safe);
	free(why);
	free(url);
}

void cli_view(struct cli *cli, const struct ration_view *view)
{
	cli_put(cli, "error_bound", json_exact(view->error_bound));
	cli_put(cli, "age_ms", json_exact(view->age_ms));
	if (view->error_bound != 0 && !cli->json && cli->out_terminal) {
		cli_note(cli, "(each total may be %" PRId64 " behind; --exact waits for all)",
			 view->error_bound);
	}
}

json_t *json_exact(int64_t number)
{
	char text[32];

	if (number >= -JSON_EXACT_MAX && number <= JSON_EXACT_MAX) {
		return json_integer(number);
	}
	(void)snprintf(text, sizeof(text), "%" PRId64, number);
	return json_string(text);
}

/* ---- a run ---- */

static void check_operands(struct cli *cli, const struct command *command, const struct args *args)
{
	const char *space = command->args[0] != '\0' ? " " : "";

	if (args->n_operands < command->min_operands) {
		cli_fail(cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			 "%s: an argument is missing; rationctl %s%s%s is right", command->name,
			 command->name, space, command->args);
	} else if (args->n_operands > command->max_operands) {
		const char *surplus = args->operands[command->max_operands];
		char *safe = text_safe(surplus, strlen(surplus), 64);

		cli_fail(cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			 "%s: '%s' is one argument too many; rationctl %s%s%s is right",
			 command->name, safe != NULL ? safe : "", command->name, space,
			 command->args);
		free(safe);
	}
}

static void apply_globals(struct cli *cli, const struct args *args)
{
	cli->json = cli->json || args_has(args, OPT_JSON);
	cli->socket = args_has(args, OPT_SOCKET) ? args->option[OPT_SOCKET].text : NULL;
	cli->timeout_ms = args_has(args, OPT_TIMEOUT) ? (int)args->option[OPT_TIMEOUT].number
						      : CLI_TIMEOUT_DEFAULT_MS;
}

static void run_command(struct cli *cli, int argc, char **argv, struct args *args)
{
	size_t words = 0;
	const struct command *command = NULL;

	if (argc == 0) {
		cli_fail(cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			 "a command is missing; 'rationctl help' lists them");
		return;
	}
	command = command_find(argv, (size_t)argc, &words);
	if (command == NULL) {
		/* "rationctl metric --help" has no command yet, but a plain wish. */
		if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) &&
		    help_group(cli, argv[0])) {
			return;
		}
		command_unknown(cli, argv, (size_t)argc);
		return;
	}
	if (!args_parse(cli, command->name, OPTIONS_GLOBAL | command->options,
			/* whole= */ !command->before, argc - (int)words + 1, argv + words - 1,
			args)) {
		return;
	}
	if (command->before) {
		/* A --json among the operands is not for us. */
		cli->json = args_has(args, OPT_JSON);
	}
	apply_globals(cli, args);
	if (args_has(args, OPT_HELP)) {
		help_command(cli->out, command);
		return;
	}
	check_operands(cli, command, args);
	if (cli->status == CLI_DONE) {
		command->run(cli, args);
	}
}

static void run(struct cli *cli, int argc, char **argv)
{
	struct args args = { 0 };

	/* Known before the options are read, so that an error in them is in JSON too. */
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		cli->json = cli->json || strcmp(argv[i], "--json") == 0;
	}
	if (!args_parse(cli, NULL, OPTIONS_GLOBAL | OPTION(OPT_VERSION), /* whole= */ false, argc,
			argv, &args)) {
		return;
	}
	apply_globals(cli, &args);
	if (args_has(&args, OPT_HELP)) {
		help_all(cli->out);
	} else if (args_has(&args, OPT_VERSION)) {
		cmd_version(cli, &args);
	} else {
		run_command(cli, (int)args.n_operands, args.operands, &args);
	}
	args_deinit(&args);
}

/* Print the one object of --json. Help is the exception: it stays text. */
static void print_object(struct cli *cli)
{
	if (cli->error != NULL) {
		cli_put(cli, "error", json_incref(cli->error));
	}
	if (cli->object != NULL &&
	    (json_dumpf(cli->object, cli->out, 0) != 0 || fputc('\n', cli->out) == EOF) &&
	    !ferror(cli->out)) {
		cli->no_memory = true;
	}
}

int cli_run(struct cli *cli, int argc, char **argv)
{
	run(cli, argc, argv);
	if (cli->client != NULL) {
		(void)ration_close(cli->client, 0, NULL);
		cli->client = NULL;
	}
	clear_progress(cli);
	if (cli->json) {
		print_object(cli);
	}
	/* A reader that has had enough (EPIPE) is no failure. */
	errno = 0;
	if ((fflush(cli->out) != 0 || ferror(cli->out)) && errno != EPIPE) {
		cli_fail(cli, CLI_SYSTEM, RATION_INTERNAL, "output could not be written: %s",
			 errno != 0 ? strerror(errno) : "it failed earlier");
	}
	if (cli->no_memory) {
		cli_fail(cli, CLI_SYSTEM, RATION_INTERNAL, "no memory");
	}
	json_decref(cli->object);
	json_decref(cli->error);
	cli->object = NULL;
	cli->error = NULL;
	return cli->ran ? cli->ran_status : (int)cli->status;
}
