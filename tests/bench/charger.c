#include "tests/bench/charger.h"

#include "proto/frame.h"
#include "tests/bench/report.h"
#include "tests/bench/tarantool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_BYTES 312u
#define FIRST_NUMBER (1u << 21)	     /* from here on a number takes four bytes, ... */
#define LAST_NUMBER ((1u << 28) - 1) /* ... so that it can be exchanged in a ready-made frame */

struct charger_request {
	uint16_t len;
	uint16_t number_at; /* of rationd */
	uint8_t bytes[REQUEST_BYTES];
};

/* ---- the tree ---- */

void charger_group(uint32_t group, char ret_path[32])
{
	(void)snprintf(ret_path, 32, CHARGER_METRIC "/%05u", group);
}

void charger_tree_init(struct charger_tree *tree, uint32_t count, uint32_t groups)
{
	*tree = (struct charger_tree){
		.paths = calloc(count, sizeof(*tree->paths)),
		.count = count,
		.groups = groups,
	};
	report_require(tree->paths != NULL, "no memory");
	for (uint32_t i = 0; i < count; i++) {
		(void)snprintf(tree->paths[i].bytes, sizeof(tree->paths[i]),
			       CHARGER_METRIC "/%05u/%015u", i % groups, i);
	}
}

void charger_tree_deinit(struct charger_tree *tree)
{
	free(tree->paths);
}

/* ---- redis ---- */

static const char script[] = "local n = tonumber(ARGV[1])\n"
			     "for i = 1, 3 do\n"
			     "  local used = tonumber(redis.call('GET', KEYS[i]) or 0)\n"
			     "  if used + n > tonumber(ARGV[i + 1]) then return -i end\n"
			     "end\n"
			     "for i = 1, 3 do redis.call('INCRBY', KEYS[i], n) end\n"
			     "return 1\n";

static const char tuned_script[] =
	"local call, n, a, b, c = redis.call, ARGV[1], KEYS[1], KEYS[2], KEYS[3]\n"
	"local used = call('MGET', a, b, c)\n"
	"if (used[1] or 0) + n > ARGV[2] + 0 then return -1 end\n"
	"if (used[2] or 0) + n > ARGV[3] + 0 then return -2 end\n"
	"if (used[3] or 0) + n > ARGV[4] + 0 then return -3 end\n"
	"call('INCRBY', a, n) call('INCRBY', b, n) call('INCRBY', c, n)\n"
	"return 1\n";

static size_t make_evalsha(uint8_t *out, size_t room, struct text sha, const char *path)
{
	char max[24];
	const size_t group_len = strlen(CHARGER_METRIC) + 6;

	(void)snprintf(max, sizeof(max), "%lld", (long long)CHARGER_MAX);

	const struct text words[] = {
		text_of("EVALSHA"),
		sha,
		text_of("3"),
		text_of(CHARGER_METRIC),
		{ .at = path, .len = group_len },
		text_of(path),
		text_of("1"),
		text_of(max),
		text_of(max),
		text_of(max),
	};

	return link_redis_command(out, room, words, sizeof(words) / sizeof(words[0]));
}

static void make_redis(struct charger *charger)
{
	const char *text = charger->kind == CHARGER_REDIS_TUNED ? tuned_script : script;
	const struct text words[] = { text_of("SCRIPT"), text_of("LOAD"), text_of(text) };
	char sha[64];
	uint8_t command[1024];

	link_send(&charger->link, command, link_redis_command(command, sizeof(command), words, 3));
	link_redis_text(&charger->link, sha, sizeof(sha));
	for (uint32_t i = 0; i < charger->tree->count; i++) {
		struct charger_request *request = &charger->requests[i];

		request->len = (uint16_t)make_evalsha(request->bytes, sizeof(request->bytes),
						      text_of(sha), charger->tree->paths[i].bytes);
	}
}

/* ---- tarantool ---- */

static void make_tarantool(struct charger *charger)
{
	for (uint32_t i = 0; i < charger->tree->count; i++) {
		struct charger_request *request = &charger->requests[i];

		request->len = (uint16_t)tarantool_call(request->bytes, "charge",
							charger->tree->paths[i].bytes, 1);
	}
}

static void limit_tarantool(struct link *link, const struct charger_tree *tree)
{
	uint8_t bytes[TARANTOOL_MAX_CALL];
	char group[32];

	link_send(link, bytes, tarantool_call(bytes, "limit", CHARGER_METRIC, CHARGER_MAX));
	(void)tarantool_number(link);
	for (uint32_t i = 0; i < tree->groups; i++) {
		charger_group(i, group);
		link_send(link, bytes, tarantool_call(bytes, "limit", group, CHARGER_MAX));
		(void)tarantool_number(link);
	}
	for (uint32_t i = 0; i < tree->count; i++) {
		link_send(link, bytes,
			  tarantool_call(bytes, "limit", tree->paths[i].bytes, CHARGER_MAX));
		(void)tarantool_number(link);
	}
}

/* ---- rationd ---- */

static size_t skip_varint(const uint8_t *bytes, size_t at)
{
	while (bytes[at] & 0x80) {
		at++;
	}
	return at + 1;
}

/* Where the number is: after the frame's length, the id, the tag of Charge and its length, each with its tag but the first. */
static size_t find_number(const uint8_t *bytes)
{
	size_t at = skip_varint(bytes, 0);

	at = skip_varint(bytes, at + 1);
	at = skip_varint(bytes, at);
	at = skip_varint(bytes, at);
	report_require(bytes[at] == 0x08, "a charge is not laid out as expected");
	return at + 1;
}

static void make_rationd(struct charger *charger)
{
	for (uint32_t i = 0; i < charger->tree->count; i++) {
		struct charger_request *to = &charger->requests[i];
		const struct charge_item item = { .path = text_of(charger->tree->paths[i].bytes),
						  .amount = 1 };
		const struct request request = {
			.id = 1,
			.type = REQUEST_CHARGE,
			.charge = { .number = FIRST_NUMBER, .n_items = 1, .items = &item },
		};
		size_t len;
		const uint8_t *bytes = link_encode(&charger->link, &request, &len);

		report_require(len <= sizeof(to->bytes), "a charge is too long");
		memcpy(to->bytes, bytes, len);
		to->len = (uint16_t)len;
		to->number_at = (uint16_t)find_number(bytes);
	}
}

static void stamp(uint8_t *at, uint32_t number)
{
	report_require(number <= LAST_NUMBER, "out of operation numbers: fewer rounds, please");
	at[0] = (uint8_t)(number | 0x80);
	at[1] = (uint8_t)(number >> 7 | 0x80);
	at[2] = (uint8_t)(number >> 14 | 0x80);
	at[3] = (uint8_t)(number >> 21);
}

static void limit_rationd(struct link *link)
{
	static const char *const patterns[] = { CHARGER_METRIC, CHARGER_METRIC "/*",
						CHARGER_METRIC "/*/*" };
	struct reply reply;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		const struct request request = {
			.id = 1,
			.type = REQUEST_QUOTA_SET,
			.quota_set = { .pattern = text_of(patterns[i]),
				       .limits = { .has_max = true, .max = CHARGER_MAX } },
		};

		link_request(link, &request);
		link_receive(link, &reply);
		report_require(reply.type == REPLY_QUOTA_OK, "a limit was not set");
	}
}

static void receive_charged(struct link *link, size_t n)
{
	struct reply reply;

	for (size_t i = 0; i < n; i++) {
		link_receive(link, &reply);
		report_require(reply.type == REPLY_CHARGED && reply.charged.granted &&
				       !reply.charged.duplicate,
			       "a charge was not granted");
	}
}

/* ---- all ---- */

void charger_greet(struct link *link, enum charger_kind kind, uint8_t session)
{
	if (kind == CHARGER_RATIOND) {
		link_hello_at(link, session, 1, FIRST_NUMBER);
	} else if (kind == CHARGER_TARANTOOL) {
		tarantool_greet(link);
	}
}

void charger_limit(struct link *link, enum charger_kind kind, const struct charger_tree *tree)
{
	if (kind == CHARGER_RATIOND) {
		limit_rationd(link);
	} else if (kind == CHARGER_TARANTOOL) {
		limit_tarantool(link, tree);
	}
}

void charger_open(struct charger *charger, enum charger_kind kind, const struct server *server,
		  const struct charger_tree *tree, uint8_t session)
{
	static void (*const make[])(struct charger *) = {
		[CHARGER_RATIOND] = make_rationd,
		[CHARGER_REDIS] = make_redis,
		[CHARGER_REDIS_TUNED] = make_redis,
		[CHARGER_TARANTOOL] = make_tarantool,
	};

	*charger = (struct charger){
		.kind = kind,
		.tree = tree,
		.requests = calloc(tree->count, sizeof(*charger->requests)),
		.next_number = FIRST_NUMBER,
		.out = malloc((size_t)CHARGER_MAX_PIPELINE * REQUEST_BYTES),
	};
	report_require(charger->requests != NULL && charger->out != NULL, "no memory");
	link_open(&charger->link, server);
	charger_greet(&charger->link, kind, session);
	make[kind](charger);
}

void charger_close(struct charger *charger)
{
	link_close(&charger->link);
	free(charger->requests);
	free(charger->out);
}

void charger_send(struct charger *charger, const uint32_t *leaves, size_t n)
{
	size_t used = 0;

	report_require(n <= CHARGER_MAX_PIPELINE, "a pipeline is too long");
	for (size_t i = 0; i < n; i++) {
		const struct charger_request *request = &charger->requests[leaves[i]];

		memcpy(charger->out + used, request->bytes, request->len);
		if (charger->kind == CHARGER_RATIOND) {
			stamp(charger->out + used + request->number_at, charger->next_number++);
		}
		used += request->len;
	}
	link_send(&charger->link, charger->out, used);
	charger->charged += (int64_t)n;
}

void charger_receive(struct charger *charger, size_t n)
{
	switch (charger->kind) {
	case CHARGER_RATIOND:
		receive_charged(&charger->link, n);
		break;
	case CHARGER_TARANTOOL:
		for (size_t i = 0; i < n; i++) {
			report_require(tarantool_number(&charger->link) == 1,
				       "Tarantool refused a charge");
		}
		break;
	case CHARGER_REDIS:
	case CHARGER_REDIS_TUNED:
		link_redis_numbers(&charger->link, n);
		break;
	}
}

bool charger_is_answered(const struct charger *charger)
{
	const uint8_t *at = charger->link.bytes + charger->link.off, *message;
	size_t len = charger->link.len - charger->link.off, message_len, used;

	switch (charger->kind) {
	case CHARGER_RATIOND:
		return frame_find(at, len, MESSAGE_MAX_FRAME, &message, &message_len, &used) ==
		       FRAME_OK;
	case CHARGER_TARANTOOL:
		return tarantool_is_whole(at, len);
	default:
		return len > 0 && at[len - 1] == '\n';
	}
}

int64_t charger_usage(struct charger *charger, const char *path)
{
	uint8_t bytes[TARANTOOL_MAX_CALL];

	switch (charger->kind) {
	case CHARGER_RATIOND:
		return link_usage(&charger->link, text_of(path));
	case CHARGER_TARANTOOL:
		link_send(&charger->link, bytes, tarantool_call(bytes, "usage", path, 0));
		return tarantool_number(&charger->link);
	default:
		return link_redis_get(&charger->link, text_of(path));
	}
}
