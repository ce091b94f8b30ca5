/*
 * [quota PATTERN]: what its keys together mean, and what the engine thinks of all of them.
 */
#include "daemon/config-load.h"

#include "lib/base/cleanup.h"
#include "lib/engine/quota.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct config_draft_quota *config_load_quota(struct config_load *load, const char *where,
					     const char *pattern)
{
	struct config_draft_quota *quota;

	if (load->n_quotas == load->quotas_size) {
		size_t size = load->quotas_size > 0 ? load->quotas_size * 2 : 16;
		struct config_draft_quota *grown = reallocarray(load->quotas, size, sizeof(*grown));

		if (grown == NULL) {
			load->no_memory = true;
			return NULL;
		}
		load->quotas = grown;
		load->quotas_size = size;
	}
	quota = &load->quotas[load->n_quotas];
	memset(quota, 0, sizeof(*quota));
	quota->source = load->source;
	config_load_fallbacks(CONFIG_QUOTA, &quota->quota);
	quota->quota.pattern = strdup(pattern);
	quota->quota.where = strdup(where);
	if (quota->quota.pattern == NULL || quota->quota.where == NULL) {
		free(quota->quota.pattern);
		free(quota->quota.where);
		load->no_memory = true;
		return NULL;
	}
	load->n_quotas++;
	return quota;
}

/* ---- one by one ---- */

static struct window window_of(const struct config_quota *quota)
{
	if (quota->per_ns != 0) {
		return (struct window){ .kind = WINDOW_PER, .duration_ns = quota->per_ns };
	}
	if (quota->calendar != 0) {
		return (struct window){ .kind = WINDOW_CALENDAR,
					.unit = (enum window_unit)(quota->calendar - 1) };
	}
	return (struct window){ .kind = quota->rate != 0 ? WINDOW_RATE : WINDOW_NONE };
}

static struct quota_limits limits_of(const struct config_quota *quota)
{
	return (struct quota_limits){
		.max = quota->max,
		.high = quota->high,
		.low = quota->low,
		.min = quota->min,
		.shadow = quota->shadow != 0,
		.rate = quota->rate,
		.per_ns = quota->rate_per_ns,
		.burst = quota->burst != 0 ? quota->burst : quota->rate,
	};
}

/* What the engine can't see any more. */
static const char *fault_of(const struct config_quota *quota)
{
	if ((quota->per_ns != 0) + (quota->calendar != 0) + (quota->rate != 0) > 1) {
		return "only one of per, calendar and rate can be set; begin another section for the same path";
	}
	if (quota->burst != 0 && quota->rate == 0) {
		return "burst goes with rate, which is not set";
	}
	if (quota->rate == 0 && quota->max == QUOTA_NONE && quota->high == QUOTA_NONE &&
	    quota->low == 0 && quota->min == 0) {
		return "it sets no limit; expected at least one of max, high, low, min and rate";
	}
	return NULL;
}

static void complete(struct config_load *load, struct config_draft_quota *draft)
{
	struct config_quota *quota = &draft->quota;
	const char *fault;

	if (draft->bad) {
		return;
	}
	fault = fault_of(quota);
	if (fault != NULL) {
		config_load_error(load, quota->where, "[quota %s]: %s", quota->pattern, fault);
		draft->bad = true;
	}
	quota->window = window_of(quota);
	quota->limits = limits_of(quota);
}

/* ---- the same pattern and window ---- */

static int compare_windows(const struct window *a, const struct window *b)
{
	if (a->kind != b->kind) {
		return a->kind < b->kind ? -1 : 1;
	}
	if (a->kind == WINDOW_PER) {
		return (a->duration_ns > b->duration_ns) - (a->duration_ns < b->duration_ns);
	}
	return a->kind == WINDOW_CALENDAR ? (int)a->unit - (int)b->unit : 0;
}

static int compare_quotas(const struct config_quota *a, const struct config_quota *b)
{
	int order = strcmp(a->pattern, b->pattern);

	return order != 0 ? order : compare_windows(&a->window, &b->window);
}

/* Those alike stay in the order in which they came. */
static int compare_drafts(const void *a, const void *b)
{
	const struct config_draft_quota *x = *(struct config_draft_quota *const *)a;
	const struct config_draft_quota *y = *(struct config_draft_quota *const *)b;
	int order = compare_quotas(&x->quota, &y->quota);

	return order != 0 ? order : (x > y) - (x < y);
}

/* Of those alike the last one holds; two in one file are an error. */
static void settle_alike(struct config_load *load, struct config_draft_quota *earlier,
			 const struct config_draft_quota *later)
{
	if (earlier->source == later->source && !later->bad) {
		config_load_error(
			load, later->quota.where,
			"[quota %s]: the same path with the same window is at %s; put all into one section",
			later->quota.pattern, earlier->quota.where);
	}
	earlier->bad = true;
}

static int settle_all(struct config_load *load)
{
	_cleanup_free_ struct config_draft_quota **sorted =
		calloc(load->n_quotas + 1, sizeof(struct config_draft_quota *));
	size_t n = 0;

	if (sorted == NULL) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < load->n_quotas; i++) {
		if (!load->quotas[i].bad) {
			sorted[n++] = &load->quotas[i];
		}
	}
	qsort(sorted, n, sizeof(sorted[0]), compare_drafts);
	for (size_t i = 1; i < n; i++) {
		if (compare_quotas(&sorted[i - 1]->quota, &sorted[i]->quota) == 0) {
			settle_alike(load, sorted[i - 1], sorted[i]);
		}
	}
	return 0;
}

/* ---- together ---- */

static void take_fault(void *ctx, const struct engine_fault *fault)
{
	struct config_load *load = ctx;
	const char *where = config_quota_where(load->config, fault->tag);
	const char *other = config_quota_where(load->config, fault->other_tag);
	bool has_other = other[0] != '\0' && fault->other_tag != fault->tag;

	where = where[0] != '\0' ? where : "configuration";
	if (fault->fatal) {
		config_load_error(load, where, "%s%s%s%s", fault->text, has_other ? " (" : "",
				  has_other ? other : "", has_other ? ")" : "");
	} else {
		config_load_warning(load, where, "%s%s%s%s", fault->text, has_other ? " (" : "",
				    has_other ? other : "", has_other ? ")" : "");
	}
}

static int check_all(struct config_load *load)
{
	_cleanup_free_ struct engine_rule *rules = config_rules(load->config);
	size_t before = load->report->n_errors;
	int r;

	if (rules == NULL) {
		return -ENOMEM;
	}
	r = engine_rules_check(rules, load->config->n_quotas, take_fault, load);
	if (r > 0 && load->report->n_errors == before) {
		config_load_error(load, "configuration", "the quotas do not go together");
	}
	return r < 0 ? r : 0;
}

static int compare_pointers(const void *a, const void *b)
{
	return compare_quotas(*(const struct config_quota *const *)a,
			      *(const struct config_quota *const *)b);
}

static int sort_by_pattern(struct config *config)
{
	config->by_pattern = calloc(config->n_quotas + 1, sizeof(const struct config_quota *));
	if (config->by_pattern == NULL) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < config->n_quotas; i++) {
		config->by_pattern[i] = &config->quotas[i];
	}
	qsort((void *)config->by_pattern, config->n_quotas, sizeof(config->by_pattern[0]),
	      compare_pointers);
	return 0;
}

int config_load_quotas(struct config_load *load)
{
	struct config *config = load->config;
	int r;

	for (size_t i = 0; i < load->n_quotas; i++) {
		complete(load, &load->quotas[i]);
	}
	r = settle_all(load);
	if (r < 0) {
		return r;
	}
	config->quotas = calloc(load->n_quotas + 1, sizeof(*config->quotas));
	if (config->quotas == NULL) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < load->n_quotas; i++) {
		struct config_draft_quota *draft = &load->quotas[i];

		if (!draft->bad) {
			config->quotas[config->n_quotas++] = draft->quota;
			draft->quota.pattern = draft->quota.where = NULL; /* handed over */
		}
	}
	r = sort_by_pattern(config);
	return r == 0 ? check_all(load) : r;
}

/* ---- the config's ---- */

struct engine_rule *config_rules(const struct config *config)
{
	struct engine_rule *rules = calloc(config->n_quotas + 1, sizeof(*rules));

	for (size_t i = 0; rules != NULL && i < config->n_quotas; i++) {
		const struct config_quota *quota = &config->quotas[i];

		rules[i] = (struct engine_rule){
			.pattern = quota->pattern,
			.len = strlen(quota->pattern),
			.window = quota->window,
			.limits = quota->limits,
			.tag = (uint32_t)i + 1,
		};
	}
	return rules;
}

const char *config_quota_where(const struct config *config, uint32_t tag)
{
	return tag >= 1 && tag <= config->n_quotas ? config->quotas[tag - 1].where : "";
}

/* As strcmp, against text with a length and without zero bytes. */
static int compare_text(const char *text, size_t len, const char *string)
{
	int order = strncmp(text, string, len);

	return order != 0 ? order : string[len] != '\0' ? -1 : 0;
}

const char *config_quota_source(const struct config *config, const char *pattern, size_t len,
				const struct window *window)
{
	size_t low = 0, high = config->n_quotas;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct config_quota *quota = config->by_pattern[middle];
		int order = compare_text(pattern, len, quota->pattern);

		if (order == 0) {
			order = compare_windows(window, &quota->window);
		}
		if (order == 0) {
			return quota->where;
		}
		if (order < 0) {
			high = middle;
		} else {
			low = middle + 1;
		}
	}
	return "";
}
