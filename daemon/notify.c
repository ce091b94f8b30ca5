#include "daemon/notify.h"

#include "daemon/clock.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

/* A service manager that does not listen is no reason to stop: every failure is ignored. */

/*
 * For what is said again and again, and may be lost: a service manager that does not listen for a while must not hold us up, and we it
 * neither. (sd_notify waits.)
 */
static void notify_passing(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = path != NULL ? strlen(path) : 0;
	int fd;

	if (len < 2 || len >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@')) {
		return;
	}
	memcpy(to.sun_path, path, len);
	if (path[0] == '@') {
		to.sun_path[0] = '\0'; /* an abstract one */
	}
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0) {
		(void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&to,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
		(void)close(fd);
	}
}

void notify_ready(const char *status)
{
	(void)sd_notifyf(/* unset_environment= */ 0, "READY=1\nSTATUS=%s", status);
}

void notify_reloading(void)
{
	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIi64, clock_monotonic_ns() / 1000);
}

void notify_stopping(void)
{
	(void)sd_notify(0, "STOPPING=1\nSTATUS=Stopping: answering what the sockets hold.");
}

void notify_status(const char *status)
{
	char text[1024];

	(void)snprintf(text, sizeof(text), "STATUS=%s", status);
	notify_passing(text);
}

int64_t notify_watchdog_ns(void)
{
	uint64_t usec = 0;

	if (sd_watchdog_enabled(0, &usec) <= 0 || usec > INT64_MAX / 1000) {
		return 0;
	}
	return (int64_t)usec * 1000;
}

void notify_alive(void)
{
	notify_passing("WATCHDOG=1");
}

void notify_failed(int error, const char *text)
{
	(void)sd_notifyf(0, "ERRNO=%i\nSTATUS=%s", error, text);
}
