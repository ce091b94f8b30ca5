/* From a request to who serves it. */
#include "daemon/daemon.h"
#include "daemon/http/host.h"
#include "daemon/http/thread.h"

#include <event2/bufferevent.h>
#include <event2/http.h>
#include <string.h>
#include <sys/socket.h>

#define FORBIDDEN 403 /* which evhttp has no word for */

static enum daemon_state state_of(const struct http *http)
{
	return (enum daemon_state)atomic_load_explicit(&http->daemon->state, memory_order_relaxed);
}

/* It is served by this thread's loop: that it is answered says that it turns. */
static void healthz(struct http *http, struct evhttp_request *request)
{
	reply_text(http, request, HTTP_OK, "ok\n");
}

/* May clients come? What was kept is loaded, and what is counted is kept. */
static void readyz(struct http *http, struct evhttp_request *request)
{
	enum daemon_state state = state_of(http);
	struct checkpoint_stats checkpoint;

	if (state == DAEMON_STARTING || state == DAEMON_STOPPING) {
		reply_text(http, request, HTTP_SERVUNAVAIL, "not ready: %s\n",
			   state == DAEMON_STARTING ? "starting" : "stopping");
		return;
	}
	checkpoint_stats(&http->daemon->checkpoint, &checkpoint);
	if (http->daemon->checkpoint.store != NULL && checkpoint.failing) {
		reply_text(http, request, HTTP_SERVUNAVAIL,
			   "not ready: what is counted can't be kept: %s\n", checkpoint.why);
		return;
	}
	reply_text(http, request, HTTP_OK, "ready\n");
}

static void index_page(struct http *http, struct evhttp_request *request)
{
	reply_text(http, request, HTTP_OK,
		   "rationd " RATION_VERSION "\n\n"
		   "/metrics               what is counted, for Prometheus\n"
		   "/api/v1/counters       ?path=PATH: one counter, or several\n"
		   "/api/v1/tree           ?path=PATH: a subtree\n"
		   "/api/v1/quota/explain  ?path=PATH: the limits above a counter\n"
		   "/healthz               is it alive?\n"
		   "/readyz                may clients come?\n");
}

static const struct {
	const char *path;
	void (*serve)(struct http *http, struct evhttp_request *request);
} routes[] = {
	{ "/metrics", scrape_serve },
	{ "/api/v1/tree", api_tree },
	{ "/api/v1/counters", api_counters },
	{ "/api/v1/quota/explain", api_explain },
	{ "/healthz", healthz },
	{ "/readyz", readyz },
	{ "/", index_page },
};

#define N_ROUTES (sizeof(routes) / sizeof(routes[0]))

/* Over a loopback address: see host.h. */
static bool is_over_loopback(struct evhttp_request *request)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(request);
	int fd = bufferevent_getfd(evhttp_connection_get_bufferevent(connection));
	struct sockaddr_storage address = { 0 };
	socklen_t len = sizeof(address);

	return getsockname(fd, (struct sockaddr *)&address, &len) == 0 &&
	       host_is_loopback((struct sockaddr *)&address);
}

void route(struct evhttp_request *request, void *arg)
{
	struct http *http = arg;
	enum evhttp_cmd_type method = evhttp_request_get_command(request);
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
	const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;

	http_count(&http->stats.requests);
	if (!host_is_near(evhttp_request_get_host(request)) && is_over_loopback(request)) {
		reply_error(
			http, request, FORBIDDEN,
			"the name in Host could be a web page's: ask for localhost, or for an address");
		return;
	}
	if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
		(void)evhttp_add_header(evhttp_request_get_output_headers(request), "Allow",
					"GET, HEAD");
		reply_error(http, request, HTTP_BADMETHOD,
			    "nothing can be changed here: only GET and HEAD");
		return;
	}
	for (size_t i = 0; path != NULL && i < N_ROUTES; i++) {
		if (strcmp(path, routes[i].path) == 0) {
			routes[i].serve(http, request);
			return;
		}
	}
	reply_error(http, request, HTTP_NOTFOUND, "there is no such page; / lists those there are");
}
