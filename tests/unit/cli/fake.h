#pragma once
/*
 * fake: a libration without a daemon, for tests of what rationctl makes of its answers. Counters live in one array; what is added is
 * counted at the next flush. One client at a time, one thread.
 */
#include <ration.h>

#define FAKE_MAX 64

struct fake_counter {
	char path[600];
	int64_t own;
	int64_t pending;
	bool made; /* the daemon knows it */
};

struct fake_metric {
	char name[130];
	struct ration_metric metric;
};

struct fake {
	/* What it does. */
	int result;	       /* of every call that asks the daemon; 0: it answers */
	int flush_result;      /* of ration_flush */
	const char *text;      /* ration_error() after such a result */
	uint32_t max_counters; /* of one client; 0: FAKE_MAX */
	struct ration_view view;
	const char *refused; /* what is added at this path is lost */

	/* What it saw. */
	char url[256];
	struct ration_options options;
	int timeout_ms;
	enum ration_consistency consistency;
	uint32_t depth;
	unsigned n_opened;
	unsigned n_closed;
	unsigned n_folded;

	struct fake_counter counters[FAKE_MAX];
	size_t n_counters;
	struct fake_metric metrics[FAKE_MAX];
	size_t n_metrics;
	size_t first_of_client; /* counters before it are of clients that have closed */
	const char *error;
};

extern struct fake fake;

void fake_reset(void);

/* Have the daemon count n at path. */
void fake_count(const char *path, int64_t n);

/* own at exactly this path; 0 if it is not there. */
int64_t fake_own(const char *path);
