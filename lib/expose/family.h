#pragma once
/*
 * family: from a metric to the name of its family, each metric to another one.
 *
 * A metric called requests is the family requests: counters are requests_total, when they began requests_created. Called
 * requests_total already, it is the same family, unless there is a metric requests too. A unit is put at the end if it is not there.
 *
 * What can't be a name ([a-zA-Z_:][a-zA-Z0-9_:]*), would be one of rationd's own, or would meet that of another metric by these rules, is
 * written by Prometheus's scheme for such names: U__ in front, _ doubled, other characters as _HEX_: http-requests is
 * U__http_2d_requests. Names that begin with U__ are written so too, so no two meet; and none of these has a unit.
 */
#include <stdbool.h>
#include <stddef.h>

#include "lib/names/path.h"

#define FAMILY_MAX_NAME (4 * PATH_MAX_SEGMENT + 256)

/* Names of families that begin so are the daemon's own. */
#define FAMILY_OWN "rationd_"

struct family_metric {
	const char *name;
	size_t len;
	bool counter;
	const char *unit; /* letters and digits; "": none */
};

/* Is there such a metric? */
typedef bool (*family_exists)(void *ctx, const char *name, size_t len);

/* The name, not terminated, into name[FAMILY_MAX_NAME]: its length. *ret_unit: the metric's unit is at its end. */
size_t family_name(const struct family_metric *metric, family_exists exists, void *ctx, char *name,
		   bool *ret_unit);
