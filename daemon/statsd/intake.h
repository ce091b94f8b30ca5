#pragma once
/*
 * intake: from the bytes of lines to the slots of counters.
 *
 * Lines are added in groups, over the ends of datagrams; and where there are many names, they are also looked up in groups, so that what one of
 * them waits for in memory the others wait for at the same time. So bytes that were handed in must stay until intake_settle, which a caller calls when it has no more at hand.
 *
 * A line whose name and tags were seen before costs no allocation and no lock. One that was not is looked at in full, gets its path, and its
 * counter from the engine.
 *
 * Thread safety: none, the worker's own thread. Not inside a read section of lib/rcu.
 */
#include "daemon/statsd/carry.h"
#include "daemon/statsd/complaint.h"
#include "daemon/statsd/levels.h"
#include "daemon/statsd/line.h"
#include "daemon/statsd/names.h"
#include "daemon/statsd/statsd-stats.h"
#include "lib/engine/engine.h"

#define INTAKE_GROUP 32u

/* Where a line is, and who sent it. */
struct intake_line {
	const char *at;
	size_t len;
	const struct statsd_sender *sender;
};

/* A line that waits for its group. What the quick reader does not take has no name yet. */
struct intake_wait {
	struct intake_line line;
	struct statsd_line parsed;
	uint32_t hash;
	const struct statsd_name *name; /* most likely */
};

struct intake {
	struct engine *engine;
	struct engine_worker *worker;
	struct statsd_stats *stats;
	/* Which levels there are; read in a read section. The pointer is the daemon's. */
	struct statsd_levels *_Atomic const *levels;
	uint64_t generation; /* of those that the names were learned with */
	struct statsd_names names;
	struct statsd_carry carry;
	struct statsd_complaints complaints;
	size_t n_waits;
	struct intake_wait waits[INTAKE_GROUP];
	struct engine_item items[INTAKE_GROUP]; /* of each that was found: what is to be added */
	char scratch[STATSD_MAX_LINE + SCAN_SLACK];
};

/* The first fields, up to `levels`, are the caller's to set, and complaints.log. `limit`: bytes to remember names in. 0 or -ENOMEM. */
int intake_init(struct intake *intake, size_t limit, const uint64_t seed[2]);
void intake_deinit(struct intake *intake);

/* All lines of these bytes, the last one ended by their end too. They and `sender` must stay until intake_settle; SCAN_SLACK bytes behind them are readable. */
void intake_take(struct intake *intake, const char *bytes, size_t len,
		 const struct statsd_sender *sender);
void intake_settle(struct intake *intake);

/* Count a line as not counted. */
void intake_reject(struct intake *intake, enum statsd_reason reason, const char *line, size_t len,
		   const struct statsd_sender *sender);
