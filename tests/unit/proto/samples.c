#include "tests/unit/proto/samples.h"

#include "tests/support/test.h"

#define TEXT(string)                                      \
	{                                                 \
		.at = (string), .len = sizeof(string) - 1 \
	}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- requests ---- */

static const struct text paths[] = {
	TEXT("requests/acme/web"),	  TEXT("requests"), TEXT(""), TEXT("with\0nul"),
	TEXT("gr\303\274n/\344\270\255"),
};
static const uint32_t handles[] = { 0, 1, 127, 128, 16383, 16384, UINT32_MAX };
static const int64_t deltas[] = { 0, 1, -1, 64, -65, INT64_MAX, INT64_MIN };

const struct request sample_requests[] = {
	{ .id = 0, .type = REQUEST_NONE },
	{ .id = UINT64_MAX, .type = REQUEST_NONE },
	{ .id = 1, .type = REQUEST_HELLO, .hello = { .session = TEXT(""), .agent = TEXT("") } },
	{ .id = 2,
	  .type = REQUEST_HELLO,
	  .hello = { .version = MESSAGE_VERSION,
		     .session = TEXT("\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17"),
		     .lifetime_ms = 60000,
		     .next_batch = UINT64_MAX,
		     .agent = TEXT("samples/0.1.0") } },
	{ .id = 3,
	  .type = REQUEST_INTERN,
	  .intern = { .first_handle = 300, .n_paths = COUNT(paths), .paths = paths } },
	{ .id = 4, .type = REQUEST_INTERN },
	{ .id = 5,
	  .type = REQUEST_ADD,
	  .add = { .batch = 7,
		   .n_handles = COUNT(handles),
		   .n_deltas = COUNT(deltas),
		   .handles = handles,
		   .deltas = deltas } },
	{ .id = 6,
	  .type = REQUEST_ADD,
	  .add = { .n_handles = 3, .n_deltas = 2, .handles = handles, .deltas = deltas } },
	{ .id = 7, .type = REQUEST_ADD },
	{ .id = 8,
	  .type = REQUEST_GET,
	  .get = { .n_paths = COUNT(paths), .paths = paths, .consistency = CONSISTENCY_EXACT } },
	{ .id = 9, .type = REQUEST_GET },
	{ .id = 10,
	  .type = REQUEST_WALK,
	  .walk = { .root = TEXT("requests/acme"),
		    .depth = MESSAGE_DEPTH_ALL,
		    .consistency = CONSISTENCY_CACHED,
		    .limit = UINT64_MAX,
		    .cursor = TEXT("\0\377cursor") } },
	{ .id = 11, .type = REQUEST_WALK, .walk = { .root = TEXT(""), .cursor = TEXT("") } },
	{ .id = 12, .type = REQUEST_FLUSH },
	{ .id = 13, .type = REQUEST_STATUS },
	{ .id = 14,
	  .type = REQUEST_METRIC_SET,
	  .metric_set = { .name = TEXT("jobs"),
			  .kind = KIND_GAUGE,
			  .max_counters = UINT32_MAX,
			  .overflow = true,
			  .expire_after_ms = UINT64_MAX } },
	{ .id = 15, .type = REQUEST_METRIC_SET, .metric_set = { .name = TEXT("") } },
	{ .id = 16, .type = REQUEST_METRIC_GET, .metric_get = TEXT("jobs") },
	{ .id = 17, .type = REQUEST_METRIC_GET, .metric_get = TEXT("") },
	{ .id = 18, .type = REQUEST_PING },
};
const size_t n_sample_requests = COUNT(sample_requests);

/* ---- replies ---- */

static const struct item_error errors[] = {
	{ .index = 0, .code = CODE_NOT_FOUND, .text = TEXT("no counter behind handle 3") },
	{ .index = UINT32_MAX, .code = UINT32_MAX, .text = TEXT("") },
};
static const struct value values[] = {
	{ .kind = KIND_GAUGE, .leaf = true, .own = INT64_MIN, .total = INT64_MAX, .text = TEXT("") },
	{ .code = CODE_NOT_FOUND, .text = TEXT("no such counter") },
};
static const struct entry entries[] = {
	{ .path = TEXT("requests"),
	  .depth = 1,
	  .value = { .own = 1, .total = 3, .text = TEXT("") } },
	{ .path = TEXT("requests/a"),
	  .depth = 2,
	  .value = { .leaf = true, .own = 2, .total = 2, .text = TEXT("") } },
};
static const struct status_item items[] = {
	{ .name = TEXT("version"),
	  .is_text = true,
	  .text = TEXT("0.1.0"),
	  .help = TEXT("of the daemon") },
	{ .name = TEXT("empty"), .is_text = true, .text = TEXT(""), .help = TEXT("") },
	{ .name = TEXT("folds"),
	  .number = INT64_MIN,
	  .text = TEXT(""),
	  .help = TEXT("folded slots") },
	{ .name = TEXT("zero"), .text = TEXT(""), .help = TEXT("") },
};

const struct reply sample_replies[] = {
	{ .id = UINT64_MAX, .type = REPLY_NONE },
	{ .id = 1,
	  .type = REPLY_ERROR,
	  .error = { .code = CODE_INVALID_ARGUMENT,
		     .text = TEXT("an add of 2 handles and 3 deltas") } },
	{ .id = 2,
	  .type = REPLY_WELCOME,
	  .welcome = { .version = 1,
		       .daemon = TEXT("rationd/0.1.0"),
		       .resumed = true,
		       .last_batch = UINT64_MAX,
		       .limits = { .max_frame = MESSAGE_MAX_FRAME,
				   .max_handles = 1,
				   .max_items = 2,
				   .max_walks = 3,
				   .max_lifetime_ms = 4,
				   .max_output = UINT64_MAX,
				   .idle_frame_ms = 5 },
		       .incarnation = TEXT("\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17") } },
	{ .id = 3,
	  .type = REPLY_WELCOME,
	  .welcome = { .daemon = TEXT(""), .incarnation = TEXT("") } },
	{ .id = 4,
	  .type = REPLY_INTERNED,
	  .interned = { .n_errors = COUNT(errors), .errors = errors } },
	{ .id = 5, .type = REPLY_INTERNED },
	{ .id = 6,
	  .type = REPLY_APPLIED,
	  .applied = { .batch = 7, .duplicate = true, .n_errors = COUNT(errors), .errors = errors } },
	{ .id = 7, .type = REPLY_APPLIED },
	{ .id = 8,
	  .type = REPLY_VALUES,
	  .values = { .n_values = COUNT(values),
		      .values = values,
		      .view = { .present = true, .error_bound = UINT64_MAX, .age_ms = 1 } } },
	{ .id = 9, .type = REPLY_VALUES, .values = { .view = { .present = true } } },
	{ .id = 10,
	  .type = REPLY_PAGE,
	  .page = { .n_entries = COUNT(entries),
		    .entries = entries,
		    .last = true,
		    .cursor = TEXT("\0\377"),
		    .view = { .present = true, .error_bound = 1, .age_ms = UINT64_MAX } } },
	{ .id = 11, .type = REPLY_PAGE, .page = { .cursor = TEXT("") } },
	{ .id = 12, .type = REPLY_FLUSHED },
	{ .id = 13, .type = REPLY_STATUS, .status = { .n_items = COUNT(items), .items = items } },
	{ .id = 14,
	  .type = REPLY_METRIC,
	  .metric = { .name = TEXT("jobs"),
		      .kind = KIND_GAUGE,
		      .max_counters = 1,
		      .overflow = true,
		      .expire_after_ms = 2 } },
	{ .id = 15, .type = REPLY_PONG },
	{ .id = 0,
	  .type = REPLY_GOODBYE,
	  .goodbye = { .code = CODE_ABORTED,
		       .text = TEXT("the session is used by a newer connection") } },
};
const size_t n_sample_replies = COUNT(sample_replies);

/* ---- comparing ---- */

static void assert_texts_equal(struct text a, struct text b)
{
	assert_int_equal(a.len, b.len);
	if (a.len > 0) {
		assert_memory_equal(a.at, b.at, a.len);
	}
}

static void assert_lists_equal(size_t n_a, const struct text *a, size_t n_b, const struct text *b)
{
	assert_int_equal(n_a, n_b);
	for (size_t i = 0; i < n_a; i++) {
		assert_texts_equal(a[i], b[i]);
	}
}

static void assert_adds_equal(const struct add *a, const struct add *b)
{
	assert_int_equal(a->batch, b->batch);
	assert_int_equal(a->n_handles, b->n_handles);
	assert_int_equal(a->n_deltas, b->n_deltas);
	for (size_t i = 0; i < a->n_handles; i++) {
		assert_int_equal(a->handles[i], b->handles[i]);
	}
	for (size_t i = 0; i < a->n_deltas; i++) {
		assert_int_equal(a->deltas[i], b->deltas[i]);
	}
}

static void assert_metrics_equal(const struct metric *a, const struct metric *b)
{
	assert_texts_equal(a->name, b->name);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->max_counters, b->max_counters);
	assert_int_equal(a->overflow, b->overflow);
	assert_int_equal(a->expire_after_ms, b->expire_after_ms);
}

void assert_requests_equal(const struct request *a, const struct request *b)
{
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->type, b->type);
	switch (a->type) {
	case REQUEST_HELLO:
		assert_int_equal(a->hello.version, b->hello.version);
		assert_texts_equal(a->hello.session, b->hello.session);
		assert_int_equal(a->hello.lifetime_ms, b->hello.lifetime_ms);
		assert_int_equal(a->hello.next_batch, b->hello.next_batch);
		assert_texts_equal(a->hello.agent, b->hello.agent);
		break;
	case REQUEST_INTERN:
		assert_int_equal(a->intern.first_handle, b->intern.first_handle);
		assert_lists_equal(a->intern.n_paths, a->intern.paths, b->intern.n_paths,
				   b->intern.paths);
		break;
	case REQUEST_ADD:
		assert_adds_equal(&a->add, &b->add);
		break;
	case REQUEST_GET:
		assert_lists_equal(a->get.n_paths, a->get.paths, b->get.n_paths, b->get.paths);
		assert_int_equal(a->get.consistency, b->get.consistency);
		break;
	case REQUEST_WALK:
		assert_texts_equal(a->walk.root, b->walk.root);
		assert_int_equal(a->walk.depth, b->walk.depth);
		assert_int_equal(a->walk.consistency, b->walk.consistency);
		assert_int_equal(a->walk.limit, b->walk.limit);
		assert_texts_equal(a->walk.cursor, b->walk.cursor);
		break;
	case REQUEST_METRIC_SET:
		assert_metrics_equal(&a->metric_set, &b->metric_set);
		break;
	case REQUEST_METRIC_GET:
		assert_texts_equal(a->metric_get, b->metric_get);
		break;
	case REQUEST_NONE:
	case REQUEST_FLUSH:
	case REQUEST_STATUS:
	case REQUEST_PING:
	default:
		break;
	}
}

static void assert_errors_equal(size_t n_a, const struct item_error *a, size_t n_b,
				const struct item_error *b)
{
	assert_int_equal(n_a, n_b);
	for (size_t i = 0; i < n_a; i++) {
		assert_int_equal(a[i].index, b[i].index);
		assert_int_equal(a[i].code, b[i].code);
		assert_texts_equal(a[i].text, b[i].text);
	}
}

static void assert_values_equal(const struct value *a, const struct value *b)
{
	assert_int_equal(a->code, b->code);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->leaf, b->leaf);
	assert_int_equal(a->own, b->own);
	assert_int_equal(a->total, b->total);
	assert_texts_equal(a->text, b->text);
}

static void assert_views_equal(const struct view *a, const struct view *b)
{
	assert_int_equal(a->present, b->present);
	assert_int_equal(a->error_bound, b->error_bound);
	assert_int_equal(a->age_ms, b->age_ms);
}

static void assert_welcomes_equal(const struct welcome *a, const struct welcome *b)
{
	assert_int_equal(a->version, b->version);
	assert_texts_equal(a->daemon, b->daemon);
	assert_int_equal(a->resumed, b->resumed);
	assert_int_equal(a->last_batch, b->last_batch);
	assert_texts_equal(a->incarnation, b->incarnation);
	assert_int_equal(a->limits.max_frame, b->limits.max_frame);
	assert_int_equal(a->limits.max_handles, b->limits.max_handles);
	assert_int_equal(a->limits.max_items, b->limits.max_items);
	assert_int_equal(a->limits.max_walks, b->limits.max_walks);
	assert_int_equal(a->limits.max_lifetime_ms, b->limits.max_lifetime_ms);
	assert_int_equal(a->limits.max_output, b->limits.max_output);
	assert_int_equal(a->limits.idle_frame_ms, b->limits.idle_frame_ms);
}

static void assert_pages_equal(const struct page *a, const struct page *b)
{
	assert_int_equal(a->n_entries, b->n_entries);
	for (size_t i = 0; i < a->n_entries; i++) {
		assert_texts_equal(a->entries[i].path, b->entries[i].path);
		assert_int_equal(a->entries[i].depth, b->entries[i].depth);
		assert_values_equal(&a->entries[i].value, &b->entries[i].value);
	}
	assert_int_equal(a->last, b->last);
	assert_texts_equal(a->cursor, b->cursor);
	assert_views_equal(&a->view, &b->view);
}

static void assert_statuses_equal(const struct status *a, const struct status *b)
{
	assert_int_equal(a->n_items, b->n_items);
	for (size_t i = 0; i < a->n_items; i++) {
		assert_texts_equal(a->items[i].name, b->items[i].name);
		assert_int_equal(a->items[i].is_text, b->items[i].is_text);
		assert_int_equal(a->items[i].number, b->items[i].number);
		assert_texts_equal(a->items[i].text, b->items[i].text);
		assert_texts_equal(a->items[i].help, b->items[i].help);
	}
}

void assert_replies_equal(const struct reply *a, const struct reply *b)
{
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->type, b->type);
	switch (a->type) {
	case REPLY_ERROR:
	case REPLY_GOODBYE: /* the same place in the union */
		assert_int_equal(a->error.code, b->error.code);
		assert_texts_equal(a->error.text, b->error.text);
		break;
	case REPLY_WELCOME:
		assert_welcomes_equal(&a->welcome, &b->welcome);
		break;
	case REPLY_INTERNED:
		assert_errors_equal(a->interned.n_errors, a->interned.errors, b->interned.n_errors,
				    b->interned.errors);
		break;
	case REPLY_APPLIED:
		assert_int_equal(a->applied.batch, b->applied.batch);
		assert_int_equal(a->applied.duplicate, b->applied.duplicate);
		assert_errors_equal(a->applied.n_errors, a->applied.errors, b->applied.n_errors,
				    b->applied.errors);
		break;
	case REPLY_VALUES:
		assert_int_equal(a->values.n_values, b->values.n_values);
		for (size_t i = 0; i < a->values.n_values; i++) {
			assert_values_equal(&a->values.values[i], &b->values.values[i]);
		}
		assert_views_equal(&a->values.view, &b->values.view);
		break;
	case REPLY_PAGE:
		assert_pages_equal(&a->page, &b->page);
		break;
	case REPLY_STATUS:
		assert_statuses_equal(&a->status, &b->status);
		break;
	case REPLY_METRIC:
		assert_metrics_equal(&a->metric, &b->metric);
		break;
	case REPLY_NONE:
	case REPLY_FLUSHED:
	case REPLY_PONG:
	default:
		break;
	}
}
