#include "daemon/store/checkpoint.h"

#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/store/declared.h"
#include "daemon/store/step.h"
#include "lib/engine/keep.h"
#include "lib/rcu/grace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- from workers and others ---- */

void checkpoint_note(struct checkpoint *checkpoint)
{
	if (checkpoint->store == NULL) {
		return;
	}
	(void)pthread_mutex_lock(&checkpoint->lock);
	if (!checkpoint->fresh) {
		checkpoint->fresh = true;
		if (checkpoint->stale_since_ns == 0) {
			checkpoint->stale_since_ns = clock_monotonic_ns();
		}
		(void)pthread_cond_signal(&checkpoint->turn);
	}
	(void)pthread_mutex_unlock(&checkpoint->lock);
}

uint64_t checkpoint_want(struct checkpoint *checkpoint)
{
	uint64_t number;

	(void)pthread_mutex_lock(&checkpoint->lock);
	number = atomic_load_explicit(&checkpoint->asked, memory_order_relaxed) + 1;
	if (checkpoint->wanted < number) {
		checkpoint->wanted = number;
		(void)pthread_cond_signal(&checkpoint->turn);
	}
	(void)pthread_mutex_unlock(&checkpoint->lock);
	return number;
}

bool checkpoint_over(struct checkpoint *checkpoint, uint64_t *ret_over, char why[STORE_MAX_WHY])
{
	bool durable;

	(void)pthread_mutex_lock(&checkpoint->lock);
	*ret_over = atomic_load_explicit(&checkpoint->over, memory_order_relaxed);
	durable = !checkpoint->stats.failing;
	memcpy(why, checkpoint->stats.why, STORE_MAX_WHY);
	(void)pthread_mutex_unlock(&checkpoint->lock);
	return durable;
}

void checkpoint_give(struct checkpoint *checkpoint, unsigned worker, struct cut *cut)
{
	(void)pthread_mutex_lock(&checkpoint->lock);
	checkpoint->parts[worker].cut = cut;
	(void)pthread_cond_signal(&checkpoint->turn);
	(void)pthread_mutex_unlock(&checkpoint->lock);
}

void checkpoint_give_last(struct checkpoint *checkpoint, unsigned worker, struct cut *cut)
{
	(void)pthread_mutex_lock(&checkpoint->lock);
	checkpoint->parts[worker].last = cut;
	checkpoint->parts[worker].ended = true;
	checkpoint->fresh = true;
	(void)pthread_cond_signal(&checkpoint->turn);
	(void)pthread_mutex_unlock(&checkpoint->lock);
}

bool checkpoint_reach_begin(struct checkpoint *checkpoint)
{
	bool may;

	(void)pthread_mutex_lock(&checkpoint->lock);
	may = !checkpoint->cutting;
	checkpoint->n_reaching += may;
	(void)pthread_mutex_unlock(&checkpoint->lock);
	return may;
}

void checkpoint_reach_end(struct checkpoint *checkpoint)
{
	(void)pthread_mutex_lock(&checkpoint->lock);
	if (--checkpoint->n_reaching == 0 && checkpoint->cutting) {
		(void)pthread_cond_signal(&checkpoint->turn);
	}
	(void)pthread_mutex_unlock(&checkpoint->lock);
}

void checkpoint_ask(struct checkpoint *checkpoint, uint64_t number)
{
	atomic_store_explicit(&checkpoint->watch_asked, number, memory_order_relaxed);
	(void)pthread_mutex_lock(&checkpoint->lock);
	(void)pthread_cond_signal(&checkpoint->turn);
	(void)pthread_mutex_unlock(&checkpoint->lock);
}

void checkpoint_set_interval(struct checkpoint *checkpoint, int64_t interval_ns)
{
	(void)pthread_mutex_lock(&checkpoint->lock);
	checkpoint->interval_ns = interval_ns;
	(void)pthread_cond_signal(&checkpoint->turn);
	(void)pthread_mutex_unlock(&checkpoint->lock);
}

void checkpoint_stats(struct checkpoint *checkpoint, struct checkpoint_stats *ret_stats)
{
	(void)pthread_mutex_lock(&checkpoint->lock);
	*ret_stats = checkpoint->stats;
	if (checkpoint->stale_since_ns != 0) {
		ret_stats->age_ns = clock_monotonic_ns() - checkpoint->stale_since_ns;
	}
	(void)pthread_mutex_unlock(&checkpoint->lock);
}

/* ---- the thread waits ---- */

/* Under the lock; `until_ns` monotonic, 0: without an end. Answers the watchdog: whoever waits here goes round. */
static void wait_until(struct checkpoint *checkpoint, int64_t until_ns)
{
	const struct timespec until = { .tv_sec = until_ns / CLOCK_NS_PER_S,
					.tv_nsec = until_ns % CLOCK_NS_PER_S };

	atomic_store_explicit(&checkpoint->watch_answered,
			      atomic_load_explicit(&checkpoint->watch_asked, memory_order_relaxed),
			      memory_order_relaxed);
	if (until_ns == 0) {
		(void)pthread_cond_wait(&checkpoint->turn, &checkpoint->lock);
	} else {
		(void)pthread_cond_timedwait(&checkpoint->turn, &checkpoint->lock, &until);
	}
}

/* Under the lock: when the next one is to begin, monotonic; 0: not before something happens. */
static int64_t next_ns(const struct checkpoint *checkpoint)
{
	bool waited_for =
		checkpoint->wanted > atomic_load_explicit(&checkpoint->asked, memory_order_relaxed);

	if (checkpoint->retry_ns > 0) {
		return checkpoint->last_ns + checkpoint->retry_ns;
	}
	if (waited_for) {
		return checkpoint->last_ns;
	}
	return checkpoint->fresh ? checkpoint->last_ns + checkpoint->interval_ns : 0;
}

/* Under the lock. False: there is to be no other but the last one. */
static bool wait_for_next(struct checkpoint *checkpoint)
{
	while (!checkpoint->stopping) {
		int64_t at_ns = next_ns(checkpoint);

		if (at_ns > 0 && at_ns <= clock_monotonic_ns()) {
			return true;
		}
		wait_until(checkpoint, at_ns);
	}
	return false;
}

static bool has_all(const struct checkpoint *checkpoint)
{
	for (unsigned i = 0; i < checkpoint->daemon->n_workers; i++) {
		const struct checkpoint_part *part = &checkpoint->parts[i];

		if (part->cut == NULL && !part->ended) {
			return false;
		}
	}
	return true;
}

static void wake_workers(struct checkpoint *checkpoint)
{
	for (unsigned i = 0; i < checkpoint->daemon->n_workers; i++) {
		worker_wake(&checkpoint->daemon->workers[i]);
	}
}

/* Ask every worker for a cut, and wait until all have given theirs. */
static void ask(struct checkpoint *checkpoint)
{
	(void)pthread_mutex_lock(&checkpoint->lock);
	checkpoint->cutting = true;
	while (checkpoint->n_reaching > 0) {
		wait_until(checkpoint, 0);
	}
	checkpoint->fresh = false;
	/* Pairs with checkpoint_asked. */
	atomic_fetch_add_explicit(&checkpoint->asked, 1, memory_order_release);
	(void)pthread_mutex_unlock(&checkpoint->lock);
	wake_workers(checkpoint);
	(void)pthread_mutex_lock(&checkpoint->lock);
	while (!has_all(checkpoint)) {
		wait_until(checkpoint, 0);
	}
	checkpoint->cutting = false;
	(void)pthread_mutex_unlock(&checkpoint->lock);
}

/* ---- what is new, into the image ---- */

/* Without memory for what is new the image would say something that never was: see daemon/keep.h. */
static void must(struct checkpoint *checkpoint, int r)
{
	if (r != 0) {
		log_line(
			&checkpoint->daemon->log, LOG_CRIT,
			"can't keep what was counted: %s; ending, so that clients send again what is not durable",
			strerror(r < 0 ? -r : EINVAL));
		abort();
	}
}

static void take_born(void *ctx, const struct engine_born *born)
{
	struct checkpoint *checkpoint = ctx;

	must(checkpoint, store_born(checkpoint->store, born));
	checkpoint->new_metric = checkpoint->new_metric || born->parent == ENGINE_NO_ID;
}

static void take_gone(void *ctx, uint32_t id, uint32_t parent)
{
	struct checkpoint *checkpoint = ctx;

	must(checkpoint, store_gone(checkpoint->store, id, parent));
	checkpoint->n_gone++;
}

static void take_changes(struct checkpoint *checkpoint)
{
	const struct engine_changes changes = { .born = take_born,
						.gone = take_gone,
						.ctx = checkpoint };

	engine_changes(checkpoint->daemon->engine, &changes);
}

struct used {
	struct engine *engine;
	int64_t wall_ns;
};

static void note_used(void *ctx, uint32_t id, int64_t n)
{
	const struct used *used = ctx;

	engine_usage_add(used->engine, id, n, used->wall_ns);
}

static void merge(struct checkpoint *checkpoint, struct cut **cut)
{
	struct used used = { .engine = checkpoint->daemon->engine };

	if (*cut != NULL) {
		used.wall_ns = (*cut)->wall_ns;
		must(checkpoint, store_merge(checkpoint->store, *cut, note_used, &used));
		*cut = cut_free(*cut);
	}
}

/* What workers have given by now. What one that ends gives later is for the last checkpoint. */
static void take_parts(struct checkpoint *checkpoint, struct checkpoint_part *parts)
{
	(void)pthread_mutex_lock(&checkpoint->lock);
	for (unsigned i = 0; i < checkpoint->daemon->n_workers; i++) {
		parts[i] = checkpoint->parts[i];
		checkpoint->parts[i].cut = checkpoint->parts[i].last = NULL;
	}
	(void)pthread_mutex_unlock(&checkpoint->lock);
}

static void merge_parts(struct checkpoint *checkpoint, struct checkpoint_part *parts)
{
	for (unsigned i = 0; i < checkpoint->daemon->n_workers; i++) {
		merge(checkpoint, &parts[i].cut);
		merge(checkpoint, &parts[i].last);
	}
}

/* The last growth of the first n that are gone has been merged. */
static void end_gone(struct checkpoint *checkpoint, size_t n)
{
	engine_changes_done(checkpoint->daemon->engine, n);
	checkpoint->n_gone -= n;
}

static void take_usage(void *ctx, const struct engine_usage *usage)
{
	struct checkpoint *checkpoint = ctx;

	must(checkpoint, store_usage(checkpoint->store, usage));
}

static void take_declared(struct checkpoint *checkpoint)
{
	uint64_t now = atomic_load_explicit(&checkpoint->daemon->declared, memory_order_acquire);

	if (now != checkpoint->declared) {
		must(checkpoint, declared_keep(checkpoint->daemon, checkpoint->store));
		checkpoint->declared = now;
	} else if (checkpoint->new_metric) {
		must(checkpoint, declared_keep_metrics(checkpoint->daemon, checkpoint->store));
	}
	checkpoint->new_metric = false;
}

static void take_all(struct checkpoint *checkpoint, bool final)
{
	struct checkpoint_part parts[ENGINE_MAX_WORKERS] = { 0 };
	struct quota_time time;
	size_t n_gone;

	take_changes(checkpoint);
	n_gone = checkpoint->n_gone;
	STORE_STEP();
	if (!final) {
		ask(checkpoint);
	}
	STORE_STEP();
	/* In this order: counters in the cuts are known by then. */
	take_parts(checkpoint, parts);
	take_changes(checkpoint);
	merge_parts(checkpoint, parts);
	end_gone(checkpoint, final ? checkpoint->n_gone : n_gone);
	time = daemon_time(); /* not before that of any cut */
	if (final) {
		engine_usage_settle(checkpoint->daemon->engine, &time);
	} else {
		engine_usage_trim(checkpoint->daemon->engine, &time);
	}
	engine_usage_each(checkpoint->daemon->engine, /* all= */ false, take_usage, checkpoint);
	take_declared(checkpoint);
	STORE_STEP();
}

/* ---- the end of one ---- */

static void log_failure(struct checkpoint *checkpoint, const char *why)
{
	log_event(
		&checkpoint->daemon->log, LOG_KIND_MAX, 0, LOG_ERR,
		&(struct log_about){ .id = LOG_ID_NOT_DURABLE },
		"the state file can't be written: %s; counting goes on, but nothing more becomes durable until it can",
		why);
}

static void log_recovery(struct checkpoint *checkpoint, int64_t since_ns)
{
	log_event(&checkpoint->daemon->log, LOG_KIND_MAX, 0, LOG_NOTICE,
		  &(struct log_about){ .id = LOG_ID_DURABLE_AGAIN },
		  "the state file is written again, after %" PRIi64
		  " s; all that was counted is durable",
		  (clock_monotonic_ns() - since_ns) / CLOCK_NS_PER_S);
}

static void set_retry(struct checkpoint *checkpoint, int r)
{
	int64_t wait =
		checkpoint->retry_ns > 0 ? checkpoint->retry_ns * 2 : checkpoint->interval_ns;

	if (wait > CHECKPOINT_MAX_RETRY_NS) {
		wait = CHECKPOINT_MAX_RETRY_NS;
	}
	checkpoint->retry_ns = r != 0 ? wait : 0;
}

/* Tell the workers. */
static void end(struct checkpoint *checkpoint, int r, const char *why)
{
	struct checkpoint_stats *stats = &checkpoint->stats;
	int64_t now = clock_monotonic_ns(), stale_since;
	bool was_failing;

	(void)pthread_mutex_lock(&checkpoint->lock);
	was_failing = stats->failing;
	stale_since = checkpoint->stale_since_ns;
	stats->failing = r != 0;
	(void)snprintf(stats->why, sizeof(stats->why), "%s", why);
	stats->n++;
	stats->n_failed += r != 0;
	stats->took_ns = now - checkpoint->last_ns;
	store_stats(checkpoint->store, &stats->store);
	set_retry(checkpoint, r);
	if (r == 0) {
		/* What came since the cuts is at most as old as they are. */
		checkpoint->stale_since_ns = checkpoint->fresh ? checkpoint->last_ns : 0;
	}
	atomic_store_explicit(&checkpoint->over,
			      atomic_load_explicit(&checkpoint->asked, memory_order_relaxed),
			      memory_order_release);
	(void)pthread_mutex_unlock(&checkpoint->lock);
	wake_workers(checkpoint);
	if (r != 0 && !was_failing) {
		log_failure(checkpoint, why);
	} else if (r == 0 && was_failing) {
		log_recovery(checkpoint, stale_since);
	}
}

/* What is durable is so without it; but a log that only grows is to be known of before the disk is full. */
static void tidy(struct checkpoint *checkpoint)
{
	struct log *log = &checkpoint->daemon->log;
	char *untidy = checkpoint->stats.untidy;
	char why[STORE_MAX_WHY] = "";
	bool was_untidy;
	int r;

	if (!store_is_untidy(checkpoint->store)) {
		return;
	}
	r = store_tidy(checkpoint->store, why);
	(void)pthread_mutex_lock(&checkpoint->lock);
	was_untidy = untidy[0] != '\0';
	(void)snprintf(untidy, STORE_MAX_WHY, "%s", r == 0 ? "" : r < 0 ? strerror(-r) : why);
	(void)pthread_mutex_unlock(&checkpoint->lock);
	if (r != 0 && !was_untidy) {
		log_line(log, LOG_WARNING, "the state file is written, but its log grows: %s",
			 r < 0 ? strerror(-r) : why);
	} else if (r == 0 && was_untidy) {
		log_line(log, LOG_NOTICE, "the log of the state file was moved into it again");
	}
}

static int once(struct checkpoint *checkpoint, bool final)
{
	char why[STORE_MAX_WHY] = "";
	int r = 0;

	checkpoint->last_ns = clock_monotonic_ns();
	take_all(checkpoint, final);
	if (store_is_dirty(checkpoint->store)) {
		r = store_commit(checkpoint->store, why);
	}
	STORE_STEP();
	end(checkpoint, r, why);
	if (r == 0) {
		tidy(checkpoint);
	}
	STORE_STEP();
	return r;
}

static void *run(void *arg)
{
	struct checkpoint *checkpoint = arg;
	bool more;

	(void)pthread_setname_np(pthread_self(), "store");
	grace_register();
	do {
		(void)pthread_mutex_lock(&checkpoint->lock);
		more = wait_for_next(checkpoint);
		(void)pthread_mutex_unlock(&checkpoint->lock);
		checkpoint->status = once(checkpoint, /* final= */ !more);
	} while (more);
	grace_unregister();
	return NULL;
}

/* ---- making and ending ---- */

int checkpoint_init(struct checkpoint *checkpoint, struct daemon *daemon, struct store *store,
		    const char *path, int64_t interval_ns)
{
	pthread_condattr_t attributes;
	int r;

	*checkpoint = (struct checkpoint){ .daemon = daemon,
					   .store = store,
					   .path = strdup(path),
					   .lock = PTHREAD_MUTEX_INITIALIZER,
					   .interval_ns = interval_ns,
					   .last_ns = 1 };
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	r = pthread_cond_init(&checkpoint->turn, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	return checkpoint->path != NULL ? -r : -ENOMEM;
}

int checkpoint_start(struct checkpoint *checkpoint)
{
	int r = checkpoint->store != NULL
			? pthread_create(&checkpoint->thread, NULL, run, checkpoint)
			: 0;

	checkpoint->started = checkpoint->store != NULL && r == 0;
	return -r;
}

int checkpoint_stop(struct checkpoint *checkpoint)
{
	if (!checkpoint->started) {
		return 0;
	}
	(void)pthread_mutex_lock(&checkpoint->lock);
	checkpoint->stopping = true;
	(void)pthread_cond_signal(&checkpoint->turn);
	(void)pthread_mutex_unlock(&checkpoint->lock);
	(void)pthread_join(checkpoint->thread, NULL);
	checkpoint->started = false;
	return checkpoint->status != 0 ? -EIO : 0;
}

void checkpoint_deinit(struct checkpoint *checkpoint)
{
	for (unsigned i = 0; i < ENGINE_MAX_WORKERS; i++) {
		(void)cut_free(checkpoint->parts[i].cut);
		(void)cut_free(checkpoint->parts[i].last);
	}
	free(checkpoint->path);
	(void)store_close(checkpoint->store);
	checkpoint->store = NULL;
}
