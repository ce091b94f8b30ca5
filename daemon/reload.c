#include "daemon/reload.h"

#include "daemon/config.h"
#include "daemon/daemon.h"
#include "lib/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
		log_line(
			&daemon->log, LOG_ERR,
			"[metric %s]: kind can't change while the metric has counters; restart for that",
			name);
	} else if (r > 0) {
		log_line(&daemon->log, LOG_ERR,
			 "[metric %s]: can't be declared: there are as many metrics as there may be",
			 name);
	} else if (r < 0) {
		log_line(&daemon->log, LOG_ERR, "[metric %s]: can't be declared: %s", name,
			 strerror(-r));
	}
	return r > 0 ? -EINVAL : r;
}

int reload_declare(struct daemon *daemon, const struct config *config, const struct config *old)
{
	_cleanup_free_ struct engine_metric *before =
		calloc(config->n_metrics + 1, sizeof(*before));
	int r = before != NULL ? 0 : -ENOMEM;
	size_t done = 0;

	for (; r == 0 && done < config->n_metrics; done++) {
		const struct config_metric *metric = &config->metrics[done];
		const struct engine_metric declared = metric_of(metric);

		if (old != NULL && metric_equal(metric, config_metric_find(old, metric->name))) {
			continue;
		}
		/* A metric that is not known yet is taken back to what such a metric is. */
		(void)engine_metric(daemon->engine, metric->name, strlen(metric->name),
				    &before[done]);
		r = declare(daemon, metric->name, &declared);
		if (r != 0) {
			break;
		}
	}
	while (r != 0 && done-- > 0) {
		const struct config_metric *metric = &config->metrics[done];

		if (old == NULL || !metric_equal(metric, config_metric_find(old, metric->name))) {
			(void)engine_declare(daemon->engine, metric->name, strlen(metric->name),
					     &before[done]);
		}
	}
	return r;
}

/* ---- reload ---- */

static void report_to_log(void *ctx, const char *text)
{
	struct daemon *daemon = ctx;

	log_line(&daemon->log, LOG_ERR, "%s", text);
}

static void tell_fixed(void *ctx, const char *key)
{
	struct daemon *daemon = ctx;

	log_line(&daemon->log, LOG_WARNING,
		 "%s has changed in the configuration, which takes effect at restart", key);
}

static void tell_removed_metrics(struct daemon *daemon, const struct config *config)
{
	for (size_t i = 0; i < daemon->config->n_metrics; i++) {
		const char *name = daemon->config->metrics[i].name;

		if (config_metric_find(config, name) == NULL) {
			log_line(
				&daemon->log, LOG_WARNING,
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
}

static int take_config(struct daemon *daemon, struct config *config)
{
	int r = reload_declare(daemon, config, daemon->config);

	if (r != 0) {
		return r;
	}
	(void)config_fixed_changes(daemon->config, config, tell_fixed, daemon);
	tell_removed_metrics(daemon, config);
	keep_fixed(config, daemon->config);
	daemon->config = config_free(daemon->config);
	daemon->config = config;
	daemon_set_limits(daemon);
	daemon_set_flush_timer(daemon);
	for (unsigned i = 0; i < daemon->n_workers; i++) {
		/* Without memory for it a worker keeps its old limits: ignoring, the next reload tells it again. */
		(void)worker_send_settings(&daemon->workers[i], &config->settings);
	}
	return 0;
}

int reload(struct daemon *daemon)
{
	struct config_report report = { .error = report_to_log, .ctx = daemon };
	struct config *config = NULL;
	int r = config_load(daemon->source, &report, &config);

	if (r == 0) {
		r = take_config(daemon, config);
		if (r != 0) {
			(void)config_free(config);
		}
	}
	if (r != 0) {
		daemon_count(&daemon->reloads_failed);
		log_line(&daemon->log, LOG_ERR,
			 "the configuration was not reloaded; what ran before goes on");
		return r > 0 ? -EINVAL : r;
	}
	daemon_count(&daemon->reloads);
	log_line(&daemon->log, LOG_INFO, "the configuration was reloaded");
	return 0;
}
