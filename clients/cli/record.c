#include "clients/cli/record.h"

#include "clients/cli/cli.h"
#include "clients/cli/limits.h"
#include "clients/cli/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- to lines ---- */

json_t *record_head(int64_t unix_time)
{
	time_t seconds = (time_t)unix_time;
	struct tm utc = { 0 };
	char text[32];

	(void)gmtime_r(&seconds, &utc);
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
	return json_pack("{s:i, s:s, s:s}", "rationd_export", RECORD_VERSION, "time", text,
			 "rationctl", RATION_VERSION);
}

json_t *record_metric(const char *name, const struct ration_metric *metric)
{
	return json_pack("{s:s, s:s, s:o, s:b, s:o}", "metric", name, "kind",
			 metric->kind == RATION_GAUGE ? "gauge" : "counter", "max_counters",
			 json_exact(metric->max_counters), "overflow", metric->overflow,
			 "expire_after_ms", json_exact((int64_t)metric->expire_after_ms));
}

json_t *record_quota(const struct ration_rule *rule)
{
	json_t *object =
		json_pack("{s:s, s:s}", "quota", rule->pattern, "layer", limits_layer(rule->layer));
	json_t *limits = limits_object(&rule->limits);

	if (object == NULL || limits == NULL || json_object_update(object, limits) != 0) {
		json_decref(object);
		object = NULL;
	}
	json_decref(limits);
	return object;
}

json_t *record_counter(const char *path, int64_t own)
{
	return json_pack("{s:s, s:o}", "counter", path, "own", json_exact(own));
}

json_t *record_end(uint64_t lines)
{
	return json_pack("{s:I}", "end", (json_int_t)lines);
}

/* ---- from lines ---- */

static bool wrong(char why[RECORD_WHY_BYTES], const char *text)
{
	(void)snprintf(why, RECORD_WHY_BYTES, "%s", text);
	return false;
}

/* An integer, or one as a string. */
static bool read_integer(const json_t *value, int64_t *ret_number)
{
	const char *text = json_string_value(value);
	char *end = NULL;
	long long number;

	if (json_is_integer(value)) {
		*ret_number = json_integer_value(value);
		return true;
	}
	if (text == NULL || (text[0] != '-' && (text[0] < '0' || text[0] > '9'))) {
		return false;
	}
	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno != 0 || *end != '\0' || end == text) {
		return false;
	}
	*ret_number = number;
	return true;
}

/* The member `key`, which may be left out or null: then it stays as it is. */
static bool read_member(const json_t *object, const char *key, int64_t min, int64_t max,
			int64_t *number)
{
	const json_t *value = json_object_get(object, key);

	if (value == NULL || json_is_null(value)) {
		return true;
	}
	return read_integer(value, number) && *number >= min && *number <= max;
}

static bool read_metric(const json_t *object, struct record *record, char why[RECORD_WHY_BYTES])
{
	const char *kind = json_string_value(json_object_get(object, "kind"));
	const json_t *overflow = json_object_get(object, "overflow");
	int64_t max_counters = 0, expire = 0;

	record->metric = (struct ration_metric)RATION_METRIC_INIT;
	if (kind == NULL || (strcmp(kind, "counter") != 0 && strcmp(kind, "gauge") != 0)) {
		return wrong(why, "its kind must be \"counter\" or \"gauge\"");
	}
	if (!read_member(object, "max_counters", 0, UINT32_MAX, &max_counters) ||
	    !read_member(object, "expire_after_ms", 0, INT64_MAX, &expire) ||
	    (overflow != NULL && !json_is_boolean(overflow))) {
		return wrong(
			why,
			"max_counters and expire_after_ms must be numbers from 0 on, overflow true or false");
	}
	record->metric.kind = strcmp(kind, "gauge") == 0 ? RATION_GAUGE : RATION_COUNTER;
	record->metric.max_counters = (uint32_t)max_counters;
	record->metric.overflow = json_is_true(overflow);
	record->metric.expire_after_ms = (uint64_t)expire;
	return true;
}

static bool read_window(const json_t *object, struct ration_window *window)
{
	static const char *const units[] = {
		[RATION_DAY] = "calendar day",
		[RATION_WEEK] = "calendar week",
		[RATION_MONTH] = "calendar month",
	};
	const json_t *value = json_object_get(object, "window");
	const char *text = json_string_value(value);
	int64_t duration_ms = 0;

	if (value == NULL || json_is_null(value)) {
		return true;
	}
	if (text == NULL) {
		return false;
	}
	for (int unit = RATION_DAY; unit <= RATION_MONTH; unit++) {
		if (strcmp(text, units[unit]) == 0) {
			window->kind = RATION_CALENDAR;
			window->unit = (enum ration_window_unit)unit;
			return true;
		}
	}
	if (strcmp(text, "rate") == 0) {
		window->kind = RATION_RATE;
		return true;
	}
	window->kind = RATION_PER;
	if (strncmp(text, "per ", 4) != 0 ||
	    !read_member(object, "duration_ms", 1, INT64_MAX, &duration_ms)) {
		return false;
	}
	window->duration_ms = (uint64_t)duration_ms;
	return duration_ms != 0;
}

static bool is_set(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return value != NULL && !json_is_null(value);
}

static bool read_quota(const json_t *object, struct record *record, char why[RECORD_WHY_BYTES])
{
	struct ration_limits *limits = &record->limits;
	const char *layer = json_string_value(json_object_get(object, "layer"));
	const json_t *shadow = json_object_get(object, "shadow");
	int64_t per_ms = 0;

	*limits = (struct ration_limits)RATION_LIMITS_INIT;
	if (layer == NULL || (strcmp(layer, limits_layer(RATION_FILE)) != 0 &&
			      strcmp(layer, limits_layer(RATION_RUN_TIME)) != 0)) {
		return wrong(why, "its layer must be \"file\" or \"run time\"");
	}
	if (!read_window(object, &limits->window)) {
		return wrong(
			why,
			"its window must be null, \"rate\", \"calendar day\" (or week, month), or \"per D\" with a duration_ms");
	}
	if (!read_member(object, "max", 0, INT64_MAX, &limits->max) ||
	    !read_member(object, "high", 0, INT64_MAX, &limits->high) ||
	    !read_member(object, "low", 0, INT64_MAX, &limits->low) ||
	    !read_member(object, "min", 0, INT64_MAX, &limits->min) ||
	    !read_member(object, "rate", 0, INT64_MAX, &limits->rate) ||
	    !read_member(object, "per_ms", 0, INT64_MAX, &per_ms) ||
	    !read_member(object, "burst", 0, INT64_MAX, &limits->burst) ||
	    (shadow != NULL && !json_is_boolean(shadow))) {
		return wrong(why, "its limits must be numbers from 0 on, shadow true or false");
	}
	limits->has_max = is_set(object, "max");
	limits->has_high = is_set(object, "high");
	limits->per_ms = (uint64_t)per_ms;
	limits->shadow = json_is_true(shadow);
	record->of_file = strcmp(layer, limits_layer(RATION_FILE)) == 0;
	return true;
}

static bool read_number(const json_t *object, const char *key, int64_t min, struct record *record,
			char why[RECORD_WHY_BYTES])
{
	if (!read_integer(json_object_get(object, key), &record->number) || record->number < min) {
		(void)snprintf(why, RECORD_WHY_BYTES, "%s must be a whole number%s", key,
			       min == 0 ? " from 0 on" : "");
		return false;
	}
	return true;
}

static const struct {
	const char *key; /* the member that only such lines have */
	enum record_type type;
	bool is_named;
} kinds[] = {
	{ "counter", RECORD_COUNTER, true },	  { "metric", RECORD_METRIC, true },
	{ "quota", RECORD_QUOTA, true },	  { "end", RECORD_END, false },
	{ "rationd_export", RECORD_HEAD, false },
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static bool read_record(const json_t *object, struct record *record, char why[RECORD_WHY_BYTES])
{
	size_t i = 0;

	while (i < N_KINDS && json_object_get(object, kinds[i].key) == NULL) {
		i++;
	}
	if (i == N_KINDS) {
		return wrong(
			why,
			"not a line of an export: an object with \"counter\", \"metric\" or \"quota\" is");
	}
	record->type = kinds[i].type;
	record->name = json_string_value(json_object_get(object, kinds[i].key));
	if (kinds[i].is_named && (record->name == NULL || record->name[0] == '\0')) {
		(void)snprintf(why, RECORD_WHY_BYTES, "%s must be a string that is not empty",
			       kinds[i].key);
		return false;
	}
	switch (record->type) {
	case RECORD_METRIC:
		return read_metric(object, record, why);
	case RECORD_QUOTA:
		return read_quota(object, record, why);
	case RECORD_COUNTER:
		return read_number(object, "own", INT64_MIN, record, why);
	default:
		return read_number(object, kinds[i].key, 0, record, why);
	}
}

bool record_parse(const char *text, size_t len, struct record *ret_record,
		  char why[RECORD_WHY_BYTES])
{
	json_error_t error;
	struct record record = { .json = json_loadb(text, len, 0, &error) };
	char *safe;

	if (record.json == NULL) {
		safe = text_safe(error.text, strlen(error.text), 160);
		(void)snprintf(why, RECORD_WHY_BYTES, "not JSON: %s", safe != NULL ? safe : "");
		free(safe);
		return false;
	}
	if (!json_is_object(record.json)) {
		(void)wrong(why, "not a JSON object");
		record_deinit(&record);
		return false;
	}
	if (!read_record(record.json, &record, why)) {
		record_deinit(&record);
		return false;
	}
	*ret_record = record;
	return true;
}

void record_deinit(struct record *record)
{
	json_decref(record->json);
	record->json = NULL;
}
