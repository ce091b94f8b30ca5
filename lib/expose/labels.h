#pragma once
/*
 * labels: from a path to the labels of its series, each path to others.
 *
 * The segments behind the metric, in order: the first ones have the names that the metric's levels give; of what is left,
 * KEY=VALUE is a label KEY, and the others, joined by '/', are the label `path`:
 *
 *	levels tenant service	requests/acme/web/GET/code=200		{tenant="acme",service="web",code="200",path="GET"}
 *
 * KEY must be a label's name, none of the levels' and not `path`; VALUE must not be empty. %2F and %25 in values of levels and keys are '/'
 * and '%' (which is how StatsD tags are written); a value with any other '%' is none. What is not KEY=VALUE by these rules is `path`.
 *
 * Labels have no order, segments have: requests/a=1/b=2 and requests/b=2/a=1 would be one series. The first of them has it, in the order
 * plain segments first, then keys by name; any other is shown by the label `path` alone, which then holds all behind the metric. So is
 * one with a key twice, or a level's value that is none. Whether there is another order is asked of the caller, and only for paths that
 * are not in this order themselves.
 */
#include <stdbool.h>
#include <stddef.h>

#include "lib/expose/sheet.h"
#include "lib/names/path.h"

/* [a-zA-Z_][a-zA-Z0-9_]*, and no "__" first: those are Prometheus's own. */
bool label_name_valid(const char *name, size_t len);

#define LABELS_MAX_LEVELS (PATH_MAX_SEGMENTS - 1)

#define LABELS_MAX_LEVEL 64u /* bytes of a level's name; what is beyond is left out */

/* What levels are called as labels. */
struct levels {
	size_t n;
	struct {
		size_t len;
		char at[LABELS_MAX_LEVEL];
	} names[LABELS_MAX_LEVELS];
};

/*
 * From "tenant,service", at most LABELS_MAX_LEVELS of them. What can't be in a label's name is _ there; if it is not valid then, `path`,
 * or another level's, it is level_N, counted from 1.
 */
void levels_init(struct levels *levels, const char *text);

/* Is there a counter at this path? */
typedef bool (*labels_exists)(void *ctx, const char *path, size_t len);

/* Put the labels of a path into the page; `metric_len` of its bytes are the metric. */
void labels_put(struct sheet *sheet, const struct levels *levels, const char *path, size_t len,
		size_t metric_len, labels_exists exists, void *ctx);
