#include "daemon/session.h"

#include "daemon/directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SESSION_MIN_REFS 64u

void session_greet(struct session *session, uint64_t next_batch, int64_t lifetime_ns)
{
	if (next_batch - 1 > session->last_batch) {
		session->last_batch = next_batch - 1;
	}
	session->lifetime_ns = lifetime_ns;
}

void session_set_agent(struct session *session, struct text agent)
{
	size_t len = agent.len < sizeof(session->agent) ? agent.len : sizeof(session->agent);

	for (size_t i = 0; i < len; i++) {
		char c = agent.at[i];

		session->agent[i] = c >= ' ' && c <= '~' ? c : '?';
	}
	session->agent_len = (uint8_t)len;
}

void session_clear(struct session *session)
{
	operations_deinit(&session->operations);
	lease_table_deinit(&session->leases);
	free(session->refs);
	session->refs = NULL;
	session->n_refs = 0;
	session->last_batch = 0;
	session->resumable = session->restored = false;
}

void session_free(struct session *session)
{
	session_clear(session);
	held_deinit(&session->held);
	free(session);
}

enum session_error session_check_batch(const struct session *session, uint64_t batch)
{
	if (batch <= session->last_batch) {
		return SESSION_E_DUPLICATE;
	}
	return batch - session->last_batch == 1 ? SESSION_OK : SESSION_E_GAP;
}

int session_reserve(struct session *session, struct directory *directory, uint64_t n, uint64_t max)
{
	struct engine_ref *grown;
	uint64_t size;

	if (n <= session->n_refs) {
		return 0;
	}
	if (n > max) {
		return SESSION_E_HANDLE;
	}
	size = session->n_refs >= SESSION_MIN_REFS ? (uint64_t)session->n_refs * 2
						   : SESSION_MIN_REFS;
	size = size < n ? n : size;
	size = size > max ? max : size;
	if (!directory_take_handles(directory, size - session->n_refs)) {
		return SESSION_E_FULL;
	}
	grown = reallocarray(session->refs, size, sizeof(*grown));
	if (grown == NULL) {
		directory_give_handles(directory, size - session->n_refs);
		return -ENOMEM;
	}
	memset(grown + session->n_refs, 0xff, (size - session->n_refs) * sizeof(*grown));
	session->refs = grown;
	session->n_refs = (uint32_t)size;
	return 0;
}
