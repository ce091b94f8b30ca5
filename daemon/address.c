#include "daemon/address.h"

#include "lib/base/number.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *prefix;
	bool is_path;
} schemes[] = {
	[ADDRESS_UNIX] = { "unix:", true },
	[ADDRESS_TCP] = { "tcp:", false },
	[ADDRESS_STATSD_UNIX] = { "statsd+unix:", true },
	[ADDRESS_STATSD_UDP] = { "statsd+udp:", false },
	[ADDRESS_STATSD_TCP] = { "statsd+tcp:", false },
	[ADDRESS_HTTP] = { "http:", false },
};

#define N_SCHEMES (sizeof(schemes) / sizeof(schemes[0]))

bool address_is_path(enum address_scheme scheme)
{
	return schemes[scheme].is_path;
}

const char *address_prefix(enum address_scheme scheme)
{
	return schemes[scheme].prefix;
}

static enum address_error parse_path(const char *path, struct address *address)
{
	size_t len = strlen(path);

	if (len == 0) {
		return ADDRESS_E_PATH_EMPTY;
	}
	if (path[0] != '/') {
		return ADDRESS_E_PATH_RELATIVE;
	}
	if (len > ADDRESS_MAX_UNIX) {
		return ADDRESS_E_PATH_LONG;
	}
	memcpy(address->host, path, len + 1);
	return ADDRESS_OK;
}

static enum address_error parse_host(const char *host, size_t len, struct address *address)
{
	if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	} else if (memchr(host, ':', len) != NULL) {
		return ADDRESS_E_HOST;
	}
	if (len == 0 || len > ADDRESS_MAX_HOST || memchr(host, '[', len) != NULL ||
	    memchr(host, ']', len) != NULL || memchr(host, '/', len) != NULL) {
		return ADDRESS_E_HOST;
	}
	memcpy(address->host, host, len);
	address->host[len] = '\0';
	return ADDRESS_OK;
}

static enum address_error parse_port(const char *text, struct address *address)
{
	uint64_t port;

	if (number_parse_unsigned(text, strlen(text), 0, 65535, &port) != NUMBER_OK) {
		return ADDRESS_E_PORT;
	}
	address->port = (unsigned)port;
	return ADDRESS_OK;
}

static enum address_error parse_host_port(const char *text, struct address *address)
{
	const char *colon = strrchr(text, ':');
	enum address_error r;

	if (colon == NULL && address->scheme == ADDRESS_HTTP) {
		memcpy(address->host, "localhost", sizeof("localhost"));
		return parse_port(text, address);
	}
	if (colon == NULL || (strchr(colon, ']') != NULL)) {
		return ADDRESS_E_NO_PORT;
	}
	r = parse_port(colon + 1, address);
	return r == ADDRESS_OK ? parse_host(text, (size_t)(colon - text), address) : r;
}

enum address_error address_parse(const char *text, struct address *ret_address)
{
	for (size_t i = 0; i < N_SCHEMES; i++) {
		struct address address = { .scheme = (enum address_scheme)i };
		size_t len = strlen(schemes[i].prefix);
		enum address_error r;

		if (strncmp(text, schemes[i].prefix, len) != 0) {
			continue;
		}
		r = schemes[i].is_path ? parse_path(text + len, &address)
				       : parse_host_port(text + len, &address);
		if (r == ADDRESS_OK) {
			*ret_address = address;
		}
		return r;
	}
	return ADDRESS_E_SCHEME;
}

const char *address_error_text(enum address_error error)
{
	switch (error) {
	case ADDRESS_OK:
		return "is an address";
	case ADDRESS_E_SCHEME:
		return "is not an address to listen on; expected unix:PATH, tcp:HOST:PORT, statsd+udp:HOST:PORT, "
		       "statsd+tcp:HOST:PORT, statsd+unix:PATH or http:HOST:PORT";
	case ADDRESS_E_PATH_EMPTY:
		return "has no path; expected unix:PATH, such as " ADDRESS_DEFAULT;
	case ADDRESS_E_PATH_RELATIVE:
		return "is not an absolute path; expected a path that begins with / after unix:";
	case ADDRESS_E_PATH_LONG:
		return "is too long; the path of a socket has at most 107 bytes";
	case ADDRESS_E_NO_PORT:
		return "has no port; expected HOST:PORT, as in tcp:localhost:7311";
	case ADDRESS_E_PORT:
		return "has no valid port; expected a number from 0 to 65535 after the last colon";
	case ADDRESS_E_HOST:
		return "has no valid host; expected a name, an IPv4 address, an IPv6 address in brackets, or * for all";
	}
	return "is not an address";
}

const char *address_format(const struct address *address, char *text)
{
	const char *prefix = address_prefix(address->scheme);

	if (address_is_path(address->scheme)) {
		(void)snprintf(text, ADDRESS_MAX_TEXT, "%s%s", prefix, address->host);
	} else {
		bool v6 = strchr(address->host, ':') != NULL;

		(void)snprintf(text, ADDRESS_MAX_TEXT, v6 ? "%s[%s]:%u" : "%s%s:%u", prefix,
			       address->host, address->port);
	}
	return text;
}

bool address_equal(const struct address *a, const struct address *b)
{
	return a->scheme == b->scheme && a->port == b->port && strcmp(a->host, b->host) == 0;
}
