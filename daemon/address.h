#pragma once
/*
 * address: where to listen, as text and taken apart.
 *
 *	unix:PATH		a stream socket at an absolute path
 *	tcp:HOST:PORT		HOST is a name, an IPv4 address, an IPv6 address in brackets, or * for all of both families;
 *				PORT is 0 .. 65535, 0 lets the kernel choose
 *	statsd+unix:PATH	StatsD lines, in datagrams
 *	statsd+udp:HOST:PORT	the same
 *	statsd+tcp:HOST:PORT	the same, in a stream
 *	http:HOST:PORT		what is counted, to read: for Prometheus, and as JSON
 *	http:PORT		the same, on localhost
 *
 * Pure: no socket is touched, no name looked up.
 */
#include <stdbool.h>
#include <stddef.h>

#define ADDRESS_MAX_UNIX 107u /* bytes of a path in sockaddr_un */
#define ADDRESS_MAX_HOST 255u
#define ADDRESS_MAX_TEXT 320u
#define ADDRESS_DEFAULT "unix:/run/rationd/rationd.sock"

enum address_error {
	ADDRESS_OK = 0,
	ADDRESS_E_SCHEME,	 /* none of these */
	ADDRESS_E_PATH_EMPTY,	 /* unix: without a path */
	ADDRESS_E_PATH_RELATIVE, /* unix: and no absolute path */
	ADDRESS_E_PATH_LONG,	 /* more than ADDRESS_MAX_UNIX bytes */
	ADDRESS_E_NO_PORT,	 /* a host without :PORT */
	ADDRESS_E_PORT,		 /* not a number of 0 .. 65535 */
	ADDRESS_E_HOST,		 /* empty, too long, or an IPv6 address without brackets */
};

enum address_scheme {
	ADDRESS_UNIX,
	ADDRESS_TCP,
	ADDRESS_STATSD_UNIX,
	ADDRESS_STATSD_UDP,
	ADDRESS_STATSD_TCP,
	ADDRESS_HTTP,
};

struct address {
	enum address_scheme scheme;
	char host[ADDRESS_MAX_HOST + 1]; /* the path; or the host without brackets, "*" for all */
	unsigned port;
};

/* Is it a path? Else it is a host and a port. */
bool address_is_path(enum address_scheme scheme);
/* What its text begins with, the colon included. */
const char *address_prefix(enum address_scheme scheme);

enum address_error address_parse(const char *text, struct address *ret_address);

/* What was wrong and what would be right, to stand after the offending text and a colon. */
const char *address_error_text(enum address_error error);

/* As address_parse reads it; writes to text[ADDRESS_MAX_TEXT] and returns it. */
const char *address_format(const struct address *address, char *text);

bool address_equal(const struct address *a, const struct address *b);
