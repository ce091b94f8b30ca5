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

/* What it is called, behind the scheme, now that the kernel may have chosen a port. */
static void name_of(int fd, char *name)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	size_t scheme = strcspn(name, ":") + 1;
	char host[64], port[16];

	if (getsockname(fd, (struct sockaddr *)&at, &len) == 0 &&
	    getnameinfo((struct sockaddr *)&at, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
		(void)snprintf(name + scheme, ADDRESS_MAX_TEXT - scheme,
			       strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
	}
}

static int bind_tcp(const struct addrinfo *to, bool any, int *ret_fd)
{
	_cleanup_close_ int fd =
		socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, v6_only = !any;

	if (fd < 0) {
		return -errno;
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* * is both families; an address of one family is that one, so that 0.0.0.0 and [::] can have the same port. */
	if (to->ai_family == AF_INET6) {
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
	}
	if (bind(fd, to->ai_addr, to->ai_addrlen) != 0 || listen(fd, LISTENER_BACKLOG) != 0) {
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
static int open_each(const struct addrinfo *to, bool any, const char *name, struct socket_tcp *all,
		     size_t *ret_n)
{
	size_t n = 0;

	for (; to != NULL && n < SOCKET_TCP_MAX; to = to->ai_next) {
		int r = bind_tcp(to, any, &all[n].fd);

		if (r == 0) {
			(void)snprintf(all[n].name, sizeof(all[n].name), "%s", name);
			name_of(all[n].fd, all[n].name);
			n++;
		} else if (r != -EADDRNOTAVAIL && r != -EAFNOSUPPORT) {
			close_all(all, n);
			return r;
		}
	}
	*ret_n = n;
	return n > 0 ? 0 : -EADDRNOTAVAIL;
}

static int open_host(struct log *log, const char *host, bool any, const char *port,
		     const char *name, struct socket_tcp *all, size_t *ret_n)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
	};
	struct addrinfo *found = NULL;
	int r = getaddrinfo(host, port, &hints, &found);

	if (r != 0) {
		log_line(log, LOG_ERR, "%s: can't find the host: %s", name, gai_strerror(r));
		return -EADDRNOTAVAIL;
	}
	r = open_each(found, any, name, all, ret_n);
	freeaddrinfo(found);
	return r;
}

int socket_tcp_open(struct log *log, const struct address *address,
		    struct socket_tcp all[SOCKET_TCP_MAX], size_t *ret_n)
{
	bool any = strcmp(address->host, "*") == 0;
	char name[ADDRESS_MAX_TEXT], port[8];
	int r;

	(void)address_format(address, name);
	(void)snprintf(port, sizeof(port), "%u", address->port);
	r = open_host(log, any ? "::" : address->host, any, port, name, all, ret_n);
	if (any && r < 0 && r != -EADDRINUSE) {
		r = open_host(log, "0.0.0.0", any, port, name, all, ret_n); /* no IPv6 here */
	}
	if (r < 0) {
		log_line(log, LOG_ERR, "%s: can't listen: %s", name, strerror(-r));
	}
	return r;
}
