#include "clients/c/loss.h"

#include "clients/c/counters.h"
#include "clients/c/include/ration.h"

#include <stdlib.h>
#include <string.h>

#define LOSS_MAX_TEXT 128u

struct loss {
	struct loss *next;
	const struct ration_counter *counter;
	int64_t amount;
	uint32_t code;
	char text[LOSS_MAX_TEXT];
};

void losses_add(struct losses *losses, const struct ration_counter *counter, uint32_t code,
		int64_t amount, const char *text, size_t text_len)
{
	struct loss *loss;

	if (losses->on_loss == NULL || (loss = malloc(sizeof(*loss))) == NULL) {
		return;
	}
	*loss = (struct loss){ .counter = counter, .amount = amount, .code = code };
	memcpy(loss->text, text, text_len < LOSS_MAX_TEXT ? text_len : LOSS_MAX_TEXT - 1);
	if (losses->first == NULL) {
		losses->first = loss;
	} else {
		losses->last->next = loss;
	}
	losses->last = loss;
}

static void report(const struct losses *losses, const struct loss *loss)
{
	const struct ration_loss public = {
		.code = (int)loss->code,
		.path = loss->counter->path,
		.amount = loss->amount,
		.text = loss->text,
	};

	losses->on_loss(losses->ctx, &public);
}

bool losses_deliver(struct losses *losses, pthread_mutex_t *lock)
{
	struct loss *loss = losses->first;

	if (loss == NULL || losses->delivering) {
		return false;
	}
	losses->first = losses->last = NULL;
	losses->delivering = true;
	(void)pthread_mutex_unlock(lock);
	while (loss != NULL) {
		struct loss *next = loss->next;

		report(losses, loss);
		free(loss);
		loss = next;
	}
	(void)pthread_mutex_lock(lock);
	losses->delivering = false;
	return true;
}

bool losses_settled(const struct losses *losses)
{
	return losses->first == NULL && !losses->delivering;
}

void losses_drop(struct losses *losses)
{
	while (losses->first != NULL) {
		struct loss *next = losses->first->next;

		free(losses->first);
		losses->first = next;
	}
	losses->last = NULL;
	losses->delivering = false;
}
