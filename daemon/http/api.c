/*
 * /api/v1: counters, subtrees and limits as JSON. docs/http.md says what there is.
 */
#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/http/query.h"
#include "daemon/http/thread.h"
#include "lib/base/cleanup.h"
#include "lib/base/number.h"
#include "lib/engine/quota.h"

#include <event2/http.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define API_MAX_PATHS 256u		/* of one request */
#define API_MAX_ENTRIES 10000u		/* of one reply */
#define API_ENTRIES 1000u		/* if nothing is said */
#define API_STEP 256u			/* counters between two looks at the size */
#define API_MAX_BYTES ((size_t)1 << 20) /* about what a reply can have; the rest is for the next */
#define API_ENTRY_BYTES 110u		/* of one entry, beside its path */

/* What JSON's readers keep exact; beyond it a number is a string. */
#define API_EXACT (INT64_C(1) << 53)

static json_t *exact(int64_t value)
{
	char text[24];

	if (value >= -API_EXACT && value <= API_EXACT) {
		return json_integer(value);
	}
	(void)snprintf(text, sizeof(text), "%" PRIi64, value);
	return json_string(text);
}

static json_t *exact_or_null(int64_t value)
{
	return value == QUOTA_NONE ? json_null() : exact(value);
}

/* ---- parameters ---- */

struct parameters {
	size_t n_paths, path_size; /* room of the last one below */
	struct {
		char *at;
		size_t len;
	} paths[API_MAX_PATHS];
	bool has_depth, has_limit, has_cursor, has_consistency;
	uint64_t depth, limit;
	struct engine_cursor cursor;
	enum engine_consistency consistency;
};

/* Which ones a request may have. */
enum {
	TAKES_PATH = 1,
	TAKES_PATHS = 2,
	TAKES_WALK = 4,
	TAKES_CONSISTENCY = 8,
};

static void parameters_free(struct parameters *parameters)
{
	if (parameters != NULL) {
		for (size_t i = 0; i < parameters->n_paths; i++) {
			free(parameters->paths[i].at);
		}
		free(parameters);
	}
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_cursor(const char *text, size_t len, struct engine_cursor *cursor)
{
	if (len == 0 || len % 2 != 0 || len / 2 > ENGINE_CURSOR_MAX) {
		return false;
	}
	for (size_t i = 0; i < len; i += 2) {
		int high = hex(text[i]), low = hex(text[i + 1]);

		if (high < 0 || low < 0) {
			return false;
		}
		cursor->bytes[i / 2] = (uint8_t)(high * 16 + low);
	}
	cursor->len = (uint16_t)(len / 2);
	return true;
}

static bool read_consistency(const struct query *query, enum engine_consistency *ret_consistency)
{
	static const struct {
		const char *name;
		enum engine_consistency consistency;
	} known[] = {
		{ "cached", ENGINE_CACHED },
		{ "fresh", ENGINE_FRESH },
		{ "exact", ENGINE_EXACT },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(query->value, known[i].name) == 0 &&
		    query->value_len == strlen(known[i].name)) {
			*ret_consistency = known[i].consistency;
			return true;
		}
	}
	return false;
}

static bool first(bool *seen)
{
	bool before = *seen;

	*seen = true;
	return !before;
}

static const char *take_path(struct parameters *parameters, const struct query *query,
			     unsigned takes)
{
	char *copy;

	if (parameters->n_paths == ((takes & TAKES_PATHS) != 0 ? API_MAX_PATHS : 1)) {
		return (takes & TAKES_PATHS) != 0 ? "path is there more than 256 times"
						  : "path is there more than once";
	}
	copy = malloc(query->value_len + 1);
	if (copy == NULL) {
		return "there is no memory";
	}
	memcpy(copy, query->value, query->value_len + 1);
	parameters->paths[parameters->n_paths].at = copy;
	parameters->paths[parameters->n_paths++].len = query->value_len;
	return NULL;
}

/* NULL, or what is wrong with the parameter that was read last. */
static const char *take_parameter(struct parameters *parameters, const struct query *query,
				  unsigned takes)
{
	if (query_is(query, "path")) {
		return take_path(parameters, query, takes);
	}
	if (query_is(query, "consistency") && (takes & TAKES_CONSISTENCY) != 0) {
		return first(&parameters->has_consistency) &&
				       read_consistency(query, &parameters->consistency)
			       ? NULL
			       : "consistency is cached, fresh or exact, once";
	}
	if (query_is(query, "depth") && (takes & TAKES_WALK) != 0) {
		return first(&parameters->has_depth) &&
				       number_parse_unsigned(query->value, query->value_len, 0,
							     UINT32_MAX,
							     &parameters->depth) == NUMBER_OK
			       ? NULL
			       : "depth is a number of levels, once";
	}
	if (query_is(query, "limit") && (takes & TAKES_WALK) != 0) {
		return first(&parameters->has_limit) &&
				       number_parse_unsigned(query->value, query->value_len, 1,
							     API_MAX_ENTRIES,
							     &parameters->limit) == NUMBER_OK
			       ? NULL
			       : "limit is a number of counters from 1 to 10000, once";
	}
	if (query_is(query, "cursor") && (takes & TAKES_WALK) != 0) {
		return first(&parameters->has_cursor) && read_cursor(query->value, query->value_len,
								     &parameters->cursor)
			       ? NULL
			       : "cursor is what a reply before said as next, once";
	}
	return "there is a parameter that means nothing here";
}

/* NULL: the request was answered with what is wrong. */
static struct parameters *read_parameters(struct http *http, struct evhttp_request *request,
					  unsigned takes)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
	struct parameters *parameters = calloc(1, sizeof(*parameters));
	const char *wrong = parameters == NULL ? "there is no memory" : NULL;
	enum query_error r = QUERY_OK;
	struct query query;

	query_init(&query, evhttp_uri_get_query(uri));
	if (parameters != NULL) {
		parameters->depth = UINT32_MAX;
		parameters->limit = API_ENTRIES;
		parameters->consistency = ENGINE_FRESH;
	}
	while (wrong == NULL && (r = query_next(&query)) == QUERY_OK) {
		wrong = take_parameter(parameters, &query, takes);
	}
	if (r == QUERY_E_ESCAPE) {
		wrong = "a % is followed by two hexadecimal digits";
	} else if (r == QUERY_E_LONG) {
		wrong = "a parameter is longer than any that means something";
	}
	if (wrong == NULL) {
		return parameters;
	}
	reply_error(http, request, HTTP_BADREQUEST, "%s", wrong);
	parameters_free(parameters);
	return NULL;
}

/* What the engine says of a path. */
static void reply_engine_error(struct http *http, struct evhttp_request *request, int error,
			       const char *path, size_t len)
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
	return json_pack("{s:o, s:o}", "error_bound", exact(view.error_bound), "age_ms",
			 view.age_ns == INT64_MAX ? json_null()
						  : exact((view.age_ns + 999999) / 1000000));
}

static json_t *counter_object(const char *path, size_t len, const struct engine_reading *reading)
{
	return json_pack("{s:s%, s:s, s:b, s:o, s:o, s:o}", "path", path, len, "kind",
			 reading->kind == ENGINE_GAUGE ? "gauge" : "counter", "leaf", reading->leaf,
			 "own", exact(reading->own), "total", exact(reading->total), "created_ms",
			 exact(reading->born_ns / 1000000));
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
		read_parameters(http, request, TAKES_PATHS | TAKES_CONSISTENCY);
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
		read_parameters(http, request, TAKES_PATH | TAKES_WALK | TAKES_CONSISTENCY);
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
		reply_engine_error(http, request, r,
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

/* ---- explain ---- */

struct explaining {
	struct daemon *daemon;
	struct quota_time time;
	json_t *levels, *siblings;
	uint32_t more_siblings;
	bool failed;
};

static json_t *window_json(const struct window *window)
{
	char text[ENGINE_MAX_WINDOW_TEXT];

	return window->kind == WINDOW_NONE ? json_null()
					   : json_string(engine_window_text(window, text));
}

static json_t *ends_in(const struct window *window, int64_t wall_ns)
{
	int64_t end;

	if (window->kind != WINDOW_PER && window->kind != WINDOW_CALENDAR) {
		return json_null();
	}
	end = window_end(window, window_number(window, wall_ns));
	return exact((end - wall_ns + 999999) / 1000000);
}

static void add_level(void *ctx, const struct engine_explained *from)
{
	struct explaining *explaining = ctx;
	const struct quota_limits *limits = &from->limits;
	bool in_file = from->layer == ENGINE_FILE;
	json_t *object = json_pack(
		"{s:s%, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:b, s:o, s:s, s:s%, s:s}",
		"path", from->path, from->len, "window", window_json(from->window), "max",
		exact_or_null(limits->max), "high", exact_or_null(limits->high), "low",
		exact(limits->low), "min", exact(limits->min), "shadow", limits->shadow, "usage",
		exact(from->usage), "left", exact_or_null(from->left), "peak", exact(from->peak),
		"refusals", exact(from->refusals), "forced", exact(from->forced), "effective_min",
		exact(from->effective_min), "effective_low", exact(from->effective_low), "binds",
		from->binds, "over_high", from->over_high, "over_max", from->over_max, "frozen",
		from->frozen, "ends_in_ms", ends_in(from->window, explaining->time.wall_ns),
		"layer", in_file ? "file" : "run-time", "rule", from->pattern, from->pattern_len,
		"source",
		in_file ? config_quota_source(explaining->daemon->config, from->pattern,
					      from->pattern_len, from->window)
			: "");

	if (from->window->kind == WINDOW_RATE) {
		explaining->failed |=
			json_object_set_new(object, "rate", exact(limits->rate)) != 0 ||
			json_object_set_new(object, "per_ms", exact(limits->per_ns / 1000000)) !=
				0 ||
			json_object_set_new(object, "burst", exact(limits->burst)) != 0;
	}
	explaining->failed |= json_array_append_new(explaining->levels, object) != 0;
}

static void add_sibling(void *ctx, const struct engine_sibling *from)
{
	struct explaining *explaining = ctx;
	json_t *object = json_pack("{s:s%, s:o, s:o, s:o}", "path", from->path, from->len, "usage",
				   exact(from->usage), "effective_min", exact(from->effective_min),
				   "effective_low", exact(from->effective_low));

	explaining->more_siblings = from->more;
	explaining->failed |= json_array_append_new(explaining->siblings, object) != 0;
}

static int explain(struct explaining *explaining, const char *path, size_t len)
{
	struct daemon *daemon = explaining->daemon;
	int r;

	/* What workers hold back is usage as soon as it is folded: let it be all. */
	engine_flush(daemon->engine, explaining->time.wall_ns);
	/* The lock keeps the configuration, which says where its rules are written. */
	(void)pthread_mutex_lock(&daemon->rules_lock);
	r = engine_explain(daemon->engine, path, len, explaining->time, add_level, add_sibling,
			   explaining);
	(void)pthread_mutex_unlock(&daemon->rules_lock);
	return r;
}

void api_explain(struct http *http, struct evhttp_request *request)
{
	struct parameters *parameters = read_parameters(http, request, TAKES_PATH);
	struct explaining explaining = { .daemon = http->daemon, .time = daemon_time() };
	const char *path;
	json_t *object;
	int r;

	if (parameters == NULL) {
		return;
	}
	if (parameters->n_paths == 0) {
		reply_error(http, request, HTTP_BADREQUEST, "say which: path=PATH");
		parameters_free(parameters);
		return;
	}
	path = parameters->paths[0].at;
	explaining.levels = json_array();
	explaining.siblings = json_array();
	r = explain(&explaining, path, parameters->paths[0].len);
	object = json_pack("{s:s, s:o, s:o, s:o}", "path", path, "levels", explaining.levels,
			   "siblings", explaining.siblings, "siblings_omitted",
			   exact(explaining.more_siblings));
	if (r != 0) {
		json_decref(object);
		reply_engine_error(http, request, r, path, parameters->paths[0].len);
	} else if (explaining.failed) {
		json_decref(object);
		reply_json(http, request, HTTP_OK, NULL);
	} else {
		reply_json(http, request, HTTP_OK, object);
	}
	parameters_free(parameters);
}
