#include "daemon/statsd/levels.h"

#include <stdlib.h>
#include <string.h>

static size_t text_of(const struct config_metric *metric)
{
	return strlen(metric->name) + strlen(metric->levels);
}

/* Copies `len` bytes behind what is there. */
static const char *keep(char **end, const char *text, size_t len)
{
	const char *kept = *end;

	memcpy(*end, text, len);
	*end += len;
	return kept;
}

static void take(struct statsd_metric_levels *ours, const struct config_metric *metric, char **end)
{
	const char *at = metric->levels;

	ours->metric_len = strlen(metric->name);
	ours->metric = keep(end, metric->name, ours->metric_len);
	while (*at != '\0' && ours->n < CONFIG_MAX_LEVELS) {
		size_t len = strcspn(at, ",");

		ours->levels[ours->n++] = (struct statsd_level){ keep(end, at, len), len };
		at += len + (at[len] == ',');
	}
}

struct statsd_levels *statsd_levels_new(const struct config *config, uint64_t generation)
{
	struct statsd_levels *levels;
	size_t n = 0, text = 0;
	char *end;

	for (size_t i = 0; i < config->n_metrics; i++) {
		if (config->metrics[i].levels[0] != '\0') {
			n++;
			text += text_of(&config->metrics[i]);
		}
	}
	levels = calloc(1, sizeof(*levels) + n * sizeof(levels->metrics[0]) + text);
	if (levels == NULL) {
		return NULL;
	}
	levels->generation = generation;
	end = (char *)&levels->metrics[n];
	/* The configuration's are sorted. */
	for (size_t i = 0; i < config->n_metrics; i++) {
		if (config->metrics[i].levels[0] != '\0') {
			take(&levels->metrics[levels->n++], &config->metrics[i], &end);
		}
	}
	return levels;
}

/* Is there a metric whose levels the other one does not have? */
static bool has_more(const struct config *a, const struct config *b)
{
	for (size_t i = 0; i < a->n_metrics; i++) {
		const struct config_metric *ours = &a->metrics[i];
		const struct config_metric *theirs = config_metric_find(b, ours->name);

		if (strcmp(ours->levels, theirs != NULL ? theirs->levels : "") != 0) {
			return true;
		}
	}
	return false;
}

bool statsd_levels_differ(const struct config *a, const struct config *b)
{
	return has_more(a, b) || has_more(b, a);
}

const struct statsd_metric_levels *statsd_levels_find(const struct statsd_levels *levels,
						      const char *metric, size_t len)
{
	size_t low = 0, high = levels->n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct statsd_metric_levels *at = &levels->metrics[middle];
		size_t least = len < at->metric_len ? len : at->metric_len;
		int order = memcmp(metric, at->metric, least);

		if (order == 0 && len == at->metric_len) {
			return at;
		}
		if (order < 0 || (order == 0 && len < at->metric_len)) {
			high = middle;
		} else {
			low = middle + 1;
		}
	}
	return NULL;
}
