/*
 * siphash: the values of SipHash-1-3 for the key 00 01 .. 0f and the messages "", 00, 00 01, ... 00 .. 16.
 */
#include "lib/names/siphash.h"

#include "tests/support/test.h"

static void test_vectors(void **state)
{
	/* clang-format off */
	static const uint64_t expected[] = {
		UINT64_C(0xabac0158050fc4dc), UINT64_C(0xc9f49bf37d57ca93), UINT64_C(0x82cb9b024dc7d44d), UINT64_C(0x8bf80ab8e7ddf7fb),
		UINT64_C(0xcf75576088d38328), UINT64_C(0xdef9d52f49533b67), UINT64_C(0xc50d2b50c59f22a7), UINT64_C(0xd3927d989bb11140),
		UINT64_C(0x369095118d299a8e), UINT64_C(0x25a48eb36c063de4), UINT64_C(0x79de85ee92ff097f), UINT64_C(0x70c118c1f94dc352),
		UINT64_C(0x78a384b157b4d9a2), UINT64_C(0x306f760c1229ffa7), UINT64_C(0x605aa111c0f95d34), UINT64_C(0xd320d86d2a519956),
		UINT64_C(0xcc4fdd1a7d908b66), UINT64_C(0x9cf2689063dbd80c), UINT64_C(0x8ffc389cb473e63e), UINT64_C(0xf21f9de58d297d1c),
		UINT64_C(0xc0dc2f46a6cce040), UINT64_C(0xb992abfe2b45f844), UINT64_C(0x7ffe7b9ba320872e), UINT64_C(0x525a0e7fdae6c123),
	};
	/* clang-format on */
	const struct siphash_key key = { UINT64_C(0x0706050403020100),
					 UINT64_C(0x0f0e0d0c0b0a0908) };
	unsigned char message[64];

	(void)state;
	for (size_t len = 0; len < sizeof(expected) / sizeof(*expected); len++) {
		message[len] = (unsigned char)len;
		assert_true(siphash(&key, message, len) == expected[len]);
	}
}

static void test_key_matters(void **state)
{
	const struct siphash_key keys[] = { { 1, 2 }, { 1, 3 }, { 2, 2 } };

	(void)state;
	assert_true(siphash(&keys[0], "a", 1) != siphash(&keys[1], "a", 1));
	assert_true(siphash(&keys[0], "a", 1) != siphash(&keys[2], "a", 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_key_matters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
