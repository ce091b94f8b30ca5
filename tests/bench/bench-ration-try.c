/*
 * What ration_try costs from a lease that has units, against ration_add in the same program: at most five times as much.
 *
 *	bench-ration-try [ROUNDS]	an odd number; default 9
 *
 * The daemon is a thread of this program: it grants every lease all that is wanted, and takes every report. Units were granted before the
 * measurement, so that none of it waits; a second lease is kept short, to see what running low now and then costs. All cases run once
 * in every round; figures and ratios are medians over the rounds.
 *
 * Conservation: in the end the daemon has been told of as many spent units as tries were granted, and gave no fewer; the exit status is 1 if
 * not, and also if the bound is missed.
 */
#include "clients/c/include/ration.h"
#include "proto/frame.h"
#include "proto/message.h"
#include "tests/bench/measure.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define OPS 10000000ul
#define BOUND 5.0
#define LONG_LEASE (INT64_C(1) << 40)
#define SHORT_LEASE (INT64_C(1) << 20)

/* ---- a daemon that grants everything ---- */

static struct {
	char dir[32], path[64], url[80];
	int listener;
	_Atomic(int64_t) granted, spent;
} fake;

static void answer(int fd, const struct request *request, struct arena *arena)
{
	struct reply reply = { .id = request->id };
	const uint8_t *bytes;
	size_t len;

	switch (request->type) {
	case REQUEST_HELLO:
		reply.type = REPLY_WELCOME;
		reply.welcome = (struct welcome){
			.version = MESSAGE_VERSION,
			.daemon = text_of("fake/1"),
			.last_batch = request->hello.next_batch - 1,
			.last_operation = request->hello.next_operation > 0
						  ? request->hello.next_operation - 1
						  : 0,
			.incarnation = text_of("0123456789abcdef"),
			.limits = { .max_frame = MESSAGE_MAX_FRAME,
				    .max_handles = 1000,
				    .max_items = 1000,
				    .max_lifetime_ms = 86400000,
				    .max_operations_kept = 1024 },
		};
		break;
	case REQUEST_INTERN:
		reply.type = REPLY_INTERNED;
		break;
	case REQUEST_ADD:
		reply.type = REPLY_APPLIED;
		reply.applied.batch = request->add.batch;
		break;
	case REQUEST_METRIC_GET:
		reply.type = REPLY_METRIC;
		reply.metric = (struct metric){ .name = request->metric_get };
		break;
	case REQUEST_LEASE:
		reply.type = REPLY_LEASED;
		reply.leased = (struct leased){ .number = request->lease.number,
						.lease = request->lease.lease,
						.ttl_ms = request->lease.ttl_ms,
						.granted = request->lease.want };
		break;
	case REQUEST_LEASE_RENEW:
		reply.type = REPLY_LEASED;
		/* As many as were spent: the stock is `want` again, or a little less. */
		reply.leased = (struct leased){ .number = request->lease_renew.number,
						.lease = request->lease_renew.lease,
						.ttl_ms = 3600000,
						.granted = request->lease_renew.spent };
		(void)atomic_fetch_add_explicit(&fake.spent, request->lease_renew.spent,
						memory_order_relaxed);
		break;
	case REQUEST_LEASE_RETURN:
		reply.type = REPLY_LEASE_RETURNED;
		reply.lease_returned =
			(struct lease_returned){ .number = request->lease_return.number,
						 .lease = request->lease_return.lease };
		(void)atomic_fetch_add_explicit(&fake.spent, request->lease_return.spent,
						memory_order_relaxed);
		break;
	default:
		reply.type = REPLY_PONG;
		break;
	}
	if (reply.type == REPLY_LEASED) {
		(void)atomic_fetch_add_explicit(&fake.granted, reply.leased.granted,
						memory_order_relaxed);
	}
	if (reply_encode(arena, &reply, &bytes, &len) != 0 ||
	    send(fd, bytes, len, MSG_NOSIGNAL) != (ssize_t)len) {
		abort();
	}
}

static void *serve(void *arg)
{
	static uint8_t buffer[65536];
	struct arena arena = ARENA_INIT(MESSAGE_ARENA_LIMIT), out = ARENA_INIT(MESSAGE_ARENA_LIMIT);
	size_t end = 0, len, used;
	const uint8_t *message;
	ssize_t got;
	int fd;

	(void)arg;
	while ((fd = accept(fake.listener, NULL, NULL)) >= 0) {
		while ((got = recv(fd, buffer + end, sizeof(buffer) - end, 0)) > 0) {
			size_t at = 0;

			end += (size_t)got;
			while (frame_find(buffer + at, end - at, MESSAGE_MAX_FRAME, &message, &len,
					  &used) == FRAME_OK) {
				struct request request;

				arena_reset(&arena);
				arena_reset(&out);
				if (request_decode(&arena, message, len, &request) != 0) {
					abort();
				}
				answer(fd, &request, &out);
				at += used;
			}
			memmove(buffer, buffer + at, end - at);
			end -= at;
		}
		end = 0;
		(void)close(fd);
	}
	arena_deinit(&arena);
	arena_deinit(&out);
	return NULL;
}

static void listen_fake(pthread_t *ret_thread)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)snprintf(fake.dir, sizeof(fake.dir), "/tmp/bench-try-XXXXXX");
	if (mkdtemp(fake.dir) == NULL) {
		abort();
	}
	(void)snprintf(fake.path, sizeof(fake.path), "%s/socket", fake.dir);
	(void)snprintf(fake.url, sizeof(fake.url), "unix:%s", fake.path);
	memcpy(address.sun_path, fake.path, strlen(fake.path) + 1);
	fake.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(fake.listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(fake.listener, 4) != 0 || pthread_create(ret_thread, NULL, serve, NULL) != 0) {
		abort();
	}
}

/* ---- the cases ---- */

static struct {
	_Alignas(128) _Atomic(uint64_t) word[2][16];
	struct ration_counter *counter;
	struct ration_lease *lease, *low;
	_Atomic(int64_t) taken; /* tries that were granted */
} shared;

static void add_one(unsigned self)
{
	(void)self;
	for (unsigned long i = 0; i < OPS; i++) {
		ration_add(shared.counter, 1);
	}
}

static void try_from(struct ration_lease *lease)
{
	int64_t taken = 0;

	for (unsigned long i = 0; i < OPS; i++) {
		taken += ration_try(lease, 1, RATION_CLOSED);
	}
	(void)atomic_fetch_add_explicit(&shared.taken, taken, memory_order_relaxed);
}

static void try_one(unsigned self)
{
	(void)self;
	try_from(shared.lease);
}

static void try_low(unsigned self)
{
	(void)self;
	try_from(shared.low);
}

static void xadd_own(unsigned self)
{
	for (unsigned long i = 0; i < OPS; i++) {
		(void)atomic_fetch_add_explicit(&shared.word[self][0], 1, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
	}
}

enum which {
	ADD,
	TRY,
	TRY_LOW,
	TRY_2,
	ADD_2,
	XADD,
	N_CASES
};

static const struct {
	const char *name;
	void (*run)(unsigned self);
	unsigned n_threads;
} cases[N_CASES] = {
	[ADD] = { "ration_add, one thread", add_one, 1 },
	[TRY] = { "ration_try, one thread", try_one, 1 },
	[TRY_LOW] = { "ration_try, a lease that is filled up again and again", try_low, 1 },
	[TRY_2] = { "ration_try, two threads on one lease", try_one, 2 },
	[ADD_2] = { "ration_add, two threads on one counter", add_one, 2 },
	[XADD] = { "lock xadd, a line of its own", xadd_own, 1 },
};

static double ns[N_CASES][MEASURE_MAX_ROUNDS];

static double ratio(enum which a, enum which b, unsigned n)
{
	return measure_median_ratio(ns[a], ns[b], n);
}

/* ---- the whole ---- */

static struct ration_lease *open_lease(struct ration *client, const char *path, int64_t want)
{
	struct ration_lease *lease = ration_lease_open(client, path, want, 60000, NULL);

	if (lease == NULL || ration_lease_wait(lease, 5000) != 0) {
		(void)fprintf(stderr, "no lease: %s\n", ration_error());
		exit(1);
	}
	return lease;
}

static bool is_conserved(void)
{
	int64_t taken = atomic_load_explicit(&shared.taken, memory_order_relaxed);
	int64_t spent = atomic_load_explicit(&fake.spent, memory_order_relaxed);
	int64_t granted = atomic_load_explicit(&fake.granted, memory_order_relaxed);

	(void)printf("\n%lld units spent, %lld reported, %lld leased\n", (long long)taken,
		     (long long)spent, (long long)granted);
	return taken == spent && taken <= granted;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 9;
	struct ration *client;
	pthread_t thread;
	double bound;

	n = n == 0 || n > MEASURE_MAX_ROUNDS ? 9 : n | 1;
	listen_fake(&thread);
	client = ration_open(fake.url, NULL);
	shared.counter = ration_counter(client, "adds/a");
	shared.lease = open_lease(client, "tries/a", LONG_LEASE);
	shared.low = open_lease(client, "tries/b", SHORT_LEASE);
	for (unsigned round = 0; round < n; round++) {
		for (unsigned i = 0; i < N_CASES; i++) {
			ns[i][round] = measure_threads(cases[i].run, cases[i].n_threads, OPS);
		}
	}
	for (unsigned i = 0; i < N_CASES; i++) {
		(void)printf("%-56s %7.2f ns\n", cases[i].name, measure_median(ns[i], n));
	}
	bound = ratio(TRY, ADD, n);
	(void)printf("\nration_try / ration_add                %5.2f  (at most %.0f)\n", bound,
		     BOUND);
	(void)printf("ration_try, filled up again / ration_add %5.2f\n", ratio(TRY_LOW, ADD, n));
	(void)printf("ration_try, two threads / ration_add, two threads %5.2f\n",
		     ratio(TRY_2, ADD_2, n));
	(void)ration_lease_close(shared.lease, 5000, NULL);
	(void)ration_lease_close(shared.low, 5000, NULL);
	(void)ration_close(client, 5000, NULL);
	(void)shutdown(fake.listener, SHUT_RDWR);
	(void)pthread_join(thread, NULL);
	(void)close(fake.listener);
	(void)unlink(fake.path);
	(void)rmdir(fake.dir);
	return is_conserved() && bound <= BOUND ? 0 : 1;
}
