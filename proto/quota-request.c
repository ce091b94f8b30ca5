#include "proto/quota-wire.h"

#include <errno.h>

/* ---- from bytes ---- */

static int decode_charge(struct arena *arena, const Ration__V1__Charge *wire,
			 struct charge *ret_charge)
{
	struct charge_item *items = wire_array(arena, wire->n_items, sizeof(*items));
	if (!items) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < wire->n_items; i++) {
		items[i] = (struct charge_item){
			.path = wire_text(wire->items[i]->path),
			.amount = wire->items[i]->amount,
		};
	}
	*ret_charge = (struct charge){
		.number = wire->number,
		.n_items = wire->n_items,
		.items = items,
		.dry_run = wire->dry_run,
		.detached = wire->detached,
		.wait_ms = wire->wait_ms,
	};
	return 0;
}

static struct uncharge decode_uncharge(const Ration__V1__Uncharge *uncharge)
{
	return (struct uncharge){
		.number = uncharge->number,
		.path = wire_text(uncharge->path),
		.amount = uncharge->amount,
		.detached = uncharge->detached,
	};
}

static struct lease_take decode_lease(const Ration__V1__Lease *lease)
{
	return (struct lease_take){
		.number = lease->number,
		.lease = lease->lease,
		.path = wire_text(lease->path),
		.want = lease->want,
		.ttl_ms = lease->ttl_ms,
	};
}

static struct lease_renew decode_lease_renew(const Ration__V1__LeaseRenew *renew)
{
	return (struct lease_renew){
		.number = renew->number,
		.lease = renew->lease,
		.spent = renew->spent,
		.want = renew->want,
	};
}

static struct lease_return decode_lease_return(const Ration__V1__LeaseReturn *wire)
{
	return (struct lease_return){
		.number = wire->number,
		.lease = wire->lease,
		.spent = wire->spent,
	};
}

static struct rule_remove decode_quota_remove(const Ration__V1__QuotaRemove *remove)
{
	return (struct rule_remove){
		.pattern = wire_text(remove->pattern),
		.window = wire_window(remove->window),
		.all_windows = remove->all_windows,
	};
}

int quota_request_decode(struct arena *arena, const Ration__V1__Request *message,
			 struct request *ret_request)
{
	int r;
	switch (message->body_case) {
	case RATION__V1__REQUEST__BODY_CHARGE:
		r = decode_charge(arena, message->charge, &ret_request->charge);
		return r < 0 ? r : REQUEST_CHARGE;
	case RATION__V1__REQUEST__BODY_UNCHARGE:
		ret_request->uncharge = decode_uncharge(message->uncharge);
		return REQUEST_UNCHARGE;
	case RATION__V1__REQUEST__BODY_LEASE:
		ret_request->lease = decode_lease(message->lease);
		return REQUEST_LEASE;
	case RATION__V1__REQUEST__BODY_LEASE_RENEW:
		ret_request->lease_renew = decode_lease_renew(message->lease_renew);
		return REQUEST_LEASE_RENEW;
	case RATION__V1__REQUEST__BODY_LEASE_RETURN:
		ret_request->lease_return = decode_lease_return(message->lease_return);
		return REQUEST_LEASE_RETURN;
	case RATION__V1__REQUEST__BODY_QUOTA_SET:
		ret_request->quota_set = wire_rule(message->quota_set->rule);
		return REQUEST_QUOTA_SET;
	case RATION__V1__REQUEST__BODY_QUOTA_REMOVE:
		ret_request->quota_remove = decode_quota_remove(message->quota_remove);
		return REQUEST_QUOTA_REMOVE;
	case RATION__V1__REQUEST__BODY_QUOTA_LIST:
		ret_request->quota_list = wire_text(message->quota_list->cursor);
		return REQUEST_QUOTA_LIST;
	case RATION__V1__REQUEST__BODY_QUOTA_EXPLAIN:
		ret_request->quota_explain = wire_text(message->quota_explain->path);
		return REQUEST_QUOTA_EXPLAIN;
	default:
		return REQUEST_NONE;
	}
}

/* ---- to bytes ---- */

/* Room for the body of a request while it is packed, and for what the body points to. */
struct quota_room {
	union {
		Ration__V1__Charge charge;
		Ration__V1__Uncharge uncharge;
		Ration__V1__Lease lease;
		Ration__V1__LeaseRenew lease_renew;
		Ration__V1__LeaseReturn lease_return;
		Ration__V1__QuotaSet quota_set;
		Ration__V1__QuotaRemove quota_remove;
		Ration__V1__QuotaList quota_list;
		Ration__V1__QuotaExplain quota_explain;
	};
	union {
		struct wire_rule rule;
		Ration__V1__Window window;
	};
};

static int encode_charge(struct arena *arena, const struct charge *charge,
			 Ration__V1__Charge *ret_charge)
{
	void **pointers;
	Ration__V1__ChargeItem *messages =
		wire_messages(arena, charge->n_items, sizeof(*messages), &pointers);
	if (!messages) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < charge->n_items; i++) {
		ration__v1__charge_item__init(&messages[i]);
		messages[i].path = wire_bytes(charge->items[i].path);
		messages[i].amount = charge->items[i].amount;
	}
	ration__v1__charge__init(ret_charge);
	ret_charge->number = charge->number;
	ret_charge->n_items = charge->n_items;
	ret_charge->items = (Ration__V1__ChargeItem **)pointers;
	ret_charge->dry_run = charge->dry_run;
	ret_charge->detached = charge->detached;
	ret_charge->wait_ms = charge->wait_ms;
	return 0;
}

static void encode_uncharge(const struct uncharge *uncharge, Ration__V1__Uncharge *ret_uncharge)
{
	ration__v1__uncharge__init(ret_uncharge);
	ret_uncharge->number = uncharge->number;
	ret_uncharge->path = wire_bytes(uncharge->path);
	ret_uncharge->amount = uncharge->amount;
	ret_uncharge->detached = uncharge->detached;
}

static void encode_lease(const struct lease_take *lease, Ration__V1__Lease *ret_lease)
{
	ration__v1__lease__init(ret_lease);
	ret_lease->number = lease->number;
	ret_lease->lease = lease->lease;
	ret_lease->path = wire_bytes(lease->path);
	ret_lease->want = lease->want;
	ret_lease->ttl_ms = lease->ttl_ms;
}

static void encode_lease_renew(const struct lease_renew *renew, Ration__V1__LeaseRenew *ret_renew)
{
	ration__v1__lease_renew__init(ret_renew);
	ret_renew->number = renew->number;
	ret_renew->lease = renew->lease;
	ret_renew->spent = renew->spent;
	ret_renew->want = renew->want;
}

static void encode_lease_return(const struct lease_return *lease,
				Ration__V1__LeaseReturn *ret_return)
{
	ration__v1__lease_return__init(ret_return);
	ret_return->number = lease->number;
	ret_return->lease = lease->lease;
	ret_return->spent = lease->spent;
}

static void encode_quota_set(const struct rule *rule, struct quota_room *room)
{
	ration__v1__quota_set__init(&room->quota_set);
	wire_set_rule(rule, &room->rule);
	room->quota_set.rule = &room->rule.rule;
}

static void encode_quota_remove(const struct rule_remove *remove, struct quota_room *room)
{
	ration__v1__quota_remove__init(&room->quota_remove);
	room->quota_remove.pattern = wire_bytes(remove->pattern);
	room->quota_remove.all_windows = remove->all_windows;
	wire_set_window(&remove->window, &room->window);
	room->quota_remove.window = &room->window;
}

int quota_request_encode(struct arena *arena, const struct request *request,
			 Ration__V1__Request *message)
{
	struct quota_room *room = arena_alloc(arena, sizeof(*room));
	if (!room) {
		return -ENOMEM;
	}
	switch (request->type) {
	case REQUEST_CHARGE:
		message->body_case = RATION__V1__REQUEST__BODY_CHARGE;
		message->charge = &room->charge;
		return encode_charge(arena, &request->charge, &room->charge);
	case REQUEST_UNCHARGE:
		message->body_case = RATION__V1__REQUEST__BODY_UNCHARGE;
		message->uncharge = &room->uncharge;
		encode_uncharge(&request->uncharge, &room->uncharge);
		return 0;
	case REQUEST_LEASE:
		message->body_case = RATION__V1__REQUEST__BODY_LEASE;
		message->lease = &room->lease;
		encode_lease(&request->lease, &room->lease);
		return 0;
	case REQUEST_LEASE_RENEW:
		message->body_case = RATION__V1__REQUEST__BODY_LEASE_RENEW;
		message->lease_renew = &room->lease_renew;
		encode_lease_renew(&request->lease_renew, &room->lease_renew);
		return 0;
	case REQUEST_LEASE_RETURN:
		message->body_case = RATION__V1__REQUEST__BODY_LEASE_RETURN;
		message->lease_return = &room->lease_return;
		encode_lease_return(&request->lease_return, &room->lease_return);
		return 0;
	case REQUEST_QUOTA_SET:
		message->body_case = RATION__V1__REQUEST__BODY_QUOTA_SET;
		message->quota_set = &room->quota_set;
		encode_quota_set(&request->quota_set, room);
		return 0;
	case REQUEST_QUOTA_REMOVE:
		message->body_case = RATION__V1__REQUEST__BODY_QUOTA_REMOVE;
		message->quota_remove = &room->quota_remove;
		encode_quota_remove(&request->quota_remove, room);
		return 0;
	case REQUEST_QUOTA_LIST:
		message->body_case = RATION__V1__REQUEST__BODY_QUOTA_LIST;
		message->quota_list = &room->quota_list;
		ration__v1__quota_list__init(&room->quota_list);
		room->quota_list.cursor = wire_bytes(request->quota_list);
		return 0;
	case REQUEST_QUOTA_EXPLAIN:
		message->body_case = RATION__V1__REQUEST__BODY_QUOTA_EXPLAIN;
		message->quota_explain = &room->quota_explain;
		ration__v1__quota_explain__init(&room->quota_explain);
		room->quota_explain.path = wire_bytes(request->quota_explain);
		return 0;
	default:
		return -EINVAL;
	}
}
