#include "daemon/http/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#define HOST_MAX_NAME 255u

static bool is_loopback_v4(const void *bytes)
{
	return *(const unsigned char *)bytes == 127;
}

bool host_is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET) {
		return is_loopback_v4(
			&((const struct sockaddr_in *)(const void *)address)->sin_addr);
	}
	if (address->sa_family == AF_INET6) {
		const struct in6_addr *in6 =
			&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;

		return IN6_IS_ADDR_LOOPBACK(in6) ||
		       (IN6_IS_ADDR_V4MAPPED(in6) && is_loopback_v4(&in6->s6_addr[12]));
	}
	return false;
}

/* "127.0.0.1", "[::1]" or "::1". */
static bool is_address(char *name, size_t len)
{
	struct in6_addr address;

	if (len > 2 && name[0] == '[' && name[len - 1] == ']') {
		name[len - 1] = '\0';
		return inet_pton(AF_INET6, name + 1, &address) == 1;
	}
	return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

bool host_is_near(const char *host)
{
	static const char tail[] = ".localhost";
	const size_t tail_len = sizeof(tail) - 1;
	size_t len = host != NULL ? strlen(host) : 0;
	char name[HOST_MAX_NAME + 1];

	if (len == 0) {
		return true;
	}
	if (len > HOST_MAX_NAME) {
		return false;
	}
	memcpy(name, host, len + 1);
	/* "localhost." is the same name. */
	if (name[len - 1] == '.') {
		name[--len] = '\0';
	}
	return strpbrk(name, ".:") == NULL ||
	       (len > tail_len && strcasecmp(name + len - tail_len, tail) == 0) ||
	       is_address(name, len);
}
