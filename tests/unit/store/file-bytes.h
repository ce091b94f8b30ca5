#pragma once
/*
 * file-bytes: files of tests as bytes.
 */
#include <stddef.h>
#include <stdint.h>

struct file_bytes {
	uint8_t *at;
	size_t len;
};

/* A file that is not there has no bytes. To be freed: at. */
struct file_bytes file_bytes_read(const char *path, const char *suffix);
/* Replaces the file. */
void file_bytes_write(const char *path, const char *suffix, struct file_bytes bytes);
void file_bytes_remove(const char *path, const char *suffix);
