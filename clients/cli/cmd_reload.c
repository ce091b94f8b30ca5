#include "clients/cli/command.h"

#include "clients/cli/text.h"

#include <stdlib.h>

struct found {
	struct cli *cli;
	json_t *notes; /* for --json */
	bool errors;   /* at least one, and they were reported */
};

static void take(void *ctx, const struct ration_finding *finding)
{
	struct found *found = ctx;
	char *text = text_safe_string(finding->text);

	if (text == NULL) {
		found->cli->no_memory = true;
	} else if (finding->error) {
		found->errors = true;
		cli_fail(found->cli, CLI_ANSWERED, RATION_INVALID_ARGUMENT, "%s", text);
	} else {
		cli_warn(found->cli, "%s", text);
		cli_list(found->cli, found->notes, json_string(text));
	}
	free(text);
}

void cmd_reload(struct cli *cli, const struct args *args)
{
	struct ration *client = cli_client(cli, NULL);
	struct found found = { .cli = cli };
	int r;

	(void)args;
	if (client == NULL) {
		return;
	}
	found.notes = json_array();
	r = ration_reload(client, cli->timeout_ms, take, &found);
	if (!found.errors) {
		cli_answer(cli, r, NULL);
	}
	cli_put(cli, "reloaded", json_boolean(r == 0));
	if (json_array_size(found.notes) > 0) {
		cli_put(cli, "notes", json_incref(found.notes));
	}
	json_decref(found.notes);
}
