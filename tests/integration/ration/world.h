#pragma once
/*
 * world: what the tests of libration against the real daemon share.
 */
#include "clients/c/include/ration.h"
#include "tests/support/daemon.h"

#include <stdint.h>

/* ThreadSanitizer can't follow a child that starts threads; there the tests in which one does are left out. */
#if defined(__SANITIZE_THREAD__)
#define CHILDREN_MAY_HAVE_THREADS 0
#elif defined(__has_feature)
#define CHILDREN_MAY_HAVE_THREADS (!__has_feature(thread_sanitizer))
#else
#define CHILDREN_MAY_HAVE_THREADS 1
#endif

/* `path`'s exact total, over a client of its own; 0 if there is no such counter. */
int64_t world_total(const char *url, const char *path);

/* A client whose losses fail the test. */
struct ration *world_open(const char *url, uint32_t send_interval_ms);

/* Everything delivered. */
void world_close(struct ration *client);

/* This process's resident memory in bytes. */
int64_t world_rss(void);
