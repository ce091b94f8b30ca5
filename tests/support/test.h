#pragma once
/*
 * test: what every cmocka test starts from. Include this instead of <cmocka.h>, which does not stand alone.
 *
 * Randomness: test_seed() is $RATION_SEED, or a new seed if that is not set; it is printed, so that a failure can be repeated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The seed of this run; printed to standard error the first time. */
uint64_t test_seed(void);

/* A xorshift64* generator (Vigna 2016). One per thread; start it with test_random_init. */
struct test_random {
	uint64_t state;
};

/* Streams with different `stream` numbers differ, and are the same again in a run with the same seed. */
void test_random_init(struct test_random *random, uint64_t stream);
uint64_t test_random_next(struct test_random *random);
/* Uniform enough in 0 .. bound - 1; bound is not 0. */
uint64_t test_random_below(struct test_random *random, uint64_t bound);

/* CLOCK_MONOTONIC. */
int64_t test_now_ns(void);

/*
 * Does a stress go on? Until that time; and for a minute more at most, until `enough`: all that shall happen has happened, on a
 * machine that has other things to do as well.
 */
bool test_goes_on(int64_t until_ns, bool enough);

/* cmocka fixture: *state becomes the path (char *) of an empty directory; the other one removes it with all it holds. */
int test_dir_setup(void **state);
int test_dir_teardown(void **state);
/* The path of a file in there; to be freed. */
char *test_dir_file(void **state, const char *name);
