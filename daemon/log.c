#include "daemon/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#define LOG_MAX_TEXT 1024u

static const char *const kind_names[LOG_KIND_MAX] = {
	[LOG_KIND_PROTOCOL] = "broken protocol",
	[LOG_KIND_TIMEOUT] = "timeout",
	[LOG_KIND_REFUSED] = "refused",
	[LOG_KIND_CONTROL] = "control",
	[LOG_KIND_DENIED] = "denied",
	[LOG_KIND_ACCEPT] = "accept",
};

/* systemd says in JOURNAL_STREAM which file standard error was, DEVICE:INODE; it may have been redirected since. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat stat;
	char *end;

	if (stream == NULL) {
		return false;
	}
	device = strtoull(stream, &end, 10);
	if (end == stream || *end != ':') {
		return false;
	}
	inode = strtoull(end + 1, &end, 10);
	return *end == '\0' && fstat(STDERR_FILENO, &stat) == 0 && stat.st_dev == (dev_t)device &&
	       stat.st_ino == (ino_t)inode;
}

void log_init(struct log *log)
{
	log->journal = stderr_is_journal();
}

void log_deinit(struct log *log)
{
	(void)pthread_mutex_destroy(&log->lock);
}

/* What a peer may have put into a text must not start a line of its own. */
static void make_printable(char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f) {
			*text = '?';
		}
	}
}

static void log_write(struct log *log, int priority, const char *peer, char *text)
{
	char line[LOG_MAX_TEXT + 160];
	int len;

	make_printable(text);
	if (log->journal) {
		if (peer != NULL) {
			(void)sd_journal_send("MESSAGE=%s: %s", peer, text, "PRIORITY=%i", priority,
					      "RATIOND_PEER=%s", peer, NULL);
		} else {
			(void)sd_journal_send("MESSAGE=%s", text, "PRIORITY=%i", priority, NULL);
		}
		return;
	}
	len = snprintf(line, sizeof(line), "rationd: %s%s%s\n", peer != NULL ? peer : "",
		       peer != NULL ? ": " : "", text);
	/* One write, so that lines of several threads do not mix; nothing can be done if it fails: ignoring. */
	(void)!write(STDERR_FILENO, line, len < (int)sizeof(line) ? (size_t)len : sizeof(line) - 1);
}

void log_line(struct log *log, int priority, const char *format, ...)
{
	char text[LOG_MAX_TEXT];
	va_list args;

	if (priority > log->max_priority) {
		return;
	}
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_write(log, priority, /* peer= */ NULL, text);
}

static void tell_suppressed(struct log *log, enum log_kind kind, uint64_t suppressed)
{
	if (suppressed > 0) {
		log_line(log, LOG_WARNING, "suppressed %" PRIu64 " more lines about peers (%s)",
			 suppressed, kind_names[kind]);
	}
}

void log_peer(struct log *log, enum log_kind kind, int64_t now_ns, int priority, const char *peer,
	      const char *format, ...)
{
	struct limiter *limiter = &log->limiters[kind];
	char text[LOG_MAX_TEXT];
	uint64_t suppressed;
	va_list args;
	bool pass;

	if (priority > log->max_priority) {
		return;
	}
	(void)pthread_mutex_lock(&log->lock);
	suppressed = limiter_collect(limiter, now_ns, LOG_PEER_INTERVAL_NS);
	pass = limiter_pass(limiter, now_ns, LOG_PEER_BURST, LOG_PEER_INTERVAL_NS);
	(void)pthread_mutex_unlock(&log->lock);

	tell_suppressed(log, kind, suppressed);
	if (pass) {
		va_start(args, format);
		(void)vsnprintf(text, sizeof(text), format, args);
		va_end(args);
		log_write(log, priority, peer, text);
	}
}

void log_suppressed(struct log *log, int64_t now_ns, bool all)
{
	for (unsigned kind = 0; kind < LOG_KIND_MAX; kind++) {
		uint64_t suppressed;

		(void)pthread_mutex_lock(&log->lock);
		suppressed = limiter_collect(&log->limiters[kind], now_ns,
					     all ? 0 : LOG_PEER_INTERVAL_NS);
		(void)pthread_mutex_unlock(&log->lock);
		tell_suppressed(log, (enum log_kind)kind, suppressed);
	}
}
