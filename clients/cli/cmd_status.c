#include "clients/cli/command.h"

#include "clients/cli/table.h"
#include "clients/cli/text.h"

#include <inttypes.h>
#include <stdlib.h>

struct items {
	struct cli *cli;
	struct table table;
	json_t *object;
};

static void put(struct items *items, const struct ration_status_item *item)
{
	char *text = item->text != NULL ? text_safe_string(item->text) : NULL;
	json_t *value = item->text != NULL ? json_string(text) : json_exact(item->number);

	items->cli->no_memory |= json_object_set_new(items->object, item->name, value) != 0;
	free(text);
}

static void take(void *ctx, const struct ration_status_item *item)
{
	struct items *items = ctx;
	char *text = NULL;

	if (items->cli->json) {
		put(items, item);
		return;
	}
	table_cell(&items->table, "%s", item->name);
	if (item->text != NULL) {
		text = text_safe_string(item->text);
		table_cell(&items->table, "%s", text != NULL ? text : "");
		free(text);
	} else {
		table_cell(&items->table, "%" PRId64, item->number);
	}
	table_cell(&items->table, "%s", item->help != NULL ? item->help : "");
}

void cmd_status(struct cli *cli, const struct args *args)
{
	struct ration *client = cli_client(cli, NULL);
	struct items items = { .cli = cli };
	int r = 0;

	(void)args;
	if (client == NULL) {
		return;
	}
	items.object = json_object();
	table_init(&items.table, "lrl");
	r = ration_status(client, cli->timeout_ms, take, &items);
	cli_answer(cli, r, NULL);
	if (r == 0 && cli->json) {
		cli_put(cli, "status", json_incref(items.object));
	} else if (r == 0) {
		cli->no_memory |= !table_print(&items.table, cli->out);
	}
	json_decref(items.object);
	table_deinit(&items.table);
}
