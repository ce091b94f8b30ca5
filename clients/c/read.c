/*
 * Reading counters: ration_get and ration_walk.
 */
#include "clients/c/call.h"
#include "clients/c/client.h"
#include "clients/c/clock.h"
#include "clients/c/error.h"
#include "clients/c/include/ration.h"
#include "lib/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define READ_PATH_EXTRA 4u /* bytes a path costs in a request beside its own */
#define READ_FRAME_EXTRA 64u
#define READ_PAGE \
	2000u /* entries asked for at a time: the daemon has no walk under way while the program looks at them */
#define READ_ARENA MESSAGE_ARENA_LIMIT
#define READ_MAX_PATH 512u

static enum consistency wire_consistency(enum ration_consistency consistency)
{
	switch (consistency) {
	case RATION_CACHED:
		return CONSISTENCY_CACHED;
	case RATION_EXACT:
		return CONSISTENCY_EXACT;
	default:
		return CONSISTENCY_FRESH;
	}
}

static struct ration_value public_value(const struct value *value)
{
	return (struct ration_value){
		.code = (int)value->code,
		.kind = value->kind == KIND_GAUGE ? RATION_GAUGE : RATION_COUNTER,
		.leaf = value->leaf,
		.own = value->own,
		.total = value->total,
	};
}

static int64_t clamp(uint64_t n)
{
	return n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

/* Of several answers the view is that of the worst. */
static void widen(struct ration_view *view, const struct view *by)
{
	if (by->present) {
		view->error_bound = clamp(by->error_bound) > view->error_bound
					    ? clamp(by->error_bound)
					    : view->error_bound;
		view->age_ms = clamp(by->age_ms) > view->age_ms ? clamp(by->age_ms) : view->age_ms;
	}
}

/* ---- get ---- */

struct get_part {
	size_t n;
	struct ration_value *ret_values;
	struct ration_view *view;
};

static int take_values(void *ctx, const struct reply *reply, const uint8_t *message, size_t len)
{
	struct get_part *part = ctx;

	(void)message;
	(void)len;
	if (reply->type != REPLY_VALUES || reply->values.n_values != part->n) {
		return -EBADMSG;
	}
	for (size_t i = 0; i < part->n; i++) {
		part->ret_values[i] = public_value(&reply->values.values[i]);
	}
	widen(part->view, &reply->values.view);
	return CALL_DONE;
}

static int take_pong(void *ctx, const struct reply *reply, const uint8_t *message, size_t len)
{
	(void)ctx;
	(void)message;
	(void)len;
	return reply->type == REPLY_PONG ? CALL_DONE : -EBADMSG;
}

/* As many of the paths as fit one request. */
static size_t fill_part(const char *const *paths, size_t n, const struct limits *limits,
			struct text *texts)
{
	size_t bytes = READ_FRAME_EXTRA, i;

	for (i = 0; i < n && i < limits->max_items; i++) {
		texts[i] = text_of(paths[i]);
		bytes += texts[i].len + READ_PATH_EXTRA;
		if (i > 0 && bytes > limits->max_frame) {
			break;
		}
	}
	return i;
}

static int get_part(struct ration *client, struct get_part *part, const struct text *texts,
		    enum ration_consistency consistency, int64_t deadline)
{
	const struct call_sink sink = { .take = take_values, .ctx = part };
	struct request request = {
		.type = REQUEST_GET,
		.get = {
			.n_paths = part->n,
			.paths = texts,
			.consistency = wire_consistency(consistency),
		},
	};

	return call_ask(client->call, &request, deadline, &sink);
}

static int ping(struct ration *client, int64_t deadline)
{
	const struct call_sink sink = { .take = take_pong };
	struct request request = { .type = REQUEST_PING };

	return call_ask(client->call, &request, deadline, &sink);
}

int ration_get(struct ration *client, const char *const *paths, size_t n,
	       enum ration_consistency consistency, int timeout_ms, struct ration_value *ret_values,
	       struct ration_view *ret_view)
{
	_cleanup_free_ struct ration_value *values = NULL;
	_cleanup_free_ struct text *texts = NULL;
	int64_t deadline = clock_deadline(timeout_ms);
	struct ration_view view = { 0 };
	uint8_t incarnation[MESSAGE_SESSION_BYTES];
	struct limits limits;
	int r;

	if (n == 0) {
		r = ping(client, deadline);
		if (r == 0 && ret_view != NULL) {
			*ret_view = view;
		}
		return r;
	}
	r = call_connect(client->call, deadline, &limits, incarnation);
	if (r != 0) {
		return r;
	}
	texts = calloc(n, sizeof(*texts));
	values = calloc(n, sizeof(*values));
	if (texts == NULL || values == NULL) {
		return error_set(-ENOMEM, "no memory for %zu values", n);
	}
	for (size_t at = 0; at < n;) {
		struct get_part part = { .ret_values = values + at, .view = &view };

		part.n = fill_part(paths + at, n - at, &limits, texts);
		if (part.n == 0) {
			return error_set(-EBADMSG, "the daemon takes no paths in a request");
		}
		r = get_part(client, &part, texts, consistency, deadline);
		if (r != 0) {
			return r;
		}
		at += part.n;
	}
	memcpy(ret_values, values, n * sizeof(*values));
	if (ret_view != NULL) {
		*ret_view = view;
	}
	return 0;
}

/* ---- walk ---- */

/*
 * A walk asks for READ_PAGE entries, keeps the messages of the answer, and gives up the turn before the program sees them: so a slow
 * visitor holds up nobody, and may itself ask.
 */
struct walk_state {
	struct walk walk;
	bool (*visit)(void *ctx, const struct ration_entry *entry);
	void *ctx;

	/* the messages of the present page, each behind its length */
	uint8_t *bytes;
	size_t len, size;

	char *cursor; /* where the next page begins */
	size_t cursor_len;
	bool more;
	struct arena arena;
	struct ration_view view;
};

static void walk_state_deinit(struct walk_state *state)
{
	free(state->bytes);
	free(state->cursor);
	arena_deinit(&state->arena);
}

static void forget_page(void *ctx)
{
	((struct walk_state *)ctx)->len = 0;
}

static int keep_message(struct walk_state *state, const uint8_t *message, size_t len)
{
	size_t size = state->size == 0 ? 16384 : state->size;
	uint8_t *bytes;

	while (size - state->len < sizeof(len) + len) {
		size *= 2;
	}
	if (size > state->size) {
		bytes = realloc(state->bytes, size);
		if (bytes == NULL) {
			return -ENOMEM;
		}
		state->bytes = bytes;
		state->size = size;
	}
	memcpy(state->bytes + state->len, &len, sizeof(len));
	memcpy(state->bytes + state->len + sizeof(len), message, len);
	state->len += sizeof(len) + len;
	return 0;
}

static int keep_cursor(struct walk_state *state, const struct text *cursor)
{
	char *copy = NULL;

	if (cursor->len > 0) {
		copy = malloc(cursor->len);
		if (copy == NULL) {
			return -ENOMEM;
		}
		memcpy(copy, cursor->at, cursor->len);
	}
	free(state->cursor);
	state->cursor = copy;
	state->cursor_len = cursor->len;
	state->more = cursor->len > 0;
	return 0;
}

static int take_page(void *ctx, const struct reply *reply, const uint8_t *message, size_t len)
{
	struct walk_state *state = ctx;
	int r;

	if (reply->type != REPLY_PAGE) {
		return -EBADMSG;
	}
	widen(&state->view, &reply->page.view);
	r = keep_message(state, message, len);
	if (r < 0 || !reply->page.last) {
		return r < 0 ? r : CALL_MORE;
	}
	return keep_cursor(state, &reply->page.cursor);
}

/* True to go on. */
static bool visit_entry(struct walk_state *state, const struct entry *entry)
{
	char path[READ_MAX_PATH + 1];
	struct ration_entry public = {
		.path = path,
		.depth = entry->depth,
		.value = public_value(&entry->value),
	};

	if (entry->path.len > READ_MAX_PATH) {
		return true;
	}
	memcpy(path, entry->path.at, entry->path.len);
	path[entry->path.len] = '\0';
	return state->visit(state->ctx, &public);
}

/* 0: all seen and the visitor wants more; 1: it has seen enough; or a negative errno. */
static int visit_page(struct walk_state *state)
{
	size_t at = 0, len;

	for (; at < state->len; at += len) {
		struct reply reply;
		int r;

		memcpy(&len, state->bytes + at, sizeof(len));
		at += sizeof(len);
		arena_reset(&state->arena);
		r = reply_decode(&state->arena, state->bytes + at, len, &reply);
		if (r < 0) {
			return r;
		}
		for (size_t i = 0; i < reply.page.n_entries; i++) {
			if (!visit_entry(state, &reply.page.entries[i])) {
				return 1;
			}
		}
	}
	return 0;
}

static int fetch_page(struct ration *client, struct walk_state *state, int64_t deadline)
{
	const struct call_sink sink = { .begin = forget_page, .take = take_page, .ctx = state };
	struct request request = { .type = REQUEST_WALK, .walk = state->walk };

	request.walk.limit = READ_PAGE;
	request.walk.cursor = (struct text){ .at = state->cursor, .len = state->cursor_len };
	return call_ask(client->call, &request, deadline, &sink);
}

/* Page by page. What the visitor takes does not count against the time. */
static int walk_pages(struct ration *client, struct walk_state *state, int64_t deadline)
{
	uint8_t incarnation[MESSAGE_SESSION_BYTES], now_incarnation[MESSAGE_SESSION_BYTES];
	struct limits limits;
	int r;

	r = call_connect(client->call, deadline, &limits, incarnation);
	if (r != 0) {
		return r;
	}
	do {
		int64_t begun;

		r = fetch_page(client, state, deadline);
		if (r == 0) {
			r = call_connect(client->call, deadline, &limits, now_incarnation);
		}
		if (r != 0) {
			return r;
		}
		if (memcmp(incarnation, now_incarnation, sizeof(incarnation)) != 0) {
			return error_set(RATION_ABORTED,
					 "the daemon was started anew during the walk");
		}
		begun = clock_now();
		r = visit_page(state);
		if (deadline != CLOCK_NEVER) {
			deadline += clock_now() - begun;
		}
	} while (r == 0 && state->more);
	if (r < 0) {
		return error_set(r, "%s", strerror(-r));
	}
	return 0;
}

int ration_walk(struct ration *client, const char *root, uint32_t depth,
		enum ration_consistency consistency, int timeout_ms,
		bool (*visit)(void *ctx, const struct ration_entry *entry), void *ctx,
		struct ration_view *ret_view)
{
	_cleanup_(walk_state_deinit) struct walk_state state = {
		.walk = {
			.root = text_of(root == NULL ? "" : root),
			.depth = depth,
			.consistency = wire_consistency(consistency),
		},
		.visit = visit,
		.ctx = ctx,
		.arena = ARENA_INIT(READ_ARENA),
	};
	int r;

	r = walk_pages(client, &state, clock_deadline(timeout_ms));
	if (r == 0 && ret_view != NULL) {
		*ret_view = state.view;
	}
	return r;
}
