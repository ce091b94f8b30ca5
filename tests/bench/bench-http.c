/*
 * What a scrape of 100,000 series costs the daemon, and what it costs those who count meanwhile.
 *
 *	bench-http [ROUNDS]	an odd number; default 5
 *
 * One daemon with two workers, both of which have counted every series. In turns: a page as text, as OpenMetrics (twice the lines), as
 * text in gzip; then adds of random counters over one connection, without anybody and beside a reader that scrapes in a loop. Costs are the
 * processor time of the daemon's threads concerned. Each page must have every series, with a sum that is not less than what was acknowledged before
 * it was asked for; at rest the very sum. At the end the total must be what was sent.
 */
#include "tests/bench/link.h"
#include "tests/bench/report.h"
#include "tests/bench/server.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_ROUNDS 99u
#define SERIES 100000u
#define TENANTS 100u
#define PATH_BYTES 30u
#define ENTRIES 300u /* of a frame of adds */
#define AHEAD 64u    /* frames under way */
#define ADDS 6000000u
#define MAX_PAGE ((size_t)64 << 20)
#define MEMORY_EVERY \
	((size_t)256 << 10) /* bytes of a page between two looks at the daemon's memory */

struct path {
	char bytes[PATH_BYTES + 4];
};

static struct server server;
static unsigned port;
static struct path *paths;
static int64_t added; /* by the thread that adds, and acknowledged to it at the end of each run */
static char *page;    /* MAX_PAGE */
static int64_t most_used; /* resident memory while a page was read */

/* ---- the daemon's threads ---- */

/* Processor time of its threads whose names begin so, in nanoseconds. */
static int64_t threads_cpu_ns(const char *prefix)
{
	char path[64], name[32];
	struct dirent *entry;
	int64_t sum = 0;
	DIR *tasks;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)server.pid);
	tasks = opendir(path);
	report_require(tasks != NULL, "no %s", path);
	while ((entry = readdir(tasks)) != NULL) {
		char file[400], times[64];
		FILE *comm, *stat;

		(void)snprintf(file, sizeof(file), "%s/%s/comm", path, entry->d_name);
		comm = fopen(file, "re");
		if (comm == NULL || fgets(name, sizeof(name), comm) == NULL) {
			name[0] = '\0';
		}
		(void)snprintf(file, sizeof(file), "%s/%s/schedstat", path, entry->d_name);
		stat = strncmp(name, prefix, strlen(prefix)) == 0 ? fopen(file, "re") : NULL;
		if (stat != NULL && fgets(times, sizeof(times), stat) != NULL) {
			sum += strtoll(times, NULL, 10);
		}
		if (stat != NULL) {
			(void)fclose(stat);
		}
		if (comm != NULL) {
			(void)fclose(comm);
		}
	}
	(void)closedir(tasks);
	return sum;
}

/* ---- scraping ---- */

/* One that nobody has now. */
static unsigned find_port(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	report_require(fd >= 0 && bind(fd, (struct sockaddr *)&at, len) == 0 &&
			       getsockname(fd, (struct sockaddr *)&at, &len) == 0,
		       "no port");
	(void)close(fd);
	return ntohs(at.sin_port);
}

/* HTTP/1.0: what is read until the end is the page. *ret_len bytes behind the headers; where it begins. */
static char *scrape(const char *headers, bool watch, size_t *ret_len)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t len = 0, looked = 0;
	char request[256], *body;
	ssize_t n = 1;

	report_require(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0,
		       "can't connect");
	(void)snprintf(request, sizeof(request), "GET /metrics HTTP/1.0\r\n%s\r\n", headers);
	report_require(send(fd, request, strlen(request), 0) == (ssize_t)strlen(request),
		       "can't send");
	while (n > 0) {
		n = recv(fd, page + len, MAX_PAGE - len - 1, 0);
		report_require(n >= 0 && len < MAX_PAGE - 1, "a page can't be read");
		len += (size_t)n;
		if (watch && len - looked > MEMORY_EVERY) {
			int64_t used = server_memory(&server);

			most_used = used > most_used ? used : most_used;
			looked = len;
		}
	}
	(void)close(fd);
	page[len] = '\0';
	report_require(strncmp(page, "HTTP/1.0 200 ", 13) == 0, "the answer is %.20s", page);
	body = strstr(page, "\r\n\r\n");
	report_require(body != NULL, "no headers");
	body += 4;
	*ret_len = len - (size_t)(body - page);
	return body;
}

/* Every series is there; their sum. */
static int64_t sum_page(const char *body)
{
	static const char name[] = "\nrequests_total{";
	int64_t sum = 0;
	unsigned n = 0;

	while ((body = strstr(body, name)) != NULL) {
		const char *value;

		body++;
		value = strstr(body, "} ");
		report_require(value != NULL, "a series without a value");
		sum += strtoll(value + 2, NULL, 10);
		n++;
	}
	report_require(n == SERIES, "a page has %u series", n);
	return sum;
}

struct page_kind {
	const char *name, *headers;
	bool readable;
};

static const struct page_kind kinds[] = {
	{ "text", "", true },
	{ "OpenMetrics", "Accept: application/openmetrics-text\r\n", true },
	{ "text, gzip", "Accept-Encoding: gzip\r\n", false },
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Milliseconds of the daemon. */
static double scrape_once(const struct page_kind *kind, size_t *ret_len)
{
	int64_t cpu = threads_cpu_ns("");
	const char *body = scrape(kind->headers, /* watch= */ false, ret_len);

	cpu = threads_cpu_ns("") - cpu;
	if (kind->readable) {
		int64_t sum = sum_page(body);

		report_require(sum == added, "a page sums up to %lld, but %lld were added",
			       (long long)sum, (long long)added);
	}
	return (double)cpu / 1e6;
}

/* ---- adding ---- */

static uint32_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32);
}

static void send_adds(struct link *link, uint64_t *batch, const uint32_t *handles, size_t n)
{
	static int64_t deltas[ENTRIES];
	const struct request request = {
		.id = 1,
		.type = REQUEST_ADD,
		.add = { .batch = (*batch)++,
			 .n_handles = n,
			 .n_deltas = n,
			 .handles = handles,
			 .deltas = deltas },
	};

	for (size_t i = 0; i < n; i++) {
		deltas[i] = 1;
	}
	link_request(link, &request);
	added += (int64_t)n;
}

static void touch_all(struct link *link, uint64_t *batch)
{
	for (uint32_t i = 0; i < SERIES; i += ENTRIES) {
		uint32_t handles[ENTRIES];
		uint32_t n = SERIES - i < ENTRIES ? SERIES - i : ENTRIES;

		for (uint32_t j = 0; j < n; j++) {
			handles[j] = i + j;
		}
		send_adds(link, batch, handles, n);
		link_applied(link, 1);
	}
}

/* Increments per second of the workers' processor time. */
static double add_random(struct link *link, uint64_t *batch)
{
	static uint64_t state = 88172645463325252u;
	int64_t cpu = threads_cpu_ns("worker-");
	uint32_t handles[ENTRIES];
	size_t under_way = 0;

	for (size_t i = 0; i < ADDS / ENTRIES; i++) {
		for (size_t j = 0; j < ENTRIES; j++) {
			handles[j] = next_random(&state) % SERIES;
		}
		send_adds(link, batch, handles, ENTRIES);
		if (++under_way == AHEAD) {
			link_applied(link, AHEAD / 2);
			under_way -= AHEAD / 2;
		}
	}
	link_applied(link, under_way);
	return ADDS / ((double)(threads_cpu_ns("worker-") - cpu) / 1e9);
}

/* ---- both ---- */

static _Atomic(bool) scraping;
static unsigned n_scraped;

static void *scrape_in_a_loop(void *arg)
{
	int64_t last = 0;

	(void)arg;
	while (atomic_load_explicit(&scraping, memory_order_relaxed)) {
		size_t len;
		int64_t sum = sum_page(scrape("", /* watch= */ false, &len));

		report_require(sum >= last, "a sum went from %lld to %lld", (long long)last,
			       (long long)sum);
		last = sum;
		n_scraped++;
	}
	return NULL;
}

static double add_beside(struct link *link, uint64_t *batch)
{
	pthread_t thread;
	double rate;

	atomic_store_explicit(&scraping, true, memory_order_relaxed);
	report_require(pthread_create(&thread, NULL, scrape_in_a_loop, NULL) == 0, "no thread");
	rate = add_random(link, batch);
	atomic_store_explicit(&scraping, false, memory_order_relaxed);
	(void)pthread_join(thread, NULL);
	return rate;
}

static void start(struct link *links, uint64_t *batches)
{
	char config[160];

	port = find_port();
	(void)snprintf(
		config, sizeof(config),
		"workers = 2\nlisten = http:127.0.0.1:%u\n[metric requests]\nlevels = tenant, service\n",
		port);
	server_start_rationd(&server, config, SERVER_ANY_CPU);
	paths = calloc(SERIES, sizeof(*paths));
	page = malloc(MAX_PAGE);
	report_require(paths != NULL && page != NULL, "no memory");
	for (uint32_t i = 0; i < SERIES; i++) {
		(void)snprintf(paths[i].bytes, sizeof(paths[i]), "requests/%05u/%015u", i % TENANTS,
			       i);
	}
	for (uint8_t i = 0; i < 2; i++) {
		batches[i] = 1;
		link_open(&links[i], &server);
		link_hello(&links[i], (uint8_t)(i + 1), 1);
		link_intern(&links[i], paths[0].bytes, sizeof(*paths), PATH_BYTES, SERIES);
		touch_all(&links[i], &batches[i]);
	}
}

int main(int argc, char **argv)
{
	unsigned n_rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 5;
	double cost[N_KINDS][MAX_ROUNDS], alone[MAX_ROUNDS], beside[MAX_ROUNDS], kept[MAX_ROUNDS];
	struct link links[2];
	uint64_t batches[2];
	size_t sizes[N_KINDS] = { 0 }, len;
	int64_t before, total;
	double ms;

	report_require(n_rounds % 2 == 1 && n_rounds <= MAX_ROUNDS, "ROUNDS is an odd number");
	start(links, batches);
	before = most_used = server_memory(&server);
	(void)scrape("", /* watch= */ true, &len);
	for (unsigned round = 0; round < n_rounds; round++) {
		for (size_t i = 0; i < N_KINDS; i++) {
			cost[i][round] = scrape_once(&kinds[i], &sizes[i]);
		}
		alone[round] = add_random(&links[0], &batches[0]);
		beside[round] = add_beside(&links[0], &batches[0]);
		kept[round] = 100 * beside[round] / alone[round];
	}
	total = link_total(&links[0], text_of("requests"));
	report_require(total == added, "the total is %lld, but %lld were added", (long long)total,
		       (long long)added);

	report_table("/metrics with 100,000 series, by the daemon's processor time");
	for (size_t i = 0; i < N_KINDS; i++) {
		ms = report_median(cost[i], n_rounds);
		report_line(kinds[i].name, 0, i == 0 ? "<= 60 ms" : NULL,
			    i == 0 ? report_at_most(ms, 60) : VERDICT_NONE, "%.1f ms, %.1f MB", ms,
			    (double)sizes[i] / 1e6);
	}
	report_line("memory beside, while one is read", 0, "<= 4 MiB",
		    report_at_most((double)(most_used - before) / (1 << 20), 4), "%.2f MiB",
		    (double)(most_used - before) / (1 << 20));
	report_table("adds of random ones of these, per second of the workers' processor time");
	report_line("alone", 0, NULL, VERDICT_NONE, "%.1f M/s",
		    report_median(alone, n_rounds) / 1e6);
	report_line("beside a reader that scrapes in a loop", 0, NULL, VERDICT_NONE,
		    "%.1f M/s, %u pages", report_median(beside, n_rounds) / 1e6, n_scraped);
	ms = report_median(kept, n_rounds);
	report_line("kept", 0, ">= 95 %", report_at_least(ms, 95), "%.1f %%", ms);
	for (size_t i = 0; i < 2; i++) {
		link_close(&links[i]);
	}
	server_stop(&server);
	free(paths);
	free(page);
	return 0;
}
