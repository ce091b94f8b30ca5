#pragma once
/*
 * socket_tcp: listening TCP sockets of one address, which can be several: localhost is 127.0.0.1 and ::1. And UDP sockets, of which each
 * of these can have several, so that as many threads read.
 *
 * Thread safety: none needed, the main thread alone.
 */
#include "daemon/address.h"

#include <stddef.h>

#define SOCKET_TCP_MAX 16u /* of one address */
#define SOCKET_UDP_BUFFER \
	(8 << 20) /* bytes of datagrams that may wait, where the system allows that */

struct log;

struct socket_tcp {
	int fd;
	char name[ADDRESS_MAX_TEXT]; /* with the port that the kernel chose, if it was to */
};

/* *ret_n of them, whose descriptors are the caller's to close. Errors are logged; 0 or a negative errno, and then there are none. */
int socket_tcp_open(struct log *log, const struct address *address,
		    struct socket_tcp all[SOCKET_TCP_MAX], size_t *ret_n);

/* What the scheme's prefix and the address that it is bound to make together, into name[ADDRESS_MAX_TEXT]. */
void socket_tcp_name(int fd, const char *prefix, char *name);

/* The same for UDP: one socket for each. */
int socket_udp_open(struct log *log, const struct address *address,
		    struct socket_tcp all[SOCKET_TCP_MAX], size_t *ret_n);
/*
 * Another socket at the address of this one; the kernel spreads senders over all of them. Only from the first such call on can others
 * of our user listen there too, so that two daemons don't share a port unawares. 0 or a negative errno.
 */
int socket_udp_again(int fd, int *ret_fd);
