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
 */
#include "daemon/address.h"
#include "daemon/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CONFIG_DEFAULT_FILE "/etc/rationd/rationd.conf"
#define CONFIG_MAX_FILE (1u << 20) /* bytes of one file */
#define CONFIG_MAX_LISTEN 64u
#define CONFIG_MAX_METRICS 1024u /* what the engine takes */
#define CONFIG_MAX_METRIC_NAME 128u

enum config_error {
	CONFIG_OK = 0,
	CONFIG_E_INVALID, /* at least one error; each was reported */
};

struct config_metric {
	char name[CONFIG_MAX_METRIC_NAME + 1];
	int64_t kind; /* enum engine_kind */
	int64_t max_counters;
	int64_t overflow;
	int64_t expire_after_ns;
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
	int64_t max_sessions;
	int64_t max_handles_total;
	int64_t flush_interval_ns;
	int64_t stop_timeout_ns;
	struct settings settings;
	struct config_metric *metrics; /* sorted by name */
	size_t n_metrics;
};

/* Where errors go: one clause each, beginning with FILE:LINE where there is one. */
struct config_report {
	void (*error)(void *ctx, const char *text);
	void *ctx;
	size_t n_errors;
};

struct config_flag {
	const char *name; /* "listen" */
	const char *value;
};

struct config_source {
	const char *file; /* NULL: CONFIG_DEFAULT_FILE, which may be missing */
	const struct config_flag *flags;
	size_t n_flags;
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

/* NULL if there is none. */
const struct config_metric *config_metric_find(const struct config *config, const char *name);
