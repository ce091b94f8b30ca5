#include "clients/cli/command.h"

#include "clients/cli/record.h"

#include <inttypes.h>
#include <time.h>

struct exporting {
	struct cli *cli;
	uint64_t n_lines;
	uint64_t n_counters;
	int64_t progress_at;
};

/* Takes the line. False: there is no use in going on. */
static bool put(struct exporting *exporting, json_t *line)
{
	struct cli *cli = exporting->cli;
	bool good = line != NULL && json_dumpf(line, cli->out, JSON_COMPACT) == 0 &&
		    fputc('\n', cli->out) != EOF;

	/* Output that fails is reported at the end of the run. */
	if (!good && !ferror(cli->out)) {
		cli->no_memory = true;
	}
	json_decref(line);
	exporting->n_lines++;
	return good;
}

static void put_metric(void *ctx, const char *name, const struct ration_metric *metric)
{
	(void)put(ctx, record_metric(name, metric));
}

static void put_rule(void *ctx, const struct ration_rule *rule)
{
	(void)put(ctx, record_quota(rule));
}

static bool put_counter(void *ctx, const struct ration_entry *entry)
{
	struct exporting *exporting = ctx;

	exporting->n_counters++;
	cli_progress(exporting->cli, &exporting->progress_at, "%" PRIu64 " counters",
		     exporting->n_counters);
	return put(exporting, record_counter(entry->path, entry->value.own));
}

void cmd_export(struct cli *cli, const struct args *args)
{
	struct exporting exporting = { .cli = cli };
	struct ration *client = cli_client(cli, NULL);
	int r = 0;

	(void)args;
	if (client == NULL) {
		return;
	}
	/* Before the first line: that a daemon is not there is no beginning of an export. */
	r = ration_get(client, NULL, 0, RATION_CACHED, cli->timeout_ms, NULL, NULL);
	if (r == 0) {
		(void)put(&exporting, record_head((int64_t)time(NULL)));
		r = ration_metric_list(client, cli->timeout_ms, put_metric, &exporting);
	}
	if (r == 0) {
		r = ration_quota_list(client, cli->timeout_ms, put_rule, &exporting);
	}
	if (r == 0) {
		r = ration_walk(client, NULL, UINT32_MAX, RATION_EXACT, cli->timeout_ms,
				put_counter, &exporting, NULL);
	}
	cli_answer(cli, r, NULL);
	if (r == 0 && !cli->no_memory && !ferror(cli->out)) {
		(void)put(&exporting, record_end(exporting.n_lines));
		cli_note(cli, "%" PRIu64 " counters", exporting.n_counters);
	}
}
