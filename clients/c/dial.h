#pragma once
/*
 * dial: where the daemon is, and a connection to it.
 *
 * Sockets are close-on-exec and never block. A TCP peer that has vanished without a word is given up after about 20 s.
 *
 * Thread safety: a struct dial belongs to one thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#define DIAL_MAX_HOST 256u

struct dial_address {
	char url[DIAL_MAX_HOST + 16]; /* as it was given, for people */
	bool is_unix;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char host[DIAL_MAX_HOST];
	char port[6];
};

/* "unix:PATH", "tcp:HOST:PORT" or "tcp:[ADDRESS]:PORT". 0, or -EINVAL with the error text set. */
int dial_parse(const char *url, struct dial_address *ret_address);

struct addrinfo;

/* One attempt to reach an address, which may have several addresses behind its name. */
struct dial {
	const struct dial_address *address;
	struct addrinfo *list, *next;
	bool tried;
};

/*
 * Look the name up; that may block for as long as the resolver takes, if the host is not a number. 0, or a negative errno with
 * the error text set. dial_end must follow in either case.
 */
int dial_begin(struct dial *dial, const struct dial_address *address);

/*
 * Start a connection to the next of the addresses: *ret_fd (the caller's) is connected, or will be when it is writable and
 * dial_check has no complaint. Negative errno: all were tried, and this is what happened to the last one.
 */
int dial_next(struct dial *dial, int *ret_fd);

/* What became of a connection, once its socket is writable: 0 or a negative errno. */
int dial_check(int fd);

void dial_end(struct dial *dial);
