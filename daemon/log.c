#include "daemon/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
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
	[LOG_KIND_STATSD] = "StatsD lines",
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

#define LOG_MAX_FIELDS 5u

struct fields {
	struct iovec at[LOG_MAX_FIELDS];
	int n;
	char bytes[LOG_MAX_FIELDS][LOG_MAX_TEXT + 160];
};

static void put_field(struct fields *fields, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void put_field(struct fields *fields, const char *format, ...)
{
	char *bytes = fields->bytes[fields->n];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(bytes, sizeof(fields->bytes[0]), format, args);
	va_end(args);
	if (len > 0) {
		size_t most = sizeof(fields->bytes[0]) - 1;

		fields->at[fields->n++] = (struct iovec){
			.iov_base = bytes,
			.iov_len = (size_t)len < most ? (size_t)len : most,
		};
	}
}

static void log_to_journal(int priority, const struct log_about *about, const char *text)
{
	struct fields fields;

	fields.n = 0;
	put_field(&fields, "MESSAGE=%s%s%s", about->peer != NULL ? about->peer : "",
		  about->peer != NULL ? ": " : "", text);
	put_field(&fields, "PRIORITY=%i", priority);
	if (about->id != NULL) {
		put_field(&fields, "MESSAGE_ID=%s", about->id);
	}
	if (about->peer != NULL) {
		put_field(&fields, "RATIOND_PEER=%s", about->peer);
	}
	if (about->path.len > 0) {
		put_field(&fields, "RATIOND_PATH=%.*s", (int)about->path.len, about->path.at);
	}
	(void)sd_journal_sendv(fields.at, fields.n);
}

static void log_write(struct log *log, int priority, const struct log_about *about, char *text)
{
	char line[LOG_MAX_TEXT + 160];
	int len;

	make_printable(text);
	if (log->journal) {
		log_to_journal(priority, about, text);
		return;
	}
	len = snprintf(line, sizeof(line), "rationd: %s%s%s\n",
		       about->peer != NULL ? about->peer : "", about->peer != NULL ? ": " : "",
		       text);
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
	log_write(log, priority, &(struct log_about){ 0 }, text);
}

static void tell_suppressed(struct log *log, enum log_kind kind, uint64_t suppressed)
{
	if (suppressed > 0) {
		log_line(log, LOG_WARNING, "suppressed %" PRIu64 " more lines about peers (%s)",
			 suppressed, kind_names[kind]);
	}
}

/* May a line of this kind pass now? Tells first what did not before. */
static bool passes(struct log *log, enum log_kind kind, int64_t now_ns)
{
	struct limiter *limiter = &log->limiters[kind];
	uint64_t suppressed;
	bool pass;

	(void)pthread_mutex_lock(&log->lock);
	suppressed = limiter_collect(limiter, now_ns, LOG_PEER_INTERVAL_NS);
	pass = limiter_pass(limiter, now_ns, LOG_PEER_BURST, LOG_PEER_INTERVAL_NS);
	(void)pthread_mutex_unlock(&log->lock);
	tell_suppressed(log, kind, suppressed);
	return pass;
}

static void log_about(struct log *log, enum log_kind kind, int64_t now_ns, int priority,
		      const struct log_about *about, const char *format, va_list args)
	__attribute__((format(printf, 6, 0)));

static void log_about(struct log *log, enum log_kind kind, int64_t now_ns, int priority,
		      const struct log_about *about, const char *format, va_list args)
{
	char text[LOG_MAX_TEXT];

	if (priority > log->max_priority || (about->peer != NULL && !passes(log, kind, now_ns))) {
		return;
	}
	(void)vsnprintf(text, sizeof(text), format, args);
	log_write(log, priority, about, text);
}

void log_peer(struct log *log, enum log_kind kind, int64_t now_ns, int priority, const char *peer,
	      const char *format, ...)
{
	const struct log_about about = { .peer = peer };
	va_list args;

	va_start(args, format);
	log_about(log, kind, now_ns, priority, &about, format, args);
	va_end(args);
}

void log_event(struct log *log, enum log_kind kind, int64_t now_ns, int priority,
	       const struct log_about *about, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_about(log, kind, now_ns, priority, about, format, args);
	va_end(args);
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
