/*
 * Taking out what is counted, and putting it in again: the list of metrics, own values, reset. Reading own values is ration_walk's.
 */
#include "clients/c/call.h"
#include "clients/c/client.h"
#include "clients/c/clock.h"
#include "clients/c/error.h"
#include "clients/c/include/ration.h"
#include "clients/c/kept.h"
#include "lib/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- metrics ---- */

int ration_metric_list(struct ration *client, int timeout_ms,
		       void (*metric)(void *ctx, const char *name,
				      const struct ration_metric *metric),
		       void *ctx)
{
	_cleanup_(kept_deinit) struct kept kept = KEPT_INIT;
	struct request request = { .type = REQUEST_METRIC_LIST };
	const struct metric_list *list = &kept.reply.metrics;
	int r;

	r = kept_ask(&kept, client->call, &request, clock_deadline(timeout_ms), REPLY_METRICS);
	for (size_t i = 0; r == 0 && i < list->n_metrics; i++) {
		const struct metric *from = &list->metrics[i];
		_cleanup_free_ char *name = strndup(from->name.at, from->name.len);
		struct ration_metric public = RATION_METRIC_INIT;

		if (name == NULL) {
			return error_set(-ENOMEM, "no memory");
		}
		public.kind = from->kind == KIND_GAUGE ? RATION_GAUGE : RATION_COUNTER;
		public.max_counters = from->max_counters;
		public.overflow = from->overflow;
		public.expire_after_ms = from->expire_after_ms;
		metric(ctx, name, &public);
	}
	return r;
}

/* ---- reset ---- */

static int take_reset(void *ctx, const struct reply *reply, const uint8_t *message, size_t len)
{
	uint64_t *counters = ctx;

	(void)message;
	(void)len;
	if (reply->type != REPLY_RESET) {
		return -EBADMSG;
	}
	*counters = reply->reset.counters;
	return CALL_DONE;
}

int ration_reset(struct ration *client, const char *path, int timeout_ms, uint64_t *ret_counters)
{
	uint64_t counters = 0;
	const struct call_sink sink = { .take = take_reset, .ctx = &counters };
	struct request request = { .type = REQUEST_RESET, .reset = text_of(path) };
	int r;

	r = call_ask(client->call, &request, clock_deadline(timeout_ms), &sink);
	if (r == 0 && ret_counters != NULL) {
		*ret_counters = counters;
	}
	return r;
}

/* ---- import ---- */

#define ITEM_EXTRA 20u /* bytes that an item costs in a request beside its path */
#define FRAME_EXTRA 64u

/* As many as fit one request. */
static size_t fill_part(const struct ration_own *owns, size_t n, const struct limits *limits,
			struct import_item *items)
{
	size_t bytes = FRAME_EXTRA, i;

	for (i = 0; i < n && i < limits->max_items; i++) {
		items[i] =
			(struct import_item){ .path = text_of(owns[i].path), .own = owns[i].own };
		bytes += items[i].path.len + ITEM_EXTRA;
		if (i > 0 && bytes > limits->max_frame) {
			break;
		}
	}
	return i;
}

/* The program's function may ask something itself: it is called when the turn is over. */
static int import_part(struct ration *client, const struct import *part, size_t first,
		       int64_t deadline, void (*failed)(void *, size_t, int, const char *),
		       void *ctx)
{
	_cleanup_(kept_deinit) struct kept kept = KEPT_INIT;
	struct request request = { .type = REQUEST_IMPORT, .import = *part };
	const struct imported *imported = &kept.reply.imported;
	int r;

	r = kept_ask(&kept, client->call, &request, deadline, REPLY_IMPORTED);
	for (size_t i = 0; r == 0 && failed != NULL && i < imported->n_errors; i++) {
		const struct item_error *error = &imported->errors[i];
		_cleanup_free_ char *text = strndup(error->text.at, error->text.len);

		if (error->index < part->n_items) {
			failed(ctx, first + error->index, (int)error->code,
			       text == NULL ? "" : text);
		}
	}
	return r;
}

int ration_import(struct ration *client, const struct ration_own *owns, size_t n, int timeout_ms,
		  void (*failed)(void *ctx, size_t index, int code, const char *text), void *ctx)
{
	int64_t deadline = clock_deadline(timeout_ms);
	_cleanup_free_ struct import_item *items = NULL;
	uint8_t incarnation[MESSAGE_SESSION_BYTES];
	struct limits limits;
	size_t at = 0;
	int r;

	r = call_connect(client->call, deadline, &limits, incarnation);
	if (r != 0 || n == 0) {
		return r;
	}
	items = calloc(n < limits.max_items ? n : limits.max_items, sizeof(*items));
	if (items == NULL || limits.max_items == 0) {
		return error_set(-ENOMEM, "no memory for %zu values", n);
	}
	while (at < n && r == 0) {
		struct import part = { .items = items };

		part.n_items = fill_part(owns + at, n - at, &limits, items);
		r = import_part(client, &part, at, deadline, failed, ctx);
		at += part.n_items;
	}
	return r;
}
