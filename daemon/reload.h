#pragma once
/*
 * reload: the configuration, read again while the daemon runs. All or nothing: an error keeps what ran before.
 *
 * Thread safety: the main thread alone.
 */

struct config;
struct daemon;

/*
 * Metrics and quotas of `config` take the place of those of `old` (NULL: there is none); what clients declared meanwhile stays where the
 * files did not change, and so do rules of run time. On success `config` is the daemon's; `old` is still to be freed. All or
 * nothing: a failure, which is logged, brings back what was.
 */
int reload_take(struct daemon *daemon, struct config *config, const struct config *old);

/* Read and take over. 0 or a negative errno; what went wrong, and what can't change at run time, is logged. */
int reload(struct daemon *daemon);
