/*
 * Status: what the daemon says of itself (status.h).
 */
#include "daemon/serve.h"

#include "daemon/connection.h"
#include "daemon/status.h"
#include "daemon/worker.h"

static void fill(struct status_now *status, struct status_item *items)
{
	for (size_t i = 0; i < status_n_rows; i++) {
		const struct status_row *row = &status_rows[i];
		bool is_text = row->kind == STATUS_TEXT;

		items[i] = (struct status_item){
			.name = text_of(row->name),
			.is_text = is_text,
			.number = is_text ? 0 : row->number(status),
			.text = text_of(is_text ? row->text(status) : ""),
			.help = text_of(row->help),
		};
	}
}

void serve_status(struct connection *connection, const struct request *request)
{
	struct arena *arena = &connection->worker->out;
	struct status_item *items = arena_alloc(arena, status_n_rows * sizeof(*items));
	struct status_now *status = arena_alloc(arena, sizeof(*status));
	struct reply reply = { .id = request->id, .type = REPLY_STATUS };

	if (items == NULL || status == NULL) {
		serve_error(connection, request->id, CODE_RESOURCE_EXHAUSTED,
			    "the daemon is out of memory");
		return;
	}
	status_take(connection->worker->daemon, status);
	fill(status, items);
	reply.status.items = items;
	reply.status.n_items = status_n_rows;
	connection_reply(connection, &reply);
}
