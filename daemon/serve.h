#pragma once
/*
 * serve: what the daemon does for each request. One serve-*.c per group of requests; serve.c tells them apart.
 */
#include "proto/message.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct connection;
struct reload_job;
struct worker;

enum serve_error {
	SERVE_OK = 0,
	SERVE_E_MOVE, /* this connection belongs to another worker: keep the request and hand it over */
	SERVE_E_LATER, /* it is not its turn: keep the request and come again */
};

/*
 * Answer one request. SERVE_OK: answered, or the connection is ending. SERVE_E_MOVE: *ret_worker is whose it is; nothing
 * was done. SERVE_E_LATER: nothing was done.
 */
int serve(struct connection *connection, const struct request *request, unsigned *ret_worker);

/* Send pages of the connection's walks, in turn, while the socket takes them; at most so many. */
void serve_walks(struct connection *connection, unsigned max_pages);
/* Give up all walks, without a word. */
void serve_walks_drop(struct connection *connection);

/* So many paths in one turn of a worker's loop, or a few more: a millisecond or two for most. */
#define SERVE_TURN 256u

/*
 * A request that takes long is done some at a time, one in each turn, and its connection takes no other request until then. A worker has one
 * such job at most, with what the request was decoded to; whoever comes with another one meanwhile keeps its frame and comes again
 * (SERVE_E_LATER). So what they cost in memory has a bound, and short ones of others pass between.
 */
struct serve_job {
	struct connection *connection;
	uint64_t id;
	struct arena in,
		out; /* the request; what lasts until it is answered: the worker's `out` during more() */
	bool (*more)(struct serve_job *job); /* some more of it; true: it is done, and was answered */
};

/*
 * Begin `job`, which is freed at its end, also an early one. It takes the arena that the request was decoded into from the worker, which gets
 * a new one. There must be no other.
 */
void serve_job_begin(struct connection *connection, struct serve_job *job);
/* Whose is under way; NULL: nobody's. */
struct connection *serve_job_connection(const struct worker *worker);
void serve_job_more(struct worker *worker);
/* The connection's is given up, without a word. */
void serve_job_drop(struct connection *connection);

/* Charges of the worker's connections that may have room now try for it. */
void serve_waits(struct worker *worker);
/* Those of the connection wait no longer, without a word; it has its session still. */
void serve_waits_drop(struct connection *connection);

/* The worker's leases whose time is over are counted, and the timer set for the next one. */
void serve_lease_tick(struct worker *worker);

/* Answer the reload that was asked for, now that it was done. Frees. */
void serve_reloaded(struct reload_job *job);
/* The connection waits for no answer to one any more. */
void serve_reload_drop(struct connection *connection);

/* ---- between the serve-*.c ---- */

int serve_hello(struct connection *connection, const struct request *request, unsigned *ret_worker);
void serve_unwelcome(struct connection *connection, uint64_t id, enum code code, const char *text);
void serve_end(struct connection *connection, const struct request *request);
int serve_intern(struct connection *connection, const struct request *request);
void serve_add(struct connection *connection, const struct request *request);
void serve_get(struct connection *connection, const struct request *request);
void serve_walk(struct connection *connection, const struct request *request);
void serve_flush(struct connection *connection, const struct request *request);
void serve_status(struct connection *connection, const struct request *request);
void serve_metric_set(struct connection *connection, const struct request *request);
void serve_metric_get(struct connection *connection, const struct request *request);
void serve_metric_list(struct connection *connection, const struct request *request);
int serve_reset(struct connection *connection, const struct request *request);
int serve_import(struct connection *connection, const struct request *request);
void serve_reload(struct connection *connection, const struct request *request);
void serve_charge(struct connection *connection, const struct request *request);
int serve_uncharge(struct connection *connection, const struct request *request);
void serve_lease(struct connection *connection, const struct request *request);
void serve_lease_renew(struct connection *connection, const struct request *request);
void serve_lease_return(struct connection *connection, const struct request *request);
void serve_quota_set(struct connection *connection, const struct request *request);
void serve_quota_remove(struct connection *connection, const struct request *request);
void serve_quota_list(struct connection *connection, const struct request *request);
void serve_quota_explain(struct connection *connection, const struct request *request);

/* The request failed as a whole and changed nothing. */
void serve_error(struct connection *connection, uint64_t id, enum code code, const char *format,
		 ...) __attribute__((format(printf, 4, 5)));

#define SERVE_MAX_TEXT 512u

/* The reply to a request that failed as a whole, and the text that it refers to. */
struct serve_fault {
	struct reply reply;
	char text[SERVE_MAX_TEXT];
};

/* Fill it in, and count the request as failed. Returns the reply, for the caller to send. */
struct reply *serve_fault(struct connection *connection, uint64_t id, enum code code,
			  const char *format, va_list args, struct serve_fault *ret_fault)
	__attribute__((format(printf, 4, 0)));

/* Make `text` valid UTF-8, in place: what is not becomes question marks, and what was cut off at the end is left out. Returns it. */
const char *serve_clean(char *text);

/* True if the connection has a session; else it was answered. */
bool serve_check_session(struct connection *connection, uint64_t id);
/* True if a list of n is within max_items; else it was answered. `what`: "paths". */
bool serve_check_items(struct connection *connection, uint64_t id, size_t n, const char *what);

/* What an engine's answer means to a client; the text is static and may be shown to anyone. */
enum code serve_engine_code(int r);
/* For ENGINE_E_PATH the path says what is wrong with it. */
const char *serve_engine_text(int r, struct text path);

/*
 * A growing list of item errors in the worker's arena. Only the first SERVE_MAX_TEXTS have a text, so that a list of any allowed
 * length fits a frame.
 */
#define SERVE_MAX_TEXTS 1024u

struct serve_errors {
	struct item_error *items;
	size_t n, size;
};

void serve_errors_add(struct connection *connection, struct serve_errors *errors, size_t index,
		      enum code code, const char *text);
