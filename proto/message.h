#pragma once
/*
 * message: requests and replies as plain structs, and their way to and from bytes.
 *
 * Nothing of protobuf-c is visible here. Decoding allocates from an arena that the caller resets between frames, so
 * that a batch of adds costs no call to malloc; what is decoded lives in the arena until it is reset. The input is
 * not referred to afterwards.
 *
 * What a peer sends is decoded as it is, and for the receiver to judge:
 *   - strings are not terminated, may hold any bytes (also NUL, also no UTF-8) and have any length; `at` is never
 *     NULL;
 *   - the two lists of an add may differ in length;
 *   - consistency, kind and what quota.h names may be numbers that are no enumerator, from a newer peer: ask
 *     consistency_known(), kind_known() and theirs.
 * The other way round, strings to encode (but session, cursor and incarnation) must be valid UTF-8, or clients in
 * other languages can't read the message: never put a path that path_check refused into a text.
 *
 * Thread safety: none needed; an arena belongs to one thread.
 */
#include "proto/arena.h"
#include "proto/quota.h"
#include "proto/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_VERSION 1u
#define MESSAGE_MAX_FRAME (1u << 20) /* bytes of a message, length prefix not counted */
#define MESSAGE_SESSION_BYTES 16u
#define MESSAGE_MAX_AGENT 128u
#define MESSAGE_DEPTH_ALL UINT32_MAX

/*
 * What one frame may cost to decode: the limit to give an arena. Lists of 65,536 items fit, packed or not. A frame
 * made for it would need 100 times its size and more: a field of two bytes is 32 bytes to protobuf-c while it scans,
 * and up to 72 more when kept.
 */
#define MESSAGE_ARENA_LIMIT ((size_t)32 << 20)

/* google.rpc.Code, those in use. */
enum code {
	CODE_OK = 0,
	CODE_INVALID_ARGUMENT = 3,
	CODE_DEADLINE_EXCEEDED = 4,
	CODE_NOT_FOUND = 5,
	CODE_ALREADY_EXISTS = 6,
	CODE_PERMISSION_DENIED = 7,
	CODE_RESOURCE_EXHAUSTED = 8,
	CODE_FAILED_PRECONDITION = 9,
	CODE_ABORTED = 10,
	CODE_OUT_OF_RANGE = 11,
	CODE_UNIMPLEMENTED = 12,
	CODE_INTERNAL = 13,
	CODE_UNAVAILABLE = 14,
};

enum consistency {
	CONSISTENCY_FRESH = 0,
	CONSISTENCY_CACHED = 1,
	CONSISTENCY_EXACT = 2,
};

enum kind {
	KIND_COUNTER = 0,
	KIND_GAUGE = 1,
};

static inline bool consistency_known(enum consistency consistency)
{
	return (unsigned int)consistency <= CONSISTENCY_EXACT;
}

static inline bool kind_known(enum kind kind)
{
	return (unsigned int)kind <= KIND_GAUGE;
}

/* ---- requests ---- */

enum request_type {
	REQUEST_NONE, /* a body this version does not know: answer UNIMPLEMENTED */
	REQUEST_HELLO,
	REQUEST_INTERN,
	REQUEST_ADD,
	REQUEST_GET,
	REQUEST_WALK,
	REQUEST_FLUSH,
	REQUEST_STATUS,
	REQUEST_METRIC_SET,
	REQUEST_METRIC_GET,
	REQUEST_PING,
	REQUEST_RELOAD,
	REQUEST_END,
	REQUEST_METRIC_LIST,
	REQUEST_RESET,
	REQUEST_IMPORT,
	REQUEST_CHARGE,
	REQUEST_UNCHARGE,
	REQUEST_LEASE,
	REQUEST_LEASE_RENEW,
	REQUEST_LEASE_RETURN,
	REQUEST_QUOTA_SET,
	REQUEST_QUOTA_REMOVE,
	REQUEST_QUOTA_LIST,
	REQUEST_QUOTA_EXPLAIN,
};

struct hello {
	uint32_t version;
	struct text session; /* 0 or MESSAGE_SESSION_BYTES bytes */
	uint32_t lifetime_ms;
	uint64_t next_batch;
	struct text agent;
	uint64_t next_operation; /* 0 is to be taken as 1 */
	struct text incarnation; /* of who welcomed the client last; empty: nobody has */
};

struct intern {
	uint32_t first_handle;
	size_t n_paths;
	const struct text *paths;
};

struct add {
	uint64_t batch;
	size_t n_handles, n_deltas; /* equal in a good request */
	const uint32_t *handles;
	const int64_t *deltas;
};

struct get {
	size_t n_paths;
	const struct text *paths;
	enum consistency consistency;
};

struct walk {
	struct text root;
	uint32_t depth;
	enum consistency consistency;
	uint64_t limit;
	struct text cursor;
};

struct metric {
	struct text name;
	enum kind kind;
	uint32_t max_counters;
	bool overflow;
	uint64_t expire_after_ms;
};

struct flush {
	bool durable;
};

struct import_item {
	struct text path;
	int64_t own;
};

struct import {
	size_t n_items;
	const struct import_item *items;
};

/* Beside an operation that is sent again: what an earlier daemon answered. */
struct known {
	bool present;
	bool done;
	int64_t granted; /* of a lease */
};

struct request {
	uint64_t id;
	enum request_type type;
	struct known known;
	union {
		struct hello hello;
		struct intern intern;
		struct add add;
		struct get get;
		struct walk walk;
		struct flush flush;
		struct metric metric_set;
		struct text metric_get;
		struct text reset; /* the path */
		struct import import;
		struct charge charge;
		struct uncharge uncharge;
		struct lease_take lease;
		struct lease_renew lease_renew;
		struct lease_return lease_return;
		struct rule quota_set;
		struct rule_remove quota_remove;
		struct text quota_list;	   /* the cursor */
		struct text quota_explain; /* the path */
	};
};

/* ---- replies ---- */

enum reply_type {
	REPLY_NONE, /* a body this version does not know: ignore it */
	REPLY_ERROR,
	REPLY_WELCOME,
	REPLY_INTERNED,
	REPLY_APPLIED,
	REPLY_VALUES,
	REPLY_PAGE,
	REPLY_FLUSHED,
	REPLY_STATUS,
	REPLY_METRIC,
	REPLY_PONG,
	REPLY_GOODBYE,
	REPLY_RELOADED,
	REPLY_ENDED,
	REPLY_DURABLE,
	REPLY_METRICS,
	REPLY_RESET,
	REPLY_IMPORTED,
	REPLY_CHARGED,
	REPLY_UNCHARGED,
	REPLY_LEASED,
	REPLY_LEASE_RETURNED,
	REPLY_QUOTA_OK,
	REPLY_QUOTA_RULES,
	REPLY_QUOTA_EXPLAINED,
};

struct error_body {
	uint32_t code; /* enum code, or one this version does not know */
	struct text text;
	/* Of an error, not of a goodbye: the operation that it answers for good, or 0; told again? */
	uint64_t operation;
	bool duplicate;
};

struct item_error {
	uint32_t index;
	uint32_t code;
	struct text text;
};

struct limits {
	uint32_t max_frame;
	uint32_t max_handles;
	uint32_t max_items;
	uint32_t max_walks;
	uint32_t max_lifetime_ms;
	uint64_t max_output;
	uint32_t idle_frame_ms;
	uint32_t max_charge_items;
	uint32_t max_operations_kept;
	uint32_t max_leases;
	uint32_t max_wait_ms;
	uint32_t max_waits;
};

struct welcome {
	uint32_t version;
	struct text daemon;
	bool resumed;
	uint64_t last_batch;
	struct limits limits;
	struct text incarnation;
	uint64_t last_operation;
	bool keeps;
	bool restored;
	uint64_t durable_batch, durable_operation;
};

struct interned {
	size_t n_errors;
	const struct item_error *errors;
};

struct applied {
	uint64_t batch;
	bool duplicate;
	size_t n_errors;
	const struct item_error *errors;
};

struct value {
	uint32_t code;
	enum kind kind;
	bool leaf;
	int64_t own, total;
	struct text text;
};

struct view {
	bool present;
	uint64_t error_bound;
	uint64_t age_ms;
};

struct values {
	size_t n_values;
	const struct value *values;
	struct view view;
};

struct entry {
	struct text path;
	uint32_t depth;
	struct value value;
};

struct page {
	size_t n_entries;
	const struct entry *entries;
	bool last;
	struct text cursor;
	struct view view;
};

struct status_item {
	struct text name;
	bool is_text;
	int64_t number;
	struct text text;
	struct text help;
};

struct status {
	size_t n_items;
	const struct status_item *items;
};

struct reloaded {
	bool good;
	size_t n_errors, n_notes;
	const struct text *errors, *notes;
	uint32_t omitted;
};

struct flushed {
	bool durable;
};

struct durable {
	uint64_t batch;
	uint64_t operation;
};

struct metric_list {
	size_t n_metrics;
	const struct metric *metrics;
};

struct reset_done {
	uint64_t counters;
};

struct imported {
	size_t n_errors;
	const struct item_error *errors;
};

struct reply {
	uint64_t id;
	enum reply_type type;
	union {
		struct error_body error, goodbye;
		struct welcome welcome;
		struct interned interned;
		struct applied applied;
		struct values values;
		struct page page;
		struct flushed flushed;
		struct status status;
		struct metric metric;
		struct reloaded reloaded;
		struct durable durable;
		struct metric_list metrics;
		struct reset_done reset;
		struct imported imported;
		struct charged charged;
		struct uncharged uncharged;
		struct leased leased;
		struct lease_returned lease_returned;
		struct rule_notes quota_ok;
		struct rule_list quota_rules;
		struct explained quota_explained;
	};
};

/* ---- to and from bytes ---- */

/*
 * Decode one message (the bytes after the length prefix). 0; -EBADMSG if it is malformed; -ENOMEM if the arena can't
 * hold it. Unknown fields are skipped, an unknown body gives the type *_NONE with the id.
 */
int request_decode(struct arena *arena, const uint8_t *bytes, size_t len,
		   struct request *ret_request);
int reply_decode(struct arena *arena, const uint8_t *bytes, size_t len, struct reply *ret_reply);

/*
 * Encode one frame, length prefix included, into the arena. 0; -EMSGSIZE if the message would exceed
 * MESSAGE_MAX_FRAME; -ENOMEM; -EINVAL if the type is none of the enum.
 */
int request_encode(struct arena *arena, const struct request *request, const uint8_t **ret_bytes,
		   size_t *ret_len);
int reply_encode(struct arena *arena, const struct reply *reply, const uint8_t **ret_bytes,
		 size_t *ret_len);
