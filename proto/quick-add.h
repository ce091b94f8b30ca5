#pragma once
/*
 * quick-add: an Add and its answer without protobuf-c: for a third of the time, which under load is most of what an increment
 * costs. Private to this room.
 *
 * As in quick.h only what is written in the ordinary way is taken: known fields, in the shortest form, each list once and packed, the
 * body once and last. All else, and what is malformed, is left to protobuf-c, so the two agree in whatever they both take
 * (tests/unit/proto/test-quick-add.c, and the fuzzers).
 */
#include "proto/message.h"
#include "proto/quick.h"

/* 0, QUICK_E_OTHER or -ENOMEM; only 0 sets anything. */
int quick_decode_add(struct arena *arena, const uint8_t *bytes, size_t len,
		     struct request *ret_request);

/* A whole frame, as protobuf-c would have it to the byte: an Applied without errors. 0, QUICK_E_OTHER or -ENOMEM. */
int quick_encode_applied(struct arena *arena, const struct reply *reply, const uint8_t **ret_bytes,
			 size_t *ret_len);
