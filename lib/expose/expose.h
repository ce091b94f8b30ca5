#pragma once
/*
 * expose: what an engine counts, as a page for scrapers, piece by piece.
 *
 * One family for each metric (family.h), one series for each counter at which something was added or below which there is nothing
 * (labels.h), with its own value: what was added at this very path. So the sum over a family is the metric's total. What is at inner counters
 * that count nothing themselves is left out. Then the limits, one family for each figure of them: rationd_quota_usage{path=,window=} ...
 *
 * A page is not of one moment: it is written while the engine counts, a stretch of counters at a time. A value has all that was folded
 * when it was read, and so all that was added before the last flush: flush first, for a page that misses nothing. Of a counter that is there all
 * the while none is less than on an earlier page. Counters that are made after its beginning are not on it: which names and labels a counter
 * gets depends on which others there are, and must not change under the page.
 *
 * Thread safety: a thread registered with lib/rcu (engine.h), one for each struct expose. Nothing here takes a lock that an add waits for.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/engine/quota.h"
#include "lib/expose/family.h"
#include "lib/expose/labels.h"
#include "lib/expose/sheet.h"

#define EXPOSE_MAX_TEXT 256u

/* What was said of a metric beside its counts; "" where nothing was. */
struct expose_metric {
	char levels[EXPOSE_MAX_TEXT]; /* as for levels_init */
	char help[EXPOSE_MAX_TEXT];
	char unit[EXPOSE_MAX_TEXT];
};

/*
 * All of *ret_metric; called once for each metric of a page. It is called in a read section: it must not wait for anyone who waits for a
 * grace period.
 */
typedef void (*expose_look_up)(void *ctx, const char *name, size_t len,
			       struct expose_metric *ret_metric);

struct expose {
	struct engine *engine;
	struct sheet *sheet;
	struct quota_time time;
	expose_look_up look_up;
	void *ctx;

	/* Where it stands: in the metrics; then in the figures of limits. */
	int64_t newest; /* born_ns, of counters that are on it */
	bool metrics_done;
	struct engine_cursor cursor;
	size_t figure;
	struct engine_limits_cursor limits_cursor;
	bool figure_begun;

	/* The metric at hand. */
	char metric[PATH_MAX_SEGMENT];
	size_t metric_len;
	bool family_begun, has_unit;
	struct expose_metric said;
	struct levels levels;
	struct sheet_family family;
	char name[FAMILY_MAX_NAME];
	char help[EXPOSE_MAX_TEXT + PATH_MAX_SEGMENT];
};

/* `sheet` is begun, and the caller's. `time`: for windows of limits. engine_flush first, for what was added before. */
void expose_init(struct expose *expose, struct engine *engine, struct sheet *sheet,
		 struct quota_time time, expose_look_up look_up, void *ctx);

/* Write the next counters, about `n` of them. False: there are none left; end the page. */
bool expose_some(struct expose *expose, size_t n);
