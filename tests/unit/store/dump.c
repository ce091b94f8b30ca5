#include "tests/unit/store/dump.h"

#include "tests/support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lines {
	char **at;
	size_t n;
	uint32_t next_id;
};

__attribute__((format(printf, 2, 3))) static int add(struct lines *lines, const char *format, ...)
{
	va_list arguments;
	char *line;

	va_start(arguments, format);
	assert_true(vasprintf(&line, format, arguments) >= 0);
	va_end(arguments);
	lines->at = reallocarray(lines->at, lines->n + 1, sizeof(char *));
	assert_non_null(lines->at);
	lines->at[lines->n++] = line;
	return 0;
}

static const char *hex(const void *bytes, size_t len, char text[512])
{
	const uint8_t *at = bytes;
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < len && used + 3 < 512; i++) {
		used += (size_t)snprintf(text + used, 512 - used, "%02x", at[i]);
	}
	return text;
}

static int metric(void *ctx, const char *name, size_t len, const struct engine_metric *is)
{
	return add(ctx, "metric %.*s %d %u %d %" PRId64 "\n", (int)len, name, (int)is->kind,
		   is->max_counters, is->overflow, is->expire_after_ns);
}

static int rule(void *ctx, const struct engine_rule *is)
{
	const struct quota_limits *l = &is->limits;

	return add(ctx,
		   "rule %.*s %d %d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
		   " %d %" PRId64 " %" PRId64 " %" PRId64 "\n",
		   (int)is->len, is->pattern, (int)is->window.kind, (int)is->window.unit,
		   is->window.duration_ns, l->max, l->high, l->low, l->min, l->shadow, l->rate,
		   l->per_ns, l->burst);
}

static int counter(void *ctx, const char *path, size_t len, int64_t own, int64_t ahead,
		   int64_t born_ns, uint32_t *ret_id)
{
	struct lines *lines = ctx;

	*ret_id = lines->next_id++;
	return add(lines, "counter %.*s %" PRId64 " %" PRId64 " %" PRId64 "\n", (int)len, path, own,
		   ahead, born_ns);
}

static int usage(void *ctx, const struct engine_usage *is)
{
	return add(ctx, "usage %.*s %d %d %" PRId64 " %" PRId64 " %" PRId64 "\n", (int)is->len,
		   is->path, (int)is->window.kind, (int)is->window.unit, is->window.duration_ns,
		   is->number, is->count);
}

static int session(void *ctx, const struct store_session *is)
{
	char id[512], agent[512], answers[512], leases[512];

	return add(ctx, "session %s %d %" PRIu64 " %" PRIu64 " %" PRId64 " [%s] %zu[%s] [%s]\n",
		   hex(is->id, sizeof(is->id), id), is->over, is->last_batch, is->last_operation,
		   is->lifetime_ns, hex(is->agent.at, is->agent.len, agent), is->answers.len,
		   hex(is->answers.at, is->answers.len, answers),
		   hex(is->leases.at, is->leases.len, leases));
}

static int held(void *ctx, const struct cut_held *is)
{
	char id[512];

	return add(ctx, "held %s %.*s %" PRId64 "\n", hex(is->session, sizeof(is->session), id),
		   (int)is->len, is->path, is->amount);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines in order, in one text; they are gone then. */
static char *join(struct lines *lines)
{
	size_t len = 0, at = 0;
	char *text;

	if (lines->n > 0) {
		qsort(lines->at, lines->n, sizeof(char *), by_text);
	}
	for (size_t i = 0; i < lines->n; i++) {
		len += strlen(lines->at[i]);
	}
	text = malloc(len + 1);
	assert_non_null(text);
	for (size_t i = 0; i < lines->n; i++) {
		size_t line = strlen(lines->at[i]);

		memcpy(text + at, lines->at[i], line);
		at += line;
		free(lines->at[i]);
	}
	text[at] = '\0';
	free(lines->at);
	return text;
}

char *dump_load(struct store *store, int *ret_error, char why[STORE_MAX_WHY])
{
	struct lines lines = { .n = 0 };
	const struct store_sink sink = { .ctx = &lines,
					 .metric = metric,
					 .rule = rule,
					 .counter = counter,
					 .usage = usage,
					 .session = session,
					 .held = held };
	char *text;

	*ret_error = store_load(store, &sink, why);
	text = join(&lines);
	if (*ret_error != 0) {
		free(text);
		return NULL;
	}
	return text;
}

char *dump_file(const char *path, int *ret_error, char why[STORE_MAX_WHY])
{
	struct store *store = NULL;
	char *text = NULL;

	why[0] = '\0';
	*ret_error = store_open(path, &store, why);
	if (*ret_error == 0) {
		text = dump_load(store, ret_error, why);
	}
	(void)store_close(store);
	return text;
}

char *dump_of(const char *path)
{
	char why[STORE_MAX_WHY];
	int error;
	char *text = dump_file(path, &error, why);

	if (error != 0) {
		fail_msg("%d: %s", error, why);
	}
	return text;
}

/* ---- a little of everything ---- */

static void tell(struct sample *sample, uint32_t id, uint32_t parent, const char *path)
{
	const struct engine_born born = { .id = id,
					  .parent = parent,
					  .path = path,
					  .len = strlen(path),
					  .born_ns = 1700000000000000000 + id };

	assert_int_equal(store_born(sample->store, &born), 0);
}

void sample_open(struct sample *sample, const char *path)
{
	char why[STORE_MAX_WHY] = "";
	int error = 0;
	char *text;

	*sample = (struct sample){ .grown = 0 };
	if (store_open(path, &sample->store, why) != 0) {
		fail_msg("%s", why);
	}
	text = dump_load(sample->store, &error, why);
	assert_int_equal(error, 0);
	assert_string_equal(text, "");
	free(text);
	tell(sample, 0, ENGINE_NO_ID, "requests");
	tell(sample, 7, ENGINE_NO_ID, "slots");
	for (uint32_t i = 2; i < SAMPLE_COUNTERS; i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "%s/team-%u", i % 2 == 0 ? "requests" : "slots",
			       i);
		if (i != 7) {
			tell(sample, i, i % 2 == 0 ? 0 : 7, name);
		}
	}
	/* Enough for more than one page. */
	for (uint32_t i = 0; i < 150; i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "requests/one-of-those-that-nobody-asks-for-%u",
			       i);
		tell(sample, 1000 + i, 0, name);
	}
}

static void come_and_go(struct sample *sample, unsigned step)
{
	char name[64];

	if (step % 3 == 1) {
		(void)snprintf(name, sizeof(name), "requests/guest-%u", step);
		tell(sample, SAMPLE_COUNTERS + step, 0, name);
	}
	if (step % 3 == 0 && step > 2) {
		assert_int_equal(store_gone(sample->store, SAMPLE_COUNTERS + step - 2, 0), 0);
	}
}

static void set_rules(struct sample *sample, unsigned step)
{
	const struct store_metric metrics[] = {
		{ .name = "requests", .len = 8, .metric = { .expire_after_ns = step + 1 } },
		{ .name = "slots", .len = 5, .metric = { .kind = ENGINE_GAUGE, .max_counters = 9 } },
	};
	const struct engine_rule rules[] = {
		{ .pattern = "slots/team-3",
		  .len = 12,
		  .limits = { .max = 100 + step, .high = QUOTA_NONE } },
		{ .pattern = "requests/*",
		  .len = 10,
		  .window = { .kind = WINDOW_PER, .duration_ns = 60000000000 },
		  .limits = { .max = 1000, .high = 900, .shadow = step % 2 == 0 } },
	};

	assert_int_equal(store_set_metrics(sample->store, metrics, 1 + step % 2), 0);
	assert_int_equal(store_set_rules(sample->store, rules, 1 + step % 2), 0);
}

static void use(struct sample *sample, unsigned step)
{
	const struct engine_usage usage[] = {
		{ .path = "requests/team-2",
		  .len = 15,
		  .window = { .kind = WINDOW_PER, .duration_ns = 60000000000 },
		  .number = 28333333 + step,
		  .count = 17 },
		{ .path = "requests",
		  .len = 8,
		  .window = { .kind = WINDOW_CALENDAR, .unit = WINDOW_MONTH },
		  .number = 647,
		  .count = step % 4 },
	};

	assert_int_equal(store_usage(sample->store, &usage[0]), 0);
	assert_int_equal(store_usage(sample->store, &usage[1]), 0);
}

void sample_reopen(struct sample *sample, const char *path)
{
	char why[STORE_MAX_WHY];
	int error;
	char *text;

	sample_close(sample);
	assert_int_equal(store_open(path, &sample->store, why), 0);
	text = dump_load(sample->store, &error, why);
	assert_non_null(text);
	free(text);
}

void sample_step(struct sample *sample, unsigned step)
{
	struct engine_growth growth[SAMPLE_COUNTERS];
	uint8_t answers[3000];
	struct cut_session sessions[2] = {
		{ .id = { 1, 2, 3 },
		  .lifetime_ns = 60000000000,
		  .agent = { (const uint8_t *)"one", 3 } },
		{ .id = { 9, 8, 7 }, .over = step % 2 == 1, .ended = step % 5 == 4 },
	};
	struct cut_held held[] = {
		{ .session = { 1, 2, 3 }, .path = "slots/team-3", .len = 12, .amount = 1 + step },
		{ .session = { 9, 8, 7 },
		  .path = "slots/team-5",
		  .len = 12,
		  .amount = step % 5 == 4 ? 0 : 4 },
		{ .path = "slots/team-9", .len = 12, .amount = step % 3 == 2 ? -2 : 1 },
	};
	const struct cut cut = { .seat = step % 2,
				 .wall_ns = 1700000000000000000 + (int64_t)step * 200000000,
				 .growth = growth,
				 .n_growth = SAMPLE_COUNTERS - 1,
				 .sessions = sessions,
				 .n_sessions = 2,
				 .held = held,
				 .n_held = 3 };

	sample->grown += step + 1;
	for (uint32_t i = 0, n = 0; i < SAMPLE_COUNTERS; i++) {
		if (i != 1) {
			growth[n++] = (struct engine_growth){ .id = i,
							      .added = sample->grown * (i + 1),
							      .charged = i % 4 == 3 ? step : 0,
							      .ahead = i % 4 == 3 ? step % 3 : 0,
							      .taken = i % 4 == 3 ? step : 0 };
		}
	}
	memset(answers, (int)step, sizeof(answers));
	sessions[0].last_batch = step;
	sessions[0].last_operation = step * 2;
	sessions[0].answers = (struct bytes_view){ answers, step % 2 == 0 ? 3000 : step };
	sessions[0].leases = (struct bytes_view){ answers, step % 7 };
	come_and_go(sample, step);
	set_rules(sample, step);
	use(sample, step);
	assert_int_equal(store_merge(sample->store, &cut, NULL, NULL), 0);
}

void sample_session(struct sample *sample, size_t len)
{
	struct cut_session session = { .id = { 5, 5 }, .ended = len == 0 };
	const struct cut cut = { .sessions = &session, .n_sessions = 1 };
	uint8_t *answers = malloc(len + 1);

	assert_non_null(answers);
	memset(answers, 'a', len + 1);
	session.answers = session.leases = (struct bytes_view){ answers, len };
	session.agent.at = answers;
	assert_int_equal(store_merge(sample->store, &cut, NULL, NULL), 0);
	free(answers);
}

void sample_commit(struct sample *sample)
{
	char why[STORE_MAX_WHY] = "";

	if (store_commit(sample->store, why) != 0) {
		fail_msg("%s", why);
	}
}

void sample_close(struct sample *sample)
{
	sample->store = store_close(sample->store);
}
