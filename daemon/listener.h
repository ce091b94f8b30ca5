#pragma once
/*
 * listener: sockets that accept, ours or passed by systemd.
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

struct event;
struct event_base;
struct log;

struct listener {
	int fd;
	enum address_scheme scheme;	/* what is spoken there; of a passed one, by its name */
	char name[ADDRESS_MAX_TEXT];	/* as an address */
	struct event *event;		/* NULL: another thread accepts there */
	struct socket_unix unix_socket; /* if it is one of ours */
};

struct listeners {
	struct log *log;
	struct listener *all;
	size_t n;
	int spare_fd; /* given up to accept and refuse when there are no more file descriptors */
	struct event *pause; /* sets the events again after that */
	/* What to do with each connection: takes over the fd. */
	void (*accepted)(void *ctx, int fd, const char *peer);
	void *ctx;
};

/* `accepted` is called from the loop once listeners_start was. 0 or a negative errno. */
int listeners_init(struct listeners *listeners, struct log *log,
		   void (*accepted)(void *ctx, int fd, const char *peer), void *ctx);
/* Closes all, removes our socket files. Accepts what was zeroed and never initialised. */
void listeners_deinit(struct listeners *listeners);

/* Sockets that systemd passed. Errors are logged; 0 or a negative errno. */
int listeners_adopt(struct listeners *listeners);
/* Errors are logged; 0 or a negative errno. */
int listeners_open(struct listeners *listeners, const struct address *address, mode_t mode);

/* Is there one for this? */
bool listeners_have(const struct listeners *listeners, enum address_scheme scheme);

/* Accept where rationd's own protocol is spoken; who speaks another one accepts from these sockets itself. */
int listeners_start(struct listeners *listeners, struct event_base *base);
/* Stop accepting. */
void listeners_stop(struct listeners *listeners);
