#include "daemon/statsd/intake.h"

#include "daemon/log.h"
#include "lib/rcu/grace.h"
#include "tests/support/statsd-table.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world {
	struct engine *engine;
	struct engine_worker *worker;
	struct statsd_stats stats;
	struct statsd_levels *_Atomic levels;
	struct intake intake;
	struct log log;
};

static const uint64_t seed[2] = { 17, 4711 };
static const struct statsd_sender sender = { .text = "test" };

static struct world *world_new(void)
{
	const struct engine_options options = { .max_counters = 10000, .max_workers = 1 };
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	assert_int_equal(engine_new(&world->engine, &options), 0);
	assert_int_equal(engine_join(world->engine, &world->worker), 0);
	world->intake.engine = world->engine;
	world->intake.worker = world->worker;
	world->intake.stats = &world->stats;
	world->intake.levels = &world->levels;
	log_init(&world->log);
	world->log.max_priority = 0; /* silent */
	world->intake.complaints.log = &world->log;
	assert_int_equal(intake_init(&world->intake, 1 << 20, seed), 0);
	return world;
}

static void world_free(struct world *world)
{
	intake_deinit(&world->intake);
	engine_leave(world->worker);
	(void)engine_free(world->engine);
	log_deinit(&world->log);
	free(world);
}

struct joined {
	char bytes[1 << 18];
	size_t len;
	struct world *alone; /* gets each row when it is appended */
};

static void take(struct world *world, const char *bytes, size_t len)
{
	char *copy = calloc(1, len + SCAN_SLACK);

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	intake_take(&world->intake, copy, len, &sender);
	intake_settle(&world->intake);
	free(copy);
}

static void append(void *ctx, const struct table_row *row)
{
	struct joined *text = ctx;

	take(text->alone, row->bytes, row->len);
	assert_true(text->len + row->len + 1 <= sizeof(text->bytes));
	memcpy(text->bytes + text->len, row->bytes, row->len);
	text->len += row->len;
	text->bytes[text->len++] = '\n';
}

static void sum_up(void *ctx, const struct engine_entry *entry)
{
	uint64_t *sum = ctx;

	*sum += (uint64_t)entry->reading.own;
}

static uint64_t sum_of(struct world *world)
{
	struct engine_cursor cursor = { 0 };
	uint64_t sum = 0;
	bool done = false;

	engine_flush(world->engine, 1);
	assert_int_equal(engine_walk(world->engine, "", 0, UINT32_MAX, SIZE_MAX, &cursor, sum_up,
				     &sum, &done),
			 0);
	assert_true(done);
	return sum;
}

/* Whatever lines stand beside each other, and in whichever group: each of them comes to the same as alone. */
static void test_together_as_alone(void **state)
{
	static struct joined text;
	struct world *alone = world_new(), *together = world_new();

	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		text = (struct joined){ .alone = alone };
		assert_true(table_each(append, &text) > 200);
		take(together, text.bytes, text.len);
	}
	for (unsigned i = 0; i < STATSD_N_REASONS; i++) {
		assert_int_equal(stats_read(&together->stats.rejected[i]),
				 stats_read(&alone->stats.rejected[i]));
	}
	assert_true(stats_read(&alone->stats.lines) > 0);
	assert_int_equal(stats_read(&together->stats.lines), stats_read(&alone->stats.lines));
	assert_int_equal(stats_read(&together->stats.unknown_fields),
			 stats_read(&alone->stats.unknown_fields));
	assert_int_equal(stats_read(&together->stats.names_learned),
			 stats_read(&alone->stats.names_learned));
	assert_int_equal(sum_of(together), sum_of(alone));
	world_free(together);
	world_free(alone);
}

/* Names are forgotten in the midst of a group: what was found before in it is no longer there. */
static void test_forgotten_in_a_group(void **state)
{
	struct world *world = world_new();
	char text[1024];
	size_t len = 0;

	(void)state;
	statsd_names_deinit(&world->intake.names);
	assert_int_equal(statsd_names_init(&world->intake.names, 256, seed), 0);
	for (unsigned i = 0; i < 60; i++) {
		/* Every other line is the first one's, and is there until another one has no room. */
		len += (size_t)snprintf(text + len, sizeof(text) - len, "n%u:1|c\n",
					i % 2 == 0 ? 0 : 100 + i);
	}
	for (unsigned round = 0; round < 10; round++) {
		take(world, text, len);
	}
	assert_int_equal(stats_read(&world->stats.lines), 600);
	assert_true(stats_read(&world->stats.names_forgotten) > 0);
	engine_flush(world->engine, 1);
	for (unsigned i = 0; i < 60; i += 5) {
		struct engine_reading reading;
		char name[16];
		int n = snprintf(name, sizeof(name), "n%u", i % 2 == 0 ? 0 : 100 + i);

		assert_int_equal(engine_get(world->engine, name, (size_t)n, &reading), 0);
		assert_int_equal(reading.own, i % 2 == 0 ? 300 : 10);
	}
	world_free(world);
}

static int set_up(void **state)
{
	(void)state;
	grace_register();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	grace_unregister();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_together_as_alone),
		cmocka_unit_test(test_forgotten_in_a_group),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
