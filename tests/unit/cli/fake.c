#include "tests/unit/cli/fake.h"

#include "clients/cli/pattern.h"

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

void fake_some_counts(void)
{
	fake_count("requests/acme/web", 12);
	fake_count("requests/acme", 1);
	fake_count("requests/acme/mail", 30);
	fake_count("requests/umbrella", 1000);
	fake_count("errors", 7);
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
	fake.n_asked++;
	fake.error = fake.result != 0 && fake.text != NULL ? fake.text : "";
	if (fake.n_asked >= fake.away_from && fake.n_asked < fake.away_until) {
		return -ETIMEDOUT;
	}
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
	case RATION_PERMISSION_DENIED:
		return "PERMISSION_DENIED";
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
	fake.held = 0;
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

int ration_flush_durable(struct ration *client, int timeout_ms)
{
	int r = ration_flush(client, timeout_ms);

	fake.n_durable += r == 0;
	if (r == 0 && fake.durable_result != 0) {
		fake.error = fake.text != NULL ? fake.text : "";
		return fake.durable_result;
	}
	return r;
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

int ration_reload(struct ration *client, int timeout_ms,
		  void (*finding)(void *ctx, const struct ration_finding *finding), void *ctx)
{
	int r = ask(timeout_ms);

	(void)client;
	for (size_t i = 0; r == 0 && i < fake.n_findings; i++) {
		finding(ctx, &fake.findings[i]);
	}
	if (r == 0 && fake.n_findings > 0 && fake.findings[0].error) {
		fake.error = fake.findings[0].text;
		return RATION_INVALID_ARGUMENT;
	}
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

int ration_metric_list(struct ration *client, int timeout_ms,
		       void (*metric)(void *ctx, const char *name,
				      const struct ration_metric *metric),
		       void *ctx)
{
	int r = ask(timeout_ms);

	(void)client;
	for (size_t i = 0; r == 0 && i < fake.n_metrics; i++) {
		metric(ctx, fake.metrics[i].name, &fake.metrics[i].metric);
	}
	return r;
}

/* ---- own values ---- */

int ration_import(struct ration *client, const struct ration_own *owns, size_t n, int timeout_ms,
		  void (*failed)(void *ctx, size_t index, int code, const char *text), void *ctx)
{
	int r = ask(timeout_ms);

	(void)client;
	fake.n_imports++;
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (!is_path(owns[i].path)) {
			failed(ctx, i, RATION_INVALID_ARGUMENT, "not a path");
		} else if (owns[i].own < 0 && kind_of(owns[i].path) == RATION_COUNTER) {
			failed(ctx, i, RATION_INVALID_ARGUMENT, "");
		} else {
			fake_count(owns[i].path, 0);
			find(owns[i].path)->own = owns[i].own;
		}
	}
	return r;
}

int ration_reset(struct ration *client, const char *path, int timeout_ms, uint64_t *ret_counters)
{
	int r = ask(timeout_ms);

	(void)client;
	*ret_counters = 0;
	for (size_t i = 0; r == 0 && i < fake.n_counters; i++) {
		if (is_below(fake.counters[i].path, path)) {
			fake.counters[i].own = 0;
			(*ret_counters)++;
		}
	}
	return r;
}

/* ---- quotas ---- */

const char *ration_window_text(const struct ration_window *window, char *text, size_t size)
{
	static const char *const units[] = { "day", "week", "month" };
	uint64_t ms = window->duration_ms;

	switch (window->kind) {
	case RATION_PER:
		(void)snprintf(text, size, "per %llu%s",
			       (unsigned long long)(ms % 60000 == 0 ? ms / 60000 : ms / 1000),
			       ms % 60000 == 0 ? "m" : "s");
		break;
	case RATION_CALENDAR:
		(void)snprintf(text, size, "calendar %s", units[window->unit]);
		break;
	case RATION_RATE:
		(void)snprintf(text, size, "rate");
		break;
	case RATION_NO_WINDOW:
	default:
		text[0] = '\0';
		break;
	}
	return text;
}

static bool same_window(const struct ration_window *a, const struct ration_window *b)
{
	return a->kind == b->kind && a->duration_ms == b->duration_ms && a->unit == b->unit;
}

static void put_rule(const char *pattern, const struct ration_limits *limits,
		     enum ration_layer layer, const char *source)
{
	struct fake_rule *rule = &fake.rules[fake.n_rules];

	for (size_t i = 0; i < fake.n_rules; i++) {
		struct fake_rule *other = &fake.rules[i];

		if (strcmp(other->pattern, pattern) == 0 &&
		    same_window(&other->rule.limits.window, &limits->window)) {
			if (other->rule.layer == layer) {
				rule = other;
			} else {
				other->rule.overridden = true;
			}
		}
	}
	fake.n_rules += rule == &fake.rules[fake.n_rules];
	(void)snprintf(rule->pattern, sizeof(rule->pattern), "%s", pattern);
	(void)snprintf(rule->source, sizeof(rule->source), "%s", source);
	rule->rule = (struct ration_rule){ rule->pattern, *limits, layer, false, rule->source };
}

void fake_rule(const char *pattern, const struct ration_limits *limits, const char *source)
{
	put_rule(pattern, limits, RATION_FILE, source);
}

int ration_quota_set(struct ration *client, const char *pattern, const struct ration_limits *limits,
		     int timeout_ms, void (*note)(void *ctx, const char *text), void *ctx)
{
	int r = ask(timeout_ms);

	(void)client;
	if (r == 0) {
		put_rule(pattern, limits, RATION_RUN_TIME, "");
		if (fake.note != NULL) {
			note(ctx, fake.note);
		}
	}
	return r;
}

int ration_quota_remove(struct ration *client, const char *pattern,
			const struct ration_window *window, int timeout_ms)
{
	int r = ask(timeout_ms);
	size_t n = fake.n_rules;

	(void)client;
	if (r != 0) {
		return r;
	}
	fake.removed_all = window == NULL;
	if (window != NULL) {
		fake.removed = *window;
	}
	for (size_t i = fake.n_rules; i-- > 0;) {
		struct fake_rule *rule = &fake.rules[i];

		/* The last takes its place; only tests of one rule at a time look at the order. */
		if (rule->rule.layer == RATION_RUN_TIME && strcmp(rule->pattern, pattern) == 0 &&
		    (window == NULL || same_window(&rule->rule.limits.window, window))) {
			*rule = fake.rules[--fake.n_rules];
			rule->rule.pattern = rule->pattern;
			rule->rule.source = rule->source;
		}
	}
	return fake.n_rules < n ? 0 : RATION_NOT_FOUND;
}

int ration_quota_list(struct ration *client, int timeout_ms,
		      void (*rule)(void *ctx, const struct ration_rule *rule), void *ctx)
{
	int r = ask(timeout_ms);

	(void)client;
	for (size_t i = 0; r == 0 && i < fake.n_rules; i++) {
		rule(ctx, &fake.rules[i].rule);
	}
	return r;
}

/* The path without its last segment, in place; false: it had one. */
static bool ascend(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash == NULL) {
		return false;
	}
	*slash = '\0';
	return true;
}

static int64_t total_of(const char *path)
{
	const struct fake_counter *counter = find(path);

	return counter != NULL && counter->made ? value_of(counter).total : 0;
}

static struct ration_level level_of(const char *path, const struct ration_rule *rule)
{
	struct ration_level level = {
		.path = path,
		.limits = rule->limits,
		.layer = rule->layer,
		.pattern = rule->pattern,
		.source = rule->source,
		.usage = total_of(path),
		.left = INT64_MAX,
	};

	if (rule->limits.has_max) {
		level.left = level.usage < rule->limits.max ? rule->limits.max - level.usage : 0;
		level.over_max = level.usage > rule->limits.max;
	}
	level.over_high = rule->limits.has_high && level.usage > rule->limits.high;
	level.peak = level.usage;
	return level;
}

/* An explanation, with room for what it points to. */
struct explained {
	struct ration_explanation explanation;
	struct ration_level levels[FAKE_MAX];
	char paths[16][600];
};

int ration_quota_explain(struct ration *client, const char *path, int timeout_ms,
			 struct ration_explanation **ret_explanation)
{
	int r = ask(timeout_ms);
	struct explained *explained = NULL;
	size_t n = 0;
	char up[600];

	(void)client;
	fake.n_explained++;
	if (r != 0) {
		return r;
	}
	if (find(path) == NULL) {
		fake.error = "no such counter";
		return RATION_NOT_FOUND;
	}
	explained = calloc(1, sizeof(*explained));
	if (fake.explanation != NULL) {
		explained->explanation = *fake.explanation;
		*ret_explanation = &explained->explanation;
		return 0;
	}
	explained->explanation.levels = explained->levels;
	(void)snprintf(up, sizeof(up), "%s", path);
	do {
		(void)snprintf(explained->paths[n], sizeof(up), "%s", up);
		for (size_t i = 0; i < fake.n_rules; i++) {
			if (!fake.rules[i].rule.overridden &&
			    pattern_matches(fake.rules[i].pattern, up)) {
				explained->levels[explained->explanation.n_levels++] =
					level_of(explained->paths[n], &fake.rules[i].rule);
			}
		}
		n++;
	} while (ascend(up));
	*ret_explanation = &explained->explanation;
	return 0;
}

void ration_explanation_free(struct ration_explanation *explanation)
{
	free(explanation);
}

struct answer {
	struct ration_charge_result result;
	struct ration_binding bindings[FAKE_MAX];
	char paths[FAKE_MAX][600];
};

/* Hold one item against the limits above it. */
static void judge(struct answer *answer, const struct ration_charge_item *item)
{
	char up[600];

	(void)snprintf(up, sizeof(up), "%s", item->path);
	do {
		for (size_t i = 0; i < fake.n_rules; i++) {
			const struct ration_rule *rule = &fake.rules[i].rule;
			struct ration_level level = level_of(up, rule);
			size_t n = answer->result.n_bindings;

			if (!rule->overridden && pattern_matches(rule->pattern, up) &&
			    rule->limits.has_max && item->amount > level.left) {
				(void)snprintf(answer->paths[n], sizeof(up), "%s", up);
				answer->bindings[n] = (struct ration_binding){
					.kind = RATION_BINDS_MAX,
					.path = answer->paths[n],
					.window = rule->limits.window,
					.limit = rule->limits.max,
					.usage = level.usage,
					.left = level.left,
				};
				answer->result.n_bindings++;
			}
		}
	} while (ascend(up));
}

static void record(const struct ration_charge_item *items, size_t n)
{
	size_t used = 0;

	fake.charged[0] = '\0';
	for (size_t i = 0; i < n && used < sizeof(fake.charged); i++) {
		used += (size_t)snprintf(fake.charged + used, sizeof(fake.charged) - used,
					 "%s%s %lld", i > 0 ? ", " : "", items[i].path,
					 (long long)items[i].amount);
	}
}

int ration_charge(struct ration *client, const struct ration_charge_item *items, size_t n,
		  const struct ration_charge_options *options, int timeout_ms,
		  struct ration_charge_result **ret_result)
{
	int r = ask(timeout_ms);
	struct answer *answer = NULL;

	(void)client;
	fake.n_charges++;
	fake.charge_options = *options;
	record(items, n);
	r = r != 0 ? r : fake.charge_result;
	*ret_result = NULL;
	if (r != 0) {
		fake.error = fake.text != NULL ? fake.text : "";
		return r;
	}
	for (size_t i = 0; i < n; i++) {
		if (!is_path(items[i].path)) {
			fake.error = "not a path";
			return RATION_INVALID_ARGUMENT;
		}
	}
	answer = calloc(1, sizeof(*answer));
	answer->result.bindings = answer->bindings;
	for (size_t i = 0; fake.answer == NULL && i < n; i++) {
		judge(answer, &items[i]);
	}
	answer->result.granted = answer->result.n_bindings == 0;
	if (fake.answer != NULL) {
		answer->result = *fake.answer;
	}
	*ret_result = &answer->result;
	for (size_t i = 0; answer->result.granted && !options->dry_run && i < n; i++) {
		fake_count(items[i].path, items[i].amount);
		fake.held += options->detached ? 0 : items[i].amount;
	}
	return answer->result.granted ? 0 : RATION_RESOURCE_EXHAUSTED;
}

void ration_charge_result_free(struct ration_charge_result *result)
{
	free(result);
}

int ration_uncharge(struct ration *client, const char *path, int64_t n, bool detached,
		    int timeout_ms)
{
	int r = ask(timeout_ms);

	(void)client;
	if (r != 0 || find(path) == NULL) {
		return r != 0 ? r : RATION_NOT_FOUND;
	}
	if (!detached && fake.forgets) {
		fake.held -= n;
		fake_count(path, -n);
		return fake.forgets_late ? -ECANCELED : RATION_FAILED_PRECONDITION;
	}
	if ((!detached && fake.held < n) || find(path)->own < n) {
		fake.error = "not so much is held there";
		return RATION_FAILED_PRECONDITION;
	}
	fake.held -= detached ? 0 : n;
	fake_count(path, -n);
	return 0;
}

const char *ration_version(void)
{
	return "0.1.0";
}
