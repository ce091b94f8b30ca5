#pragma once
/*
 * reload: the configuration, read again while the daemon runs. All or nothing: an error keeps what ran before.
 *
 * Thread safety: the main thread alone.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct daemon;

/*
 * Metrics and quotas of `config` take the place of those of `old` (NULL: there is none); what clients declared meanwhile stays where the
 * files did not change, and so do rules of run time. On success `config` is the daemon's; `old` is still to be freed. All or
 * nothing: a failure, which is logged, brings back what was.
 */
int reload_take(struct daemon *daemon, struct config *config, const struct config *old);

#define RELOAD_MAX_TEXT 1024u /* bytes of one text */
#define RELOAD_MAX_TOLD 8192u /* of all */
#define RELOAD_TOLD_ERROR 'e'
#define RELOAD_TOLD_NOTE 'n'

/* What a reload has to say, for whoever asked for it: each text begins with its kind and ends with a NUL. */
struct reload_told {
	bool good;
	uint32_t n_errors, n_notes, omitted; /* omitted: those for which there was no more room */
	size_t len;
	char bytes[RELOAD_MAX_TOLD];
};

/* Read and take over. 0 or a negative errno; what went wrong, and what can't change at run time, is logged and told. */
int reload(struct daemon *daemon, struct reload_told *told);
