#pragma once
/*
 * record: the lines of an export, a JSON object each.
 *
 *	{"rationd_export":1,"time":"2026-01-31T12:00:00Z","rationctl":"0.1.0"}	the first line: the version of this format is 1
 *	{"metric":"jobs","kind":"gauge","max_counters":0,"overflow":false,"expire_after_ms":0}
 *	{"quota":"jobs","layer":"run time","window":"per 1m","duration_ms":60000,"max":5,...}	as in 'quota show --json'
 *	{"counter":"requests/acme/web","own":12}	what was added at this very path
 *	{"end":1234}	the last line: so many were before it
 *
 * Numbers are JSON integers up to 2^53 either way and strings beyond. Members that are not known are ignored.
 */
#include <jansson.h>
#include <ration.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_VERSION 1

enum record_type {
	RECORD_HEAD,
	RECORD_METRIC,
	RECORD_QUOTA,
	RECORD_COUNTER,
	RECORD_END,
};

struct record {
	enum record_type type;
	json_t *json;	  /* where `name` is */
	const char *name; /* of the metric, the pattern, the path; not empty */
	int64_t number;	  /* HEAD: the version; COUNTER: own; END: lines */
	struct ration_metric metric;
	struct ration_limits limits;
	bool of_file; /* QUOTA: of the daemon's configuration, not of run time */
};

/*
 * Take a line apart. False: `why` says what is wrong and what would be right, safe to print. A record is to be freed by record_deinit.
 */
#define RECORD_WHY_BYTES 256
bool record_parse(const char *text, size_t len, struct record *ret_record,
		  char why[RECORD_WHY_BYTES]);
void record_deinit(struct record *record);

/* The lines; NULL: no memory. */
json_t *record_head(int64_t unix_time);
json_t *record_metric(const char *name, const struct ration_metric *metric);
json_t *record_quota(const struct ration_rule *rule);
json_t *record_counter(const char *path, int64_t own);
json_t *record_end(uint64_t lines);
