/*
 * What clients do while a checkpoint is under way: between the cuts of two workers, and after their cuts.
 */
#include "tests/support/daemon.h"
#include "tests/support/hold.h"
#include "tests/support/test.h"
#include "tests/support/wire-quota.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct test_daemon *start(const char *config)
{
	struct test_daemon *daemon = test_daemon_prepare(config);

	daemon->keeps = true;
	test_daemon_spawn(daemon, NULL);
	test_daemon_await(daemon, "READY=1");
	return daemon;
}

/* Sessions of which one is with each of two workers. */
static void open_two(struct test_daemon *daemon, struct wire *wires[2])
{
	for (uint8_t i = 0; i < 2; i++) {
		wires[i] = wire_open(daemon->socket);
		(void)wire_hello(wires[i], (uint8_t)(i + 1), 60000, 1, NULL);
	}
}

/* Which of them is answered while the other one's worker is held? */
static unsigned find_answered(struct wire *wires[2])
{
	const struct request ping = { .id = 999, .type = REQUEST_PING };
	struct reply reply;
	unsigned i = 0;

	(void)wire_send(wires[0], &ping);
	(void)wire_send(wires[1], &ping);
	while (!wire_poll(wires[i], 10)) {
		i = 1 - i;
	}
	assert_true(wire_receive(wires[i], &reply));
	assert_int_equal(reply.type, REPLY_PONG);
	return i;
}

/* The one that worker-0 does not serve. */
static unsigned find_second(const struct test_daemon *daemon, struct wire *wires[2])
{
	pid_t thread = hold_thread(daemon->pid, "worker-0");
	unsigned found;

	if (thread == -EPERM) {
		skip();
	}
	assert_true(thread > 0);
	found = find_answered(wires);
	hold_release(thread);
	return found;
}

/* A counter goes, and comes back, after one worker's cut and before another's: for a moment the file has both. */
static void test_removed_between_cuts(void **state)
{
	static const char config[] =
		"workers = 2\ncheckpoint_interval = 10m\n[metric m]\nexpire_after = 1s\n"
		"[quota m/*]\nhigh = 1000\ncalendar = day\n";
	const struct request flush = { .type = REQUEST_FLUSH, .flush = { .durable = true } };
	struct test_daemon *daemon = start(config);
	struct wire *wires[2], *wire;
	struct reply reply;
	uint8_t session;
	pid_t thread;

	(void)state;
	open_two(daemon, wires);
	session = (uint8_t)(find_second(daemon, wires) + 1);
	wire = wires[session - 1];
	wire_intern(wire, 1, "m/a");
	assert_false(wire_add(wire, 1, 1, 5));
	wire_flush_durable(wire);

	thread = hold_thread(daemon->pid, "worker-0");
	assert_true(thread > 0);
	(void)wire_send(wire, &flush);
	while (wire_exists(wire, "m/a")) {
		(void)usleep(50000);
	}
	wire_intern(wire, 2, "m/a");
	assert_false(wire_add(wire, 2, 2, 7));
	hold_release(thread);
	do {
		assert_true(wire_receive(wire, &reply));
	} while (reply.type != REPLY_FLUSHED);

	(void)wire_free(wires[0]);
	(void)wire_free(wires[1]);
	test_daemon_restart(daemon, SIGKILL);

	/* What was counted first is its parent's; the other batch was after its worker's cut, and comes again. */
	wire = wire_open(daemon->socket);
	assert_int_equal(wire_hello(wire, session, 60000, 2, NULL), 1);
	assert_int_equal(wire_total(wire, "m", CONSISTENCY_EXACT), 5);
	assert_int_equal(wire_total(wire, "m/a", CONSISTENCY_EXACT), 0);
	wire_intern(wire, 1, "m/a");
	assert_false(wire_add(wire, 2, 1, 7));
	wire_flush_durable(wire);
	(void)wire_free(wire);
	test_daemon_restart(daemon, SIGKILL);
	wire = wire_open(daemon->socket);
	assert_int_equal(wire_hello(wire, session, 60000, 3, NULL), 2);
	assert_int_equal(wire_total(wire, "m", CONSISTENCY_EXACT), 12);
	assert_int_equal(wire_total(wire, "m/a", CONSISTENCY_EXACT), 7);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

/* Long enough for a worker that is not held to have given its cut. */
static void let_cut(struct wire *wire)
{
	const struct request ping = { .type = REQUEST_PING };

	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(wire_call(wire, &ping).type, REPLY_PONG);
		(void)usleep(1000);
	}
}

/*
 * One worker has given its cut, and goes on counting and charging; another has not, and takes that off again, by a reset and an uncharge that came to it before. The
 * file must not have what was taken off without what it was taken from.
 */
static void test_taken_off_between_cuts(void **state)
{
	const struct request flush = { .type = REQUEST_FLUSH, .flush = { .durable = true } };
	const struct charge_item item = { .path = text_of("held/a"), .amount = 3 };
	struct request charge = wire_charge_request(1, &item, 1);
	const struct request taken[] = {
		{ .type = REQUEST_IMPORT,
		  .import = { .n_items = 1,
			      .items = &(struct import_item){ .path = text_of("count/b") } } },
		{ .type = REQUEST_UNCHARGE,
		  .uncharge = { .number = 1, .path = item.path, .amount = 3, .detached = true } },
		/* The last, for those behind it wait for it. */
		{ .type = REQUEST_RESET, .reset = text_of("count/a") },
	};
	struct test_daemon *daemon =
		start("workers = 2\ncheckpoint_interval = 10m\n[metric held]\nkind = gauge\n");
	struct wire *wires[2], *wire, *other;
	struct reply reply;
	pid_t thread;

	(void)state;
	open_two(daemon, wires);
	wire = wires[find_second(daemon, wires)];
	other = wire == wires[0] ? wires[1] : wires[0];
	wire_intern(wire, 1, "count/a");
	wire_intern(wire, 2, "count/b");
	assert_false(wire_add(wire, 1, 1, 10));
	assert_false(wire_add(wire, 2, 2, 10));
	wire_flush_durable(wire);

	thread = hold_thread(daemon->pid, "worker-0");
	assert_true(thread > 0);
	for (unsigned i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		(void)wire_send(other, &taken[i]);
	}
	(void)wire_send(wire, &flush);
	let_cut(wire);
	assert_false(wire_add(wire, 3, 1, 5));
	assert_false(wire_add(wire, 4, 2, 5));
	charge.charge.detached = true;
	assert_true(wire_call(wire, &charge).charged.granted);
	hold_release(thread);
	do {
		assert_true(wire_receive(wire, &reply));
	} while (reply.type != REPLY_FLUSHED);
	do {
		assert_true(wire_receive(other, &reply));
	} while (reply.type != REPLY_RESET);
	assert_int_equal(wire_total(wire, "count", CONSISTENCY_EXACT), 0);
	assert_int_equal(wire_total(wire, "held", CONSISTENCY_EXACT), 0);
	(void)wire_free(wires[0]);
	(void)wire_free(wires[1]);
	test_daemon_restart(daemon, SIGKILL);

	wire = wire_open(daemon->socket);
	(void)wire_hello(wire, 0, 0, 0, NULL);
	assert_int_equal(wire_total(wire, "count/a", CONSISTENCY_EXACT), 10);
	assert_int_equal(wire_total(wire, "count/b", CONSISTENCY_EXACT), 10);
	assert_int_equal(wire_total(wire, "held", CONSISTENCY_EXACT), 0);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

/* ---- an end under load ---- */

#define MANY 60000u /* counters whose growth takes a while to merge */

static void intern_many(struct wire *wire)
{
	struct text *paths = calloc(MANY, sizeof(*paths));
	char *names = calloc(MANY, 16);
	const struct request request = {
		.type = REQUEST_INTERN,
		.intern = { .first_handle = 1, .n_paths = MANY, .paths = paths },
	};

	assert_non_null(paths);
	assert_non_null(names);
	for (size_t i = 0; i < MANY; i++) {
		(void)snprintf(names + i * 16, 16, "many/%zu", i);
		paths[i] = text_of(names + i * 16);
	}
	assert_int_equal(wire_call(wire, &request).type, REPLY_INTERNED);
	free(names);
	free(paths);
}

/* One of each, and nothing is waited for; then the store's thread has something to do for a while. */
static void add_many(struct wire *wire, uint64_t batch)
{
	const struct request flush = { .type = REQUEST_FLUSH, .flush = { .durable = true } };
	uint32_t *handles = calloc(MANY, sizeof(*handles));
	int64_t *deltas = calloc(MANY, sizeof(*deltas));
	struct request add;

	assert_non_null(handles);
	assert_non_null(deltas);
	for (uint32_t i = 0; i < MANY; i++) {
		handles[i] = i + 1;
		deltas[i] = 1;
	}
	add = wire_add_request(batch, handles, deltas, MANY);
	(void)wire_send(wire, &add);
	(void)wire_send(wire, &flush);
	free(deltas);
	free(handles);
}

/*
 * The store's thread is held wherever it is, a counter is made, and the workers end meanwhile: their last cuts are there before it goes on, maybe in the midst
 * of merging those that they were asked for.
 */
static void end_within(struct test_daemon *daemon, struct wire *many, struct wire *other,
		       unsigned round)
{
	struct reply reply;
	char name[32];
	pid_t thread;

	intern_many(many);
	wire_intern(other, 1, "other");
	for (uint64_t batch = 1; batch <= 3; batch++) {
		add_many(many, batch);
	}
	for (unsigned i = 0; i < 2; i++) {
		assert_true(wire_receive(many, &reply));
	}
	(void)usleep(round % 10 * 2000);
	thread = hold_thread(daemon->pid, "store");
	if (thread == -EPERM) {
		skip();
	}
	assert_true(thread > 0);
	(void)snprintf(name, sizeof(name), "new/%u", round);
	wire_intern(other, 2, name);
	assert_false(wire_add(other, 1, 2, 1));
	test_daemon_signal(daemon, SIGTERM);
	while (wire_receive(other, &reply)) {
		/* until it is closed */
	}
	(void)usleep(20000);
	hold_release(thread);
}

static void test_end_within(void **state)
{
	struct test_daemon *daemon = start("workers = 2\ncheckpoint_interval = 10ms\n");

	(void)state;
	for (unsigned round = 0; round < 10; round++) {
		struct wire *wires[2];
		int status;

		for (uint8_t i = 0; i < 2; i++) {
			wires[i] = wire_open(daemon->socket);
			wires[i]->mortal = true;
			(void)wire_hello(wires[i], (uint8_t)(10 + 2 * round + i), 0, 1, NULL);
		}
		end_within(daemon, wires[round % 2], wires[1 - round % 2], round);
		(void)wire_free(wires[0]);
		(void)wire_free(wires[1]);
		status = test_daemon_wait(daemon);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		test_daemon_spawn(daemon, NULL);
		test_daemon_await(daemon, "READY=1");
	}
	test_daemon_stop(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_removed_between_cuts),
		cmocka_unit_test(test_taken_off_between_cuts),
		cmocka_unit_test(test_end_within),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
