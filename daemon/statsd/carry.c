#include "daemon/statsd/carry.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK 1024u

void statsd_carry_deinit(struct statsd_carry *carry)
{
	for (uint32_t i = 0; i < carry->n_chunks; i++) {
		free(carry->chunks[i]);
	}
	free(carry->chunks);
	*carry = (struct statsd_carry){ 0 };
}

static bool reach(struct statsd_carry *carry, uint32_t chunk)
{
	struct statsd_carried **grown;
	uint32_t n = chunk + chunk / 2 + 1;

	if (chunk < carry->n_chunks) {
		return true;
	}
	grown = reallocarray(carry->chunks, n, sizeof(struct statsd_carried *));
	if (grown == NULL) {
		return false;
	}
	memset(grown + carry->n_chunks, 0, (n - carry->n_chunks) * sizeof(struct statsd_carried *));
	carry->chunks = grown;
	carry->n_chunks = n;
	return true;
}

struct statsd_carried *statsd_carry_of(struct statsd_carry *carry, struct engine_ref ref)
{
	struct statsd_carried *carried;
	uint32_t chunk = ref.id / CHUNK;

	if (!reach(carry, chunk)) {
		return NULL;
	}
	if (carry->chunks[chunk] == NULL) {
		carry->chunks[chunk] = calloc(CHUNK, sizeof(*carried));
	}
	if (carry->chunks[chunk] == NULL) {
		return NULL;
	}
	carried = &carry->chunks[chunk][ref.id % CHUNK];
	if (carried->life != ref.life) {
		*carried = (struct statsd_carried){ .life = ref.life };
	}
	return carried;
}
