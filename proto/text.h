#pragma once
/*
 * text: bytes with a length, as strings are on the wire: not terminated, may hold NUL. `at` is never NULL.
 */
#include <stddef.h>
#include <string.h>

struct text {
	const char *at;
	size_t len;
};

/* A terminated string as text. */
static inline struct text text_of(const char *string)
{
	return (struct text){ .at = string, .len = strlen(string) };
}
