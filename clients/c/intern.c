#include "clients/c/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INTERN_ARENA (8u << 20)
#define INTERN_MAX_BYTES (64u * 1024) /* of one request, unless the daemon takes less */
#define INTERN_PATH_EXTRA 3u	      /* bytes that a path costs beside its own */
#define INTERN_FRAME_EXTRA 32u

void interns_init(struct interns *interns)
{
	*interns =
		(struct interns){ .session_since = UINT32_MAX, .arena = ARENA_INIT(INTERN_ARENA) };
}

void interns_deinit(struct interns *interns)
{
	free(interns->runs);
	arena_deinit(&interns->arena);
}

void interns_welcome(struct interns *interns, uint32_t connection, bool resumed,
		     uint64_t last_batch)
{
	interns->first = interns->n = 0;
	interns->connection = connection;
	/* A session may be resumed whose first Welcome was lost: nothing was told to it yet. */
	if (!resumed || interns->session_since == UINT32_MAX) {
		interns->session_since = connection;
	}
	interns->certain_before = last_batch;
}

void interns_forget(struct interns *interns)
{
	interns->first = interns->n = 0;
	interns->session_since = UINT32_MAX;
}

static bool is_known(const struct interns *interns, const struct ration_counter *counter)
{
	if (counter->interned_on < interns->session_since) {
		return false;
	}
	return counter->interned_on == interns->connection ||
	       counter->interned_before <= interns->certain_before;
}

/* ---- requests under way ---- */

static int remember(struct interns *interns, struct intern_run run)
{
	if (interns->n == interns->size) {
		size_t size = interns->size == 0 ? 16 : interns->size * 2;
		struct intern_run *runs = calloc(size, sizeof(*runs));

		if (runs == NULL) {
			return -ENOMEM;
		}
		for (size_t i = 0; i < interns->n; i++) {
			runs[i] = interns->runs[(interns->first + i) % interns->size];
		}
		free(interns->runs);
		interns->runs = runs;
		interns->size = size;
		interns->first = 0;
	}
	interns->runs[(interns->first + interns->n) % interns->size] = run;
	interns->n++;
	return 0;
}

const struct intern_run *interns_oldest(const struct interns *interns)
{
	return interns->n == 0 ? NULL : &interns->runs[interns->first];
}

void interns_drop_oldest(struct interns *interns)
{
	interns->first = (interns->first + 1) % interns->size;
	interns->n--;
}

/* ---- telling ---- */

static int send_run(struct interns *interns, struct counters *counters, struct stream *stream,
		    struct intern_run run)
{
	struct text *paths = arena_alloc(&interns->arena, run.n * sizeof(*paths));
	const struct request request = {
		.id = run.id,
		.type = REQUEST_INTERN,
		.intern = { .first_handle = run.first, .n_paths = run.n, .paths = paths },
	};
	const uint8_t *bytes;
	size_t len;

	if (paths == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < run.n; i++) {
		const struct ration_counter *counter = counters_at(counters, run.first + i);

		paths[i] = (struct text){ .at = counter->path, .len = counter->path_len };
	}
	if (request_encode(&interns->arena, &request, &bytes, &len) < 0 ||
	    stream_put(stream, bytes, len) < 0) {
		return -ENOMEM;
	}
	return remember(interns, run);
}

/* How many of the entries from `at` on make one request: handles in a row that the daemon can't know. */
static uint32_t run_length(const struct interns *interns, const struct counters *counters,
			   const struct limits *limits, const struct add *entries, size_t at)
{
	size_t bytes = INTERN_FRAME_EXTRA;
	size_t max_bytes =
		limits->max_frame < INTERN_MAX_BYTES ? limits->max_frame : INTERN_MAX_BYTES;
	uint32_t first = entries->handles[at], n = 0;

	while (at + n < entries->n_handles && n < limits->max_items) {
		const struct ration_counter *counter;

		if (entries->handles[at + n] != first + n) {
			break;
		}
		counter = counters_at(counters, first + n);
		bytes += counter->path_len + INTERN_PATH_EXTRA;
		if (is_known(interns, counter) || (n > 0 && bytes > max_bytes)) {
			break;
		}
		n++;
	}
	return n;
}

static void note_told(struct interns *interns, struct counters *counters, struct intern_run run,
		      uint64_t batch)
{
	for (uint32_t i = 0; i < run.n; i++) {
		struct ration_counter *counter = counters_at(counters, run.first + i);

		counter->interned_on = interns->connection;
		counter->interned_before = batch;
		counter->refused_until = 0;
	}
}

int interns_tell(struct interns *interns, struct counters *counters, struct stream *stream,
		 const struct limits *limits, uint64_t batch, const struct add *entries,
		 uint64_t *next_id)
{
	size_t at = 0;

	while (at < entries->n_handles) {
		struct intern_run run = {
			.id = *next_id,
			.first = entries->handles[at],
			.n = run_length(interns, counters, limits, entries, at),
		};
		int r;

		if (run.n == 0) {
			at++;
			continue;
		}
		arena_reset(&interns->arena);
		r = send_run(interns, counters, stream, run);
		if (r < 0) {
			return r;
		}
		note_told(interns, counters, run, batch);
		*next_id += 2;
		at += run.n;
	}
	return 0;
}

/* Kept for as long as the client; "" if it is one too many. */
static const char *keep_reason(struct interns *interns, const struct text *text)
{
	size_t len = text->len < INTERN_MAX_REASON ? text->len : INTERN_MAX_REASON - 1;
	char *reason;

	for (size_t i = 0; i < interns->n_reasons; i++) {
		reason = interns->reasons[i];
		if (strnlen(reason, INTERN_MAX_REASON) == len &&
		    memcmp(reason, text->at, len) == 0) {
			return reason;
		}
	}
	if (len == 0 || interns->n_reasons == INTERN_MAX_REASONS ||
	    memchr(text->at, '\0', len) != NULL) {
		return "";
	}
	reason = interns->reasons[interns->n_reasons++];
	memcpy(reason, text->at, len);
	reason[len] = '\0';
	return reason;
}

void interns_refused(struct interns *interns, struct ration_counter *counter, uint32_t code,
		     const struct text *text, int64_t now)
{
	counter->refused_text = keep_reason(interns, text);
	counter->refused_code = (uint8_t)(code < UINT8_MAX ? code : UINT8_MAX);
	counter->refused_until = now + INTERN_REFUSED_MS;
	counter->interned_on = 0;
}
