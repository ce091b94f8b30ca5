#pragma once
/*
 * listener: sockets that accept, ours or passed by systemd; and those for datagrams, which are handed on to whoever reads them.
 *
 * Thread safety: the main thread alone.
 */
#include "daemon/address.h"
#include "daemon/socket-tcp.h"
#include "daemon/socket-unix.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LISTENERS_MAX 256u /* sockets; an address can have several */
#define LISTENER_BACKLOG 1024
#define LISTENER_MAX_READERS 64u

struct event;
struct event_base;
struct log;

struct listener {
	struct listeners *listeners;	/* whose it is */
	int fd;				/* -1: handed on, as those for datagrams are */
	enum address_scheme scheme;	/* what is spoken there; of a passed one, by its name */
	char name[ADDRESS_MAX_TEXT];	/* as an address */
	struct event *event;		/* NULL: not accepted from here */
	struct socket_unix unix_socket; /* if it is one of ours */
};

struct listeners {
	struct log *log;
	struct listener *all;
	size_t n;
	int spare_fd; /* given up to accept and refuse when there are no more file descriptors */
	struct event *pause; /* sets the events again after that */
	const struct listener_uses *uses;
	void *ctx;
};

/* What to do with what comes: each takes over the fd. */
struct listener_uses {
	unsigned n_readers; /* sockets that a UDP address gets */
	/* A connection. */
	void (*accepted)(void *ctx, enum address_scheme scheme, int fd, const char *peer);
	/* A socket for datagrams, at `name`. 0 or a negative errno. */
	int (*datagrams)(void *ctx, int fd, const char *name);
};

/*
 * `accepted` is called from the loop once listeners_start was, `datagrams` from listeners_adopt and listeners_open. 0 or a negative errno.
 */
int listeners_init(struct listeners *listeners, struct log *log, const struct listener_uses *uses,
		   void *ctx);
/* Closes all, removes our socket files. Accepts what was zeroed and never initialised. */
void listeners_deinit(struct listeners *listeners);

/* Sockets that systemd passed. Errors are logged; 0 or a negative errno. */
int listeners_adopt(struct listeners *listeners);
/* Errors are logged; 0 or a negative errno. */
int listeners_open(struct listeners *listeners, const struct address *address, mode_t mode);

/* Is there one for this? */
bool listeners_have(const struct listeners *listeners, enum address_scheme scheme);

/* Accept, but for HTTP: that has a thread of its own, which accepts from these sockets itself. */
int listeners_start(struct listeners *listeners, struct event_base *base);
/* Stop accepting. */
void listeners_stop(struct listeners *listeners);
