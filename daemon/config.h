#pragma once
/*
 * config: what the daemon is told by files and flags, as plain values.
 *
 * One const table (config-keys.c) says of every key how it is read, where it goes, its bounds, whether it may change while the
 * daemon runs and what it means; reading, checking, --print-config and the manual page all follow that table. A config is not
 * changed after it was loaded; a reload makes a new one.
 *
 * Order, later wins: defaults, /etc/rationd/rationd.conf, /etc/rationd/rationd.conf.d/<name>.conf sorted by name, flags.
 * --config FILE stands for another pair, FILE and FILE.d.
 *
 * A [quota] is known by its pattern and its window together: one pattern may have several, each with another window. One of a later
 * file takes the place of the whole of an earlier file's.
 */
#include "daemon/address.h"
#include "daemon/settings.h"
#include "lib/quota/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CONFIG_DEFAULT_FILE "/etc/rationd/rationd.conf"
#define CONFIG_MAX_FILE (1u << 20) /* bytes of one file */
#define CONFIG_MAX_LINE \
	198 /* bytes of a line that is a setting: what inih takes; of a [SECTION] 1023 */
#define CONFIG_MAX_LISTEN 64u
#define CONFIG_MAX_METRICS 1024u /* what the engine takes */
#define CONFIG_MAX_METRIC_NAME 128u
#define CONFIG_MAX_PATH 190u /* its end included; so that a line can hold it */
#define CONFIG_DEFAULT_STATE "/var/lib/rationd/state.db"
#define CONFIG_MAX_LEVELS 15u /* names of them: a path has one segment more */
#define CONFIG_MAX_LEVELS_TEXT 200u

enum config_error {
	CONFIG_OK = 0,
	CONFIG_E_INVALID, /* at least one error; each was reported */
};

struct engine_rule;

struct config_metric {
	char name[CONFIG_MAX_METRIC_NAME + 1];
	int64_t kind; /* enum engine_kind */
	int64_t max_counters;
	int64_t overflow;
	int64_t expire_after_ns;
	char help[CONFIG_MAX_PATH], unit[CONFIG_MAX_PATH]; /* "": nothing was said */
	char levels[CONFIG_MAX_LEVELS_TEXT]; /* what its segments are called: "host,route"; "": nothing was said */
};

/* A rule, as it is written and as the engine takes it. */
struct config_quota {
	char *pattern;
	char *where;		     /* "FILE:LINE" of its section */
	int64_t max, high, low, min; /* QUOTA_NONE: no max, no high */
	int64_t per_ns;		     /* 0: none */
	int64_t calendar;	     /* 0: none; else 1 + enum window_unit */
	int64_t rate, rate_per_ns;   /* 0: none; side by side, since one key says both */
	int64_t burst;		     /* 0: as many as the rate says */
	int64_t shadow;
	struct window window; /* the last two follow from the others */
	struct quota_limits limits;
};

/* All numbers are int64_t, whatever their range, so that the table needs one kind of place. */
struct config {
	struct address listen[CONFIG_MAX_LISTEN];
	size_t n_listen; /* 0: what systemd passed, or the default */
	int64_t socket_mode;
	int64_t workers; /* 0: one per CPU */
	int64_t batch;	 /* 0: the engine's default */
	int64_t max_counters;
	int64_t max_connections;
	int64_t max_statsd_connections;
	int64_t statsd_names; /* bytes, for each worker */
	int64_t max_sessions;
	int64_t max_handles_total;
	int64_t flush_interval_ns;
	int64_t stop_timeout_ns;
	int64_t http_max_connections;
	int64_t http_timeout_ns;
	char state[CONFIG_MAX_PATH]; /* "": no file */
	int64_t checkpoint_interval_ns;
	struct settings settings;
	struct config_metric *metrics; /* sorted by name */
	size_t n_metrics;
	struct config_quota *quotas; /* in the order of files and lines */
	size_t n_quotas;
	const struct config_quota **by_pattern; /* the same, sorted by pattern */
	int64_t max_waiting;
	int64_t max_waiting_bytes;
	int64_t max_leases_total;
};

/* Where errors go, and what is allowed but unwise: one clause each, beginning with FILE:LINE where there is one. Either may be NULL. */
struct config_report {
	void (*error)(void *ctx, const char *text);
	void (*warning)(void *ctx, const char *text);
	void *ctx;
	size_t n_errors, n_warnings;
};

struct config_flag {
	const char *name; /* "listen" */
	const char *value;
};

struct config_source {
	const char *file; /* NULL: CONFIG_DEFAULT_FILE, which may be missing */
	const struct config_flag *flags;
	size_t n_flags;
	bool recover; /* --recover: for the start alone, no key */
};

/* 0, CONFIG_E_INVALID, -ENOMEM. */
int config_load(const struct config_source *source, struct config_report *report,
		struct config **ret_config);
/* The same from text alone, as if it were one file called `name`: for tests and the fuzzer. */
int config_load_text(const char *name, const char *text, size_t len, struct config_report *report,
		     struct config **ret_config);
/* Takes NULL, returns NULL. */
struct config *config_free(struct config *config);

/* A valid file that says the same, with what every key means and its default; 0 or -EIO. */
int config_print(const struct config *config, FILE *file);

/*
 * Call `changed` for each key that differs between two configs and can't change while the daemon runs; `key` is "workers" or
 * "listen". Returns how many there are.
 */
size_t config_fixed_changes(const struct config *old, const struct config *new,
			    void (*changed)(void *ctx, const char *key), void *ctx);

/*
 * The engine's view of all quotas: an array to free, of config->n_quotas rules whose patterns are the config's and whose tag is 1 + the index.
 * NULL: no memory.
 */
struct engine_rule *config_rules(const struct config *config);
/* "FILE:LINE" of the quota with this tag, and of that with this pattern and window; "" if there is none. */
const char *config_quota_where(const struct config *config, uint32_t tag);
const char *config_quota_source(const struct config *config, const char *pattern, size_t len,
				const struct window *window);

/* NULL if there is none. */
const struct config_metric *config_metric_find(const struct config *config, const char *name);
