#include "daemon/statsd/complaint.h"

#include "daemon/clock.h"
#include "daemon/log.h"

#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define REASON_NS (10 * CLOCK_NS_PER_S)
#define SENDER_NS (60 * CLOCK_NS_PER_S)
#define MAX_EXAMPLE 160u /* bytes of a line that are shown */

/* Printable ASCII as it is, all else as \xNN. */
static void show(const char *line, size_t len, char text[4 * MAX_EXAMPLE + 4])
{
	size_t n = len < MAX_EXAMPLE ? len : MAX_EXAMPLE, at = 0;

	for (size_t i = 0; i < n; i++) {
		bool plain = line[i] >= 0x20 && line[i] < 0x7f;

		at += (size_t)snprintf(text + at, 5, plain ? "%c" : "\\x%02x",
				       (unsigned char)line[i]);
	}
	(void)snprintf(text + at, 4, "%s", len > n ? "..." : "");
}

/* Without the port: that of a client changes whenever it likes. */
static const char *name_of(const struct statsd_sender *sender, char text[NI_MAXHOST + 16])
{
	char host[NI_MAXHOST];

	if (sender->address == NULL || sender->address->sa_family == AF_UNSPEC ||
	    sender->address->sa_family == AF_UNIX ||
	    getnameinfo(sender->address, sender->address_len, host, sizeof(host), NULL, 0,
			NI_NUMERICHOST) != 0) {
		return sender->text;
	}
	(void)snprintf(text, NI_MAXHOST + 16, "%s %s", sender->text, host);
	return text;
}

static uint64_t hash_of(const char *text, enum statsd_reason reason)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)reason;

	for (; *text != '\0'; text++) {
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	}
	return hash;
}

/* Two senders in one place silence nobody: the newer one is told, and the older one told again. */
static bool tell_sender(struct statsd_complaints *complaints, const char *name,
			enum statsd_reason reason, int64_t now_ns)
{
	uint64_t hash = hash_of(name, reason);
	size_t i = hash >> 32 & (STATSD_COMPLAINT_SENDERS - 1);

	if (complaints->senders[i].sender == hash && now_ns < complaints->senders[i].next_ns) {
		return false;
	}
	complaints->senders[i].sender = hash;
	complaints->senders[i].next_ns = now_ns + SENDER_NS;
	return true;
}

static const char *advice(enum statsd_reason reason)
{
	return reason == STATSD_unsupported_event
		       ? "events and service checks are not taken, only counters (|c)"
		       : "only counters are taken (|c), no gauges, timers, histograms or sets";
}

void statsd_complain(struct statsd_complaints *complaints, enum statsd_reason reason,
		     const char *line, size_t len, const struct statsd_sender *sender,
		     int64_t now_ns)
{
	char example[4 * MAX_EXAMPLE + 4], text[NI_MAXHOST + 16];
	const char *name;

	if (reason == STATSD_unsupported_type || reason == STATSD_unsupported_event) {
		name = name_of(sender, text);
		if (tell_sender(complaints, name, reason, now_ns)) {
			show(line, len, example);
			log_peer(complaints->log, LOG_KIND_STATSD, now_ns, LOG_WARNING, name,
				 "%s: %s, such as \"%s\"", statsd_reason_name(reason),
				 advice(reason), example);
		}
		return;
	}
	if (now_ns < complaints->reasons[reason].next_ns) {
		complaints->reasons[reason].n_silent++;
		return;
	}
	show(line, len, example);
	log_peer(complaints->log, LOG_KIND_STATSD, now_ns, LOG_WARNING, name_of(sender, text),
		 "%s: a line is not counted: \"%s\" (%" PRIu64 " more since the last one told)",
		 statsd_reason_name(reason), example, complaints->reasons[reason].n_silent);
	complaints->reasons[reason].next_ns = now_ns + REASON_NS;
	complaints->reasons[reason].n_silent = 0;
}
