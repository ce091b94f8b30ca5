#pragma once
/*
 * siphash: SipHash-1-3, a keyed hash of bytes (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012;
 * the variant with 1 compression and 3 finalization rounds, as Rust's and Ruby's tables use it). Without the
 * key nobody can choose inputs that collide. Pure, any thread.
 *
 * Lengths up to 2^56; the result is the same on every byte order.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct siphash_key {
	uint64_t k0, k1;
};

static inline uint64_t siphash_rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void siphash_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = siphash_rotate(v[1], 13) ^ v[0];
	v[3] = siphash_rotate(v[3], 16) ^ v[2];
	v[0] = siphash_rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = siphash_rotate(v[1], 17) ^ v[2];
	v[3] = siphash_rotate(v[3], 21) ^ v[0];
	v[2] = siphash_rotate(v[2], 32);
}

static inline void siphash_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	siphash_round(v);
	v[0] ^= word;
}

/* Up to 8 bytes, little-endian, the rest zero. */
static inline uint64_t siphash_load(const unsigned char *bytes, size_t n)
{
	uint64_t word = 0;

	memcpy(&word, bytes, n);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

/*
 * The last len & 7 bytes of len: cut from the last eight if there are so many. To copy a number of bytes that is not known takes a call, and then to
 * wait for what it has written.
 */
static inline uint64_t siphash_load_last(const unsigned char *bytes, size_t len)
{
	unsigned n = (unsigned)len & 7;

	if (n == 0) {
		return 0;
	}
	return len < 8 ? siphash_load(bytes, n) : siphash_load(bytes + len - 8, 8) >> (64 - 8 * n);
}

static inline uint64_t siphash(const struct siphash_key *key, const void *data, size_t len)
{
	const unsigned char *bytes = data;
	size_t whole = len & ~(size_t)7;
	uint64_t v[4] = {
		key->k0 ^ UINT64_C(0x736f6d6570736575),
		key->k1 ^ UINT64_C(0x646f72616e646f6d),
		key->k0 ^ UINT64_C(0x6c7967656e657261),
		key->k1 ^ UINT64_C(0x7465646279746573),
	};

	for (size_t i = 0; i < whole; i += 8) {
		siphash_word(v, siphash_load(bytes + i, 8));
	}
	siphash_word(v, (uint64_t)len << 56 | siphash_load_last(bytes, len));
	v[2] ^= 0xff;
	siphash_round(v);
	siphash_round(v);
	siphash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
