#pragma once
/*
 * link: a blocking connection to a server, of raw frames to rationd or of RESP to redis. What goes wrong ends the benchmark.
 */
#include "proto/message.h"
#include "tests/bench/server.h"

#include <stddef.h>
#include <stdint.h>

struct link {
	int fd;
	uint8_t *bytes; /* received; off..len are not used yet */
	size_t off, len, size;
	struct arena in, out;
};

void link_open(struct link *link, const struct server *server);
void link_close(struct link *link);

void link_send(struct link *link, const void *bytes, size_t len);
/* One read. */
void link_fill(struct link *link);

/* ---- rationd ---- */

/* Say Hello with the session that is all this byte (0: none), whose first batch will be next_batch. */
void link_hello(struct link *link, uint8_t session, uint64_t next_batch);
/* The same, and whose first operation will be next_operation. */
void link_hello_at(struct link *link, uint8_t session, uint64_t next_batch,
		   uint64_t next_operation);
/* The next reply that is no Durable; valid until the next call. Any Error or Goodbye ends the benchmark. */
void link_receive(struct link *link, struct reply *ret_reply);
/* Bytes of a frame; valid until the next call. */
const uint8_t *link_encode(struct link *link, const struct request *request, size_t *ret_len);
void link_request(struct link *link, const struct request *request);
/* Receive n Applied replies; no entry may have been refused. */
void link_applied(struct link *link, size_t n);
/* Give handles 0 .. n - 1 to paths of len bytes each, in requests of many, without waiting for each. */
void link_intern(struct link *link, const char *paths, size_t stride, size_t len, uint32_t n);
/* The exact total of a path. */
int64_t link_total(struct link *link, struct text path);
/* The usage of a path that has one limit, without a window. */
int64_t link_usage(struct link *link, struct text path);

/* ---- redis ---- */

/* Receive n replies to INCRBY. */
void link_redis_numbers(struct link *link, size_t n);
/* Receive a text. */
void link_redis_text(struct link *link, char *ret_text, size_t room);
/* The value of a key as redis has it. */
int64_t link_redis_get(struct link *link, struct text key);
/* Write a command of n words to `out`, which has room; returns its length. */
size_t link_redis_command(uint8_t *out, size_t room, const struct text *words, size_t n);
