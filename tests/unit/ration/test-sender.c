/*
 * What libration sends, keeps and sends again: its side of PROTOCOL.md sections 4 to 6, against a scripted daemon.
 */
#include "tests/support/test.h"
#include "tests/unit/ration/fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An Intern of one path. */
static void take_intern(struct fake_peer *peer, uint32_t handle, const char *path)
{
	struct request request;

	fake_take(peer, REQUEST_INTERN, &request);
	assert_int_equal(request.intern.first_handle, handle);
	assert_int_equal(request.intern.n_paths, 1);
	assert_int_equal(request.intern.paths[0].len, strlen(path));
	assert_memory_equal(request.intern.paths[0].at, path, strlen(path));
	fake_interned(peer, request.id);
}

/* An Add of one entry; it is not answered. */
static void take_add(struct fake_peer *peer, uint64_t batch, uint32_t handle, int64_t delta,
		     struct request *ret_request)
{
	fake_take(peer, REQUEST_ADD, ret_request);
	assert_int_equal(ret_request->add.batch, batch);
	assert_int_equal(ret_request->add.n_handles, 1);
	assert_int_equal(ret_request->add.n_deltas, 1);
	assert_int_equal(ret_request->add.handles[0], handle);
	assert_int_equal(ret_request->add.deltas[0], delta);
}

static void take_and_apply(struct fake_peer *peer, uint64_t batch, uint32_t handle, int64_t delta)
{
	struct request request;

	take_add(peer, batch, handle, delta, &request);
	fake_applied(peer, &request);
}

/* Accept, welcome a fresh session and see +1 of m/a through: handle 0 is known then, and batch 1 applied. */
static void count_first(struct fixture *fixture, struct fake_peer *peer)
{
	ration_inc(fixture->a);
	take_intern(peer, 0, "m/a");
	take_and_apply(peer, 1, 0, 1);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
}

static void begin(struct fixture *fixture, struct fake_peer *peer)
{
	fake_accept(&fixture->fake, peer);
	fake_welcome(peer, false, 0, &FAKE_LIMITS, NULL);
	count_first(fixture, peer);
}

/* ---- the ordinary course ---- */

static void test_hello_says_who_and_where_to_begin(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct hello hello;

	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &FAKE_LIMITS, &hello);
	assert_int_equal(hello.version, 1);
	assert_int_equal(hello.session.len, 16);
	assert_int_equal(hello.lifetime_ms, 60000);
	assert_int_equal(hello.next_batch, 1);
	assert_memory_equal(hello.agent.at, "libration/", 10);
	fake_expect_silence(&peer, 30);
	fake_hang_up(&peer);
}

static void test_paths_are_told_before_their_first_batch(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;

	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &FAKE_LIMITS, NULL);
	ration_add(fixture->b, 7);
	take_intern(&peer, 1, "m/b");
	take_and_apply(&peer, 1, 1, 7);
	ration_add(fixture->a, -3);
	take_intern(&peer, 0, "m/a");
	take_and_apply(&peer, 2, 0, -3);
	ration_add(fixture->b, 1);
	take_and_apply(&peer, 3, 1, 1);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_expect_silence(&peer, 30);
	fake_hang_up(&peer);
}

static void test_flush_waits_for_the_acknowledgement(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;

	begin(fixture, &peer);
	ration_add(fixture->a, 5);
	take_add(&peer, 2, 0, 5, &request);
	assert_int_equal(ration_flush(fixture->client, 30), -ETIMEDOUT);
	assert_string_not_equal(ration_error(), "");
	fake_applied(&peer, &request);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&peer);
}

static void test_growth_before_the_daemon_is_there(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;

	for (int i = 0; i < 1000; i++) {
		ration_add(fixture->a, 3);
	}
	(void)usleep(30000);
	ration_add(fixture->a, 1);
	assert_int_equal(ration_flush(fixture->client, 20), -ENOTCONN);
	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &FAKE_LIMITS, NULL);
	take_intern(&peer, 0, "m/a");
	take_and_apply(&peer, 1, 0, 3001);
	fake_hang_up(&peer);
}

static void test_what_cancels_out_is_not_sent(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;

	ration_add(fixture->a, 5);
	ration_add(fixture->a, -5);
	ration_add(fixture->b, 1);
	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &FAKE_LIMITS, NULL);
	take_intern(&peer, 1, "m/b");
	take_and_apply(&peer, 1, 1, 1);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&peer);
}

/* ---- connections that break ---- */

static void test_unapplied_batch_is_sent_again(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, again;
	struct request request;
	struct hello hello;

	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &FAKE_LIMITS, NULL);
	ration_inc(fixture->a);
	take_intern(&peer, 0, "m/a");
	take_add(&peer, 1, 0, 1, &request);
	fake_hang_up(&peer);

	fake_accept(&fixture->fake, &again);
	ration_add(fixture->a, 10); /* grows meanwhile; must not change batch 1 */
	fake_welcome(&again, true, 0, &FAKE_LIMITS, &hello);
	assert_int_equal(hello.next_batch, 1);
	take_intern(&again, 0, "m/a"); /* whether the first one was read, nobody knows */
	take_and_apply(&again, 1, 0, 1);
	take_and_apply(&again, 2, 0, 10);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&again);
}

static void test_applied_batch_is_not_sent_again(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, again;
	struct request request;

	begin(fixture, &peer);
	ration_add(fixture->a, 2);
	take_add(&peer, 2, 0, 2, &request);
	fake_hang_up(&peer);

	fake_accept(&fixture->fake, &again);
	fake_welcome(&again, true, 2, &FAKE_LIMITS, NULL);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	ration_add(fixture->a, 4);
	take_and_apply(&again, 3, 0, 4); /* and its path is known */
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&again);
}

static void test_all_is_told_again_to_a_new_daemon(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, again;
	struct request request;
	struct hello hello;

	begin(fixture, &peer);
	ration_add(fixture->a, 2);
	take_add(&peer, 2, 0, 2, &request);
	ration_add(fixture->b, 3);
	take_intern(&peer, 1, "m/b");
	take_add(&peer, 3, 1, 3, &request);
	fake_hang_up(&peer);

	fake_accept_anew(&fixture->fake, &again, /* keeps= */ false, 1, &FAKE_LIMITS, &hello);
	assert_int_equal(hello.next_batch, 2);
	take_intern(&again, 0, "m/a");
	take_and_apply(&again, 2, 0, 2);
	take_intern(&again, 1, "m/b");
	take_and_apply(&again, 3, 1, 3);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&again);
}

/* The daemon made the session, but its Welcome did not arrive: so the session is resumed, and yet nothing was told to it. */
static void test_first_welcome_is_lost(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, again;
	struct request request;

	fake_accept(&fixture->fake, &peer);
	fake_take(&peer, REQUEST_HELLO, &request);
	fake_hang_up(&peer);
	ration_add(fixture->a, 2);
	fake_accept(&fixture->fake, &again);
	fake_welcome(&again, true, 0, &FAKE_LIMITS, NULL);
	take_intern(&again, 0, "m/a");
	take_and_apply(&again, 1, 0, 2);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&again);
}

/* Several batches are under way when the counter goes: all are given back, told once, and none is lost. */
static void test_removal_under_several_batches(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;
	uint64_t ids[6];
	int64_t sum = 0;

	begin(fixture, &peer);
	for (uint64_t i = 0; i < 6; i++) {
		ration_add(fixture->a, 10);
		take_add(&peer, 2 + i, 0, 10, &request);
		ids[i] = request.id;
	}
	for (uint64_t i = 0; i < 6; i++) {
		fake_item_error(&peer, ids[i], 2 + i, 0, CODE_NOT_FOUND, "gone");
	}
	take_intern(&peer, 0, "m/a");
	while (sum < 60) {
		fake_take(&peer, REQUEST_ADD, &request);
		sum += request.add.deltas[0];
		fake_applied(&peer, &request);
	}
	assert_int_equal(sum, 60);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	assert_int_equal(fixture->lost.n, 0);
	fake_hang_up(&peer);
}

static void test_session_is_kept_over_connections(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, again;
	char session[16];
	struct hello hello;

	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &FAKE_LIMITS, &hello);
	memcpy(session, hello.session.at, sizeof(session));
	fake_goodbye(&peer, CODE_UNAVAILABLE, "shutting down");
	fake_expect_end(&peer);
	fake_accept(&fixture->fake, &again);
	fake_welcome(&again, false, 0, &FAKE_LIMITS, &hello);
	assert_memory_equal(hello.session.at, session, sizeof(session));
	fake_hang_up(&again);
	fake_hang_up(&peer);
}

static void test_foreign_session_is_given_up(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, again;
	char session[16];
	struct hello hello;

	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, true, 77, &FAKE_LIMITS, &hello);
	memcpy(session, hello.session.at, sizeof(session));
	fake_expect_end(&peer);
	fake_accept(&fixture->fake, &again);
	fake_welcome(&again, false, 0, &FAKE_LIMITS, &hello);
	assert_memory_not_equal(hello.session.at, session, sizeof(session));
	ration_inc(fixture->a);
	take_intern(&again, 0, "m/a");
	take_and_apply(&again, 1, 0, 1);
	fake_hang_up(&again);
	fake_hang_up(&peer);
}

static void test_nonsense_ends_the_connection(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} nonsense[] = {
		{ "\xff\xff\xff\xff", 4 },	       /* no length */
		{ "\x80\x80\x41", 3 },		       /* too long */
		{ "\x02\x08\x80", 3 },		       /* no message */
		{ "\x06\x08\x03\x2a\x02\x08\x09", 7 }, /* Applied of a batch that was not sent */
		{ "\x04\x08\x63\x22\x00", 5 },	       /* Interned nobody asked for */
	};
	struct fixture *fixture = *state;
	struct fake_peer peer;

	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
		fake_accept(&fixture->fake, &peer);
		fake_welcome(&peer, /* resumed= */ i > 0, 0, &FAKE_LIMITS, NULL);
		fake_send_bytes(&peer, nonsense[i].bytes, nonsense[i].len);
		fake_expect_end(&peer);
		fake_hang_up(&peer);
	}
	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, /* resumed= */ true, 0, &FAKE_LIMITS, NULL);
	count_first(fixture, &peer);
	fake_hang_up(&peer);
}

static void test_what_a_newer_daemon_says_is_skipped(void **state)
{
	/* Reply { id: 2, field 31 {} }: no body that is known. */
	static const char body[] = "\x05\x08\x02\xfa\x01\x00";
	/* Reply { id: 3, applied { batch: 1, field 99: 1 }, field 98: 1 } */
	static const char applied[] = "\x0c\x08\x03\x2a\x05\x08\x01\x98\x06\x01\x90\x06\x01";
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;

	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &FAKE_LIMITS, NULL);
	fake_send_bytes(&peer, body, sizeof(body) - 1);
	ration_inc(fixture->a);
	take_intern(&peer, 0, "m/a");
	take_add(&peer, 1, 0, 1, &request);
	assert_int_equal(request.id, 3);
	fake_send_bytes(&peer, applied, sizeof(applied) - 1);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&peer);
}

/* ---- what the daemon does not count ---- */

static void test_refused_entry_is_reported(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;

	begin(fixture, &peer);
	ration_add(fixture->a, -4);
	take_add(&peer, 2, 0, -4, &request);
	fake_item_error(&peer, request.id, 2, 0, CODE_INVALID_ARGUMENT, "only grows");
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	assert_int_equal(fixture->lost.n, 1);
	assert_int_equal(fixture->lost.code, RATION_INVALID_ARGUMENT);
	assert_int_equal(fixture->lost.amount, -4);
	assert_string_equal(fixture->lost.path, "m/a");
	assert_string_equal(fixture->lost.text, "only grows");
	fake_hang_up(&peer);
}

static void test_removed_counter_is_told_again_and_counted(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;

	begin(fixture, &peer);
	ration_add(fixture->a, 4);
	take_add(&peer, 2, 0, 4, &request);
	fake_item_error(&peer, request.id, 2, 0, CODE_NOT_FOUND, "gone");
	take_intern(&peer, 0, "m/a");
	take_add(&peer, 3, 0, 4, &request);
	assert_int_equal(ration_flush(fixture->client, 20),
			 -ETIMEDOUT); /* what was given back is waited for */
	fake_applied(&peer, &request);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	assert_int_equal(fixture->lost.n, 0);
	fake_hang_up(&peer);
}

static void test_counter_that_stays_unknown_is_given_up(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;
	uint64_t batch = 2;

	begin(fixture, &peer);
	ration_add(fixture->a, 4);
	take_add(&peer, batch, 0, 4, &request);
	fake_item_error(&peer, request.id, batch, 0, CODE_NOT_FOUND, "gone");
	for (batch = 3; batch <= 4; batch++) {
		take_intern(&peer, 0, "m/a");
		take_add(&peer, batch, 0, 4, &request);
		fake_item_error(&peer, request.id, batch, 0, CODE_NOT_FOUND, "gone");
	}
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	assert_int_equal(fixture->lost.n, 1);
	assert_int_equal(fixture->lost.code, RATION_NOT_FOUND);
	assert_int_equal(fixture->lost.amount, 4);
	fake_hang_up(&peer);
}

static void test_refused_path_is_reported_with_its_reason(void **state)
{
	struct fixture *fixture = *state;
	struct item_error refused = { .index = 0,
				      .code = CODE_RESOURCE_EXHAUSTED,
				      .text = text_of("full") };
	struct reply reply = { .type = REPLY_INTERNED,
			       .interned = { .n_errors = 1, .errors = &refused } };
	struct fake_peer peer;
	struct request request;

	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &FAKE_LIMITS, NULL);
	ration_add(fixture->a, 4);
	fake_take(&peer, REQUEST_INTERN, &request);
	reply.id = request.id;
	fake_send(&peer, &reply);
	take_add(&peer, 1, 0, 4, &request);
	fake_item_error(&peer, request.id, 1, 0, CODE_NOT_FOUND, "no counter behind this handle");
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	assert_int_equal(fixture->lost.n, 1);
	assert_int_equal(fixture->lost.code, RATION_RESOURCE_EXHAUSTED);
	assert_string_equal(fixture->lost.text, "full");
	assert_int_equal(fixture->lost.amount, 4);

	/* For a while the daemon is not asked again. */
	ration_add(fixture->a, 6);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	assert_int_equal(fixture->lost.n, 2);
	assert_int_equal(fixture->lost.code, RATION_RESOURCE_EXHAUSTED);
	assert_string_equal(fixture->lost.text, "full");
	assert_int_equal(fixture->lost.amount, 10);
	fake_expect_silence(&peer, 0);

	/* Then it is. */
	(void)usleep(1100000);
	ration_add(fixture->a, 1);
	take_intern(&peer, 0, "m/a");
	take_and_apply(&peer, 2, 0, 1);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	assert_int_equal(fixture->lost.n, 2);
	fake_hang_up(&peer);
}

static void test_poisoned_batch_is_given_up_in_the_end(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;

	for (int i = 0; i < 5; i++) {
		fake_accept(&fixture->fake, &peer);
		fake_welcome(&peer, i > 0, 0, &FAKE_LIMITS, NULL);
		if (i == 0) {
			ration_add(fixture->a, 9);
		}
		take_intern(&peer, 0, "m/a");
		take_add(&peer, 1, 0, 9, &request);
		if (i % 2 == 0) {
			fake_error(&peer, request.id, CODE_INVALID_ARGUMENT, "no such thing");
		} else {
			fake_goodbye(&peer, CODE_INVALID_ARGUMENT, "no such thing");
		}
		fake_expect_end(&peer);
		fake_hang_up(&peer);
	}
	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, true, 0, &FAKE_LIMITS, NULL);
	fake_take(&peer, REQUEST_ADD, &request); /* the number is used up, with nothing in it */
	assert_int_equal(request.add.batch, 1);
	assert_int_equal(request.add.n_handles, 0);
	fake_applied(&peer, &request);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	assert_int_equal(fixture->lost.n, 1);
	assert_int_equal(fixture->lost.code, RATION_INVALID_ARGUMENT);
	assert_int_equal(fixture->lost.amount, 9);
	fake_hang_up(&peer);
}

static void test_what_waits_stays_within_int64(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;

	ration_add(fixture->a, INT64_MAX);
	ration_add(fixture->a, INT64_MAX); /* refused, whole */
	ration_add(fixture->b, INT64_MIN);
	ration_add(fixture->b, -(INT64_C(1) << 32));
	assert_int_equal(ration_flush(fixture->client, 50), -ENOTCONN);
	assert_int_equal(fixture->lost.n, 2);
	assert_int_equal(fixture->lost.code, RATION_OUT_OF_RANGE);
	assert_int_equal(fixture->lost.amount, INT64_MAX - (INT64_C(1) << 32));
	ration_add(fixture->b, INT64_C(1) << 32);
	assert_int_equal(ration_flush(fixture->client, 0), -ENOTCONN); /* collects */
	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &FAKE_LIMITS, NULL);
	{
		struct request request;

		fake_take(&peer, REQUEST_INTERN, &request);
		assert_int_equal(request.intern.n_paths, 2);
		fake_interned(&peer, request.id);
		fake_take(&peer, REQUEST_ADD, &request);
		assert_int_equal(request.add.n_handles, 2);
		assert_int_equal(request.add.deltas[0], INT64_MAX);
		assert_int_equal(request.add.deltas[1], INT64_MIN + (INT64_C(1) << 32));
		fake_applied(&peer, &request);
	}
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&peer);
}

static void test_edges_of_the_fast_way(void **state)
{
	static const int64_t amounts[] = {
		INT32_MAX,
		(int64_t)INT32_MAX + 1,
		(int64_t)INT32_MIN,
		(int64_t)INT32_MIN - 1,
		(INT64_C(1) << 32) + 1,
		-(INT64_C(1) << 33),
		0,
	};
	struct fixture *fixture = *state;
	struct fake_peer peer;
	int64_t sum = 0;

	begin(fixture, &peer);
	for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
		ration_add(fixture->a, amounts[i]);
		sum += amounts[i];
	}
	while (sum != 0) {
		struct request request;

		fake_take(&peer, REQUEST_ADD, &request);
		assert_int_equal(request.add.n_handles, 1);
		sum -= request.add.deltas[0];
		fake_applied(&peer, &request);
	}
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&peer);
}

/* ---- limits ---- */

static struct ration_counter *many(struct fixture *fixture, unsigned i)
{
	char path[32];
	struct ration_counter *counter;

	(void)snprintf(path, sizeof(path), "many/%u", i);
	counter = ration_counter(fixture->client, path);
	assert_non_null(counter);
	return counter;
}

static void test_the_daemons_limits_are_kept(void **state)
{
	struct fixture *fixture = *state;
	struct limits limits = FAKE_LIMITS;
	struct fake_peer peer;
	uint64_t expected_batch = 1;
	size_t n_added = 0, n_told = 0;

	limits.max_items = 10;
	for (unsigned i = 0; i < 95; i++) {
		ration_add(many(fixture, i), 1 + i);
	}
	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &limits, NULL);
	while (n_added < 95) {
		struct request request;

		fake_take(&peer, FAKE_ANY, &request);
		if (request.type == REQUEST_INTERN) {
			assert_in_range(request.intern.n_paths, 1, 10);
			n_told += request.intern.n_paths;
			fake_interned(&peer, request.id);
		} else {
			assert_in_range(request.add.n_handles, 1, 10);
			assert_int_equal(request.add.batch, expected_batch++);
			n_added += request.add.n_handles;
			fake_applied(&peer, &request);
		}
	}
	assert_int_equal(n_told, 95);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&peer);
}

static void test_counters_beyond_the_daemons_handles_are_reported(void **state)
{
	struct fixture *fixture = *state;
	struct limits limits = FAKE_LIMITS;
	struct fake_peer peer;

	limits.max_handles = 2;
	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &limits, NULL);
	ration_add(many(fixture, 0), 3); /* handle 2 */
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	assert_int_equal(fixture->lost.n, 1);
	assert_int_equal(fixture->lost.code, RATION_RESOURCE_EXHAUSTED);
	ration_inc(fixture->b); /* handle 1 */
	take_intern(&peer, 1, "m/b");
	take_and_apply(&peer, 1, 1, 1);
	fake_hang_up(&peer);
}

static void test_batches_are_cut_anew_for_lower_limits(void **state)
{
	struct fixture *fixture = *state;
	struct limits limits = FAKE_LIMITS;
	struct fake_peer peer;
	struct request request;
	int64_t sum = 0;

	for (unsigned i = 0; i < 100; i++) {
		ration_inc(many(fixture, i));
	}
	assert_int_equal(ration_flush(fixture->client, 0), -ENOTCONN); /* collects */
	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &FAKE_LIMITS, NULL);
	fake_take(&peer, REQUEST_INTERN, &request);
	fake_take(&peer, REQUEST_ADD, &request);
	fake_hang_up(&peer);

	limits.max_items = 10;
	fake_accept_anew(&fixture->fake, &peer, /* keeps= */ false, 0, &limits, NULL);
	fake_take(&peer, REQUEST_ADD, &request);
	assert_int_equal(request.add.batch, 1);
	assert_int_equal(request.add.n_handles, 0);
	fake_applied(&peer, &request);
	for (uint64_t batch = 2; sum < 100; batch++) {
		fake_take(&peer, REQUEST_INTERN, &request);
		fake_interned(&peer, request.id);
		fake_take(&peer, REQUEST_ADD, &request);
		assert_int_equal(request.add.batch, batch);
		assert_in_range(request.add.n_handles, 1, 10);
		for (size_t i = 0; i < request.add.n_deltas; i++) {
			sum += request.add.deltas[i];
		}
		fake_applied(&peer, &request);
	}
	assert_int_equal(sum, 100);
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&peer);
}

/* max_unacknowledged is 64 KiB here: with that much unanswered nothing new is cut, and growth stays merged. */
static void test_unacknowledged_batches_are_bounded(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;
	size_t bytes = 0;
	int64_t sum = 0;

	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &FAKE_LIMITS, NULL);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 4000; i++) {
			ration_add(many(fixture, i), INT64_C(1) << 31);
		}
		/* Not connected yet, or not in time. */
		assert_int_not_equal(ration_flush(fixture->client, 1), 0);
	}
	while (!fake_is_silent(&peer, 50)) {
		fake_take(&peer, FAKE_ANY, &request);
		for (size_t i = 0; i < request.add.n_deltas && request.type == REQUEST_ADD; i++) {
			bytes += 8; /* a handle of 2 or 3 and a delta of 5 or 6 */
		}
	}
	assert_in_range(bytes, 1, 2 * FIXTURE_BOUND);
	fake_hang_up(&peer);

	/* And all of it arrives in the end. */
	fake_accept_anew(&fixture->fake, &peer, /* keeps= */ false, 0, &FAKE_LIMITS, NULL);
	while (sum < 80000 * (INT64_C(1) << 31)) {
		fake_take(&peer, FAKE_ANY, &request);
		if (request.type == REQUEST_INTERN) {
			fake_interned(&peer, request.id);
			continue;
		}
		for (size_t i = 0; i < request.add.n_deltas; i++) {
			sum += request.add.deltas[i];
		}
		fake_applied(&peer, &request);
	}
	assert_int_equal(sum, 80000 * (INT64_C(1) << 31));
	assert_int_equal(ration_flush(fixture->client, FAKE_WAIT_MS), 0);
	fake_hang_up(&peer);
}

/* ---- closing ---- */

static void test_close_reports_what_is_undelivered(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;
	uint64_t undelivered = 0;

	begin(fixture, &peer);
	ration_add(fixture->a, 5);
	take_add(&peer, 2, 0, 5, &request); /* in a batch, unanswered */
	ration_add(fixture->a, 6);
	ration_add(fixture->b, -30);
	assert_int_equal(ration_close(fixture->client, 30, &undelivered), -ETIMEDOUT);
	fixture->client = NULL;
	assert_int_equal(undelivered, 41);
	assert_int_equal(fixture->lost.n, 2);
	assert_int_equal(fixture->lost.code, RATION_UNAVAILABLE);
	assert_int_equal(fixture->lost.amount, 11 - 30);
	fake_hang_up(&peer);
}

static void test_close_of_all_delivered(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;
	uint64_t undelivered = 1;

	begin(fixture, &peer);
	assert_int_equal(ration_close(fixture->client, 100, &undelivered), 0);
	fixture->client = NULL;
	assert_int_equal(undelivered, 0);
	assert_int_equal(fixture->lost.n, 0);
	fake_take(&peer, REQUEST_END,
		  &request); /* it was not answered in time, and that is all the same */
	fake_expect_end(&peer);
	fake_hang_up(&peer);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup_counters, fixture_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(test_hello_says_who_and_where_to_begin),
		T(test_paths_are_told_before_their_first_batch),
		T(test_flush_waits_for_the_acknowledgement),
		T(test_growth_before_the_daemon_is_there),
		T(test_what_cancels_out_is_not_sent),
		T(test_unapplied_batch_is_sent_again),
		T(test_applied_batch_is_not_sent_again),
		T(test_all_is_told_again_to_a_new_daemon),
		T(test_first_welcome_is_lost),
		T(test_removal_under_several_batches),
		T(test_session_is_kept_over_connections),
		T(test_foreign_session_is_given_up),
		T(test_nonsense_ends_the_connection),
		T(test_what_a_newer_daemon_says_is_skipped),
		T(test_refused_entry_is_reported),
		T(test_removed_counter_is_told_again_and_counted),
		T(test_counter_that_stays_unknown_is_given_up),
		T(test_refused_path_is_reported_with_its_reason),
		T(test_poisoned_batch_is_given_up_in_the_end),
		T(test_what_waits_stays_within_int64),
		T(test_edges_of_the_fast_way),
		T(test_the_daemons_limits_are_kept),
		T(test_counters_beyond_the_daemons_handles_are_reported),
		T(test_batches_are_cut_anew_for_lower_limits),
		T(test_unacknowledged_batches_are_bounded),
		T(test_close_reports_what_is_undelivered),
		T(test_close_of_all_delivered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
