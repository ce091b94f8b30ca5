#pragma once
/*
 * refused: which prefixes are refused most, in room for ENGINE_MAX_REFUSED of them.
 *
 * The space-saving algorithm (Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data
 * streams", 2005): a prefix that is not among those remembered takes the place of the least refused one and its count plus one. So a
 * count is never too small, too large by at most all refusals / ENGINE_MAX_REFUSED, and whoever is refused more often than that is listed.
 *
 * Any thread; one mutex, which no add waits for.
 */
#include <pthread.h>
#include <stddef.h>

#include "lib/engine/engine.h"

struct refused {
	pthread_mutex_t mutex;
	size_t n;
	struct engine_refused prefixes[ENGINE_MAX_REFUSED];
};

#define REFUSED_INIT                               \
	{                                          \
		.mutex = PTHREAD_MUTEX_INITIALIZER \
	}

/* A valid path was refused: remember its parent, "" for a metric. */
void refused_note(struct refused *refused, const char *path, size_t len);

/* Most refused first; how many. */
size_t refused_list(struct refused *refused,
		    struct engine_refused ret_prefixes[ENGINE_MAX_REFUSED]);
