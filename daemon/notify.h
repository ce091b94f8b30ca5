#pragma once
/*
 * notify: telling the service manager where we are (sd_notify). Without one every call does nothing.
 *
 * Thread safety: the main thread alone.
 */
#include <stdint.h>

/* READY=1 with a status line: once when serving, and once after each reload. */
void notify_ready(const char *status);
/* RELOADING=1 and MONOTONIC_USEC in one message, as Type=notify-reload wants it. */
void notify_reloading(void);
void notify_stopping(void);
/* A status line alone. */
void notify_status(const char *status);
/* How often the service manager wants to hear notify_alive (WATCHDOG_USEC), in nanoseconds; 0: never. */
int64_t notify_watchdog_ns(void);
void notify_alive(void);
/* Why we do not start: errno and a text, before READY. */
void notify_failed(int error, const char *text);
