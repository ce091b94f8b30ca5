#pragma once
/*
 * step: STORE_STEP() stands where a crash would find the state file between two things that are done to it.
 *
 * In a normal build it is nothing. With -DRATION_HOOKS the process is killed at the n-th one that it comes to, where $RATION_KILL_AT_STEP says n, so
 * that a test can have it die at each.
 */

#ifdef RATION_HOOKS

void store_step(void);

#define STORE_STEP() store_step()

#else

#define STORE_STEP() ((void)0)

#endif
