/*
 * bench-decode: what it costs to take a batch of adds or a charge off the wire, by thread CPU time.
 *
 * Decodes the same Add again and again as the daemon does (frame_find, request_decode, arena_reset) and prints
 * nanoseconds an increment, for several sizes of batch. For comparison: a loop that does nothing but read the same
 * varints, the least any decoder has to do. Both sum what they read, and the sums must agree with what was encoded.
 * Then the same for a Charge with several numbers of items, without a comparison, and for the encoding of its answer.
 */
#include "proto/frame.h"
#include "proto/message.h"
#include "tests/bench/measure.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_ENTRIES 16384u
#define ROUNDS 5 /* the median of these is printed */

struct batch {
	uint32_t handles[MAX_ENTRIES];
	int64_t deltas[MAX_ENTRIES];
	size_t n;
	uint64_t sum; /* of handle * delta, wrapping */
};

static void make_batch(struct batch *batch, size_t n, uint32_t counters)
{
	uint64_t state = 88172645463325252u;
	batch->n = n;
	batch->sum = 0;
	for (size_t i = 0; i < n; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		batch->handles[i] = (uint32_t)(state % counters);
		batch->deltas[i] = 1;
		batch->sum += batch->handles[i] * (uint64_t)batch->deltas[i];
	}
}

static uint64_t sum_add(const struct add *add)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < add->n_handles; i++) {
		sum += add->handles[i] * (uint64_t)add->deltas[i];
	}
	return sum;
}

static uint64_t decode(struct arena *arena, const uint8_t *bytes, size_t len)
{
	const uint8_t *message;
	size_t message_len, used;
	struct request request;
	arena_reset(arena);
	if (frame_find(bytes, len, MESSAGE_MAX_FRAME, &message, &message_len, &used) != FRAME_OK ||
	    request_decode(arena, message, message_len, &request) < 0) {
		abort();
	}
	return sum_add(&request.add);
}

static uint64_t varint(const uint8_t **at)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;
	do {
		byte = *(*at)++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return value;
}

/* Only for a frame as request_encode makes it: id, add { batch, handles, deltas }. */
static uint64_t decode_bare(struct batch *room, const uint8_t *bytes)
{
	const uint8_t *at = bytes;
	(void)varint(&at);		      /* frame */
	(void)varint(&at), (void)varint(&at); /* id */
	(void)varint(&at), (void)varint(&at); /* add */
	(void)varint(&at), (void)varint(&at); /* batch */
	size_t n = 0, m = 0;
	(void)varint(&at);
	size_t len = (size_t)varint(&at);
	for (const uint8_t *end = at + len; at < end;) {
		room->handles[n++] = (uint32_t)varint(&at);
	}
	(void)varint(&at);
	len = (size_t)varint(&at);
	for (const uint8_t *end = at + len; at < end;) {
		uint64_t zigzag = varint(&at);
		room->deltas[m++] = (int64_t)((zigzag >> 1) ^ -(zigzag & 1));
	}
	struct add add = {
		.n_handles = n, .n_deltas = m, .handles = room->handles, .deltas = room->deltas
	};
	return sum_add(&add);
}

static void bench(size_t n, uint32_t counters)
{
	static struct batch batch, room;
	make_batch(&batch, n, counters);
	struct arena encoded = ARENA_INIT(MESSAGE_ARENA_LIMIT),
		     arena = ARENA_INIT(MESSAGE_ARENA_LIMIT);
	struct request request = {
		.id = 1,
		.type = REQUEST_ADD,
		.add = { .batch = 1,
			 .n_handles = n,
			 .n_deltas = n,
			 .handles = batch.handles,
			 .deltas = batch.deltas },
	};
	const uint8_t *bytes;
	size_t len;
	if (request_encode(&encoded, &request, &bytes, &len) < 0) {
		abort();
	}

	size_t repeats = 4000000 / n;
	double whole[ROUNDS], bare[ROUNDS];
	for (int round = 0; round < ROUNDS; round++) {
		double start = measure_cpu_ns();
		for (size_t i = 0; i < repeats; i++) {
			if (decode(&arena, bytes, len) != batch.sum) {
				abort();
			}
		}
		double middle = measure_cpu_ns();
		for (size_t i = 0; i < repeats; i++) {
			if (decode_bare(&room, bytes) != batch.sum) {
				abort();
			}
		}
		whole[round] = (middle - start) / (double)(repeats * n);
		bare[round] = (measure_cpu_ns() - middle) / (double)(repeats * n);
	}
	printf("%7zu entries  %8u counters  %5.1f bytes/entry  decode %6.2f ns/increment  varints alone %5.2f ns\n",
	       n, counters, (double)len / (double)n, measure_median(whole, ROUNDS),
	       measure_median(bare, ROUNDS));
	arena_deinit(&encoded);
	arena_deinit(&arena);
}

/* ---- charges ---- */

#define MAX_CHARGE 10000u

static uint64_t decode_charge(struct arena *arena, const uint8_t *bytes, size_t len)
{
	const uint8_t *message;
	size_t message_len, used;
	struct request request;
	uint64_t sum = 0;
	arena_reset(arena);
	if (frame_find(bytes, len, MESSAGE_MAX_FRAME, &message, &message_len, &used) != FRAME_OK ||
	    request_decode(arena, message, message_len, &request) < 0) {
		abort();
	}
	for (size_t i = 0; i < request.charge.n_items; i++) {
		sum += (uint64_t)request.charge.items[i].amount + request.charge.items[i].path.len;
	}
	return sum;
}

static void bench_charge(size_t n)
{
	static char paths[MAX_CHARGE][32];
	static struct charge_item items[MAX_CHARGE];
	struct arena encoded = ARENA_INIT(MESSAGE_ARENA_LIMIT),
		     arena = ARENA_INIT(MESSAGE_ARENA_LIMIT);
	struct request request = { .id = 1,
				   .type = REQUEST_CHARGE,
				   .charge = { .number = 1, .n_items = n, .items = items } };
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), "requests/tenant-%zu/service", i % 100);
		items[i] = (struct charge_item){ .path = text_of(paths[i]), .amount = 1 };
		sum += 1 + items[i].path.len;
	}
	const uint8_t *bytes;
	size_t len;
	if (request_encode(&encoded, &request, &bytes, &len) < 0) {
		abort();
	}

	size_t repeats = 1000000 / n;
	double rounds[ROUNDS];
	for (int round = 0; round < ROUNDS; round++) {
		double start = measure_cpu_ns();
		for (size_t i = 0; i < repeats; i++) {
			if (decode_charge(&arena, bytes, len) != sum) {
				abort();
			}
		}
		rounds[round] = (measure_cpu_ns() - start) / (double)repeats;
	}
	printf("charge of %5zu items  %4.1f bytes/item  decode %9.1f ns, %5.1f ns/item  %6zu bytes of memory\n",
	       n, (double)len / (double)n, measure_median(rounds, ROUNDS),
	       measure_median(rounds, ROUNDS) / (double)n, arena.used);
	arena_deinit(&encoded);
	arena_deinit(&arena);
}

static void bench_charged(size_t n)
{
	static const char path[] = "requests/tenant-1/service";
	struct binding bindings[8];
	struct arena arena = ARENA_INIT(MESSAGE_ARENA_LIMIT);
	for (size_t i = 0; i < n; i++) {
		bindings[i] = (struct binding){ .path = text_of(path),
						.window = { .kind = RULE_WINDOW_PER,
							    .duration_ms = 60000 },
						.limit = 1000,
						.usage = 1000,
						.retry_after_ms = 12345 };
	}
	struct reply reply = {
		.id = 1,
		.type = REPLY_CHARGED,
		.charged = { .number = 1, .granted = n == 0, .n_bindings = n, .bindings = bindings }
	};
	const uint8_t *bytes;
	size_t len = 0, repeats = 1000000;
	double start = measure_cpu_ns();
	for (size_t i = 0; i < repeats; i++) {
		arena_reset(&arena);
		if (reply_encode(&arena, &reply, &bytes, &len) < 0) {
			abort();
		}
	}
	printf("answer with %zu bindings  %3zu bytes  encode %6.1f ns\n", n, len,
	       (measure_cpu_ns() - start) / (double)repeats);
	arena_deinit(&arena);
}

int main(void)
{
	bench(1, 100);
	bench(10, 1000);
	bench(300, 100);
	bench(300, 1000);
	bench(300, 1000000);
	bench(MAX_ENTRIES, 1000000);
	bench_charge(1);
	bench_charge(3);
	bench_charge(100);
	bench_charge(MAX_CHARGE);
	bench_charged(0);
	bench_charged(1);
	bench_charged(8);
	return EXIT_SUCCESS;
}
