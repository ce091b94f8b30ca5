#pragma once
/*
 * peer: who is at the other end of a connection, as the kernel says.
 *
 * Thread safety: any thread.
 */
#include <stdbool.h>
#include <stdint.h>

/*
 * May it order, beyond counting and reading: root, the user we run as, and the members of a group may (`admin_group`: 0, no group; else
 * its id and 1, as the configuration has it). What counts is who it was when it connected, with all its groups. Over TCP nobody may:
 * there the kernel does not know who it is.
 */
bool peer_is_admin(int fd, int64_t admin_group);
