#pragma once
/*
 * wire-quota: charges, leases and rules over raw frames, in one line each.
 *
 * What is answered is asserted to be the reply it should be, with the number that was sent.
 */
#include "tests/support/wire.h"

/* Hello with the session of the four bytes of `session`, four times (so that there are enough of them), and operations from `next` on. */
struct reply wire_greet(struct wire *wire, uint32_t session, uint32_t lifetime_ms, uint64_t next);

struct request wire_charge_request(uint64_t number, const struct charge_item *items, size_t n);
/* One item. Returns whether it was granted; the whole reply is in *ret_reply, which may be NULL. */
bool wire_charge(struct wire *wire, uint64_t number, const char *path, int64_t amount,
		 struct reply *ret_reply);
/* Sent, not waited for; returns the id. */
uint64_t wire_send_charge(struct wire *wire, uint64_t number, const char *path, int64_t amount,
			  uint32_t wait_ms);
/* Returns whether it was a duplicate. */
bool wire_uncharge(struct wire *wire, uint64_t number, const char *path, int64_t amount);

/* Asserted to be a Leased; the units granted. */
int64_t wire_lease(struct wire *wire, uint64_t number, uint32_t lease, const char *path,
		   int64_t want, uint32_t ttl_ms);
int64_t wire_lease_renew(struct wire *wire, uint64_t number, uint32_t lease, int64_t spent,
			 int64_t want);
/* The units returned. */
int64_t wire_lease_return(struct wire *wire, uint64_t number, uint32_t lease, int64_t spent);

/* A max without a window; a negative one removes the rule. */
void wire_quota_max(struct wire *wire, const char *pattern, int64_t max);
void wire_gauge(struct wire *wire, const char *metric);
/* Usage in the plane without a window. */
int64_t wire_usage(struct wire *wire, const char *path);

/* Send, and it must be answered by an Error with this code, this in its text, and this number as answered for good. */
void wire_fails(struct wire *wire, const struct request *request, enum code code, const char *text,
		uint64_t operation);
