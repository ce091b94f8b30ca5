#pragma once
/*
 * restore: what the state file says, brought back at the start: before any worker runs, and before anybody is told that the daemon is ready.
 *
 * Sessions go on for at least RESTORE_MIN_LIFETIME_NS from then on, however short their lifetime is: their clients must have a chance to find out that
 * the daemon is there again.
 */
#include "daemon/store/store.h"

#include <stdbool.h>
#include <stdint.h>

#define RESTORE_MIN_LIFETIME_NS INT64_C(60000000000)

struct daemon;

/*
 * Open the state file of the configuration; a new one if there is none. 0; or STORE_E_*, or a negative errno, logged and told to the service manager.
 * `recover`: one that is damaged or newer is moved aside first.
 */
int restore_open(struct daemon *daemon, bool recover, struct store **ret_store);

/*
 * Bring back all that is in it. The configuration has been taken, the workers are made and have not joined the engine. Errors as above; then
 * the daemon must not go on, for part of it may be there.
 */
int restore_all(struct daemon *daemon, struct store *store);
