#pragma once
/*
 * message: requests and replies as plain structs, and their way to and from bytes.
 *
 * Nothing of protobuf-c is visible here. Decoding allocates from an arena that the caller resets between frames, so that a batch
 * of adds costs no call to malloc; decoded strings and arrays live in the arena (or alias the input) and are valid until it
 * is reset or the input changes. Strings are not terminated.
 *
 * Thread safety: none needed; an arena belongs to one thread.
 */
#include "proto/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_VERSION 1u
#define MESSAGE_MAX_FRAME (1u << 20) /* bytes of a message, length prefix not counted */
#define MESSAGE_SESSION_BYTES 16u
#define MESSAGE_MAX_AGENT 128u
#define MESSAGE_DEPTH_ALL UINT32_MAX

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

struct text {
	const char *at;
	size_t len;
};

/* A terminated string as text. */
struct text text_of(const char *string);

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
};

struct hello {
	uint32_t version;
	struct text session; /* 0 or MESSAGE_SESSION_BYTES bytes */
	uint32_t lifetime_ms;
	uint64_t next_batch;
	struct text agent;
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

struct request {
	uint64_t id;
	enum request_type type;
	union {
		struct hello hello;
		struct intern intern;
		struct add add;
		struct get get;
		struct walk walk;
		struct metric metric_set;
		struct text metric_get;
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
};

struct error_body {
	uint32_t code; /* enum code, or one this version does not know */
	struct text text;
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
};

struct welcome {
	uint32_t version;
	struct text daemon;
	bool resumed;
	uint64_t last_batch;
	struct limits limits;
	struct text incarnation;
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
		struct status status;
		struct metric metric;
	};
};

/* ---- to and from bytes ---- */

/*
 * Decode one message (the bytes after the length prefix). 0; -EBADMSG if it is not a message of this protocol (malformed, or a string that
 * is not UTF-8 where the protocol says string is left to the path check); -ENOMEM if the arena can't hold it.
 */
int request_decode(struct arena *arena, const uint8_t *bytes, size_t len, struct request *ret_request);
int reply_decode(struct arena *arena, const uint8_t *bytes, size_t len, struct reply *ret_reply);

/*
 * Encode one frame, length prefix included, into the arena. 0; -EMSGSIZE if the message would exceed MESSAGE_MAX_FRAME; -ENOMEM.
 */
int request_encode(struct arena *arena, const struct request *request, const uint8_t **ret_bytes, size_t *ret_len);
int reply_encode(struct arena *arena, const struct reply *reply, const uint8_t **ret_bytes, size_t *ret_len);
