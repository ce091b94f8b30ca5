#pragma once
/*
 * intern: paths to references, what is declared of metrics, and what happens at the ceilings. The functions themselves are the engine's
 * (engine.h): engine_intern, engine_declare, engine_metric.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct name;

/*
 * How many more names than max_counters there are places for, so that ENGINE_OTHER of every metric that asks for it can be made when the
 * ceiling is reached; and, with `keep`, so that those that are gone and not done with (changes.h) take nobody's place.
 */
uint32_t intern_reserve(uint32_t max_counters, bool keep);

/* ENGINE_OTHER of `parent`, in a read section. NULL: there is none. */
struct name *intern_find_other(struct engine *engine, const char *parent, size_t len);

/* ---- under the registry's lock; results as of engine_intern ---- */

/* The counter at this very path, made if the ceilings allow it: never ENGINE_OTHER's. Nothing is counted as refused. */
int intern_exact(struct engine *engine, const char *path, size_t len, int64_t now_ns,
		 struct name **ret_name);

/* The same without ceilings, of a counter that isn't told as born (keep.h). */
int intern_restored(struct engine *engine, const char *path, size_t len, int64_t born_ns,
		    struct name **ret_name);
