/*
 * load: a program that counts with libration, as fast as its threads can.
 *
 * usage: demo-load URL THREADS INCREMENTS COUNTERS
 *
 * Each of THREADS threads does INCREMENTS increments, spread over COUNTERS counters load/k0, load/k1, ... that all threads and all
 * such processes share. Ends when the daemon has all of it in its state file, and fails if it has not.
 */
#include <inttypes.h>
#include <pthread.h>
#include <ration.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 64
#define MAX_COUNTERS 1024
#define PATIENCE_MS 60000

struct load {
	struct ration_counter *counters[MAX_COUNTERS];
	uint64_t n_counters;
	uint64_t increments;
};

static void *count(void *arg)
{
	const struct load *load = arg;
	uint64_t next = 0;

	for (uint64_t i = 0; i < load->increments; i++) {
		ration_inc(load->counters[next]);
		next = next + 1 < load->n_counters ? next + 1 : 0;
	}
	return NULL;
}

static void report_loss(void *ctx, const struct ration_loss *loss)
{
	(void)ctx;
	(void)fprintf(stderr, "demo-load: not counted: %s %" PRId64 ": %s\n", loss->path,
		      loss->amount, loss->text);
}

static bool run_threads(struct load *load, unsigned n)
{
	pthread_t threads[MAX_THREADS];
	unsigned started = 0;

	while (started < n && pthread_create(&threads[started], NULL, count, load) == 0) {
		started++;
	}
	for (unsigned i = 0; i < started; i++) {
		(void)pthread_join(threads[i], NULL);
	}
	return started == n;
}

static bool make_counters(struct load *load, struct ration *client)
{
	for (uint64_t i = 0; i < load->n_counters; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "load/k%" PRIu64, i);
		load->counters[i] = ration_counter(client, path);
		if (load->counters[i] == NULL) {
			return false;
		}
	}
	return true;
}

static bool parse(const char *text, uint64_t max, uint64_t *ret_number)
{
	char *end = NULL;
	unsigned long long number = strtoull(text, &end, 10);

	if (*end != '\0' || number < 1 || number > max) {
		return false;
	}
	*ret_number = number;
	return true;
}

int main(int argc, char **argv)
{
	struct ration_options options = RATION_OPTIONS_INIT;
	struct load load = { .n_counters = 0 };
	struct ration *client = NULL;
	uint64_t threads = 0;
	bool done = false;

	if (argc != 5 || !parse(argv[2], MAX_THREADS, &threads) ||
	    !parse(argv[3], UINT64_MAX, &load.increments) ||
	    !parse(argv[4], MAX_COUNTERS, &load.n_counters)) {
		(void)fprintf(stderr, "usage: %s URL THREADS INCREMENTS COUNTERS\n", argv[0]);
		return 2;
	}
	options.on_loss = report_loss;
	client = ration_open(argv[1], &options);
	if (client == NULL) {
		(void)fprintf(stderr, "demo-load: %s\n", ration_error());
		return 1;
	}
	done = make_counters(&load, client) && run_threads(&load, (unsigned)threads) &&
	       ration_flush_durable(client, PATIENCE_MS) == 0;
	if (!done) {
		(void)fprintf(stderr, "demo-load: %s\n", ration_error());
	}
	return ration_close(client, PATIENCE_MS, NULL) == 0 && done ? 0 : 1;
}
