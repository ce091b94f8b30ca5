#include "tests/bench/link.h"

#include "proto/frame.h"
#include "tests/bench/report.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define LINK_BYTES \
	((size_t)4 << 20) /* more than a frame, and than what redis answers to one pipeline */
#define INTERN_PATHS 1024u
#define INTERN_AHEAD 16u /* requests under way */

void link_open(struct link *link, const struct server *server)
{
	const struct timeval patience = { .tv_sec = 30 };

	*link = (struct link){
		.fd = server_connect(server),
		.bytes = malloc(LINK_BYTES),
		.size = LINK_BYTES,
		.in = ARENA_INIT((size_t)64 << 20),
		.out = ARENA_INIT((size_t)64 << 20),
	};
	report_require(link->bytes != NULL, "no memory");
	report_require(setsockopt(link->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ==
			       0,
		       "setsockopt: %s", strerror(errno));
}

void link_close(struct link *link)
{
	(void)close(link->fd);
	free(link->bytes);
	arena_deinit(&link->in);
	arena_deinit(&link->out);
}

void link_send(struct link *link, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	while (len > 0) {
		ssize_t n = send(link->fd, at, len, MSG_NOSIGNAL);

		report_require(n > 0, "send: %s", strerror(errno));
		at += n;
		len -= (size_t)n;
	}
}

void link_fill(struct link *link)
{
	struct pollfd readable = { .fd = link->fd, .events = POLLIN };
	ssize_t n;

	if (link->off == link->len) {
		link->off = link->len = 0;
	} else if (link->size - link->len < link->size / 4) {
		memmove(link->bytes, link->bytes + link->off, link->len - link->off);
		link->len -= link->off;
		link->off = 0;
	}
	report_require(link->len < link->size, "a reply is too long");
	/* As libration waits: who waits in recv is woken by a unix socket also when the server has read, and at its cost. */
	(void)poll(&readable, 1, -1);
	n = recv(link->fd, link->bytes + link->len, link->size - link->len, 0);
	report_require(n > 0, "recv: %s", n == 0 ? "the server has closed" : strerror(errno));
	link->len += (size_t)n;
}

/* ---- rationd ---- */

const uint8_t *link_encode(struct link *link, const struct request *request, size_t *ret_len)
{
	const uint8_t *bytes = NULL;

	arena_reset(&link->out);
	report_require(request_encode(&link->out, request, &bytes, ret_len) == 0,
		       "a request can't be encoded");
	return bytes;
}

void link_request(struct link *link, const struct request *request)
{
	size_t len;
	const uint8_t *bytes = link_encode(link, request, &len);

	link_send(link, bytes, len);
}

static void receive(struct link *link, struct reply *ret_reply)
{
	const uint8_t *message;
	size_t message_len, used;
	enum frame_error r;

	while ((r = frame_find(link->bytes + link->off, link->len - link->off, MESSAGE_MAX_FRAME,
			       &message, &message_len, &used)) == FRAME_E_SHORT) {
		link_fill(link);
	}
	arena_reset(&link->in);
	report_require(r == FRAME_OK &&
			       reply_decode(&link->in, message, message_len, ret_reply) == 0,
		       "a reply can't be decoded");
	link->off += used;
	if (ret_reply->type == REPLY_ERROR || ret_reply->type == REPLY_GOODBYE) {
		report_require(false, "the daemon answered: %.*s", (int)ret_reply->error.text.len,
			       ret_reply->error.text.at);
	}
}

void link_receive(struct link *link, struct reply *ret_reply)
{
	do {
		receive(link, ret_reply);
	} while (ret_reply->type == REPLY_DURABLE);
}

void link_hello(struct link *link, uint8_t session, uint64_t next_batch)
{
	link_hello_at(link, session, next_batch, 1);
}

void link_hello_at(struct link *link, uint8_t session, uint64_t next_batch, uint64_t next_operation)
{
	char bytes[MESSAGE_SESSION_BYTES];
	struct request request = {
		.id = 1,
		.type = REQUEST_HELLO,
		.hello = {
			.version = MESSAGE_VERSION,
			.session = { .at = bytes, .len = session != 0 ? sizeof(bytes) : 0 },
			.next_batch = next_batch,
			.agent = text_of("bench"),
			.next_operation = next_operation,
		},
	};
	struct reply reply;

	memset(bytes, session, sizeof(bytes));
	link_request(link, &request);
	link_receive(link, &reply);
	report_require(reply.type == REPLY_WELCOME, "Hello was not answered with Welcome");
}

void link_applied(struct link *link, size_t n)
{
	struct reply reply;

	for (size_t i = 0; i < n; i++) {
		link_receive(link, &reply);
		report_require(reply.type == REPLY_APPLIED && !reply.applied.duplicate &&
				       reply.applied.n_errors == 0,
			       "a batch was not counted");
	}
}

static void interned(struct link *link)
{
	struct reply reply;

	link_receive(link, &reply);
	report_require(reply.type == REPLY_INTERNED && reply.interned.n_errors == 0,
		       "a path got no handle");
}

void link_intern(struct link *link, const char *paths, size_t stride, size_t len, uint32_t n)
{
	static struct text texts[INTERN_PATHS];
	uint32_t under_way = 0;

	for (uint32_t first = 0; first < n; first += INTERN_PATHS) {
		uint32_t some = n - first < INTERN_PATHS ? n - first : INTERN_PATHS;
		const struct request request = {
			.id = 1,
			.type = REQUEST_INTERN,
			.intern = { .first_handle = first, .n_paths = some, .paths = texts },
		};

		for (uint32_t i = 0; i < some; i++) {
			texts[i] = (struct text){ .at = paths + (first + i) * stride, .len = len };
		}
		link_request(link, &request);
		if (++under_way > INTERN_AHEAD) {
			interned(link);
			under_way--;
		}
	}
	for (; under_way > 0; under_way--) {
		interned(link);
	}
}

int64_t link_total(struct link *link, struct text path)
{
	const struct request request = {
		.id = 1,
		.type = REQUEST_GET,
		.get = { .n_paths = 1, .paths = &path, .consistency = CONSISTENCY_EXACT },
	};
	struct reply reply;

	link_request(link, &request);
	link_receive(link, &reply);
	report_require(reply.type == REPLY_VALUES && reply.values.n_values == 1 &&
			       reply.values.values[0].code == CODE_OK,
		       "no value of %.*s", (int)path.len, path.at);
	return reply.values.values[0].total;
}

int64_t link_usage(struct link *link, struct text path)
{
	const struct request request = {
		.id = 1,
		.type = REQUEST_QUOTA_EXPLAIN,
		.quota_explain = path,
	};
	const struct explained_level *level;
	struct reply reply;

	link_request(link, &request);
	link_receive(link, &reply);
	report_require(reply.type == REPLY_QUOTA_EXPLAINED && reply.quota_explained.n_levels > 0,
		       "no limit of %.*s", (int)path.len, path.at);
	level = &reply.quota_explained.levels[0];
	report_require(level->path.len == path.len && level->window.kind == RULE_WINDOW_NONE,
		       "no limit of %.*s itself", (int)path.len, path.at);
	return level->usage;
}

/* ---- redis ---- */

void link_redis_numbers(struct link *link, size_t n)
{
	while (n > 0) {
		const uint8_t *at = link->bytes + link->off;
		const uint8_t *stop = memchr(at, '\n', link->len - link->off);

		if (stop == NULL) {
			link_fill(link);
			continue;
		}
		report_require(*at == ':', "redis answered: %.*s", (int)(stop - at),
			       (const char *)at);
		link->off += (size_t)(stop + 1 - at);
		n--;
	}
}

void link_redis_text(struct link *link, char *ret_text, size_t room)
{
	int n_lines = 0;

	while (n_lines < 2) {
		const uint8_t *at = link->bytes + link->off;
		const uint8_t *stop = memchr(at, '\n', link->len - link->off);

		if (stop == NULL) {
			link_fill(link);
			continue;
		}
		report_require(n_lines == 1 || *at == '$', "redis answered: %.*s", (int)(stop - at),
			       (const char *)at);
		(void)snprintf(ret_text, room, "%.*s", (int)(stop - 1 - at), (const char *)at);
		link->off += (size_t)(stop + 1 - at);
		n_lines++;
	}
}

int64_t link_redis_get(struct link *link, struct text key)
{
	const struct text words[] = { text_of("GET"), key };
	uint8_t command[256];
	char value[32];

	link_send(link, command, link_redis_command(command, sizeof(command), words, 2));
	link_redis_text(link, value, sizeof(value));
	return strtoll(value, NULL, 10);
}

size_t link_redis_command(uint8_t *out, size_t room, const struct text *words, size_t n)
{
	size_t len = (size_t)snprintf((char *)out, room, "*%zu\r\n", n);

	for (size_t i = 0; i < n; i++) {
		report_require(len + words[i].len + 16 < room, "a command is too long");
		len += (size_t)snprintf((char *)out + len, room - len, "$%zu\r\n", words[i].len);
		memcpy(out + len, words[i].at, words[i].len);
		len += words[i].len;
		memcpy(out + len, "\r\n", 2);
		len += 2;
	}
	return len;
}
