#include "proto/arena.h"

#include <string.h>

#include "tests/support/test.h"

static void test_memory_is_aligned_and_ones_own(void **state)
{
	(void)state;
	struct arena arena = ARENA_INIT(SIZE_MAX);
	unsigned char *at[200];
	for (size_t i = 0; i < 200; i++) {
		at[i] = arena_alloc(&arena, i * 7);
		assert_non_null(at[i]);
		assert_int_equal((uintptr_t)at[i] % _Alignof(max_align_t), 0);
		memset(at[i], (int)i, i * 7);
	}
	for (size_t i = 0; i < 200; i++) {
		for (size_t k = 0; k < i * 7; k++) {
			assert_int_equal(at[i][k], i);
		}
	}
	arena_deinit(&arena);
}

static void test_the_limit_is_exact(void **state)
{
	(void)state;
	struct arena arena = ARENA_INIT(64);
	assert_non_null(arena_alloc(&arena, 64));
	assert_null(arena_alloc(&arena, 1));
	assert_null(arena_alloc(&arena, 0));
	arena_reset(&arena);
	assert_null(arena_alloc(&arena, 65));
	assert_non_null(arena_alloc(&arena, 48));
	assert_null(arena_alloc(&arena, 17));
	assert_non_null(arena_alloc(&arena, 16));
	arena_deinit(&arena);
}

static void test_sizes_that_wrap_are_refused(void **state)
{
	(void)state;
	struct arena arena = ARENA_INIT(SIZE_MAX);
	assert_null(arena_alloc(&arena, SIZE_MAX));
	assert_null(arena_alloc(&arena, SIZE_MAX - 14));
	assert_null(arena_alloc(
		&arena, SIZE_MAX - 15)); /* does not wrap when rounded, but with the block's head */
	assert_non_null(arena_alloc(&arena, 1));
	assert_null(arena_alloc(&arena, SIZE_MAX - 15));
	arena_deinit(&arena);
}

static void test_a_reset_keeps_the_memory_of_small_frames(void **state)
{
	(void)state;
	struct arena arena = ARENA_INIT(SIZE_MAX);
	void *first = NULL;
	for (int round = 0; round < 5; round++) {
		arena_reset(&arena);
		assert_int_equal(arena.used, 0);
		/* More than the first block holds: the second round finds the larger one. */
		void *at = arena_alloc(&arena, ARENA_BLOCK_MIN);
		assert_non_null(arena_alloc(&arena, ARENA_BLOCK_MIN));
		if (round == 1) {
			first = at;
		}
		if (round > 1) {
			assert_ptr_equal(at, first);
		}
	}
	arena_deinit(&arena);
	assert_null(arena.blocks);
}

/* Also where one block of the usual sizes is not enough, the frame after the next finds all in one. */
static void test_memory_of_several_blocks_becomes_one(void **state)
{
	(void)state;
	struct arena arena = ARENA_INIT(SIZE_MAX);
	const size_t n = ARENA_BLOCK_MAX / 1024 * 3 / 2;
	unsigned char *first = NULL;
	for (int round = 0; round < 5; round++) {
		arena_reset(&arena);
		unsigned char *at = arena_alloc(&arena, 1024);
		for (size_t i = 1; i < n; i++) {
			unsigned char *next = arena_alloc(&arena, 1024);
			assert_true(round == 0 || next == at + i * 1024);
		}
		assert_true(round < 2 || at == first);
		first = at;
	}
	/* and what does not fit one that may be kept leaves no more than that */
	for (size_t i = 0; i < 3 * ARENA_KEEP / 1024; i++) {
		assert_non_null(arena_alloc(&arena, 1024));
	}
	arena_reset(&arena);
	assert_int_equal(arena.used, 0);
	arena_deinit(&arena);
	assert_int_equal(arena.first, 0);
}

static void test_a_reset_drops_what_a_huge_frame_took(void **state)
{
	(void)state;
	struct arena arena = ARENA_INIT(SIZE_MAX);
	assert_non_null(arena_alloc(&arena, ARENA_KEEP + 1));
	arena_reset(&arena);
	assert_null(arena.blocks);
	assert_non_null(arena_alloc(&arena, ARENA_KEEP));
	arena_reset(&arena);
	assert_non_null(arena.blocks);
	arena_deinit(&arena);
	arena_deinit(&arena);
}

static void test_usable_after_deinit(void **state)
{
	(void)state;
	struct arena arena = ARENA_INIT(16);
	assert_non_null(arena_alloc(&arena, 16));
	arena_deinit(&arena);
	assert_non_null(arena_alloc(&arena, 16));
	assert_null(arena_alloc(&arena, 1));
	arena_deinit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_is_aligned_and_ones_own),
		cmocka_unit_test(test_the_limit_is_exact),
		cmocka_unit_test(test_sizes_that_wrap_are_refused),
		cmocka_unit_test(test_a_reset_keeps_the_memory_of_small_frames),
		cmocka_unit_test(test_memory_of_several_blocks_becomes_one),
		cmocka_unit_test(test_a_reset_drops_what_a_huge_frame_took),
		cmocka_unit_test(test_usable_after_deinit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
