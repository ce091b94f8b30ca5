#pragma once
/*
 * socket_tcp: listening TCP sockets of one address, which can be several: localhost is 127.0.0.1 and ::1.
 *
 * Thread safety: none needed, the main thread alone.
 */
#include "daemon/address.h"

#include <stddef.h>

#define SOCKET_TCP_MAX 16u /* of one address */

struct log;

struct socket_tcp {
	int fd;
	char name[ADDRESS_MAX_TEXT]; /* with the port that the kernel chose, if it was to */
};

/* *ret_n of them, whose descriptors are the caller's to close. Errors are logged; 0 or a negative errno, and then there are none. */
int socket_tcp_open(struct log *log, const struct address *address,
		    struct socket_tcp all[SOCKET_TCP_MAX], size_t *ret_n);
