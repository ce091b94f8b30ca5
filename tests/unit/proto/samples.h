#pragma once
/*
 * samples: at least one request and one reply of every kind, with every field set to something telling; for round
 * trips, and as the fuzzers' first inputs. Comparing two messages is here too.
 */
#include "proto/message.h"

extern const struct request sample_requests[];
extern const size_t n_sample_requests;
extern const struct reply sample_replies[];
extern const size_t n_sample_replies;

/* cmocka assertions that a and b say the same. */
void assert_requests_equal(const struct request *a, const struct request *b);
void assert_replies_equal(const struct reply *a, const struct reply *b);
