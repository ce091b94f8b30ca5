#pragma once
/*
 * scan: finding and comparing bytes, many at a time.
 *
 * All of it reads up to SCAN_SLACK bytes behind the end of what it is given, whatever they hold: memory must be that much larger.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define SCAN_SLACK 16u

/* The first byte of at .. end that is `a` or `b`; `end` if there is none. */
static inline const char *scan_for(const char *at, const char *end, char a, char b)
{
#ifdef __SSE2__
	const __m128i all_a = _mm_set1_epi8(a), all_b = _mm_set1_epi8(b);

	for (; at < end; at += 16) {
		__m128i block = _mm_loadu_si128((const __m128i *)(const void *)at);
		unsigned hits = (unsigned)_mm_movemask_epi8(
			_mm_or_si128(_mm_cmpeq_epi8(block, all_a), _mm_cmpeq_epi8(block, all_b)));

		if (hits != 0) {
			at += __builtin_ctz(hits);
			break;
		}
	}
	return at < end ? at : end;
#else
	while (at < end && *at != a && *at != b) {
		at++;
	}
	return at;
#endif
}

/* The next 8 bytes; and the first n < 8 of them, zeros behind. */
static inline uint64_t scan_word(const char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static inline uint64_t scan_part(const char *at, size_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return scan_word(at) & ((UINT64_C(1) << 8 * n) - 1);
#else
	uint64_t word = 0;

	memcpy(&word, at, n);
	return word;
#endif
}

static inline bool scan_equal(const char *a, const char *b, size_t len)
{
#ifdef __SSE2__
	for (;; a += 16, b += 16, len -= 16) {
		__m128i same = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)a),
					      _mm_loadu_si128((const __m128i *)(const void *)b));
		unsigned differ = (unsigned)_mm_movemask_epi8(same) ^ 0xffffu;

		if (len <= 16) {
			return (differ & ((1u << len) - 1)) == 0;
		}
		if (differ != 0) {
			return false;
		}
	}
#else
	return memcmp(a, b, len) == 0;
#endif
}
