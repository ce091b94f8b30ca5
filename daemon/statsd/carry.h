#pragma once
/*
 * carry: what a worker's lines have left over of whole numbers, by counter: 0.5 now and 0.5 later are 1.
 *
 * By counter and not by name, since several names may lead to one counter. Memory is taken where there is something to carry only.
 *
 * Thread safety: none, a worker has its own.
 */
#include "daemon/statsd/amount.h"
#include "lib/engine/engine.h"

#include <stdint.h>

struct statsd_carry {
	struct statsd_carried **chunks;
	uint32_t n_chunks;
};

struct statsd_carried {
	uint64_t fraction; /* of 2^64 */
	uint32_t life; /* of the counter that it is for: a successor under its number begins anew */
};

/* Takes what is zeroed, and leaves it so. */
void statsd_carry_deinit(struct statsd_carry *carry);

/* The place of this counter, with nothing in it if it is new. NULL: no memory. */
struct statsd_carried *statsd_carry_of(struct statsd_carry *carry, struct engine_ref ref);
