#include "clients/c/kept.h"

#include "clients/c/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int take(void *ctx, const struct reply *reply, const uint8_t *message, size_t len)
{
	struct kept *kept = ctx;

	if (reply->type != kept->type) {
		return -EBADMSG;
	}
	free(kept->message);
	kept->message = malloc(len > 0 ? len : 1);
	if (kept->message == NULL) {
		return -ENOMEM;
	}
	memcpy(kept->message, message, len);
	kept->len = len;
	return CALL_DONE;
}

int kept_ask(struct kept *kept, struct call *call, struct request *request, int64_t deadline,
	     enum reply_type type)
{
	const struct call_sink sink = { .take = take, .ctx = kept };
	int r;

	kept->type = type;
	r = call_ask(call, request, deadline, &sink);
	if (r != 0) {
		return r;
	}
	r = reply_decode(&kept->arena, kept->message, kept->len, &kept->reply);
	return r < 0 ? error_set(r, "%s", strerror(-r)) : 0;
}

void kept_deinit(struct kept *kept)
{
	free(kept->message);
	arena_deinit(&kept->arena);
	*kept = (struct kept)KEPT_INIT;
}
