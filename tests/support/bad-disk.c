/*
 * LD_PRELOAD: a disk that fails. While the file $RATION_BAD_DISK exists, every write to a file, and every wait for one to be on the disk, fails with the
 * error whose number is in it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static bool fails(void)
{
	const char *path = getenv("RATION_BAD_DISK");
	int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char text[16] = "";

	if (fd < 0) {
		return false;
	}
	(void)!read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	errno = (int)strtol(text, NULL, 10);
	return true;
}

/* libc's own names for these parameters are reserved. */
/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */

ssize_t pwrite64(int fd, const void *bytes, size_t len, off64_t at)
{
	static ssize_t (*real)(int, const void *, size_t, off64_t);

	if (real == NULL) {
		*(void **)&real = dlsym(RTLD_NEXT, "pwrite64");
	}
	return fails() ? -1 : real(fd, bytes, len, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	return pwrite64(fd, bytes, len, at);
}

int fsync(int fd)
{
	static int (*real)(int);

	if (real == NULL) {
		*(void **)&real = dlsym(RTLD_NEXT, "fsync");
	}
	return fails() ? -1 : real(fd);
}

int fdatasync(int fd)
{
	static int (*real)(int);

	if (real == NULL) {
		*(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
	}
	return fails() ? -1 : real(fd);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
