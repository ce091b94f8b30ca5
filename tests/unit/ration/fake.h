#pragma once
/*
 * fake: the daemon's side of a connection, as a script in the test's own thread: take a request, look at it, answer what the test is about.
 *
 * Everything waits at most FAKE_WAIT_MS and then fails the test.
 */
#include "proto/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_WAIT_MS 30000
#define FAKE_SHORT_MS \
	1000 /* a time that is to run out, but not before the daemon's side has seen what was sent */

struct fake {
	int listener;
	char path[100];
	char url[108];
};

/* One accepted connection. */
struct fake_peer {
	int fd;
	uint8_t *bytes;
	size_t at, end, size;
	struct arena arena; /* of the request taken last */
	struct arena out;

	/* For the Welcome; to be set before it. */
	uint64_t last_operation; /* of a session that is resumed or restored */
	bool keeps, restored;
	uint64_t durable_batch, durable_operation;
	const char *incarnation; /* 16 characters; NULL: the same as ever */
};

/* Listen on a socket in `dir`, anew after fake_close too. */
void fake_listen(struct fake *fake, const char *dir);
void fake_close(struct fake *fake);

void fake_accept(struct fake *fake, struct fake_peer *peer);
/* Does anybody connect within so many milliseconds? */
bool fake_is_called(struct fake *fake, int ms);
void fake_hang_up(struct fake_peer *peer);
/*
 * Accept, as a daemon that has forgotten the session, and as `keeps` says has a state file; and again, when the client begins another session
 * instead. ret_hello (or NULL) is the last one's.
 */
void fake_accept_anew(struct fake *fake, struct fake_peer *peer, bool keeps, uint64_t last_batch,
		      const struct limits *limits, struct hello *ret_hello);

#define FAKE_ANY REQUEST_NONE

/* The next request, which must be of that type (or FAKE_ANY); valid until the next one. */
void fake_take(struct fake_peer *peer, enum request_type type, struct request *ret_request);
/* Has everything been taken, and does nothing come for so many milliseconds? */
bool fake_is_silent(struct fake_peer *peer, int ms);
void fake_expect_silence(struct fake_peer *peer, int ms);
/* The client closes; what it still sends is skipped. */
void fake_expect_end(struct fake_peer *peer);

void fake_send(struct fake_peer *peer, const struct reply *reply);
void fake_send_bytes(struct fake_peer *peer, const void *bytes, size_t len);

/* ---- the usual ---- */

extern const struct limits FAKE_LIMITS;

/* Take a Hello and welcome it; ret_hello may be NULL. */
void fake_welcome(struct fake_peer *peer, bool resumed, uint64_t last_batch,
		  const struct limits *limits, struct hello *ret_hello);
void fake_interned(struct fake_peer *peer, uint64_t id);
void fake_applied(struct fake_peer *peer, const struct request *add);
/* Applied, with one entry not counted. */
void fake_item_error(struct fake_peer *peer, uint64_t id, uint64_t batch, uint32_t index,
		     enum code code, const char *text);
void fake_error(struct fake_peer *peer, uint64_t id, enum code code, const char *text);
void fake_goodbye(struct fake_peer *peer, enum code code, const char *text);
void fake_durable(struct fake_peer *peer, uint64_t batch, uint64_t operation);
/* Take a Flush that is to be durable; returns its id. */
uint64_t fake_take_flush(struct fake_peer *peer);
void fake_flushed(struct fake_peer *peer, uint64_t id);
