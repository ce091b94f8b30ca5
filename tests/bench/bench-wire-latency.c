/*
 * How long one client waits for one answer over a unix socket: a get of a counter beside Redis GET, and an add that is acknowledged
 * beside INCRBY.
 *
 *	bench-wire-latency [ROUNDS]	an odd number; default 21
 *
 * A blocking client writes a request, reads the answer, and looks at the clock before and after, the same way for both servers; they run
 * where the scheduler puts them. What that decides is shown by the same once more with client and servers on one CPU, and on a CPU each.
 * The cases take turns in blocks; ratios are medians of the rounds' ratios of medians. Every add must be found in the total at
 * the end.
 */
#include "proto/frame.h"
#include "tests/bench/link.h"
#include "tests/bench/report.h"
#include "tests/bench/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ROUNDS 99u
#define BLOCK 2000u /* round trips */
#define WARM_UP 200u
#define PATH "requests/00042/000000000042042"

static int64_t sent[2]; /* to rationd, to redis */
static uint64_t next_batch;
static unsigned n_rounds;

/* ---- the cases ---- */

/* Bytes of the next request; valid until the next call. */
typedef const uint8_t *(*make_fn)(struct link *link, size_t *ret_len);

static const uint8_t *make_get(struct link *link, size_t *ret_len)
{
	const struct text path = text_of(PATH);
	const struct request request = { .id = 1,
					 .type = REQUEST_GET,
					 .get = { .n_paths = 1, .paths = &path } };

	return link_encode(link, &request, ret_len);
}

static const uint8_t *make_add(struct link *link, size_t *ret_len)
{
	const uint32_t handle = 0;
	const int64_t delta = 1;
	const struct request request = {
		.id = 1,
		.type = REQUEST_ADD,
		.add = { .batch = next_batch++,
			 .n_handles = 1,
			 .n_deltas = 1,
			 .handles = &handle,
			 .deltas = &delta },
	};

	sent[0]++;
	return link_encode(link, &request, ret_len);
}

static const uint8_t *make_command(const struct text *words, size_t n, size_t *ret_len)
{
	static uint8_t bytes[128];

	*ret_len = link_redis_command(bytes, sizeof(bytes), words, n);
	return bytes;
}

static const uint8_t *make_redis_get(struct link *link, size_t *ret_len)
{
	const struct text words[] = { text_of("GET"), text_of(PATH) };

	(void)link;
	return make_command(words, 2, ret_len);
}

static const uint8_t *make_redis_add(struct link *link, size_t *ret_len)
{
	const struct text words[] = { text_of("INCRBY"), text_of(PATH), text_of("1") };

	(void)link;
	sent[1]++;
	return make_command(words, 3, ret_len);
}

static bool has_frame(const uint8_t *bytes, size_t len)
{
	const uint8_t *message;
	size_t message_len, used;

	return frame_find(bytes, len, MESSAGE_MAX_FRAME, &message, &message_len, &used) ==
		       FRAME_OK &&
	       used == len;
}

static bool has_lines(const uint8_t *bytes, size_t len)
{
	return len >= 4 && bytes[len - 1] == '\n' &&
	       (bytes[0] == ':' || (bytes[0] == '$' && bytes[1] != '-'));
}

static const struct kind_of_trip {
	const char *name;
	bool redis;
	make_fn make;
	bool (*is_whole)(const uint8_t *bytes, size_t len);
} kinds[] = {
	{ "rationd, get", false, make_get, has_frame },
	{ "redis-server, GET", true, make_redis_get, has_lines },
	{ "rationd, add, acknowledged", false, make_add, has_frame },
	{ "redis-server, INCRBY", true, make_redis_add, has_lines },
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct figures {
	double p50[MAX_ROUNDS], cpu[MAX_ROUNDS]; /* microseconds */
	double *all;				 /* BLOCK a round */
};

/* ---- measuring ---- */

/* Microseconds from the request's first byte to the answer's last. */
static double round_trip(struct link *link, const struct kind_of_trip *kind)
{
	size_t len;
	const uint8_t *bytes = kind->make(link, &len);
	double start = report_wall_seconds(), end;

	link->off = link->len = 0;
	link_send(link, bytes, len);
	do {
		link_fill(link);
		end = report_wall_seconds();
	} while (!kind->is_whole(link->bytes, link->len));
	return (end - start) * 1e6;
}

static void measure(const struct server *server, struct link *link, const struct kind_of_trip *kind,
		    struct figures *figures, unsigned round)
{
	double *block = figures->all + (size_t)round * BLOCK;
	int64_t cpu;

	for (size_t i = 0; i < WARM_UP; i++) {
		(void)round_trip(link, kind);
	}
	cpu = server_cpu_ns(server);
	for (size_t i = 0; i < BLOCK; i++) {
		block[i] = round_trip(link, kind);
	}
	figures->cpu[round] = (double)(server_cpu_ns(server) - cpu) / 1e3 / BLOCK;
	figures->p50[round] = report_median(block, BLOCK);
}

static void show_kind(const char *name, struct figures *figures)
{
	const size_t n = (size_t)n_rounds * BLOCK;
	char what[96];

	report_line(name, 0, NULL, VERDICT_NONE, "p50 %.1f us",
		    report_quantile(figures->all, n, 0.5));
	(void)snprintf(what, sizeof(what), "%s, 99 of 100", name);
	report_line(what, 0, NULL, VERDICT_NONE, "p99 %.1f us",
		    report_quantile(figures->all, n, 0.99));
	(void)snprintf(what, sizeof(what), "%s, processor time of the server", name);
	report_line(what, 0, NULL, VERDICT_NONE, "%.1f us", report_median(figures->cpu, n_rounds));
}

static void show_ratio(const char *name, const struct figures *ours, const struct figures *theirs,
		       bool held)
{
	double ratios[MAX_ROUNDS], ratio;

	for (unsigned i = 0; i < n_rounds; i++) {
		ratios[i] = ours->p50[i] / theirs->p50[i];
	}
	ratio = report_median(ratios, n_rounds);
	report_line(name, ratio, held ? "<= 0.90" : NULL,
		    held ? report_at_most(ratio, 0.9) : VERDICT_NONE, "%s", "");
}

/* ---- the whole ---- */

static const struct placement {
	const char *title;
	int client, servers;
	bool held; /* against the bounds */
} placements[] = {
	{ "Round trips over a unix socket, one client, nothing pipelined", SERVER_ANY_CPU,
	  SERVER_ANY_CPU, true },
	{ "The same, client and servers on one CPU", 0, 0, false },
	{ "The same, client on one CPU, servers on another", 0, 1, false },
};

static void open_links(struct link *links, const struct server *servers)
{
	for (size_t i = 0; i < 2; i++) {
		link_open(&links[i], &servers[i]);
		sent[i] = 0;
	}
	next_batch = 1;
	link_hello(&links[0], 1, next_batch);
	link_intern(&links[0], PATH, sizeof(PATH), sizeof(PATH) - 1, 1);
	/* There must be something to get. */
	(void)round_trip(&links[1], &kinds[N_KINDS - 1]);
}

static void check(struct link *links)
{
	const struct text path = text_of(PATH);
	int64_t ours, theirs;

	links[0].off = links[0].len = links[1].off = links[1].len = 0;
	ours = link_total(&links[0], path);
	theirs = link_redis_get(&links[1], path);
	report_require(ours == sent[0], "rationd has %lld, but %lld were sent", (long long)ours,
		       (long long)sent[0]);
	report_require(theirs == sent[1], "redis has %lld, but %lld were sent", (long long)theirs,
		       (long long)sent[1]);
}

static void bench(const struct placement *placement, struct figures *figures)
{
	struct server servers[2];
	struct link links[2];

	server_start_rationd(&servers[0], "", placement->servers);
	server_start_redis(&servers[1], placement->servers);
	if (placement->client != SERVER_ANY_CPU) {
		server_pin(placement->client);
	}
	open_links(links, servers);
	for (unsigned round = 0; round < n_rounds; round++) {
		for (size_t i = 0; i < N_KINDS; i++) {
			measure(&servers[kinds[i].redis], &links[kinds[i].redis], &kinds[i],
				&figures[i], round);
		}
	}
	check(links);
	for (size_t i = 0; i < 2; i++) {
		link_close(&links[i]);
		server_stop(&servers[i]);
	}
	report_table(placement->title);
	for (size_t i = 0; i < N_KINDS; i++) {
		show_kind(kinds[i].name, &figures[i]);
	}
	show_ratio("get : GET, medians", &figures[0], &figures[1], placement->held);
	show_ratio("acknowledged add : INCRBY, medians", &figures[2], &figures[3], placement->held);
}

int main(int argc, char **argv)
{
	static struct figures figures[N_KINDS];

	n_rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 21;
	report_require(n_rounds % 2 == 1 && n_rounds <= MAX_ROUNDS,
		       "usage: bench-wire-latency [ROUNDS], an odd number below 100");
	for (size_t i = 0; i < N_KINDS; i++) {
		figures[i].all = calloc((size_t)n_rounds * BLOCK, sizeof(*figures[i].all));
		report_require(figures[i].all != NULL, "no memory");
	}
	for (size_t i = 0; i < sizeof(placements) / sizeof(placements[0]); i++) {
		if (placements[i].servers < sysconf(_SC_NPROCESSORS_ONLN)) {
			bench(&placements[i], figures);
		}
	}
	return 0;
}
