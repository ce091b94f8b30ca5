/* /api/v1/quota/explain: all that limits a path. */
#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/http/api.h"
#include "lib/engine/quota.h"
#include "lib/names/path.h"

#include <event2/http.h>
#include <string.h>

#define EXPLAIN_MAX_LEASES 256u /* that are listed */

struct explaining {
	struct daemon *daemon;
	struct quota_time time;
	json_t *levels, *siblings, *leases;
	uint32_t more_siblings, more_leases;
	bool failed;
};

/* As rationctl has it: "per 1d", "calendar week", "rate". */
static json_t *window_json(const struct window *window)
{
	char buffer[ENGINE_MAX_WINDOW_TEXT];
	const char *text = engine_window_text(window, buffer);

	if (window->kind == WINDOW_NONE) {
		return json_null();
	}
	return json_string(window->kind == WINDOW_CALENDAR ? text + strlen("per ") : text);
}

static json_t *ends_in(const struct window *window, int64_t wall_ns)
{
	int64_t end;

	if (window->kind != WINDOW_PER && window->kind != WINDOW_CALENDAR) {
		return json_null();
	}
	end = window_end(window, window_number(window, wall_ns));
	return api_exact((end - wall_ns + 999999) / 1000000);
}

static void add_level(void *ctx, const struct engine_explained *from)
{
	struct explaining *explaining = ctx;
	const struct quota_limits *limits = &from->limits;
	bool in_file = from->layer == ENGINE_FILE;
	json_t *object = json_pack(
		"{s:s%, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:b, s:o, s:s, s:s%, s:s}",
		"path", from->path, from->len, "window", window_json(from->window), "max",
		api_exact_or_null(limits->max), "high", api_exact_or_null(limits->high), "low",
		api_exact(limits->low), "min", api_exact(limits->min), "shadow", limits->shadow,
		"usage", api_exact(from->usage), "left", api_exact_or_null(from->left), "peak",
		api_exact(from->peak), "refusals", api_exact(from->refusals), "forced",
		api_exact(from->forced), "effective_min", api_exact(from->effective_min),
		"effective_low", api_exact(from->effective_low), "binds", from->binds, "over_high",
		from->over_high, "over_max", from->over_max, "frozen", from->frozen, "ends_in_ms",
		ends_in(from->window, explaining->time.wall_ns), "layer",
		in_file ? "file" : "run time", "rule", from->pattern, from->pattern_len, "source",
		in_file ? config_quota_source(explaining->daemon->config, from->pattern,
					      from->pattern_len, from->window)
			: "");

	if (from->window->kind == WINDOW_PER) {
		explaining->failed |=
			json_object_set_new(object, "duration_ms",
					    api_exact(from->window->duration_ns / 1000000)) != 0;
	}
	if (from->window->kind == WINDOW_RATE) {
		explaining->failed |=
			json_object_set_new(object, "rate", api_exact(limits->rate)) != 0 ||
			json_object_set_new(object, "per_ms",
					    api_exact(limits->per_ns / 1000000)) != 0 ||
			json_object_set_new(object, "burst", api_exact(limits->burst)) != 0;
	}
	explaining->failed |= json_array_append_new(explaining->levels, object) != 0;
}

static void add_sibling(void *ctx, const struct engine_sibling *from)
{
	struct explaining *explaining = ctx;
	json_t *object =
		json_pack("{s:s%, s:o, s:o, s:o}", "path", from->path, from->len, "usage",
			  api_exact(from->usage), "effective_min", api_exact(from->effective_min),
			  "effective_low", api_exact(from->effective_low));

	explaining->more_siblings = from->more;
	explaining->failed |= json_array_append_new(explaining->siblings, object) != 0;
}

static void add_lease(void *ctx, const struct lease *from)
{
	struct explaining *explaining = ctx;
	const char *agent = from->path + from->len; /* as its client calls itself: any bytes */
	int64_t left = from->expires_ns - explaining->time.mono_ns;
	json_t *object;

	if (json_array_size(explaining->leases) == EXPLAIN_MAX_LEASES) {
		explaining->more_leases++;
		return;
	}
	object = json_pack("{s:s%, s:o, s:o, s:o}", "path", from->path, (size_t)from->len, "agent",
			   path_is_text(agent, from->agent_len)
				   ? json_stringn(agent, from->agent_len)
				   : json_null(),
			   "units", api_exact(from->units), "expires_in_ms",
			   api_exact(left > 0 ? (left + 999999) / 1000000 : 0));
	explaining->failed |= json_array_append_new(explaining->leases, object) != 0;
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
	if (r == 0) {
		lease_book_each(&daemon->leases, path, len, add_lease, explaining);
	}
	return r;
}

void api_explain(struct http *http, struct evhttp_request *request)
{
	struct parameters *parameters = parameters_read(http, request, TAKES_PATH);
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
	explaining.leases = json_array();
	r = explain(&explaining, path, parameters->paths[0].len);
	object = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "path", path, "levels",
			   explaining.levels, "siblings", explaining.siblings, "siblings_omitted",
			   api_exact(explaining.more_siblings), "leases", explaining.leases,
			   "leases_omitted", api_exact(explaining.more_leases));
	if (r != 0) {
		json_decref(object);
		api_reply_error(http, request, r, path, parameters->paths[0].len);
	} else if (explaining.failed) {
		json_decref(object);
		reply_json(http, request, HTTP_OK, NULL);
	} else {
		reply_json(http, request, HTTP_OK, object);
	}
	parameters_free(parameters);
}
