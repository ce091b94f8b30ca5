#include "daemon/socket-unix.h"

#include "daemon/address.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "lib/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static bool is_same_file(int fd, const char *path)
{
	struct stat ours, theirs;

	return fstat(fd, &ours) == 0 && stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
	       ours.st_ino == theirs.st_ino;
}

/* The lock file, locked; -EWOULDBLOCK: somebody else has it. */
static int take_lock(const char *path, int *ret_fd)
{
	for (;;) {
		_cleanup_close_ int fd =
			open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0) {
			return -errno;
		}
		/* The one before us may have removed the file between our open and our lock. */
		if (is_same_file(fd, path)) {
			*ret_fd = fd;
			fd = -1;
			return 0;
		}
	}
}

/* Nobody of ours is there; is anybody? 0: the path is free now. */
static int clear_path(struct log *log, int type, const struct sockaddr_un *to)
{
	_cleanup_close_ int probe = -1;
	struct stat stat;

	if (lstat(to->sun_path, &stat) != 0) {
		return errno == ENOENT ? 0 : -errno;
	}
	if (!S_ISSOCK(stat.st_mode)) {
		log_line(
			log, LOG_ERR,
			"unix:%s: there is a file that is not a socket; remove it, or listen elsewhere",
			to->sun_path);
		return -EEXIST;
	}
	probe = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe < 0) {
		return -errno;
	}
	/* EAGAIN is a full backlog, EPROTOTYPE a socket of the other type: somebody is there. */
	if (connect(probe, (const struct sockaddr *)to, sizeof(*to)) == 0 ||
	    errno != ECONNREFUSED) {
		log_line(log, LOG_ERR,
			 "unix:%s: another program is listening there; stop it, or listen elsewhere",
			 to->sun_path);
		return -EADDRINUSE;
	}
	log_line(log, LOG_NOTICE, "unix:%s: replacing a socket on which nobody listens",
		 to->sun_path);
	return unlink(to->sun_path) == 0 ? 0 : -errno;
}

static int bind_unix(struct log *log, int type, const struct sockaddr_un *to, mode_t mode,
		     int *ret_fd)
{
	_cleanup_close_ int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)to, sizeof(*to)) != 0 ||
	    chmod(to->sun_path, mode) != 0 ||
	    (type == SOCK_STREAM && listen(fd, LISTENER_BACKLOG) != 0)) {
		int r = -errno;

		log_line(log, LOG_ERR, "unix:%s: can't listen: %s", to->sun_path, strerror(-r));
		return r;
	}
	*ret_fd = fd;
	fd = -1;
	return 0;
}

/* The socket, once the path is locked. */
static int open_locked(struct log *log, int type, const char *path, mode_t mode, int *ret_fd)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int r;

	/* address_parse has seen to it that it fits. */
	memcpy(to.sun_path, path, strnlen(path, ADDRESS_MAX_UNIX));
	r = clear_path(log, type, &to);
	return r == 0 ? bind_unix(log, type, &to, mode, ret_fd) : r;
}

int socket_unix_open(struct socket_unix *unix_socket, struct log *log, int type, const char *path,
		     mode_t mode, int *ret_fd)
{
	_cleanup_close_ int fd = -1, lock_fd = -1;
	_cleanup_free_ char *own_path = strdup(path), *lock_path = NULL;
	struct stat stat;
	int r;

	if (own_path == NULL || asprintf(&lock_path, "%s.lock", path) < 0) {
		lock_path = NULL;
		return -ENOMEM;
	}
	r = take_lock(lock_path, &lock_fd);
	if (r == -EWOULDBLOCK) {
		log_line(log, LOG_ERR,
			 "unix:%s: another rationd is listening there; stop it, or listen elsewhere",
			 path);
		return -EADDRINUSE;
	}
	if (r == -ENOENT || r == -ENOTDIR) {
		log_line(
			log, LOG_ERR,
			"unix:%s: there is no such folder; make it, or listen elsewhere with --listen",
			path);
		return r;
	}
	if (r < 0) {
		log_line(log, LOG_ERR, "unix:%s: can't lock %s: %s", path, lock_path, strerror(-r));
		return r;
	}
	r = open_locked(log, type, path, mode, &fd);
	if (r == 0 && lstat(path, &stat) != 0) {
		r = -errno;
	}
	if (r < 0) {
		(void)unlink(lock_path);
		return r;
	}
	*unix_socket = (struct socket_unix){
		.path = own_path,
		.lock_path = lock_path,
		.lock_fd = lock_fd,
		.device = stat.st_dev,
		.inode = stat.st_ino,
	};
	*ret_fd = fd;
	own_path = lock_path = NULL;
	fd = lock_fd = -1;
	return 0;
}

void socket_unix_remove(struct socket_unix *unix_socket)
{
	struct stat stat;

	if (unix_socket->path == NULL) {
		return;
	}
	if (lstat(unix_socket->path, &stat) == 0 && stat.st_dev == unix_socket->device &&
	    stat.st_ino == unix_socket->inode) {
		(void)unlink(unix_socket->path);
	}
	/* Removed while locked: whoever waits for the lock sees that its file is gone and makes a new one. */
	(void)unlink(unix_socket->lock_path);
	(void)close(unix_socket->lock_fd);
	free(unix_socket->path);
	free(unix_socket->lock_path);
	*unix_socket = (struct socket_unix)SOCKET_UNIX_INIT;
}
