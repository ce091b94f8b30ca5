#pragma once
/*
 * counters: all counters of a client: found by path or handle, with their per-CPU slots.
 *
 * A counter's handle is its place in the order of creation, and is the number under which the daemon is told its path. Counters
 * are never removed before the client, so that an add needs no protection against it.
 *
 * Threads: all under the client's lock, and so are a counter's fields, but for the first group: it does not change once the
 * counter is handed out. Adds go straight to the slots (lib/count/percpu.h) and need no lock.
 */
#include "lib/count/percpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ration;

struct ration_counter {
	/* read by every add */
	struct slot *slots;
	const _Atomic(uint64_t) *dirty; /* the word with this counter's dirty bit */
	uint64_t dirty_bit;
	struct ration *client;
	const char *path; /* terminated */
	uint32_t handle;
	uint16_t path_len;

	/* growth that is in no batch yet (outbox.h) */
	bool queued;
	uint32_t next_queued; /* handle */
	int64_t unsent;

	/* what the daemon knows of it (intern.h) */
	uint32_t interned_on; /* number of the connection on which the path was sent last; 0: never */
	uint8_t refused_code; /* enum code */
	uint8_t strikes; /* times in a row that the daemon did not know a handle it had just been told */
	int64_t struck_at;
	uint64_t interned_before; /* the batch it was sent for */
	int64_t refused_until;	  /* clock_now(); 0: not refused */
	const char *refused_text; /* why, while it is refused; kept in struct interns */

	struct ration_counter *next; /* in its bucket */
};

struct counters_chunk;

struct counters {
	struct percpu percpu;
	struct ration_counter **buckets;
	size_t n_buckets; /* a power of two; 0: none yet */
	uint64_t seed;
	struct counters_chunk **chunks;
	uint32_t n_counters, max_counters;
};

/* 0 or a negative errno. */
int counters_init(struct counters *counters, uint32_t max_counters);
void counters_deinit(struct counters *counters);

/*
 * The counter at `path`, made if there is none. 0; -EINVAL: certainly not a path (of the grammar only the parts that need no
 * knowledge of Unicode are checked here, the daemon has the last word); -ENOSPC: there are max_counters; -ENOMEM. The error text
 * is set.
 */
int counters_get(struct counters *counters, struct ration *client, const char *path,
		 struct ration_counter **ret_counter);

/* handle < n_counters. */
struct ration_counter *counters_at(const struct counters *counters, uint32_t handle);

/*
 * Hand over what counters have grown by since they were collected last. Everything whose add returned before the call is in it.
 */
void counters_collect(struct counters *counters,
		      void (*fn)(void *ctx, struct ration_counter *counter, int64_t growth),
		      void *ctx);

/* In the child of a fork, before anything is collected there: what stands in the slots is the parent's. */
void counters_restart(struct counters *counters);
