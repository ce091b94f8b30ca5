#pragma once
/*
 * wire: what request.c, reply-decode.c and reply-encode.c share: protobuf-c on top of an arena. Private to this room.
 *
 * The generated code comes from a copy of ration.proto in which `string` reads `bytes` (see derive.cmake): the two
 * are the same on the wire, and protobuf-c would otherwise give strings as char * and lose what follows an embedded
 * NUL.
 */
#include "proto/arena.h"
#include "proto/message.h"

#include "proto/ration.pb-c.h"

/* Decode with everything allocated from the arena. 0, -EBADMSG, -ENOMEM. */
int wire_unpack(struct arena *arena, const ProtobufCMessageDescriptor *descriptor,
		const uint8_t *bytes, size_t len, ProtobufCMessage **ret_message);

/* Encode with the length prefix before it. 0, -EMSGSIZE, -ENOMEM. */
int wire_pack(struct arena *arena, const ProtobufCMessage *message, const uint8_t **ret_bytes,
	      size_t *ret_len);

/* An array of n elements of `size` bytes each; NULL if the arena can't hold it. */
void *wire_array(struct arena *arena, size_t n, size_t size);

/*
 * n messages of `size` bytes each, to be encoded; not cleared. NULL if the arena can't hold them. protobuf-c wants a
 * pointer to each: these are made too. What follows a message in its `size` bytes is for what it points to.
 */
void *wire_messages(struct arena *arena, size_t n, size_t size, void ***ret_pointers);

static inline struct text wire_text(ProtobufCBinaryData bytes)
{
	if (bytes.len == 0) {
		return (struct text){ .at = "" };
	}
	return (struct text){ .at = (const char *)bytes.data, .len = bytes.len };
}

/* protobuf-c has no const, and writes nothing when it packs. */
static inline ProtobufCBinaryData wire_bytes(struct text text)
{
	return (ProtobufCBinaryData){ .len = text.len, .data = (uint8_t *)(uintptr_t)text.at };
}

/* Repeated strings. 0, -ENOMEM. */
int wire_texts(struct arena *arena, size_t n, const ProtobufCBinaryData *strings,
	       const struct text **ret_texts);
int wire_strings(struct arena *arena, size_t n, const struct text *texts,
		 ProtobufCBinaryData **ret_strings);

/* Metric is in both directions. The protobuf form borrows the name. */
struct metric wire_metric(const Ration__V1__Metric *metric);
void wire_set_metric(const struct metric *metric, Ration__V1__Metric *ret_metric);
