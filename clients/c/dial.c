#include "clients/c/dial.h"

#include "clients/c/error.h"
#include "lib/base/cleanup.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define DIAL_KEEP_IDLE_S 10
#define DIAL_KEEP_INTERVAL_S 5
#define DIAL_KEEP_COUNT 2
#define DIAL_USER_TIMEOUT_MS 20000

static int parse_unix(const char *path, struct dial_address *ret_address)
{
	size_t len = strlen(path);

	if (len == 0 || len >= sizeof(ret_address->path)) {
		return error_set(-EINVAL, "\"unix:%s\": a socket's path has 1 to %zu bytes", path,
				 sizeof(ret_address->path) - 1);
	}
	*ret_address = (struct dial_address){ .is_unix = true };
	memcpy(ret_address->path, path, len);
	return 0;
}

/* 1 to 65535, digits alone. */
static bool port_is_good(const char *port)
{
	size_t digits = strspn(port, "0123456789");
	long number = 0;

	if (digits == 0 || digits > 5 || port[digits] != '\0') {
		return false;
	}
	for (size_t i = 0; i < digits; i++) {
		number = number * 10 + (port[i] - '0');
	}
	return number >= 1 && number <= 65535;
}

static int parse_tcp(const char *rest, struct dial_address *ret_address)
{
	const char *host = rest, *host_end, *colon;
	size_t host_len;

	if (*host == '[') {
		host++;
		host_end = strchr(host, ']');
		colon = host_end == NULL ? NULL : host_end + 1;
	} else {
		host_end = colon = strrchr(host, ':');
	}
	host_len = host_end == NULL ? 0 : (size_t)(host_end - host);
	if (host_len == 0 || host_len >= DIAL_MAX_HOST || *colon != ':' ||
	    !port_is_good(colon + 1) || (*rest != '[' && memchr(host, ':', host_len) != NULL)) {
		return error_set(-EINVAL,
				 "\"tcp:%s\": expected tcp:HOST:PORT or tcp:[ADDRESS]:PORT", rest);
	}
	*ret_address = (struct dial_address){ .is_unix = false };
	memcpy(ret_address->host, host, host_len);
	memcpy(ret_address->port, colon + 1, strlen(colon + 1));
	return 0;
}

int dial_parse(const char *url, struct dial_address *ret_address)
{
	struct dial_address address = { 0 };
	int r;

	if (strncmp(url, "unix:", 5) == 0) {
		r = parse_unix(url + 5, &address);
	} else if (strncmp(url, "tcp:", 4) == 0) {
		r = parse_tcp(url + 4, &address);
	} else {
		r = error_set(-EINVAL, "\"%s\": expected unix:PATH or tcp:HOST:PORT", url);
	}
	if (r < 0) {
		return r;
	}
	/* What was parsed fits. */
	(void)snprintf(address.url, sizeof(address.url), "%s", url);
	*ret_address = address;
	return 0;
}

static int errno_of_resolver(int code)
{
	switch (code) {
	case EAI_SYSTEM:
		return -errno;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_AGAIN:
		return -EAGAIN;
	default:
		return -EHOSTUNREACH;
	}
}

int dial_begin(struct dial *dial, const struct dial_address *address)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV };
	int r;

	*dial = (struct dial){ .address = address };
	if (address->is_unix) {
		return 0;
	}
	hints.ai_flags |= AI_NUMERICHOST;
	r = getaddrinfo(address->host, address->port, &hints, &dial->list);
	if (r == EAI_NONAME) {
		hints.ai_flags &= ~AI_NUMERICHOST;
		r = getaddrinfo(address->host, address->port, &hints, &dial->list);
	}
	if (r != 0) {
		dial->list = NULL;
		return error_set(errno_of_resolver(r), "%s", gai_strerror(r));
	}
	dial->next = dial->list;
	return 0;
}

/* Hints about liveness; a connection without them works too, so failures are ignored. */
static void set_tcp_options(int fd)
{
	const struct {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, DIAL_KEEP_IDLE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, DIAL_KEEP_INTERVAL_S },
		{ IPPROTO_TCP, TCP_KEEPCNT, DIAL_KEEP_COUNT },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, DIAL_USER_TIMEOUT_MS },
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		(void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
				 sizeof(int));
	}
}

static int start(int family, const struct sockaddr *address, socklen_t len, int *ret_fd)
{
	_cleanup_close_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0) {
		return -errno;
	}
	if (family != AF_UNIX) {
		set_tcp_options(fd);
	}
	if (connect(fd, address, len) < 0 && errno != EINPROGRESS && errno != EINTR) {
		return -errno;
	}
	*ret_fd = fd;
	fd = -1;
	return 0;
}

int dial_next(struct dial *dial, int *ret_fd)
{
	int r = -ECONNREFUSED;

	if (dial->address->is_unix) {
		struct sockaddr_un address = { .sun_family = AF_UNIX };

		if (dial->tried) {
			return -ECONNREFUSED;
		}
		dial->tried = true;
		memcpy(address.sun_path, dial->address->path, sizeof(address.sun_path));
		return start(AF_UNIX, (const struct sockaddr *)&address, sizeof(address), ret_fd);
	}
	while (dial->next != NULL) {
		struct addrinfo *one = dial->next;

		dial->next = one->ai_next;
		r = start(one->ai_family, one->ai_addr, one->ai_addrlen, ret_fd);
		if (r == 0) {
			return 0;
		}
	}
	return r;
}

int dial_check(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0) {
		return -errno;
	}
	return -error;
}

void dial_end(struct dial *dial)
{
	if (dial->list != NULL) {
		freeaddrinfo(dial->list);
	}
	dial->list = dial->next = NULL;
}
