/*
 * What grows with the number of counters and of clients, and what does not, over a unix socket against the real daemon.
 *
 *	bench-wire-scale [ROUNDS]	an odd number; default 5
 *
 * For 1,000, 100,000 and 1,000,000 counters (paths of 30 bytes; the nodes above them count) a daemon of its own: creation by pipelined
 * Interns, adds and gets of random counters, walks of all; resident memory once sessions on both workers have touched every counter. Then
 * a daemon with one and with 1,000 connections. Costs are of the daemon's processor time, medians of rounds. Every total is
 * checked.
 */
#include "tests/bench/link.h"
#include "tests/bench/report.h"
#include "tests/bench/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_ROUNDS 99u
#define PATH_BYTES 30u
#define PER_GROUP 1000u
#define ENTRIES 300u /* of a frame of adds */
#define AHEAD 64u    /* requests under way */
#define ADDS 3000000u
#define GETS (2000u * AHEAD)
#define IDLE 1000u
#define ADDS_ALONE 5000u /* one by one, beside idle connections */

struct path {
	char bytes[PATH_BYTES + 4]; /* as much as snprintf fears */
};

static unsigned n_rounds;

/* ---- one daemon with n counters ---- */

struct stage {
	struct server server;
	struct link links[2]; /* two sessions, on two workers */
	uint64_t next_batch[2];
	uint32_t n; /* leaves; with the nodes above them `counters` */
	uint32_t counters;
	struct path *paths;
	int64_t added;
	double created;
};

static uint32_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32);
}

static void stage_open(struct stage *stage, uint32_t counters, int cpu)
{
	double start;

	*stage = (struct stage){ .counters = counters };
	stage->n = counters - 1 - (counters + PER_GROUP - 1) / PER_GROUP;
	stage->paths = calloc(stage->n, sizeof(*stage->paths));
	report_require(stage->paths != NULL, "no memory");
	for (uint32_t i = 0; i < stage->n; i++) {
		/* As many groups as were set apart above. */
		(void)snprintf(stage->paths[i].bytes, sizeof(stage->paths[i]),
			       "requests/%05u/%015u", i % ((counters + PER_GROUP - 1) / PER_GROUP),
			       i);
	}
	server_start_rationd(&stage->server, "workers = 2\n", cpu);
	for (uint8_t i = 0; i < 2; i++) {
		link_open(&stage->links[i], &stage->server);
		link_hello(&stage->links[i], (uint8_t)(i + 1), 1);
		stage->next_batch[i] = 1;
	}
	start = report_wall_seconds();
	link_intern(&stage->links[0], stage->paths[0].bytes, sizeof(*stage->paths), PATH_BYTES,
		    stage->n);
	stage->created = report_wall_seconds() - start;
	link_intern(&stage->links[1], stage->paths[0].bytes, sizeof(*stage->paths), PATH_BYTES,
		    stage->n);
}

static void stage_close(struct stage *stage)
{
	int64_t total = link_total(&stage->links[0], text_of("requests"));

	report_require(total == stage->added, "the total is %lld, but %lld were added",
		       (long long)total, (long long)stage->added);
	for (size_t i = 0; i < 2; i++) {
		link_close(&stage->links[i]);
	}
	server_stop(&stage->server);
	free(stage->paths);
}

/* ---- adds ---- */

static void send_adds(struct stage *stage, size_t which, const uint32_t *handles, size_t n)
{
	static int64_t deltas[ENTRIES];
	const struct request request = {
		.id = 1,
		.type = REQUEST_ADD,
		.add = { .batch = stage->next_batch[which]++,
			 .n_handles = n,
			 .n_deltas = n,
			 .handles = handles,
			 .deltas = deltas },
	};

	for (size_t i = 0; i < n; i++) {
		deltas[i] = 1;
	}
	link_request(&stage->links[which], &request);
	stage->added += (int64_t)n;
}

/* Nanoseconds of the daemon for one of ADDS increments of random counters. */
static double add_random(struct stage *stage)
{
	static uint64_t state = 88172645463325252u;
	int64_t cpu = server_cpu_ns(&stage->server);
	uint32_t handles[ENTRIES];
	size_t under_way = 0;

	for (size_t i = 0; i < ADDS / ENTRIES; i++) {
		for (size_t j = 0; j < ENTRIES; j++) {
			handles[j] = next_random(&state) % stage->n;
		}
		send_adds(stage, 0, handles, ENTRIES);
		if (++under_way == AHEAD) {
			link_applied(&stage->links[0], AHEAD / 2);
			under_way -= AHEAD / 2;
		}
	}
	link_applied(&stage->links[0], under_way);
	return (double)(server_cpu_ns(&stage->server) - cpu) / ADDS;
}

/* Each counter once, over both sessions: so each worker has a slot of its own for it. */
static void touch_all(struct stage *stage)
{
	for (size_t which = 0; which < 2; which++) {
		for (uint32_t i = 0; i < stage->n; i += ENTRIES) {
			uint32_t handles[ENTRIES];
			uint32_t n = stage->n - i < ENTRIES ? stage->n - i : ENTRIES;

			for (uint32_t j = 0; j < n; j++) {
				handles[j] = i + j;
			}
			send_adds(stage, which, handles, n);
			link_applied(&stage->links[which], 1);
		}
	}
}

/* ---- gets and walks ---- */

static void receive_values(struct link *link, size_t n)
{
	struct reply reply;

	for (size_t i = 0; i < n; i++) {
		link_receive(link, &reply);
		report_require(reply.type == REPLY_VALUES && reply.values.n_values == 1 &&
				       reply.values.values[0].code == CODE_OK,
			       "a get found no counter");
	}
}

/* Many requests of one get each, in one write. */
static void send_gets(struct stage *stage, size_t n)
{
	static uint64_t state = 362436069;
	static uint8_t bytes[AHEAD * 128];
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		struct text path = { .at = stage->paths[next_random(&state) % stage->n].bytes,
				     .len = PATH_BYTES };
		const struct request request = {
			.id = 1,
			.type = REQUEST_GET,
			.get = { .n_paths = 1, .paths = &path, .consistency = CONSISTENCY_CACHED },
		};
		size_t len;
		const uint8_t *frame = link_encode(&stage->links[0], &request, &len);

		report_require(used + len <= sizeof(bytes), "a get is too long");
		memcpy(bytes + used, frame, len);
		used += len;
	}
	link_send(&stage->links[0], bytes, used);
}

/* Nanoseconds of the daemon for one of GETS gets of one random counter each. */
static double get_random(struct stage *stage)
{
	int64_t cpu = server_cpu_ns(&stage->server);

	for (size_t i = 0; i < GETS; i += AHEAD) {
		send_gets(stage, AHEAD);
		receive_values(&stage->links[0], AHEAD);
	}
	return (double)(server_cpu_ns(&stage->server) - cpu) / GETS;
}

/* Seconds for all counters, and of the daemon's processor time; their own values must sum up to all that was added. */
static double walk_all(struct stage *stage, double *ret_cpu)
{
	const struct request request = {
		.id = 1,
		.type = REQUEST_WALK,
		.walk = { .root = text_of(""),
			  .depth = MESSAGE_DEPTH_ALL,
			  .consistency = CONSISTENCY_EXACT,
			  .cursor = text_of("") },
	};
	int64_t cpu = server_cpu_ns(&stage->server);
	double start = report_wall_seconds();
	struct reply reply = { 0 };
	int64_t own = 0;
	size_t n = 0;

	link_request(&stage->links[0], &request);
	do {
		link_receive(&stage->links[0], &reply);
		report_require(reply.type == REPLY_PAGE, "a walk was not answered with a page");
		for (size_t i = 0; i < reply.page.n_entries; i++) {
			own += reply.page.entries[i].value.own;
		}
		n += reply.page.n_entries;
	} while (!reply.page.last);
	report_require(n == stage->counters && own == stage->added,
		       "a walk saw %zu counters with %lld in all; there are %u with %lld", n,
		       (long long)own, stage->counters, (long long)stage->added);
	*ret_cpu = (double)(server_cpu_ns(&stage->server) - cpu) / 1e9;
	return report_wall_seconds() - start;
}

/* ---- sizes ---- */

struct size {
	uint32_t counters;
	const char *name;
	double add, get, walk, walk_cpu, created, memory;
};

static void measure_size(struct size *size)
{
	double adds[MAX_ROUNDS], gets[MAX_ROUNDS], walks[MAX_ROUNDS], walk_cpus[MAX_ROUNDS];
	struct stage stage;

	stage_open(&stage, size->counters, SERVER_ANY_CPU);
	touch_all(&stage);
	size->created = stage.created;
	size->memory = (double)server_memory(&stage.server) / size->counters;
	for (unsigned round = 0; round < n_rounds; round++) {
		adds[round] = add_random(&stage);
		gets[round] = get_random(&stage);
		walks[round] = walk_all(&stage, &walk_cpus[round]);
	}
	size->add = report_median(adds, n_rounds);
	size->get = report_median(gets, n_rounds);
	size->walk = report_median(walks, n_rounds);
	size->walk_cpu = report_median(walk_cpus, n_rounds);
	stage_close(&stage);
}

static void bench_sizes(void)
{
	static struct size sizes[] = { { .counters = 1000, .name = "1,000" },
				       { .counters = 100000, .name = "100,000" },
				       { .counters = 1000000, .name = "1,000,000" } };
	const size_t n_sizes = sizeof(sizes) / sizeof(sizes[0]);
	const struct size *most = &sizes[n_sizes - 1];
	char what[96];

	for (size_t i = 0; i < n_sizes; i++) {
		measure_size(&sizes[i]);
	}
	report_table(
		"The daemon's processor time for an operation, by number of counters (ratio: to 1,000 counters)");
	for (size_t i = 0; i < n_sizes; i++) {
		(void)snprintf(what, sizeof(what), "add, random, batches of 300, %s counters",
			       sizes[i].name);
		report_line(what, sizes[i].add / sizes[0].add, NULL, VERDICT_NONE, "%.1f ns",
			    sizes[i].add);
	}
	for (size_t i = 0; i < n_sizes; i++) {
		(void)snprintf(what, sizeof(what),
			       "get, random, requests of one, 64 in a write, %s counters",
			       sizes[i].name);
		report_line(what, sizes[i].get / sizes[0].get, NULL, VERDICT_NONE, "%.0f ns",
			    sizes[i].get);
	}
	report_table(
		"1,000,000 counters with paths of 30 bytes, both of 2 workers have touched all of them");
	report_line("creating them by Intern, 1,024 paths in a request, by the clock", 0, "<= 3 s",
		    report_at_most(most->created, 3), "%.2f s", most->created);
	report_line("walking them all, by the clock", 0, "<= 1 s", report_at_most(most->walk, 1),
		    "%.2f s", most->walk);
	report_line("walking them all, the daemon's processor time", 0, NULL, VERDICT_NONE,
		    "%.2f s", most->walk_cpu);
	report_line("resident memory of the daemon, two handle tables included", 0, "<= 200 B",
		    report_at_most(most->memory, 200), "%.1f B/counter", most->memory);
}

/* ---- clients ---- */

/* Microseconds of the daemon for an acknowledged add, and of it in a second without any. */
static void measure_client(struct stage *stage, double *ret_add, double *ret_idle)
{
	const struct timespec second = { .tv_sec = 1 };
	const uint32_t handle = 0;
	int64_t cpu = server_cpu_ns(&stage->server);

	(void)nanosleep(&second, NULL);
	*ret_idle = (double)(server_cpu_ns(&stage->server) - cpu) / 1e3;
	cpu = server_cpu_ns(&stage->server);
	for (size_t i = 0; i < ADDS_ALONE; i++) {
		send_adds(stage, 0, &handle, 1);
		link_applied(&stage->links[0], 1);
	}
	*ret_add = (double)(server_cpu_ns(&stage->server) - cpu) / 1e3 / ADDS_ALONE;
}

static void open_idle(struct stage *stage, struct link *idle)
{
	for (size_t i = 0; i < IDLE; i++) {
		idle[i] = (struct link){ .fd = server_connect(&stage->server),
					 .bytes = malloc(4096),
					 .size = 4096 };
		report_require(idle[i].bytes != NULL, "no memory");
		idle[i].in = idle[i].out = (struct arena)ARENA_INIT((size_t)1 << 20);
		link_hello(&idle[i], 0, 0);
	}
}

static void bench_clients(void)
{
	static struct link idle[IDLE];
	static struct {
		double add[MAX_ROUNDS], idle[MAX_ROUNDS];
	} cost[2];
	double ratios[MAX_ROUNDS];
	struct stage stage;

	/* On one CPU: what waking another one costs would hide all else. */
	server_pin(0);
	stage_open(&stage, 1000, 0);
	touch_all(&stage);
	for (unsigned round = 0; round < n_rounds; round++) {
		measure_client(&stage, &cost[0].add[round], &cost[0].idle[round]);
		open_idle(&stage, idle);
		measure_client(&stage, &cost[1].add[round], &cost[1].idle[round]);
		for (size_t i = 0; i < IDLE; i++) {
			link_close(&idle[i]);
		}
		ratios[round] = cost[1].add[round] / cost[0].add[round];
	}
	stage_close(&stage);
	report_table(
		"The daemon's processor time with 2 connections, and with 1,000 more that do nothing");
	report_line("an acknowledged add, 2 connections", 0, NULL, VERDICT_NONE, "%.1f us",
		    report_median(cost[0].add, n_rounds));
	report_line("an acknowledged add, 1,002 connections", report_median(ratios, n_rounds), NULL,
		    VERDICT_NONE, "%.1f us", report_median(cost[1].add, n_rounds));
	report_line("a second without requests, 2 connections", 0, NULL, VERDICT_NONE, "%.0f us",
		    report_median(cost[0].idle, n_rounds));
	report_line("a second without requests, 1,002 connections", 0, NULL, VERDICT_NONE,
		    "%.0f us", report_median(cost[1].idle, n_rounds));
}

int main(int argc, char **argv)
{
	n_rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 5;
	report_require(n_rounds % 2 == 1 && n_rounds <= MAX_ROUNDS,
		       "usage: bench-wire-scale [ROUNDS], an odd number below 100");
	bench_sizes();
	bench_clients();
	return 0;
}
