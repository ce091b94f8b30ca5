/*
 * What libration keeps until it is durable, and tells a daemon that was started anew: its side of PROTOCOL.md section 13, against a scripted
 * daemon.
 */
#include "tests/support/test.h"
#include "tests/unit/ration/fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OTHER "fedcba9876543210" /* another daemon's incarnation */
#define LONG_MS 1500		 /* what is to come comes sooner, also where the machine is busy */

/* ---- the daemon's side ---- */

/* The next connection, of a daemon with a state file. */
static void accept_keeper(struct fixture *fixture, struct fake_peer *peer, const char *incarnation)
{
	fake_accept(&fixture->fake, peer);
	peer->keeps = true;
	peer->incarnation = incarnation;
}

static void begin(struct fixture *fixture, struct fake_peer *peer)
{
	accept_keeper(fixture, peer, NULL);
	fake_welcome(peer, false, 0, &FAKE_LIMITS, NULL);
}

/* Another daemon, that has the session up to these numbers. */
static void restore(struct fixture *fixture, struct fake_peer *peer, uint64_t batch,
		    uint64_t operation, struct hello *ret_hello)
{
	accept_keeper(fixture, peer, OTHER);
	peer->restored = true;
	peer->durable_batch = batch;
	peer->last_operation = peer->durable_operation = operation;
	fake_welcome(peer, false, batch, &FAKE_LIMITS, ret_hello);
}

/* Through what is interned on the way to an Add of one entry (or none, handle UINT32_MAX); not answered. */
static void take_add(struct fake_peer *peer, uint64_t batch, uint32_t handle, int64_t delta,
		     struct request *ret_request)
{
	fake_take(peer, FAKE_ANY, ret_request);
	while (ret_request->type == REQUEST_INTERN) {
		fake_interned(peer, ret_request->id);
		fake_take(peer, FAKE_ANY, ret_request);
	}
	assert_int_equal(ret_request->type, REQUEST_ADD);
	assert_int_equal(ret_request->add.batch, batch);
	assert_int_equal(ret_request->add.n_handles, handle == UINT32_MAX ? 0 : 1);
	if (handle != UINT32_MAX) {
		assert_int_equal(ret_request->add.handles[0], handle);
		assert_int_equal(ret_request->add.deltas[0], delta);
	}
}

static void apply(struct fake_peer *peer, uint64_t batch, uint32_t handle, int64_t delta)
{
	struct request request;

	take_add(peer, batch, handle, delta, &request);
	fake_applied(peer, &request);
}

/* +n of m/a as this batch, applied. */
static void add(struct fixture *fixture, struct fake_peer *peer, uint64_t batch, int64_t n)
{
	ration_add(fixture->a, n);
	apply(peer, batch, 0, n);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
}

/* ---- somebody who asks, on a thread ---- */

enum what {
	CHARGE,
	UNCHARGE,
	FLUSH,
};

struct asker {
	pthread_t thread;
	struct ration *client;
	enum what what;
	struct ration_charge_options options;
	const char *path;
	int result;
	char text[200];
};

static void *ask(void *arg)
{
	struct asker *asker = arg;
	const struct ration_charge_item item = { asker->path, 3 };

	switch (asker->what) {
	case CHARGE:
		asker->result =
			ration_charge(asker->client, &item, 1, &asker->options, FAKE_WAIT_MS, NULL);
		break;
	case UNCHARGE:
		asker->result = ration_uncharge(asker->client, asker->path, 3, false, FAKE_WAIT_MS);
		break;
	case FLUSH:
		asker->result = ration_flush_durable(asker->client, FAKE_WAIT_MS);
		break;
	}
	(void)snprintf(asker->text, sizeof(asker->text), "%s", ration_error());
	return NULL;
}

static void start_asker(struct fixture *fixture, struct asker *asker, enum what what,
			const char *path, uint32_t wait_ms)
{
	*asker = (struct asker){ .client = fixture->client, .what = what, .path = path };
	asker->options = (struct ration_charge_options)RATION_CHARGE_OPTIONS_INIT;
	asker->options.wait_ms = wait_ms;
	assert_int_equal(pthread_create(&asker->thread, NULL, ask, asker), 0);
}

static void start_flush(struct fixture *fixture, struct asker *asker)
{
	start_asker(fixture, asker, FLUSH, "", 0);
}

static void expect(struct asker *asker, int result)
{
	(void)pthread_join(asker->thread, NULL);
	assert_int_equal(asker->result, result);
}

static void charged(struct fake_peer *peer, uint64_t id, uint64_t number, bool granted)
{
	const struct reply reply = { .id = id,
				     .type = REPLY_CHARGED,
				     .charged = { .number = number, .granted = granted } };

	fake_send(peer, &reply);
}

static uint64_t take_charge(struct fake_peer *peer, uint64_t number, const char *path)
{
	struct request request;

	fake_take(peer, REQUEST_CHARGE, &request);
	assert_int_equal(request.charge.number, number);
	assert_int_equal(request.charge.items[0].path.len, strlen(path));
	assert_memory_equal(request.charge.items[0].path.at, path, strlen(path));
	assert_false(request.known.present);
	return request.id;
}

/* Sent again with what is known of it, and answered. */
static void repeat_charge(struct fake_peer *peer, uint64_t number, const char *path, bool done)
{
	struct request request;

	fake_take(peer, REQUEST_CHARGE, &request);
	assert_int_equal(request.charge.number, number);
	assert_int_equal(request.charge.items[0].path.len, strlen(path));
	assert_memory_equal(request.charge.items[0].path.at, path, strlen(path));
	assert_int_equal(request.charge.wait_ms, 0);
	assert_true(request.known.present);
	assert_int_equal(request.known.done, done);
	charged(peer, request.id, number, done);
}

/* A charge that is answered. */
static void charge(struct fixture *fixture, struct fake_peer *peer, uint64_t number,
		   const char *path, bool granted)
{
	struct asker one;

	start_asker(fixture, &one, CHARGE, path, 0);
	charged(peer, take_charge(peer, number, path), number, granted);
	expect(&one, granted ? 0 : RATION_RESOURCE_EXHAUSTED);
}

/* ---- batches ---- */

static void test_applied_and_not_durable_is_sent_to_another_daemon(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, other;
	struct hello hello;

	begin(fixture, &peer);
	add(fixture, &peer, 1, 1);
	add(fixture, &peer, 2, 20);
	add(fixture, &peer, 3, 300);
	fake_durable(&peer, 1, 0);
	fake_expect_silence(&peer, 20);
	fake_hang_up(&peer);

	/* It had more than it could tell. */
	restore(fixture, &other, 2, 0, &hello);
	assert_int_equal(hello.next_batch, 2);
	apply(&other, 3, 0, 300);
	add(fixture, &other, 4, 4000);
	fake_durable(&other, 4, 0);
	fake_expect_silence(&other, 20);
	fake_hang_up(&other);

	restore(fixture, &peer, 4, 0, &hello);
	assert_int_equal(hello.next_batch, 5);
	fake_expect_silence(&peer, 20);
	fake_hang_up(&peer);
}

static void test_all_is_sent_to_a_daemon_that_has_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, other;
	struct hello hello;

	begin(fixture, &peer);
	add(fixture, &peer, 1, 1);
	add(fixture, &peer, 2, 20);
	fake_hang_up(&peer);

	accept_keeper(fixture, &other, OTHER);
	fake_welcome(&other, false, 0, &FAKE_LIMITS, &hello);
	assert_int_equal(hello.next_batch, 1);
	apply(&other, 1, 0, 1);
	apply(&other, 2, 0, 20);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&other);
}

static void test_the_same_daemon_gets_nothing_twice(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, again, other;
	struct request request;
	struct hello hello;

	begin(fixture, &peer);
	add(fixture, &peer, 1, 1);
	ration_add(fixture->a, 20);
	take_add(&peer, 2, 0, 20, &request);
	fake_hang_up(&peer);

	/* Batch 2 was applied too, and 1 is durable by now. */
	accept_keeper(fixture, &again, NULL);
	again.durable_batch = 1;
	fake_welcome(&again, true, 2, &FAKE_LIMITS, &hello);
	assert_int_equal(hello.next_batch, 1);
	add(fixture, &again, 3, 300);
	fake_hang_up(&again);

	restore(fixture, &other, 1, 0, &hello);
	assert_int_equal(hello.next_batch, 2);
	apply(&other, 2, 0, 20);
	apply(&other, 3, 0, 300);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&other);
}

static void test_a_daemon_that_has_forgotten_the_session_has_counted(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, again;
	struct request request;
	struct hello hello;

	begin(fixture, &peer);
	add(fixture, &peer, 1, 1);
	ration_add(fixture->a, 20);
	take_add(&peer, 2, 0, 20, &request);
	fake_hang_up(&peer);

	/* Numbers have no gaps. */
	fake_accept_anew(&fixture->fake, &again, /* keeps= */ true, 0, &FAKE_LIMITS, &hello);
	assert_int_equal(hello.next_batch, 1);
	apply(&again, 1, UINT32_MAX, 0);
	apply(&again, 2, 0, 20);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&again);
}

static void test_a_daemon_without_a_file_ends_the_keeping(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, other;
	struct hello hello;

	begin(fixture, &peer);
	add(fixture, &peer, 1, 1);
	fake_hang_up(&peer);

	fake_accept(&fixture->fake, &other);
	other.incarnation = OTHER;
	fake_welcome(&other, false, 0, &FAKE_LIMITS, NULL);
	apply(&other, 1, 0, 1);
	add(fixture, &other, 2, 20);
	fake_hang_up(&other);

	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 2, &FAKE_LIMITS, &hello);
	assert_int_equal(hello.next_batch, 3);
	fake_expect_silence(&peer, 20);
	fake_hang_up(&peer);
}

static void test_what_was_not_counted_is_not_told_again(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, other;
	struct request request;

	begin(fixture, &peer);
	add(fixture, &peer, 1, 1);
	ration_add(fixture->a, 20);
	ration_add(fixture->b, -5);
	fake_take(&peer, FAKE_ANY, &request);
	if (request.type == REQUEST_INTERN) {
		fake_interned(&peer, request.id);
		fake_take(&peer, REQUEST_ADD, &request);
	}
	assert_int_equal(request.add.n_handles, 2);
	fake_item_error(&peer, request.id, 2, request.add.handles[0] == 0 ? 1 : 0,
			CODE_INVALID_ARGUMENT, "only grows");
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	assert_int_equal(fixture->lost.n, 1);
	fake_hang_up(&peer);

	restore(fixture, &other, 1, 0, NULL);
	apply(&other, 2, 0, 20);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&other);
}

/* A growing number of batches until no more come; returns the number of the last one. */
static uint64_t fill(struct fixture *fixture, struct fake_peer *peer, uint64_t batch,
		     uint64_t *ret_flush)
{
	*ret_flush = 0;
	for (;;) {
		struct request request;

		ration_inc(fixture->a);
		(void)ration_flush(fixture->client, 0);
		if (fake_is_silent(peer, LONG_MS)) {
			return batch - 1;
		}
		fake_take(peer, FAKE_ANY, &request);
		if (request.type == REQUEST_INTERN) {
			fake_interned(peer, request.id);
		} else if (request.type == REQUEST_FLUSH) {
			assert_true(request.flush.durable);
			*ret_flush = request.id;
		} else {
			assert_int_equal(request.add.batch, batch);
			fake_applied(peer, &request);
			batch++;
		}
		assert_true(batch < 10000);
	}
}

static void test_what_is_kept_has_a_bound(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;
	uint64_t last, flush;

	begin(fixture, &peer);
	last = fill(fixture, &peer, 1, &flush);
	/* It has asked for an end, and what comes is merged. */
	assert_int_not_equal(flush, 0);
	assert_in_range(last, 100, FIXTURE_BOUND / 20);
	ration_add(fixture->a, 1000);
	fake_expect_silence(&peer, 50);
	assert_int_equal(ration_flush(fixture->client, 20), -ETIMEDOUT);

	fake_durable(&peer, last, 0);
	fake_flushed(&peer, flush);
	fake_take(&peer, REQUEST_ADD, &request);
	assert_int_equal(request.add.batch, last + 1);
	assert_true(request.add.deltas[0] >= 1000);
	fake_applied(&peer, &request);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&peer);
}

/* ---- flushing ---- */

static void test_a_durable_flush_comes_behind_what_was_added(void **state)
{
	struct fixture *fixture = *state;
	struct asker one;
	struct fake_peer peer;
	uint64_t id;

	begin(fixture, &peer);
	ration_add(fixture->a, 7);
	start_flush(fixture, &one);
	apply(&peer, 1, 0, 7);
	id = fake_take_flush(&peer);
	fake_expect_silence(&peer, 20);
	fake_flushed(&peer, id);
	expect(&one, 0);
	fake_hang_up(&peer);
}

static void test_a_durable_flush_that_fails(void **state)
{
	struct fixture *fixture = *state;
	struct asker one;
	struct fake_peer peer;

	begin(fixture, &peer);
	start_flush(fixture, &one);
	fake_error(&peer, fake_take_flush(&peer), CODE_UNAVAILABLE, "no space left on device");
	expect(&one, RATION_UNAVAILABLE);
	assert_string_equal(one.text, "no space left on device");

	start_flush(fixture, &one);
	fake_error(&peer, fake_take_flush(&peer), CODE_FAILED_PRECONDITION, "no state file");
	expect(&one, RATION_FAILED_PRECONDITION);

	/* And one that works. */
	start_flush(fixture, &one);
	fake_flushed(&peer, fake_take_flush(&peer));
	expect(&one, 0);
	fake_hang_up(&peer);
}

static void test_a_durable_flush_of_an_older_daemon(void **state)
{
	struct fixture *fixture = *state;
	struct asker one;
	struct fake_peer peer;
	struct reply flushed = { .type = REPLY_FLUSHED };

	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &FAKE_LIMITS, NULL);
	start_flush(fixture, &one);
	flushed.id = fake_take_flush(&peer);
	fake_send(&peer, &flushed);
	expect(&one, RATION_FAILED_PRECONDITION);
	fake_hang_up(&peer);
}

static void test_a_durable_flush_outlives_the_daemon(void **state)
{
	struct fixture *fixture = *state;
	struct asker one;
	struct fake_peer peer, other;

	begin(fixture, &peer);
	add(fixture, &peer, 1, 1);
	start_flush(fixture, &one);
	(void)fake_take_flush(&peer);
	fake_hang_up(&peer);

	restore(fixture, &other, 0, 0, NULL);
	apply(&other, 1, 0, 1);
	fake_flushed(&other, fake_take_flush(&other));
	expect(&one, 0);
	fake_hang_up(&other);
}

static void test_those_who_come_late_wait_for_the_next_flush(void **state)
{
	struct fixture *fixture = *state;
	struct asker one, two, three;
	struct fake_peer peer;
	uint64_t first;

	begin(fixture, &peer);
	start_flush(fixture, &one);
	first = fake_take_flush(&peer);
	start_flush(fixture, &two);
	start_flush(fixture, &three);
	fake_expect_silence(&peer, 50);
	fake_flushed(&peer, first);
	expect(&one, 0);
	fake_flushed(&peer, fake_take_flush(&peer));
	expect(&two, 0);
	expect(&three, 0);
	fake_expect_silence(&peer, 20);
	fake_hang_up(&peer);
}

/* Whether the daemon still has what it applied can't be known while it is away. */
static void test_a_flush_without_a_daemon_waits_for_it(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, other;

	begin(fixture, &peer);
	add(fixture, &peer, 1, 1);
	fake_close(&fixture->fake);
	fake_hang_up(&peer);
	while (ration_flush(fixture->client, 20) == 0) {
		(void)usleep(1000);
	}
	assert_int_equal(ration_flush(fixture->client, 20), -ENOTCONN);
	fake_listen(&fixture->fake, fixture->dir);
	restore(fixture, &other, 0, 0, NULL);
	apply(&other, 1, 0, 1);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&other);
}

/* ---- operations ---- */

static void test_answered_charges_are_told_to_another_daemon(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, other;
	struct hello hello;

	begin(fixture, &peer);
	charge(fixture, &peer, 1, "m/durable", true);
	charge(fixture, &peer, 2, "m/granted", true);
	charge(fixture, &peer, 3, "m/refused", false);
	charge(fixture, &peer, 4, "m/too", true);
	fake_durable(&peer, 0, 1);
	fake_expect_silence(&peer, 20);
	fake_hang_up(&peer);

	restore(fixture, &other, 0, 1, &hello);
	assert_int_equal(hello.next_operation, 2);
	repeat_charge(&other, 2, "m/granted", true);
	repeat_charge(&other, 3, "m/refused", false);
	repeat_charge(&other, 4, "m/too", true);
	charge(fixture, &other, 5, "m/new", true);
	fake_durable(&other, 0, 5);
	fake_expect_silence(&other, 20);
	fake_hang_up(&other);

	restore(fixture, &peer, 0, 5, &hello);
	assert_int_equal(hello.next_operation, 6);
	fake_expect_silence(&peer, 20);
	fake_hang_up(&peer);
}

static void test_the_same_daemon_is_told_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, again, other;
	struct hello hello;

	begin(fixture, &peer);
	charge(fixture, &peer, 1, "m/x", true);
	fake_hang_up(&peer);

	accept_keeper(fixture, &again, NULL);
	again.last_operation = 1;
	fake_welcome(&again, true, 0, &FAKE_LIMITS, &hello);
	assert_int_equal(hello.next_operation, 1);
	charge(fixture, &again, 2, "m/y", true);
	fake_hang_up(&again);

	/* But another one, also if it has nothing at all. */
	accept_keeper(fixture, &other, OTHER);
	fake_welcome(&other, false, 0, &FAKE_LIMITS, NULL);
	repeat_charge(&other, 1, "m/x", true);
	repeat_charge(&other, 2, "m/y", true);
	fake_expect_silence(&other, 20);
	fake_hang_up(&other);
}

/* A charge that waits for room is answered behind others: it is told with them, in the order of numbers. */
static void test_a_charge_answered_late_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct asker slow, unanswered;
	struct fake_peer peer, other;
	struct request request;
	uint64_t slow_id;

	begin(fixture, &peer);
	start_asker(fixture, &slow, CHARGE, "m/slow", 60000);
	slow_id = take_charge(&peer, 1, "m/slow");
	charge(fixture, &peer, 2, "m/x", true);
	start_asker(fixture, &unanswered, CHARGE, "m/unanswered", 60000);
	(void)take_charge(&peer, 3, "m/unanswered");
	charge(fixture, &peer, 4, "m/y", true);
	charged(&peer, slow_id, 1, true);
	expect(&slow, 0);
	fake_hang_up(&peer);

	accept_keeper(fixture, &other, OTHER);
	other.restored = true;
	other.last_operation = 3;
	fake_welcome(&other, false, 0, &FAKE_LIMITS, NULL);
	repeat_charge(&other, 1, "m/slow", true);
	repeat_charge(&other, 2, "m/x", true);
	repeat_charge(&other, 4, "m/y", true);
	fake_take(&other, REQUEST_CHARGE, &request);
	assert_int_equal(request.charge.number, 3);
	assert_false(request.known.present);
	charged(&other, request.id, 3, true);
	expect(&unanswered, 0);
	charge(fixture, &other, 5, "m/new", true);
	fake_hang_up(&other);
}

static void test_what_has_no_answer_comes_behind_what_is_known(void **state)
{
	struct fixture *fixture = *state;
	struct asker one;
	struct fake_peer peer, other;
	uint64_t id;

	begin(fixture, &peer);
	charge(fixture, &peer, 1, "m/x", true);
	charge(fixture, &peer, 2, "m/y", true);
	start_asker(fixture, &one, CHARGE, "m/z", 0);
	(void)take_charge(&peer, 3, "m/z");
	fake_hang_up(&peer);

	restore(fixture, &other, 0, 1, NULL);
	repeat_charge(&other, 2, "m/y", true);
	id = take_charge(&other, 3, "m/z");
	charged(&other, id, 3, true);
	expect(&one, 0);
	fake_hang_up(&other);
}

/* The connection to the new daemon breaks amid the telling, or before its Welcome has come. */
static void test_a_broken_connection_amid_the_telling(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, other, again, third;
	struct request request;

	begin(fixture, &peer);
	add(fixture, &peer, 1, 1);
	add(fixture, &peer, 2, 20);
	charge(fixture, &peer, 1, "m/x", true);
	charge(fixture, &peer, 2, "m/y", true);
	charge(fixture, &peer, 3, "m/z", true);
	fake_hang_up(&peer);

	accept_keeper(fixture, &other, OTHER);
	fake_take(&other, REQUEST_HELLO, &request);
	fake_hang_up(&other);

	/* It had restored operation 1 and batch 1. */
	accept_keeper(fixture, &again, OTHER);
	again.last_operation = again.durable_operation = 1;
	again.durable_batch = 1;
	fake_welcome(&again, true, 1, &FAKE_LIMITS, NULL);
	repeat_charge(&again, 2, "m/y", true);
	fake_take(&again, REQUEST_CHARGE, &request);
	assert_int_equal(request.charge.number, 3);
	take_add(&again, 2, 0, 20, &request);
	fake_hang_up(&again);

	accept_keeper(fixture, &third, OTHER);
	third.last_operation = 2;
	third.durable_operation = 1;
	third.durable_batch = 1;
	fake_welcome(&third, true, 1, &FAKE_LIMITS, NULL);
	repeat_charge(&third, 3, "m/z", true);
	apply(&third, 2, 0, 20);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_expect_silence(&third, 20);
	fake_hang_up(&third);
}

/* Then numbers are put right, and the others are told. */
static void test_a_daemon_that_can_not_repeat(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, other, again;
	struct request request;

	begin(fixture, &peer);
	charge(fixture, &peer, 1, "m/x", true);
	charge(fixture, &peer, 2, "m/y", true);
	fake_hang_up(&peer);

	restore(fixture, &other, 0, 0, NULL);
	fake_take(&other, REQUEST_CHARGE, &request);
	fake_error(&other, request.id, CODE_RESOURCE_EXHAUSTED, "no memory");
	fake_take(&other, REQUEST_CHARGE, &request);
	fake_expect_end(&other);
	fake_hang_up(&other);

	accept_keeper(fixture, &again, OTHER);
	fake_welcome(&again, true, 0, &FAKE_LIMITS, NULL);
	repeat_charge(&again, 1, "m/y", true);
	fake_expect_silence(&again, 20);
	fake_hang_up(&again);
}

static void test_what_is_given_back_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct asker back;
	struct fake_peer peer, other;
	struct request request;
	struct reply uncharged = { .type = REPLY_UNCHARGED };

	begin(fixture, &peer);
	charge(fixture, &peer, 1, "m/x", true);
	start_asker(fixture, &back, UNCHARGE, "m/x", 0);
	fake_take(&peer, REQUEST_UNCHARGE, &request);
	uncharged.id = request.id;
	uncharged.uncharged.number = 2;
	fake_send(&peer, &uncharged);
	expect(&back, 0);
	fake_hang_up(&peer);

	restore(fixture, &other, 0, 1, NULL);
	fake_take(&other, REQUEST_UNCHARGE, &request);
	assert_int_equal(request.uncharge.number, 2);
	assert_int_equal(request.uncharge.amount, 3);
	assert_true(request.known.present);
	assert_true(request.known.done);
	fake_hang_up(&other);
}

/*
 * Twice as many charges as fit what may be kept. The Flush that is asked for meanwhile is answered with `code`, or CODE_OK: never. All must be
 * answered all the same.
 */
static void charge_beyond_the_bound(struct fixture *fixture, enum code code)
{
	static char path[513] = "m";
	struct fake_peer peer;
	unsigned int n_flushes = 0;

	/* As long as can be, so that it takes fewer. */
	for (int i = 0; i < 4; i++) {
		(void)snprintf(path + 1 + i * 120, 121, "/%0119d", i);
	}
	begin(fixture, &peer);
	for (uint64_t number = 1; number <= 2 * FIXTURE_BOUND / 480; number++) {
		struct request request;
		struct asker one;

		start_asker(fixture, &one, CHARGE, path, 0);
		fake_take(&peer, FAKE_ANY, &request);
		while (request.type == REQUEST_FLUSH) {
			n_flushes++;
			if (code != CODE_OK) {
				fake_error(&peer, request.id, code, "no space left on device");
			}
			fake_take(&peer, FAKE_ANY, &request);
		}
		assert_int_equal(request.charge.number, number);
		charged(&peer, request.id, number, true);
		expect(&one, 0);
	}
	assert_true(n_flushes > 0);
	fake_hang_up(&peer);
}

static void test_charges_go_on_while_the_disk_fails(void **state)
{
	charge_beyond_the_bound(*state, CODE_UNAVAILABLE);
}

/* After a second without a word. */
static void test_charges_go_on_while_the_disk_is_stuck(void **state)
{
	charge_beyond_the_bound(*state, CODE_OK);
}

/* ---- leases ---- */

static uint32_t take_lease(struct fake_peer *peer, uint64_t number, int64_t granted)
{
	struct request request;
	struct reply reply = { .type = REPLY_LEASED };

	fake_take(peer, REQUEST_LEASE, &request);
	assert_int_equal(request.lease.number, number);
	reply.id = request.id;
	reply.leased = (struct leased){
		.number = number, .lease = request.lease.lease, .ttl_ms = 60000, .granted = granted
	};
	fake_send(peer, &reply);
	return request.lease.lease;
}

static void tell_kind(struct fake_peer *peer)
{
	struct request request;
	struct reply reply = { .type = REPLY_METRIC,
			       .metric = { .name = { .at = "m", .len = 1 } } };

	fake_take(peer, REQUEST_METRIC_GET, &request);
	reply.id = request.id;
	fake_send(peer, &reply);
}

static void test_a_lease_goes_on_with_another_daemon(void **state)
{
	struct fixture *fixture = *state;
	struct ration_lease *lease = ration_lease_open(fixture->client, "m/l", 100, 60000, NULL);
	struct fake_peer peer, other;
	struct request request;
	struct reply reply = { .type = REPLY_LEASED };
	uint32_t id;

	assert_non_null(lease);
	begin(fixture, &peer);
	id = take_lease(&peer, 1, 100);
	tell_kind(&peer);
	assert_int_equal(ration_lease_wait(lease, FAKE_WAIT_MS), 0);
	assert_true(ration_try(lease, 40, RATION_CLOSED));
	fake_hang_up(&peer);

	/* Nothing of it was durable, but all is kept here: it is made again, with the units that it had. */
	accept_keeper(fixture, &other, OTHER);
	fake_welcome(&other, false, 0, &FAKE_LIMITS, NULL);
	fake_take(&other, REQUEST_LEASE, &request);
	assert_int_equal(request.lease.number, 1);
	assert_int_equal(request.lease.lease, id);
	assert_true(request.known.present);
	assert_true(request.known.done);
	assert_int_equal(request.known.granted, 100);
	reply.id = request.id;
	reply.leased = (struct leased){ .number = 1, .lease = id, .ttl_ms = 60000, .granted = 100 };
	fake_send(&other, &reply);
	fake_expect_silence(&other, 20);
	assert_true(ration_try(lease, 20, RATION_CLOSED));
	fake_durable(&other, 0, 1);

	/* The report counts all that was spent. */
	fake_take(&other, REQUEST_LEASE_RENEW, &request);
	assert_int_equal(request.lease_renew.lease, id);
	assert_int_equal(request.lease_renew.spent, 60);
	reply.id = request.id;
	reply.leased = (struct leased){ .number = 2, .lease = id, .ttl_ms = 60000, .granted = 60 };
	fake_send(&other, &reply);
	fake_expect_silence(&other, 20);
	fake_hang_up(&other);

	/* Durable: neither is told. The renewal is not. */
	restore(fixture, &peer, 0, 1, NULL);
	fake_take(&peer, REQUEST_LEASE_RENEW, &request);
	assert_int_equal(request.lease_renew.spent, 60);
	assert_int_equal(request.known.granted, 60);
	reply.id = request.id;
	fake_send(&peer, &reply);
	fake_expect_silence(&peer, 20);
	fake_hang_up(&peer);
}

/* Some of it was durable, and the daemon knows nothing: what the session held is gone, and the lease begins anew. */
static void test_a_session_that_is_gone_takes_its_leases_along(void **state)
{
	struct fixture *fixture = *state;
	struct ration_lease *lease = ration_lease_open(fixture->client, "m/l", 100, 60000, NULL);
	struct fake_peer peer, other;

	begin(fixture, &peer);
	(void)take_lease(&peer, 1, 100);
	tell_kind(&peer);
	assert_int_equal(ration_lease_wait(lease, FAKE_WAIT_MS), 0);
	charge(fixture, &peer, 2, "m/x", true);
	fake_durable(&peer, 0, 1);
	fake_expect_silence(&peer, 20);
	fake_hang_up(&peer);

	accept_keeper(fixture, &other, OTHER);
	fake_welcome(&other, false, 0, &FAKE_LIMITS, NULL);
	repeat_charge(&other, 2, "m/x", true);
	(void)take_lease(&other, 3, 100);
	fake_hang_up(&other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup_counters, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_applied_and_not_durable_is_sent_to_another_daemon),
		TEST(test_all_is_sent_to_a_daemon_that_has_nothing),
		TEST(test_the_same_daemon_gets_nothing_twice),
		TEST(test_a_daemon_that_has_forgotten_the_session_has_counted),
		TEST(test_a_daemon_without_a_file_ends_the_keeping),
		TEST(test_what_was_not_counted_is_not_told_again),
		TEST(test_what_is_kept_has_a_bound),
		TEST(test_a_durable_flush_comes_behind_what_was_added),
		TEST(test_a_durable_flush_that_fails),
		TEST(test_a_durable_flush_of_an_older_daemon),
		TEST(test_a_durable_flush_outlives_the_daemon),
		TEST(test_those_who_come_late_wait_for_the_next_flush),
		TEST(test_a_flush_without_a_daemon_waits_for_it),
		TEST(test_answered_charges_are_told_to_another_daemon),
		TEST(test_the_same_daemon_is_told_nothing),
		TEST(test_a_charge_answered_late_is_told),
		TEST(test_what_has_no_answer_comes_behind_what_is_known),
		TEST(test_a_broken_connection_amid_the_telling),
		TEST(test_a_daemon_that_can_not_repeat),
		TEST(test_what_is_given_back_is_told),
		TEST(test_charges_go_on_while_the_disk_fails),
		TEST(test_charges_go_on_while_the_disk_is_stuck),
		TEST(test_a_lease_goes_on_with_another_daemon),
		TEST(test_a_session_that_is_gone_takes_its_leases_along),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
