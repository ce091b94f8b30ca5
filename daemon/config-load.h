#pragma once
/*
 * config-load: what is kept while a configuration is read, shared by config.c and config-file.c.
 */
#include "daemon/config-keys.h"

#define CONFIG_MAX_KEYS 64u

/* A metric and which file said each of its keys last. */
struct config_draft_metric {
	struct config_metric metric;
	unsigned section_in; /* the file whose section was begun last; 0: none */
	unsigned set_in[CONFIG_MAX_KEYS];
};

/* A quota and where its section is. */
struct config_draft_quota {
	struct config_quota quota;
	unsigned source;
	bool bad; /* an error in it was reported */
	unsigned set_in[CONFIG_MAX_KEYS];
};

/* What a setting is for. */
struct config_target {
	enum config_section section;
	void *object;
	unsigned *set_in; /* by index in config_keys: the file that said it last */
	bool *bad;	  /* NULL, or set if the setting is in error */
};

struct config_load {
	struct config *config;
	struct config_report *report;
	struct config_draft_metric *metrics;
	size_t n_metrics;
	struct config_draft_quota *quotas;
	size_t n_quotas, quotas_size;
	unsigned source; /* counts files from 1, the flags last: what is set twice by one source is an error */
	unsigned set_in[CONFIG_MAX_KEYS]; /* by index in config_keys */
	bool no_memory;
};

/* Defaults, from the table. */
void config_load_fallbacks(enum config_section section, void *object);

/* "where: text" to the report. */
void config_load_error(struct config_load *load, const char *where, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

void config_load_warning(struct config_load *load, const char *where, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* One KEY = VALUE; errors are reported. */
void config_load_set(struct config_load *load, const char *where,
		     const struct config_target *target, const char *name, const char *value);

/* [daemon]'s */
struct config_target config_load_daemon(struct config_load *load);

/* The metric called `name`, made if need be; NULL: reported. */
struct config_draft_metric *config_load_metric(struct config_load *load, const char *where,
					       const char *name);

/* A new quota, whose section begins at `where`; NULL: no memory. */
struct config_draft_quota *config_load_quota(struct config_load *load, const char *where,
					     const char *pattern);

/* Those of load->quotas that hold, into load->config, checked one by one and together. 0 or -ENOMEM. */
int config_load_quotas(struct config_load *load);

/* All lines of `text`, which is called `name` in errors. */
void config_load_lines(struct config_load *load, const char *name, const char *text, size_t len);
/* A file, which must be there unless `may_be_missing`. */
void config_load_file(struct config_load *load, const char *path, bool may_be_missing);
/* All *.conf files in a folder, by name; no folder is fine. */
void config_load_folder(struct config_load *load, const char *path);
