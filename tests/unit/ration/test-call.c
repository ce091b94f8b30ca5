/*
 * The synchronous functions, on a connection of their own, against a daemon whose answers a script determines.
 */
#include "clients/c/include/ration.h"
#include "tests/support/test.h"
#include "tests/unit/ration/fake.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * The client asks from a thread of its own; the script runs in the test's. The background thread's connection comes first and is
 * accepted and left alone.
 */
struct fixture {
	char *dir;
	struct fake fake;
	struct fake_peer sender;
	struct ration *client;
	pthread_t thread;

	/* what the asking thread did */
	int (*ask)(struct fixture *fixture);
	int result;
	char error[160];
	struct ration_value values[8];
	struct ration_view view;
	char seen[4096];
	size_t n_seen;
	size_t stop_after;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	void *dir;

	if (test_dir_setup(&dir) != 0) {
		return -1;
	}
	fixture->dir = dir;
	fake_listen(&fixture->fake, fixture->dir);
	fixture->client = ration_open(fixture->fake.url, NULL);
	assert_non_null(fixture->client);
	fake_accept(&fixture->fake, &fixture->sender);
	fake_welcome(&fixture->sender, false, 0, &FAKE_LIMITS, NULL);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;
	void *dir = fixture->dir;

	assert_int_equal(ration_close(fixture->client, 0, NULL), 0);
	fake_hang_up(&fixture->sender);
	fake_close(&fixture->fake);
	free(fixture);
	return test_dir_teardown(&dir);
}

static void *run(void *arg)
{
	struct fixture *fixture = arg;

	fixture->result = fixture->ask(fixture);
	(void)snprintf(fixture->error, sizeof(fixture->error), "%s", ration_error());
	return NULL;
}

static void begin(struct fixture *fixture, int (*ask)(struct fixture *fixture))
{
	fixture->ask = ask;
	assert_int_equal(pthread_create(&fixture->thread, NULL, run, fixture), 0);
}

static int end(struct fixture *fixture)
{
	assert_int_equal(pthread_join(fixture->thread, NULL), 0);
	return fixture->result;
}

/* Its connection: a Hello without a session. */
static void greet(struct fixture *fixture, struct fake_peer *peer, const struct limits *limits)
{
	struct hello hello;

	fake_accept(&fixture->fake, peer);
	fake_welcome(peer, false, 0, limits, &hello);
	assert_int_equal(hello.session.len, 0);
	assert_int_equal(hello.lifetime_ms, 0);
}

/* ---- get ---- */

static int ask_two(struct fixture *fixture)
{
	static const char *const paths[] = { "m", "m/none" };

	return ration_get(fixture->client, paths, 2, RATION_EXACT, 2000, fixture->values,
			  &fixture->view);
}

static int ask_one_shortly(struct fixture *fixture)
{
	static const char *const paths[] = { "m" };

	return ration_get(fixture->client, paths, 1, RATION_FRESH, FAKE_SHORT_MS, fixture->values,
			  &fixture->view);
}

static int ask_five(struct fixture *fixture)
{
	static const char *const paths[] = { "m", "m/a", "m/b", "m/c", "m/d" };

	return ration_get(fixture->client, paths, 5, RATION_CACHED, 2000, fixture->values,
			  &fixture->view);
}

static int ask_nothing(struct fixture *fixture)
{
	return ration_get(fixture->client, NULL, 0, RATION_FRESH, 2000, NULL, NULL);
}

/* Values whose totals count on from `first`. */
static void answer_values(struct fake_peer *peer, const struct request *request, int64_t first,
			  uint64_t error_bound)
{
	struct value values[8] = { { 0 } };
	struct reply reply = {
		.id = request->id,
		.type = REPLY_VALUES,
		.values = {
			.n_values = request->get.n_paths,
			.values = values,
			.view = { .present = true, .error_bound = error_bound, .age_ms = 4 },
		},
	};

	for (size_t i = 0; i < request->get.n_paths; i++) {
		values[i].total = first + (int64_t)i;
		values[i].text = text_of("");
	}
	fake_send(peer, &reply);
}

static void test_get(void **state)
{
	struct fixture *fixture = *state;
	const struct value values[] = {
		{ .kind = KIND_GAUGE,
		  .leaf = true,
		  .own = INT64_MIN,
		  .total = INT64_MAX,
		  .text = text_of("") },
		{ .code = CODE_NOT_FOUND, .text = text_of("no such counter") },
	};
	struct reply reply = {
		.type = REPLY_VALUES,
		.values = { .n_values = 2,
			    .values = values,
			    .view = { .present = true, .error_bound = 9, .age_ms = 3 } },
	};
	struct fake_peer peer;
	struct request request;

	begin(fixture, ask_two);
	greet(fixture, &peer, &FAKE_LIMITS);
	fake_take(&peer, REQUEST_GET, &request);
	assert_int_equal(request.get.consistency, CONSISTENCY_EXACT);
	assert_int_equal(request.get.n_paths, 2);
	assert_memory_equal(request.get.paths[1].at, "m/none", 6);
	reply.id = request.id;
	fake_send(&peer, &reply);
	assert_int_equal(end(fixture), 0);
	assert_int_equal(fixture->values[0].code, RATION_OK);
	assert_int_equal(fixture->values[0].kind, RATION_GAUGE);
	assert_true(fixture->values[0].leaf);
	assert_int_equal(fixture->values[0].own, INT64_MIN);
	assert_int_equal(fixture->values[0].total, INT64_MAX);
	assert_int_equal(fixture->values[1].code, RATION_NOT_FOUND);
	assert_int_equal(fixture->view.error_bound, 9);
	assert_int_equal(fixture->view.age_ms, 3);
	fake_hang_up(&peer);
}

static void test_get_in_parts(void **state)
{
	struct fixture *fixture = *state;
	struct limits limits = FAKE_LIMITS;
	struct fake_peer peer;
	struct request request;

	limits.max_items = 2;
	begin(fixture, ask_five);
	greet(fixture, &peer, &limits);
	for (int64_t at = 0; at < 5; at += 2) {
		fake_take(&peer, REQUEST_GET, &request);
		assert_int_equal(request.get.n_paths, at == 4 ? 1 : 2);
		answer_values(&peer, &request, at, (uint64_t)(10 - at));
	}
	assert_int_equal(end(fixture), 0);
	for (int64_t i = 0; i < 5; i++) {
		assert_int_equal(fixture->values[i].total, i);
	}
	assert_int_equal(fixture->view.error_bound, 10);
	fake_hang_up(&peer);
}

static void test_get_of_nothing_pings(void **state)
{
	struct fixture *fixture = *state;
	struct reply pong = { .type = REPLY_PONG };
	struct fake_peer peer;
	struct request request;

	begin(fixture, ask_nothing);
	greet(fixture, &peer, &FAKE_LIMITS);
	fake_take(&peer, REQUEST_PING, &request);
	pong.id = request.id;
	fake_send(&peer, &pong);
	assert_int_equal(end(fixture), 0);
	fake_hang_up(&peer);
}

static void test_daemons_error_is_the_answer(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;

	fixture->values[0].total = 77;
	begin(fixture, ask_two);
	greet(fixture, &peer, &FAKE_LIMITS);
	fake_take(&peer, REQUEST_GET, &request);
	fake_error(&peer, request.id, CODE_RESOURCE_EXHAUSTED, "ask for fewer");
	assert_int_equal(end(fixture), RATION_RESOURCE_EXHAUSTED);
	assert_string_equal(fixture->error, "ask for fewer");
	assert_int_equal(fixture->values[0].total, 77);

	begin(fixture, ask_two); /* the connection goes on */
	fake_take(&peer, REQUEST_GET, &request);
	answer_values(&peer, &request, 1, 0);
	assert_int_equal(end(fixture), 0);
	fake_hang_up(&peer);
}

static void test_wrong_number_of_values(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;

	begin(fixture, ask_two);
	greet(fixture, &peer, &FAKE_LIMITS);
	fake_take(&peer, REQUEST_GET, &request);
	request.get.n_paths = 3;
	answer_values(&peer, &request, 1, 0);
	assert_int_equal(end(fixture), -EBADMSG);
	fake_expect_end(&peer);
	fake_hang_up(&peer);
}

static void test_no_answer_in_time(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, again;
	struct request request;

	begin(fixture, ask_one_shortly);
	greet(fixture, &peer, &FAKE_LIMITS);
	fake_take(&peer, REQUEST_GET, &request);
	assert_int_equal(end(fixture), -ETIMEDOUT);
	fake_expect_end(&peer); /* so that a late answer meets no other question */

	begin(fixture, ask_two);
	greet(fixture, &again, &FAKE_LIMITS);
	fake_take(&again, REQUEST_GET, &request);
	answer_values(&again, &request, 1, 0);
	assert_int_equal(end(fixture), 0);
	fake_hang_up(&again);
	fake_hang_up(&peer);
}

static void test_stale_connection_is_renewed(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, again;
	struct request request;

	begin(fixture, ask_two);
	greet(fixture, &peer, &FAKE_LIMITS);
	fake_take(&peer, REQUEST_GET, &request);
	answer_values(&peer, &request, 1, 0);
	assert_int_equal(end(fixture), 0);
	fake_hang_up(&peer);

	begin(fixture, ask_two);
	greet(fixture, &again, &FAKE_LIMITS);
	fake_take(&again, REQUEST_GET, &request);
	answer_values(&again, &request, 5, 0);
	assert_int_equal(end(fixture), 0);
	assert_int_equal(fixture->values[0].total, 5);
	fake_hang_up(&again);
}

static void test_broken_twice_is_not_connected(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;

	begin(fixture, ask_two);
	for (int i = 0; i < 2; i++) {
		greet(fixture, &peer, &FAKE_LIMITS);
		fake_take(&peer, REQUEST_GET, &request);
		fake_hang_up(&peer);
	}
	/* Connecting is a request too: two questions were asked. */
	assert_int_equal(end(fixture), -ENOTCONN);
	assert_string_not_equal(fixture->error, "");
}

static void test_nobody_listens(void **state)
{
	struct timespec before, after;
	struct ration_value value;
	const char *path = "m";
	struct ration *client;

	(void)state;
	client = ration_open("unix:/nonexistent/socket", NULL);
	assert_non_null(client);
	(void)clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(ration_get(client, &path, 1, RATION_FRESH, -1, &value, NULL), -ENOTCONN);
	assert_int_equal(ration_fold(client, -1), -ENOTCONN);
	(void)clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true(after.tv_sec - before.tv_sec <= 1);
	assert_non_null(strstr(ration_error(), "/nonexistent/socket"));
	assert_int_equal(ration_close(client, 0, NULL), 0);
}

/* ---- walk ---- */

static bool see(void *ctx, const struct ration_entry *entry)
{
	struct fixture *fixture = ctx;
	size_t len = strlen(fixture->seen);

	(void)snprintf(fixture->seen + len, sizeof(fixture->seen) - len, "%s:%u=%lld ", entry->path,
		       entry->depth, (long long)entry->value.total);
	fixture->n_seen++;
	return fixture->n_seen != fixture->stop_after;
}

static int ask_walk(struct fixture *fixture)
{
	return ration_walk(fixture->client, "m", UINT32_MAX, RATION_FRESH, 2000, see, fixture,
			   &fixture->view);
}

static void answer_page(struct fake_peer *peer, uint64_t id, const char *path, int64_t total,
			bool last, const char *cursor)
{
	struct entry entry = { .path = text_of(path),
			       .depth = 2,
			       .value = { .total = total, .text = text_of("") } };
	struct reply reply = {
		.id = id,
		.type = REPLY_PAGE,
		.page = {
			.n_entries = 1,
			.entries = &entry,
			.last = last,
			.cursor = text_of(cursor),
			.view = { .present = true, .error_bound = 5 },
		},
	};

	fake_send(peer, &reply);
}

static void test_walk_by_pages(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;

	begin(fixture, ask_walk);
	greet(fixture, &peer, &FAKE_LIMITS);
	fake_take(&peer, REQUEST_WALK, &request);
	assert_int_equal(request.walk.depth, UINT32_MAX);
	assert_int_equal(request.walk.root.len, 1);
	assert_int_equal(request.walk.cursor.len, 0);
	assert_true(request.walk.limit > 0);
	answer_page(&peer, request.id, "m/a", 1, false, "");
	answer_page(&peer, request.id, "m/b", 2, true, "here");
	fake_take(&peer, REQUEST_WALK, &request);
	assert_int_equal(request.walk.cursor.len, 4);
	assert_memory_equal(request.walk.cursor.at, "here", 4);
	answer_page(&peer, request.id, "m/c", 3, true, "");
	assert_int_equal(end(fixture), 0);
	assert_string_equal(fixture->seen, "m/a:2=1 m/b:2=2 m/c:2=3 ");
	assert_int_equal(fixture->view.error_bound, 5);
	fake_hang_up(&peer);
}

static void test_walk_begins_a_page_again(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer, again;
	struct request request;

	begin(fixture, ask_walk);
	greet(fixture, &peer, &FAKE_LIMITS);
	fake_take(&peer, REQUEST_WALK, &request);
	answer_page(&peer, request.id, "m/a", 1, false, "");
	fake_hang_up(&peer); /* amid a page: nothing of it was shown yet */
	greet(fixture, &again, &FAKE_LIMITS);
	fake_take(&again, REQUEST_WALK, &request);
	answer_page(&again, request.id, "m/a", 1, true, "");
	assert_int_equal(end(fixture), 0);
	assert_string_equal(fixture->seen, "m/a:2=1 ");
	fake_hang_up(&again);
}

static void test_walk_stops_when_told(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;

	fixture->stop_after = 1;
	begin(fixture, ask_walk);
	greet(fixture, &peer, &FAKE_LIMITS);
	fake_take(&peer, REQUEST_WALK, &request);
	answer_page(&peer, request.id, "m/a", 1, false, "");
	answer_page(&peer, request.id, "m/b", 2, true, "here");
	assert_int_equal(end(fixture), 0);
	assert_int_equal(fixture->n_seen, 1);
	fake_hang_up(&peer);
}

static void test_walk_of_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct fake_peer peer;
	struct request request;

	begin(fixture, ask_walk);
	greet(fixture, &peer, &FAKE_LIMITS);
	fake_take(&peer, REQUEST_WALK, &request);
	fake_error(&peer, request.id, CODE_NOT_FOUND, "no such counter");
	assert_int_equal(end(fixture), RATION_NOT_FOUND);
	assert_int_equal(fixture->n_seen, 0);
	fake_hang_up(&peer);
}

/* ---- the rest ---- */

static void see_item(void *ctx, const struct ration_status_item *item)
{
	struct fixture *fixture = ctx;
	size_t len = strlen(fixture->seen);

	(void)snprintf(fixture->seen + len, sizeof(fixture->seen) - len, "%s=%s/%lld (%s) ",
		       item->name, item->text == NULL ? "-" : item->text, (long long)item->number,
		       item->help);
}

static int ask_status(struct fixture *fixture)
{
	return ration_status(fixture->client, 2000, see_item, fixture);
}

static void test_status(void **state)
{
	struct fixture *fixture = *state;
	const struct status_item items[] = {
		{ .name = text_of("version"),
		  .is_text = true,
		  .text = text_of("0.1.0"),
		  .help = text_of("which") },
		{ .name = text_of("counters"),
		  .number = -3,
		  .text = text_of(""),
		  .help = text_of("") },
	};
	struct reply reply = { .type = REPLY_STATUS, .status = { .n_items = 2, .items = items } };
	struct fake_peer peer;
	struct request request;

	begin(fixture, ask_status);
	greet(fixture, &peer, &FAKE_LIMITS);
	fake_take(&peer, REQUEST_STATUS, &request);
	reply.id = request.id;
	fake_send(&peer, &reply);
	assert_int_equal(end(fixture), 0);
	assert_string_equal(fixture->seen, "version=0.1.0/0 (which) counters=-/-3 () ");
	fake_hang_up(&peer);
}

static int ask_metric(struct fixture *fixture)
{
	struct ration_metric metric = RATION_METRIC_INIT;
	int r;

	metric.kind = RATION_GAUGE;
	metric.max_counters = 7;
	metric.overflow = true;
	metric.expire_after_ms = 5000;
	r = ration_metric_set(fixture->client, "m", &metric, 2000);
	if (r != 0) {
		return r;
	}
	metric = (struct ration_metric)RATION_METRIC_INIT;
	r = ration_metric_get(fixture->client, "m", 2000, &metric);
	return r != 0 || metric.kind != RATION_GAUGE || metric.max_counters != 7 ||
	       !metric.overflow || metric.expire_after_ms != 5000 || metric.size != sizeof(metric);
}

static void test_metric(void **state)
{
	struct fixture *fixture = *state;
	struct reply reply = { .type = REPLY_METRIC };
	struct fake_peer peer;
	struct request request;

	begin(fixture, ask_metric);
	greet(fixture, &peer, &FAKE_LIMITS);
	fake_take(&peer, REQUEST_METRIC_SET, &request);
	assert_int_equal(request.metric_set.kind, KIND_GAUGE);
	assert_int_equal(request.metric_set.max_counters, 7);
	assert_true(request.metric_set.overflow);
	reply.metric = request.metric_set;
	reply.id = request.id;
	fake_send(&peer, &reply);
	fake_take(&peer, REQUEST_METRIC_GET, &request);
	assert_memory_equal(request.metric_get.at, "m", 1);
	reply.metric = (struct metric){ .name = text_of("m"),
					.kind = KIND_GAUGE,
					.max_counters = 7,
					.overflow = true,
					.expire_after_ms = 5000 };
	reply.id = request.id;
	fake_send(&peer, &reply);
	assert_int_equal(end(fixture), 0);
	fake_hang_up(&peer);
}

static int ask_fold(struct fixture *fixture)
{
	return ration_fold(fixture->client, 2000);
}

static void test_fold_and_replies_to_others(void **state)
{
	struct fixture *fixture = *state;
	struct reply reply = { .id = 4711, .type = REPLY_PONG };
	struct fake_peer peer;
	struct request request;

	begin(fixture, ask_fold);
	greet(fixture, &peer, &FAKE_LIMITS);
	fake_take(&peer, REQUEST_FLUSH, &request);
	fake_send(&peer, &reply);
	reply.id = request.id;
	reply.type = REPLY_FLUSHED;
	fake_send(&peer, &reply);
	assert_int_equal(end(fixture), 0);
	fake_hang_up(&peer);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(test_get),
		T(test_get_in_parts),
		T(test_get_of_nothing_pings),
		T(test_daemons_error_is_the_answer),
		T(test_wrong_number_of_values),
		T(test_no_answer_in_time),
		T(test_stale_connection_is_renewed),
		T(test_broken_twice_is_not_connected),
		cmocka_unit_test(test_nobody_listens),
		T(test_walk_by_pages),
		T(test_walk_begins_a_page_again),
		T(test_walk_stops_when_told),
		T(test_walk_of_nothing),
		T(test_status),
		T(test_metric),
		T(test_fold_and_replies_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
