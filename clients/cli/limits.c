#include "clients/cli/limits.h"

#include "clients/cli/amount.h"
#include "clients/cli/cli.h"
#include "clients/cli/text.h"

#include <inttypes.h>
#include <stdlib.h>

const char *limits_window(const struct ration_limits *limits, char text[LIMITS_WINDOW_BYTES])
{
	char window[RATION_WINDOW_TEXT];
	char duration[AMOUNT_DURATION_BYTES];
	const char *shadow = limits->shadow ? ", shadow" : "";

	if (limits->window.kind == RATION_RATE) {
		(void)snprintf(text, LIMITS_WINDOW_BYTES, "rate %" PRId64 "/%s%s", limits->rate,
			       amount_format_duration(limits->per_ms, duration), shadow);
	} else if (limits->window.kind == RATION_NO_WINDOW) {
		(void)snprintf(text, LIMITS_WINDOW_BYTES, "-%s", shadow);
	} else {
		(void)snprintf(text, LIMITS_WINDOW_BYTES, "%s%s",
			       ration_window_text(&limits->window, window, sizeof(window)), shadow);
	}
	return text;
}

bool limits_hard(const struct ration_limits *limits, int64_t *ret_limit)
{
	if (limits->window.kind == RATION_RATE) {
		*ret_limit = limits->burst;
		return true;
	}
	if (limits->has_max) {
		*ret_limit = limits->max;
	}
	return limits->has_max;
}

const char *limits_layer(enum ration_layer layer)
{
	return layer == RATION_FILE ? "file" : "run time";
}

const char *limits_phrase(const char *what, int64_t limit, const struct ration_window *window,
			  char text[LIMITS_PHRASE_BYTES])
{
	char words[RATION_WINDOW_TEXT];
	const char *before = window->kind == RATION_RATE       ? " ("
			     : window->kind == RATION_CALENDAR ? " per "
			     : window->kind == RATION_PER      ? " "
							       : "";

	(void)snprintf(text, LIMITS_PHRASE_BYTES, "%s %" PRId64 "%s%s%s", what, limit, before,
		       ration_window_text(window, words, sizeof(words)),
		       window->kind == RATION_RATE ? ")" : "");
	return text;
}

/* When a refused charge may fit. */
static const char *retry_words(int64_t ms, char text[AMOUNT_DURATION_BYTES + 8])
{
	char duration[AMOUNT_DURATION_BYTES];

	if (ms < 0) {
		return "never";
	}
	if (ms == 0) {
		return "when something is given back";
	}
	(void)snprintf(text, AMOUNT_DURATION_BYTES + 8, "in %s",
		       amount_format_duration((uint64_t)ms, duration));
	return text;
}

char *limits_binding(const struct ration_binding *binding)
{
	static const char *const verbs[] = {
		[RATION_BINDS_MAX] = "refused by",
		[RATION_BINDS_RATE] = "refused by",
		[RATION_OVER_HIGH] = "over high at",
		[RATION_WOULD_REFUSE] = "a shadow limit would have refused:",
	};
	const char *what = binding->window.kind == RATION_RATE ? "burst"
			   : binding->kind == RATION_OVER_HIGH ? "high"
							       : "max";
	char phrase[LIMITS_PHRASE_BYTES];
	char left[32] = "";
	char when[AMOUNT_DURATION_BYTES + 8];
	char *path = text_safe_string(binding->path);
	char *text = NULL;

	if (binding->left != INT64_MAX) {
		(void)snprintf(left, sizeof(left), ", left %" PRId64, binding->left);
	}
	if (path == NULL ||
	    asprintf(&text, "%s %s: %s, usage %" PRId64 "%s%s%s", verbs[binding->kind], path,
		     limits_phrase(what, binding->limit, &binding->window, phrase), binding->usage,
		     left, limits_refuses(binding) ? "; retry: " : "",
		     limits_refuses(binding) ? retry_words(binding->retry_after_ms, when) : "") <
		    0) {
		text = NULL;
	}
	free(path);
	return text;
}

/* ---- JSON ---- */

json_t *limits_window_json(const struct ration_window *window)
{
	char text[RATION_WINDOW_TEXT];

	return window->kind == RATION_NO_WINDOW
		       ? json_null()
		       : json_string(ration_window_text(window, text, sizeof(text)));
}

json_t *limits_object(const struct ration_limits *limits)
{
	json_t *object = json_pack("{s:o, s:o, s:o, s:o, s:o, s:b}", "window",
				   limits_window_json(&limits->window), "max",
				   limits->has_max ? json_exact(limits->max) : json_null(), "high",
				   limits->has_high ? json_exact(limits->high) : json_null(), "low",
				   json_exact(limits->low), "min", json_exact(limits->min),
				   "shadow", limits->shadow);
	int r = 0;

	if (limits->window.kind == RATION_PER) {
		r = json_object_set_new(object, "duration_ms",
					json_exact((int64_t)limits->window.duration_ms));
	} else if (limits->window.kind == RATION_RATE) {
		r = json_object_set_new(object, "rate", json_exact(limits->rate)) |
		    json_object_set_new(object, "per_ms", json_exact((int64_t)limits->per_ms)) |
		    json_object_set_new(object, "burst", json_exact(limits->burst));
	}
	if (r != 0) {
		json_decref(object);
		return NULL;
	}
	return object;
}

json_t *limits_rule(const struct ration_limits *limits, const char *pattern)
{
	json_t *object = limits_object(limits);
	char *safe = text_safe_string(pattern);

	if (json_object_set_new(object, "pattern", json_string(safe)) != 0) {
		json_decref(object);
		object = NULL;
	}
	free(safe);
	return object;
}

static json_t *binding_object(const struct ration_binding *binding)
{
	static const char *const kinds[] = {
		[RATION_BINDS_MAX] = "max",
		[RATION_BINDS_RATE] = "rate",
		[RATION_OVER_HIGH] = "high",
		[RATION_WOULD_REFUSE] = "shadow",
	};
	char *path = text_safe_string(binding->path);
	json_t *object =
		json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "kind", kinds[binding->kind], "path",
			  path, "window", limits_window_json(&binding->window), "limit",
			  json_exact(binding->limit), "usage", json_exact(binding->usage), "left",
			  binding->left == INT64_MAX ? json_null() : json_exact(binding->left));

	free(path);
	if (object != NULL && limits_refuses(binding) &&
	    json_object_set_new(object, "retry_after_ms", json_exact(binding->retry_after_ms)) !=
		    0) {
		json_decref(object);
		return NULL;
	}
	return object;
}

json_t *limits_bindings_array(const struct ration_charge_result *result)
{
	json_t *array = json_array();

	for (size_t i = 0; result != NULL && i < result->n_bindings; i++) {
		if (json_array_append_new(array, binding_object(&result->bindings[i])) != 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}
