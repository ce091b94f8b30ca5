#include "daemon/notify.h"

#include "daemon/clock.h"

#include <inttypes.h>
#include <systemd/sd-daemon.h>

/* A service manager that does not listen is no reason to stop: every failure is ignored. */

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
	(void)sd_notifyf(0, "STATUS=%s", status);
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
	(void)sd_notify(0, "WATCHDOG=1");
}

void notify_failed(int error, const char *text)
{
	(void)sd_notifyf(0, "ERRNO=%i\nSTATUS=%s", error, text);
}
