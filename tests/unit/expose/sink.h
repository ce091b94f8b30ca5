#pragma once
/* What a page writes, kept as one text. */
#include <stdlib.h>
#include <string.h>

#include "lib/expose/sheet.h"
#include "tests/support/test.h"

struct sink {
	char *text; /* terminated */
	size_t len;
	size_t largest; /* piece */
};

static inline void sink_take(void *ctx, const char *bytes, size_t len)
{
	struct sink *sink = ctx;

	sink->text = realloc(sink->text, sink->len + len + 1);
	assert_non_null(sink->text);
	memcpy(sink->text + sink->len, bytes, len);
	sink->len += len;
	sink->text[sink->len] = '\0';
	sink->largest = len > sink->largest ? len : sink->largest;
}

static inline void sink_clear(struct sink *sink)
{
	free(sink->text);
	*sink = (struct sink){ 0 };
}
