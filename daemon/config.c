#include "daemon/config.h"

#include "daemon/config-load.h"
#include "lib/base/cleanup.h"
#include "lib/names/path.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

DEFINE_CLEANUP(struct config *, config_free);

struct config *config_free(struct config *config)
{
	if (config != NULL) {
		for (size_t i = 0; i < config->n_quotas; i++) {
			free(config->quotas[i].pattern);
			free(config->quotas[i].where);
		}
		free(config->quotas);
		free(config->by_pattern);
		free(config->metrics);
		free(config);
	}
	return NULL;
}

void config_load_fallbacks(enum config_section section, void *object)
{
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (key->section != section || key->type == CONFIG_LISTEN ||
		    key->type == CONFIG_LEVELS) {
			continue;
		}
		if (key->type == CONFIG_PATH || key->type == CONFIG_TEXT ||
		    key->type == CONFIG_UNIT) {
			memcpy(config_key_text(key, object), key->fallback_path,
			       strlen(key->fallback_path) + 1);
		} else {
			*config_key_place(key, object) = key->fallback;
		}
	}
}

static void __attribute__((format(printf, 4, 0)))
say(void (*to)(void *ctx, const char *text), void *ctx, const char *where, const char *format,
    va_list args)
{
	char text[CONFIG_MAX_ERROR_TEXT * 5];
	int len = snprintf(text, sizeof(text), "%s: ", where);

	if (to == NULL) {
		return;
	}
	if (len > 0 && len < (int)sizeof(text)) {
		(void)vsnprintf(text + len, sizeof(text) - (size_t)len, format, args);
	}
	to(ctx, text);
}

void config_load_error(struct config_load *load, const char *where, const char *format, ...)
{
	va_list args;

	load->report->n_errors++;
	va_start(args, format);
	say(load->report->error, load->report->ctx, where, format, args);
	va_end(args);
}

void config_load_warning(struct config_load *load, const char *where, const char *format, ...)
{
	va_list args;

	load->report->n_warnings++;
	va_start(args, format);
	say(load->report->warning, load->report->ctx, where, format, args);
	va_end(args);
}

/* The key of this section that looks most like `name`, for "did you mean"; NULL if none does. */
static const char *similar_key(enum config_section section, const char *name)
{
	const char *best = NULL;
	size_t best_common = 3;

	for (size_t i = 0; i < config_n_keys; i++) {
		const char *key = config_keys[i].name;
		size_t common = 0;

		while (key[common] != '\0' && key[common] == name[common]) {
			common++;
		}
		if (config_keys[i].section == section && common > best_common) {
			best = key;
			best_common = common;
		}
	}
	return best;
}

static void unknown_key(struct config_load *load, const char *where, enum config_section section,
			const char *name)
{
	const char *similar = similar_key(section, name);

	if (similar != NULL) {
		config_load_error(load, where, "unknown key '%s' in [%s]; did you mean '%s'?", name,
				  config_section_name(section), similar);
	} else {
		config_load_error(
			load, where,
			"unknown key '%s' in [%s]; see rationd.conf(5) for those there are", name,
			config_section_name(section));
	}
}

static void add_listen(struct config_load *load, const char *where, const char *value)
{
	struct config *config = load->config;
	struct address address;
	enum address_error r = address_parse(value, &address);

	if (value[0] == '\0') {
		config_load_error(
			load, where,
			"listen has no value; expected an address such as unix:PATH or tcp:HOST:PORT");
		return;
	}
	if (r != ADDRESS_OK) {
		config_load_error(load, where, "listen = %s: %s", value, address_error_text(r));
		return;
	}
	for (size_t i = 0; i < config->n_listen; i++) {
		if (address_equal(&config->listen[i], &address)) {
			config_load_error(load, where,
					  "listen = %s: is there already; give each address once",
					  value);
			return;
		}
	}
	if (config->n_listen == CONFIG_MAX_LISTEN) {
		config_load_error(
			load, where,
			"listen = %s: there are %u addresses already, and no more are allowed",
			value, CONFIG_MAX_LISTEN);
		return;
	}
	config->listen[config->n_listen++] = address;
}

static void set_listen(struct config_load *load, const char *where, unsigned *set_in,
		       const char *value)
{
	if (*set_in != load->source) {
		load->config->n_listen = 0;
		*set_in = load->source;
	}
	add_listen(load, where, value);
}

struct config_target config_load_daemon(struct config_load *load)
{
	return (struct config_target){ .section = CONFIG_DAEMON,
				       .object = load->config,
				       .set_in = load->set_in };
}

/* One that has a place of its own, whatever its type. */
static bool take_value(const struct config_key *key, void *object, const char *value, char *error)
{
	int64_t parsed[2];

	if (key->type == CONFIG_PATH || key->type == CONFIG_TEXT || key->type == CONFIG_UNIT) {
		return config_path_parse(key, value, config_key_text(key, object), error);
	}
	if (key->type == CONFIG_LEVELS) {
		return config_levels_parse(value, config_key_text(key, object), error);
	}
	if (!config_value_parse(key, value, parsed, error)) {
		return false;
	}
	memcpy(config_key_place(key, object), parsed,
	       (key->type == CONFIG_RATE ? 2 : 1) * sizeof(parsed[0]));
	return true;
}

static void set_value(struct config_load *load, const char *where,
		      const struct config_target *target, const char *name, const char *value)
{
	const struct config_key *key = config_key_find(target->section, name);
	char error[CONFIG_MAX_ERROR_TEXT];
	unsigned *set_in;

	if (key == NULL) {
		unknown_key(load, where, target->section, name);
		return;
	}
	set_in = &target->set_in[key - config_keys];
	if (key->type == CONFIG_LISTEN) {
		set_listen(load, where, set_in, value);
		return;
	}
	if (*set_in == load->source) {
		config_load_error(load, where,
				  "%s = %s: %s was set before in this file; set it once", name,
				  value, name);
		return;
	}
	*set_in = load->source;
	if (!take_value(key, target->object, value, error)) {
		config_load_error(load, where, value[0] == '\0' ? "%s%s %s" : "%s = %s: %s", name,
				  value, error);
	}
}

void config_load_set(struct config_load *load, const char *where,
		     const struct config_target *target, const char *name, const char *value)
{
	size_t before = load->report->n_errors;

	set_value(load, where, target, name, value);
	if (target->bad != NULL && load->report->n_errors > before) {
		*target->bad = true;
	}
}

struct config_draft_metric *config_load_metric(struct config_load *load, const char *where,
					       const char *name)
{
	enum path_error r = path_check_segment(name, strlen(name), NULL);
	struct config_draft_metric *grown;

	if (r != PATH_OK) {
		config_load_error(load, where,
				  "[metric %s]: the name of a metric is one segment of a path: %s",
				  name,
				  r == PATH_E_TOO_DEEP ? "it has no '/'" : path_error_text(r));
		return NULL;
	}
	for (size_t i = 0; i < load->n_metrics; i++) {
		if (strcmp(load->metrics[i].metric.name, name) == 0) {
			return &load->metrics[i];
		}
	}
	if (load->n_metrics == CONFIG_MAX_METRICS) {
		config_load_error(
			load, where,
			"[metric %s]: there are %u metrics already, and no more are allowed here",
			name, CONFIG_MAX_METRICS);
		return NULL;
	}
	grown = reallocarray(load->metrics, load->n_metrics + 1, sizeof(*grown));
	if (grown == NULL) {
		load->no_memory = true;
		return NULL;
	}
	load->metrics = grown;
	grown = &load->metrics[load->n_metrics++];
	memset(grown, 0, sizeof(*grown));
	config_load_fallbacks(CONFIG_METRIC, &grown->metric);
	memcpy(grown->metric.name, name, strlen(name) + 1);
	return grown;
}

static int compare_metrics(const void *a, const void *b)
{
	return strcmp(((const struct config_metric *)a)->name,
		      ((const struct config_metric *)b)->name);
}

static int take_metrics(struct config_load *load)
{
	struct config *config = load->config;

	config->metrics = calloc(load->n_metrics + 1, sizeof(*config->metrics));
	if (config->metrics == NULL) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < load->n_metrics; i++) {
		config->metrics[i] = load->metrics[i].metric;
	}
	config->n_metrics = load->n_metrics;
	qsort(config->metrics, config->n_metrics, sizeof(*config->metrics), compare_metrics);
	return 0;
}

/* What no single key can see. */
static void check_together(struct config_load *load)
{
	const struct config *config = load->config;

	for (size_t i = 0; i < config->n_metrics; i++) {
		const struct config_metric *metric = &config->metrics[i];

		if (metric->overflow != 0 && metric->max_counters == 0) {
			config_load_error(
				load, "configuration",
				"[metric %s]: overflow = yes has no effect without max_counters; set both",
				metric->name);
		}
	}
}

static void config_load_deinit(struct config_load *load)
{
	for (size_t i = 0; i < load->n_quotas; i++) {
		free(load->quotas[i].quota.pattern);
		free(load->quotas[i].quota.where);
	}
	free(load->quotas);
	free(load->metrics);
	load->quotas = NULL;
	load->metrics = NULL;
	load->n_quotas = load->n_metrics = 0;
}

static int finish(struct config_load *load, struct config **ret_config)
{
	int r = load->no_memory ? -ENOMEM : take_metrics(load);

	if (r == 0) {
		check_together(load);
		r = config_load_quotas(load);
	}
	config_load_deinit(load);
	if (r != 0) {
		return r;
	}
	if (load->report->n_errors > 0) {
		return CONFIG_E_INVALID;
	}
	*ret_config = load->config;
	load->config = NULL;
	return 0;
}

static struct config *config_new(void)
{
	struct config *config = calloc(1, sizeof(*config));

	if (config != NULL) {
		config_load_fallbacks(CONFIG_DAEMON, config);
	}
	return config;
}

int config_load_text(const char *name, const char *text, size_t len, struct config_report *report,
		     struct config **ret_config)
{
	_cleanup_(config_freep) struct config *config = config_new();
	struct config_load load = { .config = config, .report = report, .source = 1 };
	int r;

	if (config == NULL) {
		return -ENOMEM;
	}
	config_load_lines(&load, name, text, len);
	r = finish(&load, ret_config);
	config = load.config;
	return r;
}

static int load_files(struct config_load *load, const char *file)
{
	_cleanup_free_ char *folder = NULL;
	const char *path = file != NULL ? file : CONFIG_DEFAULT_FILE;

	if (asprintf(&folder, "%s.d", path) < 0) {
		folder = NULL;
		return -ENOMEM;
	}
	config_load_file(load, path, /* may_be_missing= */ file == NULL);
	config_load_folder(load, folder);
	return 0;
}

int config_load(const struct config_source *source, struct config_report *report,
		struct config **ret_config)
{
	_cleanup_(config_freep) struct config *config = config_new();
	struct config_load load = { .config = config, .report = report };
	struct config_target target;
	int r;

	if (config == NULL) {
		return -ENOMEM;
	}
	r = load_files(&load, source->file);
	if (r != 0) {
		config_load_deinit(&load);
		return r;
	}
	load.source++;
	target = config_load_daemon(&load);
	for (size_t i = 0; i < source->n_flags; i++) {
		char where[64];

		(void)snprintf(where, sizeof(where), "--%s", source->flags[i].name);
		config_load_set(&load, where, &target, source->flags[i].name,
				source->flags[i].value);
	}
	r = finish(&load, ret_config);
	config = load.config;
	return r;
}

static bool listen_differs(const struct config *a, const struct config *b)
{
	if (a->n_listen != b->n_listen) {
		return true;
	}
	for (size_t i = 0; i < a->n_listen; i++) {
		if (!address_equal(&a->listen[i], &b->listen[i])) {
			return true;
		}
	}
	return false;
}

static bool key_differs(const struct config_key *key, const struct config *a,
			const struct config *b)
{
	void *in_a = (void *)(uintptr_t)a, *in_b = (void *)(uintptr_t)b;

	switch (key->type) {
	case CONFIG_LISTEN:
		return listen_differs(a, b);
	case CONFIG_PATH:
	case CONFIG_TEXT:
	case CONFIG_UNIT:
		return strcmp(config_key_text(key, in_a), config_key_text(key, in_b)) != 0;
	default:
		return *config_key_place(key, in_a) != *config_key_place(key, in_b);
	}
}

size_t config_fixed_changes(const struct config *old, const struct config *new,
			    void (*changed)(void *ctx, const char *key), void *ctx)
{
	size_t n = 0;

	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (key->section == CONFIG_DAEMON && key->fixed && key_differs(key, old, new)) {
			changed(ctx, key->name);
			n++;
		}
	}
	return n;
}

static int compare_name(const void *name, const void *metric)
{
	return strcmp(name, ((const struct config_metric *)metric)->name);
}

const struct config_metric *config_metric_find(const struct config *config, const char *name)
{
	return bsearch(name, config->metrics, config->n_metrics, sizeof(*config->metrics),
		       compare_name);
}
