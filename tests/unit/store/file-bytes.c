#include "tests/unit/store/file-bytes.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_NAME 600u

static void name_of(const char *path, const char *suffix, char name[MAX_NAME])
{
	assert_true(snprintf(name, MAX_NAME, "%s%s", path, suffix) < (int)MAX_NAME);
}

struct file_bytes file_bytes_read(const char *path, const char *suffix)
{
	struct file_bytes bytes = { .at = NULL };
	char name[MAX_NAME];
	struct stat stat_of;
	FILE *file;

	name_of(path, suffix, name);
	file = fopen(name, "rb");
	if (file == NULL) {
		return bytes;
	}
	assert_int_equal(fstat(fileno(file), &stat_of), 0);
	bytes.len = (size_t)stat_of.st_size;
	bytes.at = malloc(bytes.len + 1);
	assert_non_null(bytes.at);
	assert_int_equal(fread(bytes.at, 1, bytes.len, file), bytes.len);
	(void)fclose(file);
	return bytes;
}

void file_bytes_write(const char *path, const char *suffix, struct file_bytes bytes)
{
	char name[MAX_NAME];
	FILE *file;

	name_of(path, suffix, name);
	file = fopen(name, "wb");
	assert_non_null(file);
	if (bytes.len > 0) {
		assert_int_equal(fwrite(bytes.at, 1, bytes.len, file), bytes.len);
	}
	assert_int_equal(fclose(file), 0);
}

void file_bytes_remove(const char *path, const char *suffix)
{
	char name[MAX_NAME];

	name_of(path, suffix, name);
	(void)unlink(name);
}
