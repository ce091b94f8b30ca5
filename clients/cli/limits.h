#pragma once
/*
 * limits: how limits, and what they have to say, are put into words, columns and JSON.
 */
#include <jansson.h>
#include <ration.h>
#include <stdbool.h>

/* "-" without a window, "per 1m", "calendar day", "rate 100/1s", "rate 100/1s, shadow". Returns text. */
#define LIMITS_WINDOW_BYTES 160
const char *limits_window(const struct ration_limits *limits, char text[LIMITS_WINDOW_BYTES]);

/* What is never passed: max, or burst of a rate. False: nothing. */
bool limits_hard(const struct ration_limits *limits, int64_t *ret_limit);

/* "file" or "run time" */
const char *limits_layer(enum ration_layer layer);

/* "max 100 per 1m", "high 80 per calendar day", "burst 50 (rate)": a limit in a sentence. */
#define LIMITS_PHRASE_BYTES 128
const char *limits_phrase(const char *what, int64_t limit, const struct ration_window *window,
			  char text[LIMITS_PHRASE_BYTES]);

/* "refused by jobs: max 100, usage 98, left 2; retry: never"; complete, and safe to print. To be freed; NULL: no memory. */
char *limits_binding(const struct ration_binding *binding);

/* Does it refuse? Else it is only told. */
static inline bool limits_refuses(const struct ration_binding *binding)
{
	return binding->kind == RATION_BINDS_MAX || binding->kind == RATION_BINDS_RATE;
}

/* ---- JSON; NULL: no memory ---- */

/* {"window": "per 1m", "duration_ms": 60000, "max": 5, "high": null, ...}: `window` is null where there is none. */
json_t *limits_object(const struct ration_limits *limits);
/* The same with "pattern". */
json_t *limits_rule(const struct ration_limits *limits, const char *pattern);
json_t *limits_window_json(const struct ration_window *window);
/* `result` may be NULL. */
json_t *limits_bindings_array(const struct ration_charge_result *result);
