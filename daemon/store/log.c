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

/* What has been seen of the frames. */
struct reading {
	struct log log;
	uint8_t last[8]; /* of the last good frame, until others follow: which page, and how large the file is if it ends a commit */
	bool bad;	 /* there was a frame that is not good */
	bool ended;	 /* and then one that ends a commit */
	bool damaged;	 /* and then one of another commit */
};

/*
 * SQLite may write the frame that ends a commit more than once, to fill a sector; whether such a copy is good does not matter. Ours begin
 * with one that does not end them, for they all have more pages than one.
 */
static void look_at(struct reading *reading, const uint8_t *frame)
{
	if (!reading->bad && is_good(&reading->log, frame)) {
		memcpy(reading->last, frame, sizeof(reading->last));
		return;
	}
	reading->bad = true;
	if (ends_commit(frame) && memcmp(frame, reading->last, sizeof(reading->last)) == 0) {
		return;
	}
	memset(reading->last, 0, sizeof(reading->last));
	if (!is_of_this_turn(&reading->log, frame)) {
		return;
	}
	if (!ends_commit(frame)) {
		reading->damaged = reading->damaged || reading->ended;
	} else {
		reading->ended = true;
	}
}

static int read_frames(struct reading *reading, int fd)
{
	uint8_t frame[FRAME];
	off_t at = HEADER;
	ssize_t n;

	while ((n = pread(fd, frame, sizeof(frame), at)) == (ssize_t)sizeof(frame)) {
		look_at(reading, frame);
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
	struct reading reading = { .bad = false };
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
	if (!read_header(&reading.log, header)) {
		return fail(STORE_E_DAMAGED, why, path, damaged);
	}
	r = read_frames(&reading, fd);
	if (r < 0) {
		return fail(STORE_E_IO, why, path, strerror(-r));
	}
	return reading.damaged ? fail(STORE_E_DAMAGED, why, path, damaged) : 0;
}

/* ---- cutting ---- */

/* https://sqlite.org/walformat.html#the_wal_index_header; numbers are the machine's. The header is there twice. */
#define INDEX_PART 32768
#define INDEX_HEADER 48u
#define INDEX_FRAMES_AT 16u

/*
 * How many frames commits have in the log, as all who have it open know by the index beside it. The connection has that mapped; to open it
 * ourselves would take its locks away when we close it.
 */
static int committed(sqlite3 *db, uint32_t *ret_frames)
{
	sqlite3_file *file = NULL;
	void __volatile__ *part = NULL; /* the type is SQLite's */
	int rc = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
	uint8_t headers[2 * INDEX_HEADER];

	if (rc == SQLITE_OK) {
		rc = file->pMethods->xShmMap(file, 0, INDEX_PART, 0, &part);
	}
	if (rc != SQLITE_OK || part == NULL) {
		return rc != SQLITE_OK ? rc : SQLITE_IOERR_SHMMAP;
	}
	/* Whoever may write to it waits for this transaction. */
	memcpy(headers, (const void *)part, sizeof(headers));
	if (memcmp(headers, headers + INDEX_HEADER, INDEX_HEADER) != 0) {
		return SQLITE_IOERR_SHMMAP;
	}
	memcpy(ret_frames, headers + INDEX_FRAMES_AT, sizeof(*ret_frames));
	return SQLITE_OK;
}

int log_cut(sqlite3 *db)
{
	sqlite3_file *log = NULL;
	sqlite3_int64 size = 0, wanted;
	uint32_t frames = 0;
	int rc = sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);

	if (rc == SQLITE_OK) {
		rc = committed(db, &frames);
	}
	/* Without a frame the next transaction writes the header anew. */
	wanted = frames > 0 ? HEADER + (sqlite3_int64)frames * FRAME : 0;
	if (rc == SQLITE_OK) {
		rc = log->pMethods->xFileSize(log, &size);
	}
	if (rc != SQLITE_OK || size <= wanted) {
		return rc;
	}
	rc = log->pMethods->xTruncate(log, wanted);
	return rc == SQLITE_OK ? log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) : rc;
}
