#include "daemon/listener.h"

#include "daemon/clock.h"
#include "daemon/log.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#define LISTENER_ROUND 64u /* connections accepted before other events are looked at */
#define LISTENER_PAUSE_NS INT64_C(100000000)

int listeners_init(struct listeners *listeners, struct log *log, const struct listener_uses *uses,
		   void *ctx)
{
	*listeners = (struct listeners){ .log = log, .uses = uses, .ctx = ctx, .spare_fd = -1 };
	listeners->all = calloc(LISTENERS_MAX, sizeof(*listeners->all));
	if (listeners->all == NULL) {
		return -ENOMEM;
	}
	listeners->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return listeners->spare_fd >= 0 ? 0 : -errno;
}

static void listener_close(struct listener *listener)
{
	if (listener->event != NULL) {
		event_free(listener->event);
	}
	socket_unix_remove(&listener->unix_socket);
	if (listener->fd >= 0) {
		(void)close(listener->fd);
	}
	*listener = (struct listener){ .fd = -1 };
}

void listeners_deinit(struct listeners *listeners)
{
	if (listeners->all == NULL) {
		return;
	}
	if (listeners->pause != NULL) {
		event_free(listeners->pause);
	}
	while (listeners->n > 0) {
		listener_close(&listeners->all[--listeners->n]);
	}
	if (listeners->spare_fd >= 0) {
		(void)close(listeners->spare_fd);
	}
	free(listeners->all);
	*listeners = (struct listeners){ .spare_fd = -1 };
}

/* A place for one more; NULL: there are too many. */
static struct listener *add(struct listeners *listeners, int fd, enum address_scheme scheme,
			    const char *name)
{
	struct listener *listener;

	if (listeners->n == LISTENERS_MAX) {
		log_line(listeners->log, LOG_ERR,
			 "%s: there are %u sockets already, and no more are allowed", name,
			 LISTENERS_MAX);
		return NULL;
	}
	listener = &listeners->all[listeners->n++];
	*listener =
		(struct listener){ .fd = fd, .scheme = scheme, .unix_socket = SOCKET_UNIX_INIT };
	(void)snprintf(listener->name, sizeof(listener->name), "%s", name);
	return listener;
}

/* ---- systemd ---- */

/*
 * The order of passed sockets means nothing: their names (FileDescriptorName=) say what is to be spoken on them. "unknown" are those
 * of a manager that gives no names, and a unit that says none passes its own.
 */
static bool is_ours(const char *name)
{
	static const char *const names[] = { "rationd", "rationd.socket", "unknown" };
	static const char prefix[] = "rationd-";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0) {
			return true;
		}
	}
	return strncmp(name, prefix, sizeof(prefix) - 1) == 0;
}

/* By the name of the unit or what its FileDescriptorName says, up to what may follow: rationd-statsd, rationd-statsd.socket. */
static enum address_scheme scheme_of(const char *name, int fd)
{
	static const char statsd[] = "rationd-statsd", http[] = "rationd-http";

	if (strncmp(name, http, sizeof(http) - 1) == 0) {
		return ADDRESS_HTTP;
	}
	if (strncmp(name, statsd, sizeof(statsd) - 1) != 0) {
		return ADDRESS_TCP;
	}
	if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, /* listening= */ -1) > 0) {
		return ADDRESS_STATSD_TCP;
	}
	return sd_is_socket(fd, AF_UNIX, SOCK_DGRAM, /* listening= */ -1) > 0 ? ADDRESS_STATSD_UNIX
									      : ADDRESS_STATSD_UDP;
}

static bool takes_datagrams(enum address_scheme scheme)
{
	return scheme == ADDRESS_STATSD_UDP || scheme == ADDRESS_STATSD_UNIX;
}

/* Whoever reads datagrams has the sockets; what is kept here is the address, and its file. */
static int hand_on(struct listeners *listeners, int fd, const char *name)
{
	return listeners->uses->datagrams(listeners->ctx, fd, name);
}

static int adopt_datagrams(struct listeners *listeners, int fd, enum address_scheme scheme)
{
	char name[ADDRESS_MAX_TEXT] = "statsd+unix:(passed)";
	struct sockaddr_un at = { 0 };
	socklen_t len = sizeof(at);

	if (scheme == ADDRESS_STATSD_UDP) {
		socket_tcp_name(fd, address_prefix(scheme), name);
	} else if (getsockname(fd, (struct sockaddr *)&at, &len) == 0) {
		(void)snprintf(name, sizeof(name), "%s%.107s", address_prefix(scheme), at.sun_path);
	}
	return hand_on(listeners, fd, name);
}

static int adopt(struct listeners *listeners, int fd, const char *name)
{
	char text[ADDRESS_MAX_TEXT];
	enum address_scheme scheme = scheme_of(name, fd);
	bool datagrams = takes_datagrams(scheme);

	if (!is_ours(name)) {
		log_line(listeners->log, LOG_ERR,
			 "the socket that was passed as %s: its name does not say what it is for; let it be rationd, or rationd-%s "
			 "(FileDescriptorName=)",
			 name, name);
		return -EINVAL;
	}
	if (sd_is_socket(fd, AF_UNSPEC, datagrams ? SOCK_DGRAM : SOCK_STREAM,
			 /* listening= */ datagrams ? -1 : 1) <= 0) {
		log_line(listeners->log, LOG_ERR,
			 "the file descriptor %d (%s) that was passed is not a %s socket", fd, name,
			 datagrams ? "datagram" : "listening stream");
		return -EINVAL;
	}
	if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
		return -errno;
	}
	(void)snprintf(text, sizeof(text), "passed:%.250s", name);
	if (add(listeners, datagrams ? -1 : fd, scheme, text) == NULL) {
		return -E2BIG;
	}
	log_line(listeners->log, LOG_INFO, "listening on the socket that was passed as %s", name);
	return datagrams ? adopt_datagrams(listeners, fd, scheme) : 0;
}

int listeners_adopt(struct listeners *listeners)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(/* unset_environment= */ 1, &names);
	int r = n < 0 ? n : 0;

	for (int i = 0; i < n; i++) {
		if (r == 0) {
			r = adopt(listeners, SD_LISTEN_FDS_START + i, names[i]);
		}
		free(names[i]);
	}
	free(names);
	return r;
}

/* ---- ours ---- */

static int open_unix(struct listeners *listeners, const struct address *address, const char *name,
		     mode_t mode)
{
	struct socket_unix unix_socket = SOCKET_UNIX_INIT;
	bool datagrams = takes_datagrams(address->scheme);
	struct listener *listener;
	int fd, r = socket_unix_open(&unix_socket, listeners->log,
				     datagrams ? SOCK_DGRAM : SOCK_STREAM, address->host, mode,
				     &fd);

	if (r < 0) {
		return r;
	}
	listener = add(listeners, datagrams ? -1 : fd, address->scheme, name);
	if (listener == NULL) {
		socket_unix_remove(&unix_socket);
		(void)close(fd);
		return -E2BIG;
	}
	listener->unix_socket = unix_socket;
	log_line(listeners->log, LOG_INFO, "listening on %s", name);
	return datagrams ? hand_on(listeners, fd, name) : 0;
}

static void close_all(const struct socket_tcp *all, size_t from, size_t n)
{
	for (; from < n; from++) {
		(void)close(all[from].fd);
	}
}

static int open_tcp(struct listeners *listeners, const struct address *address)
{
	struct socket_tcp all[SOCKET_TCP_MAX];
	size_t n = 0;
	int r = socket_tcp_open(listeners->log, address, all, &n);

	for (size_t i = 0; r >= 0 && i < n; i++) {
		if (add(listeners, all[i].fd, address->scheme, all[i].name) == NULL) {
			close_all(all, i, n);
			return -E2BIG;
		}
		log_line(listeners->log, LOG_INFO, "listening on %s", all[i].name);
	}
	return r;
}

/* A socket for each reader, the first of which is open. */
static int open_readers(struct listeners *listeners, const struct socket_tcp *first)
{
	int fds[LISTENER_MAX_READERS] = { first->fd }, r = 0;
	unsigned n = 1;

	for (; r == 0 && n < listeners->uses->n_readers; n += r == 0) {
		r = socket_udp_again(first->fd, &fds[n]);
	}
	if (r < 0) {
		log_line(listeners->log, LOG_ERR, "%s: can't open a socket for each worker: %s",
			 first->name, strerror(-r));
	}
	for (unsigned i = 0; i < n; i++) {
		if (r == 0) {
			r = hand_on(listeners, fds[i], first->name);
		} else {
			(void)close(fds[i]);
		}
	}
	return r;
}

static int open_udp(struct listeners *listeners, const struct address *address)
{
	struct socket_tcp all[SOCKET_TCP_MAX];
	size_t n = 0;
	int r = socket_udp_open(listeners->log, address, all, &n);

	for (size_t i = 0; r >= 0 && i < n; i++) {
		if (add(listeners, -1, address->scheme, all[i].name) == NULL) {
			close_all(all, i, n);
			return -E2BIG;
		}
		log_line(listeners->log, LOG_INFO, "listening on %s", all[i].name);
		r = open_readers(listeners, &all[i]);
		if (r < 0) {
			close_all(all, i + 1, n);
		}
	}
	return r;
}

int listeners_open(struct listeners *listeners, const struct address *address, mode_t mode)
{
	char name[ADDRESS_MAX_TEXT];

	switch (address->scheme) {
	case ADDRESS_UNIX:
	case ADDRESS_STATSD_UNIX:
		return open_unix(listeners, address, address_format(address, name), mode);
	case ADDRESS_STATSD_UDP:
		return open_udp(listeners, address);
	case ADDRESS_TCP:
	case ADDRESS_STATSD_TCP:
	case ADDRESS_HTTP:
		break;
	}
	return open_tcp(listeners, address);
}

/* ---- accepting ---- */

/* Who is it, for the log. */
static void describe_peer(int fd, const struct sockaddr_storage *from, socklen_t len, char *peer,
			  size_t size)
{
	struct ucred who;
	socklen_t who_len = sizeof(who);
	char host[64] = "?", port[16] = "?";

	if (from->ss_family != AF_INET && from->ss_family != AF_INET6) {
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_len) == 0) {
			(void)snprintf(peer, size, "unix pid %d uid %u", (int)who.pid,
				       (unsigned)who.uid);
		} else {
			(void)snprintf(peer, size, "unix");
		}
		return;
	}
	(void)getnameinfo((const struct sockaddr *)from, len, host, sizeof(host), port,
			  sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
	(void)snprintf(peer, size, from->ss_family == AF_INET6 ? "tcp [%s]:%s" : "tcp %s:%s", host,
		       port);
}

/* Answers at once, and finds out when the other side's machine is gone. */
static void set_tcp_options(int fd)
{
	int on = 1, idle = 60, interval = 15, count = 4;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	struct listeners *listeners = arg;

	(void)fd;
	(void)what;
	for (size_t i = 0; i < listeners->n; i++) {
		if (listeners->all[i].event != NULL) {
			(void)event_add(listeners->all[i].event, NULL);
		}
	}
}

/* The socket stays readable while we can't accept: without a pause we would spin. */
static void pause_all(struct listeners *listeners)
{
	struct timeval wait = clock_timeval(LISTENER_PAUSE_NS);

	for (size_t i = 0; i < listeners->n; i++) {
		if (listeners->all[i].event != NULL) {
			(void)event_del(listeners->all[i].event);
		}
	}
	(void)event_add(listeners->pause, &wait);
}

/* No more file descriptors: give up the spare one to tell one client so, by closing. False: not even that was possible. */
static bool refuse_one(struct listeners *listeners, int listen_fd)
{
	int fd;

	if (listeners->spare_fd < 0) {
		return false;
	}
	(void)close(listeners->spare_fd);
	fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		(void)close(fd);
	}
	listeners->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd >= 0;
}

/* False: nothing more to accept now. */
static bool accept_one(struct listeners *listeners, const struct listener *listener)
{
	struct sockaddr_storage from = { 0 };
	socklen_t len = sizeof(from);
	char peer[96];
	int fd =
		accept4(listener->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		describe_peer(fd, &from, len, peer, sizeof(peer));
		if (from.ss_family == AF_INET || from.ss_family == AF_INET6) {
			set_tcp_options(fd);
		}
		listeners->uses->accepted(listeners->ctx, listener->scheme, fd, peer);
		return true;
	}
	switch (errno) {
	case EAGAIN:
		return false;
	case EINTR:
	case ECONNABORTED:
		return true;
	default:
		log_peer(listeners->log, LOG_KIND_ACCEPT, clock_monotonic_ns(), LOG_ERR, "accept",
			 "can't accept a connection: %s", strerror(errno));
		if (!refuse_one(listeners, listener->fd)) {
			pause_all(listeners);
		}
		return false;
	}
}

static void on_connection(evutil_socket_t fd, short what, void *arg)
{
	struct listener *listener = arg;

	(void)fd;
	(void)what;
	for (unsigned i = 0; i < LISTENER_ROUND && accept_one(listener->listeners, listener); i++) {
		/* until there is none left */
	}
}

bool listeners_have(const struct listeners *listeners, enum address_scheme scheme)
{
	for (size_t i = 0; i < listeners->n; i++) {
		if (listeners->all[i].scheme == scheme) {
			return true;
		}
	}
	return false;
}

int listeners_start(struct listeners *listeners, struct event_base *base)
{
	listeners->pause = evtimer_new(base, on_pause_over, listeners);
	if (listeners->pause == NULL) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < listeners->n; i++) {
		struct listener *listener = &listeners->all[i];

		/* Datagrams are read by workers, and HTTP has a thread that accepts itself. */
		if (listener->fd < 0 || listener->scheme == ADDRESS_HTTP) {
			continue;
		}
		listener->listeners = listeners;
		listener->event = event_new(base, listener->fd, EV_READ | EV_PERSIST, on_connection,
					    listener);
		if (listener->event == NULL || event_add(listener->event, NULL) != 0) {
			return -ENOMEM;
		}
	}
	return 0;
}

void listeners_stop(struct listeners *listeners)
{
	if (listeners->pause != NULL) {
		(void)event_del(listeners->pause);
	}
	while (listeners->n > 0) {
		listener_close(&listeners->all[--listeners->n]);
	}
}
