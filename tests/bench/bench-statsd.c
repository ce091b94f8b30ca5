/*
 * How many StatsD lines rationd counts per second of its processor time, beside netdata on the same job; and what a million names cost.
 *
 *	bench-statsd [ROUNDS]	an odd number; default 5
 *
 * 1,000 names of counters; one sender, on a CPU of its own, as fast as it goes; the server on another. In each round both servers are started anew, one
 * after the other, and get the same datagrams and the same stream. Ratios are medians of the rounds' ratios. Every line that was sent must
 * be counted, or be in a datagram that the kernel dropped and counted.
 */
#include "tests/bench/link.h"
#include "tests/bench/report.h"
#include "tests/bench/server.h"
#include "tests/bench/statsd-load.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_ROUNDS 99u
#define NAMES 1000u
#define MANY_NAMES 1000000u
#define PATIENCE_MS 30000
#define SENDER_CPU 0
#define SERVER_CPU 1

enum job {
	JOB_TEN,
	JOB_ONE,
	JOB_STREAM,
	N_JOBS,
};

static const struct {
	const char *name;
	struct load_shape shape;
	size_t pieces;
	double bound;
	const char *bound_text;
} jobs[N_JOBS] = {
	{ "UDP, 10 lines a datagram", { NAMES, 10, false }, 400000, 4, "4 x" },
	{ "UDP, one line a datagram", { NAMES, 1, false }, 500000, 2.5, "2.5 x" },
	{ "TCP", { NAMES, 1000, true }, 12000, 8, "8 x" },
};

/* ---- a server ---- */

struct target {
	struct server server;
	struct link link; /* rationd's */
	bool netdata;
	unsigned port;
};

static int64_t status_of(struct target *target, const char *name)
{
	const struct request request = { .id = 1, .type = REQUEST_STATUS };
	struct reply reply;
	size_t len = strlen(name);

	link_request(&target->link, &request);
	link_receive(&target->link, &reply);
	for (size_t i = 0; i < reply.status.n_items; i++) {
		struct text text = reply.status.items[i].name;

		if (text.len == len && memcmp(text.at, name, len) == 0) {
			return reply.status.items[i].number;
		}
	}
	report_require(false, "no %s in the status", name);
	return 0;
}

static void start(struct target *target, bool netdata)
{
	char config[256];

	*target = (struct target){ .netdata = netdata, .port = load_free_port() };
	if (netdata) {
		server_start_netdata(&target->server, target->port, SERVER_CPU);
		return;
	}
	(void)snprintf(
		config, sizeof(config),
		"workers = 1\nmax_counters = 3M\nlisten = statsd+udp:127.0.0.1:%u\nlisten = statsd+tcp:127.0.0.1:%u\n",
		target->port, target->port);
	server_start_rationd(&target->server, config, SERVER_CPU);
	link_open(&target->link, &target->server);
	link_hello(&target->link, 0, 0);
}

static void stop(struct target *target)
{
	if (!target->netdata) {
		link_close(&target->link);
	}
	server_stop(&target->server);
}

static uint64_t counted(struct target *target)
{
	return target->netdata ? load_netdata_counted(target->port + 1)
			       : (uint64_t)status_of(target, "statsd_lines");
}

/* Wait until what was counted and what was dropped is what was sent. Netdata says what it has once in a second. */
static void account(struct target *target, uint64_t before, uint64_t sent, uint64_t dropped)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	uint64_t now = 0;

	for (int waited = 0; waited < PATIENCE_MS; waited += 20) {
		now = counted(target) - before;
		if (now + dropped == sent) {
			return;
		}
		(void)nanosleep(&pause, NULL);
	}
	report_require(false,
		       "%s: %" PRIu64 " lines sent, %" PRIu64 " counted, %" PRIu64 " dropped",
		       target->netdata ? "netdata" : "rationd", sent, now, dropped);
}

/* ---- one job ---- */

struct outcome {
	double per_cpu_second; /* lines counted */
	double dropped;	       /* share of the lines */
};

static struct outcome run_load(struct target *target, const struct load *load, size_t first,
			       size_t pieces, double per_second)
{
	uint64_t before = counted(target), sent, waiting, dropped_before = 0, dropped = 0;
	int fd = load_connect(target->port, load->shape.stream);
	int64_t cpu;

	load_udp_queue(target->port, &waiting, &dropped_before);
	cpu = server_cpu_ns(&target->server);
	sent = load_send(load, fd, first, pieces, per_second);
	if (load->shape.stream) {
		load_stream_end(fd);
	} else {
		load_udp_drain(target->port);
		(void)close(fd);
	}
	cpu = server_cpu_ns(&target->server) - cpu;
	load_udp_queue(target->port, &waiting, &dropped);
	dropped = (dropped - dropped_before) * load->shape.lines;
	account(target, before, sent, dropped);
	return (struct outcome){
		.per_cpu_second = (double)(sent - dropped) * 1e9 / (double)cpu,
		.dropped = (double)dropped / (double)sent,
	};
}

static void run_jobs(bool netdata, struct outcome outcomes[N_JOBS])
{
	struct target target;

	start(&target, netdata);
	for (enum job job = 0; job < N_JOBS; job++) {
		struct load load;

		load_init(&load, &jobs[job].shape, /* in_order= */ false);
		/* Once for the names, unmeasured. */
		(void)run_load(&target, &load, 0, load.n, 0);
		outcomes[job] = run_load(&target, &load, 0, jobs[job].pieces, 0);
		load_deinit(&load);
	}
	stop(&target);
}

static void compare(unsigned n_rounds)
{
	static double ours[N_JOBS][MAX_ROUNDS], theirs[N_JOBS][MAX_ROUNDS],
		ratios[N_JOBS][MAX_ROUNDS], our_drops[N_JOBS][MAX_ROUNDS],
		their_drops[N_JOBS][MAX_ROUNDS];

	for (unsigned i = 0; i < n_rounds; i++) {
		struct outcome us[N_JOBS], them[N_JOBS];

		run_jobs(/* netdata= */ i % 2 == 1, i % 2 == 1 ? them : us);
		run_jobs(/* netdata= */ i % 2 == 0, i % 2 == 0 ? them : us);
		for (enum job job = 0; job < N_JOBS; job++) {
			ours[job][i] = us[job].per_cpu_second;
			theirs[job][i] = them[job].per_cpu_second;
			ratios[job][i] = us[job].per_cpu_second / them[job].per_cpu_second;
			our_drops[job][i] = us[job].dropped;
			their_drops[job][i] = them[job].dropped;
		}
	}
	report_table(
		"lines counted per second of the server's processor time, 1,000 names, against netdata");
	for (enum job job = 0; job < N_JOBS; job++) {
		double ratio = report_median(ratios[job], n_rounds);

		report_line(jobs[job].name, ratio, jobs[job].bound_text,
			    report_at_least(ratio, jobs[job].bound), "%.2f M against %.2f M",
			    report_median(ours[job], n_rounds) / 1e6,
			    report_median(theirs[job], n_rounds) / 1e6);
		report_line("  dropped by the kernel, as fast as the sender goes", 0, NULL,
			    VERDICT_NONE, "%.1f %% against %.1f %%",
			    report_median(our_drops[job], n_rounds) * 100,
			    report_median(their_drops[job], n_rounds) * 100);
	}
}

/* ---- at a pace ---- */

static void pace(void)
{
	static const struct load_shape shapes[] = { { NAMES, 10, false }, { NAMES, 1, false } };
	static const char *const names[] = { "500,000 lines/s for 3 s, 10 a datagram: dropped",
					     "500,000 lines/s for 3 s, one a datagram: dropped" };

	report_table("at a pace");
	for (size_t i = 0; i < 2; i++) {
		struct target target;
		struct outcome outcome;
		struct load load;

		start(&target, /* netdata= */ false);
		load_init(&load, &shapes[i], /* in_order= */ false);
		outcome = run_load(&target, &load, 0, 1500000 / shapes[i].lines,
				   500000.0 / shapes[i].lines);
		report_line(names[i], 0, "0", report_at_most(outcome.dropped, 0),
			    "%.3f %%, %.2f M lines per CPU second", outcome.dropped * 100,
			    outcome.per_cpu_second / 1e6);
		load_deinit(&load);
		stop(&target);
	}
}

/* ---- a million names ---- */

/* Asks the one worker again and again, and keeps the longest it took to answer. */
struct asker {
	struct target *target;
	_Atomic(bool) done;
	double longest;
};

static void *ask(void *arg)
{
	struct asker *asker = arg;
	struct link link;

	server_pin(SENDER_CPU);
	link_open(&link, &asker->target->server);
	link_hello(&link, 0, 0);
	while (!atomic_load_explicit(&asker->done, memory_order_relaxed)) {
		const struct timespec pause = { .tv_nsec = 1000000 };
		const struct request ping = { .id = 1, .type = REQUEST_PING };
		double began = report_wall_seconds(), took;
		struct reply reply;

		link_request(&link, &ping);
		link_receive(&link, &reply);
		took = report_wall_seconds() - began;
		asker->longest = took > asker->longest ? took : asker->longest;
		(void)nanosleep(&pause, NULL);
	}
	link_close(&link);
	return NULL;
}

static void insert(struct target *target, const struct load *load)
{
	struct asker asker = { .target = target };
	int64_t memory = server_memory(&target->server);
	struct outcome outcome;
	pthread_t thread;

	report_require(pthread_create(&thread, NULL, ask, &asker) == 0, "no thread");
	outcome = run_load(target, load, 0, load->n, 200000.0 / load->shape.lines);
	atomic_store_explicit(&asker.done, true, memory_order_relaxed);
	(void)pthread_join(thread, NULL);
	memory = server_memory(&target->server) - memory;
	report_line("new ones at 200,000 lines/s, 10 a datagram: dropped", 0, "0",
		    report_at_most(outcome.dropped, 0), "%.3f %%, %.2f M per CPU second",
		    outcome.dropped * 100, outcome.per_cpu_second / 1e6);
	report_line("longest the worker took to answer meanwhile", 0, "50 ms",
		    report_at_most(asker.longest, 0.05), "%.1f ms", asker.longest * 1e3);
	report_line("memory for each name, the counter included", 0, NULL, VERDICT_NONE,
		    "%.0f bytes", (double)memory / MANY_NAMES);
}

static void million(void)
{
	static const struct load_shape ten = { MANY_NAMES, 10, false },
				       stream = { MANY_NAMES, 1000, true };
	struct outcome outcome;
	struct target target;
	struct load load;

	report_table("1,000,000 names");
	start(&target, /* netdata= */ false);
	load_init(&load, &ten, /* in_order= */ true);
	insert(&target, &load);
	load_deinit(&load);
	load_init(&load, &ten, /* in_order= */ false);
	outcome = run_load(&target, &load, 0, 4 * load.n, 0);
	report_line("then, UDP with 10 lines a datagram, per CPU second", 0, "6 M",
		    report_at_least(outcome.per_cpu_second, 6e6), "%.2f M, %.1f %% dropped",
		    outcome.per_cpu_second / 1e6, outcome.dropped * 100);
	load_deinit(&load);
	load_init(&load, &stream, /* in_order= */ false);
	outcome = run_load(&target, &load, 0, 8 * load.n, 0);
	report_line("then, TCP, per CPU second", 0, "6 M",
		    report_at_least(outcome.per_cpu_second, 6e6), "%.2f M",
		    outcome.per_cpu_second / 1e6);
	load_deinit(&load);
	stop(&target);
}

int main(int argc, char **argv)
{
	unsigned n_rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 5;

	report_require(n_rounds > 0 && n_rounds <= MAX_ROUNDS && n_rounds % 2 == 1,
		       "bench-statsd [ROUNDS], an odd number up to %u", MAX_ROUNDS);
	server_pin(SENDER_CPU);
	million();
	pace();
	if (!server_exists("netdata") && access("/usr/sbin/netdata", X_OK) != 0) {
		printf("\nnetdata is not there: nothing to compare with\n");
		return 0;
	}
	compare(n_rounds);
	return 0;
}
