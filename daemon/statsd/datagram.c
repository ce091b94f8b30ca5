/*
 * Datagrams. A reader that is quicker than its senders finds one or two of them at a time, pays for a system call each, and takes their memory
 * from under the sender's CPU: so once a UDP socket is empty it is left alone for some milliseconds, as many as its buffer lasts
 * at a million datagrams a second, unless more came in than that allows for. It halves what a datagram costs. A unix socket holds ten of them and makes
 * its senders wait, so it is read at once.
 */
#include "daemon/statsd/statsd.h"

#include "daemon/address.h"
#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/worker.h"

#include <errno.h>
#include <event2/event.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_PAUSE_MS 4u
#define BYTES_PER_MS \
	(1000 *      \
	 1280) /* of a buffer, at that rate: what the kernel takes for a datagram of 500 bytes */
#define MAX_CALLS 16u /* in one turn of the loop, so that others have theirs */
#define STOP_CALLS \
	4096u /* the last datagrams before a stop; what comes without end would keep us */
/* Apart by more than a datagram, so that the beginnings of 64 of them don't meet in the same lines of the caches. */
#define STRIDE (STATSD_DATAGRAM + 1 + 1088)

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

struct statsd_socket {
	struct statsd_socket_stats stats;
	struct statsd *statsd;
	char name[ADDRESS_MAX_TEXT];
	struct statsd_sender sender; /* where the address says nothing */
	struct event readable, pause;
	int fd;
	bool listening;	   /* for `readable` */
	unsigned pause_ms; /* 0: none */
	size_t pace;	   /* datagrams in a turn beyond which there is no pause */
};

struct datagrams {
	struct mmsghdr messages[STATSD_DATAGRAMS];
	struct iovec parts[STATSD_DATAGRAMS];
	struct sockaddr_storage from[STATSD_DATAGRAMS];
	struct statsd_sender senders[STATSD_DATAGRAMS];
	char *bytes; /* STATSD_DATAGRAMS times STRIDE */
};

/* ---- receiving ---- */

static struct datagrams *datagrams_new(void)
{
	struct datagrams *datagrams = calloc(1, sizeof(*datagrams));
	void *bytes = mmap(NULL, (size_t)STATSD_DATAGRAMS * STRIDE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (datagrams == NULL || bytes == MAP_FAILED) {
		free(datagrams);
		return NULL;
	}
	datagrams->bytes = bytes;
	for (size_t i = 0; i < STATSD_DATAGRAMS; i++) {
		datagrams->parts[i] = (struct iovec){ .iov_base = datagrams->bytes + i * STRIDE,
						      .iov_len = STATSD_DATAGRAM };
		datagrams->messages[i].msg_hdr = (struct msghdr){
			.msg_name = &datagrams->from[i],
			.msg_namelen = sizeof(datagrams->from[i]),
			.msg_iov = &datagrams->parts[i],
			.msg_iovlen = 1,
		};
	}
	return datagrams;
}

static void datagrams_free(struct datagrams *datagrams)
{
	if (datagrams != NULL) {
		(void)munmap(datagrams->bytes, (size_t)STATSD_DATAGRAMS * STRIDE);
		free(datagrams);
	}
}

/* All but the line that was cut, of which nobody knows what it was. */
static void take_truncated(struct statsd *statsd, const char *bytes, size_t len,
			   const struct statsd_sender *sender)
{
	const char *newline = memrchr(bytes, '\n', len);
	size_t whole = newline != NULL ? (size_t)(newline - bytes) + 1 : 0;

	stats_add(&statsd->worker->statsd_stats.datagrams_truncated, 1);
	intake_take(&statsd->intake, bytes, whole, sender);
	intake_reject(&statsd->intake, STATSD_truncated, bytes + whole, len - whole, sender);
}

static size_t take_message(struct statsd_socket *socket, size_t i)
{
	struct statsd *statsd = socket->statsd;
	struct datagrams *datagrams = statsd->datagrams;
	struct mmsghdr *message = &datagrams->messages[i];
	struct statsd_sender *sender = &datagrams->senders[i];
	const char *bytes = datagrams->parts[i].iov_base;

	*sender = (struct statsd_sender){ .text = socket->sender.text,
					  .address = (struct sockaddr *)&datagrams->from[i],
					  .address_len = message->msg_hdr.msg_namelen };
	if (sender->address_len == 0) {
		sender->address = NULL;
	}
	if (__builtin_expect(message->msg_hdr.msg_flags & MSG_TRUNC, 0)) {
		take_truncated(statsd, bytes, message->msg_len, sender);
	} else {
		intake_take(&statsd->intake, bytes, message->msg_len, sender);
	}
	message->msg_hdr.msg_namelen = sizeof(datagrams->from[i]);
	return message->msg_len;
}

/* One call's datagrams. How many; fewer than STATSD_DATAGRAMS: there were no more. */
static size_t receive(struct statsd_socket *socket)
{
	struct statsd *statsd = socket->statsd;
	struct statsd_stats *stats = &statsd->worker->statsd_stats;
	int n = recvmmsg(socket->fd, statsd->datagrams->messages, STATSD_DATAGRAMS, MSG_DONTWAIT,
			 NULL);
	size_t bytes = 0;

	/* Nothing there; or an error that was kept for the socket, and is gone with this. */
	if (n <= 0) {
		return 0;
	}
	for (int i = 0; i < n; i++) {
		bytes += take_message(socket, (size_t)i);
	}
	intake_settle(&statsd->intake);
	keep_note(statsd->worker);
	stats_add(&stats->bytes, bytes);
	stats_add(&stats->datagrams, (uint64_t)n);
	stats_add(&socket->stats.datagrams, (uint64_t)n);
	return (size_t)n;
}

/* Until there are no more, or so many calls. How many. */
static size_t receive_all(struct statsd_socket *socket, unsigned max_calls, bool *ret_empty)
{
	size_t n = 0, got;

	do {
		got = receive(socket);
		n += got;
	} while (got == STATSD_DATAGRAMS && --max_calls > 0);
	*ret_empty = got < STATSD_DATAGRAMS;
	return n;
}

static void listen_again(struct statsd_socket *socket)
{
	if (!socket->listening) {
		socket->listening = event_add(&socket->readable, NULL) == 0;
	}
}

static void on_datagrams(evutil_socket_t fd, short what, void *arg)
{
	struct statsd_socket *socket = arg;
	const struct timeval pause = { .tv_usec = socket->pause_ms * 1000L };
	bool empty;
	size_t n = receive_all(socket, MAX_CALLS, &empty);

	(void)fd;
	(void)what;
	if (socket->pause_ms == 0 || !empty || n == 0 || n > socket->pace ||
	    evtimer_add(&socket->pause, &pause) != 0) {
		listen_again(socket);
		return;
	}
	if (socket->listening) {
		(void)event_del(&socket->readable);
		socket->listening = false;
	}
}

/* ---- the socket ---- */

static int socket_number(int fd, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 ? value : 0;
}

/* By the size of its buffer; a quarter of it is what may come in a pause. */
static void set_pause(struct statsd_socket *socket)
{
	unsigned size = (unsigned)socket_number(socket->fd, SO_RCVBUF);
	unsigned ms = size / BYTES_PER_MS;

	if (socket_number(socket->fd, SO_DOMAIN) != AF_UNIX) {
		socket->pause_ms = ms < 1 ? 1 : ms > MAX_PAUSE_MS ? MAX_PAUSE_MS : ms;
		socket->pace = size / 4 / (BYTES_PER_MS / 1000);
	}
}

int statsd_add_socket(struct worker *worker, int fd, const char *name)
{
	struct statsd_socket *socket = calloc(1, sizeof(*socket));
	struct statsd *statsd = worker->statsd;

	if (socket == NULL) {
		(void)close(fd);
		return -ENOMEM;
	}
	(void)snprintf(socket->name, sizeof(socket->name), "%s", name);
	socket->fd = fd;
	socket->statsd = statsd;
	socket->stats.name = socket->name;
	set_pause(socket);
	socket->sender.text = socket->pause_ms > 0 ? "statsd udp" : "statsd unix";
	(void)event_assign(&socket->readable, worker->base, fd, EV_READ | EV_PERSIST, on_datagrams,
			   socket);
	(void)evtimer_assign(&socket->pause, worker->base, on_datagrams, socket);
	SLIST_INSERT_HEAD(statsd->sockets, &socket->stats, link);
	if (statsd->datagrams == NULL) {
		statsd->datagrams = datagrams_new();
	}
	listen_again(socket);
	return statsd->datagrams != NULL && socket->listening ? 0 : -ENOMEM;
}

static struct statsd_socket *first_socket(struct statsd_socket_list *list)
{
	return (struct statsd_socket *)(void *)SLIST_FIRST(list);
}

static struct statsd_socket *next_socket(struct statsd_socket *socket)
{
	return (struct statsd_socket *)(void *)SLIST_NEXT(&socket->stats, link);
}

void statsd_sockets_stop(struct statsd *statsd)
{
	for (struct statsd_socket *socket = first_socket(statsd->sockets); socket != NULL;
	     socket = next_socket(socket)) {
		bool empty;

		(void)event_del(&socket->readable);
		(void)event_del(&socket->pause);
		(void)receive_all(socket, STOP_CALLS, &empty);
	}
}

void statsd_sockets_free(struct statsd *statsd)
{
	struct statsd_socket *socket;

	while ((socket = first_socket(statsd->sockets)) != NULL) {
		SLIST_REMOVE_HEAD(statsd->sockets, link);
		if (event_initialized(&socket->readable)) {
			(void)event_del(&socket->readable);
			(void)event_del(&socket->pause);
		}
		(void)close(socket->fd);
		free(socket);
	}
	datagrams_free(statsd->datagrams);
	statsd->datagrams = NULL;
}

/*
 * What SO_RXQ_OVFL sends along with the next datagram, asked for instead: the next datagram may never come. A unix socket drops nothing.
 */
void statsd_look_for_drops(struct daemon *daemon)
{
	for (unsigned i = 0; i < daemon->n_workers; i++) {
		struct statsd_socket *socket = first_socket(&daemon->workers[i].statsd_sockets);

		for (; socket != NULL; socket = next_socket(socket)) {
			uint32_t info[SK_MEMINFO_VARS] = { 0 };
			socklen_t len = sizeof(info);

			if (getsockopt(socket->fd, SOL_SOCKET, SO_MEMINFO, info, &len) == 0) {
				uint64_t before = stats_read(&socket->stats.dropped);

				/* The kernel counts in 32 bits, round and round. */
				stats_add(&socket->stats.dropped,
					  (uint32_t)(info[SK_MEMINFO_DROPS] - (uint32_t)before));
			}
		}
	}
}
