#pragma once
/*
 * call: questions that are answered at once, on the caller's thread, over a connection of their own that carries no session.
 *
 * One question at a time; others wait their turn within their deadlines. The connection is opened by the first and kept. All
 * questions may be asked twice without harm, so one that meets a broken connection is asked again on a new one, once.
 *
 * Threads: any.
 */
#include "clients/c/dial.h"
#include "proto/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;

enum call_more {
	CALL_DONE = 0,
	CALL_MORE, /* another reply to the same request follows */
};

/* What to do with the replies to a request, in the thread that asks, while it has the turn. */
struct call_sink {
	/* The question is asked (again): forget what came. May be NULL. */
	void (*begin)(void *ctx);
	/* One reply, not an error. `message` is what it was decoded from. CALL_*, or a negative errno: -EBADMSG if it does not fit. */
	int (*take)(void *ctx, const struct reply *reply, const uint8_t *message, size_t len);
	void *ctx;
};

/* `address` must outlive it. 0 or a negative errno. */
int call_new(const struct dial_address *address, struct call **ret_call);
struct call *call_free(struct call *call);

/*
 * Ask, and see the replies. 0; -ENOTCONN, -ETIMEDOUT or another negative errno; or the code of the daemon's error. The error text is
 * set in all but the first case. request->id is set here.
 */
int call_ask(struct call *call, struct request *request, int64_t deadline,
	     const struct call_sink *sink);

/* Be connected, and say what the daemon takes and which start of the daemon this is (16 bytes). Returns as call_ask. */
int call_connect(struct call *call, int64_t deadline, struct limits *ret_limits,
		 uint8_t *ret_incarnation);

/* Begin a connection with this Hello, and end it. Returns as call_ask. */
int call_hello(struct call *call, const struct hello *hello, int64_t deadline);

/* ---- for fork.c ---- */

/* Hold off the beginning and the end of turns; a turn under way goes on. */
void call_lock(struct call *call);
void call_unlock(struct call *call);
/* In the child, locked: no connection, and nobody has the turn. */
void call_forget(struct call *call);
