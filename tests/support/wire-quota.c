#include "tests/support/wire-quota.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

struct reply wire_greet(struct wire *wire, uint32_t session, uint32_t lifetime_ms, uint64_t next)
{
	struct request request = wire_hello_request(1, lifetime_ms, 1);
	uint32_t bytes[MESSAGE_SESSION_BYTES / 4] = { session, session, session, session };
	struct reply reply;

	request.hello.session = (struct text){ .at = (const char *)bytes, .len = sizeof(bytes) };
	request.hello.next_operation = next;
	reply = wire_call(wire, &request);
	assert_int_equal(reply.type, REPLY_WELCOME);
	return reply;
}

struct request wire_charge_request(uint64_t number, const struct charge_item *items, size_t n)
{
	return (struct request){ .type = REQUEST_CHARGE,
				 .charge = { .number = number, .n_items = n, .items = items } };
}

static void expect_type(const struct reply *reply, enum reply_type type)
{
	if (reply->type == REPLY_ERROR) {
		(void)fprintf(stderr, "error %u: %.*s\n", reply->error.code,
			      (int)reply->error.text.len, reply->error.text.at);
	}
	assert_int_equal(reply->type, type);
}

bool wire_charge(struct wire *wire, uint64_t number, const char *path, int64_t amount,
		 struct reply *ret_reply)
{
	const struct charge_item item = { .path = text_of(path), .amount = amount };
	const struct request request = wire_charge_request(number, &item, 1);
	struct reply reply = wire_call(wire, &request);

	expect_type(&reply, REPLY_CHARGED);
	assert_int_equal(reply.charged.number, number);
	if (ret_reply != NULL) {
		*ret_reply = reply;
	}
	return reply.charged.granted;
}

uint64_t wire_send_charge(struct wire *wire, uint64_t number, const char *path, int64_t amount,
			  uint32_t wait_ms)
{
	const struct charge_item item = { .path = text_of(path), .amount = amount };
	struct request request = wire_charge_request(number, &item, 1);

	request.charge.wait_ms = wait_ms;
	return wire_send(wire, &request);
}

bool wire_uncharge(struct wire *wire, uint64_t number, const char *path, int64_t amount)
{
	const struct request request = {
		.type = REQUEST_UNCHARGE,
		.uncharge = { .number = number, .path = text_of(path), .amount = amount }
	};
	struct reply reply = wire_call(wire, &request);

	expect_type(&reply, REPLY_UNCHARGED);
	assert_int_equal(reply.uncharged.number, number);
	return reply.uncharged.duplicate;
}

static int64_t leased(struct wire *wire, const struct request *request, uint64_t number,
		      uint32_t lease)
{
	struct reply reply = wire_call(wire, request);

	expect_type(&reply, REPLY_LEASED);
	assert_int_equal(reply.leased.number, number);
	assert_int_equal(reply.leased.lease, lease);
	return reply.leased.granted;
}

int64_t wire_lease(struct wire *wire, uint64_t number, uint32_t lease, const char *path,
		   int64_t want, uint32_t ttl_ms)
{
	const struct request request = {
		.type = REQUEST_LEASE,
		.lease = { .number = number,
			   .lease = lease,
			   .path = text_of(path),
			   .want = want,
			   .ttl_ms = ttl_ms },
	};

	return leased(wire, &request, number, lease);
}

int64_t wire_lease_renew(struct wire *wire, uint64_t number, uint32_t lease, int64_t spent,
			 int64_t want)
{
	const struct request request = {
		.type = REQUEST_LEASE_RENEW,
		.lease_renew = { .number = number, .lease = lease, .spent = spent, .want = want },
	};

	return leased(wire, &request, number, lease);
}

int64_t wire_lease_return(struct wire *wire, uint64_t number, uint32_t lease, int64_t spent)
{
	const struct request request = {
		.type = REQUEST_LEASE_RETURN,
		.lease_return = { .number = number, .lease = lease, .spent = spent },
	};
	struct reply reply = wire_call(wire, &request);

	expect_type(&reply, REPLY_LEASE_RETURNED);
	assert_int_equal(reply.lease_returned.number, number);
	assert_int_equal(reply.lease_returned.lease, lease);
	return reply.lease_returned.returned;
}

void wire_quota_max(struct wire *wire, const char *pattern, int64_t max)
{
	const struct request set = {
		.type = REQUEST_QUOTA_SET,
		.quota_set = { .pattern = text_of(pattern),
			       .limits = { .has_max = true, .max = max },
			       .source = text_of("") },
	};
	const struct request remove = {
		.type = REQUEST_QUOTA_REMOVE,
		.quota_remove = { .pattern = text_of(pattern) },
	};
	struct reply reply = wire_call(wire, max >= 0 ? &set : &remove);

	expect_type(&reply, REPLY_QUOTA_OK);
}

void wire_gauge(struct wire *wire, const char *metric)
{
	const struct request request = {
		.type = REQUEST_METRIC_SET,
		.metric_set = { .name = text_of(metric), .kind = KIND_GAUGE },
	};
	struct reply reply = wire_call(wire, &request);

	expect_type(&reply, REPLY_METRIC);
}

int64_t wire_usage(struct wire *wire, const char *path)
{
	const struct request request = { .type = REQUEST_QUOTA_EXPLAIN,
					 .quota_explain = text_of(path) };
	struct reply reply = wire_call(wire, &request);

	expect_type(&reply, REPLY_QUOTA_EXPLAINED);
	for (size_t i = 0; i < reply.quota_explained.n_levels; i++) {
		const struct explained_level *level = &reply.quota_explained.levels[i];

		if (level->window.kind == RULE_WINDOW_NONE && wire_text_is(level->path, path)) {
			return level->usage;
		}
	}
	fail_msg("%s has no limit without a window", path);
	return 0;
}

void wire_fails(struct wire *wire, const struct request *request, enum code code, const char *text,
		uint64_t operation)
{
	struct reply reply = wire_call(wire, request);

	assert_int_equal(reply.type, REPLY_ERROR);
	if (reply.error.code != code || !wire_text_has(reply.error.text, text)) {
		(void)fprintf(stderr, "wanted %u with '%s'; got %u: %.*s\n", code, text,
			      reply.error.code, (int)reply.error.text.len, reply.error.text.at);
	}
	assert_int_equal(reply.error.code, code);
	assert_true(wire_text_has(reply.error.text, text));
	assert_int_equal(reply.error.operation, operation);
}
