#pragma once
/*
 * settings: the limits that a worker keeps while it serves, copied into each worker so that it reads them without asking
 * anybody. A reload sends every worker a new copy.
 */
#include <stdint.h>

struct settings {
	int64_t max_output;	 /* bytes kept for a client that does not read */
	int64_t max_items;	 /* paths or entries in one request */
	int64_t max_walks;	 /* under way on one connection */
	int64_t max_handles;	 /* of one session; a handle is below this */
	int64_t max_held;	 /* paths on which a session holds something */
	int64_t max_detached;	 /* paths on which detached charges do */
	int64_t max_leases;	 /* of one session */
	int64_t max_lifetime_ns; /* of a session without a connection */
	int64_t hello_timeout_ns;
	int64_t idle_frame_ns; /* a frame begun must be whole within this */
	int64_t write_timeout_ns;
	int64_t statsd_idle_ns; /* of a TCP connection with StatsD lines; 0: no bound */
	int64_t admin_group;	/* of the peers that may order: 0, none; else its id and 1 */
};
