#pragma once
/*
 * relimit: from rules that have changed to limits that counters carry.
 *
 * First everything is planned and all memory taken, while adds and charges go on: which counters get a limit, lose one, or have other
 * numbers in it; and which limits get another parent by that. Then it is applied. Other numbers alone need no gate; anything else is
 * done with the gate closed, for as long as the changes take, and not the looking for them.
 *
 *	relimit_init, relimit_plan (for each metric concerned)		-ENOMEM: relimit_deinit, nothing has changed
 *	relimit_apply, relimit_deinit
 *
 * All of it under the registry's lock.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/engine/plane.h"
#include "lib/engine/rules.h"

struct engine;

struct relimit {
	struct engine *engine;
	const struct layer *layers[2]; /* as they are to be */
	struct change *changes;
	size_t n, room;
	bool gate;
};

/* What may change at once. */
struct relimit_scope {
	struct limited *limited; /* the metric */
	uint32_t planes;	 /* bit by place */
	const char *path;	 /* the counters at and below this path, if it is there */
	size_t len;
	bool alone; /* no rule changes what holds for those below it */
};

void relimit_init(struct relimit *relimit, struct engine *engine, const struct layer *file,
		  const struct layer *run_time);
/* What was planned and not applied is dropped. */
void relimit_deinit(struct relimit *relimit);

/* -ENOMEM */
int relimit_plan(struct relimit *relimit, const struct relimit_scope *scope);
void relimit_apply(struct relimit *relimit, const struct quota_time *time);
