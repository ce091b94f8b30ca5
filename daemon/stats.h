#pragma once
/*
 * stats: what a worker counts about its own work. One writer, the worker; anyone may read, and sees each number as of some
 * moment not long ago (relaxed: nothing is concluded from one about another).
 */
#include <stdatomic.h>
#include <stdint.h>

/* X(name, help): one line here gives the field, its sum over workers, its status item and its metric. */
#define STATS_EACH(X)                                                                                     \
	X(batches_applied, "Batches of adds that were counted.")                                          \
	X(batches_duplicate, "Batches that had been applied before and were not counted again.")          \
	X(adds_applied, "Entries of batches that were counted.")                                          \
	X(adds_refused, "Entries of batches that were not counted; their clients were told.")             \
	X(operations, "Charges, leases and what is given back: operations that were carried out.")        \
	X(operations_duplicate,                                                                           \
	  "Operations that had been carried out before and were answered again.")                         \
	X(charges_waited, "Charges that began to wait for room.")                                         \
	X(leases_expired, "Leases that were not renewed in time.")                                        \
	X(paths_interned, "Paths that got a handle.")                                                     \
	X(frames_in, "Requests received.")                                                                \
	X(frames_out, "Replies sent.")                                                                    \
	X(bytes_in, "Bytes received from clients.")                                                       \
	X(bytes_out, "Bytes sent to clients.")                                                            \
	X(connections_opened, "Connections that were served.")                                            \
	X(connections_lost,                                                                               \
	  "Connections that ended with a Goodbye for a fault of the client, or because it did not read.") \
	X(sessions_taken_over, "Connections that lost their session to a newer one.")                     \
	X(errors_invalid_argument, "Requests answered with INVALID_ARGUMENT.")                            \
	X(errors_not_found, "Requests answered with NOT_FOUND.")                                          \
	X(errors_resource_exhausted, "Requests answered with RESOURCE_EXHAUSTED.")                        \
	X(errors_failed_precondition, "Requests answered with FAILED_PRECONDITION.")                      \
	X(errors_permission_denied, "Requests answered with PERMISSION_DENIED.")                          \
	X(errors_other, "Requests answered with any other error.")                                        \
	X(faults_protocol, "Connections closed for a broken frame, or for requests before Hello.")        \
	X(faults_timeout,                                                                                 \
	  "Connections closed for a missing Hello, a half-open frame, or a client that does not read.")   \
	X(pauses, "Times a client was not read from because it did not read what waited for it.")

/* The same of what comes and goes. */
#define STATS_GAUGES_EACH(X) X(held_paths, "Paths of gauges on which sessions hold something.")

struct stats {
#define STATS_FIELD(name, help) _Atomic(uint64_t) name;
	STATS_EACH(STATS_FIELD)
	STATS_GAUGES_EACH(STATS_FIELD)
#undef STATS_FIELD
};

/* The owner alone. */
static inline void stats_add(_Atomic(uint64_t) *word, uint64_t n)
{
	atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline uint64_t stats_read(const _Atomic(uint64_t) *word)
{
	return atomic_load_explicit((_Atomic(uint64_t) *)(uintptr_t)word, memory_order_relaxed);
}
