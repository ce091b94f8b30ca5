#include "daemon/store/restore.h"

#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/giveback.h"
#include "daemon/notify.h"
#include "daemon/session.h"
#include "daemon/store/declared.h"
#include "lib/base/cursor.h"
#include "lib/engine/keep.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* From a sink: the row has its sum, but says what the daemon never writes. */
#define RESTORE_E_SENSELESS 2000

struct restore {
	struct daemon *daemon;
	struct quota_time time;
	const char *what; /* of what is senseless */
	uint64_t counters, sessions, held, leases;
	struct debt *last_debt; /* of the session that was looked for last; NULL: it is none */
};

/* ---- sinks ---- */

static int restore_metric(void *ctx, const char *name, size_t len,
			  const struct engine_metric *metric)
{
	struct restore *restore = ctx;

	return declared_restore_metric(restore->daemon, name, len, metric);
}

static int restore_rule(void *ctx, const struct engine_rule *rule)
{
	struct restore *restore = ctx;

	return declared_restore_rule(restore->daemon, rule);
}

static int senseless(struct restore *restore, const char *what)
{
	restore->what = what;
	return RESTORE_E_SENSELESS;
}

static int restore_counter(void *ctx, const char *path, size_t len, int64_t own, int64_t ahead,
			   int64_t born_ns, uint32_t *ret_id)
{
	struct restore *restore = ctx;
	int r = engine_restore(restore->daemon->engine, path, len, own, ahead, born_ns, ret_id);

	restore->counters++;
	if (r == ENGINE_E_FULL) {
		return -ENOSPC;
	}
	return r > 0 ? senseless(restore, "a counter's path or value") : r;
}

static int restore_usage(void *ctx, const struct engine_usage *usage)
{
	struct restore *restore = ctx;
	int r = engine_restore_usage(restore->daemon->engine, usage, &restore->time);

	/* The limit is gone: so is what was used of it. */
	return r == ENGINE_E_NOT_FOUND ? STORE_DROP : r;
}

static int restore_leases(struct restore *restore, struct session *session,
			  struct bytes_view leases)
{
	struct worker *worker = session->worker;
	struct cursor_in in;

	cursor_in_init(&in, leases.at, leases.len);
	while (cursor_in_left(&in) > 0) {
		struct lease_terms terms;
		struct lease *lease;
		int64_t units;
		int r = lease_load(&in, &terms, &units);

		if (r == 0) {
			terms.agent = session->agent;
			terms.agent_len = session->agent_len;
			r = lease_prepare(&session->leases, &worker->lease_clock,
					  &restore->daemon->leases, &terms, LEASE_NO_MAX, &lease);
		}
		if (r != 0) {
			return r == -ENOMEM ? r : senseless(restore, "a lease");
		}
		/* They were written together, so what it has is there. */
		(void)engine_restore_lease(restore->daemon->engine, terms.path, terms.len, units);
		lease_make(&session->leases, &worker->lease_clock, &restore->daemon->leases, lease,
			   units, restore->time.mono_ns + (int64_t)terms.ttl_ms * INT64_C(1000000));
		restore->leases++;
	}
	return 0;
}

static int restore_debt(struct restore *restore, const struct store_session *from)
{
	struct debt *debt = calloc(1, sizeof(*debt));

	if (debt == NULL) {
		return -ENOMEM;
	}
	memcpy(debt->id, from->id, sizeof(debt->id));
	debt->in_file = true;
	debt->held.seed = restore->daemon->directory.seed;
	giveback_inherit(&restore->daemon->workers[0], debt);
	return 0;
}

static void set_expiry(struct session *session)
{
	int64_t lifetime_ns = session->lifetime_ns > RESTORE_MIN_LIFETIME_NS
				      ? session->lifetime_ns
				      : RESTORE_MIN_LIFETIME_NS;
	struct timeval wait = clock_timeval(lifetime_ns);

	(void)event_add(&session->expiry, &wait);
}

static int restore_session(void *ctx, const struct store_session *from)
{
	struct restore *restore = ctx;
	struct daemon *daemon = restore->daemon;
	struct session *session;
	int r;

	if (from->over) {
		return restore_debt(restore, from);
	}
	r = directory_restore(&daemon->directory, from->id, &session);
	if (r < 0) {
		return r;
	}
	worker_resume_session(&daemon->workers[session->owner], session, /* connection= */ NULL);
	session->restored = true;
	session->last_batch = from->last_batch;
	session->lifetime_ns = from->lifetime_ns;
	session_set_agent(session, (struct text){ .at = (const char *)from->agent.at,
						  .len = from->agent.len });
	r = operations_load(&session->operations, from->last_operation, from->answers.at,
			    from->answers.len);
	if (r < 0) {
		return r == -ENOMEM ? r : senseless(restore, "the answers of a session");
	}
	keep_restored(session);
	set_expiry(session);
	restore->sessions++;
	return restore_leases(restore, session, from->leases);
}

/* What a session that is over has left; NULL: it is none of those. */
static struct debt *find_debt(struct restore *restore, const uint8_t *id)
{
	struct debt *debt = restore->last_debt;

	if (debt != NULL && memcmp(debt->id, id, sizeof(debt->id)) == 0) {
		return debt;
	}
	STAILQ_FOREACH(debt, &restore->daemon->workers[0].debts, link)
	{
		if (memcmp(debt->id, id, sizeof(debt->id)) == 0) {
			break;
		}
	}
	restore->last_debt = debt;
	return debt;
}

/* What is in the file of it is no change. */
static int add_unchanged(struct held *held, const struct cut_held *from)
{
	int r;

	held->keeps = false;
	r = held_add(held, from->path, from->len, from->amount);
	held->keeps = true;
	return r;
}

static int restore_held(void *ctx, const struct cut_held *from)
{
	struct restore *restore = ctx;
	struct daemon *daemon = restore->daemon;
	struct session *session;
	struct debt *debt;

	restore->held++;
	if (cut_held_is_detached(from)) {
		return held_add(&daemon->detached, from->path, from->len, from->amount);
	}
	session = directory_find(&daemon->directory, from->session);
	if (session != NULL) {
		stats_add(&session->worker->stats.held_paths, 1);
		return add_unchanged(&session->held, from);
	}
	debt = find_debt(restore, from->session);
	if (debt == NULL) {
		return senseless(restore, "what a session holds that there is not");
	}
	return add_unchanged(&debt->held, from);
}

/* ---- a look before, for --recover ---- */

/* Is every row as it was written? The file is open again afterwards. */
static int look_through(const char *path, struct store **store, char why[STORE_MAX_WHY])
{
	int r = store_load(*store, /* sink= */ NULL, why);

	*store = store_close(*store);
	return r == 0 ? store_open(path, store, why) : r;
}

/* ---- the file ---- */

static int move_aside(struct daemon *daemon, const char *why)
{
	char moved_to[STORE_MAX_WHY], lost[STORE_MAX_WHY];
	int r = store_move_aside(daemon->config->state, clock_wall_ns(), moved_to, lost);

	if (r != 0) {
		log_line(&daemon->log, LOG_ERR, "the state file can't be moved aside: %s", lost);
		return r;
	}
	log_event(&daemon->log, LOG_KIND_MAX, 0, LOG_WARNING,
		  &(struct log_about){ .id = LOG_ID_RECOVERED },
		  "%s; it was moved to %s, and a new one is begun. Lost: %s", why, moved_to, lost);
	return 0;
}

/* Says it all, here and to the service manager; the daemon does not start. */
static int refuse(struct daemon *daemon, int r, const char *why)
{
	const char *advice =
		r == STORE_E_NEWER || r == STORE_E_DAMAGED
			? "; it was left as it is: restore it from a backup, or start with --recover to have it "
			  "moved aside and begin a new one"
		: r == STORE_E_IO ? "; give another with --state FILE, or none with --ephemeral"
				  : "";

	log_event(&daemon->log, LOG_KIND_MAX, 0, LOG_ERR,
		  &(struct log_about){ .id = LOG_ID_STATE_REFUSED }, "can't start: %s%s", why,
		  advice);
	notify_failed(r == STORE_E_LOCKED ? EBUSY
		      : r == STORE_E_IO	  ? EIO
		      : r < 0		  ? -r
					  : EUCLEAN,
		      why);
	return r;
}

static bool is_lost(int r)
{
	return r == STORE_E_DAMAGED || r == STORE_E_NEWER;
}

int restore_open(struct daemon *daemon, bool recover, struct store **ret_store)
{
	const char *path = daemon->config->state;
	char why[STORE_MAX_WHY] = "";
	struct store *store = NULL;
	int r = store_open(path, &store, why);

	if (r == 0 && recover) {
		r = look_through(path, &store, why);
	}
	if (is_lost(r) && recover) {
		r = move_aside(daemon, why);
		if (r == 0) {
			r = store_open(path, &store, why);
		}
	}
	if (r != 0) {
		return refuse(daemon, r, r == -ENOMEM ? strerror(ENOMEM) : why);
	}
	*ret_store = store;
	return 0;
}

int restore_all(struct daemon *daemon, struct store *store)
{
	struct restore restore = { .daemon = daemon, .time = daemon_time() };
	const struct store_sink sink = { .ctx = &restore,
					 .metric = restore_metric,
					 .rule = restore_rule,
					 .counter = restore_counter,
					 .usage = restore_usage,
					 .session = restore_session,
					 .held = restore_held };
	char why[STORE_MAX_WHY] = "";
	int r;

	r = store_load(store, &sink, why);
	if (r == 0 && engine_restored(daemon->engine, restore.time) != 0) {
		r = senseless(&restore, "a total");
	}
	if (r == RESTORE_E_SENSELESS) {
		(void)snprintf(why, sizeof(why), "%s is damaged: %s is not right",
			       daemon->config->state, restore.what);
		r = STORE_E_DAMAGED;
	} else if (r == -ENOSPC) {
		(void)snprintf(why, sizeof(why),
			       "%s has more counters than max_counters allows; raise it",
			       daemon->config->state);
	} else if (r < 0) {
		(void)snprintf(why, sizeof(why), "%s", strerror(-r));
	}
	if (r != 0) {
		return refuse(daemon, r, why);
	}
	if (restore.counters + restore.sessions + restore.held == 0) {
		log_line(&daemon->log, LOG_INFO, "keeping what is counted in %s",
			 daemon->config->state);
		return 0;
	}
	log_line(&daemon->log, LOG_INFO,
		 "restored from %s in %" PRIi64 " ms: counters %" PRIu64 ", sessions %" PRIu64
		 ", leases %" PRIu64 ", held amounts %" PRIu64,
		 daemon->config->state,
		 (clock_monotonic_ns() - restore.time.mono_ns) / INT64_C(1000000), restore.counters,
		 restore.sessions, restore.leases, restore.held);
	return 0;
}
