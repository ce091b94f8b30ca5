#include "daemon/address.h"

#include "lib/base/number.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static enum address_error parse_unix(const char *path, struct address *address)
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
	address->scheme = ADDRESS_UNIX;
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
	    memchr(host, ']', len) != NULL) {
		return ADDRESS_E_HOST;
	}
	memcpy(address->host, host, len);
	address->host[len] = '\0';
	return ADDRESS_OK;
}

static enum address_error parse_tcp(const char *text, struct address *address)
{
	const char *colon = strrchr(text, ':');
	uint64_t port;

	if (colon == NULL || (strchr(colon, ']') != NULL)) {
		return ADDRESS_E_NO_PORT;
	}
	if (number_parse_unsigned(colon + 1, strlen(colon + 1), 0, 65535, &port) != NUMBER_OK) {
		return ADDRESS_E_PORT;
	}
	address->scheme = ADDRESS_TCP;
	address->port = (unsigned)port;
	return parse_host(text, (size_t)(colon - text), address);
}

enum address_error address_parse(const char *text, struct address *ret_address)
{
	struct address address = { 0 };
	enum address_error r = ADDRESS_E_SCHEME;

	if (strncmp(text, "unix:", 5) == 0) {
		r = parse_unix(text + 5, &address);
	} else if (strncmp(text, "tcp:", 4) == 0) {
		r = parse_tcp(text + 4, &address);
	}
	if (r == ADDRESS_OK) {
		*ret_address = address;
	}
	return r;
}

const char *address_error_text(enum address_error error)
{
	switch (error) {
	case ADDRESS_OK:
		return "is an address";
	case ADDRESS_E_SCHEME:
		return "is not an address to listen on; expected unix:PATH or tcp:HOST:PORT";
	case ADDRESS_E_PATH_EMPTY:
		return "has no path; expected unix:PATH, such as " ADDRESS_DEFAULT;
	case ADDRESS_E_PATH_RELATIVE:
		return "is not an absolute path; expected unix: and a path that begins with /";
	case ADDRESS_E_PATH_LONG:
		return "is too long; the path of a socket has at most 107 bytes";
	case ADDRESS_E_NO_PORT:
		return "has no port; expected tcp:HOST:PORT, such as tcp:localhost:7311";
	case ADDRESS_E_PORT:
		return "has no valid port; expected a number from 0 to 65535 after the last colon";
	case ADDRESS_E_HOST:
		return "has no valid host; expected a name, an IPv4 address, an IPv6 address in brackets, or * for all";
	}
	return "is not an address";
}

const char *address_format(const struct address *address, char *text)
{
	if (address->scheme == ADDRESS_UNIX) {
		(void)snprintf(text, ADDRESS_MAX_TEXT, "unix:%s", address->host);
	} else if (strchr(address->host, ':') != NULL) {
		(void)snprintf(text, ADDRESS_MAX_TEXT, "tcp:[%s]:%u", address->host, address->port);
	} else {
		(void)snprintf(text, ADDRESS_MAX_TEXT, "tcp:%s:%u", address->host, address->port);
	}
	return text;
}

bool address_equal(const struct address *a, const struct address *b)
{
	return a->scheme == b->scheme && a->port == b->port && strcmp(a->host, b->host) == 0;
}
