#pragma once
/*
 * intern: paths to references, what is declared of metrics, and what happens at the ceilings. The functions themselves are the engine's
 * (engine.h): engine_intern, engine_declare, engine_metric.
 */
#include <stddef.h>
#include <stdint.h>

struct engine;

/*
 * How many more names than max_counters there are places for, so that ENGINE_OTHER of every metric that asks for it can be made when the
 * ceiling is reached.
 */
uint32_t intern_reserve(uint32_t max_counters);

/*
 * Under the registry's lock: make the counter of a rule's path, if the ceilings allow it. Never ENGINE_OTHER's, and nothing is counted as
 * refused.
 */
void intern_rule(struct engine *engine, const char *path, size_t len, int64_t now_ns);
