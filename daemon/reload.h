#pragma once
/*
 * reload: the configuration, read again while the daemon runs. All or nothing: an error keeps what ran before.
 *
 * Thread safety: the main thread alone.
 */

struct config;
struct daemon;

/*
 * Declare what `config` says and `old` (NULL: nothing) did not; what clients declared meanwhile stays where the files did not change.
 * All or nothing: a failure brings back what was.
 */
int reload_declare(struct daemon *daemon, const struct config *config, const struct config *old);

/* Read and take over. 0 or a negative errno; what went wrong, and what can't change at run time, is logged. */
int reload(struct daemon *daemon);
