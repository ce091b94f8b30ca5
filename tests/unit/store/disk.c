#include "tests/unit/store/disk.h"

#include "tests/unit/store/file-bytes.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPS 20000u

enum which {
	FILE_DB,
	FILE_LOG,
	N_FILES,
	FILE_OTHER = N_FILES,
};

static const char *const suffixes[N_FILES] = { "", "-wal" };

enum kind {
	OP_WRITE,
	OP_TRUNCATE, /* to `offset` */
	OP_SYNC,
	OP_DELETE,
	OP_MARK, /* `offset` says which */
};

struct op {
	enum which file;
	enum kind kind;
	size_t offset, len;
	uint8_t *bytes;
};

/* Behind what the layer below has for a file: its functions, and those of them that are ours. */
struct ours {
	enum which which;
	const sqlite3_io_methods *below;
	sqlite3_io_methods methods;
};

/* One disk for the process, as there is one list of SQLite's layers. */
static struct {
	sqlite3_vfs vfs, *below;

	bool armed, lasting, failed;
	enum disk_fault fault;
	unsigned left; /* calls until it fails */

	bool recording;
	struct file_bytes start[N_FILES];
	struct op ops[MAX_OPS];
	size_t n;
} disk;

static struct ours *ours_of(sqlite3_file *file)
{
	return (struct ours *)(void *)((char *)file + disk.below->szOsFile);
}

/* ---- failures ---- */

static bool can_fail(enum disk_fault fault, enum kind kind)
{
	switch (fault) {
	case DISK_FULL:
		return kind == OP_WRITE;
	case DISK_SYNC:
		return kind == OP_SYNC;
	case DISK_WRITE:
	case DISK_READ_ONLY:
		break;
	}
	return kind == OP_WRITE || kind == OP_TRUNCATE;
}

static int fails(enum kind kind)
{
	static const int codes[] = { SQLITE_FULL, SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC,
				     SQLITE_READONLY };

	if (!disk.armed || !can_fail(disk.fault, kind)) {
		return SQLITE_OK;
	}
	if (disk.left > 1) {
		disk.left--;
		return SQLITE_OK;
	}
	disk.armed = disk.lasting;
	disk.failed = true;
	return codes[disk.fault];
}

void disk_fail(enum disk_fault fault, unsigned at, bool lasting)
{
	disk.armed = true;
	disk.failed = false;
	disk.fault = fault;
	disk.left = at;
	disk.lasting = lasting;
}

bool disk_heal(void)
{
	disk.armed = false;
	return disk.failed;
}

/* ---- the layer ---- */

static void note(enum which file, enum kind kind, size_t offset, const void *bytes, size_t len)
{
	struct op *op = &disk.ops[disk.n];

	if (!disk.recording || file == FILE_OTHER) {
		return;
	}
	assert_true(disk.n < MAX_OPS);
	*op = (struct op){ .file = file, .kind = kind, .offset = offset, .len = len };
	if (len > 0) {
		op->bytes = malloc(len);
		assert_non_null(op->bytes);
		memcpy(op->bytes, bytes, len);
	}
	disk.n++;
}

static int write_file(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 offset)
{
	struct ours *ours = ours_of(file);
	int rc = fails(OP_WRITE);

	if (rc == SQLITE_OK) {
		rc = ours->below->xWrite(file, bytes, len, offset);
		note(ours->which, OP_WRITE, (size_t)offset, bytes, (size_t)len);
	}
	return rc;
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
	struct ours *ours = ours_of(file);
	int rc = fails(OP_TRUNCATE);

	if (rc == SQLITE_OK) {
		rc = ours->below->xTruncate(file, size);
		note(ours->which, OP_TRUNCATE, (size_t)size, NULL, 0);
	}
	return rc;
}

/* Nobody needs to wait: this disk loses power only in disk_after. */
static int sync_file(sqlite3_file *file, int flags)
{
	int rc = fails(OP_SYNC);

	(void)flags;
	if (rc == SQLITE_OK) {
		note(ours_of(file)->which, OP_SYNC, 0, NULL, 0);
	}
	return rc;
}

/* A disk that promises nothing. */
static int characteristics(sqlite3_file *file)
{
	(void)file;
	return 0;
}

static enum which which_of(int flags)
{
	if ((flags & SQLITE_OPEN_MAIN_DB) != 0) {
		return FILE_DB;
	}
	return (flags & SQLITE_OPEN_WAL) != 0 ? FILE_LOG : FILE_OTHER;
}

static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags,
		     int *ret_flags)
{
	struct ours *ours = ours_of(file);
	int rc = disk.below->xOpen(disk.below, name, file, flags, ret_flags);

	(void)vfs;
	if (rc == SQLITE_OK) {
		ours->which = which_of(flags);
		ours->below = file->pMethods;
		ours->methods = *file->pMethods;
		ours->methods.iVersion = 2; /* no reading past us in memory */
		ours->methods.xWrite = write_file;
		ours->methods.xTruncate = truncate_file;
		ours->methods.xSync = sync_file;
		ours->methods.xDeviceCharacteristics = characteristics;
		file->pMethods = &ours->methods;
	}
	return rc;
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int sync_directory)
{
	size_t len = strlen(name);

	(void)vfs;
	if (len > 4 && strcmp(name + len - 4, "-wal") == 0) {
		note(FILE_LOG, OP_DELETE, 0, NULL, 0);
	}
	return disk.below->xDelete(disk.below, name, sync_directory);
}

void disk_install(void)
{
	if (disk.below != NULL) {
		return;
	}
	disk.below = sqlite3_vfs_find(NULL);
	assert_non_null(disk.below);
	disk.vfs = *disk.below;
	disk.vfs.zName = "disk";
	disk.vfs.pNext = NULL;
	disk.vfs.szOsFile += (int)sizeof(struct ours);
	disk.vfs.xOpen = open_file;
	disk.vfs.xDelete = delete_file;
	assert_int_equal(sqlite3_vfs_register(&disk.vfs, /* makeDflt= */ 1), SQLITE_OK);
}

/* ---- power ---- */

void disk_record(const char *path)
{
	for (size_t i = 0; i < disk.n; i++) {
		free(disk.ops[i].bytes);
	}
	disk.n = 0;
	for (unsigned file = 0; file < N_FILES; file++) {
		free(disk.start[file].at);
		disk.start[file] = file_bytes_read(path, suffixes[file]);
	}
	disk.recording = true;
}

void disk_mark(unsigned mark)
{
	note(FILE_DB, OP_MARK, mark, NULL, 0);
}

size_t disk_record_end(void)
{
	disk.recording = false;
	return disk.n;
}

static void apply(struct file_bytes *bytes, const struct op *op)
{
	size_t end = op->kind == OP_WRITE ? op->offset + op->len : op->offset;

	if (op->kind == OP_DELETE) {
		bytes->len = 0;
	}
	if ((op->kind == OP_WRITE && end > bytes->len) || op->kind == OP_TRUNCATE) {
		bytes->at = realloc(bytes->at, end + 1);
		assert_non_null(bytes->at);
		if (end > bytes->len) {
			memset(bytes->at + bytes->len, 0, end - bytes->len);
		}
		bytes->len = end;
	}
	if (op->kind == OP_WRITE) {
		memcpy(bytes->at + op->offset, op->bytes, op->len);
	}
}

/* Before which call was all of this file's waited for? */
static size_t waited_for(size_t len, enum which file)
{
	while (len > 0 && !(disk.ops[len - 1].file == file && disk.ops[len - 1].kind == OP_SYNC)) {
		len--;
	}
	return len;
}

/* What a file was cut short by takes along what was written behind that before; nothing brings it back. */
static bool is_cut_off(const struct op *op, const bool *chosen, size_t from, size_t at, size_t to)
{
	for (size_t i = at + 1; i < to; i++) {
		const struct op *cut = &disk.ops[i];

		if (chosen[i - from] && cut->file == op->file && cut->kind == OP_TRUNCATE &&
		    op->offset >= cut->offset) {
			return true;
		}
	}
	return false;
}

static void apply_some(struct file_bytes *bytes, enum which file, size_t from, size_t to,
		       struct test_random *random)
{
	size_t n = to - from;
	size_t *order = malloc((n + 1) * sizeof(*order));
	bool *chosen = malloc(n + 1);

	assert_non_null(order);
	assert_non_null(chosen);
	for (size_t i = 0; i < n; i++) {
		size_t j = (size_t)test_random_below(random, i + 1);

		order[i] = order[j];
		order[j] = from + i;
		chosen[i] = test_random_below(random, 2) == 0;
	}
	for (size_t i = 0; i < n; i++) {
		const struct op *op = &disk.ops[order[i]];

		if (op->file == file && chosen[order[i] - from] &&
		    !is_cut_off(op, chosen, from, order[i], to)) {
			apply(bytes, op);
		}
	}
	free(chosen);
	free(order);
}

unsigned disk_after(size_t len, enum disk_loss loss, struct test_random *random, const char *path)
{
	unsigned mark = 0;

	for (unsigned file = 0; file < N_FILES; file++) {
		size_t sure = loss == DISK_LOSES_NOTHING ? len : waited_for(len, file);
		struct file_bytes bytes = { .at = malloc(disk.start[file].len + 1),
					    .len = disk.start[file].len };

		assert_non_null(bytes.at);
		if (bytes.len > 0) {
			memcpy(bytes.at, disk.start[file].at, bytes.len);
		}
		for (size_t i = 0; i < sure; i++) {
			if (disk.ops[i].file == file) {
				apply(&bytes, &disk.ops[i]);
			}
		}
		if (loss == DISK_LOSES_SOME) {
			apply_some(&bytes, file, sure, len, random);
		}
		file_bytes_write(path, suffixes[file], bytes);
		free(bytes.at);
	}
	file_bytes_remove(path, "-shm");
	for (size_t i = 0; i < len; i++) {
		mark = disk.ops[i].kind == OP_MARK ? (unsigned)disk.ops[i].offset : mark;
	}
	return mark;
}
