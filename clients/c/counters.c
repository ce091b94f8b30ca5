#include "clients/c/counters.h"

#include "clients/c/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define COUNTERS_CHUNK 256u
#define COUNTERS_MIN_BUCKETS 64u

/* The grammar's numbers (PROTOCOL.md, "Paths"). */
#define PATH_BYTES 512u
#define PATH_SEGMENTS 16u
#define PATH_SEGMENT 128u

struct counters_chunk {
	struct ration_counter counters[COUNTERS_CHUNK];
};

static uint32_t count_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	if (n < 1) {
		return 1;
	}
	return n > (long)PERCPU_MAX_CPUS ? PERCPU_MAX_CPUS : (uint32_t)n;
}

int counters_init(struct counters *counters, uint32_t max_counters)
{
	int r;

	*counters = (struct counters){ .max_counters = max_counters };
	/* Names may come from outside: a secret seed keeps them from being chosen to collide. */
	if (getrandom(&counters->seed, sizeof(counters->seed), 0) != sizeof(counters->seed)) {
		return -errno;
	}
	counters->chunks = calloc((max_counters + COUNTERS_CHUNK - 1) / COUNTERS_CHUNK,
				  sizeof(*counters->chunks));
	if (counters->chunks == NULL) {
		return -ENOMEM;
	}
	r = percpu_init(&counters->percpu, count_cpus(), max_counters);
	if (r < 0) {
		free(counters->chunks);
		counters->chunks = NULL;
	}
	return r;
}

void counters_deinit(struct counters *counters)
{
	for (uint32_t i = 0; i < counters->n_counters; i++) {
		free((void *)(uintptr_t)counters_at(counters, i)->path);
	}
	for (uint32_t i = 0; i < counters->n_counters; i += COUNTERS_CHUNK) {
		free(counters->chunks[i / COUNTERS_CHUNK]);
	}
	free(counters->chunks);
	free(counters->buckets);
	percpu_deinit(&counters->percpu);
	*counters = (struct counters){ .max_counters = 0 };
}

struct ration_counter *counters_at(const struct counters *counters, uint32_t handle)
{
	return &counters->chunks[handle / COUNTERS_CHUNK]->counters[handle % COUNTERS_CHUNK];
}

/* ---- by path ---- */

static const char *segment_fault(const char *segment, size_t len)
{
	if (len == 0) {
		return "a segment is empty";
	}
	if (len > PATH_SEGMENT) {
		return "a segment is longer than 128 bytes";
	}
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)segment[i] < 0x20 || segment[i] == 0x7f) {
			return "it holds a control character";
		}
	}
	if (segment[0] == ' ' || segment[len - 1] == ' ') {
		return "a segment begins or ends with a blank";
	}
	if ((len == 1 && (*segment == '.' || *segment == '*')) ||
	    (len == 2 && (memcmp(segment, "..", 2) == 0 || memcmp(segment, "**", 2) == 0))) {
		return "a segment is one of . .. * **";
	}
	return NULL;
}

static const char *path_fault(const char *path, size_t len)
{
	size_t n_segments = 0;

	if (len == 0) {
		return "it is empty";
	}
	if (len > PATH_BYTES) {
		return "it is longer than 512 bytes";
	}
	for (size_t at = 0; at <= len; n_segments++) {
		size_t segment_len = strcspn(path + at, "/");
		const char *fault = segment_fault(path + at, segment_len);

		if (fault != NULL) {
			return fault;
		}
		at += segment_len + 1;
	}
	return n_segments > PATH_SEGMENTS ? "it has more than 16 segments" : NULL;
}

/* FNV-1a (Fowler, Noll, Vo), started from the seed and with its weak low bits mixed at the end. */
static uint64_t hash(uint64_t seed, const char *path, size_t len)
{
	uint64_t h = seed ^ UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < len; i++) {
		h = (h ^ (unsigned char)path[i]) * UINT64_C(0x100000001b3);
	}
	return h ^ (h >> 29);
}

static struct ration_counter **bucket_of(const struct counters *counters, const char *path,
					 size_t len)
{
	return &counters->buckets[hash(counters->seed, path, len) & (counters->n_buckets - 1)];
}

static struct ration_counter *find(const struct counters *counters, const char *path, size_t len)
{
	struct ration_counter *counter;

	if (counters->n_buckets == 0) {
		return NULL;
	}
	for (counter = *bucket_of(counters, path, len); counter != NULL; counter = counter->next) {
		if (counter->path_len == len && memcmp(counter->path, path, len) == 0) {
			return counter;
		}
	}
	return NULL;
}

static void insert(struct counters *counters, struct ration_counter *counter)
{
	struct ration_counter **bucket = bucket_of(counters, counter->path, counter->path_len);

	counter->next = *bucket;
	*bucket = counter;
}

/* Keep the buckets short: as many as counters, or twice as many. */
static int grow_buckets(struct counters *counters)
{
	size_t n_buckets =
		counters->n_buckets == 0 ? COUNTERS_MIN_BUCKETS : counters->n_buckets * 2;
	struct ration_counter **buckets;

	if (counters->n_counters < counters->n_buckets) {
		return 0;
	}
	buckets = calloc(n_buckets, sizeof(*buckets));
	if (buckets == NULL) {
		return -ENOMEM;
	}
	free(counters->buckets);
	counters->buckets = buckets;
	counters->n_buckets = n_buckets;
	for (uint32_t i = 0; i < counters->n_counters; i++) {
		insert(counters, counters_at(counters, i));
	}
	return 0;
}

static int make(struct counters *counters, struct ration *client, const char *path, size_t len,
		struct ration_counter **ret_counter)
{
	uint32_t handle = counters->n_counters;
	struct counters_chunk **chunk = &counters->chunks[handle / COUNTERS_CHUNK];
	struct ration_counter *counter;
	struct slot *slots;
	char *copy;

	if (grow_buckets(counters) < 0) {
		return -ENOMEM;
	}
	if (*chunk == NULL && (*chunk = calloc(1, sizeof(**chunk))) == NULL) {
		return -ENOMEM;
	}
	slots = percpu_base(&counters->percpu, handle);
	copy = strndup(path, len);
	if (slots == NULL || copy == NULL) {
		free(copy);
		return -ENOMEM;
	}
	counter = counters_at(counters, handle);
	*counter = (struct ration_counter){
		.slots = slots,
		.dirty = &percpu_head(slots)->dirty[percpu_place(slots) / 64],
		.dirty_bit = UINT64_C(1) << (percpu_place(slots) % 64),
		.client = client,
		.path = copy,
		.path_len = (uint16_t)len,
		.handle = handle,
	};
	insert(counters, counter);
	counters->n_counters++;
	*ret_counter = counter;
	return 0;
}

int counters_get(struct counters *counters, struct ration *client, const char *path,
		 struct ration_counter **ret_counter)
{
	size_t len = strlen(path);
	const char *fault = path_fault(path, len);
	struct ration_counter *counter;

	if (fault != NULL) {
		return error_set(-EINVAL, "\"%.64s\" is not a path: %s", path, fault);
	}
	counter = find(counters, path, len);
	if (counter != NULL) {
		*ret_counter = counter;
		return 0;
	}
	if (counters->n_counters == counters->max_counters) {
		return error_set(-ENOSPC,
				 "the client has %u counters, as many as max_counters allows",
				 counters->max_counters);
	}
	if (make(counters, client, path, len, ret_counter) < 0) {
		return error_set(-ENOMEM, "no memory for another counter");
	}
	return 0;
}

/* ---- growth ---- */

struct collection {
	struct counters *counters;
	void (*grown)(void *ctx, struct ration_counter *counter, int64_t growth);
	void *ctx;
};

static void grown(void *ctx, uint32_t handle, int64_t growth)
{
	struct collection *collection = ctx;

	collection->grown(collection->ctx, counters_at(collection->counters, handle), growth);
}

void counters_collect(struct counters *counters,
		      void (*fn)(void *ctx, struct ration_counter *counter, int64_t growth),
		      void *ctx)
{
	struct collection collection = { .counters = counters, .grown = fn, .ctx = ctx };

	(void)percpu_sweep(&counters->percpu, grown, &collection);
}

static void ignore(void *ctx, uint32_t handle, int64_t growth)
{
	(void)ctx;
	(void)handle;
	(void)growth;
}

void counters_restart(struct counters *counters)
{
	percpu_restart(&counters->percpu);
	if (!counters->percpu.wiped) {
		/* The dirty bits too are the parent's; add.c needs them clear. */
		(void)percpu_sweep(&counters->percpu, ignore, NULL);
	}
}
