/*
 * chatter SOCKET PORT MILLISECONDS - a StatsD line each to a unix datagram socket and to a UDP port of 127.0.0.1, again and again, over two
 * sockets that are connected once. Prints how many of each it has sent. Exit status 1 if a line could not be sent.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void must(int result, const char *what)
{
	if (result < 0) {
		(void)fprintf(stderr, "%s: %s\n", what, strerror(errno));
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_un path = { .sun_family = AF_UNIX };
	struct sockaddr_in port = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timespec pause = { .tv_nsec = 1000000 };
	int by_path = socket(AF_UNIX, SOCK_DGRAM, 0), by_port = socket(AF_INET, SOCK_DGRAM, 0);
	int64_t until_ms;
	unsigned n = 0;

	if (argc != 4) {
		(void)fprintf(stderr, "usage: chatter SOCKET PORT MILLISECONDS\n");
		return 2;
	}
	(void)snprintf(path.sun_path, sizeof(path.sun_path), "%s", argv[1]);
	port.sin_port = htons((uint16_t)strtoul(argv[2], NULL, 10));
	must(connect(by_path, (struct sockaddr *)&path, sizeof(path)), "connect to the path");
	must(connect(by_port, (struct sockaddr *)&port, sizeof(port)), "connect to the port");
	for (until_ms = now_ms() + strtol(argv[3], NULL, 10); now_ms() < until_ms; n++) {
		/* Ten datagrams fit the unix socket; it waits then. */
		must((int)send(by_path, "chat.path:1|c", 13, 0), "send to the path");
		must((int)send(by_port, "chat.port:1|c", 13, 0), "send to the port");
		(void)nanosleep(&pause, NULL);
	}
	(void)printf("%u\n", n);
	return 0;
}
