#include "tests/integration/crash-client.h"

#include "tests/support/wire-quota.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_KEPT 4096u
#define MAX_FLIGHT 64u

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			(void)fprintf(stderr, "crash-client.c:%d: not so: %s\n", __LINE__, #what); \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

enum what {
	SPEND,
	HOLD,
	GIVE_BACK,
};

struct batch {
	uint64_t number;
	uint32_t path;
	int64_t amount;
};

struct operation {
	uint64_t number;
	enum what kind;
	uint32_t path;
	int64_t amount;
	bool answered, done;
};

/* In order of their numbers. */
struct crash_state {
	struct wire *wire;
	struct test_random random;
	struct batch batches[MAX_KEPT];
	struct operation operations[MAX_KEPT];
	size_t n_batches, n_operations;
	uint64_t next_batch, next_operation;
	uint64_t durable_operation; /* by the Welcome of this connection */
	unsigned flight;	    /* requests without an answer */
	int64_t held[CRASH_PATHS];
};

static const char *const prefixes[] = { "spent", "held", "held" };

/* ---- what is durable ---- */

/* An operation without an answer stays, for its answer may have been lost with the connection or the daemon. */
static void drop_durable(struct crash_client *client, uint64_t batch, uint64_t operation)
{
	struct crash_state *state = client->state;
	size_t n = 0, kept = 0;

	while (n < state->n_batches && state->batches[n].number <= batch) {
		atomic_fetch_add_explicit(&client->sums->durable[state->batches[n].path],
					  state->batches[n].amount, memory_order_relaxed);
		n++;
	}
	memmove(state->batches, state->batches + n,
		(state->n_batches - n) * sizeof(state->batches[0]));
	state->n_batches -= n;
	for (n = 0; n < state->n_operations; n++) {
		if (state->operations[n].number > operation || !state->operations[n].answered) {
			state->operations[kept++] = state->operations[n];
		}
	}
	state->n_operations = kept;
}

static void drop_what_daemon_says(struct crash_client *client)
{
	const struct crash_state *state = client->state;
	uint64_t told = state->wire->durable.operation;

	drop_durable(client, state->wire->durable.batch,
		     told > state->durable_operation ? told : state->durable_operation);
}

/* ---- sending ---- */

static bool send_request(struct crash_state *state, const struct request *request)
{
	struct request numbered = *request;
	size_t len;
	uint8_t *bytes;
	bool sent;

	numbered.id = state->wire->next_id++;
	bytes = wire_encode(state->wire, &numbered, &len);
	sent = wire_send_bytes(state->wire, bytes, len);
	free(bytes);
	state->flight++;
	return sent;
}

static bool send_batch(struct crash_state *state, const struct batch *batch)
{
	const struct request request =
		wire_add_request(batch->number, &batch->path, &batch->amount, 1);

	return send_request(state, &request);
}

static bool send_operation(struct crash_state *state, const struct operation *operation, bool known)
{
	char path[32];
	struct charge_item item = { .amount = operation->amount };
	struct request request = { .type = REQUEST_UNCHARGE };

	(void)snprintf(path, sizeof(path), "%s/%u", prefixes[operation->kind], operation->path);
	item.path = text_of(path);
	if (operation->kind == GIVE_BACK) {
		request.uncharge = (struct uncharge){ .number = operation->number,
						      .path = item.path,
						      .amount = item.amount };
	} else {
		request = wire_charge_request(operation->number, &item, 1);
	}
	if (known) {
		request.known = (struct known){ .present = true, .done = operation->done };
	}
	return send_request(state, &request);
}

/* ---- receiving ---- */

static struct operation *find_operation(struct crash_state *state, uint64_t number)
{
	for (size_t i = 0; i < state->n_operations; i++) {
		if (state->operations[i].number == number) {
			return &state->operations[i];
		}
	}
	return NULL;
}

static void take_answer(struct crash_client *client, uint64_t number, bool done)
{
	struct operation *operation = find_operation(client->state, number);
	struct crash_sums *sums = client->sums;

	CHECK(operation != NULL);
	CHECK(!operation->answered || operation->done == done);
	if (operation->answered) {
		return;
	}
	operation->answered = true;
	operation->done = done;
	if (!done) {
		CHECK(operation->kind != GIVE_BACK);
		atomic_fetch_add_explicit(&sums->refused, 1, memory_order_relaxed);
	} else if (operation->kind == SPEND) {
		atomic_fetch_add_explicit(&sums->charged[operation->path], operation->amount,
					  memory_order_relaxed);
	} else if (operation->kind == HOLD) {
		atomic_fetch_add_explicit(&sums->held[operation->path], operation->amount,
					  memory_order_relaxed);
		client->state->held[operation->path] += operation->amount;
	} else {
		atomic_fetch_sub_explicit(&sums->held[operation->path], operation->amount,
					  memory_order_relaxed);
	}
}

/* The next reply. False: the daemon is gone. */
static bool take_reply(struct crash_client *client)
{
	struct crash_state *state = client->state;
	struct reply reply = { 0 };

	if (!wire_receive(state->wire, &reply)) {
		return false;
	}
	state->flight--;
	switch (reply.type) {
	case REPLY_APPLIED:
		CHECK(reply.applied.n_errors == 0);
		break;
	case REPLY_INTERNED:
		CHECK(reply.interned.n_errors == 0);
		break;
	case REPLY_CHARGED:
		take_answer(client, reply.charged.number, reply.charged.granted);
		break;
	case REPLY_UNCHARGED:
		take_answer(client, reply.uncharged.number, /* done= */ true);
		break;
	case REPLY_FLUSHED:
		break;
	case REPLY_GOODBYE:
		return false;
	default:
		(void)fprintf(stderr, "a reply of type %d: %.*s\n", (int)reply.type,
			      reply.type == REPLY_ERROR ? (int)reply.error.text.len : 0,
			      reply.type == REPLY_ERROR ? reply.error.text.at : "");
		abort();
	}
	drop_what_daemon_says(client);
	return true;
}

/* ---- coming back ---- */

static bool try_connect(struct crash_client *client)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	(void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", client->socket);
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) != 0) {
		(void)close(fd);
		(void)usleep(2000);
		return false;
	}
	client->state->wire = wire_new(fd);
	client->state->wire->mortal = true;
	client->state->flight = 0;
	return true;
}

static bool greet(struct crash_client *client, struct welcome *ret_welcome)
{
	struct crash_state *state = client->state;
	struct request request = wire_hello_request(1, 60000, 1);
	uint32_t id[4] = { client->session, client->session, client->session, client->session };
	struct reply reply;

	request.hello.session = (struct text){ .at = (const char *)id, .len = sizeof(id) };
	request.hello.next_batch =
		state->n_batches > 0 ? state->batches[0].number : state->next_batch;
	request.hello.next_operation =
		state->n_operations > 0 ? state->operations[0].number : state->next_operation;
	if (!send_request(state, &request) || !wire_receive(state->wire, &reply) ||
	    reply.type != REPLY_WELCOME) {
		return false;
	}
	state->flight--;
	*ret_welcome = reply.welcome;
	CHECK(reply.welcome.keeps);
	state->durable_operation = reply.welcome.durable_operation;
	drop_durable(client, reply.welcome.durable_batch, state->durable_operation);
	return true;
}

static bool send_paths(struct crash_state *state)
{
	struct text paths[CRASH_PATHS];
	char bytes[CRASH_PATHS][16];
	const struct request request = {
		.type = REQUEST_INTERN,
		.intern = { .first_handle = 0, .n_paths = CRASH_PATHS, .paths = paths },
	};

	for (unsigned i = 0; i < CRASH_PATHS; i++) {
		(void)snprintf(bytes[i], sizeof(bytes[i]), "adds/%u", i);
		paths[i] = text_of(bytes[i]);
	}
	return send_request(state, &request);
}

/* What has come in already is taken on the way, so that neither side waits for the other. */
static bool make_room(struct crash_client *client)
{
	struct crash_state *state = client->state;

	while (state->flight >= MAX_FLIGHT ||
	       (state->flight > 0 && wire_poll(state->wire, /* timeout_ms= */ 0))) {
		if (!take_reply(client)) {
			return false;
		}
	}
	return true;
}

/* By number, for while they are sent again replies may let others go. */
static bool send_again(struct crash_client *client, const struct welcome *welcome)
{
	struct crash_state *state = client->state;

	for (uint64_t number = welcome->last_batch + 1; number < state->next_batch; number++) {
		if (!make_room(client)) {
			return false;
		}
		for (size_t i = 0; i < state->n_batches; i++) {
			if (state->batches[i].number == number &&
			    !send_batch(state, &state->batches[i])) {
				return false;
			}
		}
	}
	for (uint64_t number = 1; number < state->next_operation; number++) {
		struct operation *operation = find_operation(state, number);
		bool used_up = number <= welcome->last_operation;

		if (operation == NULL || (used_up && operation->answered)) {
			continue;
		}
		if (!make_room(client)) {
			return false;
		}
		operation = find_operation(state, number);
		if (operation != NULL &&
		    !send_operation(state, operation, operation->answered && !used_up)) {
			return false;
		}
	}
	return true;
}

static bool come_back(struct crash_client *client)
{
	struct welcome welcome;

	return try_connect(client) && greet(client, &welcome) && send_paths(client->state) &&
	       send_again(client, &welcome);
}

/* ---- something new ---- */

static bool new_batch(struct crash_client *client)
{
	struct crash_state *state = client->state;
	struct batch *batch = &state->batches[state->n_batches];

	*batch = (struct batch){
		.number = state->next_batch++,
		.path = (uint32_t)test_random_below(&state->random, CRASH_PATHS),
		.amount = 1 + (int64_t)test_random_below(&state->random, 1000),
	};
	state->n_batches++;
	atomic_fetch_add_explicit(&client->sums->added[batch->path], batch->amount,
				  memory_order_relaxed);
	return send_batch(state, batch);
}

static bool new_operation(struct crash_client *client)
{
	struct crash_state *state = client->state;
	struct operation *operation = &state->operations[state->n_operations];

	*operation = (struct operation){
		.number = state->next_operation,
		.kind = (enum what)test_random_below(&state->random, 3),
		.path = (uint32_t)test_random_below(&state->random, CRASH_PATHS),
		.amount = 1 + (int64_t)test_random_below(&state->random, 20),
	};
	if (operation->kind == GIVE_BACK) {
		if (state->held[operation->path] < operation->amount) {
			return true;
		}
		state->held[operation->path] -= operation->amount;
	}
	state->next_operation++;
	state->n_operations++;
	return send_operation(state, operation, /* known= */ false);
}

static bool is_done(const struct crash_client *client)
{
	return atomic_load_explicit(&client->stop, memory_order_relaxed) &&
	       client->state->n_batches == 0 && client->state->n_operations == 0;
}

static bool wait_for_durable(struct crash_client *client)
{
	const struct request request = { .type = REQUEST_FLUSH, .flush = { .durable = true } };

	if (!send_request(client->state, &request)) {
		return false;
	}
	while (client->state->flight > 0) {
		if (!take_reply(client)) {
			return false;
		}
	}
	return true;
}

/* Until the daemon is gone, or all is done. */
static void work(struct crash_client *client)
{
	struct crash_state *state = client->state;
	bool there = true;

	while (there && !is_done(client)) {
		bool full = state->n_batches == MAX_KEPT || state->n_operations == MAX_KEPT;

		if (full || atomic_load_explicit(&client->stop, memory_order_relaxed)) {
			there = wait_for_durable(client);
			continue;
		}
		there = make_room(client) &&
			(client->adds_only || test_random_below(&state->random, 2) == 0
				 ? new_batch(client)
				 : new_operation(client));
	}
}

void crash_client_run(struct crash_client *client)
{
	struct crash_state *state = calloc(1, sizeof(*state));

	CHECK(state != NULL);
	client->state = state;
	test_random_init(&state->random, client->seed);
	state->next_batch = state->next_operation = 1;
	while (!is_done(client)) {
		if (come_back(client)) {
			work(client);
		}
		state->wire = wire_free(state->wire);
	}
	free(state);
}

static void *run(void *arg)
{
	crash_client_run(arg);
	return NULL;
}

void crash_client_start(struct crash_client *client)
{
	CHECK(pthread_create(&client->thread, NULL, run, client) == 0);
}

void crash_client_join(struct crash_client *client)
{
	CHECK(pthread_join(client->thread, NULL) == 0);
}
