#include "daemon/kinds.h"

#include <string.h>

static struct kinds_slot *slot_of(struct kinds *kinds, const char *name, size_t len)
{
	uint32_t hash = UINT32_C(0x811c9dc5);

	for (size_t i = 0; i < len; i++) {
		hash = (hash ^ (uint8_t)name[i]) * UINT32_C(0x01000193);
	}
	return &kinds->slots[(hash ^ (hash >> 16)) % KINDS_SLOTS];
}

/* Does the path begin with its metric? */
static bool is_of(const struct kinds_slot *slot, const char *path, size_t len)
{
	return slot->len > 0 && slot->len <= len && memcmp(slot->name, path, slot->len) == 0 &&
	       (slot->len == len || path[slot->len] == '/');
}

static enum kinds_answer learned(const struct kinds_slot *slot)
{
	return slot->gauge ? KINDS_GAUGE : KINDS_COUNTER;
}

static enum kinds_answer look_up(struct kinds *kinds, struct engine *engine, const char *path,
				 size_t len, bool counted)
{
	const char *slash = memchr(path, '/', len);
	struct kinds_slot *slot;
	struct engine_metric metric;
	bool gauge;

	len = slash != NULL ? (size_t)(slash - path) : len;
	if (len == 0 || len > PATH_MAX_SEGMENT) {
		return KINDS_MAYBE_COUNTER;
	}
	slot = slot_of(kinds, path, len);
	if (slot->len == len && memcmp(slot->name, path, len) == 0) {
		kinds->last = slot;
		return learned(slot);
	}
	gauge = engine_metric(engine, path, len, &metric) == 0 && metric.kind == ENGINE_GAUGE;
	if (!counted) {
		return gauge ? KINDS_MAYBE_GAUGE : KINDS_MAYBE_COUNTER;
	}
	slot->len = (uint8_t)len;
	slot->gauge = gauge;
	memcpy(slot->name, path, len);
	return learned(slot);
}

enum kinds_answer kinds_ask(struct kinds *kinds, struct engine *engine, const char *path,
			    size_t len, bool counted)
{
	/* Mostly it is the metric that was asked for before. */
	if (kinds->last != NULL && is_of(kinds->last, path, len)) {
		return learned(kinds->last);
	}
	return look_up(kinds, engine, path, len, counted);
}
