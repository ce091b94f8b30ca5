/*
 * Many holders at a time: 10,000 sessions on a max of 100, and never 101 of them.
 *
 * A session outlives its connection, so 10,000 of them need few sockets: a client connects, says who it is, charges and goes.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire-quota.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SESSIONS 10000u
#define MAX 100
#define CLIENTS 4u
#define PATIENCE_MS 60000

static const char config[] =
	"workers = 3\nmax_sessions = 20000\n[metric held]\nkind = gauge\n[quota held]\nmax = 100\n[quota held/*]\nmax = 100\n[quota held/wait]\nmax = 60\n";

struct client {
	struct test_daemon *daemon;
	pthread_t thread;
	unsigned index;
	struct test_random random;
	_Atomic(int64_t) *held; /* what clients know to be held; never more than there is */
	uint64_t granted, refused, worst;
};

static void note(struct client *client, int64_t n)
{
	int64_t is = atomic_fetch_add_explicit(client->held, n, memory_order_seq_cst) + n;

	if (n > 0 && (uint64_t)is > client->worst) {
		client->worst = (uint64_t)is;
	}
}

/* Every session charges one; those who hold give back when they come again. */
static void *run_sessions(void *arg)
{
	struct client *client = arg;
	bool *holds = calloc(SESSIONS, sizeof(*holds));
	char path[32];

	assert_non_null(holds);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = client->index; i < SESSIONS; i += CLIENTS) {
			struct wire *wire = wire_open(client->daemon->socket);
			uint64_t number = wire_greet(wire, i + 1, 600000, 1).welcome.last_operation;

			(void)snprintf(path, sizeof(path), "held/%u", i % 7);
			if (holds[i]) {
				note(client, -1);
				(void)wire_uncharge(wire, number + 1, path, 1);
				holds[i] = false;
			} else if (wire_charge(wire, number + 1, path, 1, NULL)) {
				note(client, 1);
				holds[i] = true;
				client->granted++;
			} else {
				client->refused++;
			}
			(void)wire_free(wire);
		}
	}
	free(holds);
	return NULL;
}

static void test_ten_thousand_holders(void **state)
{
	struct test_daemon *daemon = test_daemon_start(config);
	struct wire *wire = wire_open(daemon->socket);
	struct client clients[CLIENTS];
	_Atomic(int64_t) held = 0;
	uint64_t number = 1;
	int64_t until;

	(void)state;
	(void)wire_hello(wire, 0, 0, 0, NULL);
	for (unsigned i = 0; i < CLIENTS; i++) {
		clients[i] = (struct client){ .daemon = daemon, .index = i, .held = &held };
		assert_int_equal(
			pthread_create(&clients[i].thread, NULL, run_sessions, &clients[i]), 0);
	}
	until = test_now_ms() + PATIENCE_MS;
	for (unsigned i = 0; i < CLIENTS; i++) {
		assert_int_equal(pthread_join(clients[i].thread, NULL), 0);
		assert_in_range(clients[i].worst, 0, MAX);
		assert_true(clients[i].refused > 0);
	}
	assert_true(test_now_ms() < until);
	assert_int_equal(wire_status(wire, "sessions"), SESSIONS);
	assert_int_equal(wire_total(wire, "held", CONSISTENCY_EXACT), held);
	assert_int_equal(wire_usage(wire, "held"), held);
	assert_int_equal(wire_status(wire, "held_paths"), held);
	/* What is left is exactly what there is room for. */
	(void)wire_free(wire);
	wire = wire_open(daemon->socket);
	(void)wire_greet(wire, SESSIONS + 1, 0, 1);
	while (wire_charge(wire, number, "held/last/one", 1, NULL)) {
		number++;
	}
	assert_int_equal(held + (int64_t)number - 1, MAX);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

/* Many who wait for a place, hold it for a moment and go: each gets one, in turn, and there are never more than places. */

#define WAITERS 500u

static void *run_waiters(void *arg)
{
	struct client *client = arg;
	struct wire *wires[WAITERS / CLIENTS];
	struct reply reply;

	for (unsigned i = 0; i < WAITERS / CLIENTS; i++) {
		wires[i] = wire_open(client->daemon->socket);
		(void)wire_greet(wires[i], client->index * WAITERS + i + 1, 0, 1);
		(void)wire_send_charge(wires[i], 1, "held/wait", 1, PATIENCE_MS);
	}
	for (unsigned i = 0; i < WAITERS / CLIENTS; i++) {
		assert_true(wire_receive(wires[i], &reply));
		assert_int_equal(reply.type, REPLY_CHARGED);
		client->granted += reply.charged.granted;
		note(client, 1);
		note(client, -1);
		/* Given back, or left to the end of the session. */
		if (i % 2 == 0) {
			(void)wire_uncharge(wires[i], 2, "held/wait", 1);
		}
		wires[i] = wire_free(wires[i]);
	}
	return NULL;
}

static void test_all_who_wait_are_served(void **state)
{
	struct test_daemon *daemon = test_daemon_start(config);
	struct wire *wire = wire_open(daemon->socket);
	struct client clients[CLIENTS];
	_Atomic(int64_t) held = 0;
	int64_t until = test_now_ms() + PATIENCE_MS;

	(void)state;
	(void)wire_hello(wire, 0, 0, 0, NULL);
	for (unsigned i = 0; i < CLIENTS; i++) {
		clients[i] = (struct client){ .daemon = daemon, .index = i, .held = &held };
		assert_int_equal(pthread_create(&clients[i].thread, NULL, run_waiters, &clients[i]),
				 0);
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		assert_int_equal(pthread_join(clients[i].thread, NULL), 0);
		assert_int_equal(clients[i].granted, WAITERS / CLIENTS);
		assert_in_range(clients[i].worst, 0, 60);
	}
	while (wire_total(wire, "held", CONSISTENCY_EXACT) != 0) {
		assert_true(test_now_ms() < until);
		(void)usleep(1000);
	}
	assert_int_equal(wire_status(wire, "charges_waiting"), 0);
	assert_int_equal(wire_status(wire, "held_paths"), 0);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

/* Clients that reconnect in the middle of charges, a thousand times: nothing is charged twice, nothing is lost. */
static void *run_reconnects(void *arg)
{
	struct client *client = arg;
	struct wire *wire = wire_open(client->daemon->socket);
	uint64_t sent = 0, answered = 0;
	struct reply reply;

	(void)wire_greet(wire, client->index + 1, 600000, 1);
	for (unsigned i = 0; i < 250; i++) {
		uint64_t up_to = sent + 1 + test_random_below(&client->random, 8);

		while (sent < up_to) {
			(void)wire_send_charge(wire, ++sent, "count/reconnect", 1, 0);
		}
		for (uint64_t n = test_random_below(&client->random, sent - answered + 1); n > 0;
		     n--) {
			assert_true(wire_receive(wire, &reply));
			assert_int_equal(reply.charged.number, ++answered);
			client->granted += reply.charged.granted;
		}
		/* Cut, or taken over by oneself. */
		if (test_random_below(&client->random, 2) == 0) {
			wire = wire_free(wire);
		}
		{
			struct wire *newer = wire_open(client->daemon->socket);

			reply = wire_greet(newer, client->index + 1, 600000, answered + 1);
			assert_true(reply.welcome.resumed);
			assert_true(reply.welcome.last_operation <= sent);
			(void)wire_free(wire);
			wire = newer;
		}
		for (uint64_t number = answered + 1; number <= sent; number++) {
			(void)wire_send_charge(wire, number, "count/reconnect", 1, 0);
		}
	}
	while (answered < sent) {
		assert_true(wire_receive(wire, &reply));
		assert_int_equal(reply.charged.number, ++answered);
		client->granted += reply.charged.granted;
	}
	client->refused = sent - client->granted;
	(void)wire_free(wire);
	return NULL;
}

static void test_reconnects(void **state)
{
	struct test_daemon *daemon = test_daemon_start(
		"workers = 3\n[quota count/reconnect]\nmax = 2000\n[metric count]\nkind = counter\n");
	struct wire *wire = wire_open(daemon->socket);
	struct client clients[CLIENTS];
	uint64_t granted = 0;

	(void)state;
	(void)wire_hello(wire, 0, 0, 0, NULL);
	for (unsigned i = 0; i < CLIENTS; i++) {
		clients[i] = (struct client){ .daemon = daemon, .index = i };
		test_random_init(&clients[i].random, i);
		assert_int_equal(
			pthread_create(&clients[i].thread, NULL, run_reconnects, &clients[i]), 0);
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		assert_int_equal(pthread_join(clients[i].thread, NULL), 0);
		granted += clients[i].granted;
	}
	assert_int_equal(wire_total(wire, "count/reconnect", CONSISTENCY_EXACT), granted);
	assert_int_equal(granted, 2000);
	assert_true(wire_status(wire, "operations_duplicate") > 0);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

/* What a session held on many paths comes back all of it, though not at one go; and nothing is left over where the daemon ends first. */
static void test_many_paths(void **state)
{
	enum {
		PATHS = 9000
	};
	struct test_daemon *daemon = test_daemon_start(
		"workers = 2\n[metric held]\nkind = gauge\n[quota held]\nmax = 9000\n");
	struct wire *watch = wire_open(daemon->socket), *wire = NULL;
	struct charge_item *items = calloc(PATHS, sizeof(*items));
	char(*names)[24] = calloc(PATHS, sizeof(*names));
	struct request request = wire_charge_request(1, items, PATHS);
	struct reply reply;

	(void)state;
	assert_true(items != NULL && names != NULL);
	(void)wire_greet(watch, 1, 0, 1);
	for (unsigned i = 0; i < PATHS; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "held/%u/%u", i % 30, i);
		items[i] = (struct charge_item){ .path = text_of(names[i]), .amount = 1 };
	}
	for (unsigned round = 0; round < 3; round++) {
		/* The same session, which may come while what it held before is on its way. */
		wire = wire_open(daemon->socket);
		(void)wire_greet(wire, 2, 0, 1);
		request.charge.wait_ms = PATIENCE_MS;
		reply = wire_call(wire, &request);
		assert_int_equal(reply.type, REPLY_CHARGED);
		assert_true(reply.charged.granted);
		assert_int_equal(wire_usage(watch, "held"), PATHS);
		(void)wire_free(wire);
	}
	/* Who waits for all of it gets it when the last is back. */
	(void)wire_send_charge(watch, 1, "held/all", PATHS, PATIENCE_MS);
	assert_true(wire_receive(watch, &reply));
	assert_true(reply.charged.granted);
	assert_false(wire_uncharge(watch, 2, "held/all", PATHS));
	wire = wire_open(daemon->socket);
	(void)wire_greet(wire, 3, 0, 1);
	reply = wire_call(wire, &request);
	assert_true(reply.charged.granted);
	(void)wire_free(wire);
	(void)wire_free(watch);
	test_daemon_stop(daemon);
	free(items);
	free(names);
}

/* Stopped for a while and continued: time has passed for rates and waits, and nothing else has happened. */
static void test_paused(void **state)
{
	struct test_daemon *daemon = test_daemon_start(
		"workers = 2\n[metric held]\nkind = gauge\n[quota held]\nmax = 1\n[quota rated]\nrate = 10/1s\nburst = 10\n");
	struct wire *a = wire_open(daemon->socket), *b = wire_open(daemon->socket);
	struct reply reply;
	int status;

	(void)state;
	(void)wire_greet(a, 1, 300, 1);
	(void)wire_greet(b, 2, 0, 1);
	assert_true(wire_charge(a, 1, "held/a", 1, NULL));
	assert_true(wire_charge(b, 1, "rated", 10, NULL));
	assert_false(wire_charge(b, 2, "rated", 10, NULL));
	(void)wire_send_charge(b, 3, "held/b", 1, 200);
	(void)usleep(50000);
	test_daemon_signal(daemon, SIGSTOP);
	/* All its threads. */
	assert_int_equal(waitpid(daemon->pid, &status, WUNTRACED), daemon->pid);
	assert_true(WIFSTOPPED(status));
	(void)wire_send_charge(b, 4, "rated", 10, 0);
	(void)usleep(1100000);
	test_daemon_signal(daemon, SIGCONT);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(wire_receive(b, &reply));
		assert_int_equal(reply.type, REPLY_CHARGED);
		assert_int_equal(reply.charged.granted, reply.charged.number == 4);
	}
	assert_true(wire_charge(a, 1, "held/a", 1, &reply));
	assert_true(reply.charged.duplicate);
	assert_int_equal(wire_usage(b, "held"), 1);
	(void)wire_free(a);
	(void)wire_free(b);
	test_daemon_stop(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ten_thousand_holders),
		cmocka_unit_test(test_all_who_wait_are_served),
		cmocka_unit_test(test_reconnects),
		cmocka_unit_test(test_many_paths),
		cmocka_unit_test(test_paused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
