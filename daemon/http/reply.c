/* Replies that are made whole before they are sent. */
#include "daemon/http/thread.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLY_MAX_TEXT 2048u

/* What is handed to an evbuffer: counted until it is sent, or the connection is gone. */
struct parcel {
	struct http *http;
	char *text;
	size_t len;
};

static void on_sent(const void *data, size_t len, void *arg)
{
	struct parcel *parcel = arg;

	(void)data;
	(void)len;
	parcel->http->pending -= parcel->len;
	free(parcel->text);
	free(parcel);
}

bool reply_is_head(struct evhttp_request *request)
{
	return evhttp_request_get_command(request) == EVHTTP_REQ_HEAD;
}

static void put_headers(struct evhttp_request *request, const char *type, size_t len)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	char text[24];

	(void)snprintf(text, sizeof(text), "%zu", len);
	(void)evhttp_add_header(headers, "Content-Type", type);
	(void)evhttp_add_header(headers, "Content-Length", text);
	(void)evhttp_add_header(headers, "Cache-Control", "no-store");
	(void)evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
}

/* Hands `text` over to the request. False: no memory. */
static bool put_body(struct http *http, struct evhttp_request *request, char *text, size_t len)
{
	struct evbuffer *body = evhttp_request_get_output_buffer(request);
	struct parcel *parcel = malloc(sizeof(*parcel));

	if (parcel == NULL) {
		return false;
	}
	*parcel = (struct parcel){ .http = http, .text = text, .len = len };
	if (evbuffer_add_reference(body, text, len, on_sent, parcel) != 0) {
		free(parcel);
		return false;
	}
	http->pending += len;
	return true;
}

void reply_take(struct http *http, struct evhttp_request *request, int code, const char *type,
		char *text, size_t len)
{
	if (text == NULL || http->pending + len > HTTP_MAX_PENDING) {
		free(text);
		http_count(&http->stats.refused);
		evhttp_send_error(request, HTTP_SERVUNAVAIL, "Too Much Under Way");
		return;
	}
	put_headers(request, type, len);
	/* evhttp would send what answers a HEAD. */
	if (reply_is_head(request) || !put_body(http, request, text, len)) {
		free(text);
	}
	evhttp_send_reply(request, code, NULL, NULL);
}

__attribute__((format(printf, 2, 0))) static char *format_text(size_t *ret_len, const char *format,
							       va_list args)
{
	char text[REPLY_MAX_TEXT];
	int len = vsnprintf(text, sizeof(text), format, args);

	*ret_len = len < 0 ? 0 : (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1;
	text[*ret_len] = '\0';
	return strdup(text);
}

void reply_text(struct http *http, struct evhttp_request *request, int code, const char *format,
		...)
{
	va_list args;
	size_t len;
	char *text;

	va_start(args, format);
	text = format_text(&len, format, args);
	va_end(args);
	reply_take(http, request, code, "text/plain; charset=utf-8", text, len);
}

void reply_json(struct http *http, struct evhttp_request *request, int code, json_t *object)
{
	size_t len = object != NULL ? json_dumpb(object, NULL, 0, JSON_COMPACT) : 0;
	char *text = len > 0 ? malloc(len + 1) : NULL;

	if (text != NULL) {
		(void)json_dumpb(object, text, len, JSON_COMPACT);
		text[len++] = '\n';
	}
	json_decref(object);
	reply_take(http, request, code, "application/json", text, len);
}

void reply_error(struct http *http, struct evhttp_request *request, int code, const char *format,
		 ...)
{
	va_list args;
	size_t len;
	char *text;

	va_start(args, format);
	text = format_text(&len, format, args);
	va_end(args);
	reply_json(http, request, code, text != NULL ? json_pack("{s:s}", "error", text) : NULL);
	free(text);
}
