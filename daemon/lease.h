#pragma once
/*
 * lease: units of a path that a session's client spends without asking, and until when it may.
 *
 *	lease_table	the leases of a session, by the number that its client gave them
 *	lease_clock	when those of a worker's sessions expire, the soonest first
 *	lease_book	all there are, for whoever wants to see those on a path
 *
 * What a lease that has expired changes is only what is said of it: its units stay charged until the session reports or ends.
 *
 * Thread safety: a table and a clock belong to the worker that has the session. The book has a lock of its own, which also guards
 * what of a lease others read: the units and the time.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define LEASE_BUCKETS 1024u

struct cursor_in;
struct cursor_out;

enum lease_error {
	LEASE_OK = 0,
	LEASE_E_EXISTS, /* the session has one of this number */
	LEASE_E_FULL,	/* the session has as many as it may */
	LEASE_E_ALL,	/* there are as many as there may be, of all sessions */
};

struct lease {
	LIST_ENTRY(lease) link; /* in the book */
	/* Fixed. */
	uint32_t number;
	uint32_t ttl_ms;
	bool gauge;
	uint16_t len, agent_len;
	/* The owner's. */
	uint32_t clock_at; /* its place in the clock, from 1; 0: not in it, it has expired */
	/* Written by the owner under the book's lock. */
	int64_t units;	    /* not reported as spent */
	int64_t expires_ns; /* monotonic */
	char path[];	    /* and the agent of its session behind it */
};

struct lease_book {
	pthread_mutex_t lock;
	LIST_HEAD(lease_list, lease) * buckets; /* by metric */
	uint32_t n, max;
	uint64_t seed;
};

struct lease_table {
	struct lease **leases; /* sorted by number */
	uint32_t n, size;
};

struct lease_clock {
	struct lease **heap; /* from index 1; each is not later than its children, at 2i and 2i + 1 */
	uint32_t n, size;
	uint32_t n_leases; /* those that have expired included: there is room for all */
};

/* -ENOMEM. */
int lease_book_init(struct lease_book *book, uint32_t max, uint64_t seed);
/* Accepts what was zeroed; leases don't matter. */
void lease_book_deinit(struct lease_book *book);
void lease_book_set_max(struct lease_book *book, uint32_t max);
uint32_t lease_book_count(struct lease_book *book);

/* All on `path` and below it. `visit` must be short and not use the book: its lock is held. */
typedef void (*lease_fn)(void *ctx, const struct lease *lease);
void lease_book_each(struct lease_book *book, const char *path, size_t len, lease_fn visit,
		     void *ctx);

/* NULL: no such lease. */
struct lease *lease_find(const struct lease_table *table, uint32_t number);

struct lease_terms {
	const char *path, *agent;
	size_t len, agent_len;
	uint32_t number, ttl_ms;
	bool gauge;
};

#define LEASE_NO_MAX \
	UINT32_MAX /* what was leased once is so whatever the limits are by now, the book's too */

/* Room for one more: LEASE_E_EXISTS, LEASE_E_FULL, LEASE_E_ALL, -ENOMEM; 0: *ret_lease, of no units, with which lease_make can't fail. */
int lease_prepare(struct lease_table *table, struct lease_clock *clock, struct lease_book *book,
		  const struct lease_terms *terms, uint32_t max, struct lease **ret_lease);
/* One that was prepared and won't be made. */
void lease_discard(struct lease_book *book, struct lease *lease);
void lease_make(struct lease_table *table, struct lease_clock *clock, struct lease_book *book,
		struct lease *lease, int64_t units, int64_t expires_ns);

/* It has so many units now, and goes on until then. */
void lease_renew(struct lease_clock *clock, struct lease_book *book, struct lease *lease,
		 int64_t units, int64_t expires_ns);

/* It is no more. */
void lease_end(struct lease_table *table, struct lease_clock *clock, struct lease_book *book,
	       struct lease *lease);

/* Those whose time is over by now leave the clock, one by one; NULL: no more. */
struct lease *lease_expire(struct lease_clock *clock, int64_t now_ns);
/* When the next one expires; INT64_MAX: none. */
int64_t lease_next(const struct lease_clock *clock);

/* ---- as bytes ---- */

/* All of them, in at most lease_save_bound() bytes. */
size_t lease_save_bound(const struct lease_table *table);
void lease_save(const struct lease_table *table, struct cursor_out *out);
/* The next of what was saved, while there is something left in `in`; the path lies there, the agent is "". -EINVAL: this was not saved so. */
int lease_load(struct cursor_in *in, struct lease_terms *ret_terms, int64_t *ret_units);

/* Leases that are left in it are freed: neither the book nor the clock may be used any more, if there are any. */
void lease_table_deinit(struct lease_table *table);
void lease_clock_deinit(struct lease_clock *clock);
