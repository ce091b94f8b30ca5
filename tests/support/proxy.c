#include "tests/support/proxy.h"

#include "tests/support/test.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PROXY_MAX_PAIRS 64
#define PROXY_BUFFER 16384

/* One direction: what was read from one side and not yet written to the other. */
struct flow {
	uint8_t bytes[PROXY_BUFFER];
	size_t at, end;
};

struct pair {
	int fds[2];	      /* client, daemon; -1, -1: not in use */
	struct flow flows[2]; /* by the side it is read from */
	uint64_t left;	      /* bytes until the cut; UINT64_MAX: none */
};

/* What the thread has to itself. */
struct state {
	struct proxy *proxy;
	struct test_random random;
	int listener; /* -1: down */
	struct pair pairs[PROXY_MAX_PAIRS];
};

static int make_socket(const char *path, struct sockaddr_un *ret_address)
{
	*ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "%s", path);
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address;
	int fd = make_socket(path, &address);

	(void)unlink(path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, PROXY_MAX_PAIRS) < 0) {
		abort();
	}
	return fd;
}

static void drop(struct pair *pair)
{
	for (int side = 0; side < 2; side++) {
		if (pair->fds[side] >= 0) {
			(void)close(pair->fds[side]);
			pair->fds[side] = -1;
		}
	}
}

static void drop_all(struct state *state)
{
	for (int i = 0; i < PROXY_MAX_PAIRS; i++) {
		drop(&state->pairs[i]);
	}
}

static uint64_t bytes_until_cut(struct state *state)
{
	struct proxy *proxy = state->proxy;
	uint64_t min = atomic_load_explicit(&proxy->cut_min, memory_order_relaxed);
	uint64_t max = atomic_load_explicit(&proxy->cut_max, memory_order_relaxed);

	if (max == 0) {
		return UINT64_MAX;
	}
	return min + test_random_below(&state->random, max - min + 1);
}

static void accept_one(struct state *state)
{
	int client = accept4(state->listener, NULL, NULL, SOCK_CLOEXEC);
	struct sockaddr_un address;
	int daemon;

	if (client < 0) {
		return;
	}
	daemon = make_socket(state->proxy->target, &address);
	for (int i = 0; i < PROXY_MAX_PAIRS && daemon >= 0; i++) {
		struct pair *pair = &state->pairs[i];

		if (pair->fds[0] < 0 &&
		    connect(daemon, (const struct sockaddr *)&address, sizeof(address)) == 0) {
			pair->fds[0] = client;
			pair->fds[1] = daemon;
			pair->flows[0].at = pair->flows[0].end = 0;
			pair->flows[1].at = pair->flows[1].end = 0;
			pair->left = bytes_until_cut(state);
			return;
		}
	}
	(void)close(client);
	if (daemon >= 0) {
		(void)close(daemon);
	}
}

/* Read on one side as much as may be before the cut. False: the pair is at its end. */
static bool take(struct state *state, struct pair *pair, int side)
{
	struct flow *flow = &pair->flows[side];
	size_t room = pair->left < PROXY_BUFFER ? (size_t)pair->left : PROXY_BUFFER;
	ssize_t got = recv(pair->fds[side], flow->bytes, room, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
		return true;
	}
	if (got <= 0) {
		return false;
	}
	flow->at = 0;
	flow->end = (size_t)got;
	if (pair->left != UINT64_MAX) {
		pair->left -= (uint64_t)got;
	}
	(void)state;
	return true;
}

static bool give(struct pair *pair, int side)
{
	struct flow *flow = &pair->flows[side];
	ssize_t sent = send(pair->fds[!side], flow->bytes + flow->at, flow->end - flow->at,
			    MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent < 0) {
		return errno == EAGAIN || errno == EINTR;
	}
	flow->at += (size_t)sent;
	return true;
}

static bool may_cut(struct proxy *proxy)
{
	if (atomic_load_explicit(&proxy->n_cuts, memory_order_relaxed) >=
	    atomic_load_explicit(&proxy->max_cuts, memory_order_relaxed)) {
		return false;
	}
	(void)atomic_fetch_add_explicit(&proxy->n_cuts, 1, memory_order_relaxed);
	return true;
}

/* False: the pair is at its end. */
static bool step(struct state *state, struct pair *pair, const struct pollfd *fds)
{
	for (int side = 0; side < 2; side++) {
		struct flow *flow = &pair->flows[side];

		if (flow->at == flow->end && fds[side].revents != 0 && !take(state, pair, side)) {
			return false;
		}
		if (flow->at < flow->end && !give(pair, side)) {
			return false;
		}
		if (pair->left == 0) {
			if (may_cut(state->proxy)) {
				return false;
			}
			pair->left = UINT64_MAX;
		}
	}
	return true;
}

static void follow_orders(struct state *state)
{
	bool down = atomic_load_explicit(&state->proxy->down, memory_order_relaxed);

	if (down && state->listener >= 0) {
		(void)close(state->listener);
		(void)unlink(state->proxy->path);
		state->listener = -1;
		drop_all(state);
	} else if (!down && state->listener < 0) {
		state->listener = listen_at(state->proxy->path);
	}
}

static short events_of(const struct pair *pair, int side)
{
	short events = 0;

	if (pair->flows[side].at == pair->flows[side].end) {
		events = POLLIN;
	}
	if (pair->flows[!side].at < pair->flows[!side].end) {
		events |= POLLOUT;
	}
	return events;
}

static void turn(struct state *state)
{
	struct pollfd fds[2 + 2 * PROXY_MAX_PAIRS] = {
		{ .fd = state->proxy->wake_fd, .events = POLLIN },
		{ .fd = state->listener, .events = POLLIN },
	};

	for (int i = 0; i < PROXY_MAX_PAIRS; i++) {
		for (int side = 0; side < 2; side++) {
			fds[2 + 2 * i + side].fd = state->pairs[i].fds[side];
			fds[2 + 2 * i + side].events = events_of(&state->pairs[i], side);
		}
	}
	(void)poll(fds, 2 + 2 * PROXY_MAX_PAIRS, -1);
	for (int i = 0; i < PROXY_MAX_PAIRS; i++) {
		struct pair *pair = &state->pairs[i];

		if (pair->fds[0] >= 0 && !step(state, pair, &fds[2 + 2 * i])) {
			drop(pair);
		}
	}
	if (fds[1].revents != 0) {
		accept_one(state);
	}
	if (fds[0].revents != 0) {
		eventfd_t ignored;

		(void)eventfd_read(fds[0].fd, &ignored);
		follow_orders(state);
	}
}

static void *run(void *arg)
{
	struct proxy *proxy = arg;
	struct state *state = calloc(1, sizeof(*state));

	if (state == NULL) {
		abort();
	}
	state->proxy = proxy;
	state->listener = -1;
	test_random_init(&state->random, 99);
	for (int i = 0; i < PROXY_MAX_PAIRS; i++) {
		state->pairs[i].fds[0] = state->pairs[i].fds[1] = -1;
	}
	follow_orders(state);
	while (!atomic_load_explicit(&proxy->stop, memory_order_acquire)) {
		turn(state);
	}
	drop_all(state);
	if (state->listener >= 0) {
		(void)close(state->listener);
		(void)unlink(proxy->path);
	}
	free(state);
	return NULL;
}

static void wake(struct proxy *proxy)
{
	assert_int_equal(eventfd_write(proxy->wake_fd, 1), 0);
}

struct proxy *proxy_start(const char *dir, const char *target)
{
	struct proxy *proxy = calloc(1, sizeof(*proxy));

	assert_non_null(proxy);
	(void)snprintf(proxy->path, sizeof(proxy->path), "%s/proxy.sock", dir);
	(void)snprintf(proxy->url, sizeof(proxy->url), "unix:%s", proxy->path);
	(void)snprintf(proxy->target, sizeof(proxy->target), "%s", target);
	proxy->wake_fd = eventfd(0, EFD_CLOEXEC);
	assert_true(proxy->wake_fd >= 0);
	(void)test_seed();
	assert_int_equal(pthread_create(&proxy->thread, NULL, run, proxy), 0);
	while (access(proxy->path, F_OK) != 0) {
		(void)usleep(1000);
	}
	return proxy;
}

void proxy_cut_after(struct proxy *proxy, uint64_t min, uint64_t max, uint64_t max_cuts)
{
	atomic_store_explicit(&proxy->max_cuts, max_cuts, memory_order_relaxed);
	atomic_store_explicit(&proxy->cut_min, min, memory_order_relaxed);
	atomic_store_explicit(&proxy->cut_max, max, memory_order_relaxed);
}

void proxy_set_down(struct proxy *proxy, bool down)
{
	atomic_store_explicit(&proxy->down, down, memory_order_relaxed);
	wake(proxy);
	while ((access(proxy->path, F_OK) != 0) != down) {
		(void)usleep(1000);
	}
}

void proxy_stop(struct proxy *proxy)
{
	atomic_store_explicit(&proxy->stop, true, memory_order_release);
	wake(proxy);
	assert_int_equal(pthread_join(proxy->thread, NULL), 0);
	assert_int_equal(close(proxy->wake_fd), 0);
	free(proxy);
}
