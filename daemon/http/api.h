#pragma once
/*
 * api: what the pages of /api/v1 share. docs/http.md says what there is.
 *
 * Thread safety: the HTTP thread alone.
 */
#include "daemon/http/thread.h"
#include "lib/engine/engine.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API_MAX_PATHS 256u /* of one request */

/* ---- parameters ---- */

/* What a request says behind its ?. */
struct parameters {
	size_t n_paths;
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

/* NULL: the request was answered with what is wrong. `takes`: of those above. */
struct parameters *parameters_read(struct http *http, struct evhttp_request *request,
				   unsigned takes);
/* Takes NULL. */
void parameters_free(struct parameters *parameters);

/* ---- replies ---- */

/* A string where JSON's readers would not keep the number. */
json_t *api_exact(int64_t value);
/* Null for QUOTA_NONE. */
json_t *api_exact_or_null(int64_t value);

/* Answers the request with what the engine says of a path. */
void api_reply_error(struct http *http, struct evhttp_request *request, int error, const char *path,
		     size_t len);
