#include "tests/unit/cli/fake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake fake;

/* The one client, and a counter: only their addresses are used. */
struct ration {
	int dummy;
};
static struct ration the_client;

void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.error = "";
}

static struct fake_counter *find(const char *path)
{
	for (size_t i = 0; i < fake.n_counters; i++) {
		if (strcmp(fake.counters[i].path, path) == 0) {
			return &fake.counters[i];
		}
	}
	return NULL;
}

static struct fake_counter *make(const char *path)
{
	struct fake_counter *counter = find(path);

	if (counter != NULL) {
		return counter;
	}
	if (fake.n_counters == FAKE_MAX) {
		abort();
	}
	counter = &fake.counters[fake.n_counters++];
	(void)snprintf(counter->path, sizeof(counter->path), "%s", path);
	return counter;
}

void fake_count(const char *path, int64_t n)
{
	char prefix[600];

	for (size_t i = 0; path[i] != '\0'; i++) {
		if (path[i] == '/') {
			(void)snprintf(prefix, sizeof(prefix), "%.*s", (int)i, path);
			make(prefix)->made = true;
		}
	}
	make(path)->made = true;
	make(path)->own += n;
}

int64_t fake_own(const char *path)
{
	struct fake_counter *counter = find(path);

	return counter != NULL && counter->made ? counter->own : 0;
}

static bool is_below(const char *path, const char *root)
{
	size_t len = strlen(root);

	return len == 0 ||
	       (strncmp(path, root, len) == 0 && (path[len] == '\0' || path[len] == '/'));
}

static bool is_path(const char *path)
{
	size_t len = strlen(path);

	if (len == 0 || len > 512 || path[0] == '/' || path[len - 1] == '/' ||
	    strstr(path, "//") != NULL) {
		return false;
	}
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)path[i] < 0x20 || path[i] == 0x7f ||
		    (unsigned char)path[i] == 0xff) {
			return false;
		}
	}
	return true;
}

static enum ration_kind kind_of(const char *path)
{
	for (size_t i = 0; i < fake.n_metrics; i++) {
		if (is_below(path, fake.metrics[i].name)) {
			return fake.metrics[i].metric.kind;
		}
	}
	return RATION_COUNTER;
}

static struct ration_value value_of(const struct fake_counter *counter)
{
	struct ration_value value = {
		.code = RATION_OK, .kind = kind_of(counter->path), .leaf = true, .own = counter->own
	};

	for (size_t i = 0; i < fake.n_counters; i++) {
		if (fake.counters[i].made && is_below(fake.counters[i].path, counter->path)) {
			value.total += fake.counters[i].own;
			value.leaf = value.leaf && &fake.counters[i] == counter;
		}
	}
	return value;
}

/* What a call that asks the daemon begins with. */
static int ask(int timeout_ms)
{
	fake.timeout_ms = timeout_ms;
	fake.error = fake.result != 0 && fake.text != NULL ? fake.text : "";
	return fake.result;
}

/* ---- ration.h ---- */

const char *ration_code_name(int code)
{
	switch (code) {
	case RATION_OK:
		return "OK";
	case RATION_INVALID_ARGUMENT:
		return "INVALID_ARGUMENT";
	case RATION_DEADLINE_EXCEEDED:
		return "DEADLINE_EXCEEDED";
	case RATION_NOT_FOUND:
		return "NOT_FOUND";
	case RATION_RESOURCE_EXHAUSTED:
		return "RESOURCE_EXHAUSTED";
	case RATION_FAILED_PRECONDITION:
		return "FAILED_PRECONDITION";
	case RATION_INTERNAL:
		return "INTERNAL";
	case RATION_UNAVAILABLE:
		return "UNAVAILABLE";
	default:
		return "UNKNOWN";
	}
}

struct ration *ration_open(const char *url, const struct ration_options *options)
{
	(void)snprintf(fake.url, sizeof(fake.url), "%s", url != NULL ? url : "");
	if (strncmp(fake.url, "unix:", 5) != 0 && strncmp(fake.url, "tcp:", 4) != 0) {
		errno = EINVAL;
		return NULL;
	}
	fake.options = options != NULL ? *options : (struct ration_options)RATION_OPTIONS_INIT;
	fake.first_of_client = fake.n_counters;
	fake.n_opened++;
	return &the_client;
}

static void deliver(void)
{
	for (size_t i = 0; i < fake.n_counters; i++) {
		struct fake_counter *counter = &fake.counters[i];
		struct ration_loss loss = { RATION_OK, counter->path, counter->pending, "" };

		if (fake.refused != NULL && strcmp(fake.refused, counter->path) == 0) {
			loss.code = RATION_RESOURCE_EXHAUSTED;
			loss.text = "the metric has all the counters it may have";
		} else if (counter->pending < 0 && kind_of(counter->path) == RATION_COUNTER) {
			loss.code = RATION_INVALID_ARGUMENT;
			loss.text = "a counter only grows";
		}
		counter->pending = 0;
		if (loss.code != RATION_OK) {
			fake.options.on_loss(fake.options.ctx, &loss);
		} else if (loss.amount != 0) {
			fake_count(counter->path, loss.amount);
		}
	}
}

int ration_close(struct ration *client, int timeout_ms, uint64_t *ret_undelivered)
{
	uint64_t undelivered = 0;

	(void)client;
	(void)timeout_ms;
	for (size_t i = 0; i < fake.n_counters; i++) {
		struct fake_counter *counter = &fake.counters[i];
		struct ration_loss loss = { RATION_UNAVAILABLE, counter->path, counter->pending,
					    "no daemon" };

		if (counter->pending != 0) {
			undelivered += (uint64_t)llabs(counter->pending);
			fake.options.on_loss(fake.options.ctx, &loss);
		}
	}
	if (ret_undelivered != NULL) {
		*ret_undelivered = undelivered;
	}
	fake.n_closed++;
	return undelivered > 0 ? -ETIMEDOUT : 0;
}

const char *ration_error(void)
{
	return fake.error;
}

struct ration_counter *ration_counter(struct ration *client, const char *path)
{
	(void)client;
	if (!is_path(path)) {
		static char text[700];

		(void)snprintf(text, sizeof(text), "\"%s\" is not a path: an empty segment", path);
		fake.error = text;
		errno = EINVAL;
		return NULL;
	}
	if (find(path) == NULL && fake.max_counters != 0 &&
	    fake.n_counters - fake.first_of_client >= fake.max_counters) {
		errno = ENOSPC;
		return NULL;
	}
	return (struct ration_counter *)make(path);
}

void ration_add(struct ration_counter *counter, int64_t n)
{
	((struct fake_counter *)counter)->pending += n;
}

int ration_flush(struct ration *client, int timeout_ms)
{
	(void)client;
	fake.timeout_ms = timeout_ms;
	if (fake.flush_result != 0) {
		fake.error = fake.text != NULL ? fake.text : "";
		return fake.flush_result;
	}
	deliver();
	return 0;
}

int ration_get(struct ration *client, const char *const *paths, size_t n,
	       enum ration_consistency consistency, int timeout_ms, struct ration_value *ret_values,
	       struct ration_view *ret_view)
{
	int r = ask(timeout_ms);

	(void)client;
	if (r != 0) {
		return r;
	}
	fake.consistency = consistency;
	for (size_t i = 0; i < n; i++) {
		struct fake_counter *counter = find(paths[i]);

		if (!is_path(paths[i])) {
			ret_values[i] = (struct ration_value){ .code = RATION_INVALID_ARGUMENT };
		} else if (counter == NULL || !counter->made) {
			ret_values[i] = (struct ration_value){ .code = RATION_NOT_FOUND };
		} else {
			ret_values[i] = value_of(counter);
		}
	}
	if (ret_view != NULL) {
		*ret_view = fake.view;
	}
	return 0;
}

static uint32_t depth_of(const char *path)
{
	uint32_t depth = path[0] != '\0';

	for (; *path != '\0'; path++) {
		depth += *path == '/';
	}
	return depth;
}

int ration_walk(struct ration *client, const char *root, uint32_t depth,
		enum ration_consistency consistency, int timeout_ms,
		bool (*visit)(void *ctx, const struct ration_entry *entry), void *ctx,
		struct ration_view *ret_view)
{
	int r = ask(timeout_ms);
	struct fake_counter *top = NULL;

	(void)client;
	root = root != NULL ? root : "";
	top = find(root);
	fake.consistency = consistency;
	fake.depth = depth;
	if (r != 0) {
		return r;
	}
	if (root[0] != '\0' && (top == NULL || !top->made)) {
		return RATION_NOT_FOUND;
	}
	for (size_t i = 0; i < fake.n_counters; i++) {
		struct fake_counter *counter = &fake.counters[i];
		uint32_t level = depth_of(counter->path) - depth_of(root);
		struct ration_entry entry = { counter->path, depth_of(counter->path),
					      value_of(counter) };

		if (counter->made && is_below(counter->path, root) && level <= depth &&
		    !visit(ctx, &entry)) {
			break;
		}
	}
	if (ret_view != NULL) {
		*ret_view = fake.view;
	}
	return 0;
}

int ration_fold(struct ration *client, int timeout_ms)
{
	int r = ask(timeout_ms);

	(void)client;
	fake.n_folded += r == 0;
	return r;
}

int ration_status(struct ration *client, int timeout_ms,
		  void (*item)(void *ctx, const struct ration_status_item *item), void *ctx)
{
	static const struct ration_status_item items[] = {
		{ "version", "0.1.0", 0, "the daemon's version" },
		{ "counters", NULL, 12345, "counters there are" },
		{ "adds", NULL, INT64_C(9007199254740993), "increments received" },
	};
	int r = ask(timeout_ms);

	(void)client;
	for (size_t i = 0; r == 0 && i < sizeof(items) / sizeof(items[0]); i++) {
		item(ctx, &items[i]);
	}
	return r;
}

static struct fake_metric *find_metric(const char *name)
{
	for (size_t i = 0; i < fake.n_metrics; i++) {
		if (strcmp(fake.metrics[i].name, name) == 0) {
			return &fake.metrics[i];
		}
	}
	return NULL;
}

int ration_metric_set(struct ration *client, const char *name, const struct ration_metric *metric,
		      int timeout_ms)
{
	int r = ask(timeout_ms);
	struct fake_metric *known = find_metric(name);

	(void)client;
	if (r != 0) {
		return r;
	}
	if (known == NULL) {
		known = &fake.metrics[fake.n_metrics++];
		(void)snprintf(known->name, sizeof(known->name), "%s", name);
	}
	known->metric = *metric;
	return 0;
}

int ration_metric_get(struct ration *client, const char *name, int timeout_ms,
		      struct ration_metric *ret_metric)
{
	int r = ask(timeout_ms);
	struct fake_metric *known = find_metric(name);

	(void)client;
	if (r != 0) {
		return r;
	}
	if (known == NULL && find(name) == NULL) {
		return RATION_NOT_FOUND;
	}
	*ret_metric = known != NULL ? known->metric : (struct ration_metric)RATION_METRIC_INIT;
	return 0;
}

const char *ration_version(void)
{
	return "0.1.0";
}
