#pragma once
/*
 * serve-operation: between the serve-*.c of operations and quotas.
 */
#include "daemon/serve.h"
#include "lib/engine/quota.h"

#include <stdbool.h>

struct session;
struct worker;

/* ---- numbers and answers ---- */

/*
 * True: the number is used up now, and serve_answer or serve_failure must follow (or operations_wait). False: it was answered, with what it
 * was answered before or with why it can't be carried out.
 */
bool serve_operation(struct connection *connection, uint64_t id, uint64_t number);

/* An earlier daemon had answered that it failed (Request.known): so it has again, and was answered. */
bool serve_had_failed(struct connection *connection, const struct request *request,
		      uint64_t number);

/* Keep and send. */
void serve_answer(struct connection *connection, const struct reply *reply);
/* The operation failed and changed nothing. Number 0: of a dry run. */
void serve_failure(struct connection *connection, uint64_t id, uint64_t number, enum code code,
		   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The same with what the engine answered about `path`. */
void serve_engine_failure(struct connection *connection, uint64_t id, uint64_t number, int r,
			  struct text path);

/* ---- what limits have to say ---- */

/* Collects bindings in the arena, those that refuse first. */
struct serve_bindings {
	struct arena *arena;
	struct binding *items;
	size_t n, n_refusing;
	uint32_t omitted;
	bool never;		/* one that refuses says so */
	int64_t retry_after_ms; /* the longest of those that refuse */
};

/* An engine_binding_fn. */
void serve_bindings_note(void *ctx, const struct engine_binding *from);

struct rule_window serve_window(const struct window *window);

/* False: no memory. */
bool serve_copy(struct arena *arena, const char *at, size_t len, struct text *ret_text);

/* ---- charges ---- */

/* Beside the engine's answers. */
#define SERVE_E_HELD 1000 /* the ledger has as many paths as it may */

struct order {
	const struct engine_charge_item *items;
	size_t n;
	bool detached;
	bool again; /* an earlier daemon has granted it: limits don't count */
};

/* Charge all items or none, and note in the ledger what gauges hold. As engine_charge; SERVE_E_HELD. */
int serve_order(struct worker *worker, struct session *session, const struct order *order,
		struct serve_bindings *bindings, size_t *ret_index);

/* Answer a charge by what serve_order or a dry run said. */
void serve_order_answer(struct connection *connection, uint64_t id, uint64_t number,
			const struct order *order, int r, const struct serve_bindings *bindings,
			size_t index);

/* The charge waits for room for wait_ms; it may be answered at once. `bindings`: what refused it just now; NULL: it was not tried yet. */
void serve_wait(struct connection *connection, uint64_t id, const struct charge *charge,
		const struct order *order, const struct serve_bindings *bindings);
