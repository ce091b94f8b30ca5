#include "clients/cli/adding.h"

#include "clients/cli/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void adding_init(struct adding *adding, struct cli *cli, bool single, bool durable)
{
	*adding = (struct adding){
		.cli = cli,
		.single = single,
		.durable = durable,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.losses = json_array(),
		.gauges = json_object(),
	};
}

void adding_deinit(struct adding *adding)
{
	/* It reports its losses to us, so it goes first. */
	if (adding->client != NULL) {
		(void)pthread_mutex_lock(&adding->lock);
		adding->closing = true;
		(void)pthread_mutex_unlock(&adding->lock);
		(void)ration_close(adding->client, 0, NULL);
		adding->client = NULL;
		adding->cli->client = NULL;
	}
	json_decref(adding->losses);
	json_decref(adding->gauges);
	(void)pthread_mutex_destroy(&adding->lock);
}

/* ---- what was not counted ---- */

static void on_loss(void *ctx, const struct ration_loss *loss)
{
	struct adding *adding = ctx;
	char *path = text_safe_string(loss->path);
	char *text = text_safe_string(loss->text);

	(void)pthread_mutex_lock(&adding->lock);
	adding->n_losses++;
	if (!adding->closing) {
		cli_fail(adding->cli, CLI_ANSWERED, loss->code,
			 "not counted: %s %" PRId64 ": the daemon answered %s: %s",
			 path != NULL ? path : "", loss->amount, ration_code_name(loss->code),
			 text != NULL ? text : "");
	}
	cli_list(adding->cli, adding->losses,
		 json_pack("{s:s, s:o, s:s, s:s}", "path", path, "n", json_exact(loss->amount),
			   "code", ration_code_name(loss->code), "text", text));
	(void)pthread_mutex_unlock(&adding->lock);
	free(path);
	free(text);
}

/* ---- the connection ---- */

bool adding_begin(struct adding *adding)
{
	struct ration_options options = RATION_OPTIONS_INIT;

	if (adding->single) {
		options.session_lifetime_ms = 0;
	}
	options.on_loss = on_loss;
	options.ctx = adding;
	adding->client = cli_client(adding->cli, &options);
	return adding->client != NULL;
}

bool adding_reach(struct adding *adding)
{
	int r = ration_get(adding->client, NULL, 0, RATION_CACHED, adding->cli->timeout_ms, NULL,
			   NULL);

	cli_answer(adding->cli, r, NULL);
	return r == 0;
}

bool adding_finish(struct adding *adding)
{
	uint64_t undelivered = 0;
	int r = adding->durable ? ration_flush_durable(adding->client, adding->cli->timeout_ms)
				: ration_flush(adding->client, adding->cli->timeout_ms);
	char *url = NULL;

	/* Who adds and then gets is to see it, though a fresh read may be behind. What is durable is folded. */
	if (r == 0 && !adding->durable) {
		r = ration_fold(adding->client, adding->cli->timeout_ms);
	}

	(void)pthread_mutex_lock(&adding->lock);
	cli_answer(adding->cli, r, NULL);
	adding->closing = true;
	(void)pthread_mutex_unlock(&adding->lock);

	(void)ration_close(adding->client, 0, &undelivered);
	adding->client = NULL;
	adding->cli->client = NULL;
	adding->closing = false;
	if (undelivered > 0) {
		url = text_safe_string(cli_socket(adding->cli));
		cli_fail(
			adding->cli, CLI_NO_DAEMON, RATION_UNAVAILABLE,
			"%" PRIu64
			" of what was added (in magnitude) is not confirmed by the daemon at %s, and may be missing",
			undelivered, url != NULL ? url : "");
		free(url);
	}
	return r == 0 && undelivered == 0;
}

struct ration_counter *adding_counter(struct adding *adding, const char *path)
{
	struct ration_counter *counter = ration_counter(adding->client, path);

	if (counter == NULL && errno == ENOSPC && adding_finish(adding) && adding_begin(adding)) {
		counter = ration_counter(adding->client, path);
	}
	return counter;
}

/* ---- what may go down ---- */

/* False: reported. */
static bool ask_kind(struct adding *adding, const char *name, bool *ret_gauge)
{
	struct ration_metric metric = RATION_METRIC_INIT;
	json_t *known = json_object_get(adding->gauges, name);
	int r = 0;

	if (known != NULL) {
		*ret_gauge = json_is_true(known);
		return true;
	}
	r = ration_metric_get(adding->client, name, adding->cli->timeout_ms, &metric);
	if (r != 0 && r != RATION_NOT_FOUND) {
		(void)pthread_mutex_lock(&adding->lock);
		cli_answer(adding->cli, r, name);
		(void)pthread_mutex_unlock(&adding->lock);
		return false;
	}
	*ret_gauge = r == 0 && metric.kind == RATION_GAUGE;
	(void)json_object_set_new_nocheck(adding->gauges, name, json_boolean(*ret_gauge));
	return true;
}

static char *only_grows(const char *path, const char *name, int64_t n)
{
	char *safe_path = text_safe_string(path), *safe_name = text_safe_string(name), *why = NULL;

	if (safe_path == NULL || safe_name == NULL ||
	    asprintf(&why,
		     "%" PRId64
		     " at %s: %s is a counter, which only grows; declare it a gauge before it is counted "
		     "(rationctl metric set %s --kind gauge), or add N of 0 and above",
		     n, safe_path, safe_name, safe_name) < 0) {
		why = NULL;
	}
	free(safe_path);
	free(safe_name);
	return why;
}

bool adding_allowed(struct adding *adding, const char *path, int64_t n, char **ret_why)
{
	bool gauge = true, known = true;
	char *name = NULL, *why = NULL;

	if (n < 0) {
		name = strndup(path, strcspn(path, "/"));
		known = name != NULL && ask_kind(adding, name, &gauge);
		if (known && !gauge) {
			why = only_grows(path, name, n);
		}
		if (name == NULL || (known && !gauge && why == NULL)) {
			adding->cli->no_memory = true;
			known = false;
		}
		free(name);
	}
	if (known) {
		*ret_why = why;
	}
	return known;
}
