#pragma once
/*
 * quick-get: a Get, and the answer to one of few paths, without protobuf-c: for a small part of the time, which is what a client that asks
 * for one counter waits for beside the kernel. Private to this room. As in quick-add.h all that is not ordinary is left to
 * protobuf-c.
 */
#include "proto/message.h"
#include "proto/quick.h"

#define QUICK_MAX_VALUES 3u

/* 0, QUICK_E_OTHER or -ENOMEM; only 0 sets anything. */
int quick_decode_get(struct arena *arena, const uint8_t *bytes, size_t len,
		     struct request *ret_request);

/* A whole frame, as protobuf-c would have it to the byte: at most QUICK_MAX_VALUES values, none with a text. 0, QUICK_E_OTHER or -ENOMEM. */
int quick_encode_values(struct arena *arena, const struct reply *reply, const uint8_t **ret_bytes,
			size_t *ret_len);
