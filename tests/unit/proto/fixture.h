#pragma once
/*
 * fixture: messages to and from bytes in a test. What can fail is asserted.
 */
#include "proto/message.h"

#define BYTES(...) ((const uint8_t[]){ __VA_ARGS__ }), sizeof((const uint8_t[]){ __VA_ARGS__ })

/* One arena to encode in, one to decode in; the second with the limit that the programs give it. */
struct fixture {
	struct arena encoded, decoded;
};

/* For cmocka; *state is the fixture. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* Again and again, after two rounds to warm up. The test is to be linked with --wrap=malloc. */
void assert_decodes_without_malloc(struct fixture *fixture, const struct request *request);

/* The message without its length; it lasts until the next one is encoded. */
const uint8_t *encode_request(struct fixture *fixture, const struct request *request,
			      size_t *ret_len);
const uint8_t *encode_reply(struct fixture *fixture, const struct reply *reply, size_t *ret_len);

/* Of a message without its length; lasts until the next one is decoded. */
struct request decode_request(struct fixture *fixture, const uint8_t *bytes, size_t len);
struct reply decode_reply(struct fixture *fixture, const uint8_t *bytes, size_t len);
