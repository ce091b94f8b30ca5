#pragma once
/*
 * loss: reports of what can't be counted, on their way to the program's on_loss.
 *
 * They are noted under the client's lock and delivered without it, so that the program's function may take its time and may add.
 *
 * Threads: all under the client's lock.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ration_counter;
struct ration_loss;
struct loss;

struct losses {
	void (*on_loss)(void *ctx, const struct ration_loss *loss); /* NULL: nothing is noted */
	void *ctx;
	struct loss *first, *last;
	bool delivering;
};

/* `text` needs no terminator; what is beyond 127 bytes is cut off. Without memory the report itself is lost. */
void losses_add(struct losses *losses, const struct ration_counter *counter, uint32_t code,
		int64_t amount, const char *text, size_t text_len);

/* Have all that is noted reported, with `lock` given up during the calls. True if there was any. */
bool losses_deliver(struct losses *losses, pthread_mutex_t *lock);

/* Nothing is noted and no call is under way. */
bool losses_settled(const struct losses *losses);

/* Forget what is noted, also a call that was under way in the parent of a fork. */
void losses_drop(struct losses *losses);
