#pragma once
/*
 * directory: which worker owns which session, and how many sessions and handles there are in all.
 *
 * Asked once per Hello, per growth of a handle table and per session's end; adds and reads never come here. One mutex guards
 * everything in it and the directory's part of each session. Nothing else is locked while it is held.
 *
 * Thread safety: any thread.
 */
#include "daemon/session.h"

#include <pthread.h>

enum directory_error {
	DIRECTORY_OK = 0,
	DIRECTORY_E_ELSEWHERE, /* the session is, or should be, another worker's */
	DIRECTORY_E_FULL,      /* no more sessions */
};

struct directory {
	pthread_mutex_t lock;
	struct session **buckets;
	size_t n_buckets; /* a power of two */
	uint64_t seed;	  /* against crafted ids */
	bool keeps;	  /* ledgers of sessions note changes; set before the first */
	uint32_t n_sessions, max_sessions;
	uint64_t n_handles, max_handles;
	unsigned n_workers;
	uint32_t *load; /* sessions by worker */
};

int directory_init(struct directory *directory, unsigned n_workers, uint64_t seed);
/* Frees all sessions; no worker may run. Accepts what was zeroed and never initialised. */
void directory_deinit(struct directory *directory);

/* A limit below what there is keeps what there is. */
void directory_set_limits(struct directory *directory, uint32_t max_sessions, uint64_t max_handles);

/*
 * The session `id` for worker `self`. 0: *ret_session is the worker's own, new if it was not known. A new one goes to the worker
 * with the fewest, unless `settle` says that it has been sent here for that. DIRECTORY_E_ELSEWHERE: *ret_owner is whose it is;
 * DIRECTORY_E_FULL; -ENOMEM.
 */
int directory_claim(struct directory *directory, const uint8_t *id, unsigned self, bool settle,
		    struct session **ret_session, unsigned *ret_owner);

/* Its owner ends a session, its event deleted; the session is freed. */
void directory_end(struct directory *directory, struct session *session);

/*
 * Or leaves it in its place, empty (session_clear), until directory_end, or a claim begins it anew. It does not count meanwhile.
 */
void directory_park(struct directory *directory, struct session *session);

/* Before any worker runs: a session of an earlier daemon, for the worker with the fewest, whatever the limit. -ENOMEM. */
int directory_restore(struct directory *directory, const uint8_t *id, struct session **ret_session);
/* NULL: there is none. */
struct session *directory_find(struct directory *directory, const uint8_t *id);

/* False: that would pass the limit, and nothing was taken. */
bool directory_take_handles(struct directory *directory, uint64_t n);
void directory_give_handles(struct directory *directory, uint64_t n);

uint32_t directory_sessions(struct directory *directory);
uint64_t directory_handles(struct directory *directory);
