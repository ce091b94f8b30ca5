/*
 * How many single increments rationd takes in per second of its processor time, over a unix socket, beside redis-server with
 * pipelined INCRBY over the same kind of socket.
 *
 *	bench-wire-ingest [ROUNDS]	an odd number; default 7
 *
 * Two connections each, a blocking thread behind each connection; 1,000 counters in random order; every increment is a handle and a delta,
 * or a command, of its own. The cases take turns within a round, and ratios are medians of the rounds' ratios. At the end every counter
 * must have exactly what was sent to it, on both servers.
 */
#include "tests/bench/link.h"
#include "tests/bench/report.h"
#include "tests/bench/server.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS 99u
#define COUNTERS 1000u
#define PATH_BYTES 30u
#define LANES 2u
#define FRAMES 60u		    /* ready-made ones, sent again and again */
#define ADD_ENTRIES 300u	    /* in a frame of rationd */
#define PIPELINE 100u		    /* commands in a "frame" for redis */
#define FIRST_BATCH (1u << 21)	    /* from here on a batch number takes four bytes, ... */
#define LAST_BATCH ((1u << 28) - 1) /* ... so that it can be exchanged in a ready-made frame */

static char paths[COUNTERS][PATH_BYTES + 1];

/* ---- one connection and what is sent over it ---- */

struct lane {
	struct link link;
	bool redis;
	size_t n_entries; /* of a frame */
	uint8_t *bytes;
	size_t start[FRAMES + 1];
	size_t batch_at[FRAMES];
	uint16_t counters[FRAMES][ADD_ENTRIES];
	uint64_t sent[FRAMES];
	uint32_t next_batch;
	const struct shape *shape;
};

/* How a case sends. */
struct shape {
	const char *name;
	bool redis;
	size_t frames; /* in one write */
	size_t ahead;  /* frames without an answer when the next write is made */
	size_t writes; /* of one lane in one round */
};

static const struct shape shapes[] = {
	{ "rationd, batches of 300, sent without waiting", false, FRAMES, FRAMES, 1000 },
	{ "redis-server, INCRBY, pipelines of 100", true, 1, 0, 4000 },
	{ "rationd, one batch of 300 at a time", false, 1, 0, 10000 },
	{ "redis-server, INCRBY, pipelines of 1000", true, 10, 0, 600 },
};

enum {
	FAST,
	REDIS_100,
	SLOW,
	REDIS_1000,
	N_SHAPES,
};

static uint32_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32);
}

static void append(struct lane *lane, size_t frame, const uint8_t *bytes, size_t len)
{
	lane->bytes = realloc(lane->bytes, lane->start[frame + 1] + len);
	report_require(lane->bytes != NULL, "no memory");
	memcpy(lane->bytes + lane->start[frame + 1], bytes, len);
	lane->start[frame + 1] += len;
}

static size_t skip_varint(const uint8_t *bytes, size_t at)
{
	while (bytes[at] & 0x80) {
		at++;
	}
	return at + 1;
}

/* Where the batch number is: after the frame's length, the id, the length of Add, each with its tag but the first. */
static size_t find_batch(const uint8_t *bytes)
{
	size_t at = skip_varint(bytes, 0);

	at = skip_varint(bytes, at + 1);
	at = skip_varint(bytes, at + 1);
	report_require(bytes[at] == 0x08, "a frame is not laid out as expected");
	return at + 1;
}

static void make_add(struct lane *lane, size_t frame)
{
	uint32_t handles[ADD_ENTRIES];
	int64_t deltas[ADD_ENTRIES];
	const struct request request = {
		.id = 1,
		.type = REQUEST_ADD,
		.add = { .batch = FIRST_BATCH,
			 .n_handles = ADD_ENTRIES,
			 .n_deltas = ADD_ENTRIES,
			 .handles = handles,
			 .deltas = deltas },
	};
	const uint8_t *bytes;
	size_t len;

	for (size_t i = 0; i < ADD_ENTRIES; i++) {
		handles[i] = lane->counters[frame][i];
		deltas[i] = 1;
	}
	bytes = link_encode(&lane->link, &request, &len);
	lane->batch_at[frame] = lane->start[frame] + find_batch(bytes);
	append(lane, frame, bytes, len);
}

static void make_pipeline(struct lane *lane, size_t frame)
{
	for (size_t i = 0; i < PIPELINE; i++) {
		const struct text words[] = { text_of("INCRBY"),
					      text_of(paths[lane->counters[frame][i]]),
					      text_of("1") };
		uint8_t command[256];

		append(lane, frame, command,
		       link_redis_command(command, sizeof(command), words, 3));
	}
}

static void lane_open(struct lane *lane, const struct server *server, bool redis, uint8_t number)
{
	uint64_t state = 88172645463325252u + number;

	*lane = (struct lane){
		.redis = redis,
		.n_entries = redis ? PIPELINE : ADD_ENTRIES,
		.next_batch = FIRST_BATCH,
	};
	link_open(&lane->link, server);
	if (!redis) {
		link_hello(&lane->link, (uint8_t)(number + 1), FIRST_BATCH);
		link_intern(&lane->link, paths[0], sizeof(paths[0]), PATH_BYTES, COUNTERS);
	}
	for (size_t i = 0; i < FRAMES; i++) {
		lane->start[i + 1] = lane->start[i];
		for (size_t j = 0; j < ADD_ENTRIES; j++) {
			lane->counters[i][j] = (uint16_t)(next_random(&state) % COUNTERS);
		}
		(redis ? make_pipeline : make_add)(lane, i);
	}
}

static void lane_close(struct lane *lane)
{
	link_close(&lane->link);
	free(lane->bytes);
}

static void stamp(struct lane *lane, size_t frame)
{
	uint32_t batch = lane->next_batch++;
	uint8_t *at = lane->bytes + lane->batch_at[frame];

	report_require(batch <= LAST_BATCH, "out of batch numbers: fewer rounds, please");
	at[0] = (uint8_t)(batch | 0x80);
	at[1] = (uint8_t)(batch >> 7 | 0x80);
	at[2] = (uint8_t)(batch >> 14 | 0x80);
	at[3] = (uint8_t)(batch >> 21);
}

static void receive(struct lane *lane, size_t frames)
{
	if (lane->redis) {
		link_redis_numbers(&lane->link, frames * lane->n_entries);
	} else {
		link_applied(&lane->link, frames);
	}
}

static void *run_lane(void *arg)
{
	struct lane *lane = arg;
	const struct shape *shape = lane->shape;
	size_t first = 0, waiting = 0;

	for (size_t i = 0; i < shape->writes; i++) {
		for (size_t j = first; j < first + shape->frames; j++) {
			lane->sent[j]++;
			if (!lane->redis) {
				stamp(lane, j);
			}
		}
		link_send(&lane->link, lane->bytes + lane->start[first],
			  lane->start[first + shape->frames] - lane->start[first]);
		waiting += shape->frames;
		if (waiting > shape->ahead) {
			receive(lane, waiting - shape->ahead);
			waiting = shape->ahead;
		}
		first = (first + shape->frames) % FRAMES;
	}
	receive(lane, waiting);
	return NULL;
}

/* ---- cases ---- */

struct figures {
	double per_cpu[MAX_ROUNDS]; /* increments per second of the server's processor time */
	double per_wall[MAX_ROUNDS];
};

static void measure(const struct server *server, struct lane *lanes, const struct shape *shape,
		    struct figures *figures, unsigned round)
{
	double n = (double)(shape->writes * shape->frames * lanes[0].n_entries * LANES);
	double wall = report_wall_seconds();
	int64_t cpu = server_cpu_ns(server);
	pthread_t threads[LANES];

	for (size_t i = 0; i < LANES; i++) {
		lanes[i].shape = shape;
		report_require(pthread_create(&threads[i], NULL, run_lane, &lanes[i]) == 0,
			       "pthread_create");
	}
	for (size_t i = 0; i < LANES; i++) {
		(void)pthread_join(threads[i], NULL);
	}
	figures->per_cpu[round] = n / ((double)(server_cpu_ns(server) - cpu) / 1e9);
	figures->per_wall[round] = n / (report_wall_seconds() - wall);
}

/* Every counter has what was sent to it. */
static void check(const struct server *server, const struct lane *lanes)
{
	static int64_t expected[COUNTERS];
	struct link link;

	memset(expected, 0, sizeof(expected));
	for (size_t i = 0; i < LANES; i++) {
		for (size_t j = 0; j < FRAMES; j++) {
			for (size_t k = 0; k < lanes[i].n_entries; k++) {
				expected[lanes[i].counters[j][k]] += (int64_t)lanes[i].sent[j];
			}
		}
	}
	link_open(&link, server);
	if (!lanes[0].redis) {
		link_hello(&link, 0, 0);
	}
	for (size_t i = 0; i < COUNTERS; i++) {
		struct text path = text_of(paths[i]);
		int64_t found =
			lanes[0].redis ? link_redis_get(&link, path) : link_total(&link, path);

		report_require(found == expected[i], "%s is %lld in %s, but %lld were sent",
			       paths[i], (long long)found, lanes[0].redis ? "redis" : "rationd",
			       (long long)expected[i]);
	}
	link_close(&link);
}

static double median_ratio(const double *a, const double *b, unsigned n)
{
	double ratios[MAX_ROUNDS];

	for (unsigned i = 0; i < n; i++) {
		ratios[i] = a[i] / b[i];
	}
	return report_median(ratios, n);
}

static void show(struct figures *figures, unsigned n_rounds)
{
	double fast = median_ratio(figures[FAST].per_cpu, figures[REDIS_100].per_cpu, n_rounds);
	double slow = median_ratio(figures[SLOW].per_cpu, figures[REDIS_100].per_cpu, n_rounds);
	double deep = median_ratio(figures[FAST].per_cpu, figures[REDIS_1000].per_cpu, n_rounds);

	report_table(
		"Single increments per second of the server's processor time; unix socket, 2 connections, 1,000 counters");
	for (size_t i = 0; i < N_SHAPES; i++) {
		double rate = report_median(figures[i].per_cpu, n_rounds) / 1e6;
		bool held = i == FAST;

		report_line(shapes[i].name, 0, held ? ">= 60 M/s" : NULL,
			    held ? report_at_least(rate, 60) : VERDICT_NONE, "%.2f M/s", rate);
	}
	report_line("rationd without waiting : redis, pipelines of 100", fast, ">= 30",
		    report_at_least(fast, 30), "%s", "");
	report_line("rationd one batch at a time : redis, pipelines of 100", slow, NULL,
		    VERDICT_NONE, "%s", "");
	report_line("rationd without waiting : redis, pipelines of 1000", deep, NULL, VERDICT_NONE,
		    "%s", "");
	for (size_t i = 0; i < N_SHAPES; i++) {
		char what[96];

		(void)snprintf(what, sizeof(what), "%s, by the clock", shapes[i].name);
		report_line(what, 0, NULL, VERDICT_NONE, "%.2f M/s",
			    report_median(figures[i].per_wall, n_rounds) / 1e6);
	}
}

int main(int argc, char **argv)
{
	static struct figures figures[N_SHAPES];
	static struct lane lanes[2][LANES]; /* of rationd, of redis */
	unsigned n_rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 7;
	struct server servers[2];

	report_require(n_rounds % 2 == 1 && n_rounds <= MAX_ROUNDS,
		       "usage: bench-wire-ingest [ROUNDS], an odd number below 100");
	for (unsigned i = 0; i < COUNTERS; i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), "requests/%05u/%015u", i / 100, i);
	}
	server_start_rationd(&servers[0], "", SERVER_ANY_CPU);
	server_start_redis(&servers[1], SERVER_ANY_CPU);
	for (size_t i = 0; i < 2; i++) {
		for (size_t j = 0; j < LANES; j++) {
			lane_open(&lanes[i][j], &servers[i], i == 1, (uint8_t)j);
		}
	}
	for (unsigned round = 0; round < n_rounds; round++) {
		for (size_t i = 0; i < N_SHAPES; i++) {
			measure(&servers[shapes[i].redis], lanes[shapes[i].redis], &shapes[i],
				&figures[i], round);
		}
	}
	for (size_t i = 0; i < 2; i++) {
		check(&servers[i], lanes[i]);
		for (size_t j = 0; j < LANES; j++) {
			lane_close(&lanes[i][j]);
		}
		server_stop(&servers[i]);
	}
	show(figures, n_rounds);
	return 0;
}
