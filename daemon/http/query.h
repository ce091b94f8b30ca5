#pragma once
/*
 * query: the parameters of a URL, NAME=VALUE&NAME=VALUE, decoded one by one.
 *
 * %XX is a byte and + a blank, in names and values (as forms are sent). Any byte may come, zero too.
 *
 * Thread safety: none needed, a query belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>

#define QUERY_MAX_NAME 32u
#define QUERY_MAX_VALUE 2048u

enum query_error {
	QUERY_OK = 0,
	QUERY_E_END,	/* there is none left */
	QUERY_E_ESCAPE, /* a % without two hexadecimal digits */
	QUERY_E_LONG,	/* a name or value longer than any that means something */
};

struct query {
	const char *at; /* what is left; NULL: nothing */
	/* The one that was read last; terminated beyond their lengths. */
	size_t name_len, value_len;
	char name[QUERY_MAX_NAME + 1];
	char value[QUERY_MAX_VALUE + 1];
};

/* `text` is what stands behind the ?, or NULL; it is not copied. */
void query_init(struct query *query, const char *text);

/* The next one. Empty ones (&&) are passed over. After an error other than QUERY_E_END the rest means nothing. */
enum query_error query_next(struct query *query);

/* Is the one that was read last called so? */
bool query_is(const struct query *query, const char *name);
