#pragma once
/*
 * quick: the two messages a daemon under load sees most, a Charge and its answer, without protobuf-c, for a sixth of
 * the time or less. Private to this room.
 *
 * Only what is written in the ordinary way is taken here: known fields, in the shortest form, the body once and last.
 * All else, and what is malformed, is left to protobuf-c. So the two agree in whatever they both take
 * (tests/unit/proto/test-quick.c, and the fuzzers).
 */
#include "proto/message.h"

enum quick_error {
	QUICK_OK = 0,
	QUICK_E_OTHER, /* for protobuf-c */
};

/* 0, QUICK_E_OTHER or -ENOMEM. */
int quick_decode_charge(struct arena *arena, const uint8_t *bytes, size_t len,
			struct request *ret_request);

/* An answer without bindings as a whole frame, to the byte as protobuf-c would have it. 0, QUICK_E_OTHER, -ENOMEM. */
int quick_encode_charged(struct arena *arena, const struct reply *reply, const uint8_t **ret_bytes,
			 size_t *ret_len);
