/*
 * Many clients at once that reconnect in the middle of everything, send batches again, and take sessions over from each other
 * across workers, while others read and walk. What was acknowledged counts once, whatever happened on the way.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLIENTS 6u
#define BATCHES 1500u
#define HANDLES 40u
#define UNANSWERED 6u /* batches under way at once */

struct client {
	struct test_daemon *daemon;
	pthread_t thread;
	uint8_t session;
	struct test_random random;
	struct wire *wire;
	uint64_t next, acknowledged; /* batches */
	unsigned reconnects;
};

/* A batch's content follows from its number, so that it can be sent again. */
static int64_t batch_growth(uint64_t batch)
{
	return (int64_t)(batch % 7 + 1) * HANDLES;
}

static void send_batch(struct client *client, uint64_t batch)
{
	uint32_t handles[HANDLES];
	int64_t deltas[HANDLES];
	struct request request;

	for (uint32_t i = 0; i < HANDLES; i++) {
		handles[i] = i;
		deltas[i] = (int64_t)(batch % 7 + 1);
	}
	request = wire_add_request(batch, handles, deltas, HANDLES);
	(void)wire_send(client->wire, &request);
}

static void intern_all(struct client *client)
{
	char names[HANDLES][48];
	struct text paths[HANDLES];
	const struct request request = { .type = REQUEST_INTERN,
					 .intern = { .n_paths = HANDLES, .paths = paths } };

	for (unsigned i = 0; i < HANDLES; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "stress/shared/%u", i);
		paths[i] = text_of(names[i]);
	}
	assert_int_equal(wire_call(client->wire, &request).type, REPLY_INTERNED);
}

/* Whoever had the session before, a connection that hangs or one that was closed just now: this one gets it. */
static void reconnect(struct client *client)
{
	struct wire *older = client->wire;
	uint64_t last;
	bool resumed;

	if (older != NULL && test_random_below(&client->random, 2) == 0) {
		older = wire_free(older);
	}
	client->wire = wire_open(client->daemon->socket);
	last = wire_hello(client->wire, client->session, 60000, client->acknowledged + 1, &resumed);
	assert_true(last >= client->acknowledged);
	assert_true(last < client->next);
	assert_int_equal(resumed, client->reconnects > 0);
	(void)wire_free(older);
	if (!resumed) {
		intern_all(client);
	}
	client->reconnects++;
	/* Some of these it has: duplicates. */
	for (uint64_t batch = client->acknowledged + 1; batch < client->next; batch++) {
		send_batch(client, batch);
	}
}

static void take_answer(struct client *client)
{
	struct reply reply = { 0 };

	assert_true(wire_receive(client->wire, &reply));
	assert_int_equal(reply.type, REPLY_APPLIED);
	assert_int_equal(reply.applied.batch, client->acknowledged + 1);
	assert_int_equal(reply.applied.n_errors, 0);
	client->acknowledged++;
}

static void *run_client(void *arg)
{
	struct client *client = arg;

	client->next = 1;
	reconnect(client);
	while (client->acknowledged < BATCHES) {
		while (client->next <= BATCHES &&
		       client->next - client->acknowledged <= UNANSWERED) {
			send_batch(client, client->next++);
		}
		if (test_random_below(&client->random, 12) == 0) {
			reconnect(client);
		}
		take_answer(client);
	}
	(void)wire_free(client->wire);
	return NULL;
}

struct reader {
	struct test_daemon *daemon;
	pthread_t thread;
	_Atomic(bool) stop;
	unsigned rounds;
};

/* Totals never step back, and a walk is always whole. */
static void *run_reader(void *arg)
{
	struct reader *reader = arg;
	struct wire *wire = wire_open(reader->daemon->socket);
	const struct request walk = {
		.type = REQUEST_WALK,
		.walk = { .root = text_of(""), .depth = MESSAGE_DEPTH_ALL, .cursor = text_of("") }
	};
	struct text path = text_of("stress");
	const struct request get = {
		.type = REQUEST_GET,
		.get = { .n_paths = 1, .paths = &path, .consistency = CONSISTENCY_FRESH }
	};
	int64_t last = 0;

	(void)wire_hello(wire, 0, 0, 0, NULL);
	while (!atomic_load_explicit(&reader->stop, memory_order_relaxed)) {
		struct reply reply = wire_call(wire, &get);

		assert_int_equal(reply.type, REPLY_VALUES);
		assert_true(reply.values.values[0].total >= last);
		last = reply.values.values[0].total;
		reply = wire_call(wire, &walk);
		while (reply.type == REPLY_PAGE && !reply.page.last) {
			assert_true(wire_receive(wire, &reply));
		}
		assert_int_equal(reply.type, REPLY_PAGE);
		reader->rounds++;
	}
	(void)wire_free(wire);
	return NULL;
}

static void test_reconnects_and_take_overs(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 3\nflush_interval = 10ms\n");
	struct client clients[CLIENTS];
	struct reader reader = { .daemon = daemon };
	struct wire *wire;
	int64_t expected = 0;
	unsigned reconnects = 0;

	(void)state;
	memset(clients, 0, sizeof(clients));
	for (uint64_t batch = 1; batch <= BATCHES; batch++) {
		expected += batch_growth(batch) * CLIENTS;
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		clients[i].daemon = daemon;
		clients[i].session = (uint8_t)(i + 1);
		test_random_init(&clients[i].random, i);
		assert_int_equal(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]),
				 0);
	}
	/* There is something to read as soon as the first has begun. */
	wire = wire_open(daemon->socket);
	(void)wire_hello(wire, 0, 0, 0, NULL);
	while (wire_status(wire, "counters") == 0) {
		(void)usleep(1000);
	}
	assert_int_equal(pthread_create(&reader.thread, NULL, run_reader, &reader), 0);
	for (unsigned i = 0; i < CLIENTS; i++) {
		assert_int_equal(pthread_join(clients[i].thread, NULL), 0);
		reconnects += clients[i].reconnects;
	}
	atomic_store_explicit(&reader.stop, true, memory_order_relaxed);
	assert_int_equal(pthread_join(reader.thread, NULL), 0);
	assert_int_equal(wire_total(wire, "stress", CONSISTENCY_EXACT), expected);
	assert_true(wire_status(wire, "batches_duplicate") > 0);
	assert_true(wire_status(wire, "sessions_taken_over") > 0);
	assert_int_equal(wire_status(wire, "batches_applied"), CLIENTS * BATCHES);
	(void)fprintf(stderr, "%u reconnects, %u rounds of reading\n", reconnects, reader.rounds);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

/* Two connections fight for one session; whoever has it counts. */
static void *fight(void *arg)
{
	struct client *client = arg;

	for (unsigned i = 0; i < 300; i++) {
		struct wire *wire = wire_open(client->daemon->socket);
		struct request hello = wire_hello_request(99, 60000, 1);
		struct reply reply = { 0 };
		const uint32_t handle = 0;
		const int64_t delta = 1;
		struct request add;

		(void)wire_send(wire, &hello);
		if (wire_receive(wire, &reply) && reply.type == REPLY_WELCOME) {
			add = wire_add_request(reply.welcome.last_batch + 1, &handle, &delta, 1);
			(void)wire_send(wire, &add);
			if (wire_receive(wire, &reply) && reply.type == REPLY_APPLIED &&
			    !reply.applied.duplicate) {
				client->acknowledged++;
			}
		}
		(void)wire_free(wire);
	}
	return NULL;
}

static void test_two_fight_for_a_session(void **state)
{
	struct test_daemon *daemon = test_daemon_start("workers = 3\n");
	struct client clients[3];
	struct wire *wire = wire_open(daemon->socket);
	int64_t acknowledged = 0, total;

	(void)state;
	(void)wire_hello(wire, 99, 60000, 1, NULL);
	wire_intern(wire, 0, "fight");
	(void)wire_free(wire);
	memset(clients, 0, sizeof(clients));
	for (unsigned i = 0; i < 3; i++) {
		clients[i].daemon = daemon;
		assert_int_equal(pthread_create(&clients[i].thread, NULL, fight, &clients[i]), 0);
	}
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(pthread_join(clients[i].thread, NULL), 0);
		acknowledged += (int64_t)clients[i].acknowledged;
	}
	wire = wire_open(daemon->socket);
	total = (int64_t)wire_hello(wire, 99, 0, 1, NULL);
	/* What was counted is the number of batches; each answered one is among them. */
	assert_int_equal(wire_total(wire, "fight", CONSISTENCY_EXACT), total);
	assert_in_range(acknowledged, 1, total);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reconnects_and_take_overs),
		cmocka_unit_test(test_two_fight_for_a_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
