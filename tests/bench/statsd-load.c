#include "tests/bench/statsd-load.h"

#include "tests/bench/report.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NAME_BYTES 64u
#define AT_ONCE 64u /* datagrams of one call */
#define PIECES 4096u
#define PATIENCE_MS 30000

/* ---- making ---- */

size_t load_name(unsigned number, char *text, size_t size)
{
	return (size_t)snprintf(text, size, "service.api.requests.endpoint_%07u", number);
}

/* Numbers 0 .. n - 1, each once in n calls: steps of a size that has no divisor in common with n. */
static unsigned scatter(unsigned i, unsigned n)
{
	return (unsigned)((uint64_t)i % n * 7919 % n);
}

static size_t append_piece(struct load *load, size_t at, unsigned first, unsigned n, bool in_order)
{
	for (unsigned i = first; i < first + n; i++) {
		unsigned number = in_order ? i : scatter(i, load->shape.n_names);

		at += load_name(number, load->bytes + at, NAME_BYTES);
		memcpy(load->bytes + at, ":1|c\n", 5);
		at += 5;
	}
	/* The last line of a datagram needs no end. */
	return load->shape.stream ? at : at - 1;
}

void load_init(struct load *load, const struct load_shape *shape, bool in_order)
{
	unsigned pieces = in_order || shape->n_names > PIECES * shape->lines
				  ? shape->n_names / shape->lines
				  : PIECES;

	*load = (struct load){ .shape = *shape, .n = pieces };
	load->bytes = malloc((size_t)pieces * shape->lines * NAME_BYTES + 8);
	load->at = malloc((pieces + 1) * sizeof(*load->at));
	report_require(load->bytes != NULL && load->at != NULL, "no memory");
	load->at[0] = 0;
	for (unsigned i = 0; i < pieces; i++) {
		load->at[i + 1] =
			append_piece(load, load->at[i], i * shape->lines, shape->lines, in_order);
	}
}

void load_deinit(struct load *load)
{
	free(load->bytes);
	free(load->at);
}

/* ---- sending ---- */

static void send_datagrams(const struct load *load, int fd, size_t first, size_t n)
{
	struct mmsghdr messages[AT_ONCE] = { 0 };
	struct iovec parts[AT_ONCE];

	for (size_t i = 0; i < n; i++) {
		size_t piece = (first + i) % load->n;

		parts[i] = (struct iovec){ .iov_base = load->bytes + load->at[piece],
					   .iov_len = load->at[piece + 1] - load->at[piece] };
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	report_require(sendmmsg(fd, messages, (unsigned)n, 0) == (int)n, "sendmmsg: %s",
		       strerror(errno));
}

static void send_piece(const struct load *load, int fd, size_t piece)
{
	const char *at = load->bytes + load->at[piece];
	size_t left = load->at[piece + 1] - load->at[piece];

	while (left > 0) {
		ssize_t sent = send(fd, at, left, MSG_NOSIGNAL);

		report_require(sent > 0, "send: %s", strerror(errno));
		at += sent;
		left -= (size_t)sent;
	}
}

/* As many as are due by now, in bursts of what a millisecond brings. */
static size_t wait_for_turn(double began, size_t sent, double per_second)
{
	double due = (report_wall_seconds() - began) * per_second;

	if (due < (double)sent + 1) {
		const struct timespec pause = { .tv_nsec = 500000 };

		(void)nanosleep(&pause, NULL);
		return 0;
	}
	return (size_t)(due - (double)sent);
}

uint64_t load_send(const struct load *load, int fd, size_t first, size_t n, double per_second)
{
	double began = report_wall_seconds();
	size_t sent = 0;

	while (sent < n) {
		size_t now = load->shape.stream ? 1 : AT_ONCE;

		if (per_second > 0) {
			size_t due = wait_for_turn(began, sent, per_second);

			now = due < now ? due : now;
		}
		now = now < n - sent ? now : n - sent;
		if (load->shape.stream) {
			send_piece(load, fd, (first + sent) % load->n);
		} else if (now > 0) {
			send_datagrams(load, fd, first + sent, now);
		}
		sent += now;
	}
	return (uint64_t)n * load->shape.lines;
}

/* ---- sockets ---- */

static struct sockaddr_in loopback(unsigned port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

int load_connect(unsigned port, bool stream)
{
	struct sockaddr_in to = loopback(port);
	int fd = socket(AF_INET, (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);

	report_require(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0,
		       "connect to port %u: %s", port, strerror(errno));
	return fd;
}

static bool is_free(unsigned port)
{
	struct sockaddr_in at = loopback(port);
	int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool both = bind(tcp, (struct sockaddr *)&at, sizeof(at)) == 0 &&
		    bind(udp, (struct sockaddr *)&at, sizeof(at)) == 0;

	(void)close(tcp);
	(void)close(udp);
	return both;
}

unsigned load_free_port(void)
{
	for (unsigned i = 0; i < 1000; i++) {
		unsigned port = 20000 + (unsigned)getpid() % 5000 * 2 + i * 2;

		if (is_free(port) && is_free(port + 1)) {
			return port;
		}
	}
	report_require(false, "no free port");
	return 0;
}

/* The n-th word of a line, from 0; "" if there are not so many. */
static const char *word(const char *line, unsigned n)
{
	line += strspn(line, " ");
	while (n-- > 0) {
		line += strcspn(line, " ");
		line += strspn(line, " ");
	}
	return line;
}

/* What follows the colon in it, in hexadecimal. */
static uint64_t behind_colon(const char *text)
{
	const char *colon = strchr(text, ':');

	return colon != NULL ? strtoull(colon + 1, NULL, 16) : 0;
}

void load_udp_queue(unsigned port, uint64_t *ret_waiting, uint64_t *ret_dropped)
{
	FILE *file = fopen("/proc/net/udp", "re");
	char line[256];

	*ret_waiting = *ret_dropped = 0;
	report_require(file != NULL, "/proc/net/udp: %s", strerror(errno));
	while (fgets(line, sizeof(line), file) != NULL) {
		/* sl local:port remote:port st tx:rx tr:when retrnsmt uid timeout inode ref pointer drops */
		if (behind_colon(word(line, 1)) == port) {
			*ret_waiting += behind_colon(word(line, 4));
			*ret_dropped += strtoull(word(line, 12), NULL, 10);
		}
	}
	(void)fclose(file);
}

void load_udp_drain(unsigned port)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	uint64_t waiting = 1, dropped;

	for (int waited = 0; waiting > 0 && waited < PATIENCE_MS; waited += 2) {
		load_udp_queue(port, &waiting, &dropped);
		(void)nanosleep(&pause, NULL);
	}
	report_require(waiting == 0, "a server does not read its socket");
}

void load_stream_end(int fd)
{
	char byte;

	(void)shutdown(fd, SHUT_WR);
	report_require(recv(fd, &byte, 1, 0) == 0, "a server did not close");
	(void)close(fd);
}

/* ---- netdata ---- */

uint64_t load_netdata_counted(unsigned port)
{
	static const char ask[] =
		"GET /api/v1/allmetrics?format=prometheus&source=raw&help=no HTTP/1.0\r\n\r\n";
	static const char before[] =
		"netdata_netdata_statsd_events_total{chart=\"netdata.statsd_events\","
		"family=\"statsd\",dimension=\"counters\"} ";
	static char page[1 << 20];
	int fd = load_connect(port, /* stream= */ true);
	const char *at;
	size_t len = 0;
	ssize_t n;

	report_require(send(fd, ask, sizeof(ask) - 1, 0) > 0, "send: %s", strerror(errno));
	while (len < sizeof(page) - 1 && (n = recv(fd, page + len, sizeof(page) - 1 - len, 0)) > 0) {
		len += (size_t)n;
	}
	page[len] = '\0';
	(void)close(fd);
	at = strstr(page, before);
	return at != NULL ? strtoull(at + sizeof(before) - 1, NULL, 10) : 0;
}
