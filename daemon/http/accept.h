#pragma once
/*
 * accept: what a client takes, by its Accept and Accept-Encoding (RFC 9110, section 12.5).
 *
 * Of several ranges that fit the most exact one counts, and of equals the first. What is malformed is passed over: a client gets the
 * plain text then, which all of them read.
 *
 * Thread safety: pure functions.
 */
#include "lib/expose/sheet.h"

#include <stdbool.h>

/* NULL: there is no such header. OpenMetrics if it is wanted more than text, or as much and by name. */
enum sheet_format accept_format(const char *accept);

/* Is gzip wanted, and no less than the bytes as they are? */
bool accept_gzip(const char *accept_encoding);
