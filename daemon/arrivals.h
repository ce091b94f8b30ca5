#pragma once
/*
 * arrivals: which worker gets a connection that was accepted, or a socket for datagrams, and which connections are refused.
 *
 * Thread safety: the main thread alone.
 */
#include "daemon/listener.h"

#include <stdint.h>

struct daemon;

/* What is done with what comes through the daemon's listeners; their context is the daemon. */
struct listener_uses arrivals_uses(const struct daemon *daemon);

/* How many connections of clients there are, about. */
uint32_t arrivals_connections(const struct daemon *daemon);
