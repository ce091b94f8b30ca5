/*
 * What durability costs: increments taken in with a state file and without one; how long a durable acknowledgement takes, beside a commit of plain
 * SQLite on the same disk; how clients that wait share commits; and the start with a million counters.
 *
 *	bench-durable [ROUNDS]		an odd number; default 7
 *
 * The files are in /tmp. Cases take turns within a round, and ratios are medians of the rounds' ratios. What was sent must be there in the end.
 */
#include "tests/bench/link.h"
#include "tests/bench/report.h"
#include "tests/bench/server.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_ROUNDS 99u
#define LANES 2u
#define MANY 1000000u
#define PATH_BYTES 30u
#define ENTRIES 300u
#define AHEAD 30u
#define SECONDS 1.2 /* of one case in one round: some checkpoints */
#define ACKS 101u
#define WAITERS 1000u

static char paths[MANY][PATH_BYTES + 1];

/* ---- ingest ---- */

struct lane {
	struct link link;
	uint32_t n_counters, next;
	uint64_t next_batch, batches; /* batches: in this round */
	double until;
	pthread_t thread;
};

static void send_batch(struct lane *lane)
{
	uint32_t handles[ENTRIES];
	int64_t deltas[ENTRIES];
	const struct request request = {
		.id = 1,
		.type = REQUEST_ADD,
		.add = { .batch = lane->next_batch++,
			 .n_handles = ENTRIES,
			 .n_deltas = ENTRIES,
			 .handles = handles,
			 .deltas = deltas },
	};

	for (size_t i = 0; i < ENTRIES; i++) {
		handles[i] = lane->next;
		deltas[i] = 1;
		lane->next = (lane->next + 1) % lane->n_counters;
	}
	link_request(&lane->link, &request);
}

static void *run_lane(void *arg)
{
	struct lane *lane = arg;
	uint64_t waiting = 0;

	lane->batches = 0;
	while (report_wall_seconds() < lane->until) {
		send_batch(lane);
		lane->batches++;
		if (++waiting > AHEAD) {
			link_applied(&lane->link, AHEAD);
			waiting -= AHEAD;
		}
	}
	link_applied(&lane->link, waiting);
	return NULL;
}

struct figures {
	double wall[MAX_ROUNDS], cpu[MAX_ROUNDS];
};

static void measure(const struct server *server, struct lane *lanes, struct figures *figures,
		    unsigned round)
{
	double began = report_wall_seconds();
	int64_t cpu = server_cpu_ns(server);
	uint64_t batches = 0;

	for (size_t i = 0; i < LANES; i++) {
		lanes[i].until = began + SECONDS;
		report_require(pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]) == 0,
			       "pthread_create");
	}
	for (size_t i = 0; i < LANES; i++) {
		(void)pthread_join(lanes[i].thread, NULL);
		batches += lanes[i].batches;
	}
	figures->wall[round] = (double)(batches * ENTRIES) / (report_wall_seconds() - began);
	figures->cpu[round] =
		(double)(batches * ENTRIES) / ((double)(server_cpu_ns(server) - cpu) / 1e9);
}

static double median_ratio(const double *a, const double *b, unsigned n)
{
	double ratios[MAX_ROUNDS];

	for (unsigned i = 0; i < n; i++) {
		ratios[i] = a[i] / b[i];
	}
	return report_median(ratios, n);
}

static void open_lanes(struct lane *lanes, const struct server *server, uint32_t n_counters)
{
	for (uint8_t i = 0; i < LANES; i++) {
		lanes[i] = (struct lane){ .n_counters = n_counters, .next_batch = 1 };
		link_open(&lanes[i].link, server);
		link_hello(&lanes[i].link, (uint8_t)(i + 1), 1);
		link_intern(&lanes[i].link, paths[0], sizeof(paths[0]), PATH_BYTES, n_counters);
	}
}

static void close_lanes(struct lane *lanes)
{
	int64_t sent = 0;

	for (size_t i = 0; i < LANES; i++) {
		sent += (int64_t)(lanes[i].next_batch - 1) * ENTRIES;
	}
	report_require(link_total(&lanes[0].link, text_of("requests")) == sent,
		       "the total is not what was sent");
	for (size_t i = 0; i < LANES; i++) {
		link_close(&lanes[i].link);
	}
}

static void bench_ingest(uint32_t n_counters, unsigned n_rounds)
{
	static struct figures figures[2];
	struct server servers[2];
	struct lane lanes[2][LANES];
	char what[96];

	server_start_rationd(&servers[0], "", SERVER_ANY_CPU);
	server_start_keeping(&servers[1], "");
	for (size_t i = 0; i < 2; i++) {
		open_lanes(lanes[i], &servers[i], n_counters);
	}
	for (unsigned round = 0; round < n_rounds; round++) {
		for (size_t i = 0; i < 2; i++) {
			measure(&servers[i], lanes[i], &figures[i], round);
		}
	}
	for (size_t i = 0; i < 2; i++) {
		double ratio = median_ratio(figures[1].wall, figures[0].wall, n_rounds);

		(void)snprintf(what, sizeof(what), "%u counters, %s, by the clock", n_counters,
			       i == 0 ? "ephemeral" : "with a state file");
		report_line(what, i == 1 ? ratio : 0, i == 1 ? ">= 0.9" : NULL,
			    i == 1 ? report_at_least(ratio, 0.9) : VERDICT_NONE, "%.2f M/s",
			    report_median(figures[i].wall, n_rounds) / 1e6);
	}
	(void)snprintf(what, sizeof(what), "%u counters, with a state file, of processor time",
		       n_counters);
	report_line(what, median_ratio(figures[1].cpu, figures[0].cpu, n_rounds), NULL,
		    VERDICT_NONE, "%.2f M/s", report_median(figures[1].cpu, n_rounds) / 1e6);
	for (size_t i = 0; i < 2; i++) {
		close_lanes(lanes[i]);
		server_stop(&servers[i]);
	}
}

/* ---- acknowledgements ---- */

static sqlite3 *open_plain(const struct server *server)
{
	char path[64];
	sqlite3 *db;

	(void)snprintf(path, sizeof(path), "%s/plain.db", server->dir);
	report_require(sqlite3_open(path, &db) == SQLITE_OK, "plain.db can't be opened");
	report_require(sqlite3_exec(db,
				    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
				    "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER);"
				    "INSERT INTO t VALUES (1, 0)",
				    NULL, NULL, NULL) == SQLITE_OK,
		       "plain.db can't be made");
	return db;
}

static void flush_durable(struct link *link)
{
	const struct request request = { .id = 1,
					 .type = REQUEST_FLUSH,
					 .flush = { .durable = true } };

	link_request(link, &request);
}

static void await_flushed(struct link *link)
{
	struct reply reply;

	do {
		link_receive(link, &reply);
	} while (reply.type != REPLY_FLUSHED);
}

static double acknowledge(struct lane *lane)
{
	double before = report_wall_seconds();

	send_batch(lane);
	flush_durable(&lane->link);
	await_flushed(&lane->link);
	return report_wall_seconds() - before;
}

static double commit_plain(sqlite3 *db)
{
	double before = report_wall_seconds();

	report_require(sqlite3_exec(db, "UPDATE t SET n = n + 1", NULL, NULL, NULL) == SQLITE_OK,
		       "plain.db can't be written");
	return report_wall_seconds() - before;
}

/* Commits that the daemon makes for clients that all wait at once. */
static double share_commits(struct link *links, uint64_t *batches, unsigned round)
{
	double before = report_wall_seconds();
	uint32_t handle = 0;
	int64_t delta = 1;

	for (unsigned i = 0; i < WAITERS; i++) {
		const struct request request = {
			.id = 1,
			.type = REQUEST_ADD,
			.add = { .batch = *batches + round,
				 .n_handles = 1,
				 .n_deltas = 1,
				 .handles = &handle,
				 .deltas = &delta },
		};

		link_request(&links[i], &request);
		flush_durable(&links[i]);
	}
	for (unsigned i = 0; i < WAITERS; i++) {
		await_flushed(&links[i]);
	}
	return report_wall_seconds() - before;
}

static int64_t status_number(struct link *link, const char *name)
{
	const struct request request = { .id = 1, .type = REQUEST_STATUS };
	struct reply reply;

	link_request(link, &request);
	link_receive(link, &reply);
	for (size_t i = 0; i < reply.status.n_items; i++) {
		const struct status_item *item = &reply.status.items[i];

		if (item->name.len == strlen(name) &&
		    memcmp(item->name.at, name, item->name.len) == 0) {
			return item->number;
		}
	}
	report_require(false, "there is no status item %s", name);
	return 0;
}

static void open_waiters(struct link *links, const struct server *server)
{
	for (unsigned i = 0; i < WAITERS; i++) {
		struct reply reply;
		uint8_t id[MESSAGE_SESSION_BYTES] = { 0xff, (uint8_t)(i >> 8), (uint8_t)i };
		const struct request hello = {
			.id = 1,
			.type = REQUEST_HELLO,
			.hello = { .version = MESSAGE_VERSION,
				   .session = { .at = (const char *)id, .len = sizeof(id) },
				   .next_batch = 1 },
		};

		link_open(&links[i], server);
		link_request(&links[i], &hello);
		link_receive(&links[i], &reply);
		link_intern(&links[i], paths[0], sizeof(paths[0]), PATH_BYTES, 1);
	}
}

static void bench_acks(unsigned n_rounds)
{
	static double acks[ACKS], plain[ACKS], many[MAX_ROUNDS];
	static struct link links[WAITERS];
	struct server server;
	struct lane lane = { .n_counters = 1000, .next_batch = 1 };
	uint64_t first = 1;
	int64_t before;
	double ratio, per_flush;
	sqlite3 *db;

	server_start_keeping(&server, "");
	db = open_plain(&server);
	link_open(&lane.link, &server);
	link_hello(&lane.link, 1, 1);
	link_intern(&lane.link, paths[0], sizeof(paths[0]), PATH_BYTES, 1000);
	for (unsigned i = 0; i < ACKS; i++) {
		acks[i] = acknowledge(&lane);
		plain[i] = commit_plain(db);
	}
	ratio = report_median(acks, ACKS) / report_median(plain, ACKS);
	report_line("one commit of plain SQLite", 0, NULL, VERDICT_NONE, "%.0f us",
		    report_median(plain, ACKS) * 1e6);
	report_line("a durable acknowledgement, one client", ratio, "<= 3",
		    report_at_most(ratio, 3), "%.0f us", report_median(acks, ACKS) * 1e6);
	open_waiters(links, &server);
	before = status_number(&lane.link, "checkpoints");
	for (unsigned round = 0; round < n_rounds; round++) {
		many[round] = share_commits(links, &first, round);
	}
	per_flush = (double)(status_number(&lane.link, "checkpoints") - before) / n_rounds;
	report_line("1,000 clients that wait at once: commits for all of them", 0, "<= 50",
		    report_at_most(per_flush, 50), "%.1f", per_flush);
	report_line("1,000 clients that wait at once, until the last is answered", 0, NULL,
		    VERDICT_NONE, "%.1f ms", report_median(many, n_rounds) * 1e3);
	for (unsigned i = 0; i < WAITERS; i++) {
		link_close(&links[i]);
	}
	link_close(&lane.link);
	(void)sqlite3_close(db);
	server_stop(&server);
}

/* ---- start ---- */

static int64_t file_bytes(const struct server *server)
{
	char path[64];
	struct stat found;

	(void)snprintf(path, sizeof(path), "%s/state.db", server->dir);
	report_require(stat(path, &found) == 0, "there is no %s", path);
	return (int64_t)found.st_size;
}

static void bench_start(void)
{
	struct server server;
	struct lane lane = { .n_counters = MANY - 101, .next_batch = 1 };
	double seconds, cpu, bytes;

	server_start_keeping(&server, "");
	link_open(&lane.link, &server);
	link_hello(&lane.link, 1, 1);
	link_intern(&lane.link, paths[0], sizeof(paths[0]), PATH_BYTES, lane.n_counters);
	for (uint32_t i = 0; i < lane.n_counters; i += ENTRIES) {
		send_batch(&lane);
		link_applied(&lane.link, 1);
	}
	flush_durable(&lane.link);
	await_flushed(&lane.link);
	link_close(&lane.link);
	seconds = server_start_again(&server);
	cpu = (double)server_cpu_ns(&server) / 1e9;
	bytes = (double)file_bytes(&server) / MANY;
	report_line("a start with 1,000,000 counters", 0, "< 3 s", report_at_most(seconds, 3),
		    "%.2f s", seconds);
	report_line("of processor time", 0, NULL, VERDICT_NONE, "%.2f s", cpu);
	report_line("the state file, for a counter", 0, "<= 150 bytes", report_at_most(bytes, 150),
		    "%.0f bytes", bytes);
	link_open(&lane.link, &server);
	link_hello(&lane.link, 0, 0);
	report_require(link_total(&lane.link, text_of("requests")) ==
			       (int64_t)(lane.next_batch - 1) * ENTRIES,
		       "the total is not what was sent");
	link_close(&lane.link);
	server_stop(&server);
}

int main(int argc, char **argv)
{
	unsigned n_rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 7;

	report_require(n_rounds % 2 == 1 && n_rounds <= MAX_ROUNDS,
		       "usage: bench-durable [ROUNDS], an odd number below 100");
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), "requests/%05u/%015u", i / 10000, i);
	}
	report_table("Durability: unix socket, 2 connections, a checkpoint every 200 ms");
	bench_ingest(1000, n_rounds);
	bench_ingest(100000, n_rounds);
	bench_acks(n_rounds);
	bench_start();
	return 0;
}
