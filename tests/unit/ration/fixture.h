#pragma once
/*
 * fixture: a client of a scripted daemon, and what it reported as lost.
 */
#include "clients/c/include/ration.h"
#include "tests/unit/ration/fake.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define FIXTURE_BOUND (64u << 10) /* max_unacknowledged of the client, bytes */

struct lost {
	pthread_mutex_t lock;
	size_t n;
	int code;
	char path[64], text[160];
	int64_t amount; /* sum of all */
	int64_t last;
};

struct fixture {
	char *dir;
	struct fake fake;
	struct fake_peer peer; /* where a test has but one */
	struct lost lost;
	struct ration *client; /* a test that closes it sets it NULL */
	struct ration_counter *a, *b;
	struct ration_lease *lease; /* for tests of leases */
};

/* For cmocka: a client that sends every 5 ms; a and b are NULL. */
int fixture_setup(void **state);
/* The same, with the counters m/a and m/b. */
int fixture_setup_counters(void **state);
int fixture_teardown(void **state);
