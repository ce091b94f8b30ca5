#include "proto/message.h"

#include <errno.h>

#include "proto/quick-add.h"
#include "proto/quick-get.h"
#include "proto/quick.h"
#include "proto/quota-wire.h"
#include "proto/wire.h"

/* ---- from bytes: what fails with -ENOMEM has set nothing ---- */

static struct hello decode_hello(const Ration__V1__Hello *hello)
{
	return (struct hello){
		.version = hello->version,
		.session = wire_text(hello->session),
		.lifetime_ms = hello->lifetime_ms,
		.next_batch = hello->next_batch,
		.agent = wire_text(hello->agent),
		.next_operation = hello->next_operation,
		.incarnation = wire_text(hello->incarnation),
	};
}

static int decode_intern(struct arena *arena, const Ration__V1__Intern *intern,
			 struct intern *ret_intern)
{
	const struct text *paths;
	int r = wire_texts(arena, intern->n_paths, intern->paths, &paths);
	if (r < 0) {
		return r;
	}
	*ret_intern = (struct intern){
		.first_handle = intern->first_handle,
		.n_paths = intern->n_paths,
		.paths = paths,
	};
	return 0;
}

/* No copy and no work per entry: these are the arrays protobuf-c decoded into. */
static struct add decode_add(const Ration__V1__Add *add)
{
	return (struct add){
		.batch = add->batch,
		.n_handles = add->n_handles,
		.n_deltas = add->n_deltas,
		.handles = add->handles,
		.deltas = add->deltas,
	};
}

static int decode_get(struct arena *arena, const Ration__V1__Get *get, struct get *ret_get)
{
	const struct text *paths;
	int r = wire_texts(arena, get->n_paths, get->paths, &paths);
	if (r < 0) {
		return r;
	}
	*ret_get = (struct get){
		.n_paths = get->n_paths,
		.paths = paths,
		.consistency = (enum consistency)get->consistency,
	};
	return 0;
}

static struct walk decode_walk(const Ration__V1__Walk *walk)
{
	return (struct walk){
		.root = wire_text(walk->root),
		.depth = walk->depth,
		.consistency = (enum consistency)walk->consistency,
		.limit = walk->limit,
		.cursor = wire_text(walk->cursor),
	};
}

static struct metric decode_metric_set(const Ration__V1__MetricSet *set)
{
	return set->metric ? wire_metric(set->metric) : (struct metric){ .name = text_of("") };
}

static int decode_import(struct arena *arena, const Ration__V1__ImportCounters *wire,
			 struct import *ret_import)
{
	struct import_item *items = wire_array(arena, wire->n_items, sizeof(*items));
	if (!items) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < wire->n_items; i++) {
		items[i] = (struct import_item){
			.path = wire_text(wire->items[i]->path),
			.own = wire->items[i]->own,
		};
	}
	*ret_import = (struct import){ .n_items = wire->n_items, .items = items };
	return 0;
}

static struct known decode_known(const Ration__V1__Known *known)
{
	if (!known) {
		return (struct known){ 0 };
	}
	return (struct known){ .present = true, .done = known->done, .granted = known->granted };
}

/* The type, or -ENOMEM. */
static int decode_body(struct arena *arena, const Ration__V1__Request *message,
		       struct request *request)
{
	int r;
	switch (message->body_case) {
	case RATION__V1__REQUEST__BODY_HELLO:
		request->hello = decode_hello(message->hello);
		return REQUEST_HELLO;
	case RATION__V1__REQUEST__BODY_INTERN:
		r = decode_intern(arena, message->intern, &request->intern);
		return r < 0 ? r : REQUEST_INTERN;
	case RATION__V1__REQUEST__BODY_ADD:
		request->add = decode_add(message->add);
		return REQUEST_ADD;
	case RATION__V1__REQUEST__BODY_GET:
		r = decode_get(arena, message->get, &request->get);
		return r < 0 ? r : REQUEST_GET;
	case RATION__V1__REQUEST__BODY_WALK:
		request->walk = decode_walk(message->walk);
		return REQUEST_WALK;
	case RATION__V1__REQUEST__BODY_FLUSH:
		request->flush.durable = message->flush->durable;
		return REQUEST_FLUSH;
	case RATION__V1__REQUEST__BODY_STATUS:
		return REQUEST_STATUS;
	case RATION__V1__REQUEST__BODY_METRIC_SET:
		request->metric_set = decode_metric_set(message->metric_set);
		return REQUEST_METRIC_SET;
	case RATION__V1__REQUEST__BODY_METRIC_GET:
		request->metric_get = wire_text(message->metric_get->name);
		return REQUEST_METRIC_GET;
	case RATION__V1__REQUEST__BODY_PING:
		return REQUEST_PING;
	case RATION__V1__REQUEST__BODY_RELOAD:
		return REQUEST_RELOAD;
	case RATION__V1__REQUEST__BODY_END:
		return REQUEST_END;
	case RATION__V1__REQUEST__BODY_METRIC_LIST:
		return REQUEST_METRIC_LIST;
	case RATION__V1__REQUEST__BODY_RESET:
		request->reset = wire_text(message->reset->path);
		return REQUEST_RESET;
	case RATION__V1__REQUEST__BODY_IMPORT_COUNTERS:
		r = decode_import(arena, message->import_counters, &request->import);
		return r < 0 ? r : REQUEST_IMPORT;
	case RATION__V1__REQUEST__BODY__NOT_SET:
	default:
		return quota_request_decode(arena, message, request);
	}
}

/* The first byte behind the id: where a message is written in the ordinary way, the tag of its body or the first byte of that. */
static uint8_t body_tag(const uint8_t *bytes, size_t len)
{
	size_t at = 0;

	if (len > 0 && bytes[0] == (1 << 3)) {
		for (at = 1; at < len && bytes[at] >= 0x80; at++) {
		}
		at++;
	}
	return at < len ? bytes[at] : 0;
}

static int decode_quickly(struct arena *arena, const uint8_t *bytes, size_t len,
			  struct request *ret_request)
{
	switch (body_tag(bytes, len)) {
	case 4 << 3 | 2:
		return quick_decode_add(arena, bytes, len, ret_request);
	case 5 << 3 | 2:
		return quick_decode_get(arena, bytes, len, ret_request);
	case ((20 << 3 | 2) & 0x7f) | 0x80:
		return quick_decode_charge(arena, bytes, len, ret_request);
	default:
		return QUICK_E_OTHER;
	}
}

int request_decode(struct arena *arena, const uint8_t *bytes, size_t len,
		   struct request *ret_request)
{
	ProtobufCMessage *message;
	int r = decode_quickly(arena, bytes, len, ret_request);
	if (r == QUICK_OK) {
		ret_request->known = (struct known){ 0 }; /* which none of these takes */
	}
	if (r != QUICK_E_OTHER) {
		return r;
	}
	r = wire_unpack(arena, &ration__v1__request__descriptor, bytes, len, &message);
	if (r < 0) {
		return r;
	}
	const Ration__V1__Request *wire = (const Ration__V1__Request *)message;

	r = decode_body(arena, wire, ret_request);
	if (r < 0) {
		return r;
	}
	ret_request->id = wire->id;
	ret_request->type = (enum request_type)r;
	ret_request->known = decode_known(wire->known);
	return 0;
}

/* ---- to bytes ---- */

/* Room for the body of a request while it is packed. */
union request_body {
	Ration__V1__Hello hello;
	Ration__V1__Intern intern;
	Ration__V1__Add add;
	Ration__V1__Get get;
	Ration__V1__Walk walk;
	Ration__V1__Flush flush;
	Ration__V1__StatusQuery status;
	Ration__V1__MetricSet metric_set;
	Ration__V1__MetricQuery metric_get;
	Ration__V1__Ping ping;
	Ration__V1__Reload reload;
	Ration__V1__End end;
	Ration__V1__MetricList metric_list;
	Ration__V1__Reset reset;
	Ration__V1__ImportCounters import;
};

static void encode_hello(const struct hello *hello, Ration__V1__Hello *ret_hello)
{
	ration__v1__hello__init(ret_hello);
	ret_hello->version = hello->version;
	ret_hello->session = wire_bytes(hello->session);
	ret_hello->lifetime_ms = hello->lifetime_ms;
	ret_hello->next_batch = hello->next_batch;
	ret_hello->agent = wire_bytes(hello->agent);
	ret_hello->next_operation = hello->next_operation;
	ret_hello->incarnation = wire_bytes(hello->incarnation);
}

static int encode_intern(struct arena *arena, const struct intern *intern,
			 Ration__V1__Intern *ret_intern)
{
	ration__v1__intern__init(ret_intern);
	ret_intern->first_handle = intern->first_handle;
	ret_intern->n_paths = intern->n_paths;
	return wire_strings(arena, intern->n_paths, intern->paths, &ret_intern->paths);
}

static void encode_add(const struct add *add, Ration__V1__Add *ret_add)
{
	ration__v1__add__init(ret_add);
	ret_add->batch = add->batch;
	ret_add->n_handles = add->n_handles;
	ret_add->handles = (uint32_t *)(uintptr_t)add->handles;
	ret_add->n_deltas = add->n_deltas;
	ret_add->deltas = (int64_t *)(uintptr_t)add->deltas;
}

static int encode_get(struct arena *arena, const struct get *get, Ration__V1__Get *ret_get)
{
	ration__v1__get__init(ret_get);
	ret_get->consistency = (Ration__V1__Consistency)get->consistency;
	ret_get->n_paths = get->n_paths;
	return wire_strings(arena, get->n_paths, get->paths, &ret_get->paths);
}

static void encode_walk(const struct walk *walk, Ration__V1__Walk *ret_walk)
{
	ration__v1__walk__init(ret_walk);
	ret_walk->root = wire_bytes(walk->root);
	ret_walk->depth = walk->depth;
	ret_walk->consistency = (Ration__V1__Consistency)walk->consistency;
	ret_walk->limit = walk->limit;
	ret_walk->cursor = wire_bytes(walk->cursor);
}

static int encode_import(struct arena *arena, const struct import *import,
			 Ration__V1__ImportCounters *ret_import)
{
	void **pointers;
	Ration__V1__ImportItem *messages =
		wire_messages(arena, import->n_items, sizeof(*messages), &pointers);
	if (!messages) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < import->n_items; i++) {
		ration__v1__import_item__init(&messages[i]);
		messages[i].path = wire_bytes(import->items[i].path);
		messages[i].own = import->items[i].own;
	}
	ration__v1__import_counters__init(ret_import);
	ret_import->n_items = import->n_items;
	ret_import->items = (Ration__V1__ImportItem **)pointers;
	return 0;
}

/* Fill `message`, whose body is `body` and may refer to `metric` and into the arena. */
static int encode_body(struct arena *arena, const struct request *request,
		       Ration__V1__Request *message, union request_body *body,
		       Ration__V1__Metric *metric)
{
	switch (request->type) {
	case REQUEST_NONE:
		return 0;
	case REQUEST_HELLO:
		message->body_case = RATION__V1__REQUEST__BODY_HELLO;
		message->hello = &body->hello;
		encode_hello(&request->hello, &body->hello);
		return 0;
	case REQUEST_INTERN:
		message->body_case = RATION__V1__REQUEST__BODY_INTERN;
		message->intern = &body->intern;
		return encode_intern(arena, &request->intern, &body->intern);
	case REQUEST_ADD:
		message->body_case = RATION__V1__REQUEST__BODY_ADD;
		message->add = &body->add;
		encode_add(&request->add, &body->add);
		return 0;
	case REQUEST_GET:
		message->body_case = RATION__V1__REQUEST__BODY_GET;
		message->get = &body->get;
		return encode_get(arena, &request->get, &body->get);
	case REQUEST_WALK:
		message->body_case = RATION__V1__REQUEST__BODY_WALK;
		message->walk = &body->walk;
		encode_walk(&request->walk, &body->walk);
		return 0;
	case REQUEST_FLUSH:
		message->body_case = RATION__V1__REQUEST__BODY_FLUSH;
		message->flush = &body->flush;
		ration__v1__flush__init(&body->flush);
		body->flush.durable = request->flush.durable;
		return 0;
	case REQUEST_STATUS:
		message->body_case = RATION__V1__REQUEST__BODY_STATUS;
		message->status = &body->status;
		ration__v1__status_query__init(&body->status);
		return 0;
	case REQUEST_METRIC_SET:
		message->body_case = RATION__V1__REQUEST__BODY_METRIC_SET;
		message->metric_set = &body->metric_set;
		ration__v1__metric_set__init(&body->metric_set);
		wire_set_metric(&request->metric_set, metric);
		body->metric_set.metric = metric;
		return 0;
	case REQUEST_METRIC_GET:
		message->body_case = RATION__V1__REQUEST__BODY_METRIC_GET;
		message->metric_get = &body->metric_get;
		ration__v1__metric_query__init(&body->metric_get);
		body->metric_get.name = wire_bytes(request->metric_get);
		return 0;
	case REQUEST_PING:
		message->body_case = RATION__V1__REQUEST__BODY_PING;
		message->ping = &body->ping;
		ration__v1__ping__init(&body->ping);
		return 0;
	case REQUEST_RELOAD:
		message->body_case = RATION__V1__REQUEST__BODY_RELOAD;
		message->reload = &body->reload;
		ration__v1__reload__init(&body->reload);
		return 0;
	case REQUEST_END:
		message->body_case = RATION__V1__REQUEST__BODY_END;
		message->end = &body->end;
		ration__v1__end__init(&body->end);
		return 0;
	case REQUEST_METRIC_LIST:
		message->body_case = RATION__V1__REQUEST__BODY_METRIC_LIST;
		message->metric_list = &body->metric_list;
		ration__v1__metric_list__init(&body->metric_list);
		return 0;
	case REQUEST_RESET:
		message->body_case = RATION__V1__REQUEST__BODY_RESET;
		message->reset = &body->reset;
		ration__v1__reset__init(&body->reset);
		body->reset.path = wire_bytes(request->reset);
		return 0;
	case REQUEST_IMPORT:
		message->body_case = RATION__V1__REQUEST__BODY_IMPORT_COUNTERS;
		message->import_counters = &body->import;
		return encode_import(arena, &request->import, &body->import);
	case REQUEST_CHARGE:
	case REQUEST_UNCHARGE:
	case REQUEST_LEASE:
	case REQUEST_LEASE_RENEW:
	case REQUEST_LEASE_RETURN:
	case REQUEST_QUOTA_SET:
	case REQUEST_QUOTA_REMOVE:
	case REQUEST_QUOTA_LIST:
	case REQUEST_QUOTA_EXPLAIN:
		return quota_request_encode(arena, request, message);
	}
	return -EINVAL;
}

int request_encode(struct arena *arena, const struct request *request, const uint8_t **ret_bytes,
		   size_t *ret_len)
{
	Ration__V1__Request message = RATION__V1__REQUEST__INIT;
	union request_body body;
	Ration__V1__Metric metric;
	Ration__V1__Known known = RATION__V1__KNOWN__INIT;
	message.id = request->id;
	if (request->known.present) {
		known.done = request->known.done;
		known.granted = request->known.granted;
		message.known = &known;
	}
	int r = encode_body(arena, request, &message, &body, &metric);
	if (r < 0) {
		return r;
	}
	return wire_pack(arena, &message.base, ret_bytes, ret_len);
}
