#pragma once
/*
 * socket_unix: a listening unix socket whose file is ours.
 *
 * A file on which nobody answers is replaced, one on which somebody does never: a lock file beside it (PATH.lock) keeps two
 * daemons apart, and a connect keeps us off a stranger's socket.
 *
 * Thread safety: none needed, the main thread alone.
 */
#include <sys/types.h>

struct log;

struct socket_unix {
	char *path, *lock_path; /* NULL: not open */
	int lock_fd;
	dev_t device; /* of the file we made */
	ino_t inode;
};

#define SOCKET_UNIX_INIT      \
	{                     \
		.lock_fd = -1 \
	}

/* Listen at `path` (SOCK_STREAM), or be bound there (SOCK_DGRAM), of at most ADDRESS_MAX_UNIX bytes; *ret_fd is the caller's to close. Errors are logged; 0 or a negative errno. */
int socket_unix_open(struct socket_unix *unix_socket, struct log *log, int type, const char *path,
		     mode_t mode, int *ret_fd);

/* Remove the file, if it is still the one we made, and the lock. */
void socket_unix_remove(struct socket_unix *unix_socket);
