#pragma once
/*
 * hold: stop one thread of another process, as a hang would, and let it go on.
 *
 * The thread that holds is the one that must let go; when its process ends, all it holds goes on.
 */
#include <sys/types.h>

/* Hold the thread of `pid` that has this name. Its id; or a negative errno: -ESRCH there is none; -EPERM we may not, which is said: the test is to skip itself. */
pid_t hold_thread(pid_t pid, const char *name);
/* Let it go on. */
void hold_release(pid_t thread);
/* Wait until it is gone. */
void hold_wait(pid_t thread);
