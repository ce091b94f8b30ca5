#include "clients/cli/charging.h"

#include "clients/cli/amount.h"
#include "clients/cli/limits.h"
#include "clients/cli/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CHARGE_MAX (INT64_C(1) << 62)

void charging_init(struct charging *charging, struct cli *cli, const char *command)
{
	*charging = (struct charging){ .cli = cli, .command = command };
}

void charging_deinit(struct charging *charging)
{
	for (size_t i = 0; i < charging->n; i++) {
		free((char *)charging->items[i].path);
	}
	free(charging->items);
	charging->items = NULL;
	charging->n = 0;
}

/* ---- what is to be charged ---- */

bool charging_amount(struct cli *cli, const char *command, const char *text, int64_t *ret_n)
{
	int64_t n = 0;
	enum amount_error error = amount_parse(text, &n);
	char *safe = NULL;

	if (error == AMOUNT_OK && n >= 1 && n <= CHARGE_MAX) {
		*ret_n = n;
		return true;
	}
	safe = text_safe_string(text);
	if (error != AMOUNT_OK) {
		cli_fail(cli, CLI_USAGE, RATION_INVALID_ARGUMENT, "%s: N '%s': %s", command,
			 safe != NULL ? safe : "", amount_error_text(error));
	} else {
		cli_fail(cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			 "%s: N '%s': out of range; 1 .. %" PRId64 " is right", command,
			 safe != NULL ? safe : "", CHARGE_MAX);
	}
	free(safe);
	return false;
}

bool charging_add(struct charging *charging, const char *path, size_t len, int64_t n)
{
	struct ration_charge_item *items =
		reallocarray(charging->items, charging->n + 1, sizeof(*items));
	char *copy = strndup(path, len);

	if (items != NULL) {
		charging->items = items;
	}
	if (items == NULL || copy == NULL) {
		free(copy);
		charging->cli->no_memory = true;
		return false;
	}
	items[charging->n++] = (struct ration_charge_item){ .path = copy, .amount = n };
	return true;
}

static bool begins_number(const char *word)
{
	return (*word >= '0' && *word <= '9') || *word == '-' || *word == '+';
}

bool charging_words(struct charging *charging, char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *path = words[i];
		int64_t amount = 1;

		if (i + 1 < n && begins_number(words[i + 1]) &&
		    !charging_amount(charging->cli, charging->command, words[++i], &amount)) {
			return false;
		}
		if (!charging_add(charging, path, strlen(path), amount)) {
			return false;
		}
	}
	return true;
}

bool charging_option(struct charging *charging, const char *text)
{
	const char *colon = strrchr(text, ':');
	int64_t amount = 1;

	if (colon != NULL &&
	    !charging_amount(charging->cli, charging->command, colon + 1, &amount)) {
		return false;
	}
	return charging_add(charging, text, colon != NULL ? (size_t)(colon - text) : strlen(text),
			    amount);
}

struct ration_charge_options charging_options(const struct args *args)
{
	struct ration_charge_options options = RATION_CHARGE_OPTIONS_INIT;

	options.dry_run = args_has(args, OPT_DRY_RUN);
	if (args_has(args, OPT_WAIT)) {
		options.wait_ms = args->option[OPT_WAIT].text != NULL
					  ? (uint32_t)args->option[OPT_WAIT].number
					  : UINT32_MAX;
	}
	return options;
}

/* ---- the answer ---- */

void charging_answer(struct cli *cli, int r, const char *subject)
{
	char *why = NULL;

	if (r != RATION_NOT_FOUND && r != RATION_INVALID_ARGUMENT) {
		cli_answer(cli, r, NULL);
		return;
	}
	why = cli_reason(ration_code_name(r));
	cli_fail(cli, r == RATION_NOT_FOUND ? CLI_NO_PATH : CLI_USAGE, r, "%s: %s", subject,
		 why != NULL ? why : "no memory");
	free(why);
}

/* How messages call what was to be charged. To be freed. */
static char *name(const struct charging *charging)
{
	char *path = NULL;
	char *text = NULL;
	int r = 0;

	if (charging->n == 1) {
		path = text_safe_string(charging->items[0].path);
		r = asprintf(&text, "%s %" PRId64, path != NULL ? path : "",
			     charging->items[0].amount);
		free(path);
	} else {
		r = asprintf(&text, "these %zu together", charging->n);
	}
	return r >= 0 ? text : NULL;
}

static void report(struct cli *cli, const char *subject, const struct ration_charge_result *result)
{
	for (size_t i = 0; i < result->n_bindings; i++) {
		char *text = limits_binding(&result->bindings[i]);

		if (limits_refuses(&result->bindings[i])) {
			cli_fail(cli, CLI_REFUSED, RATION_RESOURCE_EXHAUSTED, "%s: %s", subject,
				 text != NULL ? text : "refused");
		} else {
			cli_warn(cli, "%s: %s", subject, text != NULL ? text : "limits");
		}
		free(text);
	}
	if (!result->granted && cli->status == CLI_DONE) {
		cli_fail(cli, CLI_REFUSED, RATION_RESOURCE_EXHAUSTED, "%s: refused", subject);
	}
	if (result->n_omitted > 0) {
		cli_warn(cli, "%s: and %" PRIu32 " more limits", subject, result->n_omitted);
	}
}

static void put(const struct charging *charging, int r, const struct ration_charge_result *result)
{
	struct cli *cli = charging->cli;
	json_t *items = json_array();

	for (size_t i = 0; i < charging->n; i++) {
		char *path = text_safe_string(charging->items[i].path);
		json_t *item = json_pack("{s:s, s:o}", "path", path, "n",
					 json_exact(charging->items[i].amount));

		cli->no_memory |= json_array_append_new(items, item) != 0;
		free(path);
	}
	cli_put(cli, "granted", json_boolean(r == 0));
	cli_put(cli, "items", items);
	cli_put(cli, "bindings", limits_bindings_array(result));
	cli_put(cli, "omitted", json_integer(result != NULL ? result->n_omitted : 0));
}

int charging_charge(const struct charging *charging, struct ration *client,
		    const struct ration_charge_options *options)
{
	struct cli *cli = charging->cli;
	struct ration_charge_result *result = NULL;
	char *subject = name(charging);
	int r = 0;

	if (subject == NULL) {
		cli->no_memory = true;
		return RATION_INTERNAL;
	}
	r = ration_charge(client, charging->items, charging->n, options, cli->timeout_ms, &result);
	if (result != NULL) {
		report(cli, subject, result);
	} else {
		charging_answer(cli, r, subject);
	}
	if (r == 0 || result != NULL) {
		put(charging, r, result);
	}
	ration_charge_result_free(result);
	free(subject);
	return r;
}
