/*
 * One line of `rationctl import`: whatever it is, it is taken or refused with a reason; and what is taken can be written as export writes
 * it, and read back as the same.
 */
#include "clients/cli/record.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds) {
		abort();
	}
}

static json_t *write_record(const struct record *record)
{
	const struct ration_rule rule = {
		.pattern = record->name,
		.limits = record->limits,
		.layer = record->of_file ? RATION_FILE : RATION_RUN_TIME,
		.source = "",
	};

	switch (record->type) {
	case RECORD_METRIC:
		return record_metric(record->name, &record->metric);
	case RECORD_QUOTA:
		return record_quota(&rule);
	case RECORD_COUNTER:
		return record_counter(record->name, record->number);
	case RECORD_END:
		return record_end((uint64_t)record->number);
	default:
		return record_head(0);
	}
}

static bool same_limits(const struct ration_limits *a, const struct ration_limits *b)
{
	bool is_rate = a->window.kind == RATION_RATE;

	return a->window.kind == b->window.kind && a->window.unit == b->window.unit &&
	       a->window.duration_ms == b->window.duration_ms && a->has_max == b->has_max &&
	       a->has_high == b->has_high && a->max == b->max && a->high == b->high &&
	       a->low == b->low && a->min == b->min && a->shadow == b->shadow &&
	       /* What has no rate need not have these. */
	       (!is_rate || (a->rate == b->rate && a->per_ms == b->per_ms && a->burst == b->burst));
}

static void check_round_trip(const struct record *record)
{
	char why[RECORD_WHY_BYTES];
	struct record again;
	json_t *line = write_record(record);
	char *text;

	check(line != NULL);
	text = json_dumps(line, JSON_COMPACT);
	check(text != NULL && strchr(text, '\n') == NULL);
	check(record_parse(text, strlen(text), &again, why));
	check(again.type == record->type);
	switch (record->type) {
	case RECORD_METRIC:
		check(strcmp(again.name, record->name) == 0 &&
		      again.metric.kind == record->metric.kind &&
		      again.metric.max_counters == record->metric.max_counters &&
		      again.metric.overflow == record->metric.overflow &&
		      again.metric.expire_after_ms == record->metric.expire_after_ms);
		break;
	case RECORD_QUOTA:
		check(strcmp(again.name, record->name) == 0 && again.of_file == record->of_file &&
		      same_limits(&again.limits, &record->limits));
		break;
	case RECORD_COUNTER:
		check(strcmp(again.name, record->name) == 0 && again.number == record->number);
		break;
	case RECORD_END:
		check(again.number == record->number);
		break;
	default:
		break;
	}
	record_deinit(&again);
	free(text);
	json_decref(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Exactly as large, so that a sanitizer sees a read beyond it. */
	char *text = malloc(size > 0 ? size : 1);
	char why[RECORD_WHY_BYTES] = "";
	struct record record;

	check(text != NULL);
	if (size > 0) {
		memcpy(text, data, size);
	}
	if (record_parse(text, size, &record, why)) {
		check_round_trip(&record);
		record_deinit(&record);
	} else {
		check(why[0] != '\0' && strlen(why) < RECORD_WHY_BYTES);
	}
	free(text);
	return 0;
}
