#pragma once
/*
 * error: the text behind ration_error(), one for each thread.
 *
 * Thread safety: any thread; each has its own text.
 */

/* Set the calling thread's text. Returns `code`, so that a failure can say what it was on its way out. */
int error_set(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

void error_clear(void);
