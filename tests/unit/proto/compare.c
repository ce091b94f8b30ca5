#include "tests/unit/proto/samples.h"

#include "tests/support/test.h"

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

static void assert_windows_equal(const struct rule_window *a, const struct rule_window *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->unit, b->unit);
	assert_int_equal(a->duration_ms, b->duration_ms);
}

static void assert_quota_limits_equal(const struct rule_limits *a, const struct rule_limits *b)
{
	assert_int_equal(a->has_max, b->has_max);
	assert_int_equal(a->max, b->max);
	assert_int_equal(a->has_high, b->has_high);
	assert_int_equal(a->high, b->high);
	assert_int_equal(a->low, b->low);
	assert_int_equal(a->min, b->min);
	assert_int_equal(a->shadow, b->shadow);
	assert_int_equal(a->rate, b->rate);
	assert_int_equal(a->per_ms, b->per_ms);
	assert_int_equal(a->burst, b->burst);
}

static void assert_rules_equal(const struct rule *a, const struct rule *b)
{
	assert_texts_equal(a->pattern, b->pattern);
	assert_windows_equal(&a->window, &b->window);
	assert_quota_limits_equal(&a->limits, &b->limits);
	assert_int_equal(a->layer, b->layer);
	assert_int_equal(a->overridden, b->overridden);
	assert_texts_equal(a->source, b->source);
}

static void assert_charges_equal(const struct charge *a, const struct charge *b)
{
	assert_int_equal(a->number, b->number);
	assert_int_equal(a->dry_run, b->dry_run);
	assert_int_equal(a->detached, b->detached);
	assert_int_equal(a->wait_ms, b->wait_ms);
	assert_int_equal(a->n_items, b->n_items);
	for (size_t i = 0; i < a->n_items; i++) {
		assert_texts_equal(a->items[i].path, b->items[i].path);
		assert_int_equal(a->items[i].amount, b->items[i].amount);
	}
}

static void assert_imports_equal(const struct import *a, const struct import *b)
{
	assert_int_equal(a->n_items, b->n_items);
	for (size_t i = 0; i < a->n_items; i++) {
		assert_texts_equal(a->items[i].path, b->items[i].path);
		assert_int_equal(a->items[i].own, b->items[i].own);
	}
}

void assert_requests_equal(const struct request *a, const struct request *b)
{
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->known.present, b->known.present);
	assert_int_equal(a->known.done, b->known.done);
	assert_int_equal(a->known.granted, b->known.granted);
	switch (a->type) {
	case REQUEST_HELLO:
		assert_int_equal(a->hello.version, b->hello.version);
		assert_texts_equal(a->hello.session, b->hello.session);
		assert_int_equal(a->hello.lifetime_ms, b->hello.lifetime_ms);
		assert_int_equal(a->hello.next_batch, b->hello.next_batch);
		assert_texts_equal(a->hello.agent, b->hello.agent);
		assert_int_equal(a->hello.next_operation, b->hello.next_operation);
		assert_texts_equal(a->hello.incarnation, b->hello.incarnation);
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
	case REQUEST_FLUSH:
		assert_int_equal(a->flush.durable, b->flush.durable);
		break;
	case REQUEST_RESET:
		assert_texts_equal(a->reset, b->reset);
		break;
	case REQUEST_IMPORT:
		assert_imports_equal(&a->import, &b->import);
		break;
	case REQUEST_NONE:
	case REQUEST_METRIC_LIST:
	case REQUEST_RELOAD:
	case REQUEST_END:
	case REQUEST_STATUS:
	case REQUEST_PING:
		break;
	case REQUEST_CHARGE:
		assert_charges_equal(&a->charge, &b->charge);
		break;
	case REQUEST_UNCHARGE:
		assert_int_equal(a->uncharge.number, b->uncharge.number);
		assert_texts_equal(a->uncharge.path, b->uncharge.path);
		assert_int_equal(a->uncharge.amount, b->uncharge.amount);
		assert_int_equal(a->uncharge.detached, b->uncharge.detached);
		break;
	case REQUEST_LEASE:
		assert_int_equal(a->lease.number, b->lease.number);
		assert_int_equal(a->lease.lease, b->lease.lease);
		assert_int_equal(a->lease.ttl_ms, b->lease.ttl_ms);
		assert_texts_equal(a->lease.path, b->lease.path);
		assert_int_equal(a->lease.want, b->lease.want);
		break;
	case REQUEST_LEASE_RENEW:
		assert_int_equal(a->lease_renew.number, b->lease_renew.number);
		assert_int_equal(a->lease_renew.lease, b->lease_renew.lease);
		assert_int_equal(a->lease_renew.spent, b->lease_renew.spent);
		assert_int_equal(a->lease_renew.want, b->lease_renew.want);
		break;
	case REQUEST_LEASE_RETURN:
		assert_int_equal(a->lease_return.number, b->lease_return.number);
		assert_int_equal(a->lease_return.lease, b->lease_return.lease);
		assert_int_equal(a->lease_return.spent, b->lease_return.spent);
		break;
	case REQUEST_QUOTA_SET:
		assert_rules_equal(&a->quota_set, &b->quota_set);
		break;
	case REQUEST_QUOTA_REMOVE:
		assert_texts_equal(a->quota_remove.pattern, b->quota_remove.pattern);
		assert_windows_equal(&a->quota_remove.window, &b->quota_remove.window);
		assert_int_equal(a->quota_remove.all_windows, b->quota_remove.all_windows);
		break;
	case REQUEST_QUOTA_LIST:
		assert_texts_equal(a->quota_list, b->quota_list);
		break;
	case REQUEST_QUOTA_EXPLAIN:
		assert_texts_equal(a->quota_explain, b->quota_explain);
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
	assert_int_equal(a->limits.max_charge_items, b->limits.max_charge_items);
	assert_int_equal(a->limits.max_operations_kept, b->limits.max_operations_kept);
	assert_int_equal(a->limits.max_leases, b->limits.max_leases);
	assert_int_equal(a->limits.max_wait_ms, b->limits.max_wait_ms);
	assert_int_equal(a->limits.max_waits, b->limits.max_waits);
	assert_int_equal(a->last_operation, b->last_operation);
	assert_int_equal(a->keeps, b->keeps);
	assert_int_equal(a->restored, b->restored);
	assert_int_equal(a->durable_batch, b->durable_batch);
	assert_int_equal(a->durable_operation, b->durable_operation);
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

static void assert_bindings_equal(size_t n_a, const struct binding *a, size_t n_b,
				  const struct binding *b)
{
	assert_int_equal(n_a, n_b);
	for (size_t i = 0; i < n_a; i++) {
		assert_int_equal(a[i].kind, b[i].kind);
		assert_texts_equal(a[i].path, b[i].path);
		assert_windows_equal(&a[i].window, &b[i].window);
		assert_int_equal(a[i].limit, b[i].limit);
		assert_int_equal(a[i].usage, b[i].usage);
		assert_int_equal(a[i].left, b[i].left);
		assert_int_equal(a[i].retry_after_ms, b[i].retry_after_ms);
	}
}

static void assert_levels_equal(const struct explained_level *a, const struct explained_level *b)
{
	assert_texts_equal(a->path, b->path);
	assert_windows_equal(&a->window, &b->window);
	assert_quota_limits_equal(&a->limits, &b->limits);
	assert_int_equal(a->layer, b->layer);
	assert_texts_equal(a->pattern, b->pattern);
	assert_texts_equal(a->source, b->source);
	assert_int_equal(a->usage, b->usage);
	assert_int_equal(a->peak, b->peak);
	assert_int_equal(a->left, b->left);
	assert_int_equal(a->refusals, b->refusals);
	assert_int_equal(a->forced, b->forced);
	assert_int_equal(a->effective_min, b->effective_min);
	assert_int_equal(a->effective_low, b->effective_low);
	assert_int_equal(a->binds, b->binds);
	assert_int_equal(a->over_high, b->over_high);
	assert_int_equal(a->over_max, b->over_max);
	assert_int_equal(a->ends_in_ms, b->ends_in_ms);
}

static void assert_explained_equal(const struct explained *a, const struct explained *b)
{
	assert_int_equal(a->n_levels, b->n_levels);
	for (size_t i = 0; i < a->n_levels; i++) {
		assert_levels_equal(&a->levels[i], &b->levels[i]);
	}
	assert_int_equal(a->siblings_omitted, b->siblings_omitted);
	assert_int_equal(a->n_siblings, b->n_siblings);
	for (size_t i = 0; i < a->n_siblings; i++) {
		assert_texts_equal(a->siblings[i].path, b->siblings[i].path);
		assert_int_equal(a->siblings[i].usage, b->siblings[i].usage);
		assert_int_equal(a->siblings[i].effective_min, b->siblings[i].effective_min);
		assert_int_equal(a->siblings[i].effective_low, b->siblings[i].effective_low);
	}
	assert_int_equal(a->leases_omitted, b->leases_omitted);
	assert_int_equal(a->n_leases, b->n_leases);
	for (size_t i = 0; i < a->n_leases; i++) {
		assert_texts_equal(a->leases[i].path, b->leases[i].path);
		assert_texts_equal(a->leases[i].agent, b->leases[i].agent);
		assert_int_equal(a->leases[i].units, b->leases[i].units);
		assert_int_equal(a->leases[i].expires_in_ms, b->leases[i].expires_in_ms);
	}
}

static void assert_charged_equal(const struct charged *a, const struct charged *b)
{
	assert_int_equal(a->number, b->number);
	assert_int_equal(a->granted, b->granted);
	assert_int_equal(a->duplicate, b->duplicate);
	assert_int_equal(a->omitted, b->omitted);
	assert_bindings_equal(a->n_bindings, a->bindings, b->n_bindings, b->bindings);
}

static void assert_leased_equal(const struct leased *a, const struct leased *b)
{
	assert_int_equal(a->number, b->number);
	assert_int_equal(a->lease, b->lease);
	assert_int_equal(a->ttl_ms, b->ttl_ms);
	assert_int_equal(a->granted, b->granted);
	assert_int_equal(a->duplicate, b->duplicate);
	assert_int_equal(a->omitted, b->omitted);
	assert_bindings_equal(a->n_bindings, a->bindings, b->n_bindings, b->bindings);
}

static void assert_reloads_equal(const struct reloaded *a, const struct reloaded *b)
{
	assert_int_equal(a->good, b->good);
	assert_lists_equal(a->n_errors, a->errors, b->n_errors, b->errors);
	assert_lists_equal(a->n_notes, a->notes, b->n_notes, b->notes);
	assert_int_equal(a->omitted, b->omitted);
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
		assert_int_equal(a->error.operation, b->error.operation);
		assert_int_equal(a->error.duplicate, b->error.duplicate);
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
	case REPLY_FLUSHED:
		assert_int_equal(a->flushed.durable, b->flushed.durable);
		break;
	case REPLY_DURABLE:
		assert_int_equal(a->durable.batch, b->durable.batch);
		assert_int_equal(a->durable.operation, b->durable.operation);
		break;
	case REPLY_METRICS:
		assert_int_equal(a->metrics.n_metrics, b->metrics.n_metrics);
		for (size_t i = 0; i < a->metrics.n_metrics; i++) {
			assert_metrics_equal(&a->metrics.metrics[i], &b->metrics.metrics[i]);
		}
		break;
	case REPLY_RESET:
		assert_int_equal(a->reset.counters, b->reset.counters);
		break;
	case REPLY_IMPORTED:
		assert_errors_equal(a->imported.n_errors, a->imported.errors, b->imported.n_errors,
				    b->imported.errors);
		break;
	case REPLY_NONE:
	case REPLY_PONG:
	case REPLY_ENDED:
		break;
	case REPLY_CHARGED:
		assert_charged_equal(&a->charged, &b->charged);
		break;
	case REPLY_UNCHARGED:
		assert_int_equal(a->uncharged.number, b->uncharged.number);
		assert_int_equal(a->uncharged.duplicate, b->uncharged.duplicate);
		break;
	case REPLY_LEASED:
		assert_leased_equal(&a->leased, &b->leased);
		break;
	case REPLY_LEASE_RETURNED:
		assert_int_equal(a->lease_returned.number, b->lease_returned.number);
		assert_int_equal(a->lease_returned.lease, b->lease_returned.lease);
		assert_int_equal(a->lease_returned.returned, b->lease_returned.returned);
		assert_int_equal(a->lease_returned.duplicate, b->lease_returned.duplicate);
		break;
	case REPLY_RELOADED:
		assert_reloads_equal(&a->reloaded, &b->reloaded);
		break;
	case REPLY_QUOTA_OK:
		assert_lists_equal(a->quota_ok.n_notes, a->quota_ok.notes, b->quota_ok.n_notes,
				   b->quota_ok.notes);
		break;
	case REPLY_QUOTA_RULES:
		assert_texts_equal(a->quota_rules.cursor, b->quota_rules.cursor);
		assert_int_equal(a->quota_rules.n_rules, b->quota_rules.n_rules);
		for (size_t i = 0; i < a->quota_rules.n_rules; i++) {
			assert_rules_equal(&a->quota_rules.rules[i], &b->quota_rules.rules[i]);
		}
		break;
	case REPLY_QUOTA_EXPLAINED:
		assert_explained_equal(&a->quota_explained, &b->quota_explained);
		break;
	}
}
