#include "proto/wire.h"

#include <assert.h>
#include <errno.h>

#include "proto/frame.h"

static_assert(MESSAGE_MAX_FRAME <= FRAME_MAX_LENGTH,
	      "a frame's prefix can say the length of the largest message");

/* What protobuf-c allocates through. To it a failed allocation and a bad message are the same: this remembers which. */
struct wire_allocator {
	struct arena *arena;
	bool failed;
};

static void *wire_alloc(void *data, size_t size)
{
	struct wire_allocator *allocator = data;
	void *at = arena_alloc(allocator->arena, size);
	if (!at) {
		allocator->failed = true;
	}
	return at;
}

static void wire_free(void *data, void *at)
{
	(void)data;
	(void)at; /* the arena's reset takes it back */
}

int wire_unpack(struct arena *arena, const ProtobufCMessageDescriptor *descriptor,
		const uint8_t *bytes, size_t len, ProtobufCMessage **ret_message)
{
	struct wire_allocator state = { .arena = arena };
	ProtobufCAllocator allocator = { .alloc = wire_alloc,
					 .free = wire_free,
					 .allocator_data = &state };
	ProtobufCMessage *message = protobuf_c_message_unpack(descriptor, &allocator, len, bytes);
	if (!message) {
		return state.failed ? -ENOMEM : -EBADMSG;
	}
	*ret_message = message;
	return 0;
}

int wire_pack(struct arena *arena, const ProtobufCMessage *message, const uint8_t **ret_bytes,
	      size_t *ret_len)
{
	size_t len = protobuf_c_message_get_packed_size(message);
	if (len > MESSAGE_MAX_FRAME) {
		return -EMSGSIZE;
	}
	uint8_t *out = arena_alloc(arena, FRAME_MAX_PREFIX + len);
	if (!out) {
		return -ENOMEM;
	}
	size_t prefix = frame_prefix(len, out);
	protobuf_c_message_pack(message, out + prefix);
	*ret_bytes = out;
	*ret_len = prefix + len;
	return 0;
}

void *wire_array(struct arena *arena, size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes)) {
		return NULL;
	}
	return arena_alloc(arena, bytes);
}

void *wire_messages(struct arena *arena, size_t n, size_t size, void ***ret_pointers)
{
	char *messages = wire_array(arena, n, size);
	void **pointers = wire_array(arena, n, sizeof(*pointers));
	if (!messages || !pointers) {
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		pointers[i] = messages + i * size;
	}
	*ret_pointers = pointers;
	return messages;
}

int wire_texts(struct arena *arena, size_t n, const ProtobufCBinaryData *strings,
	       const struct text **ret_texts)
{
	struct text *texts = wire_array(arena, n, sizeof(*texts));
	if (!texts) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		texts[i] = wire_text(strings[i]);
	}
	*ret_texts = texts;
	return 0;
}

int wire_strings(struct arena *arena, size_t n, const struct text *texts,
		 ProtobufCBinaryData **ret_strings)
{
	ProtobufCBinaryData *strings = wire_array(arena, n, sizeof(*strings));
	if (!strings) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		strings[i] = wire_bytes(texts[i]);
	}
	*ret_strings = strings;
	return 0;
}

struct metric wire_metric(const Ration__V1__Metric *metric)
{
	return (struct metric){
		.name = wire_text(metric->name),
		.kind = (enum kind)metric->kind,
		.max_counters = metric->max_counters,
		.overflow = metric->overflow,
		.expire_after_ms = metric->expire_after_ms,
	};
}

void wire_set_metric(const struct metric *metric, Ration__V1__Metric *ret_metric)
{
	ration__v1__metric__init(ret_metric);
	ret_metric->name = wire_bytes(metric->name);
	ret_metric->kind = (Ration__V1__Kind)metric->kind;
	ret_metric->max_counters = metric->max_counters;
	ret_metric->overflow = metric->overflow;
	ret_metric->expire_after_ms = metric->expire_after_ms;
}
