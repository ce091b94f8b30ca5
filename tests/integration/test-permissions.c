/*
 * Who may do what. The test must be root, to be others for a while.
 */
#include "tests/support/daemon.h"
#include "tests/support/test.h"
#include "tests/support/wire.h"

#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534u
#define GROUP 4711u /* of nobody on this machine */

/* A daemon that others can reach. */
static struct test_daemon *start(const char *config)
{
	struct test_daemon *daemon = test_daemon_start(config);

	assert_int_equal(chmod(daemon->dir, 0755), 0);
	assert_int_equal(chmod(daemon->socket, 0666), 0);
	return daemon;
}

/* Connect as another user: the kernel notes who that is. */
static struct wire *open_as(struct test_daemon *daemon, uid_t uid, gid_t gid, const gid_t *groups,
			    size_t n_groups)
{
	struct wire *wire;

	assert_int_equal(setgroups(n_groups, groups), 0);
	assert_int_equal(setegid(gid), 0);
	assert_int_equal(seteuid(uid), 0);
	wire = wire_open(daemon->socket);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(setegid(0), 0);
	assert_int_equal(setgroups(0, NULL), 0);
	(void)wire_hello(wire, (uint8_t)(uid + gid + n_groups), 0, 1, NULL);
	return wire;
}

static const struct request metric_set = {
	.type = REQUEST_METRIC_SET,
	.metric_set = { .name = { .at = "jobs", .len = 4 }, .kind = KIND_GAUGE },
};
static const struct request quota_set = {
	.type = REQUEST_QUOTA_SET,
	.quota_set = { .pattern = { .at = "jobs", .len = 4 },
		       .limits = { .has_max = true, .max = 10 } },
};
static const struct request quota_remove = {
	.type = REQUEST_QUOTA_REMOVE,
	.quota_remove = { .pattern = { .at = "jobs", .len = 4 }, .all_windows = true },
};
static const struct import_item import_item = { .path = { .at = "jobs/b", .len = 6 }, .own = 1 };
static const struct request import = {
	.type = REQUEST_IMPORT,
	.import = { .n_items = 1, .items = &import_item },
};
static const struct request reset = {
	.type = REQUEST_RESET,
	.reset = { .at = "jobs", .len = 4 },
};
static const struct request reload = { .type = REQUEST_RELOAD };

/* All orders but the reload, in an order in which they work. */
static const struct {
	const struct request *request;
	enum reply_type done;
} orders[] = {
	{ &metric_set, REPLY_METRIC },	   { &quota_set, REPLY_QUOTA_OK },
	{ &quota_remove, REPLY_QUOTA_OK }, { &import, REPLY_IMPORTED },
	{ &reset, REPLY_RESET },
};

#define N_ORDERS (sizeof(orders) / sizeof(orders[0]))

static void assert_reloads(struct test_daemon *daemon, struct wire *wire)
{
	assert_int_equal(wire_call(wire, &reload).type, REPLY_RELOADED);
	/* Its notifications are to be read: the kernel keeps no more than a few. */
	test_daemon_await(daemon, "RELOADING=1");
	test_daemon_await(daemon, "READY=1");
}

static void assert_may(struct test_daemon *daemon, struct wire *wire, bool may)
{
	for (size_t i = 0; i < N_ORDERS; i++) {
		struct reply reply = wire_call(wire, orders[i].request);

		assert_int_equal(reply.type, may ? orders[i].done : REPLY_ERROR);
		if (!may) {
			assert_int_equal(reply.error.code, CODE_PERMISSION_DENIED);
			assert_true(reply.error.text.len > 0);
		}
	}
	if (may) {
		assert_reloads(daemon, wire);
	} else {
		assert_int_equal(wire_call(wire, &reload).error.code, CODE_PERMISSION_DENIED);
	}
}

static void test_root(void **state)
{
	struct test_daemon *daemon = start("workers = 1\n");
	struct wire *wire = open_as(daemon, 0, 0, NULL, 0);

	(void)state;
	assert_may(daemon, wire, true);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

/* They count, charge and read, and are told no for the rest; nothing of that changes anything. */
static void test_others(void **state)
{
	struct test_daemon *daemon = start("workers = 1\n[metric jobs]\nkind = counter\n");
	struct wire *wire = open_as(daemon, NOBODY, NOBODY, NULL, 0);
	struct text path = text_of("jobs/a");
	const struct charge_item item = { .path = path, .amount = 3 };
	const struct request add = wire_add_request(1, (uint32_t[]){ 0 }, (int64_t[]){ 5 }, 1);
	const struct request others[] = {
		add,
		{ .type = REQUEST_CHARGE, .charge = { .number = 1, .n_items = 1, .items = &item } },
		{ .type = REQUEST_GET, .get = { .n_paths = 1, .paths = &path } },
		{ .type = REQUEST_STATUS },
		{ .type = REQUEST_FLUSH },
		{ .type = REQUEST_METRIC_GET, .metric_get = text_of("jobs") },
		{ .type = REQUEST_METRIC_LIST },
		{ .type = REQUEST_QUOTA_LIST, .quota_list = text_of("") },
		{ .type = REQUEST_QUOTA_EXPLAIN, .quota_explain = path },
	};
	const enum reply_type answers[] = {
		REPLY_APPLIED, REPLY_CHARGED,	  REPLY_VALUES,
		REPLY_STATUS,  REPLY_FLUSHED,	  REPLY_METRIC,
		REPLY_METRICS, REPLY_QUOTA_RULES, REPLY_QUOTA_EXPLAINED,
	};
	struct reply reply;

	(void)state;
	wire_intern(wire, 0, "jobs/a");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(wire_call(wire, &others[i]).type, answers[i]);
	}
	assert_may(daemon, wire, false);
	test_daemon_await_log(daemon, "uid 65534: denied: it may not declare metrics");
	test_daemon_await_log(daemon,
			      "uid 65534: denied: it may not have the configuration reloaded");
	reply = wire_call(wire, &others[5]);
	assert_int_equal(reply.metric.kind, KIND_COUNTER);
	reply = wire_call(wire, &others[7]);
	assert_int_equal(reply.quota_rules.n_rules, 0);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

static void test_group(void **state)
{
	static const gid_t many[] = { 1, 2, 3, GROUP, 5 };
	gid_t hundred[100];
	struct test_daemon *daemon = start("workers = 1\nadmin_group = 4711\n");
	struct wire *member = open_as(daemon, NOBODY, NOBODY, many, 5),
		    *primary = open_as(daemon, NOBODY, GROUP, NULL, 0),
		    *stranger = open_as(daemon, NOBODY, NOBODY, many, 3), *busy;

	(void)state;
	for (gid_t i = 0; i < 100; i++) {
		hundred[i] = i < 99 ? 1000 + i : GROUP;
	}
	busy = open_as(daemon, NOBODY, NOBODY, hundred, 100);
	assert_may(daemon, member, true);
	assert_may(daemon, primary, true);
	assert_may(daemon, busy, true);
	assert_may(daemon, stranger, false);
	(void)wire_free(busy);
	(void)wire_free(primary);

	/* Asked for each request: what a reload has changed holds for connections that are there. */
	test_daemon_configure(daemon, "workers = 1\nadmin_group = 3\n");
	assert_reloads(daemon, member);
	assert_may(daemon, stranger, true);
	test_daemon_configure(daemon, "workers = 1\n");
	assert_reloads(daemon, member);
	assert_may(daemon, member, false);
	assert_may(daemon, stranger, false);
	(void)wire_free(member);
	(void)wire_free(stranger);
	test_daemon_stop(daemon);
}

static void test_tcp(void **state)
{
	struct test_daemon *daemon =
		test_daemon_start("workers = 1\nadmin_group = 0\nlisten = tcp:127.0.0.1:0\n");
	static const char label[] = "listening on tcp:127.0.0.1:";
	char *log = test_daemon_log(daemon), *at = strstr(log, label);
	struct wire *wire;

	(void)state;
	assert_non_null(at);
	wire = wire_open_tcp(AF_INET, (unsigned)strtoul(at + strlen(label), NULL, 10));
	free(log);
	(void)wire_hello(wire, 1, 0, 1, NULL);
	assert_may(daemon, wire, false);
	(void)wire_free(wire);
	test_daemon_stop(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_root),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_tcp),
	};

	if (geteuid() != 0) {
		(void)fprintf(stderr, "SKIPPED: only root can be another user for a while\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
