#include "daemon/reload.h"

#include "daemon/config.h"
#include "daemon/daemon.h"
#include "daemon/serve.h"
#include "daemon/statsd/statsd.h"
#include "lib/base/cleanup.h"
#include "lib/engine/quota.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what there is to say ---- */

static void keep(struct reload_told *told, int priority, const char *text)
{
	size_t size = strlen(text) + 2;

	if (size > sizeof(told->bytes) - told->len) {
		told->omitted++;
		return;
	}
	told->bytes[told->len] = priority <= LOG_ERR ? RELOAD_TOLD_ERROR : RELOAD_TOLD_NOTE;
	memcpy(told->bytes + told->len + 1, text, size - 1);
	told->len += size;
	*(priority <= LOG_ERR ? &told->n_errors : &told->n_notes) += 1;
}

/* To the log, and to whoever asked. */
static void tell(struct daemon *daemon, int priority, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void tell(struct daemon *daemon, int priority, const char *format, ...)
{
	char text[RELOAD_MAX_TEXT];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_line(&daemon->log, priority, "%s", text);
	if (daemon->told != NULL) {
		keep(daemon->told, priority, serve_clean(text));
	}
}

/* ---- metrics of the configuration ---- */

static struct engine_metric metric_of(const struct config_metric *metric)
{
	return (struct engine_metric){
		.kind = metric->kind == ENGINE_GAUGE ? ENGINE_GAUGE : ENGINE_COUNTER,
		.max_counters = (uint32_t)metric->max_counters,
		.overflow = metric->overflow != 0,
		.expire_after_ns = metric->expire_after_ns,
	};
}

static bool metric_equal(const struct config_metric *a, const struct config_metric *b)
{
	return b != NULL && a->kind == b->kind && a->max_counters == b->max_counters &&
	       a->overflow == b->overflow && a->expire_after_ns == b->expire_after_ns;
}

static int declare(struct daemon *daemon, const char *name, const struct engine_metric *metric)
{
	int r = engine_declare(daemon->engine, name, strlen(name), metric);

	if (r == ENGINE_E_KIND) {
		tell(daemon, LOG_ERR,
		     "[metric %s]: kind can't change while the metric has counters; restart for that",
		     name);
	} else if (r > 0) {
		tell(daemon, LOG_ERR,
		     "[metric %s]: can't be declared: there are as many metrics as there may be",
		     name);
	} else if (r < 0) {
		tell(daemon, LOG_ERR, "[metric %s]: can't be declared: %s", name, strerror(-r));
	}
	return r > 0 ? -EINVAL : r;
}

static bool is_new(const struct config_metric *metric, const struct config *old)
{
	return old == NULL || !metric_equal(metric, config_metric_find(old, metric->name));
}

/* Take back the first n. */
static void undeclare(struct daemon *daemon, const struct config *config, const struct config *old,
		      const struct engine_metric *before, size_t n)
{
	while (n-- > 0) {
		const struct config_metric *metric = &config->metrics[n];

		if (is_new(metric, old)) {
			(void)engine_declare(daemon->engine, metric->name, strlen(metric->name),
					     &before[n]);
		}
	}
}

/* All that differ, or none. before[i] is what each was. */
static int declare_all(struct daemon *daemon, const struct config *config, const struct config *old,
		       struct engine_metric *before)
{
	for (size_t done = 0; done < config->n_metrics; done++) {
		const struct config_metric *metric = &config->metrics[done];
		const struct engine_metric declared = metric_of(metric);
		int r;

		if (!is_new(metric, old)) {
			continue;
		}
		/* A metric that is not known yet is taken back to what such a metric is. */
		(void)engine_metric(daemon->engine, metric->name, strlen(metric->name),
				    &before[done]);
		r = declare(daemon, metric->name, &declared);
		if (r != 0) {
			undeclare(daemon, config, old, before, done);
			return r;
		}
	}
	return 0;
}

/* ---- quotas of the configuration ---- */

struct replacing {
	struct daemon *daemon;
	const struct config *config;
};

/* What is unwise was told when the files were read. */
static void take_fault(void *ctx, const struct engine_fault *fault)
{
	const struct replacing *replacing = ctx;
	const char *where = config_quota_where(replacing->config, fault->tag);

	if (fault->fatal) {
		tell(replacing->daemon, LOG_ERR, "%s: %s", where[0] != '\0' ? where : "quotas",
		     fault->text);
	}
}

/* From here on `config` is the daemon's: workers look up in it where rules are written. */
static int replace_rules(struct daemon *daemon, struct config *config)
{
	struct replacing replacing = { .daemon = daemon, .config = config };
	_cleanup_free_ struct engine_rule *rules = config_rules(config);
	int r;

	if (rules == NULL) {
		return -ENOMEM;
	}
	(void)pthread_mutex_lock(&daemon->rules_lock);
	r = engine_rules_replace(daemon->engine, rules, config->n_quotas, daemon_time(), take_fault,
				 &replacing);
	if (r == 0) {
		(void)pthread_mutex_lock(&daemon->config_lock);
		daemon->config = config;
		(void)pthread_mutex_unlock(&daemon->config_lock);
		daemon->rules_version++;
	}
	(void)pthread_mutex_unlock(&daemon->rules_lock);
	if (r == 0) {
		daemon_declared(daemon);
		waiting_wake_all(&daemon->waiting);
	}
	return r > 0 ? -EINVAL : r;
}

int reload_take(struct daemon *daemon, struct config *config, const struct config *old)
{
	_cleanup_free_ struct engine_metric *before =
		calloc(config->n_metrics + 1, sizeof(*before));
	int r = before != NULL ? declare_all(daemon, config, old, before) : -ENOMEM;

	if (r != 0) {
		return r;
	}
	/* Metrics first: a path with limits of its own is counted from then on, as what its metric says. */
	r = replace_rules(daemon, config);
	if (r != 0) {
		undeclare(daemon, config, old, before, config->n_metrics);
	}
	return r;
}

/* ---- reload ---- */

static void report_to_log(void *ctx, const char *text)
{
	struct daemon *daemon = ctx;

	tell(daemon, LOG_ERR, "%s", text);
}

static void warn_to_log(void *ctx, const char *text)
{
	struct daemon *daemon = ctx;

	tell(daemon, LOG_WARNING, "%s", text);
}

static void tell_fixed(void *ctx, const char *key)
{
	struct daemon *daemon = ctx;

	tell(daemon, LOG_WARNING,
	     "%s has changed in the configuration, which takes effect at restart", key);
}

static void tell_removed_metrics(struct daemon *daemon, const struct config *config,
				 const struct config *old)
{
	for (size_t i = 0; i < old->n_metrics; i++) {
		const char *name = old->metrics[i].name;

		if (config_metric_find(config, name) == NULL) {
			tell(daemon, LOG_WARNING,
			     "[metric %s] is no longer in the configuration, which takes effect at restart",
			     name);
		}
	}
}

/* Keeps what can't change as it runs, so that the next reload compares with what is in force. */
static void keep_fixed(struct config *config, const struct config *old)
{
	memcpy(config->listen, old->listen, sizeof(config->listen));
	config->n_listen = old->n_listen;
	config->socket_mode = old->socket_mode;
	config->workers = old->workers;
	config->batch = old->batch;
	config->max_counters = old->max_counters;
	config->statsd_names = old->statsd_names;
	memcpy(config->state, old->state, sizeof(config->state));
}

static int take_config(struct daemon *daemon, struct config *config)
{
	struct config *old = daemon->config;
	int r = reload_take(daemon, config, old);

	if (r != 0) {
		return r;
	}
	(void)config_fixed_changes(old, config, tell_fixed, daemon);
	tell_removed_metrics(daemon, config, old);
	keep_fixed(config, old);
	if (statsd_levels_differ(old, config) && statsd_set_levels(daemon) < 0) {
		tell(daemon, LOG_WARNING,
		     "levels: no memory; those of before hold until the next reload");
	}
	(void)config_free(old);
	daemon_set_limits(daemon);
	loop_set_flush_timer(daemon);
	checkpoint_set_interval(&daemon->checkpoint, config->checkpoint_interval_ns);
	for (unsigned i = 0; i < daemon->n_workers; i++) {
		/* Without memory for it a worker keeps its old limits: ignoring, the next reload tells it again. */
		(void)worker_send_settings(&daemon->workers[i], &config->settings);
	}
	return 0;
}

static int read_and_take(struct daemon *daemon)
{
	struct config_report report = { .error = report_to_log,
					.warning = warn_to_log,
					.ctx = daemon };
	struct config *config = NULL;
	int r = config_load(daemon->source, &report, &config);

	if (r == 0) {
		r = take_config(daemon, config);
		if (r != 0) {
			(void)config_free(config);
		}
	}
	return r > 0 ? -EINVAL : r;
}

int reload(struct daemon *daemon, struct reload_told *told)
{
	int r;

	*told = (struct reload_told){ 0 };
	daemon->told = told;
	r = read_and_take(daemon);
	if (r < 0 && told->n_errors == 0) {
		tell(daemon, LOG_ERR, "the configuration can't be read: %s", strerror(-r));
	}
	daemon->told = NULL;
	told->good = r == 0;
	if (r != 0) {
		daemon_count(&daemon->reloads_failed);
		log_event(&daemon->log, LOG_KIND_MAX, 0, LOG_ERR,
			  &(struct log_about){ .id = LOG_ID_RELOAD_FAILED },
			  "the configuration was not reloaded; what ran before goes on");
		return r;
	}
	daemon_count(&daemon->reloads);
	log_event(&daemon->log, LOG_KIND_MAX, 0, LOG_INFO,
		  &(struct log_about){ .id = LOG_ID_RELOADED }, "the configuration was reloaded");
	return 0;
}
