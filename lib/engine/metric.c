#include "lib/engine/metric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void metrics_deinit(struct metrics *metrics)
{
	for (size_t i = 0; i < metrics->n; i++) {
		free(metrics->sorted[i]);
	}
	free(metrics->sorted);
	(void)pthread_mutex_destroy(&metrics->mutex);
	*metrics = (struct metrics)METRICS_INIT;
}

static int compare(const struct metric *metric, const char *name, size_t len)
{
	int order = memcmp(metric->name, name, metric->len < len ? metric->len : len);

	return order != 0 ? order : (metric->len > len) - (metric->len < len);
}

/* Where it is, or would be put in. */
static size_t locate(const struct metrics *metrics, const char *name, size_t len, bool *ret_found)
{
	size_t low = 0, high = metrics->n;

	*ret_found = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare(metrics->sorted[middle], name, len);

		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

static struct metric *find_locked(const struct metrics *metrics, const char *path, size_t len)
{
	const char *slash = memchr(path, '/', len);
	bool found;
	size_t i = locate(metrics, path, slash ? (size_t)(slash - path) : len, &found);

	return found ? metrics->sorted[i] : NULL;
}

struct metric *metrics_find(struct metrics *metrics, const char *path, size_t len)
{
	struct metric *metric;

	(void)pthread_mutex_lock(&metrics->mutex);
	metric = find_locked(metrics, path, len);
	(void)pthread_mutex_unlock(&metrics->mutex);
	return metric;
}

bool metrics_policy(struct metrics *metrics, const char *path, size_t len,
		    struct engine_metric *ret_policy)
{
	struct metric *metric;

	(void)pthread_mutex_lock(&metrics->mutex);
	metric = find_locked(metrics, path, len);
	if (metric) {
		*ret_policy = metric->policy;
	}
	(void)pthread_mutex_unlock(&metrics->mutex);
	return metric != NULL;
}

void metrics_each(struct metrics *metrics, engine_metric_fn each, void *ctx)
{
	(void)pthread_mutex_lock(&metrics->mutex);
	for (size_t i = 0; i < metrics->n; i++) {
		const struct metric *metric = metrics->sorted[i];

		each(ctx, metric->name, metric->len, &metric->policy);
	}
	(void)pthread_mutex_unlock(&metrics->mutex);
}

bool metrics_expire(struct metrics *metrics)
{
	bool any;

	(void)pthread_mutex_lock(&metrics->mutex);
	any = metrics->n_expiring > 0;
	(void)pthread_mutex_unlock(&metrics->mutex);
	return any;
}

static int insert(struct metrics *metrics, size_t at, const char *name, size_t len)
{
	struct metric *metric;

	if (metrics->n == ENGINE_MAX_METRICS) {
		return ENGINE_E_FULL;
	}
	if (!metrics->sorted) {
		metrics->sorted = calloc(ENGINE_MAX_METRICS, sizeof(struct metric *));
		if (!metrics->sorted) {
			return -ENOMEM;
		}
	}
	metric = calloc(1, sizeof(*metric));
	if (!metric) {
		return -ENOMEM;
	}
	memcpy(metric->name, name, len);
	metric->len = len;
	memmove(metrics->sorted + at + 1, metrics->sorted + at,
		(metrics->n - at) * sizeof(struct metric *));
	metrics->sorted[at] = metric;
	metrics->n++;
	return 0;
}

int metrics_declare(struct metrics *metrics, const char *name, size_t len,
		    const struct engine_metric *policy, struct metric **ret_metric, bool *ret_new)
{
	bool found;
	size_t at;
	int r = 0;

	(void)pthread_mutex_lock(&metrics->mutex);
	at = locate(metrics, name, len, &found);
	if (!found) {
		r = insert(metrics, at, name, len);
	}
	if (r == 0) {
		struct metric *metric = metrics->sorted[at];

		metrics->n_expiring += policy->expire_after_ns > 0;
		metrics->n_expiring -= metric->policy.expire_after_ns > 0;
		metric->policy = *policy;
		*ret_metric = metric;
		*ret_new = !found;
	}
	(void)pthread_mutex_unlock(&metrics->mutex);
	return r;
}
