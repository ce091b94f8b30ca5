#include "proto/message.h"

#include <errno.h>

#include "proto/quota-wire.h"
#include "proto/wire.h"

/* What fails with -ENOMEM has set nothing. */

static int decode_errors(struct arena *arena, size_t n, Ration__V1__ItemError *const *wire,
			 const struct item_error **ret_errors)
{
	struct item_error *errors = wire_array(arena, n, sizeof(*errors));
	if (!errors) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		errors[i] = (struct item_error){
			.index = wire[i]->index,
			.code = wire[i]->code,
			.text = wire_text(wire[i]->text),
		};
	}
	*ret_errors = errors;
	return 0;
}

static struct limits decode_limits(const Ration__V1__Limits *limits)
{
	if (!limits) {
		return (struct limits){ 0 };
	}
	return (struct limits){
		.max_frame = limits->max_frame,
		.max_handles = limits->max_handles,
		.max_items = limits->max_items,
		.max_walks = limits->max_walks,
		.max_lifetime_ms = limits->max_lifetime_ms,
		.max_output = limits->max_output,
		.idle_frame_ms = limits->idle_frame_ms,
		.max_charge_items = limits->max_charge_items,
		.max_operations_kept = limits->max_operations_kept,
		.max_leases = limits->max_leases,
		.max_wait_ms = limits->max_wait_ms,
		.max_waits = limits->max_waits,
	};
}

static struct welcome decode_welcome(const Ration__V1__Welcome *welcome)
{
	return (struct welcome){
		.version = welcome->version,
		.daemon = wire_text(welcome->daemon),
		.resumed = welcome->resumed,
		.last_batch = welcome->last_batch,
		.limits = decode_limits(welcome->limits),
		.incarnation = wire_text(welcome->incarnation),
		.last_operation = welcome->last_operation,
		.keeps = welcome->keeps,
		.restored = welcome->restored,
		.durable_batch = welcome->durable_batch,
		.durable_operation = welcome->durable_operation,
	};
}

static struct value decode_value(const Ration__V1__Value *value)
{
	if (!value) {
		return (struct value){ .text = text_of("") };
	}
	return (struct value){
		.code = value->code,
		.kind = (enum kind)value->kind,
		.leaf = value->leaf,
		.own = value->own,
		.total = value->total,
		.text = wire_text(value->text),
	};
}

static struct view decode_view(const Ration__V1__View *view)
{
	if (!view) {
		return (struct view){ 0 };
	}
	return (struct view){ .present = true,
			      .error_bound = view->error_bound,
			      .age_ms = view->age_ms };
}

static int decode_values(struct arena *arena, const Ration__V1__Values *wire,
			 struct values *ret_values)
{
	struct value *values = wire_array(arena, wire->n_values, sizeof(*values));
	if (!values) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < wire->n_values; i++) {
		values[i] = decode_value(wire->values[i]);
	}
	*ret_values = (struct values){ .n_values = wire->n_values,
				       .values = values,
				       .view = decode_view(wire->view) };
	return 0;
}

static int decode_page(struct arena *arena, const Ration__V1__Page *wire, struct page *ret_page)
{
	struct entry *entries = wire_array(arena, wire->n_entries, sizeof(*entries));
	if (!entries) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < wire->n_entries; i++) {
		entries[i] = (struct entry){
			.path = wire_text(wire->entries[i]->path),
			.depth = wire->entries[i]->depth,
			.value = decode_value(wire->entries[i]->value),
		};
	}
	*ret_page = (struct page){
		.n_entries = wire->n_entries,
		.entries = entries,
		.last = wire->last,
		.cursor = wire_text(wire->cursor),
		.view = decode_view(wire->view),
	};
	return 0;
}

static int decode_status(struct arena *arena, const Ration__V1__Status *wire,
			 struct status *ret_status)
{
	struct status_item *items = wire_array(arena, wire->n_items, sizeof(*items));
	if (!items) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < wire->n_items; i++) {
		const Ration__V1__StatusItem *item = wire->items[i];
		bool is_text = item->value_case == RATION__V1__STATUS_ITEM__VALUE_TEXT;
		bool is_number = item->value_case == RATION__V1__STATUS_ITEM__VALUE_NUMBER;
		items[i] = (struct status_item){
			.name = wire_text(item->name),
			.is_text = is_text,
			.number = is_number ? item->number : 0,
			.text = is_text ? wire_text(item->text) : text_of(""),
			.help = wire_text(item->help),
		};
	}
	*ret_status = (struct status){ .n_items = wire->n_items, .items = items };
	return 0;
}

static int decode_interned(struct arena *arena, const Ration__V1__Interned *wire,
			   struct interned *ret_interned)
{
	int r = decode_errors(arena, wire->n_errors, wire->errors, &ret_interned->errors);
	if (r < 0) {
		return r;
	}
	ret_interned->n_errors = wire->n_errors;
	return 0;
}

static int decode_applied(struct arena *arena, const Ration__V1__Applied *wire,
			  struct applied *ret_applied)
{
	int r = decode_errors(arena, wire->n_errors, wire->errors, &ret_applied->errors);
	if (r < 0) {
		return r;
	}
	ret_applied->batch = wire->batch;
	ret_applied->duplicate = wire->duplicate;
	ret_applied->n_errors = wire->n_errors;
	return 0;
}

static int decode_reloaded(struct arena *arena, const Ration__V1__Reloaded *wire,
			   struct reloaded *ret_reloaded)
{
	const struct text *errors, *notes;
	int r = wire_texts(arena, wire->n_errors, wire->errors, &errors);
	if (r == 0) {
		r = wire_texts(arena, wire->n_notes, wire->notes, &notes);
	}
	if (r < 0) {
		return r;
	}
	*ret_reloaded = (struct reloaded){
		.good = wire->good,
		.n_errors = wire->n_errors,
		.errors = errors,
		.n_notes = wire->n_notes,
		.notes = notes,
		.omitted = wire->omitted,
	};
	return 0;
}

static int decode_metrics(struct arena *arena, const Ration__V1__Metrics *wire,
			  struct metric_list *ret_metrics)
{
	struct metric *metrics = wire_array(arena, wire->n_metrics, sizeof(*metrics));
	if (!metrics) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < wire->n_metrics; i++) {
		metrics[i] = wire_metric(wire->metrics[i]);
	}
	*ret_metrics = (struct metric_list){ .n_metrics = wire->n_metrics, .metrics = metrics };
	return 0;
}

static int decode_imported(struct arena *arena, const Ration__V1__Imported *wire,
			   struct imported *ret_imported)
{
	int r = decode_errors(arena, wire->n_errors, wire->errors, &ret_imported->errors);
	if (r < 0) {
		return r;
	}
	ret_imported->n_errors = wire->n_errors;
	return 0;
}

/* The type, or -ENOMEM. */
static int decode_body(struct arena *arena, const Ration__V1__Reply *message, struct reply *reply)
{
	int r;
	switch (message->body_case) {
	case RATION__V1__REPLY__BODY_ERROR:
		reply->error.code = message->error->code;
		reply->error.text = wire_text(message->error->text);
		reply->error.operation = message->error->operation;
		reply->error.duplicate = message->error->duplicate;
		return REPLY_ERROR;
	case RATION__V1__REPLY__BODY_WELCOME:
		reply->welcome = decode_welcome(message->welcome);
		return REPLY_WELCOME;
	case RATION__V1__REPLY__BODY_INTERNED:
		r = decode_interned(arena, message->interned, &reply->interned);
		return r < 0 ? r : REPLY_INTERNED;
	case RATION__V1__REPLY__BODY_APPLIED:
		r = decode_applied(arena, message->applied, &reply->applied);
		return r < 0 ? r : REPLY_APPLIED;
	case RATION__V1__REPLY__BODY_VALUES:
		r = decode_values(arena, message->values, &reply->values);
		return r < 0 ? r : REPLY_VALUES;
	case RATION__V1__REPLY__BODY_PAGE:
		r = decode_page(arena, message->page, &reply->page);
		return r < 0 ? r : REPLY_PAGE;
	case RATION__V1__REPLY__BODY_FLUSHED:
		reply->flushed.durable = message->flushed->durable;
		return REPLY_FLUSHED;
	case RATION__V1__REPLY__BODY_STATUS:
		r = decode_status(arena, message->status, &reply->status);
		return r < 0 ? r : REPLY_STATUS;
	case RATION__V1__REPLY__BODY_METRIC:
		reply->metric = wire_metric(message->metric);
		return REPLY_METRIC;
	case RATION__V1__REPLY__BODY_PONG:
		return REPLY_PONG;
	case RATION__V1__REPLY__BODY_GOODBYE:
		reply->goodbye = (struct error_body){
			.code = message->goodbye->code,
			.text = wire_text(message->goodbye->text),
		};
		return REPLY_GOODBYE;
	case RATION__V1__REPLY__BODY_RELOADED:
		r = decode_reloaded(arena, message->reloaded, &reply->reloaded);
		return r < 0 ? r : REPLY_RELOADED;
	case RATION__V1__REPLY__BODY_ENDED:
		return REPLY_ENDED;
	case RATION__V1__REPLY__BODY_DURABLE:
		reply->durable = (struct durable){
			.batch = message->durable->batch,
			.operation = message->durable->operation,
		};
		return REPLY_DURABLE;
	case RATION__V1__REPLY__BODY_METRICS:
		r = decode_metrics(arena, message->metrics, &reply->metrics);
		return r < 0 ? r : REPLY_METRICS;
	case RATION__V1__REPLY__BODY_RESET:
		reply->reset.counters = message->reset->counters;
		return REPLY_RESET;
	case RATION__V1__REPLY__BODY_IMPORTED:
		r = decode_imported(arena, message->imported, &reply->imported);
		return r < 0 ? r : REPLY_IMPORTED;
	case RATION__V1__REPLY__BODY__NOT_SET:
	default:
		return quota_reply_decode(arena, message, reply);
	}
}

int reply_decode(struct arena *arena, const uint8_t *bytes, size_t len, struct reply *ret_reply)
{
	ProtobufCMessage *message;
	int r = wire_unpack(arena, &ration__v1__reply__descriptor, bytes, len, &message);
	if (r < 0) {
		return r;
	}
	const Ration__V1__Reply *wire = (const Ration__V1__Reply *)message;

	r = decode_body(arena, wire, ret_reply);
	if (r < 0) {
		return r;
	}
	ret_reply->id = wire->id;
	ret_reply->type = (enum reply_type)r;
	return 0;
}
