/* /api/v1: counters and subtrees. */
#include "daemon/http/api.h"
#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "lib/engine/quota.h"

#include <event2/http.h>
#include <inttypes.h>
#include <stdio.h>

#define API_STEP 256u			/* counters between two looks at the size */
#define API_MAX_BYTES ((size_t)1 << 20) /* about what a reply can have; the rest is for the next */
#define API_ENTRY_BYTES 110u		/* of one entry, beside its path */

/* ---- what all of it is made of ---- */

/* What JSON's readers keep exact; beyond it a number is a string. */
#define API_EXACT (INT64_C(1) << 53)

json_t *api_exact(int64_t value)
{
	char text[24];

	if (value >= -API_EXACT && value <= API_EXACT) {
		return json_integer(value);
	}
	(void)snprintf(text, sizeof(text), "%" PRIi64, value);
	return json_string(text);
}

json_t *api_exact_or_null(int64_t value)
{
	return value == QUOTA_NONE ? json_null() : api_exact(value);
}

void api_reply_error(struct http *http, struct evhttp_request *request, int error, const char *path,
		     size_t len)
{
	switch (error) {
	case ENGINE_E_NOT_FOUND:
		reply_error(http, request, HTTP_NOTFOUND, "there is no counter %s", path);
		break;
	case ENGINE_E_CURSOR:
		reply_error(http, request, HTTP_BADREQUEST, "this is no cursor of this walk");
		break;
	default:
		reply_error(http, request, HTTP_BADREQUEST, "this is not a path: %s",
			    path_error_text(path_check(path, len, NULL)));
		break;
	}
}

/* ---- counters ---- */

static json_t *view_object(struct http *http, enum engine_consistency consistency)
{
	struct engine_view view;

	engine_refresh(http->daemon->engine, consistency, clock_wall_ns(), &view);
	return json_pack("{s:o, s:o}", "error_bound", api_exact(view.error_bound), "age_ms",
			 view.age_ns == INT64_MAX ? json_null()
						  : api_exact((view.age_ns + 999999) / 1000000));
}

static json_t *counter_object(const char *path, size_t len, const struct engine_reading *reading)
{
	return json_pack("{s:s%, s:s, s:b, s:o, s:o, s:o}", "path", path, len, "kind",
			 reading->kind == ENGINE_GAUGE ? "gauge" : "counter", "leaf", reading->leaf,
			 "own", api_exact(reading->own), "total", api_exact(reading->total),
			 "created_ms", api_exact(reading->born_ns / 1000000));
}

static json_t *read_counter(struct http *http, const char *path, size_t len)
{
	struct engine_reading reading;
	enum path_error wrong = path_check(path, len, NULL);

	if (wrong != PATH_OK) {
		return json_pack("{s:o, s:s, s:s}", "path",
				 path_is_text(path, len) ? json_stringn(path, len) : json_null(),
				 "error", "INVALID_ARGUMENT", "message", path_error_text(wrong));
	}
	if (engine_get(http->daemon->engine, path, len, &reading) != 0) {
		return json_pack("{s:s%, s:s, s:s}", "path", path, len, "error", "NOT_FOUND",
				 "message", "there is no such counter");
	}
	return counter_object(path, len, &reading);
}

void api_counters(struct http *http, struct evhttp_request *request)
{
	struct parameters *parameters =
		parameters_read(http, request, TAKES_PATHS | TAKES_CONSISTENCY);
	json_t *object, *counters;
	int failed = 0;

	if (parameters == NULL) {
		return;
	}
	if (parameters->n_paths == 0) {
		reply_error(http, request, HTTP_BADREQUEST,
			    "say which: path=PATH, once for each counter");
		parameters_free(parameters);
		return;
	}
	object = view_object(http, parameters->consistency);
	counters = json_array();
	for (size_t i = 0; i < parameters->n_paths; i++) {
		failed |=
			json_array_append_new(counters, read_counter(http, parameters->paths[i].at,
								     parameters->paths[i].len));
	}
	failed |= json_object_set_new(object, "counters", counters);
	parameters_free(parameters);
	if (failed != 0) {
		json_decref(object);
		object = NULL;
	}
	reply_json(http, request, HTTP_OK, object);
}

/* ---- tree ---- */

struct listing {
	json_t *counters;
	size_t n, bytes;
	bool failed;
};

static void list_entry(void *ctx, const struct engine_entry *entry)
{
	struct listing *listing = ctx;
	json_t *object = counter_object(entry->path, entry->len, &entry->reading);

	listing->failed |= json_object_set_new(object, "depth", json_integer(entry->depth)) != 0;
	listing->failed |= json_array_append_new(listing->counters, object) != 0;
	listing->n++;
	listing->bytes += entry->len + API_ENTRY_BYTES;
}

static int list_tree(struct http *http, struct parameters *parameters, struct listing *listing,
		     bool *ret_done)
{
	const char *root = parameters->n_paths > 0 ? parameters->paths[0].at : "";
	size_t len = parameters->n_paths > 0 ? parameters->paths[0].len : 0;
	int r = 0;

	*ret_done = false;
	while (r == 0 && !*ret_done && !listing->failed && listing->n < parameters->limit &&
	       listing->bytes < API_MAX_BYTES) {
		size_t left = parameters->limit - listing->n;

		r = engine_walk(http->daemon->engine, root, len, (uint32_t)parameters->depth,
				left < API_STEP ? left : API_STEP, &parameters->cursor, list_entry,
				listing, ret_done);
	}
	return r;
}

/* Where the rest is, for the next request; null if there is none. */
static json_t *next_text(const struct engine_cursor *cursor, bool done)
{
	char text[2 * ENGINE_CURSOR_MAX + 1];

	if (done) {
		return json_null();
	}
	for (size_t i = 0; i < cursor->len; i++) {
		(void)snprintf(text + 2 * i, 3, "%02x", cursor->bytes[i]);
	}
	return json_stringn(text, 2 * (size_t)cursor->len);
}

void api_tree(struct http *http, struct evhttp_request *request)
{
	struct parameters *parameters =
		parameters_read(http, request, TAKES_PATH | TAKES_WALK | TAKES_CONSISTENCY);
	struct listing listing = { .counters = json_array() };
	json_t *object = NULL;
	bool done;
	int r;

	if (parameters == NULL) {
		json_decref(listing.counters);
		return;
	}
	object = view_object(http, parameters->consistency);
	r = list_tree(http, parameters, &listing, &done);
	if (r != 0) {
		json_decref(listing.counters);
		json_decref(object);
		api_reply_error(http, request, r,
				parameters->n_paths > 0 ? parameters->paths[0].at : "",
				parameters->n_paths > 0 ? parameters->paths[0].len : 0);
		parameters_free(parameters);
		return;
	}
	if (json_object_set_new(object, "counters", listing.counters) != 0 || listing.failed ||
	    json_object_set_new(object, "next", next_text(&parameters->cursor, done)) != 0) {
		json_decref(object);
		object = NULL;
	}
	parameters_free(parameters);
	reply_json(http, request, HTTP_OK, object);
}
