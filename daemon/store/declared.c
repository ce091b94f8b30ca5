#include "daemon/store/declared.h"

#include "daemon/daemon.h"
#include "daemon/store/store.h"
#include "lib/base/cleanup.h"
#include "lib/engine/quota.h"
#include "proto/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct list {
	struct daemon *daemon;
	struct arena arena; /* names and patterns */
	struct store_metric *metrics;
	struct engine_rule *rules;
	size_t n, size;
	int status;
};

static const char *copy(struct list *list, const char *text, size_t len)
{
	char *copied = arena_alloc(&list->arena, len);

	if (copied == NULL) {
		list->status = -ENOMEM;
		return "";
	}
	return memcpy(copied, text, len);
}

/* Room for one more in either array. */
static bool grow(struct list *list, void **array, size_t each)
{
	size_t size = list->size > 0 ? list->size * 2 : 64;
	void *grown;

	if (list->n < list->size) {
		return true;
	}
	grown = reallocarray(*array, size, each);
	if (grown == NULL) {
		list->status = -ENOMEM;
		return false;
	}
	*array = grown;
	list->size = size;
	return true;
}

/* ---- into the file ---- */

static bool is_configured(const struct daemon *daemon, const char *name, size_t len)
{
	for (size_t i = 0; i < daemon->config->n_metrics; i++) {
		const char *configured = daemon->config->metrics[i].name;

		if (strlen(configured) == len && memcmp(configured, name, len) == 0) {
			return true;
		}
	}
	return false;
}

static void take_metric(void *ctx, const char *name, size_t len, const struct engine_metric *metric)
{
	struct list *list = ctx;

	if (grow(list, (void **)&list->metrics, sizeof(*list->metrics))) {
		list->metrics[list->n++] = (struct store_metric){ .name = copy(list, name, len),
								  .len = len,
								  .metric = *metric };
	}
}

/* Those that the configuration declares become their kind, or nothing. */
static void leave_configured(struct list *list)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		struct store_metric metric = list->metrics[i];
		struct engine_reading reading;

		if (is_configured(list->daemon, metric.name, metric.len)) {
			if (engine_get(list->daemon->engine, metric.name, metric.len, &reading) !=
			    0) {
				continue;
			}
			metric.metric = (struct engine_metric){ .kind = metric.metric.kind };
		}
		list->metrics[n++] = metric;
	}
	list->n = n;
}

static int keep_metrics(struct daemon *daemon, struct store *store)
{
	struct list list = { .daemon = daemon, .arena = ARENA_INIT(SIZE_MAX) };
	int r;

	engine_metrics(daemon->engine, take_metric, &list);
	leave_configured(&list);
	r = list.status == 0 ? store_set_metrics(store, list.metrics, list.n) : list.status;
	free(list.metrics);
	arena_deinit(&list.arena);
	return r;
}

static void take_rule(void *ctx, const struct engine_rule *rule, enum engine_layer layer,
		      bool overridden)
{
	struct list *list = ctx;

	(void)overridden;
	if (layer == ENGINE_RUN_TIME && grow(list, (void **)&list->rules, sizeof(*list->rules))) {
		list->rules[list->n] = *rule;
		list->rules[list->n].pattern = copy(list, rule->pattern, rule->len);
		list->n++;
	}
}

static int keep_rules(struct daemon *daemon, struct store *store)
{
	struct list list = { .daemon = daemon, .arena = ARENA_INIT(SIZE_MAX) };
	int r;

	engine_rules_list(daemon->engine, take_rule, &list);
	r = list.status == 0 ? store_set_rules(store, list.rules, list.n) : list.status;
	free(list.rules);
	arena_deinit(&list.arena);
	return r;
}

int declared_keep_metrics(struct daemon *daemon, struct store *store)
{
	int r;

	(void)pthread_mutex_lock(&daemon->rules_lock);
	r = keep_metrics(daemon, store);
	(void)pthread_mutex_unlock(&daemon->rules_lock);
	return r;
}

int declared_keep(struct daemon *daemon, struct store *store)
{
	int r;

	(void)pthread_mutex_lock(&daemon->rules_lock);
	r = keep_metrics(daemon, store);
	if (r == 0) {
		r = keep_rules(daemon, store);
	}
	(void)pthread_mutex_unlock(&daemon->rules_lock);
	return r;
}

/* ---- and back ---- */

int declared_restore_metric(struct daemon *daemon, const char *name, size_t len,
			    const struct engine_metric *metric)
{
	struct engine_metric declared = *metric, before;
	int r;

	if (is_configured(daemon, name, len)) {
		(void)engine_metric(daemon->engine, name, len, &before);
		if (before.kind == metric->kind) {
			return 0;
		}
		log_line(&daemon->log, LOG_ERR,
			 "[metric %.*s]: its counters in the state file are of kind %s, and kind can't change while it has counters; "
			 "ignoring kind",
			 (int)len, name, metric->kind == ENGINE_GAUGE ? "gauge" : "counter");
		declared = before;
		declared.kind = metric->kind;
	}
	r = engine_declare(daemon->engine, name, len, &declared);
	if (r > 0) {
		log_line(&daemon->log, LOG_ERR,
			 "metric %.*s of the state file can't be declared; ignoring it", (int)len,
			 name);
	}
	return r < 0 ? r : 0;
}

struct fault {
	struct daemon *daemon;
	const struct engine_rule *rule;
};

static void log_fault(void *ctx, const struct engine_fault *fault)
{
	const struct fault *of = ctx;

	if (fault->fatal) {
		log_line(&of->daemon->log, LOG_ERR,
			 "the limit of %.*s that was set at run time does not hold any more: %s",
			 (int)of->rule->len, of->rule->pattern, fault->text);
	}
}

int declared_restore_rule(struct daemon *daemon, const struct engine_rule *rule)
{
	struct fault fault = { .daemon = daemon, .rule = rule };
	int r = engine_rule_set(daemon->engine, rule, daemon_time(), log_fault, &fault);

	return r < 0 ? r : 0;
}
