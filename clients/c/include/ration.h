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
 * A daemon with a state file can be killed at any time, and its machine lose power: what it has counted, granted and leased and not written
 * yet the library keeps, and tells it again when it is back, so that everything has happened once. See rationd-delivery(7).
 *
 * Threads: every function may be called from any thread. A client must not be used after ration_close has begun.
 * fork: the child starts empty with a session of its own, the parent keeps what it had; counters stay valid in both, and each
 * counts what is added in it. The child has no background thread until its first add, which starts it (and is not for a signal handler).
 * Errors: functions return 0, or a negative errno (no daemon: -ENOTCONN, time over: -ETIMEDOUT, bad argument: -EINVAL), or a
 * positive RATION_* status code answered by the daemon. ration_error() has the text.
 * Language: C99 and later, C++11 and later; nothing beyond the standard.
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
	RATION_UNAVAILABLE = 14
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
	 * How long the daemon remembers the session after its connection broke, or (a minute at least) after it was started anew;
	 * 0..86,400,000; RATION_OPTIONS_INIT says 60,000. What was sent and not acknowledged when it broke is counted once if the library is back
	 * within this time, else possibly twice; what was charged on gauges is held for so long. 0: the session ends with its connection, which suits a command: what it
	 * holds is given back the moment it ends, however it does. Leases need 1,000 or more.
	 */
	uint32_t session_lifetime_ms;
	uint32_t send_interval_ms; /* how long growth waits at most before it is sent; 1..60,000; default 50 */
	/*
	 * Memory for batches that are kept, and as much again for answered charges; 64 KiB..1 GiB; default 4 MiB. Batches are kept until they are
	 * acknowledged or, if the daemon has a state file, durable, which takes it a fraction of a second. If it takes longer (a disk that is full,
	 * say) the library asks for it when half of this is in use. With all of it in use nothing more is sent: what is added is
	 * merged in the process, and counted when the daemon's file can be written again. Charges go on: after a second, or
	 * when the daemon says that it can't write, those answered longest ago are let go, and would be lost if it were killed then.
	 */
	size_t max_unacknowledged;
	uint32_t max_counters; /* 1..2^26; default 1,000,000 */
	/*
	 * Called from the background thread, or from ration_close, for what can't be counted; one call at a time. It may add, and must not
	 * call ration_flush or ration_close of this client. NULL: silence.
	 */
	void (*on_loss)(void *ctx, const struct ration_loss *loss);
	void *ctx;
};
#define RATION_OPTIONS_INIT                                               \
	{                                                                 \
		sizeof(struct ration_options), 60000, 0, 0, 0, NULL, NULL \
	}

/*
 * url: "unix:PATH", "tcp:HOST:PORT" or "tcp:[ADDRESS]:PORT"; NULL: $RATIOND_SOCKET, else unix:/run/rationd/rationd.sock. options:
 * NULL or those of RATION_OPTIONS_INIT for the defaults; so does a field of 0, but for session_lifetime_ms. Returns at once, whether or not the daemon is there; NULL and errno for a bad url or option
 * (EINVAL), no memory, or no background thread (EAGAIN).
 */
RATION_API struct ration *ration_open(const char *url, const struct ration_options *options);

/*
 * Deliver what was added, waiting at most timeout_ms, and free the client with its counters (NULL: nothing happens). *ret_undelivered
 * (if not NULL): how much, in magnitude, was not acknowledged, spent units of leases on counters included. 0, or -ETIMEDOUT if
 * anything was not; it is also reported to on_loss, as RATION_UNAVAILABLE, path by path. What was acknowledged is lost if the daemon is
 * killed in the fraction of a second that it takes to write it, since nobody is there to tell it again: who can't have that calls
 * ration_flush_durable first. If everything was, the daemon is told that the session is over, within the same time and at most a second: it
 * need not remember it for its lifetime, and what it still holds is given back.
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
 * an amount that would take what waits to be sent for one counter out of int64. Amounts for one counter are merged until they are
 * sent: of a negative one that is made up for by then nobody knows, and it is the sum alone that a counter which only grows refuses.
 */
RATION_API void ration_add(struct ration_counter *counter, int64_t n);
RATION_API void ration_inc(struct ration_counter *counter);

/*
 * Wait until everything added before this call, by any thread, is counted by the daemon (or reported to on_loss). 0; at the end of the
 * time -ENOTCONN if there is no connection, else -ETIMEDOUT. Without a connection what is counted and not durable is waited for as well: the daemon
 * may have been killed.
 */
RATION_API int ration_flush(struct ration *client, int timeout_ms);

/*
 * As ration_flush, and wait until all that is in the daemon's state file, with every charge that was answered before and all that was
 * set: so it stays, whatever becomes of the daemon, its machine or this process. Calls at the same time, of whichever clients, share a write to the
 * disk. RATION_FAILED_PRECONDITION: the daemon has no state file; RATION_UNAVAILABLE: it can't write it, ration_error() says why, and all goes
 * on in its memory.
 */
RATION_API int ration_flush_durable(struct ration *client, int timeout_ms);

/* ---- reading ---- */

enum ration_consistency {
	RATION_FRESH,  /* at most the daemon's pending threshold behind; the default */
	RATION_CACHED, /* cheapest: what has been folded, as it is */
	RATION_EXACT   /* all that any client's acknowledged batches hold */
};

enum ration_kind {
	RATION_COUNTER,
	RATION_GAUGE
};

struct ration_value {
	int code; /* enum ration_code: RATION_OK, RATION_NOT_FOUND, RATION_INVALID_ARGUMENT */
	enum ration_kind kind;
	bool leaf;
	int64_t own;   /* added at this very path */
	int64_t total; /* own + all descendants */
};

struct ration_view {
	int64_t error_bound; /* own and total may lack at most this much */
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

/* Something the daemon found in its configuration. `text` is valid during the call. */
struct ration_finding {
	bool error; /* the configuration was not taken because of this; else something to know */
	const char *text;
};

/*
 * Have the daemon read its configuration again, and wait until that is done: 0 if all of it is in force, RATION_INVALID_ARGUMENT if it has
 * errors and all is as it was. `finding` (or NULL) is called for each thing found, errors first, in either case. Who may not order this
 * is answered RATION_PERMISSION_DENIED.
 */
RATION_API int ration_reload(struct ration *client, int timeout_ms,
			     void (*finding)(void *ctx, const struct ration_finding *finding),
			     void *ctx);

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
/* All that are declared or counted, by name. `metric` may call any function of this client but ration_close; what it is given is valid during the call. */
RATION_API int ration_metric_list(struct ration *client, int timeout_ms,
				  void (*metric)(void *ctx, const char *name,
						 const struct ration_metric *metric),
				  void *ctx);

/* ---- setting what was counted ---- */

/*
 * Set own values to 0, of path and of all counters below it: totals of its ancestors fall by as much, and usage of limits without a window
 * does. Counters stay, and so do windows, limits and what is held. *ret_counters (may be NULL): how many were looked at. RATION_NOT_FOUND;
 * RATION_PERMISSION_DENIED. -ETIMEDOUT: it may go on.
 */
RATION_API int ration_reset(struct ration *client, const char *path, int timeout_ms,
			    uint64_t *ret_counters);

/* What a counter has itself, as ration_walk tells it: without its descendants. */
struct ration_own {
	const char *path;
	int64_t own;
};

/*
 * Set n own values, each at one moment; what is added at the same time is added to it. Counters that don't exist are made. `failed` (may be
 * NULL) is called for each that was not set, with its index in `owns`, a code (enum ration_code) and a text that is valid during the call and may be "".
 * 0 also if some were not set. RATION_PERMISSION_DENIED. After -ENOTCONN or -ETIMEDOUT some may be set: it can be repeated.
 */
RATION_API int ration_import(struct ration *client, const struct ration_own *owns, size_t n,
			     int timeout_ms,
			     void (*failed)(void *ctx, size_t index, int code, const char *text),
			     void *ctx);

/* ---- quotas: charges ---- */

/*
 * The stretch of time that a limit counts in. RATION_NO_WINDOW: for ever: all that a counter ever counted, what a gauge has now.
 */
enum ration_window_kind {
	RATION_NO_WINDOW,
	RATION_PER, /* duration_ms, again and again, aligned to the epoch (UTC); 1 s to 31 days */
	RATION_CALENDAR, /* a unit, in UTC */
	RATION_RATE	 /* no stretch but a steady rate */
};

enum ration_window_unit {
	RATION_DAY,
	RATION_WEEK, /* begins on Monday */
	RATION_MONTH
};

struct ration_window {
	enum ration_window_kind kind;
	enum ration_window_unit unit; /* RATION_CALENDAR */
	uint64_t duration_ms;	      /* RATION_PER */
};

/* "" (none), "per 1m", "calendar day" or "rate" into `text`, terminated, cut off if it must be; RATION_WINDOW_TEXT bytes hold all. Returns text. */
#define RATION_WINDOW_TEXT 40
RATION_API const char *ration_window_text(const struct ration_window *window, char *text,
					  size_t size);

enum ration_binding_kind {
	RATION_BINDS_MAX,   /* refuses */
	RATION_BINDS_RATE,  /* refuses */
	RATION_OVER_HIGH,   /* granted, and over its high now */
	RATION_WOULD_REFUSE /* a shadow limit: it would have refused */
};

/* An ancestor (or the path itself) that has something to say to a charge. */
struct ration_binding {
	enum ration_binding_kind kind;
	const char *path;
	struct ration_window window;
	int64_t limit;		/* max, burst or high */
	int64_t usage;		/* of a grant: with it */
	int64_t left;		/* what would still fit */
	int64_t retry_after_ms; /* when it may fit: 0: at any moment, -1: never */
};

/* Freed by ration_charge_result_free. */
struct ration_charge_result {
	bool granted;
	size_t n_bindings;
	const struct ration_binding *bindings;
	uint32_t n_omitted; /* bindings not listed */
};

struct ration_charge_item {
	const char *path;
	int64_t amount; /* 1..2^62 */
};

struct ration_charge_options {
	size_t size;  /* sizeof(struct ration_charge_options): set by RATION_CHARGE_OPTIONS_INIT */
	bool dry_run; /* only say what would be answered; change nothing */
	bool detached; /* of a gauge: held by nobody until a detached uncharge, not by this session */
	uint32_t wait_ms; /* if it is refused now and could ever fit: wait so long for room, first come first served; UINT32_MAX: as long as
			     the daemon lets anybody wait, a day */
};
#define RATION_CHARGE_OPTIONS_INIT                                    \
	{                                                             \
		sizeof(struct ration_charge_options), false, false, 0 \
	}

/*
 * Charge all items or none. 0: granted. RATION_RESOURCE_EXHAUSTED: refused, and *ret_result says by what. All else is an error,
 * nothing stays charged, and *ret_result is NULL: -ENOTCONN (at once, if nobody listens), -ETIMEDOUT; RATION_NOT_FOUND: of a metric that
 * nobody declared, counted or limited; RATION_INVALID_ARGUMENT: an amount, a path, or more than 10,000 items; and, with *ret_result NULL,
 * RATION_RESOURCE_EXHAUSTED: no more counters, or more than 64 charges that wait. options: NULL for the defaults. ret_result may be NULL.
 *
 * timeout_ms is for the daemon's answer; wait_ms comes on top of it. A charge is done once however often it must be sent. If the time is
 * over before its outcome is known, the library sees to it in the background that nothing stays charged, as soon as it hears of it;
 * but what was granted by then on counters stays counted, since nothing is given back there. While one charge waits for room, at most
 * 1,023 more are sent; further ones wait for it.
 *
 * What is granted on gauges belongs to the client's session: it goes back by ration_uncharge, by ration_close, or when the process has
 * ended and session_lifetime_ms is over. It is gone when the connection was lost for longer than that, or when a daemon without a state file
 * was started anew, or another process has taken the session over (a copy of this one). A child after fork holds nothing.
 *
 * A charge that was granted stays granted if the daemon is killed before it could write it: it is charged again when this client is
 * back, even if others were given the room meanwhile. Then usage is above max by that much until it falls.
 */
RATION_API int ration_charge(struct ration *client, const struct ration_charge_item *items,
			     size_t n, const struct ration_charge_options *options, int timeout_ms,
			     struct ration_charge_result **ret_result);
/* NULL is fine. */
RATION_API void ration_charge_result_free(struct ration_charge_result *result);

/*
 * Give back n of what is charged on a gauge: by this client, or by anybody's detached charges. RATION_FAILED_PRECONDITION: not so much is
 * held there, or not a gauge; nothing was changed then. -ENOTCONN: it was not sent, nothing was done. -ECANCELED: the daemon
 * has forgotten the session, and what it held. -ETIMEDOUT: it will be done, once, when the daemon goes on.
 */
RATION_API int ration_uncharge(struct ration *client, const char *path, int64_t n, bool detached,
			       int timeout_ms);

/* ---- quotas: leases ---- */

/*
 * A lease is a stock of units that are charged on the whole path already, to be spent without asking the daemon for each. The
 * library's thread keeps it filled: it asks for more when less than a part of it is left, and renews it in time.
 */
struct ration_lease;

struct ration_lease_options {
	size_t size; /* sizeof(struct ration_lease_options): set by RATION_LEASE_OPTIONS_INIT */
	int64_t low_water; /* fill up when less is left; 0: half of `want` */
};
#define RATION_LEASE_OPTIONS_INIT                      \
	{                                              \
		sizeof(struct ration_lease_options), 0 \
	}

/* What ration_try answers when the lease has no units that may be spent. */
enum ration_fallback {
	RATION_CLOSED, /* no */
	RATION_OPEN, /* yes, if there is no daemon to ask: it does not answer, and the lease has expired or never had units. No, if it has
			      refused more units. What is granted so is told to it as adds once it is back, if it is a counter */
	RATION_LAST_LEASE /* go on with the units of an expired lease, to the last */
};

/*
 * Open a lease of up to `want` units (1..2^62) on path. Returns at once; the first units come when the daemon has answered, see
 * ration_lease_wait. ttl_ms: how long units may be spent without hearing from the daemon, 1,000..3,600,000; no more than
 * session_lifetime_ms. options: NULL for the defaults. NULL with errno EINVAL (certainly not a path; out of range; a client whose
 * session_lifetime_ms is less than 1,000), ENOSPC (1,000 leases), ENOMEM. A lease must be closed before its client is.
 */
RATION_API struct ration_lease *ration_lease_open(struct ration *client, const char *path,
						  int64_t want, uint32_t ttl_ms,
						  const struct ration_lease_options *options);

/* Wait until it has a unit. 0; RATION_RESOURCE_EXHAUSTED: refused; another code; -ENOTCONN, -ETIMEDOUT. */
RATION_API int ration_lease_wait(struct ration_lease *lease, int timeout_ms);

/*
 * Spend n units (1 or more), or not. Decided here and now: no syscall, no lock, no allocation, any thread, while the lease has units. Never
 * are more spent than the daemon gave, but by the fallback. A program that was stopped (by a signal, with its machine) while its lease
 * expired may spend up to 16 of these units late: the clock is looked at every 16th time.
 */
RATION_API bool ration_try(struct ration_lease *lease, int64_t n, enum ration_fallback fallback);

/*
 * Give n spent units back: for a gauge, when what they stood for has ended. They can be spent again at once; what is above `want` goes back
 * to the daemon. Of units that were not spent nothing is taken. On a counter: only what was not used after all.
 */
RATION_API void ration_give(struct ration_lease *lease, int64_t n);

struct ration_lease_info {
	size_t size;	       /* sizeof(struct ration_lease_info): set by RATION_LEASE_INFO_INIT */
	int64_t left;	       /* units that can be spent */
	int64_t spent;	       /* units spent since it was opened, those given back taken off */
	int64_t opened;	       /* of which so many were granted by RATION_OPEN alone */
	int64_t expires_in_ms; /* 0: it has expired, or never had units */
	int code; /* of the daemon's last answer: RATION_OK, RATION_RESOURCE_EXHAUSTED, ...; -ENOTCONN: there was none yet */
};
#define RATION_LEASE_INFO_INIT                                  \
	{                                                       \
		sizeof(struct ration_lease_info), 0, 0, 0, 0, 0 \
	}
RATION_API void ration_lease_get(struct ration_lease *lease, struct ration_lease_info *ret_info);

/*
 * Report what was spent, return the rest and free the lease (NULL: nothing happens). *ret_unspent (may be NULL): units that were left. No
 * thread may be in ration_try of it. Spent units of a gauge stay held by the session: to be given back by ration_uncharge. 0;
 * -ETIMEDOUT, -ENOTCONN: the daemon has not confirmed; the library goes on with it in the background.
 */
RATION_API int ration_lease_close(struct ration_lease *lease, int timeout_ms, int64_t *ret_unspent);

/* ---- quotas: limits ---- */

/* Numbers are at most 2^62. */
struct ration_limits {
	size_t size; /* sizeof(struct ration_limits): set by RATION_LIMITS_INIT */
	struct ration_window window;
	bool has_max;  /* never passed by a charge; 0 refuses all. Not with RATION_RATE */
	bool has_high; /* passed, but told. Not with RATION_RATE */
	bool shadow;   /* max (or rate) decides and counts, but refuses nothing */
	int64_t max, high;
	int64_t low,
		min; /* protected as far as can be; protected. 0: not. Only with RATION_NO_WINDOW */
	int64_t rate;	 /* with RATION_RATE, and only there: so many ... */
	uint64_t per_ms; /* ... in so many milliseconds, ... */
	int64_t burst;	 /* ... and at most so many at once */
};
#define RATION_LIMITS_INIT                                                                       \
	{                                                                                        \
		sizeof(struct ration_limits), { RATION_NO_WINDOW, RATION_DAY, 0 }, false, false, \
			false, 0, 0, 0, 0, 0, 0, 0                                               \
	}

/*
 * Set limits for a path, or for all paths that match a template (`*`: any one segment; `**` at the end: one or more), at run time:
 * instead of those with the same pattern and window, also of the daemon's configuration. `note` (may be NULL) is told what is unwise about
 * them; the text is valid during the call. RATION_INVALID_ARGUMENT: they contradict themselves or another template.
 */
RATION_API int ration_quota_set(struct ration *client, const char *pattern,
				const struct ration_limits *limits, int timeout_ms,
				void (*note)(void *ctx, const char *text), void *ctx);

/* Remove limits set at run time (window NULL: those of all windows); what the configuration says holds again. RATION_NOT_FOUND. */
RATION_API int ration_quota_remove(struct ration *client, const char *pattern,
				   const struct ration_window *window, int timeout_ms);

enum ration_layer {
	RATION_FILE,	/* of the daemon's configuration */
	RATION_RUN_TIME /* by ration_quota_set */
};

struct ration_rule {
	const char *pattern;
	struct ration_limits limits;
	enum ration_layer layer;
	bool overridden;    /* does not hold, because there is one of RATION_RUN_TIME */
	const char *source; /* "/etc/rationd/rationd.conf:31"; may be "" */
};

/* All rules. Strings are valid during the call of `rule`, which may call any function of this client but ration_close. */
RATION_API int ration_quota_list(struct ration *client, int timeout_ms,
				 void (*rule)(void *ctx, const struct ration_rule *rule),
				 void *ctx);

/* One limit that a charge of the path meets, and how near it is. */
struct ration_level {
	const char *path;
	struct ration_limits limits;
	enum ration_layer layer;
	const char *pattern; /* of the rule it comes from */
	const char *source;  /* of that rule; may be "" */
	int64_t usage, peak;
	int64_t left; /* INT64_MAX without a max */
	uint64_t refusals;
	int64_t forced; /* added beyond max without being asked */
	int64_t effective_min, effective_low;
	bool binds; /* the least is left here */
	bool over_high, over_max;
	uint64_t ends_in_ms; /* the window; 0: it does not */
};

/* Somebody beside the chain who uses more than what is protected. */
struct ration_sibling {
	const char *path;
	int64_t usage;
	int64_t effective_min, effective_low;
};

/* Units that a client has taken in advance. */
struct ration_leased {
	const char *path;
	const char *agent; /* whose: "libration/0.1.0" */
	int64_t units;
	uint64_t expires_in_ms;
};

/* Freed by ration_explanation_free. */
struct ration_explanation {
	size_t n_levels;
	const struct ration_level *levels; /* from the path to its metric; every plane of each */
	size_t n_siblings;
	const struct ration_sibling *siblings;
	uint32_t n_siblings_omitted;
	size_t n_leases;
	const struct ration_leased *leases;
	uint32_t n_leases_omitted;
};

/* What limits a path. RATION_NOT_FOUND: no such path. *ret_explanation is NULL unless the result is 0. */
RATION_API int ration_quota_explain(struct ration *client, const char *path, int timeout_ms,
				    struct ration_explanation **ret_explanation);
/* NULL is fine. */
RATION_API void ration_explanation_free(struct ration_explanation *explanation);

/* This library's version, "0.1.0". */
RATION_API const char *ration_version(void);

#ifdef __cplusplus
}
#endif
#endif
