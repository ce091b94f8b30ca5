#include "proto/message.h"

#include <errno.h>

#include "proto/quick-add.h"
#include "proto/quick-get.h"
#include "proto/quick.h"
#include "proto/quota-wire.h"
#include "proto/wire.h"

/* Room for the body of a reply while it is packed, and for what the body points to. */
struct reply_room {
	union {
		Ration__V1__Error error;
		Ration__V1__Welcome welcome;
		Ration__V1__Interned interned;
		Ration__V1__Applied applied;
		Ration__V1__Values values;
		Ration__V1__Page page;
		Ration__V1__Flushed flushed;
		Ration__V1__Status status;
		Ration__V1__Metric metric;
		Ration__V1__Pong pong;
		Ration__V1__Goodbye goodbye;
		Ration__V1__Reloaded reloaded;
		Ration__V1__Ended ended;
		Ration__V1__Durable durable;
		Ration__V1__Metrics metrics;
		Ration__V1__ResetDone reset;
		Ration__V1__Imported imported;
	};
	Ration__V1__Limits limits;
	Ration__V1__View view;
};

static int encode_errors(struct arena *arena, size_t n, const struct item_error *errors,
			 Ration__V1__ItemError ***ret_errors)
{
	void **pointers;
	Ration__V1__ItemError *messages = wire_messages(arena, n, sizeof(*messages), &pointers);
	if (!messages) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		ration__v1__item_error__init(&messages[i]);
		messages[i].index = errors[i].index;
		messages[i].code = errors[i].code;
		messages[i].text = wire_bytes(errors[i].text);
	}
	*ret_errors = (Ration__V1__ItemError **)pointers;
	return 0;
}

static void encode_welcome(const struct welcome *welcome, struct reply_room *room)
{
	ration__v1__welcome__init(&room->welcome);
	room->welcome.version = welcome->version;
	room->welcome.daemon = wire_bytes(welcome->daemon);
	room->welcome.resumed = welcome->resumed;
	room->welcome.last_batch = welcome->last_batch;
	room->welcome.incarnation = wire_bytes(welcome->incarnation);
	room->welcome.last_operation = welcome->last_operation;
	room->welcome.keeps = welcome->keeps;
	room->welcome.restored = welcome->restored;
	room->welcome.durable_batch = welcome->durable_batch;
	room->welcome.durable_operation = welcome->durable_operation;
	room->welcome.limits = &room->limits;

	ration__v1__limits__init(&room->limits);
	room->limits.max_frame = welcome->limits.max_frame;
	room->limits.max_handles = welcome->limits.max_handles;
	room->limits.max_items = welcome->limits.max_items;
	room->limits.max_walks = welcome->limits.max_walks;
	room->limits.max_lifetime_ms = welcome->limits.max_lifetime_ms;
	room->limits.max_output = welcome->limits.max_output;
	room->limits.idle_frame_ms = welcome->limits.idle_frame_ms;
	room->limits.max_charge_items = welcome->limits.max_charge_items;
	room->limits.max_operations_kept = welcome->limits.max_operations_kept;
	room->limits.max_leases = welcome->limits.max_leases;
	room->limits.max_wait_ms = welcome->limits.max_wait_ms;
	room->limits.max_waits = welcome->limits.max_waits;
}

static void encode_value(const struct value *value, Ration__V1__Value *ret_value)
{
	ration__v1__value__init(ret_value);
	ret_value->code = value->code;
	ret_value->kind = (Ration__V1__Kind)value->kind;
	ret_value->leaf = value->leaf;
	ret_value->own = value->own;
	ret_value->total = value->total;
	ret_value->text = wire_bytes(value->text);
}

/* NULL, which leaves the field out, if there is no view. */
static Ration__V1__View *encode_view(const struct view *view, struct reply_room *room)
{
	if (!view->present) {
		return NULL;
	}
	ration__v1__view__init(&room->view);
	room->view.error_bound = view->error_bound;
	room->view.age_ms = view->age_ms;
	return &room->view;
}

static int encode_values(struct arena *arena, const struct values *values, struct reply_room *room)
{
	ration__v1__values__init(&room->values);
	room->values.view = encode_view(&values->view, room);
	room->values.n_values = values->n_values;
	void **pointers;
	Ration__V1__Value *messages =
		wire_messages(arena, values->n_values, sizeof(*messages), &pointers);
	if (!messages) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < values->n_values; i++) {
		encode_value(&values->values[i], &messages[i]);
	}
	room->values.values = (Ration__V1__Value **)pointers;
	return 0;
}

static int encode_page(struct arena *arena, const struct page *page, struct reply_room *room)
{
	/* An entry and its value side by side: one walk over memory. */
	struct page_entry {
		Ration__V1__Entry entry;
		Ration__V1__Value value;
	};

	ration__v1__page__init(&room->page);
	room->page.last = page->last;
	room->page.cursor = wire_bytes(page->cursor);
	room->page.view = encode_view(&page->view, room);
	room->page.n_entries = page->n_entries;
	void **pointers;
	struct page_entry *messages =
		wire_messages(arena, page->n_entries, sizeof(*messages), &pointers);
	if (!messages) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < page->n_entries; i++) {
		const struct entry *entry = &page->entries[i];
		ration__v1__entry__init(&messages[i].entry);
		messages[i].entry.path = wire_bytes(entry->path);
		messages[i].entry.depth = entry->depth;
		messages[i].entry.value = &messages[i].value;
		encode_value(&entry->value, &messages[i].value);
	}
	room->page.entries = (Ration__V1__Entry **)pointers;
	return 0;
}

static int encode_status(struct arena *arena, const struct status *status, struct reply_room *room)
{
	ration__v1__status__init(&room->status);
	room->status.n_items = status->n_items;
	void **pointers;
	Ration__V1__StatusItem *messages =
		wire_messages(arena, status->n_items, sizeof(*messages), &pointers);
	if (!messages) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < status->n_items; i++) {
		const struct status_item *item = &status->items[i];
		ration__v1__status_item__init(&messages[i]);
		messages[i].name = wire_bytes(item->name);
		messages[i].help = wire_bytes(item->help);
		if (item->is_text) {
			messages[i].value_case = RATION__V1__STATUS_ITEM__VALUE_TEXT;
			messages[i].text = wire_bytes(item->text);
		} else {
			messages[i].value_case = RATION__V1__STATUS_ITEM__VALUE_NUMBER;
			messages[i].number = item->number;
		}
	}
	room->status.items = (Ration__V1__StatusItem **)pointers;
	return 0;
}

static int encode_reloaded(struct arena *arena, const struct reloaded *reloaded,
			   Ration__V1__Reloaded *ret_reloaded)
{
	ration__v1__reloaded__init(ret_reloaded);
	ret_reloaded->good = reloaded->good;
	ret_reloaded->omitted = reloaded->omitted;
	ret_reloaded->n_errors = reloaded->n_errors;
	ret_reloaded->n_notes = reloaded->n_notes;
	int r = wire_strings(arena, reloaded->n_errors, reloaded->errors, &ret_reloaded->errors);
	if (r < 0) {
		return r;
	}
	return wire_strings(arena, reloaded->n_notes, reloaded->notes, &ret_reloaded->notes);
}

static int encode_metrics(struct arena *arena, const struct metric_list *metrics,
			  Ration__V1__Metrics *ret_metrics)
{
	void **pointers;
	Ration__V1__Metric *messages =
		wire_messages(arena, metrics->n_metrics, sizeof(*messages), &pointers);
	if (!messages) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < metrics->n_metrics; i++) {
		wire_set_metric(&metrics->metrics[i], &messages[i]);
	}
	ration__v1__metrics__init(ret_metrics);
	ret_metrics->n_metrics = metrics->n_metrics;
	ret_metrics->metrics = (Ration__V1__Metric **)pointers;
	return 0;
}

static void encode_error(const struct error_body *error, Ration__V1__Error *ret_error)
{
	ration__v1__error__init(ret_error);
	ret_error->code = error->code;
	ret_error->text = wire_bytes(error->text);
	ret_error->operation = error->operation;
	ret_error->duplicate = error->duplicate;
}

static void encode_goodbye(const struct error_body *goodbye, Ration__V1__Goodbye *ret_goodbye)
{
	ration__v1__goodbye__init(ret_goodbye);
	ret_goodbye->code = goodbye->code;
	ret_goodbye->text = wire_bytes(goodbye->text);
}

static int encode_interned(struct arena *arena, const struct interned *interned,
			   Ration__V1__Interned *ret_interned)
{
	ration__v1__interned__init(ret_interned);
	ret_interned->n_errors = interned->n_errors;
	return encode_errors(arena, interned->n_errors, interned->errors, &ret_interned->errors);
}

static int encode_applied(struct arena *arena, const struct applied *applied,
			  Ration__V1__Applied *ret_applied)
{
	ration__v1__applied__init(ret_applied);
	ret_applied->batch = applied->batch;
	ret_applied->duplicate = applied->duplicate;
	ret_applied->n_errors = applied->n_errors;
	return encode_errors(arena, applied->n_errors, applied->errors, &ret_applied->errors);
}

/* Fill `message`, whose body is in `room` and may refer into the arena. */
static int encode_body(struct arena *arena, const struct reply *reply, Ration__V1__Reply *message,
		       struct reply_room *room)
{
	switch (reply->type) {
	case REPLY_NONE:
		return 0;
	case REPLY_ERROR:
		message->body_case = RATION__V1__REPLY__BODY_ERROR;
		message->error = &room->error;
		encode_error(&reply->error, &room->error);
		return 0;
	case REPLY_WELCOME:
		message->body_case = RATION__V1__REPLY__BODY_WELCOME;
		message->welcome = &room->welcome;
		encode_welcome(&reply->welcome, room);
		return 0;
	case REPLY_INTERNED:
		message->body_case = RATION__V1__REPLY__BODY_INTERNED;
		message->interned = &room->interned;
		return encode_interned(arena, &reply->interned, &room->interned);
	case REPLY_APPLIED:
		message->body_case = RATION__V1__REPLY__BODY_APPLIED;
		message->applied = &room->applied;
		return encode_applied(arena, &reply->applied, &room->applied);
	case REPLY_VALUES:
		message->body_case = RATION__V1__REPLY__BODY_VALUES;
		message->values = &room->values;
		return encode_values(arena, &reply->values, room);
	case REPLY_PAGE:
		message->body_case = RATION__V1__REPLY__BODY_PAGE;
		message->page = &room->page;
		return encode_page(arena, &reply->page, room);
	case REPLY_FLUSHED:
		message->body_case = RATION__V1__REPLY__BODY_FLUSHED;
		message->flushed = &room->flushed;
		ration__v1__flushed__init(&room->flushed);
		room->flushed.durable = reply->flushed.durable;
		return 0;
	case REPLY_STATUS:
		message->body_case = RATION__V1__REPLY__BODY_STATUS;
		message->status = &room->status;
		return encode_status(arena, &reply->status, room);
	case REPLY_METRIC:
		message->body_case = RATION__V1__REPLY__BODY_METRIC;
		message->metric = &room->metric;
		wire_set_metric(&reply->metric, &room->metric);
		return 0;
	case REPLY_PONG:
		message->body_case = RATION__V1__REPLY__BODY_PONG;
		message->pong = &room->pong;
		ration__v1__pong__init(&room->pong);
		return 0;
	case REPLY_GOODBYE:
		message->body_case = RATION__V1__REPLY__BODY_GOODBYE;
		message->goodbye = &room->goodbye;
		encode_goodbye(&reply->goodbye, &room->goodbye);
		return 0;
	case REPLY_RELOADED:
		message->body_case = RATION__V1__REPLY__BODY_RELOADED;
		message->reloaded = &room->reloaded;
		return encode_reloaded(arena, &reply->reloaded, &room->reloaded);
	case REPLY_ENDED:
		message->body_case = RATION__V1__REPLY__BODY_ENDED;
		message->ended = &room->ended;
		ration__v1__ended__init(&room->ended);
		return 0;
	case REPLY_DURABLE:
		message->body_case = RATION__V1__REPLY__BODY_DURABLE;
		message->durable = &room->durable;
		ration__v1__durable__init(&room->durable);
		room->durable.batch = reply->durable.batch;
		room->durable.operation = reply->durable.operation;
		return 0;
	case REPLY_METRICS:
		message->body_case = RATION__V1__REPLY__BODY_METRICS;
		message->metrics = &room->metrics;
		return encode_metrics(arena, &reply->metrics, &room->metrics);
	case REPLY_RESET:
		message->body_case = RATION__V1__REPLY__BODY_RESET;
		message->reset = &room->reset;
		ration__v1__reset_done__init(&room->reset);
		room->reset.counters = reply->reset.counters;
		return 0;
	case REPLY_IMPORTED:
		message->body_case = RATION__V1__REPLY__BODY_IMPORTED;
		message->imported = &room->imported;
		ration__v1__imported__init(&room->imported);
		room->imported.n_errors = reply->imported.n_errors;
		return encode_errors(arena, reply->imported.n_errors, reply->imported.errors,
				     &room->imported.errors);
	case REPLY_CHARGED:
	case REPLY_UNCHARGED:
	case REPLY_LEASED:
	case REPLY_LEASE_RETURNED:
	case REPLY_QUOTA_OK:
	case REPLY_QUOTA_RULES:
	case REPLY_QUOTA_EXPLAINED:
		return quota_reply_encode(arena, reply, message);
	}
	return -EINVAL;
}

static int encode_quickly(struct arena *arena, const struct reply *reply, const uint8_t **ret_bytes,
			  size_t *ret_len)
{
	switch (reply->type) {
	case REPLY_APPLIED:
		return quick_encode_applied(arena, reply, ret_bytes, ret_len);
	case REPLY_VALUES:
		return quick_encode_values(arena, reply, ret_bytes, ret_len);
	case REPLY_CHARGED:
		return quick_encode_charged(arena, reply, ret_bytes, ret_len);
	default:
		return QUICK_E_OTHER;
	}
}

int reply_encode(struct arena *arena, const struct reply *reply, const uint8_t **ret_bytes,
		 size_t *ret_len)
{
	Ration__V1__Reply message = RATION__V1__REPLY__INIT;
	struct reply_room room;
	int r = encode_quickly(arena, reply, ret_bytes, ret_len);
	if (r != QUICK_E_OTHER) {
		return r;
	}
	message.id = reply->id;
	r = encode_body(arena, reply, &message, &room);
	if (r < 0) {
		return r;
	}
	return wire_pack(arena, &message.base, ret_bytes, ret_len);
}
