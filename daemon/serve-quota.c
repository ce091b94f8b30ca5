/*
 * QuotaSet, QuotaRemove, QuotaList, QuotaExplain: what is limited, and how it stands.
 */
#include "daemon/serve-operation.h"

#include "daemon/clock.h"
#include "daemon/connection.h"
#include "daemon/daemon.h"
#include "daemon/worker.h"
#include "lib/names/path.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUOTA_MAX_NOTES 16u
#define QUOTA_PAGE_BYTES ((size_t)512 << 10) /* about what a page of rules has */
#define QUOTA_MAX_PAGE 4096u		     /* rules in it */
#define QUOTA_MAX_LEVELS (PATH_MAX_SEGMENTS * ENGINE_MAX_PLANES)

/* ---- between the wire and the engine ---- */

static int64_t ns_of(uint64_t ms)
{
	return ms <= INT64_MAX / 1000000 ? (int64_t)ms * 1000000 : INT64_MAX;
}

static struct window window_of(const struct rule_window *wire)
{
	struct window window = { .kind = (enum window_kind)wire->kind };

	if (window.kind == WINDOW_PER) {
		window.duration_ns = ns_of(wire->duration_ms);
	} else if (window.kind == WINDOW_CALENDAR) {
		window.unit = (enum window_unit)wire->unit;
	}
	return window;
}

static struct engine_rule rule_of(const struct rule *wire)
{
	const struct rule_limits *limits = &wire->limits;

	return (struct engine_rule){
		.pattern = wire->pattern.at,
		.len = wire->pattern.len,
		.window = window_of(&wire->window),
		.limits = {
			.max = limits->has_max ? limits->max : QUOTA_NONE,
			.high = limits->has_high ? limits->high : QUOTA_NONE,
			.low = limits->low,
			.min = limits->min,
			.shadow = limits->shadow,
			.rate = limits->rate,
			.per_ns = ns_of(limits->per_ms),
			.burst = limits->burst,
		},
	};
}

static struct rule_limits wire_limits(const struct quota_limits *limits)
{
	return (struct rule_limits){
		.has_max = limits->max != QUOTA_NONE,
		.has_high = limits->high != QUOTA_NONE,
		.shadow = limits->shadow,
		.max = limits->max != QUOTA_NONE ? limits->max : 0,
		.high = limits->high != QUOTA_NONE ? limits->high : 0,
		.low = limits->low,
		.min = limits->min,
		.rate = limits->rate,
		.per_ms = (uint64_t)limits->per_ns / 1000000,
		.burst = limits->burst,
	};
}

/* ---- QuotaSet, QuotaRemove ---- */

/* What the engine finds wrong, which is one thing, or unwise. */
struct findings {
	struct arena *arena;
	char fatal[ENGINE_MAX_FAULT_TEXT];
	size_t n_notes;
	struct text notes[QUOTA_MAX_NOTES];
};

static void take_fault(void *ctx, const struct engine_fault *fault)
{
	struct findings *findings = ctx;

	if (fault->fatal) {
		if (findings->fatal[0] == '\0') {
			memcpy(findings->fatal, fault->text, sizeof(findings->fatal));
		}
	} else if (findings->n_notes < QUOTA_MAX_NOTES &&
		   serve_copy(findings->arena, fault->text, strlen(fault->text),
			      &findings->notes[findings->n_notes])) {
		findings->n_notes++;
	}
}

static void done(struct connection *connection, uint64_t id, const struct findings *findings)
{
	const struct reply reply = {
		.id = id,
		.type = REPLY_QUOTA_OK,
		.quota_ok = { .n_notes = findings->n_notes, .notes = findings->notes },
	};

	connection_reply(connection, &reply);
}

/* What the numbers of the message can't say in the engine's. */
static bool check_limit(struct connection *connection, uint64_t id, const char *name, bool has,
			int64_t limit)
{
	if (!has || (limit >= 0 && limit <= QUOTA_MAX_LIMIT)) {
		return true;
	}
	serve_error(connection, id, CODE_INVALID_ARGUMENT,
		    "%s %" PRIi64 " is out of range; allowed is 0 to %" PRIi64, name, limit,
		    QUOTA_MAX_LIMIT);
	return false;
}

static bool check_window(struct connection *connection, uint64_t id,
			 const struct rule_window *window)
{
	if (rule_window_known(window)) {
		return true;
	}
	serve_error(connection, id, CODE_INVALID_ARGUMENT,
		    "window kind %d with unit %d does not exist", (int)window->kind,
		    (int)window->unit);
	return false;
}

/* "max 100, low 5": for the log. */
static const char *limits_text(const struct quota_limits *limits, const struct window *window,
			       char *text, size_t size)
{
	char window_text[ENGINE_MAX_WINDOW_TEXT];
	int len = snprintf(text, size, "%s", engine_window_text(window, window_text));

#define QUOTA_PUT(has, ...)                                                           \
	do {                                                                          \
		if ((has) && len > 0 && (size_t)len < size) {                         \
			len += snprintf(text + len, size - (size_t)len, __VA_ARGS__); \
		}                                                                     \
	} while (0)
	QUOTA_PUT(limits->max != QUOTA_NONE && window->kind != WINDOW_RATE, ", max %" PRIi64,
		  limits->max);
	QUOTA_PUT(limits->high != QUOTA_NONE && window->kind != WINDOW_RATE, ", high %" PRIi64,
		  limits->high);
	QUOTA_PUT(limits->low > 0, ", low %" PRIi64, limits->low);
	QUOTA_PUT(limits->min > 0, ", min %" PRIi64, limits->min);
	QUOTA_PUT(window->kind == WINDOW_RATE, " %" PRIi64 " in %" PRIi64 " ms, burst %" PRIi64,
		  limits->rate, limits->per_ns / 1000000, limits->burst);
	QUOTA_PUT(limits->shadow, ", shadow");
#undef QUOTA_PUT
	return text;
}

void serve_quota_set(struct connection *connection, const struct request *request)
{
	const struct rule *wire = &request->quota_set;
	struct worker *worker = connection->worker;
	struct daemon *daemon = worker->daemon;
	struct findings *findings = arena_alloc(&worker->out, sizeof(*findings));
	struct engine_rule rule;
	char text[256];
	int r;

	if (findings == NULL) {
		serve_error(connection, request->id, CODE_RESOURCE_EXHAUSTED,
			    "the daemon is out of memory");
		return;
	}
	*findings = (struct findings){ .arena = &worker->out };
	if (!check_window(connection, request->id, &wire->window) ||
	    !check_limit(connection, request->id, "max", wire->limits.has_max, wire->limits.max) ||
	    !check_limit(connection, request->id, "high", wire->limits.has_high,
			 wire->limits.high)) {
		return;
	}
	rule = rule_of(wire);
	(void)pthread_mutex_lock(&daemon->rules_lock);
	r = engine_rule_set(daemon->engine, &rule, *worker_time(worker), take_fault, findings);
	daemon->rules_version++;
	(void)pthread_mutex_unlock(&daemon->rules_lock);
	daemon_declared(daemon);
	if (r == ENGINE_E_RULE) {
		serve_error(connection, request->id, CODE_INVALID_ARGUMENT, "%s",
			    findings->fatal[0] != '\0' ? findings->fatal : "not a rule");
		return;
	}
	if (r != 0) {
		serve_error(connection, request->id, serve_engine_code(r), "%s",
			    serve_engine_text(r, wire->pattern));
		return;
	}
	log_event(&daemon->log, LOG_KIND_CONTROL, clock_monotonic_ns(), LOG_INFO,
		  &(struct log_about){
			  .id = LOG_ID_LIMITS, .peer = connection->peer, .path = wire->pattern },
		  "set quota %.*s: %s", (int)rule.len, rule.pattern,
		  limits_text(&rule.limits, &rule.window, text, sizeof(text)));
	waiting_wake_all(&daemon->waiting);
	done(connection, request->id, findings);
}

/* Could there be a rule of this pattern? Else it was answered. */
static bool check_pattern(struct connection *connection, uint64_t id, struct text pattern)
{
	struct arena *arena = &connection->worker->out;
	struct findings *findings = arena_alloc(arena, sizeof(*findings));
	const struct engine_rule rule = { .pattern = pattern.at,
					  .len = pattern.len,
					  .limits = QUOTA_LIMITS_INIT };

	if (findings == NULL) {
		return true;
	}
	*findings = (struct findings){ .arena = arena };
	if (engine_rules_check(&rule, 1, take_fault, findings) <= 0) {
		return true;
	}
	serve_error(connection, id, CODE_INVALID_ARGUMENT, "%s", findings->fatal);
	return false;
}

void serve_quota_remove(struct connection *connection, const struct request *request)
{
	const struct rule_remove *remove = &request->quota_remove;
	struct worker *worker = connection->worker;
	struct daemon *daemon = worker->daemon;
	const struct findings none = { 0 };
	char text[ENGINE_MAX_WINDOW_TEXT];
	struct window window;
	int r;

	if (!remove->all_windows && !check_window(connection, request->id, &remove->window)) {
		return;
	}
	window = window_of(&remove->window);
	if (!remove->all_windows && !window_valid(&window)) {
		serve_error(connection, request->id, CODE_INVALID_ARGUMENT,
			    "a window of %" PRIu64 " ms does not exist; allowed is 1 s to 31 d",
			    remove->window.duration_ms);
		return;
	}
	(void)pthread_mutex_lock(&daemon->rules_lock);
	r = engine_rule_remove(daemon->engine, remove->pattern.at, remove->pattern.len,
			       remove->all_windows ? NULL : &window, *worker_time(worker));
	daemon->rules_version++;
	(void)pthread_mutex_unlock(&daemon->rules_lock);
	daemon_declared(daemon);
	if (r == ENGINE_E_NOT_FOUND && !check_pattern(connection, request->id, remove->pattern)) {
		return;
	}
	if (r == ENGINE_E_NOT_FOUND) {
		serve_error(connection, request->id, CODE_NOT_FOUND,
			    "no such rule was set at run time%s",
			    remove->all_windows ? "" : " with this window");
		return;
	}
	if (r != 0) {
		serve_error(connection, request->id, serve_engine_code(r), "%s",
			    serve_engine_text(r, remove->pattern));
		return;
	}
	log_event(&daemon->log, LOG_KIND_CONTROL, clock_monotonic_ns(), LOG_INFO,
		  &(struct log_about){
			  .id = LOG_ID_LIMITS, .peer = connection->peer, .path = remove->pattern },
		  "removed quota %.*s: %s", (int)remove->pattern.len, remove->pattern.at,
		  remove->all_windows ? "all windows" : engine_window_text(&window, text));
	waiting_wake_all(&daemon->waiting);
	done(connection, request->id, &none);
}

/* ---- QuotaList ---- */

/* Where a list goes on; in the order of this machine, which is also the one to read it. */
struct list_cursor {
	uint64_t version;
	uint64_t index;
};

struct listing {
	const struct daemon *daemon;
	struct arena *arena;
	uint64_t from, index; /* of the first rule wanted, of the one at hand */
	struct rule *rules;
	size_t n, bytes;
	bool full, no_memory;
};

static void list_rule(void *ctx, const struct engine_rule *from, enum engine_layer layer,
		      bool overridden)
{
	struct listing *listing = ctx;
	struct rule *rule = &listing->rules[listing->n];
	const char *source = "";

	if (listing->index++ < listing->from || listing->full || listing->no_memory) {
		return;
	}
	if (listing->n == QUOTA_MAX_PAGE || listing->bytes > QUOTA_PAGE_BYTES) {
		listing->full = true;
		return;
	}
	if (layer == ENGINE_FILE) {
		source = config_quota_where(listing->daemon->config, from->tag);
	}
	*rule = (struct rule){
		.window = serve_window(&from->window),
		.limits = wire_limits(&from->limits),
		.layer = layer == ENGINE_FILE ? RULE_FILE : RULE_RUN_TIME,
		.overridden = overridden,
	};
	if (!serve_copy(listing->arena, from->pattern, from->len, &rule->pattern) ||
	    !serve_copy(listing->arena, source, strlen(source), &rule->source)) {
		listing->no_memory = true;
		return;
	}
	listing->n++;
	listing->bytes += from->len + strlen(source) + 96;
}

static bool read_cursor(struct text text, struct list_cursor *ret_cursor)
{
	if (text.len == 0) {
		*ret_cursor = (struct list_cursor){ 0 };
		return true;
	}
	if (text.len != sizeof(*ret_cursor)) {
		return false;
	}
	memcpy(ret_cursor, text.at, sizeof(*ret_cursor));
	return ret_cursor->index > 0;
}

void serve_quota_list(struct connection *connection, const struct request *request)
{
	struct daemon *daemon = connection->worker->daemon;
	struct listing listing = { .daemon = daemon, .arena = &connection->worker->out };
	struct reply reply = { .id = request->id, .type = REPLY_QUOTA_RULES };
	struct list_cursor cursor;
	bool changed;

	if (!read_cursor(request->quota_list, &cursor)) {
		serve_error(connection, request->id, CODE_INVALID_ARGUMENT,
			    "this is not a cursor of a QuotaList");
		return;
	}
	listing.rules = arena_alloc(listing.arena, QUOTA_MAX_PAGE * sizeof(*listing.rules));
	listing.no_memory = listing.rules == NULL;
	listing.from = cursor.index;
	(void)pthread_mutex_lock(&daemon->rules_lock);
	changed = cursor.index > 0 && cursor.version != daemon->rules_version;
	cursor.version = daemon->rules_version;
	if (!changed && !listing.no_memory) {
		engine_rules_list(daemon->engine, list_rule, &listing);
	}
	(void)pthread_mutex_unlock(&daemon->rules_lock);
	if (changed) {
		serve_error(connection, request->id, CODE_FAILED_PRECONDITION,
			    "the rules were changed since the cursor was given; begin again");
		return;
	}
	if (listing.no_memory) {
		serve_error(connection, request->id, CODE_RESOURCE_EXHAUSTED,
			    "the daemon is out of memory");
		return;
	}
	cursor.index = listing.from + listing.n;
	reply.quota_rules.rules = listing.rules;
	reply.quota_rules.n_rules = listing.n;
	if (listing.full) {
		reply.quota_rules.cursor =
			(struct text){ .at = (const char *)&cursor, .len = sizeof(cursor) };
	} else {
		reply.quota_rules.cursor = text_of("");
	}
	connection_reply(connection, &reply);
}

/* ---- QuotaExplain ---- */

struct explaining {
	const struct daemon *daemon;
	struct arena *arena;
	struct quota_time time;
	struct explained explained;
	struct explained_level *levels;
	struct explained_sibling *siblings;
	struct explained_lease *leases;
	bool no_memory;
};

static uint64_t ends_in_ms(const struct window *window, int64_t wall_ns)
{
	int64_t left;

	if (window->kind != WINDOW_PER && window->kind != WINDOW_CALENDAR) {
		return 0;
	}
	left = window_end(window, window_number(window, wall_ns)) - wall_ns;
	return left > 0 ? ((uint64_t)left + 999999) / 1000000 : 0;
}

static void add_level(void *ctx, const struct engine_explained *from)
{
	struct explaining *explaining = ctx;
	struct explained_level *level;
	const char *source = "";

	if (explaining->explained.n_levels == QUOTA_MAX_LEVELS) {
		return;
	}
	if (from->layer == ENGINE_FILE) {
		source = config_quota_source(explaining->daemon->config, from->pattern,
					     from->pattern_len, from->window);
	}
	level = &explaining->levels[explaining->explained.n_levels++];
	*level = (struct explained_level){
		.window = serve_window(from->window),
		.limits = wire_limits(&from->limits),
		.layer = from->layer == ENGINE_FILE ? RULE_FILE : RULE_RUN_TIME,
		.usage = from->usage,
		.peak = from->peak,
		.left = from->left,
		.refusals = (uint64_t)from->refusals,
		.forced = from->forced,
		.effective_min = from->effective_min,
		.effective_low = from->effective_low,
		.binds = from->binds,
		.over_high = from->over_high,
		.over_max = from->over_max,
		.ends_in_ms = ends_in_ms(from->window, explaining->time.wall_ns),
	};
	level->path = level->pattern = level->source = text_of("");
	if (!serve_copy(explaining->arena, from->path, from->len, &level->path) ||
	    !serve_copy(explaining->arena, from->pattern, from->pattern_len, &level->pattern) ||
	    !serve_copy(explaining->arena, source, strlen(source), &level->source)) {
		explaining->no_memory = true;
	}
}

static void add_sibling(void *ctx, const struct engine_sibling *from)
{
	struct explaining *explaining = ctx;
	struct explained_sibling *sibling;

	static_assert(ENGINE_MAX_SIBLINGS <= MESSAGE_MAX_EXPLAINED, "all that are told of fit");
	explaining->explained.siblings_omitted = from->more;
	sibling = &explaining->siblings[explaining->explained.n_siblings++];
	*sibling = (struct explained_sibling){
		.path = text_of(""),
		.usage = from->usage,
		.effective_min = from->effective_min,
		.effective_low = from->effective_low,
	};
	if (!serve_copy(explaining->arena, from->path, from->len, &sibling->path)) {
		explaining->no_memory = true;
	}
}

static void add_lease(void *ctx, const struct lease *from)
{
	struct explaining *explaining = ctx;
	int64_t left = from->expires_ns - explaining->time.mono_ns;
	struct explained_lease *lease;

	if (explaining->explained.n_leases == MESSAGE_MAX_EXPLAINED) {
		explaining->explained.leases_omitted++;
		return;
	}
	lease = &explaining->leases[explaining->explained.n_leases++];
	*lease = (struct explained_lease){
		.path = text_of(""),
		.agent = text_of(""),
		.units = from->units,
		.expires_in_ms = left > 0 ? ((uint64_t)left + 999999) / 1000000 : 0,
	};
	if (!serve_copy(explaining->arena, from->path, from->len, &lease->path) ||
	    !serve_copy(explaining->arena, from->path + from->len, from->agent_len, &lease->agent)) {
		explaining->no_memory = true;
	}
}

static int explain(struct explaining *explaining, struct daemon *daemon, struct text path)
{
	int r;

	explaining->levels =
		arena_alloc(explaining->arena, QUOTA_MAX_LEVELS * sizeof(*explaining->levels));
	explaining->siblings = arena_alloc(explaining->arena,
					   MESSAGE_MAX_EXPLAINED * sizeof(*explaining->siblings));
	explaining->leases =
		arena_alloc(explaining->arena, MESSAGE_MAX_EXPLAINED * sizeof(*explaining->leases));
	if (explaining->levels == NULL || explaining->siblings == NULL ||
	    explaining->leases == NULL) {
		return -ENOMEM;
	}
	/* The lock keeps the configuration, which says where its rules are written. */
	(void)pthread_mutex_lock(&daemon->rules_lock);
	r = engine_explain(daemon->engine, path.at, path.len, explaining->time, add_level,
			   add_sibling, explaining);
	(void)pthread_mutex_unlock(&daemon->rules_lock);
	if (r == 0) {
		lease_book_each(&daemon->leases, path.at, path.len, add_lease, explaining);
	}
	return r == 0 && explaining->no_memory ? -ENOMEM : r;
}

void serve_quota_explain(struct connection *connection, const struct request *request)
{
	struct worker *worker = connection->worker;
	struct text path = request->quota_explain;
	struct reply reply = { .id = request->id, .type = REPLY_QUOTA_EXPLAINED };
	struct explaining explaining = { .daemon = worker->daemon,
					 .arena = &worker->out,
					 .time = *worker_time(worker) };
	int r;

	/* What workers hold back is usage as soon as it is folded: let it be all. */
	engine_flush(worker->daemon->engine, explaining.time.wall_ns);
	r = explain(&explaining, worker->daemon, path);
	if (r != 0) {
		serve_error(connection, request->id, serve_engine_code(r), "%s",
			    serve_engine_text(r, path));
		return;
	}
	reply.quota_explained = explaining.explained;
	reply.quota_explained.levels = explaining.levels;
	reply.quota_explained.siblings = explaining.siblings;
	reply.quota_explained.leases = explaining.leases;
	connection_reply(connection, &reply);
}
