#pragma once
/*
 * quota-wire: the bodies of quota.h, from and to protobuf-c. Private to this room; request.c, reply-decode.c and reply-encode.c call it.
 */
#include "proto/wire.h"

/* Sets the body, if it is one of quota.h's. The type, *_NONE if it is another, or -ENOMEM and nothing is set. */
int quota_request_decode(struct arena *arena, const Ration__V1__Request *message,
			 struct request *ret_request);
int quota_reply_decode(struct arena *arena, const Ration__V1__Reply *message,
		       struct reply *ret_reply);

/* Sets the body of `message`, in the arena. 0; -ENOMEM; -EINVAL if the type is none of quota.h's. */
int quota_request_encode(struct arena *arena, const struct request *request,
			 Ration__V1__Request *message);
int quota_reply_encode(struct arena *arena, const struct reply *reply, Ration__V1__Reply *message);

/* ---- what both directions have ---- */

/* A message that is not there, NULL, has the default in all its fields. */
struct rule_window wire_window(const Ration__V1__Window *window);
struct rule_limits wire_limits(const Ration__V1__QuotaLimits *limits);
struct rule wire_rule(const Ration__V1__Rule *rule);

/* A rule with what it points to. It must stay where it is set, and borrows its strings. */
struct wire_rule {
	Ration__V1__Rule rule;
	Ration__V1__Window window;
	Ration__V1__QuotaLimits limits;
};

void wire_set_window(const struct rule_window *window, Ration__V1__Window *ret_window);
void wire_set_limits(const struct rule_limits *limits, Ration__V1__QuotaLimits *ret_limits);
void wire_set_rule(const struct rule *rule, struct wire_rule *ret_rule);
