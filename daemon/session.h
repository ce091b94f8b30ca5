#pragma once
/*
 * session: a client's identity, under which its batches and operations are numbered and its handles have a meaning, and which
 * holds what it charged on gauges, and its leases.
 *
 * A session belongs to one worker for as long as it lives, and only that worker's thread touches it, but for the fields that
 * the directory guards. It outlives its connection for its lifetime.
 */
#include "daemon/held.h"
#include "daemon/keep.h"
#include "daemon/lease.h"
#include "daemon/operations.h"
#include "lib/engine/engine.h"
#include "proto/message.h"

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SESSION_NO_ID UINT32_MAX /* of a handle that stands for nothing; no counter has this id */

struct connection;
struct directory;
struct worker;

enum session_error {
	SESSION_OK = 0,
	SESSION_E_DUPLICATE, /* this batch has been applied */
	SESSION_E_GAP,	     /* batches before this one are missing */
	SESSION_E_HANDLE,    /* beyond the session's handles */
	SESSION_E_FULL,	     /* the handles of all sessions together are at their limit */
};

struct session {
	/* Guarded by the directory's lock. */
	struct session *next;
	uint8_t id[MESSAGE_SESSION_BYTES];
	unsigned owner; /* index of the worker; never changes */
	bool parked; /* it has ended, and is there only so that one of the same id begins with the same worker */

	/* The owner's. */
	struct worker *worker;	       /* NULL until the first Hello is through */
	struct connection *connection; /* NULL while there is none */
	uint64_t last_batch;
	int64_t lifetime_ns;
	struct engine_ref *refs; /* by handle */
	uint32_t n_refs;
	bool resumable; /* its client knows its handles to be good: a Hello that finds it so resumes it */
	bool restored; /* from the state file, and not greeted since */
	struct event expiry;
	struct operations operations;
	struct held held;
	struct lease_table leases;
	struct keep_session keep;
	uint8_t agent_len;
	char agent[MESSAGE_MAX_AGENT]; /* what the last Hello said, made fit to be shown */
};

/*
 * A Hello: `next_batch` >= 1 is the lowest number the client may still send. What lies below counts as applied, so a session that
 * is new starts there, and one that is known or restored never goes back.
 */
void session_greet(struct session *session, uint64_t next_batch, int64_t lifetime_ns);

/* Its client knows by now that it is what it is; or would not believe anything else. */
static inline void session_asked(struct session *session)
{
	if (__builtin_expect(!session->resumable, 0)) {
		session->resumable = true;
		session->restored = false;
	}
}

/* Keep what the client says it is: other bytes than printable ASCII become question marks. */
void session_set_agent(struct session *session, struct text agent);

/* It has ended, and what it holds was given back: as one that is new, but for its ledger, which may have changes to be kept. */
void session_clear(struct session *session);

/* Frees all that hangs on it, and it; what it holds was given back. */
void session_free(struct session *session);

/* May this batch be counted now? SESSION_OK, SESSION_E_DUPLICATE, SESSION_E_GAP; changes nothing. */
enum session_error session_check_batch(const struct session *session, uint64_t batch);

/* Room for handles below `n` <= max. SESSION_E_HANDLE, SESSION_E_FULL, -ENOMEM. */
int session_reserve(struct session *session, struct directory *directory, uint64_t n, uint64_t max);

/* A handle within what was reserved. */
static inline void session_bind(struct session *session, uint32_t handle, struct engine_ref ref)
{
	session->refs[handle] = ref;
}

/* False: the handle stands for nothing. */
static inline bool session_look_up(const struct session *session, uint32_t handle,
				   struct engine_ref *ret_ref)
{
	if (__builtin_expect(handle >= session->n_refs, 0)) {
		return false;
	}
	*ret_ref = session->refs[handle];
	return __builtin_expect(ret_ref->id != SESSION_NO_ID, 1);
}
