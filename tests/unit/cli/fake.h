#pragma once
/*
 * fake: a libration without a daemon, for tests of what rationctl makes of its answers. Counters live in one array; what is added is
 * counted at the next flush. A limit's usage is the total of its counter, whatever its window. One client at a time, one thread.
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

struct fake_rule {
	char pattern[600];
	char source[64];
	struct ration_rule rule; /* its strings are those above */
};

struct fake {
	/* What it does. */
	int result;	       /* of every call that asks the daemon; 0: it answers */
	unsigned away_from;    /* from this question on, the first is 1, ... */
	unsigned away_until;   /* ... up to before this one there is no answer */
	int flush_result;      /* of ration_flush */
	int durable_result;    /* of ration_flush_durable */
	const char *text;      /* ration_error() after such a result */
	uint32_t max_counters; /* of one client; 0: FAKE_MAX */
	struct ration_view view;
	const char *refused; /* what is added at this path is lost */
	const char *note;    /* what ration_quota_set finds unwise */
	int charge_result;   /* of ration_charge and ration_uncharge; 0: by the rules */
	bool forgets;	     /* nothing is held that was charged */
	bool forgets_late;   /* and that is only found when it is given back */
	/* What is answered to charges and explanations; NULL: what the rules make of it. */
	const struct ration_charge_result *answer;
	const struct ration_explanation *explanation;
	/* What a reload finds; if the first is an error, it fails. */
	const struct ration_finding *findings;
	size_t n_findings;

	/* What it saw. */
	char url[256];
	struct ration_options options;
	int timeout_ms;
	enum ration_consistency consistency;
	uint32_t depth;
	unsigned n_asked;
	unsigned n_opened;
	unsigned n_closed;
	unsigned n_folded;
	unsigned n_durable;
	unsigned n_imports;
	unsigned n_charges; /* that were tried */
	unsigned n_explained;
	struct ration_charge_options charge_options;
	char charged[2000]; /* the items of the last charge, as "a 5, b 1" */
	int64_t held;	    /* by the session */
	struct ration_window removed;
	bool removed_all;

	struct fake_counter counters[FAKE_MAX];
	size_t n_counters;
	struct fake_metric metrics[FAKE_MAX];
	size_t n_metrics;
	struct fake_rule rules[FAKE_MAX];
	size_t n_rules;
	size_t first_of_client; /* counters before it are of clients that have closed */
	const char *error;
};

extern struct fake fake;

void fake_reset(void);

/* Have the daemon count n at path. */
void fake_count(const char *path, int64_t n);

/* A few counters of two metrics. */
void fake_some_counts(void);

/* A rule of the daemon's configuration. */
void fake_rule(const char *pattern, const struct ration_limits *limits, const char *source);

/* own at exactly this path; 0 if it is not there. */
int64_t fake_own(const char *path);
