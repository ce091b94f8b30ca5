#include "daemon/store/log.h"

#include "daemon/store/schema.h"
#include "lib/base/cleanup.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* https://sqlite.org/fileformat2.html#the_write_ahead_log; numbers are big-endian. */
#define HEADER 32u
#define FRAME_HEADER 24u
#define FRAME (FRAME_HEADER + SCHEMA_PAGE)
#define MAGIC UINT32_C(0x377f0682) /* the lowest bit: sums are of big-endian words */
#define SUMMED_HEADER 24u
#define SUMMED_FRAME_HEADER 8u

struct log {
	bool big_endian;
	uint32_t salts[2];
	uint32_t sums[2]; /* up to here */
};

static uint32_t word(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return be32toh(value);
}

static void add_sums(struct log *log, const uint8_t *at, size_t len)
{
	for (const uint8_t *end = at + len; at < end; at += 8) {
		uint32_t a = word(at), b = word(at + 4);

		if (!log->big_endian) {
			a = __builtin_bswap32(a);
			b = __builtin_bswap32(b);
		}
		log->sums[0] += a + log->sums[1];
		log->sums[1] += b + log->sums[0];
	}
}

static bool has_sums(const struct log *log, const uint8_t *at)
{
	return word(at) == log->sums[0] && word(at + 4) == log->sums[1];
}

static bool read_header(struct log *log, const uint8_t *header)
{
	uint32_t magic = word(header);

	*log = (struct log){ .big_endian = (magic & 1) != 0,
			     .salts = { word(header + 16), word(header + 20) } };
	add_sums(log, header, SUMMED_HEADER);
	return (magic & ~UINT32_C(1)) == MAGIC && word(header + 8) == SCHEMA_PAGE &&
	       has_sums(log, header + SUMMED_HEADER);
}

/* Not one that an earlier turn of the log left there. */
static bool is_of_this_turn(const struct log *log, const uint8_t *frame)
{
	return word(frame + 8) == log->salts[0] && word(frame + 12) == log->salts[1];
}

static bool is_good(struct log *log, const uint8_t *frame)
{
	add_sums(log, frame, SUMMED_FRAME_HEADER);
	add_sums(log, frame + FRAME_HEADER, SCHEMA_PAGE);
	return is_of_this_turn(log, frame) && word(frame) != 0 && has_sums(log, frame + 16);
}

static bool ends_commit(const uint8_t *frame)
{
	return word(frame + 4) != 0;
}

static int fail(int error, char why[STORE_MAX_WHY], const char *path, const char *what)
{
	(void)snprintf(why, STORE_MAX_WHY, "%s-wal: %s", path, what);
	return error;
}

/* Reads the frames; whether one that is not good was followed by the end of a commit and one more. */
static int read_frames(struct log *log, int fd, bool *ret_damaged)
{
	uint8_t frame[FRAME];
	bool good = true, ended = false;
	off_t at = HEADER;
	ssize_t n;

	*ret_damaged = false;
	while ((n = pread(fd, frame, sizeof(frame), at)) == (ssize_t)sizeof(frame)) {
		good = good && is_good(log, frame);
		if (!good && is_of_this_turn(log, frame)) {
			*ret_damaged = *ret_damaged || ended;
			ended = ended || ends_commit(frame);
		}
		at += (off_t)sizeof(frame);
	}
	return n < 0 ? -errno : 0;
}

int log_check(const char *path, char why[STORE_MAX_WHY])
{
	static const char damaged[] = "the log of the state file is damaged";
	_cleanup_free_ char *name = NULL;
	_cleanup_close_ int fd = -1;
	uint8_t header[HEADER + FRAME];
	struct log log;
	bool is_damaged;
	ssize_t n;
	int r;

	if (asprintf(&name, "%s-wal", path) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		return 0;
	}
	n = fd >= 0 ? pread(fd, header, sizeof(header), 0) : -1;
	if (n < 0) {
		return fail(STORE_E_IO, why, path, strerror(errno));
	}
	if ((size_t)n < sizeof(header)) {
		return 0; /* no frame yet */
	}
	/* It was on the disk before the first frame was written. */
	if (!read_header(&log, header)) {
		return fail(STORE_E_DAMAGED, why, path, damaged);
	}
	r = read_frames(&log, fd, &is_damaged);
	if (r < 0) {
		return fail(STORE_E_IO, why, path, strerror(-r));
	}
	return is_damaged ? fail(STORE_E_DAMAGED, why, path, damaged) : 0;
}
