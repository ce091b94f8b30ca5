#pragma once
/*
 * scan: finding, comparing and hashing bytes, many at a time.
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

#define SCAN_BLOCK 64u
#define SCAN_SLACK SCAN_BLOCK
#define SCAN_WORDS 8u

#ifdef __SSE2__
static inline uint64_t scan_hits_16(const char *at, __m128i all)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);

	return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, all));
}
#endif

/* Of the next SCAN_BLOCK bytes: bit i is set if at[i] is c. No branch depends on where it is. */
static inline uint64_t scan_hits(const char *at, char c)
{
#ifdef __SSE2__
	const __m128i all = _mm_set1_epi8(c);

	return scan_hits_16(at, all) | scan_hits_16(at + 16, all) << 16 |
	       scan_hits_16(at + 32, all) << 32 | scan_hits_16(at + 48, all) << 48;
#else
	uint64_t hits = 0;

	for (unsigned i = 0; i < SCAN_BLOCK; i++) {
		hits |= (uint64_t)(at[i] == c) << i;
	}
	return hits;
#endif
}

/* The first byte of at .. end that is `a` or `b`; `end` if there is none. */
static inline const char *scan_for(const char *at, const char *end, char a, char b)
{
	for (; at < end; at += SCAN_BLOCK) {
		uint64_t hits = scan_hits(at, a) | (a != b ? scan_hits(at, b) : 0);

		if (hits != 0) {
			at += __builtin_ctzll(hits);
			break;
		}
	}
	return at < end ? at : end;
}

/*
 * A hash of the first n <= SCAN_BLOCK bytes at `at`, and of zeros behind them: 32 bits of them plus 32 of the key, times the next 32 plus the next
 * of the key; the sum of these (NH, of UMAC). Whoever does not know the key finds no two texts of one length that meet more often than once in
 * 2^32. No branch depends on n.
 */
#ifdef __SSE2__
static inline __m128i scan_products_16(const char *at, const char *mask, const uint64_t *key)
{
	__m128i bytes = _mm_and_si128(_mm_loadu_si128((const __m128i *)(const void *)at),
				      _mm_loadu_si128((const __m128i *)(const void *)mask));
	__m128i words = _mm_add_epi32(bytes, _mm_loadu_si128((const __m128i *)(const void *)key));

	return _mm_mul_epu32(words, _mm_srli_epi64(words, 32));
}
#endif

static inline uint64_t scan_hash(const char *at, size_t n, const uint64_t key[SCAN_BLOCK / 8])
{
#ifdef __SSE2__
	static const char masks[2 * SCAN_BLOCK] = { [0 ... SCAN_BLOCK - 1] = -1 };
	const char *mask = masks + SCAN_BLOCK - n;
	__m128i sum = _mm_add_epi64(_mm_add_epi64(scan_products_16(at, mask, key),
						  scan_products_16(at + 16, mask + 16, key + 2)),
				    _mm_add_epi64(scan_products_16(at + 32, mask + 32, key + 4),
						  scan_products_16(at + 48, mask + 48, key + 6)));
	uint64_t hash;

	_mm_storel_epi64((__m128i *)(void *)&hash, _mm_add_epi64(sum, _mm_srli_si128(sum, 8)));
	return hash;
#else
	uint32_t words[SCAN_BLOCK / 4] = { 0 }, keys[SCAN_BLOCK / 4];
	uint64_t hash = 0;

	memcpy(words, at, n);
	memcpy(keys, key, SCAN_BLOCK);
	for (unsigned i = 0; i < SCAN_BLOCK / 4; i += 2) {
		hash += (uint64_t)(words[i] + keys[i]) * (words[i + 1] + keys[i + 1]);
	}
	return hash;
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

/* Bit i is set if words[i] is `word`. They lie at a multiple of 16 bytes. */
static inline unsigned scan_words(const uint32_t words[SCAN_WORDS], uint32_t word)
{
#ifdef __SSE2__
	const __m128i all = _mm_set1_epi32((int)word), none = _mm_setzero_si128();
	const __m128i *at = (const __m128i *)(const void *)words;
	__m128i same = _mm_packs_epi32(_mm_cmpeq_epi32(_mm_load_si128(at), all),
				       _mm_cmpeq_epi32(_mm_load_si128(at + 1), all));

	return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(same, none));
#else
	unsigned hits = 0;

	for (unsigned i = 0; i < SCAN_WORDS; i++) {
		hits |= (unsigned)(words[i] == word) << i;
	}
	return hits;
#endif
}
