/*
 * Charges and their return, against a scripted daemon: its side of PROTOCOL.md sections 9 and 10, and what is read of limits.
 */
#include "tests/support/test.h"
#include "tests/unit/ration/fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- somebody who asks, on a thread ---- */

struct asker {
	pthread_t thread;
	struct ration *client;
	struct ration_charge_item items[2];
	size_t n_items;
	struct ration_charge_options options;
	bool uncharges;
	int timeout_ms;
	int result;
	char text[200];
	struct ration_charge_result *answer;
};

static void *ask(void *arg)
{
	struct asker *asker = arg;

	asker->result = asker->uncharges
				? ration_uncharge(asker->client, asker->items[0].path,
						  asker->items[0].amount, asker->options.detached,
						  asker->timeout_ms)
				: ration_charge(asker->client, asker->items, asker->n_items,
						&asker->options, asker->timeout_ms, &asker->answer);
	(void)snprintf(asker->text, sizeof(asker->text), "%s", ration_error());
	return NULL;
}

/* With defaults for what is 0. */
static struct asker asker_of(const struct fixture *fixture, struct asker asker)
{
	asker.client = fixture->client;
	if (asker.items[0].path == NULL) {
		asker.items[0] = (struct ration_charge_item){ "jobs/a", 3 };
		asker.items[1] = (struct ration_charge_item){ "jobs/b", 4 };
	}
	asker.n_items = asker.n_items == 0 ? 1 : asker.n_items;
	asker.options.size = sizeof(asker.options);
	asker.timeout_ms = asker.timeout_ms == 0 ? FAKE_WAIT_MS : asker.timeout_ms;
	return asker;
}

#define ASKER(...) asker_of(fixture, (struct asker){ .thread = 0, __VA_ARGS__ })

static void start(struct asker *asker)
{
	assert_int_equal(pthread_create(&asker->thread, NULL, ask, asker), 0);
}

static void expect(struct asker *asker, int result)
{
	(void)pthread_join(asker->thread, NULL);
	assert_int_equal(asker->result, result);
	if (result == 0 && !asker->uncharges) {
		assert_non_null(asker->answer);
		assert_true(asker->answer->granted);
	}
	ration_charge_result_free(asker->answer);
	asker->answer = NULL;
}

/* ---- the daemon's side ---- */

static void begin(struct fixture *fixture, struct fake_peer *peer)
{
	fake_accept(&fixture->fake, peer);
	fake_welcome(peer, false, 0, &FAKE_LIMITS, NULL);
}

static void resume(struct fixture *fixture, struct fake_peer *peer, uint64_t last_operation)
{
	fake_accept(&fixture->fake, peer);
	peer->last_operation = last_operation;
	fake_welcome(peer, true, 0, &FAKE_LIMITS, NULL);
}

static uint64_t take_charge(struct fake_peer *peer, uint64_t number, const char *path,
			    int64_t amount)
{
	struct request request;

	fake_take(peer, REQUEST_CHARGE, &request);
	assert_int_equal(request.charge.number, number);
	assert_true(request.charge.n_items >= 1);
	assert_int_equal(request.charge.items[0].path.len, strlen(path));
	assert_memory_equal(request.charge.items[0].path.at, path, strlen(path));
	assert_int_equal(request.charge.items[0].amount, amount);
	return request.id;
}

static uint64_t take_uncharge(struct fake_peer *peer, uint64_t number, const char *path,
			      int64_t amount)
{
	struct request request;

	fake_take(peer, REQUEST_UNCHARGE, &request);
	assert_int_equal(request.uncharge.number, number);
	assert_int_equal(request.uncharge.path.len, strlen(path));
	assert_memory_equal(request.uncharge.path.at, path, strlen(path));
	assert_int_equal(request.uncharge.amount, amount);
	return request.id;
}

static void charged(struct fake_peer *peer, uint64_t id, uint64_t number, bool granted)
{
	const struct reply reply = { .id = id,
				     .type = REPLY_CHARGED,
				     .charged = { .number = number, .granted = granted } };

	fake_send(peer, &reply);
}

static void uncharged(struct fake_peer *peer, uint64_t id, uint64_t number)
{
	const struct reply reply = { .id = id,
				     .type = REPLY_UNCHARGED,
				     .uncharged = { .number = number } };

	fake_send(peer, &reply);
}

static void refuse_number(struct fake_peer *peer, uint64_t id, enum code code, uint64_t operation)
{
	const struct reply reply = {
		.id = id,
		.type = REPLY_ERROR,
		.error = { .code = code, .text = text_of("so it is"), .operation = operation }
	};

	fake_send(peer, &reply);
}

/* ---- the ordinary course ---- */

static void test_granted_and_given_back(void **state)
{
	struct fixture *fixture = *state;
	struct asker one = ASKER(.n_items = 2), back = ASKER(.uncharges = true);
	struct fake_peer peer;
	struct request request;

	begin(fixture, &peer);
	start(&one);
	fake_take(&peer, REQUEST_CHARGE, &request);
	assert_int_equal(request.charge.number, 1);
	assert_int_equal(request.charge.n_items, 2);
	assert_int_equal(request.charge.items[1].amount, 4);
	assert_false(request.charge.dry_run);
	assert_false(request.charge.detached);
	assert_int_equal(request.charge.wait_ms, 0);
	charged(&peer, request.id, 1, true);
	expect(&one, 0);
	start(&back);
	uncharged(&peer, take_uncharge(&peer, 2, "jobs/a", 3), 2);
	expect(&back, 0);
	fake_hang_up(&peer);
}

static void test_refused_names_what_binds(void **state)
{
	const struct binding bindings[] = {
		{ .kind = BINDING_MAX,
		  .path = text_of("jobs"),
		  .limit = 10,
		  .usage = 9,
		  .left = 1,
		  .retry_after_ms = 0 },
		{ .kind = BINDING_RATE,
		  .path = text_of("jobs/a"),
		  .window = { .kind = RULE_WINDOW_RATE },
		  .limit = 5,
		  .usage = 4,
		  .left = 1,
		  .retry_after_ms = 1500 },
		{ .kind = BINDING_SHADOW,
		  .path = text_of("jobs/a"),
		  .window = { .kind = RULE_WINDOW_PER, .duration_ms = 60000 },
		  .limit = 2,
		  .usage = 2,
		  .retry_after_ms = -1 },
	};
	struct fixture *fixture = *state;
	struct asker one = ASKER();
	struct reply reply = {
		.type = REPLY_CHARGED,
		.charged = { .number = 1, .omitted = 7, .n_bindings = 3, .bindings = bindings }
	};
	char text[RATION_WINDOW_TEXT];
	struct fake_peer peer;

	begin(fixture, &peer);
	start(&one);
	reply.id = take_charge(&peer, 1, "jobs/a", 3);
	fake_send(&peer, &reply);
	(void)pthread_join(one.thread, NULL);
	assert_int_equal(one.result, RATION_RESOURCE_EXHAUSTED);
	assert_string_equal(one.text, "refused by jobs");
	assert_false(one.answer->granted);
	assert_int_equal(one.answer->n_omitted, 7);
	assert_int_equal(one.answer->n_bindings, 3);
	assert_string_equal(one.answer->bindings[0].path, "jobs");
	assert_int_equal(one.answer->bindings[0].kind, RATION_BINDS_MAX);
	assert_int_equal(one.answer->bindings[0].limit, 10);
	assert_int_equal(one.answer->bindings[0].usage, 9);
	assert_int_equal(one.answer->bindings[0].left, 1);
	assert_string_equal(ration_window_text(&one.answer->bindings[0].window, text, sizeof(text)),
			    "");
	assert_int_equal(one.answer->bindings[1].kind, RATION_BINDS_RATE);
	assert_int_equal(one.answer->bindings[1].retry_after_ms, 1500);
	assert_string_equal(ration_window_text(&one.answer->bindings[1].window, text, sizeof(text)),
			    "rate");
	assert_int_equal(one.answer->bindings[2].kind, RATION_WOULD_REFUSE);
	assert_int_equal(one.answer->bindings[2].retry_after_ms, -1);
	assert_string_equal(ration_window_text(&one.answer->bindings[2].window, text, sizeof(text)),
			    "per 1m");
	ration_charge_result_free(one.answer);
	fake_hang_up(&peer);
}

static void test_an_error_uses_its_number(void **state)
{
	struct fixture *fixture = *state;
	struct asker one = ASKER(), two = ASKER(0);
	struct fake_peer peer;

	begin(fixture, &peer);
	start(&one);
	refuse_number(&peer, take_charge(&peer, 1, "jobs/a", 3), CODE_NOT_FOUND, 1);
	expect(&one, RATION_NOT_FOUND);
	assert_null(one.answer);
	assert_string_equal(one.text, "so it is");
	start(&two);
	charged(&peer, take_charge(&peer, 2, "jobs/a", 3), 2, true);
	expect(&two, 0);
	fake_hang_up(&peer);
}

/* Who waits for room is overtaken. */
static void test_answers_out_of_order(void **state)
{
	struct fixture *fixture = *state;
	struct asker slow = ASKER(.options = { .detached = true, .wait_ms = 60000 }),
		     quick = ASKER();
	struct fake_peer peer;
	struct request request;

	begin(fixture, &peer);
	start(&slow);
	fake_take(&peer, REQUEST_CHARGE, &request);
	assert_in_range(request.charge.wait_ms, 50000, 60000);
	assert_true(request.charge.detached);
	start(&quick);
	charged(&peer, take_charge(&peer, 2, "jobs/a", 3), 2, true);
	expect(&quick, 0);
	charged(&peer, request.id, 1, true);
	expect(&slow, 0);
	fake_hang_up(&peer);
}

static void test_dry_run_has_no_number(void **state)
{
	struct fixture *fixture = *state;
	struct asker dry = ASKER(.options = { .dry_run = true });
	struct fake_peer peer, caller;
	struct request request;

	begin(fixture, &peer);
	start(&dry);
	fake_accept(&fixture->fake, &caller);
	fake_welcome(&caller, false, 0, &FAKE_LIMITS, NULL);
	fake_take(&caller, REQUEST_CHARGE, &request);
	assert_true(request.charge.dry_run);
	assert_int_equal(request.charge.number, 0);
	charged(&caller, request.id, 0, false);
	expect(&dry, RATION_RESOURCE_EXHAUSTED);
	fake_expect_silence(&peer, 50);
	fake_hang_up(&peer);
	fake_hang_up(&caller);
}

static void test_bad_arguments_are_not_sent(void **state)
{
	struct fixture *fixture = *state;
	const struct ration_charge_item none = { "jobs/a", 0 }, large = { "jobs/a", INT64_MAX };
	const struct ration_charge_item *many = calloc(10001, sizeof(*many));
	struct ration_charge_options options = RATION_CHARGE_OPTIONS_INIT;
	struct fake_peer peer;

	begin(fixture, &peer);
	assert_int_equal(ration_charge(fixture->client, &none, 1, NULL, 100, NULL),
			 RATION_INVALID_ARGUMENT);
	assert_int_equal(ration_charge(fixture->client, &large, 1, NULL, 100, NULL),
			 RATION_INVALID_ARGUMENT);
	assert_int_equal(ration_charge(fixture->client, &none, 0, NULL, 100, NULL),
			 RATION_INVALID_ARGUMENT);
	assert_int_equal(ration_charge(fixture->client, many, 10001, NULL, 100, NULL),
			 RATION_INVALID_ARGUMENT);
	assert_int_equal(ration_uncharge(fixture->client, "jobs/a", -1, false, 100),
			 RATION_INVALID_ARGUMENT);
	options.size = 0;
	assert_int_equal(ration_charge(fixture->client, &none, 1, &options, 100, NULL), -EINVAL);
	fake_expect_silence(&peer, 20);
	free((void *)(uintptr_t)many);
	fake_hang_up(&peer);
}

static void test_what_does_not_fit_a_frame(void **state)
{
	struct fixture *fixture = *state;
	struct ration_charge_item *items = calloc(10000, sizeof(*items));
	char path[400];
	struct fake_peer peer;

	begin(fixture, &peer);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	for (size_t i = 0; i < 10000; i++) {
		items[i] = (struct ration_charge_item){ path, 1 };
	}
	assert_int_equal(ration_charge(fixture->client, items, 10000, NULL, 100, NULL), -EMSGSIZE);
	fake_expect_silence(&peer, 20);
	free(items);
	fake_hang_up(&peer);
}

/* ---- broken connections ---- */

static void test_resent_under_its_number(void **state)
{
	struct fixture *fixture = *state;
	struct asker one = ASKER(), two = ASKER(.items = { { "jobs/b", 9 } });
	struct fake_peer peer;
	struct hello hello;

	begin(fixture, &peer);
	start(&one);
	(void)take_charge(&peer, 1, "jobs/a", 3);
	start(&two);
	(void)take_charge(&peer, 2, "jobs/b", 9);
	fake_hang_up(&peer);
	/* The first was done, the second never arrived. */
	fake_accept(&fixture->fake, &peer);
	peer.last_operation = 1;
	fake_welcome(&peer, true, 0, &FAKE_LIMITS, &hello);
	assert_int_equal(hello.next_operation, 1);
	charged(&peer, take_charge(&peer, 1, "jobs/a", 3), 1, true);
	charged(&peer, take_charge(&peer, 2, "jobs/b", 9), 2, true);
	expect(&one, 0);
	expect(&two, 0);
	fake_hang_up(&peer);
}

static void test_sent_again_to_another_daemon(void **state)
{
	struct fixture *fixture = *state;
	struct asker one = ASKER(), two = ASKER(0);
	struct fake_peer peer;

	begin(fixture, &peer);
	start(&one);
	charged(&peer, take_charge(&peer, 1, "jobs/a", 3), 1, true);
	expect(&one, 0);
	start(&two);
	(void)take_charge(&peer, 2, "jobs/a", 3);
	fake_hang_up(&peer);
	fake_accept_anew(&fixture->fake, &peer, /* keeps= */ false, 0, &FAKE_LIMITS, NULL);
	charged(&peer, take_charge(&peer, 2, "jobs/a", 3), 2, true);
	expect(&two, 0);
	fake_hang_up(&peer);
}

static void test_numbers_without_use_are_put_right(void **state)
{
	struct fixture *fixture = *state;
	struct asker one = ASKER(), two = ASKER(0);
	struct fake_peer peer;
	uint64_t id;

	begin(fixture, &peer);
	start(&one);
	id = take_charge(&peer, 1, "jobs/a", 3);
	start(&two);
	(void)take_charge(&peer, 2, "jobs/a", 3);
	refuse_number(&peer, id, CODE_FAILED_PRECONDITION, 0);
	expect(&one, RATION_FAILED_PRECONDITION);
	fake_expect_end(&peer);
	fake_hang_up(&peer);
	resume(fixture, &peer, 0);
	charged(&peer, take_charge(&peer, 1, "jobs/a", 3), 1, true);
	expect(&two, 0);
	fake_hang_up(&peer);
}

static void test_a_wait_goes_on_for_what_is_left(void **state)
{
	struct fixture *fixture = *state;
	struct asker one = ASKER(.options = { .wait_ms = 5000 });
	struct fake_peer peer;
	struct request request;

	begin(fixture, &peer);
	start(&one);
	(void)take_charge(&peer, 1, "jobs/a", 3);
	(void)usleep(300000);
	fake_hang_up(&peer);
	resume(fixture, &peer, 1);
	fake_take(&peer, REQUEST_CHARGE, &request);
	assert_int_equal(request.charge.number, 1);
	assert_in_range(request.charge.wait_ms, 1, 4700);
	charged(&peer, request.id, 1, true);
	expect(&one, 0);
	fake_hang_up(&peer);
}

static void test_a_window_of_numbers(void **state)
{
	struct fixture *fixture = *state;
	struct limits limits = FAKE_LIMITS;
	struct asker slow = ASKER(.options = { .wait_ms = 60000 }), quick = ASKER(),
		     third = ASKER(0);
	struct fake_peer peer;
	uint64_t id;

	limits.max_operations_kept = 2;
	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &limits, NULL);
	start(&slow);
	id = take_charge(&peer, 1, "jobs/a", 3);
	start(&quick);
	charged(&peer, take_charge(&peer, 2, "jobs/a", 3), 2, true);
	expect(&quick, 0);
	start(&third);
	fake_expect_silence(&peer, 100);
	charged(&peer, id, 1, true);
	expect(&slow, 0);
	charged(&peer, take_charge(&peer, 3, "jobs/a", 3), 3, true);
	expect(&third, 0);
	fake_hang_up(&peer);
}

/* ---- time over ---- */

static void test_a_late_grant_is_undone(void **state)
{
	struct fixture *fixture = *state;
	struct asker one = ASKER(.n_items = 2, .timeout_ms = FAKE_SHORT_MS),
		     two = ASKER(.timeout_ms = FAKE_SHORT_MS);
	struct fake_peer peer;
	uint64_t id;

	begin(fixture, &peer);
	start(&one);
	id = take_charge(&peer, 1, "jobs/a", 3);
	expect(&one, -ETIMEDOUT);
	charged(&peer, id, 1, true);
	uncharged(&peer, take_uncharge(&peer, 2, "jobs/a", 3), 2);
	/* The first was on a counter, say: the other one is undone all the same. */
	refuse_number(&peer, take_uncharge(&peer, 3, "jobs/b", 4), CODE_FAILED_PRECONDITION, 3);
	start(&two);
	id = take_charge(&peer, 4, "jobs/a", 3);
	expect(&two, -ETIMEDOUT);
	charged(&peer, id, 4, false);
	fake_expect_silence(&peer, 50);
	fake_hang_up(&peer);
}

static void test_what_nobody_wants_is_not_done_anew(void **state)
{
	struct fixture *fixture = *state;
	struct asker one = ASKER(.timeout_ms = FAKE_SHORT_MS),
		     two = ASKER(.timeout_ms = FAKE_SHORT_MS);
	struct fake_peer peer;

	begin(fixture, &peer);
	start(&one);
	(void)take_charge(&peer, 1, "jobs/a", 3);
	start(&two);
	(void)take_charge(&peer, 2, "jobs/a", 3);
	expect(&one, -ETIMEDOUT);
	expect(&two, -ETIMEDOUT);
	fake_hang_up(&peer);
	/* The first was done, so its answer must be known; the second was not. */
	resume(fixture, &peer, 1);
	charged(&peer, take_charge(&peer, 1, "jobs/a", 3), 1, true);
	(void)take_uncharge(&peer, 2, "jobs/a", 3);
	fake_expect_silence(&peer, 50);
	fake_hang_up(&peer);
	/* With the session all that it held is gone. */
	fake_accept_anew(&fixture->fake, &peer, /* keeps= */ false, 0, &FAKE_LIMITS, NULL);
	fake_expect_silence(&peer, 50);
	fake_hang_up(&peer);
}

static void test_an_uncharge_is_done_late(void **state)
{
	struct fixture *fixture = *state;
	struct asker one = ASKER(.uncharges = true, .timeout_ms = FAKE_SHORT_MS);
	struct fake_peer peer;

	begin(fixture, &peer);
	start(&one);
	(void)take_uncharge(&peer, 1, "jobs/a", 3);
	expect(&one, -ETIMEDOUT);
	fake_hang_up(&peer);
	resume(fixture, &peer, 0);
	uncharged(&peer, take_uncharge(&peer, 1, "jobs/a", 3), 1);
	fake_expect_silence(&peer, 50);
	fake_hang_up(&peer);
}

static void test_no_daemon_is_said_at_once(void **state)
{
	struct fixture *fixture = *state;
	const struct ration_charge_item item = { "jobs/a", 3 };
	struct fake_peer peer;

	begin(fixture, &peer);
	fake_close(&fixture->fake);
	fake_hang_up(&peer);
	/* What is sent before the end of the connection is seen may have been done. */
	(void)usleep(100000);
	assert_int_equal(ration_charge(fixture->client, &item, 1, NULL, FAKE_WAIT_MS, NULL),
			 -ENOTCONN);
	assert_non_null(strstr(ration_error(), fixture->fake.url));
	assert_int_equal(ration_uncharge(fixture->client, "jobs/a", 3, false, FAKE_WAIT_MS),
			 -ENOTCONN);
	fake_listen(&fixture->fake, fixture->dir);
	resume(fixture, &peer, 0);
	fake_expect_silence(&peer, 50);
	fake_hang_up(&peer);
}

/* ---- the end ---- */

static void *close_it(void *client)
{
	(void)ration_close(client, FAKE_WAIT_MS, NULL);
	return NULL;
}

/* What the session holds must not stay until its lifetime is over. */
static void test_closing_ends_the_session(void **state)
{
	struct fixture *fixture = *state;
	struct reply ended = { .type = REPLY_ENDED };
	struct asker one = ASKER();
	struct fake_peer peer;
	struct request request;
	pthread_t closer;

	begin(fixture, &peer);
	start(&one);
	charged(&peer, take_charge(&peer, 1, "jobs/a", 3), 1, true);
	expect(&one, 0);
	assert_int_equal(pthread_create(&closer, NULL, close_it, fixture->client), 0);
	fixture->client = NULL;
	fake_take(&peer, REQUEST_END, &request);
	ended.id = request.id;
	fake_send(&peer, &ended);
	(void)pthread_join(closer, NULL);
	fake_expect_end(&peer);
	assert_false(fake_is_called(&fixture->fake, 50));
	fake_hang_up(&peer);
}

/* A daemon from before there was an End is told by another Hello, which ends it with its connection. */
static void test_closing_where_end_is_unknown(void **state)
{
	struct fixture *fixture = *state;
	struct asker one = ASKER();
	struct fake_peer peer, last;
	struct hello first, hello;
	struct request request;
	uint8_t session[16];
	pthread_t closer;

	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &FAKE_LIMITS, &first);
	assert_int_equal(first.lifetime_ms, 60000);
	memcpy(session, first.session.at, 16);
	start(&one);
	charged(&peer, take_charge(&peer, 1, "jobs/a", 3), 1, true);
	expect(&one, 0);
	assert_int_equal(pthread_create(&closer, NULL, close_it, fixture->client), 0);
	fixture->client = NULL;
	fake_take(&peer, REQUEST_END, &request);
	fake_error(&peer, request.id, CODE_UNIMPLEMENTED, "this daemon does not know this request");
	fake_accept(&fixture->fake, &last);
	fake_welcome(&last, true, 0, &FAKE_LIMITS, &hello);
	assert_int_equal(hello.session.len, 16);
	assert_int_equal(hello.lifetime_ms, 0);
	assert_memory_equal(hello.session.at, session, 16);
	(void)pthread_join(closer, NULL);
	fake_expect_end(&last);
	fake_hang_up(&peer);
	fake_hang_up(&last);
}

static void test_closing_with_charges_under_way(void **state)
{
	struct fixture *fixture = *state;
	struct asker one = ASKER(.timeout_ms = FAKE_SHORT_MS);
	struct fake_peer peer;

	begin(fixture, &peer);
	start(&one);
	(void)take_charge(&peer, 1, "jobs/a", 3);
	expect(&one, -ETIMEDOUT);
	assert_int_equal(ration_close(fixture->client, 20, NULL), 0);
	fixture->client = NULL;
	fake_hang_up(&peer);
}

/* ---- limits ---- */

struct told {
	size_t n;
	char text[64];
	struct ration_limits limits;
};

static void note(void *ctx, const char *text)
{
	struct told *told = ctx;

	told->n++;
	(void)snprintf(told->text, sizeof(told->text), "%s", text);
}

static void rule(void *ctx, const struct ration_rule *from)
{
	struct told *told = ctx;

	told->n++;
	(void)snprintf(told->text, sizeof(told->text), "%s", from->pattern);
	told->limits = from->limits;
	assert_int_equal(from->layer, RATION_RUN_TIME);
	assert_false(from->overridden);
	assert_string_equal(from->source, "");
}

enum question {
	SET,
	REMOVE,
	LIST,
	EXPLAIN
};

struct questioner {
	pthread_t thread;
	struct ration *client;
	enum question question;
	struct told told;
	struct ration_explanation *explanation;
	int result;
};

static void *question(void *arg)
{
	struct questioner *one = arg;
	struct ration_limits limits = RATION_LIMITS_INIT;
	const struct ration_window window = { RATION_CALENDAR, RATION_MONTH, 0 };

	switch (one->question) {
	case SET:
		limits.has_max = true;
		limits.max = 100;
		limits.window = window;
		one->result = ration_quota_set(one->client, "jobs/*", &limits, FAKE_WAIT_MS, note,
					       &one->told);
		break;
	case REMOVE:
		one->result = ration_quota_remove(one->client, "jobs/*", NULL, FAKE_WAIT_MS);
		break;
	case LIST:
		one->result = ration_quota_list(one->client, FAKE_WAIT_MS, rule, &one->told);
		break;
	default:
		one->result = ration_quota_explain(one->client, "jobs/a", FAKE_WAIT_MS,
						   &one->explanation);
		break;
	}
	return NULL;
}

/* Peer is that of questions. */
static void question_asked(struct questioner *one, struct fake_peer *peer, enum request_type type,
			   struct request *ret_request)
{
	assert_int_equal(pthread_create(&one->thread, NULL, question, one), 0);
	fake_take(peer, type, ret_request);
}

static void test_rules(void **state)
{
	struct fixture *fixture = *state;
	struct questioner one = { .client = fixture->client };
	const struct text notes[] = { text_of("unwise") };
	const struct rule rules[] = { { .pattern = text_of("jobs/*"),
					.window = { RULE_WINDOW_CALENDAR, RULE_WINDOW_MONTH, 0 },
					.limits = { .has_max = true, .max = 100, .low = 3 },
					.layer = RULE_RUN_TIME,
					.source = text_of("") } };
	struct fake_peer peer;
	struct request request;
	struct reply reply = { .type = REPLY_QUOTA_OK, .quota_ok = { 1, notes } };

	assert_int_equal(pthread_create(&one.thread, NULL, question, &one), 0);
	/* One of both is the session's. */
	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &FAKE_LIMITS, NULL);
	if (!fake_is_silent(&peer, 100)) {
		fake_take(&peer, REQUEST_QUOTA_SET, &request);
	} else {
		fake_hang_up(&peer);
		fake_accept(&fixture->fake, &peer);
		fake_welcome(&peer, false, 0, &FAKE_LIMITS, NULL);
		fake_take(&peer, REQUEST_QUOTA_SET, &request);
	}
	assert_int_equal(request.quota_set.window.kind, RULE_WINDOW_CALENDAR);
	assert_int_equal(request.quota_set.window.unit, RULE_WINDOW_MONTH);
	assert_true(request.quota_set.limits.has_max);
	assert_false(request.quota_set.limits.has_high);
	assert_int_equal(request.quota_set.limits.max, 100);
	reply.id = request.id;
	fake_send(&peer, &reply);
	(void)pthread_join(one.thread, NULL);
	assert_int_equal(one.result, 0);
	assert_int_equal(one.told.n, 1);
	assert_string_equal(one.told.text, "unwise");

	one = (struct questioner){ .client = fixture->client, .question = REMOVE };
	question_asked(&one, &peer, REQUEST_QUOTA_REMOVE, &request);
	assert_true(request.quota_remove.all_windows);
	fake_error(&peer, request.id, CODE_NOT_FOUND, "no such rule");
	(void)pthread_join(one.thread, NULL);
	assert_int_equal(one.result, RATION_NOT_FOUND);

	/* Two pages, and the rules are changed between them once. */
	one = (struct questioner){ .client = fixture->client, .question = LIST };
	question_asked(&one, &peer, REQUEST_QUOTA_LIST, &request);
	assert_int_equal(request.quota_list.len, 0);
	reply = (struct reply){ .id = request.id,
				.type = REPLY_QUOTA_RULES,
				.quota_rules = { 1, rules, text_of("here") } };
	fake_send(&peer, &reply);
	fake_take(&peer, REQUEST_QUOTA_LIST, &request);
	assert_int_equal(request.quota_list.len, 4);
	fake_error(&peer, request.id, CODE_FAILED_PRECONDITION, "changed");
	fake_take(&peer, REQUEST_QUOTA_LIST, &request);
	assert_int_equal(request.quota_list.len, 0);
	reply.id = request.id;
	fake_send(&peer, &reply);
	fake_take(&peer, REQUEST_QUOTA_LIST, &request);
	reply.id = request.id;
	reply.quota_rules.cursor = text_of("");
	fake_send(&peer, &reply);
	(void)pthread_join(one.thread, NULL);
	assert_int_equal(one.result, 0);
	assert_int_equal(one.told.n, 2);
	assert_string_equal(one.told.text, "jobs/*");
	assert_int_equal(one.told.limits.window.unit, RATION_MONTH);
	assert_int_equal(one.told.limits.low, 3);
	fake_hang_up(&peer);
}

static void test_explained(void **state)
{
	struct fixture *fixture = *state;
	struct questioner one = { .client = fixture->client, .question = EXPLAIN };
	const struct explained_level levels[] = {
		{ .path = text_of("jobs/a"),
		  .limits = { .has_max = true, .max = 9 },
		  .layer = RULE_FILE,
		  .pattern = text_of("jobs/*"),
		  .source = text_of("x.conf:3"),
		  .usage = 4,
		  .peak = 6,
		  .left = 5,
		  .refusals = 2,
		  .forced = 1,
		  .binds = true },
		{ .path = text_of("jobs"), .pattern = text_of("jobs"), .source = text_of("") },
	};
	const struct explained_sibling siblings[] = { { .path = text_of("jobs/b"), .usage = 8 } };
	const struct explained_lease leases[] = { { .path = text_of("jobs/a"),
						    .agent = text_of("x/1"),
						    .units = 3,
						    .expires_in_ms = 9 } };
	struct reply reply = {
		.type = REPLY_QUOTA_EXPLAINED,
		.quota_explained = { .n_levels = 2,
				     .levels = levels,
				     .n_siblings = 1,
				     .siblings = siblings,
				     .siblings_omitted = 4,
				     .n_leases = 1,
				     .leases = leases },
	};
	struct fake_peer session, peer;
	struct request request;

	begin(fixture, &session);
	assert_int_equal(pthread_create(&one.thread, NULL, question, &one), 0);
	fake_accept(&fixture->fake, &peer);
	fake_welcome(&peer, false, 0, &FAKE_LIMITS, NULL);
	fake_take(&peer, REQUEST_QUOTA_EXPLAIN, &request);
	reply.id = request.id;
	fake_send(&peer, &reply);
	(void)pthread_join(one.thread, NULL);
	assert_int_equal(one.result, 0);
	assert_int_equal(one.explanation->n_levels, 2);
	assert_string_equal(one.explanation->levels[0].pattern, "jobs/*");
	assert_string_equal(one.explanation->levels[0].source, "x.conf:3");
	assert_int_equal(one.explanation->levels[0].left, 5);
	assert_true(one.explanation->levels[0].binds);
	assert_string_equal(one.explanation->levels[1].path, "jobs");
	assert_string_equal(one.explanation->siblings[0].path, "jobs/b");
	assert_int_equal(one.explanation->n_siblings_omitted, 4);
	assert_string_equal(one.explanation->leases[0].agent, "x/1");
	assert_int_equal(one.explanation->leases[0].units, 3);
	ration_explanation_free(one.explanation);
	fake_hang_up(&session);
	fake_hang_up(&peer);
}

static void test_texts_of_windows(void **state)
{
	static const struct {
		struct ration_window window;
		const char *text;
	} cases[] = {
		{ { RATION_NO_WINDOW, RATION_DAY, 0 }, "" },
		{ { RATION_PER, RATION_DAY, 86400000 }, "per 1d" },
		{ { RATION_PER, RATION_DAY, 1500 }, "per 1500ms" },
		{ { RATION_PER, RATION_DAY, UINT64_MAX }, "per " },
		{ { RATION_CALENDAR, RATION_WEEK, 0 }, "calendar week" },
		{ { RATION_RATE, RATION_DAY, 0 }, "rate" },
	};
	char text[RATION_WINDOW_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_string_equal(ration_window_text(&cases[i].window, text, sizeof(text)),
				    cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		TEST(test_granted_and_given_back),
		TEST(test_refused_names_what_binds),
		TEST(test_an_error_uses_its_number),
		TEST(test_answers_out_of_order),
		TEST(test_dry_run_has_no_number),
		TEST(test_bad_arguments_are_not_sent),
		TEST(test_what_does_not_fit_a_frame),
		TEST(test_resent_under_its_number),
		TEST(test_sent_again_to_another_daemon),
		TEST(test_numbers_without_use_are_put_right),
		TEST(test_a_wait_goes_on_for_what_is_left),
		TEST(test_a_window_of_numbers),
		TEST(test_a_late_grant_is_undone),
		TEST(test_what_nobody_wants_is_not_done_anew),
		TEST(test_an_uncharge_is_done_late),
		TEST(test_no_daemon_is_said_at_once),
		TEST(test_closing_ends_the_session),
		TEST(test_closing_where_end_is_unknown),
		TEST(test_closing_with_charges_under_way),
		TEST(test_rules),
		TEST(test_explained),
		cmocka_unit_test(test_texts_of_windows),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
