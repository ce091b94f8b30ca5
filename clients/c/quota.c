/*
 * Limits: set, removed, listed and explained. All on the connection that carries no session.
 */
#include "clients/c/charge.h"
#include "clients/c/client.h"
#include "clients/c/clock.h"
#include "clients/c/error.h"
#include "clients/c/include/ration.h"
#include "clients/c/kept.h"
#include "lib/base/cleanup.h"
#include "lib/base/duration.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BEGINNINGS 5 /* of a list, when rules are changed all the time */

/* ---- windows and limits ---- */

const char *ration_window_text(const struct ration_window *window, char *text, size_t size)
{
	static const char *const units[] = { "day", "week", "month" };
	char duration[DURATION_MAX_TEXT] = "";

	switch (window->kind) {
	case RATION_NO_WINDOW:
		(void)snprintf(text, size, "%s", "");
		break;
	case RATION_PER:
		if (window->duration_ms <= INT64_MAX / DURATION_MS) {
			(void)duration_format((int64_t)window->duration_ms * DURATION_MS, duration);
		}
		(void)snprintf(text, size, "per %s", duration);
		break;
	case RATION_CALENDAR:
		(void)snprintf(text, size, "calendar %s",
			       (unsigned)window->unit <= RATION_MONTH ? units[window->unit] : "?");
		break;
	case RATION_RATE:
		(void)snprintf(text, size, "rate");
		break;
	default:
		(void)snprintf(text, size, "?");
		break;
	}
	return text;
}

static struct rule_window window_to_wire(const struct ration_window *window)
{
	return (struct rule_window){
		.kind = (enum rule_window_kind)window->kind,
		.unit = (enum rule_window_unit)window->unit,
		.duration_ms = window->duration_ms,
	};
}

static struct rule_limits limits_to_wire(const struct ration_limits *limits)
{
	return (struct rule_limits){
		.has_max = limits->has_max,
		.has_high = limits->has_high,
		.shadow = limits->shadow,
		.max = limits->has_max ? limits->max : 0,
		.high = limits->has_high ? limits->high : 0,
		.low = limits->low,
		.min = limits->min,
		.rate = limits->rate,
		.per_ms = limits->per_ms,
		.burst = limits->burst,
	};
}

static struct ration_limits limits_from_wire(const struct rule_window *window,
					     const struct rule_limits *limits)
{
	struct ration_limits public = {
		.size = sizeof(struct ration_limits),
		.has_max = limits->has_max,
		.has_high = limits->has_high,
		.shadow = limits->shadow,
		.max = limits->max,
		.high = limits->high,
		.low = limits->low,
		.min = limits->min,
		.rate = limits->rate,
		.per_ms = limits->per_ms,
		.burst = limits->burst,
	};

	charge_window(window, &public.window);
	return public;
}

/* ---- set and remove ---- */

static int ask_to_change(struct ration *client, struct kept *kept, struct request *request,
			 int timeout_ms)
{
	return kept_ask(kept, client->call, request, clock_deadline(timeout_ms), REPLY_QUOTA_OK);
}

int ration_quota_set(struct ration *client, const char *pattern, const struct ration_limits *limits,
		     int timeout_ms, void (*note)(void *ctx, const char *text), void *ctx)
{
	_cleanup_(kept_deinit) struct kept kept = KEPT_INIT;
	struct ration_limits known = RATION_LIMITS_INIT;
	struct request request = { .type = REQUEST_QUOTA_SET };
	int r;

	error_clear();
	if (limits->size < offsetof(struct ration_limits, window)) {
		return error_set(-EINVAL, "limits.size is %zu: begin with RATION_LIMITS_INIT",
				 limits->size);
	}
	memcpy(&known, limits, limits->size < sizeof(known) ? limits->size : sizeof(known));
	request.quota_set = (struct rule){ .pattern = text_of(pattern),
					   .window = window_to_wire(&known.window),
					   .limits = limits_to_wire(&known),
					   .source = text_of("") };
	r = ask_to_change(client, &kept, &request, timeout_ms);
	for (size_t i = 0; r == 0 && note != NULL && i < kept.reply.quota_ok.n_notes; i++) {
		const struct text *text = &kept.reply.quota_ok.notes[i];
		_cleanup_free_ char *copy = strndup(text->at, text->len);

		if (copy != NULL) {
			note(ctx, copy);
		}
	}
	return r;
}

int ration_quota_remove(struct ration *client, const char *pattern,
			const struct ration_window *window, int timeout_ms)
{
	_cleanup_(kept_deinit) struct kept kept = KEPT_INIT;
	struct request request = { .type = REQUEST_QUOTA_REMOVE,
				   .quota_remove = { .pattern = text_of(pattern),
						     .all_windows = window == NULL } };

	error_clear();
	if (window != NULL) {
		request.quota_remove.window = window_to_wire(window);
	}
	return ask_to_change(client, &kept, &request, timeout_ms);
}

/* ---- list ---- */

static void free_pages(struct kept **pages)
{
	while (*pages != NULL) {
		struct kept *page = *pages;

		*pages = page->next;
		kept_deinit(page);
		free(page);
	}
}

/* All pages, first to last. */
static int ask_pages(struct ration *client, int64_t deadline, struct kept **ret_pages)
{
	_cleanup_(free_pages) struct kept *pages = NULL;
	struct request request = { .type = REQUEST_QUOTA_LIST, .quota_list = text_of("") };
	struct kept **last = &pages;

	do {
		int r;

		*last = malloc(sizeof(**last));
		if (*last == NULL) {
			return error_set(-ENOMEM, "no memory");
		}
		**last = (struct kept)KEPT_INIT;
		r = kept_ask(*last, client->call, &request, deadline, REPLY_QUOTA_RULES);
		if (r != 0) {
			return r;
		}
		request.quota_list = (*last)->reply.quota_rules.cursor;
		last = &(*last)->next;
	} while (request.quota_list.len > 0);
	*ret_pages = pages;
	pages = NULL;
	return 0;
}

static void tell_rule(const struct rule *from,
		      void (*rule)(void *ctx, const struct ration_rule *rule), void *ctx)
{
	_cleanup_free_ char *pattern = strndup(from->pattern.at, from->pattern.len);
	_cleanup_free_ char *source = strndup(from->source.at, from->source.len);
	const struct ration_rule public = {
		.pattern = pattern,
		.limits = limits_from_wire(&from->window, &from->limits),
		.layer = from->layer == RULE_FILE ? RATION_FILE : RATION_RUN_TIME,
		.overridden = from->overridden,
		.source = source,
	};

	if (pattern != NULL && source != NULL) {
		rule(ctx, &public);
	}
}

int ration_quota_list(struct ration *client, int timeout_ms,
		      void (*rule)(void *ctx, const struct ration_rule *rule), void *ctx)
{
	_cleanup_(free_pages) struct kept *pages = NULL;
	int64_t deadline = clock_deadline(timeout_ms);
	int r = RATION_FAILED_PRECONDITION;

	error_clear();
	/* The rules were changed between two pages. */
	for (int i = 0; r == RATION_FAILED_PRECONDITION && i < MAX_BEGINNINGS; i++) {
		r = ask_pages(client, deadline, &pages);
	}
	for (const struct kept *page = pages; page != NULL; page = page->next) {
		for (size_t i = 0; i < page->reply.quota_rules.n_rules; i++) {
			tell_rule(&page->reply.quota_rules.rules[i], rule, ctx);
		}
	}
	return r;
}

/* ---- explain ---- */

/* Terminated, into what is left of a block. */
static const char *copy_text(char **at, const struct text *text)
{
	char *copy = *at;

	memcpy(copy, text->at, text->len);
	copy[text->len] = '\0';
	*at += text->len + 1;
	return copy;
}

static size_t size_of_texts(const struct explained *explained)
{
	size_t size = 0;

	for (size_t i = 0; i < explained->n_levels; i++) {
		const struct explained_level *level = &explained->levels[i];

		size += level->path.len + level->pattern.len + level->source.len + 3;
	}
	for (size_t i = 0; i < explained->n_siblings; i++) {
		size += explained->siblings[i].path.len + 1;
	}
	for (size_t i = 0; i < explained->n_leases; i++) {
		size += explained->leases[i].path.len + explained->leases[i].agent.len + 2;
	}
	return size;
}

static void fill_level(struct ration_level *level, const struct explained_level *from, char **text)
{
	*level = (struct ration_level){
		.path = copy_text(text, &from->path),
		.limits = limits_from_wire(&from->window, &from->limits),
		.layer = from->layer == RULE_FILE ? RATION_FILE : RATION_RUN_TIME,
		.pattern = copy_text(text, &from->pattern),
		.source = copy_text(text, &from->source),
		.usage = from->usage,
		.peak = from->peak,
		.left = from->left,
		.refusals = from->refusals,
		.forced = from->forced,
		.effective_min = from->effective_min,
		.effective_low = from->effective_low,
		.binds = from->binds,
		.over_high = from->over_high,
		.over_max = from->over_max,
		.ends_in_ms = from->ends_in_ms,
	};
}

/* One block: the explanation, its lists, their strings. All lists are of 8-byte alignment. */
static struct ration_explanation *explanation_new(const struct explained *from)
{
	size_t size = sizeof(struct ration_explanation) +
		      from->n_levels * sizeof(struct ration_level) +
		      from->n_siblings * sizeof(struct ration_sibling) +
		      from->n_leases * sizeof(struct ration_leased);
	struct ration_explanation *explanation = calloc(1, size + size_of_texts(from));
	struct ration_sibling *siblings;
	struct ration_leased *leases;
	struct ration_level *levels;
	char *text;

	if (explanation == NULL) {
		return NULL;
	}
	levels = (struct ration_level *)(void *)(explanation + 1);
	siblings = (struct ration_sibling *)(void *)(levels + from->n_levels);
	leases = (struct ration_leased *)(void *)(siblings + from->n_siblings);
	text = (char *)(leases + from->n_leases);
	*explanation = (struct ration_explanation){
		.n_levels = from->n_levels,
		.levels = levels,
		.n_siblings = from->n_siblings,
		.siblings = siblings,
		.n_siblings_omitted = from->siblings_omitted,
		.n_leases = from->n_leases,
		.leases = leases,
		.n_leases_omitted = from->leases_omitted,
	};
	for (size_t i = 0; i < from->n_levels; i++) {
		fill_level(&levels[i], &from->levels[i], &text);
	}
	for (size_t i = 0; i < from->n_siblings; i++) {
		siblings[i] = (struct ration_sibling){
			.path = copy_text(&text, &from->siblings[i].path),
			.usage = from->siblings[i].usage,
			.effective_min = from->siblings[i].effective_min,
			.effective_low = from->siblings[i].effective_low,
		};
	}
	for (size_t i = 0; i < from->n_leases; i++) {
		leases[i] = (struct ration_leased){
			.path = copy_text(&text, &from->leases[i].path),
			.agent = copy_text(&text, &from->leases[i].agent),
			.units = from->leases[i].units,
			.expires_in_ms = from->leases[i].expires_in_ms,
		};
	}
	return explanation;
}

int ration_quota_explain(struct ration *client, const char *path, int timeout_ms,
			 struct ration_explanation **ret_explanation)
{
	_cleanup_(kept_deinit) struct kept kept = KEPT_INIT;
	struct request request = { .type = REQUEST_QUOTA_EXPLAIN, .quota_explain = text_of(path) };
	int r;

	error_clear();
	*ret_explanation = NULL;
	r = kept_ask(&kept, client->call, &request, clock_deadline(timeout_ms),
		     REPLY_QUOTA_EXPLAINED);
	if (r != 0) {
		return r;
	}
	*ret_explanation = explanation_new(&kept.reply.quota_explained);
	return *ret_explanation == NULL ? error_set(-ENOMEM, "no memory") : 0;
}

void ration_explanation_free(struct ration_explanation *explanation)
{
	free(explanation);
}
