#pragma once
/*
 * round: what a worker does for one connection before it turns to the next: one read of bounded size, every whole frame
 * in it answered in order, one write.
 *
 * Frames are decoded where they were read to. Only what is left at the end, the beginning of a frame, is kept with the
 * connection; the next read completes it there and goes on in the worker's memory, so that nothing is copied twice.
 */

#include <stdbool.h>

struct connection;
struct worker;

/* The worker's thread takes the connection in, and answers what came with it. From here on its events drive it. */
void round_attach(struct connection *connection, struct worker *worker);

/*
 * Some of what takes longer than others should be kept waiting: a part of the long Intern that is under way, and what one of those has sent who
 * come again. True: there is more, for another turn of the worker's loop.
 */
bool round_deferred(struct worker *worker);
