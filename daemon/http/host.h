#pragma once
/*
 * host: whom a request says it is for.
 *
 * A web page may call itself evil.example and have that name lead to 127.0.0.1: then the browser of somebody on this machine reads for the
 * page what only this machine may read, for both have the same name (DNS rebinding). The browser says that name in Host; so a
 * connection over a loopback address is answered only if it was asked for by an address, or by a name that no such page can have.
 *
 * Pure functions, any thread.
 */
#include <stdbool.h>

struct sockaddr;

/* 127.0.0.0/8 or ::1, IPv4 within IPv6 too. */
bool host_is_loopback(const struct sockaddr *address);

/*
 * Without its port: an address; localhost or what ends in .localhost; a name of one part, which this machine or network alone knows. NULL
 * and "" (HTTP/1.0 has no Host) are no browser's.
 */
bool host_is_near(const char *host);
