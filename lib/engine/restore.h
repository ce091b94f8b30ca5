#pragma once
/*
 * restore: own values that have to wait for others, while counters are brought back.
 *
 * Totals near the ends of int64 fit when all is there; on the way a part of it may not. What does not fit yet waits until the rest has come.
 */
#include <stddef.h>
#include <stdint.h>

struct engine;

struct late {
	struct late_own {
		uint32_t id;
		int64_t own;
	} * owns;
	size_t n, room;
};

/* Under the registry's lock. ENGINE_E_OVERFLOW: not all of it fits. */
int restore_late(struct engine *engine);
void restore_deinit(struct late *late);
