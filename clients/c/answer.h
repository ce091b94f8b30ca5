#pragma once
/*
 * answer: what the daemon's replies on a link mean for the growth that was sent.
 *
 * Threads: under the client's lock.
 */
#include <stdint.h>

struct link;
struct reply;

/* Act on one reply. May end the connection (link->state is LINK_DOWN then). */
void answer_take(struct link *link, const struct reply *reply, int64_t now);
