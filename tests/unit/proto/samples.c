#include "tests/unit/proto/samples.h"

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

static const struct charge_item charge_items[] = {
	{ .path = TEXT("jobs/acme"), .amount = 1 },
	{ .path = TEXT("memory/acme/web"), .amount = MESSAGE_MAX_AMOUNT },
	{ .path = TEXT("gr\303\274n/\344\270\255"), .amount = INT64_MAX },
	{ .path = TEXT("with\0nul"), .amount = INT64_MIN },
	{ .path = TEXT("") },
};
/* No two fields are alike, but max and high: 0, which is not the same as absent. */
#define RULE_SAMPLE                                             \
	{                                                       \
		.pattern = TEXT("requests/*/**"),               \
		.window = { .kind = RULE_WINDOW_CALENDAR,       \
			    .unit = RULE_WINDOW_MONTH,          \
			    .duration_ms = 2678400000 },        \
		.limits = { .has_max = true,                    \
			    .has_high = true,                   \
			    .shadow = true,                     \
			    .low = 1,                           \
			    .min = INT64_MIN,                   \
			    .rate = INT64_MAX,                  \
			    .per_ms = UINT64_MAX,               \
			    .burst = 100 },                     \
		.layer = RULE_RUN_TIME, .overridden = true,     \
		.source = TEXT("/etc/rationd/rationd.conf:31"), \
	}
#define RULE_MAX_ONLY                                                                              \
	{                                                                                          \
		.pattern = TEXT("jobs"), .limits = { .has_max = true, .max = MESSAGE_MAX_AMOUNT }, \
		.source = TEXT(""),                                                                \
	}
#define RULE_HIGH_ONLY                                                             \
	{                                                                          \
		.pattern = TEXT("jobs/*"), .window = { .kind = RULE_WINDOW_RATE }, \
		.limits = { .has_high = true, .high = -1 }, .source = TEXT(""),    \
	}
#define RULE_EMPTY                                      \
	{                                               \
		.pattern = TEXT(""), .source = TEXT("") \
	}

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
		     .agent = TEXT("samples/0.1.0"),
		     .next_operation = UINT64_MAX } },
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
	{ .id = 18, .type = REQUEST_RELOAD },
	{ .id = 18, .type = REQUEST_END },
	{ .id = 19,
	  .type = REQUEST_CHARGE,
	  .charge = { .number = UINT64_MAX,
		      .n_items = COUNT(charge_items),
		      .items = charge_items,
		      .dry_run = true,
		      .detached = true,
		      .wait_ms = UINT32_MAX } },
	{ .id = 20,
	  .type = REQUEST_CHARGE,
	  .charge = { .number = 1, .n_items = 1, .items = charge_items } },
	{ .id = 21, .type = REQUEST_CHARGE },
	{ .id = 22,
	  .type = REQUEST_UNCHARGE,
	  .uncharge = { .number = 2,
			.path = TEXT("jobs/acme"),
			.amount = INT64_MIN,
			.detached = true } },
	{ .id = 23, .type = REQUEST_UNCHARGE, .uncharge = { .path = TEXT("") } },
	{ .id = 24,
	  .type = REQUEST_LEASE,
	  .lease = { .number = 3,
		     .lease = UINT32_MAX,
		     .ttl_ms = MESSAGE_MAX_TTL_MS,
		     .path = TEXT("requests/acme"),
		     .want = MESSAGE_MAX_AMOUNT } },
	{ .id = 25, .type = REQUEST_LEASE, .lease = { .path = TEXT("") } },
	{ .id = 26,
	  .type = REQUEST_LEASE_RENEW,
	  .lease_renew = { .number = 4, .lease = 5, .spent = -1, .want = INT64_MAX } },
	{ .id = 27, .type = REQUEST_LEASE_RENEW },
	{ .id = 28,
	  .type = REQUEST_LEASE_RETURN,
	  .lease_return = { .number = 5, .lease = 6, .spent = INT64_MAX } },
	{ .id = 29, .type = REQUEST_LEASE_RETURN },
	{ .id = 30, .type = REQUEST_QUOTA_SET, .quota_set = RULE_SAMPLE },
	{ .id = 31, .type = REQUEST_QUOTA_SET, .quota_set = RULE_MAX_ONLY },
	{ .id = 32, .type = REQUEST_QUOTA_SET, .quota_set = RULE_HIGH_ONLY },
	{ .id = 33, .type = REQUEST_QUOTA_SET, .quota_set = RULE_EMPTY },
	{ .id = 34,
	  .type = REQUEST_QUOTA_REMOVE,
	  .quota_remove = { .pattern = TEXT("requests/*"),
			    .window = { .kind = RULE_WINDOW_PER, .duration_ms = 60000 },
			    .all_windows = true } },
	{ .id = 35, .type = REQUEST_QUOTA_REMOVE, .quota_remove = { .pattern = TEXT("") } },
	{ .id = 36, .type = REQUEST_QUOTA_LIST, .quota_list = TEXT("\0\377cursor") },
	{ .id = 37, .type = REQUEST_QUOTA_LIST, .quota_list = TEXT("") },
	{ .id = 38, .type = REQUEST_QUOTA_EXPLAIN, .quota_explain = TEXT("requests/acme/web") },
	{ .id = 39, .type = REQUEST_QUOTA_EXPLAIN, .quota_explain = TEXT("") },
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

static const struct binding bindings[] = {
	{ .kind = BINDING_MAX,
	  .path = TEXT("requests/acme"),
	  .window = { .kind = RULE_WINDOW_PER, .duration_ms = 60000 },
	  .limit = MESSAGE_MAX_AMOUNT,
	  .usage = INT64_MAX,
	  .left = 7,
	  .retry_after_ms = 12345 },
	{ .kind = BINDING_SHADOW,
	  .path = TEXT("requests"),
	  .window = { .kind = RULE_WINDOW_CALENDAR, .unit = RULE_WINDOW_WEEK },
	  .limit = INT64_MIN,
	  .usage = INT64_MIN,
	  .left = INT64_MIN,
	  .retry_after_ms = MESSAGE_RETRY_NEVER },
	{ .path = TEXT("") },
};
static const struct text notes[] = { TEXT("max of jobs/a is above that of jobs"), TEXT("") };
static const struct rule rules[] = { RULE_SAMPLE, RULE_MAX_ONLY, RULE_HIGH_ONLY, RULE_EMPTY };
static const struct explained_level levels[] = {
	{ .path = TEXT("requests/acme/web"),
	  .window = { .kind = RULE_WINDOW_RATE },
	  .limits = { .rate = 10, .per_ms = 1000, .burst = 20 },
	  .layer = RULE_RUN_TIME,
	  .pattern = TEXT("requests/*/*"),
	  .source = TEXT("rationctl"),
	  .usage = 1,
	  .peak = 2,
	  .left = 3,
	  .refusals = UINT64_MAX,
	  .forced = 4,
	  .effective_min = 5,
	  .effective_low = 6,
	  .binds = true,
	  .over_high = true,
	  .over_max = true,
	  .ends_in_ms = UINT64_MAX },
	{ .path = TEXT(""), .pattern = TEXT(""), .source = TEXT("") },
};
static const struct explained_sibling siblings[] = {
	{ .path = TEXT("requests/acme/db"), .usage = 1, .effective_min = 2, .effective_low = 3 },
	{ .path = TEXT("") },
};
static const struct explained_lease leases[] = {
	{ .path = TEXT("requests/acme"),
	  .agent = TEXT("libration/0.1.0"),
	  .units = 500,
	  .expires_in_ms = 9000 },
	{ .path = TEXT(""), .agent = TEXT("") },
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
				   .idle_frame_ms = 5,
				   .max_charge_items = 6,
				   .max_operations_kept = 7,
				   .max_leases = 8,
				   .max_wait_ms = 9,
				   .max_waits = UINT32_MAX },
		       .incarnation = TEXT("\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17"),
		       .last_operation = UINT64_MAX } },
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
	{ .id = 15, .type = REPLY_ENDED },
	{ .id = 15,
	  .type = REPLY_RELOADED,
	  .reloaded = { .good = true, .n_notes = COUNT(paths), .notes = paths } },
	{ .id = 15,
	  .type = REPLY_RELOADED,
	  .reloaded = { .n_errors = COUNT(paths), .errors = paths, .omitted = UINT32_MAX } },
	{ .id = 15, .type = REPLY_RELOADED },
	{ .id = 0,
	  .type = REPLY_GOODBYE,
	  .goodbye = { .code = CODE_ABORTED,
		       .text = TEXT("the session is used by a newer connection") } },
	{ .id = 16,
	  .type = REPLY_ERROR,
	  .error = { .code = CODE_NOT_FOUND,
		     .text = TEXT("no metric reqests"),
		     .operation = UINT64_MAX,
		     .duplicate = true } },
	{ .id = 17,
	  .type = REPLY_CHARGED,
	  .charged = { .number = UINT64_MAX,
		       .granted = true,
		       .duplicate = true,
		       .omitted = UINT32_MAX,
		       .n_bindings = COUNT(bindings),
		       .bindings = bindings } },
	{ .id = 18, .type = REPLY_CHARGED, .charged = { .number = 1, .granted = true } },
	{ .id = 19, .type = REPLY_CHARGED },
	{ .id = 20, .type = REPLY_UNCHARGED, .uncharged = { .number = 2, .duplicate = true } },
	{ .id = 21, .type = REPLY_UNCHARGED },
	{ .id = 22,
	  .type = REPLY_LEASED,
	  .leased = { .number = 3,
		      .lease = UINT32_MAX,
		      .ttl_ms = 10000,
		      .granted = 500,
		      .duplicate = true,
		      .omitted = 1,
		      .n_bindings = COUNT(bindings),
		      .bindings = bindings } },
	{ .id = 23, .type = REPLY_LEASED },
	{ .id = 24,
	  .type = REPLY_LEASE_RETURNED,
	  .lease_returned = { .number = 4, .lease = 5, .returned = 400, .duplicate = true } },
	{ .id = 25, .type = REPLY_LEASE_RETURNED },
	{ .id = 26,
	  .type = REPLY_QUOTA_OK,
	  .quota_ok = { .n_notes = COUNT(notes), .notes = notes } },
	{ .id = 27, .type = REPLY_QUOTA_OK },
	{ .id = 28,
	  .type = REPLY_QUOTA_RULES,
	  .quota_rules = { .n_rules = COUNT(rules), .rules = rules, .cursor = TEXT("\0\377") } },
	{ .id = 29, .type = REPLY_QUOTA_RULES, .quota_rules = { .cursor = TEXT("") } },
	{ .id = 30,
	  .type = REPLY_QUOTA_EXPLAINED,
	  .quota_explained = { .n_levels = COUNT(levels),
			       .levels = levels,
			       .n_siblings = COUNT(siblings),
			       .siblings = siblings,
			       .siblings_omitted = 1,
			       .n_leases = COUNT(leases),
			       .leases = leases,
			       .leases_omitted = 2 } },
	{ .id = 31, .type = REPLY_QUOTA_EXPLAINED },
};
const size_t n_sample_replies = COUNT(sample_replies);
