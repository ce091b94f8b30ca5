#pragma once
/*
 * quota: the bodies of requests and replies about quotas, as plain structs. Part of message.h, which says what holds
 * for all bodies and how they become bytes.
 *
 * What a peer sends is for the receiver to judge here too. Amounts may be 0, negative or beyond MESSAGE_MAX_AMOUNT,
 * lists may be longer than allowed, and enumerations may be numbers that are no enumerator: ask rule_window_known(),
 * rule_layer_known() and binding_kind_known().
 */
#include "proto/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_MAX_AMOUNT (INT64_C(1) << 62) /* of a charge, a lease, a limit */
#define MESSAGE_MAX_CHARGE_ITEMS 10000u
#define MESSAGE_MAX_OPERATIONS_KEPT 1024u /* of a session, with their answers */
#define MESSAGE_MAX_LEASES 1000u	  /* of a session */
#define MESSAGE_MAX_WAITS 64u		  /* charges of a session that wait for room */
#define MESSAGE_MAX_WAIT_MS 86400000u	  /* a day */
#define MESSAGE_MIN_TTL_MS 1000u
#define MESSAGE_MAX_TTL_MS 3600000u /* an hour */

/* How much an answer lists; it says how many more there were. So an answer fits a frame, and can be kept. */
#define MESSAGE_MAX_BINDINGS 64u
#define MESSAGE_MAX_EXPLAINED 256u /* siblings; leases */

#define MESSAGE_RETRY_NEVER (-1)

/* ---- rules ---- */

enum rule_window_kind {
	RULE_WINDOW_NONE = 0,
	RULE_WINDOW_PER = 1,
	RULE_WINDOW_CALENDAR = 2,
	RULE_WINDOW_RATE = 3,
};

enum rule_window_unit {
	RULE_WINDOW_DAY = 0,
	RULE_WINDOW_WEEK = 1,
	RULE_WINDOW_MONTH = 2,
};

struct rule_window {
	enum rule_window_kind kind;
	enum rule_window_unit unit; /* CALENDAR */
	uint64_t duration_ms;	    /* PER */
};

struct rule_limits {
	bool has_max, has_high; /* else there is no such limit, and the number is 0 */
	bool shadow;
	int64_t max, high;
	int64_t low, min;
	int64_t rate; /* RATE: so many per per_ms, and at most burst at once */
	uint64_t per_ms;
	int64_t burst;
};

enum rule_layer {
	RULE_FILE = 0,
	RULE_RUN_TIME = 1,
};

struct rule {
	struct text pattern;
	struct rule_window window;
	struct rule_limits limits;
	/* From the daemon: */
	enum rule_layer layer;
	bool overridden;
	struct text source;
};

static inline bool rule_window_known(const struct rule_window *window)
{
	return (unsigned int)window->kind <= RULE_WINDOW_RATE &&
	       (unsigned int)window->unit <= RULE_WINDOW_MONTH;
}

static inline bool rule_layer_known(enum rule_layer layer)
{
	return (unsigned int)layer <= RULE_RUN_TIME;
}

/* ---- requests ---- */

struct charge_item {
	struct text path;
	int64_t amount;
};

struct charge {
	uint64_t number;
	size_t n_items;
	const struct charge_item *items;
	bool dry_run;
	bool detached;
	uint32_t wait_ms;
};

struct uncharge {
	uint64_t number;
	struct text path;
	int64_t amount;
	bool detached;
};

struct lease_take {
	uint64_t number;
	uint32_t lease;
	uint32_t ttl_ms;
	struct text path;
	int64_t want;
};

struct lease_renew {
	uint64_t number;
	uint32_t lease;
	int64_t spent;
	int64_t want;
};

struct lease_return {
	uint64_t number;
	uint32_t lease;
	int64_t spent;
};

struct rule_remove {
	struct text pattern;
	struct rule_window window;
	bool all_windows;
};

/* ---- replies ---- */

enum binding_kind {
	BINDING_MAX = 0,
	BINDING_RATE = 1,
	BINDING_HIGH = 2,
	BINDING_SHADOW = 3,
};

static inline bool binding_kind_known(enum binding_kind kind)
{
	return (unsigned int)kind <= BINDING_SHADOW;
}

struct binding {
	enum binding_kind kind;
	struct text path;
	struct rule_window window;
	int64_t limit, usage, left;
	int64_t retry_after_ms; /* 0: at any moment; MESSAGE_RETRY_NEVER */
};

struct charged {
	uint64_t number;
	bool granted;
	bool duplicate;
	uint32_t omitted; /* bindings not listed */
	size_t n_bindings;
	const struct binding *bindings;
};

struct uncharged {
	uint64_t number;
	bool duplicate;
};

/* To a lease_take or lease_renew. */
struct leased {
	uint64_t number;
	uint32_t lease;
	uint32_t ttl_ms;
	int64_t granted;
	bool duplicate;
	uint32_t omitted;
	size_t n_bindings;
	const struct binding *bindings;
};

struct lease_returned {
	uint64_t number;
	uint32_t lease;
	int64_t returned;
	bool duplicate;
};

/* To a QuotaSet or a rule_remove. */
struct rule_notes {
	size_t n_notes;
	const struct text *notes;
};

struct rule_list {
	size_t n_rules;
	const struct rule *rules;
	struct text cursor;
};

struct explained_level {
	struct text path;
	struct rule_window window;
	struct rule_limits limits;
	enum rule_layer layer;
	struct text pattern;
	struct text source;
	int64_t usage, peak, left;
	uint64_t refusals;
	int64_t forced;
	int64_t effective_min, effective_low;
	bool binds;
	bool over_high, over_max;
	uint64_t ends_in_ms;
};

struct explained_sibling {
	struct text path;
	int64_t usage;
	int64_t effective_min, effective_low;
};

struct explained_lease {
	struct text path;
	struct text agent;
	int64_t units;
	uint64_t expires_in_ms;
};

struct explained {
	size_t n_levels;
	const struct explained_level *levels;
	size_t n_siblings;
	const struct explained_sibling *siblings;
	uint32_t siblings_omitted;
	size_t n_leases;
	const struct explained_lease *leases;
	uint32_t leases_omitted;
};
