#include "proto/quota-wire.h"

#include <errno.h>

/* ---- from bytes: what fails with -ENOMEM has set nothing ---- */

static int decode_bindings(struct arena *arena, size_t n, Ration__V1__Binding *const *wire,
			   const struct binding **ret_bindings)
{
	struct binding *bindings = wire_array(arena, n, sizeof(*bindings));
	if (!bindings) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		bindings[i] = (struct binding){
			.kind = (enum binding_kind)wire[i]->kind,
			.path = wire_text(wire[i]->path),
			.window = wire_window(wire[i]->window),
			.limit = wire[i]->limit,
			.usage = wire[i]->usage,
			.left = wire[i]->left,
			.retry_after_ms = wire[i]->retry_after_ms,
		};
	}
	*ret_bindings = bindings;
	return 0;
}

static int decode_charged(struct arena *arena, const Ration__V1__Charged *charged,
			  struct charged *ret_charged)
{
	int r = decode_bindings(arena, charged->n_bindings, charged->bindings,
				&ret_charged->bindings);
	if (r < 0) {
		return r;
	}
	ret_charged->number = charged->number;
	ret_charged->granted = charged->granted;
	ret_charged->duplicate = charged->duplicate;
	ret_charged->omitted = charged->omitted;
	ret_charged->n_bindings = charged->n_bindings;
	return 0;
}

static int decode_leased(struct arena *arena, const Ration__V1__Leased *leased,
			 struct leased *ret_leased)
{
	int r = decode_bindings(arena, leased->n_bindings, leased->bindings, &ret_leased->bindings);
	if (r < 0) {
		return r;
	}
	ret_leased->number = leased->number;
	ret_leased->lease = leased->lease;
	ret_leased->granted = leased->granted;
	ret_leased->ttl_ms = leased->ttl_ms;
	ret_leased->duplicate = leased->duplicate;
	ret_leased->omitted = leased->omitted;
	ret_leased->n_bindings = leased->n_bindings;
	return 0;
}

static struct lease_returned decode_lease_returned(const Ration__V1__LeaseReturned *returned)
{
	return (struct lease_returned){
		.number = returned->number,
		.lease = returned->lease,
		.returned = returned->returned,
		.duplicate = returned->duplicate,
	};
}

static int decode_notes(struct arena *arena, const Ration__V1__QuotaOk *wire,
			struct rule_notes *ret_notes)
{
	int r = wire_texts(arena, wire->n_notes, wire->notes, &ret_notes->notes);
	if (r < 0) {
		return r;
	}
	ret_notes->n_notes = wire->n_notes;
	return 0;
}

static int decode_rules(struct arena *arena, const Ration__V1__QuotaRules *wire,
			struct rule_list *ret_list)
{
	struct rule *rules = wire_array(arena, wire->n_rules, sizeof(*rules));
	if (!rules) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < wire->n_rules; i++) {
		rules[i] = wire_rule(wire->rules[i]);
	}
	*ret_list = (struct rule_list){
		.n_rules = wire->n_rules,
		.rules = rules,
		.cursor = wire_text(wire->cursor),
	};
	return 0;
}

static struct explained_level decode_level(const Ration__V1__ExplainedLevel *level)
{
	return (struct explained_level){
		.path = wire_text(level->path),
		.window = wire_window(level->window),
		.limits = wire_limits(level->limits),
		.layer = (enum rule_layer)level->layer,
		.pattern = wire_text(level->pattern),
		.source = wire_text(level->source),
		.usage = level->usage,
		.peak = level->peak,
		.left = level->left,
		.refusals = level->refusals,
		.forced = level->forced,
		.effective_min = level->effective_min,
		.effective_low = level->effective_low,
		.binds = level->binds,
		.over_high = level->over_high,
		.over_max = level->over_max,
		.ends_in_ms = level->ends_in_ms,
	};
}

static struct explained_sibling decode_sibling(const Ration__V1__ExplainedSibling *sibling)
{
	return (struct explained_sibling){
		.path = wire_text(sibling->path),
		.usage = sibling->usage,
		.effective_min = sibling->effective_min,
		.effective_low = sibling->effective_low,
	};
}

static struct explained_lease decode_explained_lease(const Ration__V1__ExplainedLease *lease)
{
	return (struct explained_lease){
		.path = wire_text(lease->path),
		.agent = wire_text(lease->agent),
		.units = lease->units,
		.expires_in_ms = lease->expires_in_ms,
	};
}

static int decode_explained(struct arena *arena, const Ration__V1__QuotaExplained *wire,
			    struct explained *ret_explained)
{
	struct explained_level *levels = wire_array(arena, wire->n_levels, sizeof(*levels));
	struct explained_sibling *siblings = wire_array(arena, wire->n_siblings, sizeof(*siblings));
	struct explained_lease *leases = wire_array(arena, wire->n_leases, sizeof(*leases));
	if (!levels || !siblings || !leases) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < wire->n_levels; i++) {
		levels[i] = decode_level(wire->levels[i]);
	}
	for (size_t i = 0; i < wire->n_siblings; i++) {
		siblings[i] = decode_sibling(wire->siblings[i]);
	}
	for (size_t i = 0; i < wire->n_leases; i++) {
		leases[i] = decode_explained_lease(wire->leases[i]);
	}
	*ret_explained = (struct explained){
		.n_levels = wire->n_levels,
		.levels = levels,
		.n_siblings = wire->n_siblings,
		.siblings = siblings,
		.siblings_omitted = wire->siblings_omitted,
		.n_leases = wire->n_leases,
		.leases = leases,
		.leases_omitted = wire->leases_omitted,
	};
	return 0;
}

int quota_reply_decode(struct arena *arena, const Ration__V1__Reply *message,
		       struct reply *ret_reply)
{
	int r;
	switch (message->body_case) {
	case RATION__V1__REPLY__BODY_CHARGED:
		r = decode_charged(arena, message->charged, &ret_reply->charged);
		return r < 0 ? r : REPLY_CHARGED;
	case RATION__V1__REPLY__BODY_UNCHARGED:
		ret_reply->uncharged.number = message->uncharged->number;
		ret_reply->uncharged.duplicate = message->uncharged->duplicate;
		return REPLY_UNCHARGED;
	case RATION__V1__REPLY__BODY_LEASED:
		r = decode_leased(arena, message->leased, &ret_reply->leased);
		return r < 0 ? r : REPLY_LEASED;
	case RATION__V1__REPLY__BODY_LEASE_RETURNED:
		ret_reply->lease_returned = decode_lease_returned(message->lease_returned);
		return REPLY_LEASE_RETURNED;
	case RATION__V1__REPLY__BODY_QUOTA_OK:
		r = decode_notes(arena, message->quota_ok, &ret_reply->quota_ok);
		return r < 0 ? r : REPLY_QUOTA_OK;
	case RATION__V1__REPLY__BODY_QUOTA_RULES:
		r = decode_rules(arena, message->quota_rules, &ret_reply->quota_rules);
		return r < 0 ? r : REPLY_QUOTA_RULES;
	case RATION__V1__REPLY__BODY_QUOTA_EXPLAINED:
		r = decode_explained(arena, message->quota_explained, &ret_reply->quota_explained);
		return r < 0 ? r : REPLY_QUOTA_EXPLAINED;
	default:
		return REPLY_NONE;
	}
}

/* ---- to bytes ---- */

/* Room for the body of a reply while it is packed. */
union quota_body {
	Ration__V1__Charged charged;
	Ration__V1__Uncharged uncharged;
	Ration__V1__Leased leased;
	Ration__V1__LeaseReturned lease_returned;
	Ration__V1__QuotaOk quota_ok;
	Ration__V1__QuotaRules quota_rules;
	Ration__V1__QuotaExplained quota_explained;
};

static int encode_bindings(struct arena *arena, size_t n, const struct binding *bindings,
			   Ration__V1__Binding ***ret_bindings)
{
	void **pointers;
	struct wire_binding {
		Ration__V1__Binding binding;
		Ration__V1__Window window;
	} *messages = wire_messages(arena, n, sizeof(*messages), &pointers);
	if (!messages) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		Ration__V1__Binding *message = &messages[i].binding;
		ration__v1__binding__init(message);
		message->kind = (Ration__V1__Binding__Kind)bindings[i].kind;
		message->path = wire_bytes(bindings[i].path);
		message->window = &messages[i].window;
		wire_set_window(&bindings[i].window, &messages[i].window);
		message->limit = bindings[i].limit;
		message->usage = bindings[i].usage;
		message->left = bindings[i].left;
		message->retry_after_ms = bindings[i].retry_after_ms;
	}
	*ret_bindings = (Ration__V1__Binding **)pointers;
	return 0;
}

static int encode_charged(struct arena *arena, const struct charged *charged,
			  Ration__V1__Charged *ret_charged)
{
	ration__v1__charged__init(ret_charged);
	ret_charged->number = charged->number;
	ret_charged->granted = charged->granted;
	ret_charged->duplicate = charged->duplicate;
	ret_charged->omitted = charged->omitted;
	ret_charged->n_bindings = charged->n_bindings;
	return encode_bindings(arena, charged->n_bindings, charged->bindings,
			       &ret_charged->bindings);
}

static int encode_leased(struct arena *arena, const struct leased *leased,
			 Ration__V1__Leased *ret_leased)
{
	ration__v1__leased__init(ret_leased);
	ret_leased->number = leased->number;
	ret_leased->lease = leased->lease;
	ret_leased->granted = leased->granted;
	ret_leased->ttl_ms = leased->ttl_ms;
	ret_leased->duplicate = leased->duplicate;
	ret_leased->omitted = leased->omitted;
	ret_leased->n_bindings = leased->n_bindings;
	return encode_bindings(arena, leased->n_bindings, leased->bindings, &ret_leased->bindings);
}

static void encode_lease_returned(const struct lease_returned *returned,
				  Ration__V1__LeaseReturned *ret_returned)
{
	ration__v1__lease_returned__init(ret_returned);
	ret_returned->number = returned->number;
	ret_returned->lease = returned->lease;
	ret_returned->returned = returned->returned;
	ret_returned->duplicate = returned->duplicate;
}

static int encode_rules(struct arena *arena, const struct rule_list *list,
			Ration__V1__QuotaRules *ret_rules)
{
	void **pointers;
	struct wire_rule *messages =
		wire_messages(arena, list->n_rules, sizeof(*messages), &pointers);
	if (!messages) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < list->n_rules; i++) {
		wire_set_rule(&list->rules[i], &messages[i]);
	}
	ration__v1__quota_rules__init(ret_rules);
	ret_rules->n_rules = list->n_rules;
	ret_rules->rules = (Ration__V1__Rule **)pointers;
	ret_rules->cursor = wire_bytes(list->cursor);
	return 0;
}

static int encode_levels(struct arena *arena, size_t n, const struct explained_level *levels,
			 Ration__V1__ExplainedLevel ***ret_levels)
{
	void **pointers;
	struct wire_level {
		Ration__V1__ExplainedLevel level;
		Ration__V1__Window window;
		Ration__V1__QuotaLimits limits;
	} *messages = wire_messages(arena, n, sizeof(*messages), &pointers);
	if (!messages) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		const struct explained_level *level = &levels[i];
		Ration__V1__ExplainedLevel *message = &messages[i].level;
		ration__v1__explained_level__init(message);
		message->path = wire_bytes(level->path);
		message->window = &messages[i].window;
		wire_set_window(&level->window, &messages[i].window);
		message->limits = &messages[i].limits;
		wire_set_limits(&level->limits, &messages[i].limits);
		message->layer = (Ration__V1__Rule__Layer)level->layer;
		message->pattern = wire_bytes(level->pattern);
		message->source = wire_bytes(level->source);
		message->usage = level->usage;
		message->peak = level->peak;
		message->left = level->left;
		message->refusals = level->refusals;
		message->forced = level->forced;
		message->effective_min = level->effective_min;
		message->effective_low = level->effective_low;
		message->binds = level->binds;
		message->over_high = level->over_high;
		message->over_max = level->over_max;
		message->ends_in_ms = level->ends_in_ms;
	}
	*ret_levels = (Ration__V1__ExplainedLevel **)pointers;
	return 0;
}

static int encode_siblings(struct arena *arena, size_t n, const struct explained_sibling *siblings,
			   Ration__V1__ExplainedSibling ***ret_siblings)
{
	void **pointers;
	Ration__V1__ExplainedSibling *messages =
		wire_messages(arena, n, sizeof(*messages), &pointers);
	if (!messages) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		ration__v1__explained_sibling__init(&messages[i]);
		messages[i].path = wire_bytes(siblings[i].path);
		messages[i].usage = siblings[i].usage;
		messages[i].effective_min = siblings[i].effective_min;
		messages[i].effective_low = siblings[i].effective_low;
	}
	*ret_siblings = (Ration__V1__ExplainedSibling **)pointers;
	return 0;
}

static int encode_explained_leases(struct arena *arena, size_t n,
				   const struct explained_lease *leases,
				   Ration__V1__ExplainedLease ***ret_leases)
{
	void **pointers;
	Ration__V1__ExplainedLease *messages =
		wire_messages(arena, n, sizeof(*messages), &pointers);
	if (!messages) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		ration__v1__explained_lease__init(&messages[i]);
		messages[i].path = wire_bytes(leases[i].path);
		messages[i].agent = wire_bytes(leases[i].agent);
		messages[i].units = leases[i].units;
		messages[i].expires_in_ms = leases[i].expires_in_ms;
	}
	*ret_leases = (Ration__V1__ExplainedLease **)pointers;
	return 0;
}

static int encode_explained(struct arena *arena, const struct explained *explained,
			    Ration__V1__QuotaExplained *ret_explained)
{
	ration__v1__quota_explained__init(ret_explained);
	ret_explained->n_levels = explained->n_levels;
	ret_explained->n_siblings = explained->n_siblings;
	ret_explained->siblings_omitted = explained->siblings_omitted;
	ret_explained->n_leases = explained->n_leases;
	ret_explained->leases_omitted = explained->leases_omitted;
	int r = encode_levels(arena, explained->n_levels, explained->levels,
			      &ret_explained->levels);
	if (r < 0) {
		return r;
	}
	r = encode_siblings(arena, explained->n_siblings, explained->siblings,
			    &ret_explained->siblings);
	if (r < 0) {
		return r;
	}
	return encode_explained_leases(arena, explained->n_leases, explained->leases,
				       &ret_explained->leases);
}

int quota_reply_encode(struct arena *arena, const struct reply *reply, Ration__V1__Reply *message)
{
	union quota_body *body = arena_alloc(arena, sizeof(*body));
	if (!body) {
		return -ENOMEM;
	}
	switch (reply->type) {
	case REPLY_CHARGED:
		message->body_case = RATION__V1__REPLY__BODY_CHARGED;
		message->charged = &body->charged;
		return encode_charged(arena, &reply->charged, &body->charged);
	case REPLY_UNCHARGED:
		message->body_case = RATION__V1__REPLY__BODY_UNCHARGED;
		message->uncharged = &body->uncharged;
		ration__v1__uncharged__init(&body->uncharged);
		body->uncharged.number = reply->uncharged.number;
		body->uncharged.duplicate = reply->uncharged.duplicate;
		return 0;
	case REPLY_LEASED:
		message->body_case = RATION__V1__REPLY__BODY_LEASED;
		message->leased = &body->leased;
		return encode_leased(arena, &reply->leased, &body->leased);
	case REPLY_LEASE_RETURNED:
		message->body_case = RATION__V1__REPLY__BODY_LEASE_RETURNED;
		message->lease_returned = &body->lease_returned;
		encode_lease_returned(&reply->lease_returned, &body->lease_returned);
		return 0;
	case REPLY_QUOTA_OK:
		message->body_case = RATION__V1__REPLY__BODY_QUOTA_OK;
		message->quota_ok = &body->quota_ok;
		ration__v1__quota_ok__init(&body->quota_ok);
		body->quota_ok.n_notes = reply->quota_ok.n_notes;
		return wire_strings(arena, reply->quota_ok.n_notes, reply->quota_ok.notes,
				    &body->quota_ok.notes);
	case REPLY_QUOTA_RULES:
		message->body_case = RATION__V1__REPLY__BODY_QUOTA_RULES;
		message->quota_rules = &body->quota_rules;
		return encode_rules(arena, &reply->quota_rules, &body->quota_rules);
	case REPLY_QUOTA_EXPLAINED:
		message->body_case = RATION__V1__REPLY__BODY_QUOTA_EXPLAINED;
		message->quota_explained = &body->quota_explained;
		return encode_explained(arena, &reply->quota_explained, &body->quota_explained);
	default:
		return -EINVAL;
	}
}
