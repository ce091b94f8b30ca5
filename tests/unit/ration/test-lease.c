/*
 * Leases, against a scripted daemon: what is asked and reported, and what ration_try answers when.
 */
#include "tests/support/test.h"
#include "tests/unit/ration/fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void sleep_ms(int ms)
{
	(void)usleep((useconds_t)ms * 1000);
}

/* ---- the daemon's side ---- */

static void leased(struct fake_peer *peer, const struct request *request, int64_t granted,
		   uint32_t ttl_ms)
{
	bool first = request->type == REQUEST_LEASE;
	static const struct binding binding = {
		.kind = BINDING_MAX, .path = { .at = "jobs", .len = 4 }, .limit = 10, .usage = 10
	};
	const struct reply reply = {
		.id = request->id,
		.type = REPLY_LEASED,
		.leased = { .number = first ? request->lease.number : request->lease_renew.number,
			    .lease = first ? request->lease.lease : request->lease_renew.lease,
			    .ttl_ms = ttl_ms,
			    .granted = granted,
			    .n_bindings = granted == 0 ? 1 : 0,
			    .bindings = &binding },
	};

	fake_send(peer, &reply);
}

static void returned(struct fake_peer *peer, const struct request *request)
{
	const struct reply reply = { .id = request->id,
				     .type = REPLY_LEASE_RETURNED,
				     .lease_returned = { .number = request->lease_return.number,
							 .lease = request->lease_return.lease } };

	fake_send(peer, &reply);
}

static void metric(struct fake_peer *peer, enum kind kind)
{
	struct request request;
	struct reply reply = { .type = REPLY_METRIC };

	fake_take(peer, REQUEST_METRIC_GET, &request);
	assert_int_equal(request.metric_get.len, 4);
	reply.id = request.id;
	reply.metric = (struct metric){ .name = text_of("jobs"), .kind = kind };
	fake_send(peer, &reply);
}

/* A lease of up to 100 on jobs/a, of which so many are granted. */
static void open_lease(struct fixture *fixture, int64_t granted, uint32_t ttl_ms, enum kind kind)
{
	struct request request;

	fixture->lease = ration_lease_open(fixture->client, "jobs/a", 100, ttl_ms, NULL);
	assert_non_null(fixture->lease);
	fake_accept(&fixture->fake, &fixture->peer);
	fake_welcome(&fixture->peer, false, 0, &FAKE_LIMITS, NULL);
	fake_take(&fixture->peer, REQUEST_LEASE, &request);
	assert_int_equal(request.lease.number, 1);
	assert_int_equal(request.lease.want, 100);
	assert_int_equal(request.lease.ttl_ms, ttl_ms);
	assert_int_equal(request.lease.path.len, 6);
	leased(&fixture->peer, &request, granted, ttl_ms);
	metric(&fixture->peer, kind);
	if (granted > 0) {
		assert_int_equal(ration_lease_wait(fixture->lease, FAKE_WAIT_MS), 0);
	}
}

static void take_n(struct fixture *fixture, int n)
{
	for (int i = 0; i < n; i++) {
		assert_true(ration_try(fixture->lease, 1, RATION_CLOSED));
	}
}

static struct ration_lease_info info_of(struct fixture *fixture)
{
	struct ration_lease_info info = RATION_LEASE_INFO_INIT;

	ration_lease_get(fixture->lease, &info);
	return info;
}

struct closer {
	pthread_t thread;
	struct ration_lease *lease;
	int64_t unspent;
	int result;
};

static void *close_lease(void *arg)
{
	struct closer *closer = arg;

	closer->result = ration_lease_close(closer->lease, FAKE_WAIT_MS, &closer->unspent);
	return NULL;
}

/* The LeaseReturn must report so many. */
static void expect_close(struct fixture *fixture, int64_t spent, int64_t unspent)
{
	struct closer closer = { .lease = fixture->lease };
	struct request request;

	assert_int_equal(pthread_create(&closer.thread, NULL, close_lease, &closer), 0);
	fake_take(&fixture->peer, REQUEST_LEASE_RETURN, &request);
	assert_int_equal(request.lease_return.spent, spent);
	returned(&fixture->peer, &request);
	(void)pthread_join(closer.thread, NULL);
	assert_int_equal(closer.result, 0);
	assert_int_equal(closer.unspent, unspent);
}

/* ---- the ordinary course ---- */

static void test_spends_what_was_granted_and_no_more(void **state)
{
	struct fixture *fixture = *state;
	struct request request;

	open_lease(fixture, 60, 60000, KIND_COUNTER);
	assert_false(ration_try(fixture->lease, 61, RATION_CLOSED));
	/* 61 did not fit, and ran low. */
	take_n(fixture, 60);
	assert_false(ration_try(fixture->lease, 1, RATION_CLOSED));
	assert_false(ration_try(fixture->lease, 1, RATION_OPEN));
	assert_false(ration_try(fixture->lease, 1, RATION_LAST_LEASE));
	assert_false(ration_try(fixture->lease, 0, RATION_CLOSED));
	assert_false(ration_try(fixture->lease, -1, RATION_CLOSED));
	assert_int_equal(info_of(fixture).left, 0);
	assert_int_equal(info_of(fixture).spent, 60);
	fake_take(&fixture->peer, REQUEST_LEASE_RENEW, &request);
	assert_int_equal(request.lease_renew.number, 2);
	assert_in_range(request.lease_renew.spent, 11, 60);
	assert_int_equal(request.lease_renew.want, 100);
	/* Refused: asked again, but not at once. */
	leased(&fixture->peer, &request, 0, 60000);
	expect_close(fixture, 60 - request.lease_renew.spent, 0);
	fake_hang_up(&fixture->peer);
}

static void test_is_filled_up_when_low_with_one_signal(void **state)
{
	struct fixture *fixture = *state;
	struct request request;

	open_lease(fixture, 100, 60000, KIND_COUNTER);
	take_n(fixture, 50);
	fake_expect_silence(&fixture->peer, 50);
	take_n(fixture, 1);
	fake_take(&fixture->peer, REQUEST_LEASE_RENEW, &request);
	assert_int_equal(request.lease_renew.spent, 51);
	take_n(fixture, 20);
	fake_expect_silence(&fixture->peer, 50);
	leased(&fixture->peer, &request, 51, 60000);
	while (info_of(fixture).left != 80) {
		sleep_ms(1);
	}
	fake_expect_silence(&fixture->peer, 50);
	take_n(fixture, 31);
	fake_take(&fixture->peer, REQUEST_LEASE_RENEW, &request);
	assert_int_equal(request.lease_renew.number, 3);
	assert_int_equal(request.lease_renew.spent, 51);
	leased(&fixture->peer, &request, 51, 60000);
	while (info_of(fixture).left != 100) {
		sleep_ms(1);
	}
	expect_close(fixture, 0, 100);
	fake_hang_up(&fixture->peer);
}

/* However many renewals come between two units that are spent: each reports what was spent since the one before. */
static void test_is_renewed_in_time(void **state)
{
	struct fixture *fixture = *state;
	struct request request;
	int64_t taken = 0, reported = 0;

	open_lease(fixture, 100, 1500, KIND_COUNTER);
	for (int renewals = 0; renewals < 3 || reported < 2; renewals++) {
		fake_take(&fixture->peer, REQUEST_LEASE_RENEW, &request);
		reported += request.lease_renew.spent;
		assert_in_range(reported, 0, taken);
		leased(&fixture->peer, &request, request.lease_renew.spent, 1500);
		while (info_of(fixture).left != 100 - (taken - reported)) {
			sleep_ms(1);
		}
		if (taken == reported) {
			take_n(fixture, 1);
			taken++;
		}
	}
	assert_in_range(info_of(fixture).expires_in_ms, 1, 1500);
	expect_close(fixture, taken - reported, 100 - (taken - reported));
	fake_hang_up(&fixture->peer);
}

static void test_refused_and_granted_later(void **state)
{
	struct fixture *fixture = *state;
	struct request request;

	open_lease(fixture, 0, 60000, KIND_COUNTER);
	fake_take(&fixture->peer, REQUEST_LEASE, &request);
	leased(&fixture->peer, &request, 0, 60000);
	/* It will be asked again, while somebody waits. */
	fake_take(&fixture->peer, REQUEST_LEASE, &request);
	leased(&fixture->peer, &request, 0, 60000);
	while (info_of(fixture).code != RATION_RESOURCE_EXHAUSTED) {
		sleep_ms(1);
	}
	assert_false(ration_try(fixture->lease, 1, RATION_OPEN));
	fake_take(&fixture->peer, REQUEST_LEASE, &request);
	leased(&fixture->peer, &request, 5, 60000);
	while (info_of(fixture).left != 5) {
		sleep_ms(1);
	}
	assert_int_equal(info_of(fixture).code, RATION_OK);
	take_n(fixture, 5);
	fake_take(&fixture->peer, REQUEST_LEASE_RENEW, &request);
	leased(&fixture->peer, &request, 0, 60000);
	expect_close(fixture, 5 - request.lease_renew.spent, 0);
	fake_hang_up(&fixture->peer);
}

static void test_an_error_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct request request;
	struct reply reply = {
		.type = REPLY_ERROR,
		.error = { .code = CODE_NOT_FOUND, .text = text_of("no metric"), .operation = 1 }
	};

	fixture->lease = ration_lease_open(fixture->client, "jobs/a", 100, 60000, NULL);
	fake_accept(&fixture->fake, &fixture->peer);
	fake_welcome(&fixture->peer, false, 0, &FAKE_LIMITS, NULL);
	fake_take(&fixture->peer, REQUEST_LEASE, &request);
	reply.id = request.id;
	fake_send(&fixture->peer, &reply);
	while (info_of(fixture).code != RATION_NOT_FOUND) {
		sleep_ms(1);
	}
	assert_false(ration_try(fixture->lease, 1, RATION_OPEN));
	assert_int_equal(ration_lease_close(fixture->lease, 0, NULL), -ETIMEDOUT);
	fake_hang_up(&fixture->peer);
}

/* ---- gauges ---- */

static void test_given_back_units_are_spent_again(void **state)
{
	struct fixture *fixture = *state;
	struct request request;

	open_lease(fixture, 100, 60000, KIND_GAUGE);
	ration_give(fixture->lease, 1); /* none is out */
	assert_int_equal(info_of(fixture).left, 100);
	take_n(fixture, 60);
	fake_take(&fixture->peer, REQUEST_LEASE_RENEW, &request);
	assert_in_range(request.lease_renew.spent, 51, 60);
	leased(&fixture->peer, &request, request.lease_renew.spent, 60000);
	while (info_of(fixture).left != 40 + request.lease_renew.spent) {
		sleep_ms(1);
	}
	/* All come back: what is above 100 is uncharged, in one or more. */
	ration_give(fixture->lease, 60);
	for (int64_t back = 0; back < request.lease_renew.spent;) {
		struct request uncharge;
		struct reply reply = { .type = REPLY_UNCHARGED };

		fake_take(&fixture->peer, REQUEST_UNCHARGE, &uncharge);
		back += uncharge.uncharge.amount;
		reply.id = uncharge.id;
		reply.uncharged.number = uncharge.uncharge.number;
		fake_send(&fixture->peer, &reply);
	}
	assert_int_equal(info_of(fixture).left, 100);
	assert_int_equal(info_of(fixture).spent, 0);
	ration_give(fixture->lease, 1);
	assert_int_equal(info_of(fixture).left, 100);
	expect_close(fixture, 0, 100);
	fake_hang_up(&fixture->peer);
}

/* More was given back than spent since the last report: the rest is the session's, and is uncharged. */
static void test_closed_with_units_of_the_session(void **state)
{
	struct fixture *fixture = *state;
	struct closer closer = { 0 };
	struct request request;
	struct reply reply = { .type = REPLY_UNCHARGED };

	open_lease(fixture, 100, 60000, KIND_GAUGE);
	take_n(fixture, 51);
	fake_take(&fixture->peer, REQUEST_LEASE_RENEW, &request);
	assert_int_equal(request.lease_renew.spent, 51);
	leased(&fixture->peer, &request, 1, 60000);
	while (info_of(fixture).left != 50) {
		sleep_ms(1);
	}
	ration_give(fixture->lease, 20);
	closer.lease = fixture->lease;
	assert_int_equal(pthread_create(&closer.thread, NULL, close_lease, &closer), 0);
	for (int i = 0; i < 2; i++) {
		fake_take(&fixture->peer, FAKE_ANY, &request);
		if (request.type == REQUEST_UNCHARGE) {
			assert_int_equal(request.uncharge.amount, 20);
			reply.id = request.id;
			fake_send(&fixture->peer, &reply);
		} else {
			assert_int_equal(request.type, REQUEST_LEASE_RETURN);
			assert_int_equal(request.lease_return.spent, 0);
			returned(&fixture->peer, &request);
		}
	}
	(void)pthread_join(closer.thread, NULL);
	assert_int_equal(closer.result, 0);
	assert_int_equal(closer.unspent, 70);
	fake_hang_up(&fixture->peer);
}

/* ---- the daemon is away ---- */

static void test_fallbacks_when_it_expires(void **state)
{
	struct fixture *fixture = *state;
	struct request request;

	open_lease(fixture, 80, 1000, KIND_COUNTER);
	take_n(fixture, 10);
	/* The daemon falls silent. */
	fake_take(&fixture->peer, REQUEST_LEASE_RENEW, &request);
	assert_int_equal(request.lease_renew.spent, 10);
	sleep_ms(1000);
	assert_int_equal(info_of(fixture).expires_in_ms, 0);
	assert_int_equal(info_of(fixture).left, 0);
	assert_false(ration_try(fixture->lease, 1, RATION_CLOSED));
	assert_true(ration_try(fixture->lease, 3, RATION_OPEN));
	assert_int_equal(info_of(fixture).opened, 3);
	assert_true(ration_try(fixture->lease, 70, RATION_LAST_LEASE));
	assert_false(ration_try(fixture->lease, 1, RATION_LAST_LEASE));
	/* Late, and yet what holds: counted from the sending it is over again. */
	leased(&fixture->peer, &request, 10, 60000);
	while (info_of(fixture).left != 10) {
		sleep_ms(1);
	}
	assert_false(ration_try(fixture->lease, 100, RATION_OPEN));
	take_n(fixture, 1);
	/* What was granted openly is told as adds. */
	for (int i = 0; i < 2; i++) {
		fake_take(&fixture->peer, FAKE_ANY, &request);
		if (request.type == REQUEST_LEASE_RENEW) {
			assert_in_range(request.lease_renew.spent, 70, 71);
		} else {
			assert_int_equal(request.type, REQUEST_INTERN);
			fake_interned(&fixture->peer, request.id);
			fake_take(&fixture->peer, REQUEST_ADD, &request);
			assert_int_equal(request.add.deltas[0], 3);
			fake_applied(&fixture->peer, &request);
			i = i == 0 ? 0 : 1;
		}
	}
	assert_int_equal(ration_lease_close(fixture->lease, 0, NULL), -ETIMEDOUT);
	fake_hang_up(&fixture->peer);
}

static void test_reported_once_across_a_break(void **state)
{
	struct fixture *fixture = *state;
	struct request request;

	open_lease(fixture, 100, 60000, KIND_COUNTER);
	take_n(fixture, 60);
	fake_take(&fixture->peer, REQUEST_LEASE_RENEW, &request);
	fake_hang_up(&fixture->peer);
	fake_accept(&fixture->fake, &fixture->peer);
	fixture->peer.last_operation = 2;
	fake_welcome(&fixture->peer, true, 0, &FAKE_LIMITS, NULL);
	{
		int64_t spent = request.lease_renew.spent;

		fake_take(&fixture->peer, REQUEST_LEASE_RENEW, &request);
		assert_int_equal(request.lease_renew.number, 2);
		assert_int_equal(request.lease_renew.spent, spent);
		leased(&fixture->peer, &request, spent, 60000);
		while (info_of(fixture).left != 40 + spent) {
			sleep_ms(1);
		}
		expect_close(fixture, 60 - spent, 40 + spent);
	}
	fake_hang_up(&fixture->peer);
}

/* Another start of the daemon: what a counter's lease had spent unreported is added, and another lease taken. */
static void test_taken_anew_from_another_daemon(void **state)
{
	struct fixture *fixture = *state;
	struct request request, lease = { .type = REQUEST_NONE };
	bool added = false;

	open_lease(fixture, 100, 60000, KIND_COUNTER);
	take_n(fixture, 30);
	fake_hang_up(&fixture->peer);
	/* Until it is known that it is void it can be spent. */
	take_n(fixture, 1);
	fake_accept_anew(&fixture->fake, &fixture->peer, /* keeps= */ false, 0, &FAKE_LIMITS, NULL);
	while (lease.type == REQUEST_NONE || !added) {
		fake_take(&fixture->peer, FAKE_ANY, &request);
		if (request.type == REQUEST_LEASE) {
			lease = request;
			leased(&fixture->peer, &request, 7, 60000);
		} else if (request.type == REQUEST_INTERN) {
			fake_interned(&fixture->peer, request.id);
		} else {
			assert_int_equal(request.type, REQUEST_ADD);
			assert_int_equal(request.add.deltas[0], 31);
			fake_applied(&fixture->peer, &request);
			added = true;
		}
	}
	assert_int_not_equal(lease.lease.lease, 1);
	while (info_of(fixture).left != 7) {
		sleep_ms(1);
	}
	assert_int_equal(info_of(fixture).spent, 31);
	assert_false(ration_try(fixture->lease, 8, RATION_CLOSED));
	fake_hang_up(&fixture->peer);
	assert_int_equal(ration_lease_close(fixture->lease, 0, NULL) < 0, true);
}

/* A gauge's units that are out when the daemon is another one are nobody's: they come back to no stock. */
static void test_strays_of_a_gauge(void **state)
{
	struct fixture *fixture = *state;
	struct request request;

	open_lease(fixture, 100, 60000, KIND_GAUGE);
	take_n(fixture, 30);
	fake_hang_up(&fixture->peer);
	fake_accept_anew(&fixture->fake, &fixture->peer, /* keeps= */ false, 0, &FAKE_LIMITS, NULL);
	fake_take(&fixture->peer, REQUEST_LEASE, &request);
	leased(&fixture->peer, &request, 50, 60000);
	while (info_of(fixture).left != 50) {
		sleep_ms(1);
	}
	assert_true(ration_try(fixture->lease, 50, RATION_CLOSED));
	ration_give(fixture->lease, 30);
	assert_false(ration_try(fixture->lease, 1, RATION_CLOSED));
	ration_give(fixture->lease, 1);
	assert_true(ration_try(fixture->lease, 1, RATION_CLOSED));
	assert_false(ration_try(fixture->lease, 1, RATION_CLOSED));
	fake_hang_up(&fixture->peer);
	assert_int_equal(ration_lease_close(fixture->lease, 0, NULL) < 0, true);
}

static void test_without_a_daemon(void **state)
{
	struct fixture *fixture = *state;
	int64_t unspent = -1;

	fake_close(&fixture->fake);
	fixture->lease = ration_lease_open(fixture->client, "jobs/a", 100, 60000, NULL);
	assert_int_equal(ration_lease_wait(fixture->lease, FAKE_WAIT_MS), -ENOTCONN);
	assert_non_null(strstr(ration_error(), fixture->fake.url));
	assert_false(ration_try(fixture->lease, 1, RATION_CLOSED));
	assert_false(ration_try(fixture->lease, 1, RATION_LAST_LEASE));
	assert_true(ration_try(fixture->lease, 5, RATION_OPEN));
	assert_int_equal(info_of(fixture).opened, 5);
	assert_int_equal(info_of(fixture).code, -ENOTCONN);
	assert_int_equal(ration_lease_close(fixture->lease, FAKE_WAIT_MS, &unspent), 0);
	assert_int_equal(unspent, 0);
	fake_listen(&fixture->fake, fixture->dir);
}

static void test_bad_arguments(void **state)
{
	struct fixture *fixture = *state;
	struct ration_lease_options options = RATION_LEASE_OPTIONS_INIT;
	struct ration_options without = RATION_OPTIONS_INIT;
	struct ration *client;

	errno = 0;
	assert_null(ration_lease_open(fixture->client, "a//b", 1, 1000, NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(ration_lease_open(fixture->client, "a", 0, 1000, NULL));
	assert_null(ration_lease_open(fixture->client, "a", (INT64_C(1) << 62) + 1, 1000, NULL));
	assert_null(ration_lease_open(fixture->client, "a", 1, 999, NULL));
	assert_null(ration_lease_open(fixture->client, "a", 1, 3600001, NULL));
	options.low_water = 2;
	assert_null(ration_lease_open(fixture->client, "a", 1, 1000, &options));
	options.size = 0;
	assert_null(ration_lease_open(fixture->client, "a", 1, 1000, &options));
	without.session_lifetime_ms = 0;
	client = ration_open(fixture->fake.url, &without);
	assert_null(ration_lease_open(client, "a", 1, 1000, NULL));
	assert_int_equal(errno, EINVAL);
	(void)ration_close(client, 0, NULL);
	for (int i = 0; i < 1000; i++) {
		assert_non_null(ration_lease_open(fixture->client, "a", 1, 1000, NULL));
	}
	assert_null(ration_lease_open(fixture->client, "a", 1, 1000, NULL));
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(ration_lease_close(NULL, 0, NULL), 0);
}

/* ---- fork ---- */

static void test_a_child_has_no_leases(void **state)
{
	struct fixture *fixture = *state;
	int status = -1;
	pid_t pid;

	open_lease(fixture, 100, 60000, KIND_COUNTER);
	take_n(fixture, 3);
	pid = fork();
	if (pid == 0) {
		int bad = ration_try(fixture->lease, 1, RATION_CLOSED) +
			  ration_try(fixture->lease, 1, RATION_OPEN) * 2 +
			  ration_try(fixture->lease, 1, RATION_LAST_LEASE) * 4;

		ration_give(fixture->lease, 1);
		bad += ration_lease_wait(fixture->lease, 10) == 0 ? 8 : 0;
		bad += ration_lease_close(fixture->lease, 10, NULL) != 0 ? 16 : 0;
		bad += ration_close(fixture->client, 10, NULL) != 0 ? 32 : 0;
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	take_n(fixture, 3);
	expect_close(fixture, 6, 94);
	fake_hang_up(&fixture->peer);
}

/* ---- many threads ---- */

#define N_THREADS 4
#define N_TRIES 50000

struct spender {
	pthread_t thread;
	struct ration_lease *lease;
	struct test_random random;
	int64_t taken, given;
};

static _Atomic(bool) spending;

static void *spend(void *arg)
{
	struct spender *spender = arg;

	while (atomic_load_explicit(&spending, memory_order_relaxed)) {
		int64_t n = 1 + (int64_t)test_random_below(&spender->random, 3);

		if (ration_try(spender->lease, n, RATION_CLOSED)) {
			spender->taken += n;
		}
		if (spender->taken > spender->given && test_random_below(&spender->random, 4) == 0) {
			ration_give(spender->lease, 1);
			spender->given++;
		}
	}
	return NULL;
}

/* At no report has more been spent than granted, and in the end all is accounted for. */
static void test_threads_never_exceed_the_stock(void **state)
{
	struct fixture *fixture = *state;
	struct spender spenders[N_THREADS] = { 0 };
	int64_t granted = 100, spent = 0, uncharged = 0, taken = 0;
	struct closer closer = { 0 };
	struct request request;

	open_lease(fixture, 100, 60000, KIND_GAUGE);
	atomic_store_explicit(&spending, true, memory_order_relaxed);
	for (int i = 0; i < N_THREADS; i++) {
		spenders[i].lease = fixture->lease;
		test_random_init(&spenders[i].random, (uint64_t)i);
		assert_int_equal(pthread_create(&spenders[i].thread, NULL, spend, &spenders[i]), 0);
	}
	for (int i = 0; i < 300; i++) {
		struct reply reply = { .type = REPLY_UNCHARGED };

		fake_take(&fixture->peer, FAKE_ANY, &request);
		if (request.type == REQUEST_UNCHARGE) {
			uncharged += request.uncharge.amount;
			assert_true(uncharged <= spent);
			reply.id = request.id;
			fake_send(&fixture->peer, &reply);
			continue;
		}
		assert_int_equal(request.type, REQUEST_LEASE_RENEW);
		assert_true(request.lease_renew.spent >= 0);
		spent += request.lease_renew.spent;
		assert_true(spent <= granted);
		{
			int64_t unspent = granted - spent, want = request.lease_renew.want;
			int64_t n = want > unspent ? want - unspent : 0;

			n = i % 7 == 0 && n > 1 ? n / 2 : n;
			granted += n;
			leased(&fixture->peer, &request, n, 60000);
		}
	}
	atomic_store_explicit(&spending, false, memory_order_relaxed);
	for (int i = 0; i < N_THREADS; i++) {
		(void)pthread_join(spenders[i].thread, NULL);
		taken += spenders[i].taken - spenders[i].given;
	}
	assert_int_equal(info_of(fixture).spent, taken);
	closer.lease = fixture->lease;
	assert_int_equal(pthread_create(&closer.thread, NULL, close_lease, &closer), 0);
	for (;;) {
		struct reply reply = { .type = REPLY_UNCHARGED };

		fake_take(&fixture->peer, FAKE_ANY, &request);
		if (request.type == REQUEST_LEASE_RETURN) {
			break;
		}
		if (request.type == REQUEST_UNCHARGE) {
			uncharged += request.uncharge.amount;
			reply.id = request.id;
			fake_send(&fixture->peer, &reply);
		} else {
			spent += request.lease_renew.spent;
			leased(&fixture->peer, &request, 0, 60000);
		}
	}
	spent += request.lease_return.spent;
	returned(&fixture->peer, &request);
	(void)pthread_join(closer.thread, NULL);
	assert_int_equal(closer.result, 0);
	assert_int_equal(spent - uncharged, taken);
	assert_true(granted - uncharged - taken <= closer.unspent + 100);
	fake_hang_up(&fixture->peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		TEST(test_spends_what_was_granted_and_no_more),
		TEST(test_is_filled_up_when_low_with_one_signal),
		TEST(test_is_renewed_in_time),
		TEST(test_refused_and_granted_later),
		TEST(test_an_error_is_told),
		TEST(test_given_back_units_are_spent_again),
		TEST(test_closed_with_units_of_the_session),
		TEST(test_fallbacks_when_it_expires),
		TEST(test_reported_once_across_a_break),
		TEST(test_taken_anew_from_another_daemon),
		TEST(test_strays_of_a_gauge),
		TEST(test_without_a_daemon),
		TEST(test_bad_arguments),
		TEST(test_a_child_has_no_leases),
		TEST(test_threads_never_exceed_the_stock),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
