/*
 * Every row of the table through a real socket, each way there is: what is accepted is counted where it should be, what is rejected is
 * counted by its reason.
 */
#include "tests/integration/statsd/support.h"
#include "tests/support/statsd-table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct run {
	struct statsd_test test;
	enum way way;
	int fd;
};

static void begin(struct run *run)
{
	run->test = statsd_start(1, NULL);
	run->fd = statsd_connect(&run->test, run->way);
}

static void end(struct run *run)
{
	(void)close(run->fd);
	statsd_finish(&run->test);
}

/* A name of more than 128 bytes ends up under another one (see test-path.c). */
static bool has_plain_path(const struct table_outcome *outcome)
{
	return strlen(outcome->name) <= 128;
}

/* A counter that was there may have had something left over. */
static void check_growth(const struct table_row *row, double value, int64_t growth)
{
	if ((double)growth < floor(value) || (double)growth > ceil(value)) {
		fail_msg("%s: grew by %" PRIi64, row->text, growth);
	}
}

struct sums {
	char path[600];
	double value;
	int64_t before;
};

/* So much that the total has no room for anything beside. */
static bool is_far(const struct table_row *row)
{
	return row->n > 0 && row->outcomes[0].accepted &&
	       fabs(strtod(row->outcomes[0].value, NULL)) > 1e17;
}

static void restart(struct run *run)
{
	end(run);
	begin(run);
}

static void take_row(struct run *run, const struct table_row *row)
{
	struct sums sums[TABLE_MAX_OUTCOMES] = { 0 };
	int64_t rejected[TABLE_MAX_OUTCOMES] = { 0 },
		lines = wire_status(run->test.wire, "statsd_lines"),
		unknown = wire_status(run->test.wire, "statsd_unknown_fields");
	unsigned n_accepted = 0, n_ignored = 0;

	for (size_t i = 0; i < row->n; i++) {
		const struct table_outcome *outcome = &row->outcomes[i];

		if (!outcome->accepted) {
			rejected[i] = statsd_rejected(&run->test, outcome->reason);
			continue;
		}
		n_accepted++;
		n_ignored += outcome->n_ignored;
		table_path(outcome, sums[i].path, sizeof(sums[i].path));
		sums[i].value = strtod(outcome->value, NULL);
		sums[i].before = statsd_total(&run->test, sums[i].path);
	}
	/* Negative ones are taken by the grammar, and are for gauges. */
	if (row->n == 1 && sums[0].value < 0) {
		rejected[0] = statsd_rejected(&run->test, "negative");
		statsd_send(run->fd, row->bytes, row->len);
		statsd_send_text(run->fd, "\n");
		statsd_settle(&run->test, run->fd);
		assert_int_equal(statsd_rejected(&run->test, "negative"), rejected[0] + 1);
		return;
	}
	statsd_send(run->fd, row->bytes, row->len);
	if (run->way == WAY_TCP) {
		statsd_send_text(run->fd, "\n");
	}
	statsd_settle(&run->test, run->fd);
	if (wire_status(run->test.wire, "statsd_lines") != lines + n_accepted + 1 ||
	    wire_status(run->test.wire, "statsd_unknown_fields") != unknown + n_ignored) {
		fail_msg("%s: not as many lines or fields", row->text);
	}
	for (size_t i = 0; i < row->n; i++) {
		const struct table_outcome *outcome = &row->outcomes[i];

		if (!outcome->accepted) {
			assert_int_equal(statsd_rejected(&run->test, outcome->reason),
					 rejected[i] + 1);
		} else if (has_plain_path(outcome)) {
			double value = 0;

			for (size_t k = 0; k < row->n; k++) {
				value +=
					strcmp(sums[k].path, sums[i].path) == 0 ? sums[k].value : 0;
			}
			check_growth(row, value,
				     statsd_total(&run->test, sums[i].path) - sums[i].before);
		}
	}
}

static void check_row(void *ctx, const struct table_row *row)
{
	struct run *run = ctx;

	if (is_far(row)) {
		restart(run);
		take_row(run, row);
		restart(run);
	} else {
		take_row(run, row);
	}
}

static void run_table(enum way way)
{
	struct run run = { .way = way };

	begin(&run);
	assert_in_range(table_each(check_row, &run), 250, 1000);
	end(&run);
}

static void test_udp(void **state)
{
	(void)state;
	run_table(WAY_UDP);
}

static void test_unix(void **state)
{
	(void)state;
	run_table(WAY_UNIX);
}

static void test_tcp(void **state)
{
	(void)state;
	run_table(WAY_TCP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_udp),
		cmocka_unit_test(test_unix),
		cmocka_unit_test(test_tcp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
