#include "daemon/listener.h"

#include "daemon/clock.h"
#include "daemon/log.h"
#include "lib/base/cleanup.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#define LISTENER_ROUND 64u /* connections accepted before other events are looked at */
#define LISTENER_PAUSE_NS INT64_C(100000000)

int listeners_init(struct listeners *listeners, struct log *log,
		   void (*accepted)(void *ctx, int fd, const char *peer), void *ctx)
{
	*listeners =
		(struct listeners){ .log = log, .accepted = accepted, .ctx = ctx, .spare_fd = -1 };
	listeners->all = calloc(LISTENERS_MAX, sizeof(*listeners->all));
	if (listeners->all == NULL) {
		return -ENOMEM;
	}
	listeners->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return listeners->spare_fd >= 0 ? 0 : -errno;
}

/* Remove the file only if it is still the one we made. */
static void remove_socket(struct listener *listener)
{
	struct stat stat;

	if (lstat(listener->path, &stat) == 0 && stat.st_dev == listener->device &&
	    stat.st_ino == listener->inode) {
		(void)unlink(listener->path);
	}
}

static void listener_close(struct listener *listener)
{
	if (listener->event != NULL) {
		event_free(listener->event);
	}
	if (listener->path != NULL) {
		remove_socket(listener);
		/* Removed while locked: whoever waits for the lock sees that its file is gone and makes a new one. */
		(void)unlink(listener->lock_path);
		(void)close(listener->lock_fd);
	}
	(void)close(listener->fd);
	free(listener->path);
	free(listener->lock_path);
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
static struct listener *add(struct listeners *listeners, int fd, const char *name)
{
	struct listener *listener;

	if (listeners->n == LISTENERS_MAX) {
		log_line(listeners->log, LOG_ERR,
			 "%s: there are %u sockets already, and no more are allowed", name,
			 LISTENERS_MAX);
		return NULL;
	}
	listener = &listeners->all[listeners->n++];
	*listener = (struct listener){ .fd = fd, .lock_fd = -1 };
	(void)snprintf(listener->name, sizeof(listener->name), "%s", name);
	return listener;
}

/* ---- systemd ---- */

/* The order of passed sockets means nothing, and their names nothing yet: each must be one that we can accept on. */
static int adopt(struct listeners *listeners, int fd, const char *name)
{
	char text[ADDRESS_MAX_TEXT];

	if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, /* listening= */ 1) <= 0) {
		log_line(
			listeners->log, LOG_ERR,
			"the file descriptor %d (%s) that was passed is not a listening stream socket",
			fd, name);
		return -EINVAL;
	}
	if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
		return -errno;
	}
	(void)snprintf(text, sizeof(text), "passed:%.250s", name);
	if (add(listeners, fd, text) == NULL) {
		return -E2BIG;
	}
	log_line(listeners->log, LOG_INFO, "listening on the socket that was passed as %s", name);
	return 0;
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

/* ---- unix ---- */

static bool is_same_file(int fd, const char *path)
{
	struct stat ours, theirs;

	return fstat(fd, &ours) == 0 && stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
	       ours.st_ino == theirs.st_ino;
}

/* The lock file, locked; -EWOULDBLOCK: somebody else has it. */
static int take_lock(const char *path, int *ret_fd)
{
	for (;;) {
		_cleanup_close_ int fd =
			open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0) {
			return -errno;
		}
		/* The one before us may have removed the file between our open and our lock. */
		if (is_same_file(fd, path)) {
			*ret_fd = fd;
			fd = -1;
			return 0;
		}
	}
}

/* Nobody of ours is there; is anybody? 0: the path is free now. */
static int clear_path(struct log *log, const struct sockaddr_un *to)
{
	_cleanup_close_ int probe = -1;
	struct stat stat;

	if (lstat(to->sun_path, &stat) != 0) {
		return errno == ENOENT ? 0 : -errno;
	}
	if (!S_ISSOCK(stat.st_mode)) {
		log_line(
			log, LOG_ERR,
			"unix:%s: there is a file that is not a socket; remove it, or listen elsewhere",
			to->sun_path);
		return -EEXIST;
	}
	probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe < 0) {
		return -errno;
	}
	/* EAGAIN is a full backlog: somebody is there. */
	if (connect(probe, (const struct sockaddr *)to, sizeof(*to)) == 0 ||
	    errno != ECONNREFUSED) {
		log_line(log, LOG_ERR,
			 "unix:%s: another program is listening there; stop it, or listen elsewhere",
			 to->sun_path);
		return -EADDRINUSE;
	}
	log_line(log, LOG_NOTICE, "unix:%s: replacing a socket on which nobody listens",
		 to->sun_path);
	return unlink(to->sun_path) == 0 ? 0 : -errno;
}

static int bind_unix(struct log *log, const struct sockaddr_un *to, mode_t mode, int *ret_fd)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)to, sizeof(*to)) != 0 ||
	    chmod(to->sun_path, mode) != 0 || listen(fd, LISTENER_BACKLOG) != 0) {
		int r = -errno;

		log_line(log, LOG_ERR, "unix:%s: can't listen: %s", to->sun_path, strerror(-r));
		return r;
	}
	*ret_fd = fd;
	fd = -1;
	return 0;
}

static int open_unix(struct listeners *listeners, const char *path, const char *name, mode_t mode)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1, lock_fd = -1;
	_cleanup_free_ char *own_path = strdup(path), *lock_path = NULL;
	struct listener *listener;
	struct stat stat;
	int r;

	/* address_parse has seen to it that it fits. */
	memcpy(to.sun_path, path, strnlen(path, ADDRESS_MAX_UNIX));
	if (own_path == NULL || asprintf(&lock_path, "%s.lock", path) < 0) {
		lock_path = NULL;
		return -ENOMEM;
	}
	r = take_lock(lock_path, &lock_fd);
	if (r == -EWOULDBLOCK) {
		log_line(listeners->log, LOG_ERR,
			 "%s: another rationd is listening there; stop it, or listen elsewhere",
			 name);
		return -EADDRINUSE;
	}
	if (r < 0) {
		log_line(listeners->log, LOG_ERR, "%s: can't lock %s: %s", name, lock_path,
			 strerror(-r));
		return r;
	}
	r = clear_path(listeners->log, &to);
	if (r == 0) {
		r = bind_unix(listeners->log, &to, mode, &fd);
	}
	if (r == 0 && lstat(path, &stat) != 0) {
		r = -errno;
	}
	listener = r == 0 ? add(listeners, fd, name) : NULL;
	if (listener == NULL) {
		(void)unlink(lock_path);
		return r < 0 ? r : -E2BIG;
	}
	listener->device = stat.st_dev;
	listener->inode = stat.st_ino;
	listener->path = own_path;
	listener->lock_path = lock_path;
	listener->lock_fd = lock_fd;
	own_path = lock_path = NULL;
	fd = lock_fd = -1;
	log_line(listeners->log, LOG_INFO, "listening on %s", name);
	return 0;
}

/* ---- TCP ---- */

/* What it is called now that the kernel may have chosen a port. */
static void name_of(int fd, char *name)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	char host[64], port[16];

	if (getsockname(fd, (struct sockaddr *)&at, &len) == 0 &&
	    getnameinfo((struct sockaddr *)&at, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
		(void)snprintf(name, ADDRESS_MAX_TEXT,
			       strchr(host, ':') != NULL ? "tcp:[%s]:%s" : "tcp:%s:%s", host, port);
	}
}

static int bind_tcp(const struct addrinfo *to, int *ret_fd)
{
	_cleanup_close_ int fd =
		socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, off = 0;

	if (fd < 0) {
		return -errno;
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* [::] is both families; an address of one family is that one. */
	if (to->ai_family == AF_INET6) {
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	}
	if (bind(fd, to->ai_addr, to->ai_addrlen) != 0 || listen(fd, LISTENER_BACKLOG) != 0) {
		return -errno;
	}
	*ret_fd = fd;
	fd = -1;
	return 0;
}

static int open_one_tcp(struct listeners *listeners, const struct addrinfo *to)
{
	char name[ADDRESS_MAX_TEXT] = "tcp";
	_cleanup_close_ int fd = -1;
	int r = bind_tcp(to, &fd);

	if (r < 0) {
		return r;
	}
	name_of(fd, name);
	if (add(listeners, fd, name) == NULL) {
		return -E2BIG;
	}
	fd = -1;
	log_line(listeners->log, LOG_INFO, "listening on %s", name);
	return 0;
}

static int open_all_tcp(struct listeners *listeners, const char *host, const char *port,
			const char *name)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
					.ai_socktype = SOCK_STREAM,
					.ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	struct addrinfo *all = NULL;
	int r = getaddrinfo(host, port, &hints, &all), error = 0;
	size_t before = listeners->n;

	if (r != 0) {
		log_line(listeners->log, LOG_ERR, "%s: can't find the host: %s", name,
			 gai_strerror(r));
		return -EADDRNOTAVAIL;
	}
	for (const struct addrinfo *to = all; to != NULL; to = to->ai_next) {
		r = open_one_tcp(listeners, to);
		/* A host without IPv6 still lists ::1 for localhost. */
		if (r < 0 && r != -EADDRNOTAVAIL && r != -EAFNOSUPPORT) {
			error = r;
		}
	}
	freeaddrinfo(all);
	if (error == 0 && listeners->n == before) {
		error = -EADDRNOTAVAIL;
	}
	if (error != 0) {
		log_line(listeners->log, LOG_ERR, "%s: can't listen: %s", name, strerror(-error));
	}
	return error;
}

static int open_tcp(struct listeners *listeners, const struct address *address, const char *name)
{
	char port[8];
	size_t before = listeners->n;
	int r;

	(void)snprintf(port, sizeof(port), "%u", address->port);
	if (strcmp(address->host, "*") != 0) {
		return open_all_tcp(listeners, address->host, port, name);
	}
	r = open_all_tcp(listeners, "::", port, name);
	if (r < 0 && listeners->n == before && r != -EADDRINUSE) {
		r = open_all_tcp(listeners, "0.0.0.0", port, name);
	}
	return r;
}

int listeners_open(struct listeners *listeners, const struct address *address, mode_t mode)
{
	char name[ADDRESS_MAX_TEXT];

	(void)address_format(address, name);
	return address->scheme == ADDRESS_UNIX ? open_unix(listeners, address->host, name, mode)
					       : open_tcp(listeners, address, name);
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
		(void)event_add(listeners->all[i].event, NULL);
	}
}

/* The socket stays readable while we can't accept: without a pause we would spin. */
static void pause_all(struct listeners *listeners)
{
	struct timeval wait = clock_timeval(LISTENER_PAUSE_NS);

	for (size_t i = 0; i < listeners->n; i++) {
		(void)event_del(listeners->all[i].event);
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
static bool accept_one(struct listeners *listeners, int listen_fd)
{
	struct sockaddr_storage from = { 0 };
	socklen_t len = sizeof(from);
	char peer[96];
	int fd = accept4(listen_fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		describe_peer(fd, &from, len, peer, sizeof(peer));
		if (from.ss_family == AF_INET || from.ss_family == AF_INET6) {
			set_tcp_options(fd);
		}
		listeners->accepted(listeners->ctx, fd, peer);
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
		if (!refuse_one(listeners, listen_fd)) {
			pause_all(listeners);
		}
		return false;
	}
}

static void on_connection(evutil_socket_t fd, short what, void *arg)
{
	struct listeners *listeners = arg;

	(void)what;
	for (unsigned i = 0; i < LISTENER_ROUND && accept_one(listeners, fd); i++) {
		/* until there is none left */
	}
}

int listeners_start(struct listeners *listeners, struct event_base *base)
{
	listeners->pause = evtimer_new(base, on_pause_over, listeners);
	if (listeners->pause == NULL) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < listeners->n; i++) {
		struct listener *listener = &listeners->all[i];

		listener->event = event_new(base, listener->fd, EV_READ | EV_PERSIST, on_connection,
					    listeners);
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
