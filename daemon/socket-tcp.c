#include "daemon/socket-tcp.h"

#include "daemon/listener.h"
#include "daemon/log.h"
#include "lib/base/cleanup.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* [::] for both families, which is * in an address. */
static bool is_any(int fd, const struct sockaddr_storage *at)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)at;
	int v6_only = 1;
	socklen_t len = sizeof(v6_only);

	return at->ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr) &&
	       getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, &len) == 0 && v6_only == 0;
}

void socket_tcp_name(int fd, const char *prefix, char *name)
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = sizeof(at);
	char host[64], port[16];

	if (getsockname(fd, (struct sockaddr *)&at, &len) != 0 ||
	    getnameinfo((struct sockaddr *)&at, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
		return;
	}
	if (is_any(fd, &at)) {
		(void)snprintf(name, ADDRESS_MAX_TEXT, "%s*:%s", prefix, port);
	} else {
		(void)snprintf(name, ADDRESS_MAX_TEXT,
			       strchr(host, ':') != NULL ? "%s[%s]:%s" : "%s%s:%s", prefix, host,
			       port);
	}
}

/* A UDP socket's buffer, as large as may be: beyond the system's limit where we are allowed that too. */
static void enlarge_buffer(int fd)
{
	int size = SOCKET_UDP_BUFFER;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0) {
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	}
}

static int bind_one(const struct addrinfo *to, bool any, int *ret_fd)
{
	_cleanup_close_ int fd =
		socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool stream = to->ai_socktype == SOCK_STREAM;
	int on = 1, v6_only = !any;

	if (fd < 0) {
		return -errno;
	}
	/* For UDP it would let two daemons have one port. */
	if (stream) {
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	} else {
		enlarge_buffer(fd);
	}
	/* * is both families; an address of one family is that one, so that 0.0.0.0 and [::] can have the same port. */
	if (to->ai_family == AF_INET6) {
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
	}
	if (bind(fd, to->ai_addr, to->ai_addrlen) != 0 ||
	    (stream && listen(fd, LISTENER_BACKLOG) != 0)) {
		return -errno;
	}
	*ret_fd = fd;
	fd = -1;
	return 0;
}

static void close_all(struct socket_tcp *all, size_t n)
{
	while (n > 0) {
		(void)close(all[--n].fd);
	}
}

/* Every address of the host. A machine without IPv6 still lists ::1 for localhost: one that can't be had here is no error. */
static int open_each(const struct addrinfo *to, bool any, const struct address *address,
		     struct socket_tcp *all, size_t *ret_n)
{
	size_t n = 0;

	for (; to != NULL && n < SOCKET_TCP_MAX; to = to->ai_next) {
		int r = bind_one(to, any, &all[n].fd);

		if (r == 0) {
			(void)address_format(address, all[n].name);
			socket_tcp_name(all[n].fd, address_prefix(address->scheme), all[n].name);
			n++;
		} else if (r != -EADDRNOTAVAIL && r != -EAFNOSUPPORT) {
			close_all(all, n);
			return r;
		}
	}
	*ret_n = n;
	return n > 0 ? 0 : -EADDRNOTAVAIL;
}

static int open_host(struct log *log, const struct address *address, int type, const char *host,
		     struct socket_tcp *all, size_t *ret_n)
{
	bool any = strcmp(address->host, "*") == 0;
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = type,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
	};
	struct addrinfo *found = NULL;
	char name[ADDRESS_MAX_TEXT], port[8];
	int r;

	(void)snprintf(port, sizeof(port), "%u", address->port);
	r = getaddrinfo(host, port, &hints, &found);
	if (r != 0) {
		log_line(log, LOG_ERR, "%s: can't find the host: %s", address_format(address, name),
			 gai_strerror(r));
		return -EADDRNOTAVAIL;
	}
	r = open_each(found, any, address, all, ret_n);
	freeaddrinfo(found);
	return r;
}

static int open_all(struct log *log, const struct address *address, int type,
		    struct socket_tcp *all, size_t *ret_n)
{
	bool any = strcmp(address->host, "*") == 0;
	char name[ADDRESS_MAX_TEXT];
	int r = open_host(log, address, type, any ? "::" : address->host, all, ret_n);

	if (any && r < 0 && r != -EADDRINUSE) {
		r = open_host(log, address, type, "0.0.0.0", all, ret_n); /* no IPv6 here */
	}
	if (r < 0) {
		log_line(log, LOG_ERR, "%s: can't listen: %s", address_format(address, name),
			 strerror(-r));
	}
	return r;
}

int socket_tcp_open(struct log *log, const struct address *address,
		    struct socket_tcp all[SOCKET_TCP_MAX], size_t *ret_n)
{
	return open_all(log, address, SOCK_STREAM, all, ret_n);
}

int socket_udp_open(struct log *log, const struct address *address,
		    struct socket_tcp all[SOCKET_TCP_MAX], size_t *ret_n)
{
	return open_all(log, address, SOCK_DGRAM, all, ret_n);
}

int socket_udp_again(int fd, int *ret_fd)
{
	_cleanup_close_ int again = -1;
	struct sockaddr_storage at = { 0 };
	socklen_t len = sizeof(at), size = sizeof(int);
	int on = 1, v6_only = 0;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) != 0) {
		return -errno;
	}
	again = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (again < 0) {
		return -errno;
	}
	(void)setsockopt(again, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (at.ss_family == AF_INET6 &&
	    getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, &size) == 0) {
		(void)setsockopt(again, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
	}
	enlarge_buffer(again);
	if (bind(again, (const struct sockaddr *)&at, len) != 0) {
		return -errno;
	}
	*ret_fd = again;
	again = -1;
	return 0;
}
