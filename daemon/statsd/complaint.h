#pragma once
/*
 * complaint: what a worker says of lines that it can't count, without saying it of each.
 *
 * For each reason one line of the log in ten seconds, with an example and how many there were since the last one. Of what rationd does not
 * serve at all (gauges, timers, events) each sender hears once in a minute.
 *
 * Thread safety: none, a worker has its own.
 */
#include "daemon/statsd/reason.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct log;

/* Who sent it: an address; or, if there is none, a text. */
struct statsd_sender {
	const char *text;
	const struct sockaddr *address; /* NULL or AF_UNSPEC: none */
	socklen_t address_len;
};

#define STATSD_COMPLAINT_SENDERS 64u

struct statsd_complaints {
	struct log *log;
	struct {
		int64_t next_ns; /* silent until then */
		uint64_t n_silent;
	} reasons[STATSD_N_REASONS];
	struct {
		uint64_t sender; /* and reason, as a hash */
		int64_t next_ns;
	} senders[STATSD_COMPLAINT_SENDERS];
};

void statsd_complain(struct statsd_complaints *complaints, enum statsd_reason reason,
		     const char *line, size_t len, const struct statsd_sender *sender,
		     int64_t now_ns);
