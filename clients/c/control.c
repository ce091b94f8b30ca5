/*
 * What is about the daemon rather than about counts: fold, status, reload, and what a metric is.
 */
#include "clients/c/call.h"
#include "clients/c/client.h"
#include "clients/c/clock.h"
#include "clients/c/error.h"
#include "clients/c/include/ration.h"
#include "clients/c/kept.h"
#include "lib/base/cleanup.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- fold ---- */

static int take_flushed(void *ctx, const struct reply *reply, const uint8_t *message, size_t len)
{
	(void)ctx;
	(void)message;
	(void)len;
	return reply->type == REPLY_FLUSHED ? CALL_DONE : -EBADMSG;
}

int ration_fold(struct ration *client, int timeout_ms)
{
	const struct call_sink sink = { .take = take_flushed };
	struct request request = { .type = REQUEST_FLUSH };

	return call_ask(client->call, &request, clock_deadline(timeout_ms), &sink);
}

/* ---- status ---- */

static void hand_over(const struct status_item *item,
		      void (*fn)(void *ctx, const struct ration_status_item *item), void *ctx)
{
	_cleanup_free_ char *name = strndup(item->name.at, item->name.len);
	_cleanup_free_ char *text =
		strndup(item->text.at == NULL ? "" : item->text.at, item->text.len);
	_cleanup_free_ char *help = strndup(item->help.at, item->help.len);
	const struct ration_status_item public = {
		.name = name,
		.text = item->is_text ? text : NULL,
		.number = item->number,
		.help = help,
	};

	if (name != NULL && text != NULL && help != NULL) {
		fn(ctx, &public);
	}
}

int ration_status(struct ration *client, int timeout_ms,
		  void (*item)(void *ctx, const struct ration_status_item *item), void *ctx)
{
	_cleanup_(kept_deinit) struct kept kept = KEPT_INIT;
	struct request request = { .type = REQUEST_STATUS };
	int r;

	r = kept_ask(&kept, client->call, &request, clock_deadline(timeout_ms), REPLY_STATUS);
	if (r != 0) {
		return r;
	}
	for (size_t i = 0; i < kept.reply.status.n_items; i++) {
		hand_over(&kept.reply.status.items[i], item, ctx);
	}
	return 0;
}

/* ---- reload ---- */

static void tell(struct text text, bool error,
		 void (*fn)(void *ctx, const struct ration_finding *finding), void *ctx)
{
	_cleanup_free_ char *copy = strndup(text.at, text.len);

	if (fn != NULL && copy != NULL) {
		fn(ctx, &(struct ration_finding){ .error = error, .text = copy });
	}
}

int ration_reload(struct ration *client, int timeout_ms,
		  void (*finding)(void *ctx, const struct ration_finding *finding), void *ctx)
{
	_cleanup_(kept_deinit) struct kept kept = KEPT_INIT;
	struct request request = { .type = REQUEST_RELOAD };
	const struct reloaded *reloaded = &kept.reply.reloaded;
	struct text first = text_of("the configuration has errors");
	int r;

	r = kept_ask(&kept, client->call, &request, clock_deadline(timeout_ms), REPLY_RELOADED);
	if (r != 0) {
		return r;
	}
	for (size_t i = 0; i < reloaded->n_errors; i++) {
		tell(reloaded->errors[i], /* error= */ true, finding, ctx);
	}
	for (size_t i = 0; i < reloaded->n_notes; i++) {
		tell(reloaded->notes[i], /* error= */ false, finding, ctx);
	}
	if (reloaded->good) {
		return 0;
	}
	if (reloaded->n_errors > 0) {
		first = reloaded->errors[0];
	}
	return error_set(RATION_INVALID_ARGUMENT, "%.*s", (int)first.len, first.at);
}

/* ---- metrics ---- */

static int take_metric(void *ctx, const struct reply *reply, const uint8_t *message, size_t len)
{
	struct metric *metric = ctx;

	(void)message;
	(void)len;
	if (reply->type != REPLY_METRIC) {
		return -EBADMSG;
	}
	*metric = reply->metric;
	return CALL_DONE;
}

int ration_metric_set(struct ration *client, const char *name, const struct ration_metric *metric,
		      int timeout_ms)
{
	struct ration_metric known = RATION_METRIC_INIT;
	struct metric answer;
	const struct call_sink sink = { .take = take_metric, .ctx = &answer };
	struct request request = { .type = REQUEST_METRIC_SET };

	if (metric->size < offsetof(struct ration_metric, kind)) {
		return error_set(-EINVAL, "metric.size is %zu: begin with RATION_METRIC_INIT",
				 metric->size);
	}
	memcpy(&known, metric, metric->size < sizeof(known) ? metric->size : sizeof(known));
	request.metric_set = (struct metric){
		.name = text_of(name),
		.kind = known.kind == RATION_GAUGE ? KIND_GAUGE : KIND_COUNTER,
		.max_counters = known.max_counters,
		.overflow = known.overflow,
		.expire_after_ms = known.expire_after_ms,
	};
	return call_ask(client->call, &request, clock_deadline(timeout_ms), &sink);
}

int ration_metric_get(struct ration *client, const char *name, int timeout_ms,
		      struct ration_metric *ret_metric)
{
	struct metric answer;
	const struct call_sink sink = { .take = take_metric, .ctx = &answer };
	struct request request = { .type = REQUEST_METRIC_GET, .metric_get = text_of(name) };
	struct ration_metric known = RATION_METRIC_INIT;
	size_t size = ret_metric->size;
	int r;

	if (size < offsetof(struct ration_metric, kind)) {
		return error_set(-EINVAL, "metric.size is %zu: begin with RATION_METRIC_INIT",
				 size);
	}
	r = call_ask(client->call, &request, clock_deadline(timeout_ms), &sink);
	if (r != 0) {
		return r;
	}
	known.kind = answer.kind == KIND_GAUGE ? RATION_GAUGE : RATION_COUNTER;
	known.max_counters = answer.max_counters;
	known.overflow = answer.overflow;
	known.expire_after_ms = answer.expire_after_ms;
	known.size = size;
	memcpy(ret_metric, &known, size < sizeof(known) ? size : sizeof(known));
	return 0;
}
