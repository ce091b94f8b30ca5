#pragma once
/*
 * statsd_load: lines of StatsD counters, ready made, sent as fast as may be or at a pace, and what a server made of them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct load_shape {
	unsigned n_names;
	unsigned lines; /* in a datagram; of a stream: in a write, some */
	bool stream;
};

/* Datagrams, or pieces of a stream, to be sent again and again. */
struct load {
	struct load_shape shape;
	size_t n;
	char *bytes;
	size_t *at; /* n + 1 offsets */
};

/*
 * All names in an order that looks random, each as often as another; or, with in_order, each once, by number. The n-th is
 * called load_name(n).
 */
void load_init(struct load *load, const struct load_shape *shape, bool in_order);
void load_deinit(struct load *load);
size_t load_name(unsigned number, char *text, size_t size);

/* `n` pieces from the first-th on, round and round. per_second: datagrams; 0: as fast as they go. Returns lines. */
uint64_t load_send(const struct load *load, int fd, size_t first, size_t n, double per_second);

/* A connected socket to 127.0.0.1. */
int load_connect(unsigned port, bool stream);
/* A port at which nobody listens, nor at the next one. */
unsigned load_free_port(void);

/* Of a UDP socket at this port, as the kernel has it: bytes that wait, datagrams dropped. */
void load_udp_queue(unsigned port, uint64_t *ret_waiting, uint64_t *ret_dropped);
/* Wait until nothing waits. */
void load_udp_drain(unsigned port);
/* Say that nothing follows, and wait for the other end to have read it all and closed. */
void load_stream_end(int fd);

/* How many events of counters netdata says it has had; its pages are at this port. */
uint64_t load_netdata_counted(unsigned port);
