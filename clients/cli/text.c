#include "clients/cli/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MAX 32

/* The length of the well-formed UTF-8 sequence at p, and its code point; 0 if there is none. (Unicode 15, table 3-7.) */
static size_t decode(const unsigned char *p, size_t len, uint32_t *ret_point)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = p[0] < 0x80			  ? 1
		   : p[0] >= 0xc2 && p[0] <= 0xdf ? 2
		   : (p[0] & 0xf0) == 0xe0	  ? 3
		   : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
						  : 0;
	uint32_t point = n == 1 ? p[0] : n == 0 ? 0 : p[0] & (0x7fU >> n);

	if (n == 0 || n > len) {
		return 0;
	}
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			return 0;
		}
		point = point << 6 | (p[i] & 0x3fU);
	}
	if (point < least[n] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) {
		return 0;
	}
	*ret_point = point;
	return n;
}

static bool steers_terminal(uint32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x200e ||
	       point == 0x200f || point == 0x061c || (point >= 0x2028 && point <= 0x202e) ||
	       (point >= 0x2066 && point <= 0x2069);
}

char *text_safe(const char *bytes, size_t len, size_t max)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *p = (const unsigned char *)bytes;
	size_t shown = len < max ? len : max;
	char *safe = malloc(4 * shown + sizeof("..."));
	char *to = safe;

	if (safe == NULL) {
		return NULL;
	}
	for (size_t i = 0; i < shown;) {
		uint32_t point = 0;
		size_t n = decode(p + i, len - i, &point);
		bool plain = n > 0 && !steers_terminal(point);

		n = n > 0 ? n : 1;
		if (i + n > shown) {
			break;
		}
		for (size_t end = i + n; i < end; i++) {
			if (plain) {
				*to++ = bytes[i];
			} else {
				*to++ = '\\';
				*to++ = 'x';
				*to++ = hex[p[i] >> 4];
				*to++ = hex[p[i] & 0xf];
			}
		}
	}
	memcpy(to, "...", sizeof("..."));
	if (shown == len) {
		*to = '\0';
	}
	return safe;
}

char *text_safe_string(const char *string)
{
	size_t len = strlen(string);

	return text_safe(string, len, len);
}

static size_t least_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Letters inserted, removed, replaced or swapped with their neighbour. Words longer than WORD_MAX are far from all. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1];
	size_t a_len = strlen(a);
	size_t b_len = strlen(b);

	if (a_len > WORD_MAX || b_len > WORD_MAX) {
		return SIZE_MAX;
	}
	for (size_t j = 0; j <= b_len; j++) {
		rows[0][j] = j;
	}
	for (size_t i = 1; i <= a_len; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i + 2) % 3];

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			row[j] = least_of(least_of(above[j], row[j - 1]) + 1,
					  above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
				row[j] = least_of(row[j], rows[(i + 1) % 3][j - 2] + 1);
			}
		}
	}
	return rows[a_len % 3][b_len];
}

const char *text_nearest(const char *word, const char *const *words)
{
	size_t len = strlen(word);
	size_t nearest = 1 + len / 3;
	const char *found = NULL;

	for (; *words != NULL; words++) {
		size_t far = distance(word, *words);

		if (len >= 2 && strncmp(word, *words, len) == 0) {
			far = 1;
		}
		if (far < nearest || (far == nearest && found == NULL && far < len)) {
			nearest = far;
			found = *words;
		}
	}
	return found;
}
