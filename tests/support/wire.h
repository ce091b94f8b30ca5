#pragma once
/*
 * wire: a client of raw frames, for tests: it sends what it is told, right or wrong.
 *
 * Everything blocks; every wait for the daemon ends with a failed assertion after WIRE_PATIENCE_MS.
 */
#include "proto/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_PATIENCE_MS 30000

struct wire {
	int fd;
	uint64_t next_id;
	uint8_t *bytes; /* received and not yet used up */
	size_t len, size;
	size_t used; /* of the reply handed out last */
	bool mortal; /* the daemon may be killed: its end in the middle of a frame is none of its faults */
	struct durable durable; /* what the last Durable said: they are taken in silence */
	struct arena in, out;
};

/* Connect to a unix socket. */
struct wire *wire_open(const char *path);
/* To a port of 127.0.0.1 or ::1. */
struct wire *wire_open_tcp(int family, unsigned port);
/* Around a connected socket. */
struct wire *wire_new(int fd);
/* Closes. Takes NULL, returns NULL. */
struct wire *wire_free(struct wire *wire);

/* All of these bytes, as they are. False: the daemon has closed. */
bool wire_send_bytes(struct wire *wire, const void *bytes, size_t len);
/* An id of 0 gets the next one, which is returned. */
uint64_t wire_send(struct wire *wire, const struct request *request);
/* The bytes of a frame; free them. */
uint8_t *wire_encode(struct wire *wire, const struct request *request, size_t *ret_len);
/* Say that nothing follows. */
void wire_shutdown(struct wire *wire);

/* The next reply that is no Durable; valid until the next call. False: the daemon has closed. */
bool wire_receive(struct wire *wire, struct reply *ret_reply);
/* Wait for Durables until one says so much, or more. */
void wire_await_durable(struct wire *wire, uint64_t batch, uint64_t operation);
/* Flush { durable }: all that was applied is in the state file. */
void wire_flush_durable(struct wire *wire);
/* True if something comes within the time. */
bool wire_poll(struct wire *wire, int timeout_ms);
/* Send, and receive the one reply that must have the same id. */
struct reply wire_call(struct wire *wire, const struct request *request);

/* ---- requests in one line; asserting that they are answered as they should be ---- */

/* With the session that consists of 16 times this byte; 0: none. Returns the Welcome's last_batch; *ret_resumed may be NULL. */
uint64_t wire_hello(struct wire *wire, uint8_t session, uint32_t lifetime_ms, uint64_t next_batch,
		    bool *ret_resumed);
void wire_intern(struct wire *wire, uint32_t handle, const char *path);
/* One entry; all of it must be applied. Returns whether it was a duplicate. */
bool wire_add(struct wire *wire, uint64_t batch, uint32_t handle, int64_t delta);
/* Is there such a counter? */
bool wire_exists(struct wire *wire, const char *path);
int64_t wire_total(struct wire *wire, const char *path, enum consistency consistency);
/* A number of Status. */
int64_t wire_status(struct wire *wire, const char *name);

/* The next reply must be a Goodbye with this code, and then the daemon closes. */
void wire_expect_goodbye(struct wire *wire, enum code code);
/* The next reply must be an Error with this code and this in its text. */
void wire_expect_error(struct wire *wire, enum code code, const char *text);
void wire_expect_closed(struct wire *wire);

/* ---- parts ---- */

bool wire_text_is(struct text text, const char *string);
bool wire_text_has(struct text text, const char *part);
struct request wire_hello_request(uint8_t session, uint32_t lifetime_ms, uint64_t next_batch);
struct request wire_add_request(uint64_t batch, const uint32_t *handles, const int64_t *deltas,
				size_t n);
