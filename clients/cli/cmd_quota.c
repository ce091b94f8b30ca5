#include "clients/cli/command.h"

#include "clients/cli/limits.h"
#include "clients/cli/text.h"

#include <stdlib.h>

/* ---- quota set ---- */

/* The limits that the options say. False: reported. */
static bool read_limits(struct cli *cli, const struct args *args, struct ration_limits *ret_limits)
{
	struct ration_limits limits = RATION_LIMITS_INIT;
	bool any = args_has(args, OPT_MAX) || args_has(args, OPT_HIGH) || args_has(args, OPT_LOW) ||
		   args_has(args, OPT_MIN);

	if (args_has(args, OPT_RATE) != args_has(args, OPT_BURST)) {
		cli_fail(cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			 "quota set: --rate N/D and --burst N go together; %s is missing",
			 args_has(args, OPT_RATE) ? "--burst" : "--rate");
		return false;
	}
	if (!any && !args_has(args, OPT_RATE)) {
		cli_fail(
			cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			"quota set: a limit is missing; one of --max, --high, --low, --min or --rate is right");
		return false;
	}
	if (args_has(args, OPT_PER)) {
		limits.window.kind = RATION_PER;
		limits.window.duration_ms = (uint64_t)args->option[OPT_PER].number;
	} else if (args_has(args, OPT_CALENDAR)) {
		limits.window.kind = RATION_CALENDAR;
		limits.window.unit = (enum ration_window_unit)args->option[OPT_CALENDAR].number;
	} else if (args_has(args, OPT_RATE)) {
		limits.window.kind = RATION_RATE;
		limits.rate = args->option[OPT_RATE].number;
		limits.per_ms = (uint64_t)args->option[OPT_RATE].per_ms;
		limits.burst = args->option[OPT_BURST].number;
	}
	limits.has_max = args_has(args, OPT_MAX);
	limits.max = args->option[OPT_MAX].number;
	limits.has_high = args_has(args, OPT_HIGH);
	limits.high = args->option[OPT_HIGH].number;
	limits.low = args->option[OPT_LOW].number;
	limits.min = args->option[OPT_MIN].number;
	limits.shadow = args_has(args, OPT_SHADOW);
	*ret_limits = limits;
	return true;
}

struct notes {
	struct cli *cli;
	json_t *list;
};

static void take_note(void *ctx, const char *text)
{
	struct notes *notes = ctx;
	char *safe = text_safe_string(text);

	cli_warn(notes->cli, "note: %s", safe != NULL ? safe : "");
	cli_list(notes->cli, notes->list, json_string(safe));
	free(safe);
}

void cmd_quota_set(struct cli *cli, const struct args *args)
{
	const char *pattern = args->operands[0];
	struct notes notes = { .cli = cli };
	struct ration_limits limits;
	struct ration *client = NULL;
	int r = 0;

	if (!read_limits(cli, args, &limits) || (client = cli_client(cli, NULL)) == NULL) {
		return;
	}
	notes.list = json_array();
	r = ration_quota_set(client, pattern, &limits, cli->timeout_ms, take_note, &notes);
	if (r == RATION_INVALID_ARGUMENT) {
		/* The daemon's text names the pattern. */
		char *why = cli_reason(ration_code_name(r));

		cli_fail(cli, CLI_USAGE, r, "quota set: %s", why != NULL ? why : "");
		free(why);
	} else {
		cli_answer(cli, r, pattern);
	}
	if (r == 0) {
		cli_put(cli, "rule", limits_rule(&limits, pattern));
		cli_put(cli, "notes", json_incref(notes.list));
	}
	json_decref(notes.list);
}

/* ---- quota remove ---- */

/* The window that the options say; NULL: all. */
static const struct ration_window *read_window(const struct args *args,
					       struct ration_window *window)
{
	*window = (struct ration_window){ RATION_NO_WINDOW, RATION_DAY, 0 };
	if (args_has(args, OPT_PER)) {
		window->kind = RATION_PER;
		window->duration_ms = (uint64_t)args->option[OPT_PER].number;
	} else if (args_has(args, OPT_CALENDAR)) {
		window->kind = RATION_CALENDAR;
		window->unit = (enum ration_window_unit)args->option[OPT_CALENDAR].number;
	} else if (args_has(args, OPT_WINDOW)) {
		window->kind =
			args->option[OPT_WINDOW].number == 0 ? RATION_NO_WINDOW : RATION_RATE;
	} else {
		return NULL;
	}
	return window;
}

void cmd_quota_remove(struct cli *cli, const struct args *args)
{
	const char *pattern = args->operands[0];
	struct ration_window space;
	const struct ration_window *window = read_window(args, &space);
	struct ration *client = cli_client(cli, NULL);
	char text[RATION_WINDOW_TEXT];
	char *safe = NULL;
	int r = 0;

	if (client == NULL) {
		return;
	}
	r = ration_quota_remove(client, pattern, window, cli->timeout_ms);
	safe = text_safe_string(pattern);
	if (r == RATION_NOT_FOUND) {
		cli_fail(cli, CLI_NO_PATH, r, "%s: no limits%s%s were set at run time",
			 safe != NULL ? safe : "",
			 window != NULL && window->kind == RATION_NO_WINDOW ? " without a window"
			 : window != NULL				    ? " of the window "
									    : "",
			 window != NULL ? ration_window_text(window, text, sizeof(text)) : "");
	} else {
		cli_answer(cli, r, pattern);
	}
	if (r == 0) {
		cli_put(cli, "removed", json_string(safe));
	}
	free(safe);
}
