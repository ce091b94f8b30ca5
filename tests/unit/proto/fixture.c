#include "tests/unit/proto/fixture.h"

#include "proto/frame.h"
#include "tests/support/test.h"
#include "tests/unit/proto/samples.h"

/* See CMakeLists.txt: the room's calls to malloc end here. */
static size_t mallocs;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	mallocs++;
	return __real_malloc(size);
}

int fixture_setup(void **state)
{
	static struct fixture fixture;
	fixture = (struct fixture){ ARENA_INIT(SIZE_MAX), ARENA_INIT(MESSAGE_ARENA_LIMIT) };
	*state = &fixture;
	return 0;
}

int fixture_teardown(void **state)
{
	struct fixture *fixture = *state;
	arena_deinit(&fixture->encoded);
	arena_deinit(&fixture->decoded);
	return 0;
}

/* The message in a frame that is one. */
static const uint8_t *unframe(const uint8_t *bytes, size_t len, size_t *ret_len)
{
	const uint8_t *message = NULL;
	size_t used = 0;
	assert_int_equal(frame_find(bytes, len, MESSAGE_MAX_FRAME, &message, ret_len, &used),
			 FRAME_OK);
	assert_int_equal(used, len);
	return message;
}

const uint8_t *encode_request(struct fixture *fixture, const struct request *request,
			      size_t *ret_len)
{
	const uint8_t *bytes;
	size_t len;
	arena_reset(&fixture->encoded);
	assert_int_equal(request_encode(&fixture->encoded, request, &bytes, &len), 0);
	return unframe(bytes, len, ret_len);
}

const uint8_t *encode_reply(struct fixture *fixture, const struct reply *reply, size_t *ret_len)
{
	const uint8_t *bytes;
	size_t len;
	arena_reset(&fixture->encoded);
	assert_int_equal(reply_encode(&fixture->encoded, reply, &bytes, &len), 0);
	return unframe(bytes, len, ret_len);
}

struct request decode_request(struct fixture *fixture, const uint8_t *bytes, size_t len)
{
	struct request request = { .type = 99 };
	arena_reset(&fixture->decoded);
	assert_int_equal(request_decode(&fixture->decoded, bytes, len, &request), 0);
	return request;
}

struct reply decode_reply(struct fixture *fixture, const uint8_t *bytes, size_t len)
{
	struct reply reply = { .type = 99 };
	arena_reset(&fixture->decoded);
	assert_int_equal(reply_decode(&fixture->decoded, bytes, len, &reply), 0);
	return reply;
}

void assert_decodes_without_malloc(struct fixture *fixture, const struct request *request)
{
	size_t len;
	const uint8_t *bytes = encode_request(fixture, request, &len);
	decode_request(fixture, bytes, len);
	decode_request(fixture, bytes, len);
	size_t before = mallocs;
	assert_true(before > 0);
	for (int i = 0; i < 50; i++) {
		struct request decoded = decode_request(fixture, bytes, len);
		assert_requests_equal(&decoded, request);
	}
	assert_int_equal(mallocs, before);
}
