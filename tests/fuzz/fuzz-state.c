/*
 * State files that are not as they were written. The input is a list of changes to a good file and its log, one after another:
 *
 *	's' OFFSET N BYTE...	set N bytes (OFFSET: 3 bytes, N: 1, numbers little-endian)
 *	'S' OFFSET N BYTE...	the same in the log
 *	'c' FROM TO		copy a page of the file (1 byte each)
 *	't' LENGTH		cut the file off (3 bytes)
 *	'T' LENGTH		the same for the log
 *	'r' BYTE...		all that follows is the file, and there is no log
 *
 * A file is refused, or it says what one of the good ones says; but for 'r' at the start, where nobody knows what it should say. Whatever is accepted can be written to, and says then
 * what was written, too.
 */
#include "daemon/store/store.h"

#include "tests/unit/store/dump.h"
#include "tests/unit/store/file-bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u
#define COMMITS 3u /* in the log */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[64];
static struct file_bytes good_file, good_log;
static char *texts[COMMITS + 1]; /* after so many of them */

static void clear(void)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };

	for (size_t i = 0; i < 3; i++) {
		file_bytes_remove(path, suffixes[i]);
	}
}

static void note_text(unsigned i)
{
	char why[STORE_MAX_WHY];
	int error;

	file_bytes_write(path, "", good_file);
	file_bytes_write(path, "-wal", good_log);
	texts[i] = dump_file(path, &error, why);
	if (texts[i] == NULL) {
		abort();
	}
	clear();
}

static void make_good(void)
{
	struct sample sample;

	(void)snprintf(path, sizeof(path), "%s/fuzz-state-%d.db",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
	clear();
	(void)atexit(clear);
	sample_open(&sample, path);
	for (unsigned step = 0; step < 7; step++) {
		sample_step(&sample, step);
		sample_commit(&sample);
	}
	/* An end in order puts the log into the file. What comes then is in a log. */
	sample_reopen(&sample, path);
	good_file = file_bytes_read(path, "");
	for (unsigned i = 0; i <= COMMITS; i++) {
		struct file_bytes log = file_bytes_read(path, "-wal");
		char live[64];

		memcpy(live, path, sizeof(live));
		(void)snprintf(path, sizeof(path), "%.60s-x", live);
		free(good_log.at);
		good_log = log;
		note_text(i);
		memcpy(path, live, sizeof(path));
		if (i < COMMITS) {
			sample_step(&sample, 7 + i);
			sample_commit(&sample);
		}
	}
	sample_close(&sample);
	clear();
}

/* ---- changes ---- */

struct input {
	const uint8_t *at, *end;
};

static size_t number(struct input *input, unsigned bytes)
{
	size_t n = 0;

	for (unsigned i = 0; i < bytes && input->at < input->end; i++) {
		n |= (size_t)*input->at++ << 8 * i;
	}
	return n;
}

static void set_bytes(struct input *input, struct file_bytes *bytes)
{
	size_t offset = number(input, 3), n = number(input, 1);

	for (size_t i = 0; i < n && input->at < input->end; i++) {
		uint8_t byte = *input->at++;

		if (offset + i < bytes->len) {
			bytes->at[offset + i] = byte;
		}
	}
}

static void copy_page(struct input *input, struct file_bytes *bytes)
{
	size_t from = number(input, 1) * PAGE, to = number(input, 1) * PAGE;

	if (from + PAGE <= bytes->len && to + PAGE <= bytes->len) {
		memmove(bytes->at + to, bytes->at + from, PAGE);
	}
}

static void cut_off(struct input *input, struct file_bytes *bytes)
{
	size_t len = number(input, 3);

	bytes->len = len < bytes->len ? len : bytes->len;
}

static void change(struct input *input, struct file_bytes *file, struct file_bytes *log)
{
	while (input->at < input->end) {
		switch (*input->at++) {
		case 's':
			set_bytes(input, file);
			break;
		case 'S':
			set_bytes(input, log);
			break;
		case 'c':
			copy_page(input, file);
			break;
		case 't':
			cut_off(input, file);
			break;
		case 'T':
			cut_off(input, log);
			break;
		default:
			break;
		}
	}
}

static struct file_bytes copy_of(struct file_bytes bytes)
{
	struct file_bytes copy = { .at = malloc(bytes.len + 1), .len = bytes.len };

	if (copy.at == NULL) {
		abort();
	}
	memcpy(copy.at, bytes.at, bytes.len);
	return copy;
}

/* ---- what must hold ---- */

static bool is_known(const char *text)
{
	for (unsigned i = 0; i <= COMMITS; i++) {
		if (strcmp(text, texts[i]) == 0) {
			return true;
		}
	}
	return false;
}

/* One more counter, at a number that no load gives out. */
static char *write_and_load(void)
{
	static const struct engine_born born = {
		.id = 5000, .parent = ENGINE_NO_ID, .path = "fuzz", .len = 4
	};
	struct store *store = NULL;
	char why[STORE_MAX_WHY];
	int error;

	if (store_open(path, &store, why) != 0) {
		abort();
	}
	free(dump_load(store, &error, why));
	if (error != 0 || store_born(store, &born) != 0 || store_commit(store, why) != 0) {
		abort();
	}
	(void)store_close(store);
	return dump_file(path, &error, why);
}

static void check(bool known)
{
	char why[STORE_MAX_WHY];
	int error;
	char *text = dump_file(path, &error, why), *again;

	if (text == NULL) {
		if (error != STORE_E_DAMAGED && error != STORE_E_NEWER) {
			abort();
		}
		return;
	}
	if (known && !is_known(text)) {
		abort();
	}
	if (strstr(text, "counter fuzz ") == NULL) {
		again = write_and_load();
		if (again == NULL || strstr(again, "counter fuzz ") == NULL ||
		    strlen(again) != strlen(text) + strlen("counter fuzz 0 0 0\n")) {
			abort();
		}
		free(again);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { .at = data, .end = data + size };
	bool raw = size > 0 && data[0] == 'r';

	if (good_file.at == NULL) {
		make_good();
	}
	clear();
	if (raw) {
		file_bytes_write(path, "",
				 (struct file_bytes){ .at = (uint8_t *)(uintptr_t)data + 1,
						      .len = size - 1 });
	} else {
		struct file_bytes file = copy_of(good_file), log = copy_of(good_log);

		change(&input, &file, &log);
		file_bytes_write(path, "", file);
		file_bytes_write(path, "-wal", log);
		free(file.at);
		free(log.at);
	}
	check(!raw);
	return 0;
}
