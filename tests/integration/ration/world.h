#pragma once
/*
 * world: what the tests of libration against the real daemon share.
 */
#include "clients/c/include/ration.h"
#include "tests/support/daemon.h"

#include <stdint.h>

/* `path`'s exact total, over a client of its own; 0 if there is no such counter. */
int64_t world_total(const char *url, const char *path);

/* A client whose losses fail the test. */
struct ration *world_open(const char *url, uint32_t send_interval_ms);

/* Everything delivered. */
void world_close(struct ration *client);

/* This process's resident memory in bytes. */
int64_t world_rss(void);
