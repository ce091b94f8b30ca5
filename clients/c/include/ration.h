#ifndef RATION_H
#define RATION_H
/*
 * libration: count and ration through rationd.
 *
 *	struct ration *client = ration_open(NULL, NULL);
 *	struct ration_counter *hits = ration_counter(client, "requests/acme/web");
 *	...
 *	ration_inc(hits);                // any thread: no syscall, no lock, no allocation
 *	...
 *	ration_close(client, 1000, NULL);      // delivers what is left
 *
 * Adds are kept in the process and sent by a background thread, in numbered batches that the daemon counts once however
 * often they are sent. While the daemon is away they accumulate in one number per counter: memory is bounded by the number of
 * counters and max_unacknowledged, whatever is added. A process that ends without ration_close loses what was not sent yet.
 *
 * Threads: every function may be called from any thread. A client must not be used after ration_close has begun.
 * fork: the child starts empty with a session of its own, the parent keeps what it had; counters stay valid in both, and each
 * counts what is added in it. The child has no background thread until its first add, which starts it (and is not for a signal handler).
 * Errors: functions return 0, or a negative errno (no daemon: -ENOTCONN, time over: -ETIMEDOUT, bad argument: -EINVAL), or a
 * positive RATION_* status code answered by the daemon. ration_error() has the text.
 * Times: timeout_ms is the longest wait in milliseconds, 0 for none, negative for no limit. Looking up a host's name can take longer.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RATION_API __attribute__((visibility("default")))
#else
#define RATION_API
#endif

struct ration;
struct ration_counter;

/* Status codes on the wire: google.rpc.Code's names and numbers. */
enum ration_code {
	RATION_OK = 0,
	RATION_INVALID_ARGUMENT = 3,
	RATION_DEADLINE_EXCEEDED = 4,
	RATION_NOT_FOUND = 5,
	RATION_ALREADY_EXISTS = 6,
	RATION_PERMISSION_DENIED = 7,
	RATION_RESOURCE_EXHAUSTED = 8,
	RATION_FAILED_PRECONDITION = 9,
	RATION_ABORTED = 10,
	RATION_OUT_OF_RANGE = 11,
	RATION_UNIMPLEMENTED = 12,
	RATION_INTERNAL = 13,
	RATION_UNAVAILABLE = 14,
};

/* "NOT_FOUND" for 5; "UNKNOWN" for what is none of them. */
RATION_API const char *ration_code_name(int code);

/* ---- client ---- */

/* Something that was added and is not counted. `path` and `text` are valid during the call. */
struct ration_loss {
	int code; /* enum ration_code */
	const char *path;
	int64_t amount;
	const char *text;
};

struct ration_options {
	size_t size; /* sizeof(struct ration_options): set by RATION_OPTIONS_INIT */
	/*
	 * How long the daemon remembers the session after its connection broke; 1..86,400,000; default 60,000. What was sent and not
	 * acknowledged when it broke is counted once if the library is back within this time, else possibly twice.
	 */
	uint32_t session_lifetime_ms;
	uint32_t send_interval_ms; /* how long growth waits at most before it is sent; 1..60,000; default 50 */
	size_t max_unacknowledged; /* bytes of batches kept until acknowledged; 64 KiB..1 GiB; default 4 MiB */
	uint32_t max_counters; /* 1..2^26; default 1,000,000 */
	/*
	 * Called from the background thread, or from ration_close, for what can't be counted; one call at a time. It may add, and must not
	 * call ration_flush or ration_close of this client. NULL: silence.
	 */
	void (*on_loss)(void *ctx, const struct ration_loss *loss);
	void *ctx;
};
#define RATION_OPTIONS_INIT                                           \
	{                                                             \
		sizeof(struct ration_options), 0, 0, 0, 0, NULL, NULL \
	}

/*
 * url: "unix:PATH", "tcp:HOST:PORT" or "tcp:[ADDRESS]:PORT"; NULL: $RATIOND_SOCKET, else unix:/run/rationd/rationd.sock. options:
 * NULL or zero fields for the defaults. Returns at once, whether or not the daemon is there; NULL and errno for a bad url or option
 * (EINVAL), no memory, or no background thread (EAGAIN).
 */
RATION_API struct ration *ration_open(const char *url, const struct ration_options *options);

/*
 * Deliver what was added, waiting at most timeout_ms, and free the client with its counters (NULL: nothing happens). *ret_undelivered
 * (if not NULL): how much, in magnitude, was not acknowledged. 0, or -ETIMEDOUT if anything was not; it is also reported to on_loss,
 * as RATION_UNAVAILABLE, path by path.
 */
RATION_API int ration_close(struct ration *client, int timeout_ms, uint64_t *ret_undelivered);

/* The text of the calling thread's last failure in this library; "" if none. Valid until its next call. */
RATION_API const char *ration_error(void);

/* ---- counting ---- */

/*
 * The counter at `path`; the same one for the same path. Valid until ration_close, also before the connection is up; the daemon
 * learns of it with the first add. Keep the result: this takes a lock. NULL with errno EINVAL (certainly not a path; the daemon may
 * refuse others, see on_loss), ENOSPC (max_counters), ENOMEM.
 */
RATION_API struct ration_counter *ration_counter(struct ration *client, const char *path);

/*
 * Add n. Any thread, also from a signal handler: no syscall, no lock, no allocation, nothing to check. Amounts beyond +-2^31 take a slower,
 * locking way (not from a signal handler). What the daemon will not count (a negative add to a counter, say) is reported to on_loss; so is
 * an amount that would take what waits to be sent for one counter out of int64.
 */
RATION_API void ration_add(struct ration_counter *counter, int64_t n);
RATION_API void ration_inc(struct ration_counter *counter);

/*
 * Wait until everything added before this call, by any thread, is counted by the daemon (or reported to on_loss). 0; at the end of the
 * time -ENOTCONN if there is no connection, else -ETIMEDOUT.
 */
RATION_API int ration_flush(struct ration *client, int timeout_ms);

/* ---- reading ---- */

enum ration_consistency {
	RATION_FRESH,  /* at most the daemon's pending threshold behind; the default */
	RATION_CACHED, /* cheapest: the folded totals as they are */
	RATION_EXACT,  /* all that any client's acknowledged batches hold */
};

enum ration_kind {
	RATION_COUNTER,
	RATION_GAUGE,
};

struct ration_value {
	int code; /* enum ration_code: RATION_OK, RATION_NOT_FOUND, RATION_INVALID_ARGUMENT */
	enum ration_kind kind;
	bool leaf;
	int64_t own;   /* added at this very path */
	int64_t total; /* own + all descendants */
};

struct ration_view {
	int64_t error_bound; /* totals may lack at most this much */
	int64_t age_ms;	     /* and are at most this old */
};

/*
 * Values of n paths, in one round trip where they fit a frame. ret_values: n of them, each with a code of its own. ret_view may be NULL.
 * n 0 asks only whether the daemon answers. 0; -ENOTCONN (at once, if nobody listens), -ETIMEDOUT, or a code that concerns the whole
 * request; ret_values and ret_view are untouched then. What this client has added is seen after ration_flush.
 */
RATION_API int ration_get(struct ration *client, const char *const *paths, size_t n,
			  enum ration_consistency consistency, int timeout_ms,
			  struct ration_value *ret_values, struct ration_view *ret_view);

struct ration_entry {
	const char *path; /* terminated; valid during the call */
	uint32_t depth;	  /* 1: a metric */
	struct ration_value value;
};

/*
 * Visit a subtree, parents before children, children in no particular order. root: NULL or "" for all metrics. depth: levels below root,
 * UINT32_MAX for all. visit returns false to stop; its time does not count, and it may call any function of this client but ration_close.
 * Counters that are there during the whole walk are visited exactly once. RATION_NOT_FOUND: no such root; RATION_ABORTED: the daemon was
 * started anew meanwhile.
 */
RATION_API int ration_walk(struct ration *client, const char *root, uint32_t depth,
			   enum ration_consistency consistency, int timeout_ms,
			   bool (*visit)(void *ctx, const struct ration_entry *entry), void *ctx,
			   struct ration_view *ret_view);

/* ---- the daemon ---- */

/* Have the daemon fold everything its workers hold back. */
RATION_API int ration_fold(struct ration *client, int timeout_ms);

/* The daemon's version and its self metrics, one call of `item` each. Strings are valid during that call. */
struct ration_status_item {
	const char *name;
	const char *text; /* NULL: a number */
	int64_t number;
	const char *help;
};
RATION_API int ration_status(struct ration *client, int timeout_ms,
			     void (*item)(void *ctx, const struct ration_status_item *item),
			     void *ctx);

struct ration_metric {
	size_t size; /* sizeof(struct ration_metric): set by RATION_METRIC_INIT */
	enum ration_kind kind;
	uint32_t max_counters;	  /* ceiling under this metric; 0: none but the daemon's */
	bool overflow;		  /* past it: count under <parent>/__other__ instead of refusing */
	uint64_t expire_after_ms; /* idle leaves are removed after this; 0: never */
};
#define RATION_METRIC_INIT                                                \
	{                                                                 \
		sizeof(struct ration_metric), RATION_COUNTER, 0, false, 0 \
	}

/*
 * Declare a metric or change it (ration_metric_set), or read what it is (ration_metric_get; RATION_NOT_FOUND). ret_metric begins with
 * RATION_METRIC_INIT.
 */
RATION_API int ration_metric_set(struct ration *client, const char *name,
				 const struct ration_metric *metric, int timeout_ms);
RATION_API int ration_metric_get(struct ration *client, const char *name, int timeout_ms,
				 struct ration_metric *ret_metric);

/* This library's version, "0.1.0". */
RATION_API const char *ration_version(void);

#ifdef __cplusplus
}
#endif
#endif
