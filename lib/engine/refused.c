#include "lib/engine/refused.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/names/path.h"

static_assert(sizeof(((struct engine_refused *)NULL)->prefix) > PATH_MAX_BYTES,
	      "any prefix and its terminator fit");

static bool is(const struct engine_refused *refused, const char *prefix, size_t len)
{
	return strlen(refused->prefix) == len && memcmp(refused->prefix, prefix, len) == 0;
}

/* The prefix's own place, a new one, or that of the least refused. */
static struct engine_refused *place_of(struct refused *refused, const char *prefix, size_t len)
{
	struct engine_refused *least = &refused->prefixes[0];

	for (size_t i = 0; i < refused->n; i++) {
		struct engine_refused *candidate = &refused->prefixes[i];

		if (is(candidate, prefix, len)) {
			return candidate;
		}
		if (candidate->count < least->count) {
			least = candidate;
		}
	}
	if (refused->n < ENGINE_MAX_REFUSED) {
		least = &refused->prefixes[refused->n++];
		least->count = 0;
	}
	memcpy(least->prefix, prefix, len);
	least->prefix[len] = '\0';
	return least;
}

void refused_note(struct refused *refused, const char *path, size_t len)
{
	size_t prefix_len = path_parent(path, len);

	(void)pthread_mutex_lock(&refused->mutex);
	place_of(refused, path, prefix_len)->count++;
	(void)pthread_mutex_unlock(&refused->mutex);
}

static int more_first(const void *a, const void *b)
{
	uint64_t x = ((const struct engine_refused *)a)->count;
	uint64_t y = ((const struct engine_refused *)b)->count;

	return (x < y) - (x > y);
}

size_t refused_list(struct refused *refused, struct engine_refused ret_prefixes[ENGINE_MAX_REFUSED])
{
	size_t n;

	(void)pthread_mutex_lock(&refused->mutex);
	n = refused->n;
	memcpy(ret_prefixes, refused->prefixes, n * sizeof(*ret_prefixes));
	(void)pthread_mutex_unlock(&refused->mutex);
	qsort(ret_prefixes, n, sizeof(*ret_prefixes), more_first);
	return n;
}
