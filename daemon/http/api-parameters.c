/* What a request to /api/v1 says, and what is said of what it got wrong. */
#include "daemon/http/api.h"
#include "daemon/http/query.h"
#include "lib/base/number.h"
#include "lib/names/path.h"

#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#define API_MAX_ENTRIES 10000u /* of one reply */
#define API_ENTRIES 1000u      /* if nothing is said */

void parameters_free(struct parameters *parameters)
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

static const char unknown[] = "there is a parameter that means nothing here";

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
	return unknown;
}

struct parameters *parameters_read(struct http *http, struct evhttp_request *request,
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
	if (wrong == unknown && path_is_text(query.name, query.name_len)) {
		reply_error(http, request, HTTP_BADREQUEST, "%s: %s", wrong, query.name);
	} else {
		reply_error(http, request, HTTP_BADREQUEST, "%s", wrong);
	}
	parameters_free(parameters);
	return NULL;
}
