#pragma once
/*
 * lease: the background's part of leases: ask for units, report what was spent, renew in time, fill up, return.
 *
 *	no lease --Lease--> held --LeaseRenew--> held ... --LeaseReturn--> gone
 *	   ^__session lost, refused, unknown__|
 *
 * Books of a lease. The daemon has `unspent` units on it, as far as was reported; the stock holds those not spent. So what is to be
 * reported next is unspent - units, and if the program has given back more than it spent since, units - unspent are held by the session and
 * can be spent again or uncharged. One report is under way at a time.
 *
 * Threads: the stock and the second group: any. All else under the client's lock.
 */
#include "clients/c/operations.h"
#include "clients/c/stock.h"

struct ration;
struct ration_counter;

#define LEASE_MAX 1000u
#define LEASE_MIN_TTL_MS 1000u
#define LEASE_MAX_TTL_MS 3600000u
#define LEASE_MARGIN_MS 50 /* spending stops so much before the daemon's time is over, at least */
#define LEASE_RETRY_MIN_MS 10
#define LEASE_RETRY_MAX_MS 1000

struct ration_lease {
	struct stock stock;

	/* read, and seldom written, by any thread */
	struct ration *client;
	int64_t want;
	_Atomic(int64_t) expires_at; /* clock_now(); stops spending */
	_Atomic(int64_t) opened;     /* units granted by RATION_OPEN alone, since ever */
	_Atomic(int64_t)
		strays; /* units that are out and that no lease knows: those, and what was out when a lease was void */
	_Atomic(bool) away;   /* there is no daemon to ask */
	_Atomic(bool) called; /* for more units */
	_Atomic(bool) over;   /* the background is told that units above `want` were given back */
	_Atomic(bool) dead;   /* in the child of a fork */

	struct ration_lease *next;
	struct ration_counter *counter; /* its path */
	int64_t low_water;
	uint32_t ttl_ms;
	uint32_t id; /* with the daemon; another one each time */
	bool held, closing, gone, orphan;
	bool kind_known, is_counter;
	int64_t unspent;  /* as the daemon knows it when all that is under way was done */
	int64_t reported; /* in the report that is under way */
	int64_t final;	  /* closing: what to report */
	int64_t opened_added;
	int64_t renew_at, retry_at;
	int64_t backoff;
	uint64_t n_answers;
	int code;
	char text[128];
	struct operation ask, uncharge, question;
};

struct leases {
	struct ration_lease *first;
	uint32_t n, next_id;
	int64_t due_at;
	_Atomic(bool) called; /* by a try or a give */
};

/* Ask, report and return what is due; by the background thread. */
void leases_step(struct ration *client, int64_t now);

/* When it is due next. */
int64_t leases_deadline(const struct leases *leases);

/* The connection is down; is there again; the daemon knows nothing of the session any more. */
void leases_away(struct ration *client);
void leases_back(struct ration *client);
void leases_lost(struct ration *client, int64_t now);

/* In the child of a fork: none of them is ours. */
void leases_forget(struct leases *leases);
/* With the client. */
void leases_free(struct leases *leases);

/* Have the background look at this lease. Any thread; takes no lock. */
void lease_call(struct ration_lease *lease);

/* ---- for leasing.c ---- */

/* There may be something to do for it in the next turn. */
void lease_due(struct ration_lease *lease);
/* Nothing can be spent any more, if it has expired by now. Under the client's lock. */
void lease_check_time(struct ration_lease *lease, int64_t now);
/* Tell what RATION_OPEN granted as adds, if its kind is known. */
void lease_report_opened(struct ration_lease *lease);
/* Go on with the return of a lease that is being closed; sets `gone`. */
void lease_step_closing(struct ration_lease *lease, int64_t now);
/* Out of the client's list. */
struct ration_lease *lease_free(struct ration_lease *lease);
