#include "daemon/directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIRECTORY_BUCKETS 4096u

int directory_init(struct directory *directory, unsigned n_workers, uint64_t seed)
{
	*directory = (struct directory){ .lock = PTHREAD_MUTEX_INITIALIZER,
					 .seed = seed,
					 .n_workers = n_workers };
	directory->buckets = calloc(DIRECTORY_BUCKETS, sizeof(struct session *));
	directory->load = calloc(n_workers, sizeof(*directory->load));
	if (directory->buckets == NULL || directory->load == NULL) {
		return -ENOMEM;
	}
	directory->n_buckets = DIRECTORY_BUCKETS;
	return 0;
}

void directory_deinit(struct directory *directory)
{
	for (size_t i = 0; i < directory->n_buckets; i++) {
		while (directory->buckets[i] != NULL) {
			struct session *session = directory->buckets[i];

			directory->buckets[i] = session->next;
			session_free(session);
		}
	}
	free(directory->buckets);
	free(directory->load);
	*directory = (struct directory){ 0 };
}

void directory_set_limits(struct directory *directory, uint32_t max_sessions, uint64_t max_handles)
{
	(void)pthread_mutex_lock(&directory->lock);
	directory->max_sessions = max_sessions;
	directory->max_handles = max_handles;
	(void)pthread_mutex_unlock(&directory->lock);
}

/* The finish of splitmix64 over both halves: ids are random, or else the seed makes them so. */
static size_t bucket_of(const struct directory *directory, const uint8_t *id)
{
	uint64_t halves[2], z;

	memcpy(halves, id, sizeof(halves));
	z = halves[0] ^ directory->seed;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z ^= halves[1] + directory->seed;
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (size_t)(z ^ (z >> 31)) & (directory->n_buckets - 1);
}

static struct session *find(const struct directory *directory, const uint8_t *id)
{
	struct session *session = directory->buckets[bucket_of(directory, id)];

	while (session != NULL && memcmp(session->id, id, sizeof(session->id)) != 0) {
		session = session->next;
	}
	return session;
}

/* The worker with the fewest sessions; `self` among equals. */
static unsigned least_loaded(const struct directory *directory, unsigned self)
{
	unsigned best = self;

	for (unsigned i = 0; i < directory->n_workers; i++) {
		if (directory->load[i] < directory->load[best]) {
			best = i;
		}
	}
	return best;
}

/* Twice the buckets once there are as many sessions; without memory the chains grow instead. */
static void grow(struct directory *directory)
{
	struct session **old = directory->buckets;
	size_t n_old = directory->n_buckets;
	struct session **buckets = calloc(n_old * 2, sizeof(*buckets));

	if (buckets == NULL) {
		return;
	}
	directory->buckets = buckets;
	directory->n_buckets = n_old * 2;
	for (size_t i = 0; i < n_old; i++) {
		while (old[i] != NULL) {
			struct session *session = old[i];
			struct session **bucket = &buckets[bucket_of(directory, session->id)];

			old[i] = session->next;
			session->next = *bucket;
			*bucket = session;
		}
	}
	free(old);
}

static void count(struct directory *directory, const struct session *session)
{
	directory->n_sessions++;
	directory->load[session->owner]++;
}

static void discount(struct directory *directory, const struct session *session)
{
	directory->n_sessions--;
	directory->load[session->owner]--;
	directory->n_handles -= session->n_refs;
}

static int add(struct directory *directory, const uint8_t *id, unsigned owner,
	       struct session **ret_session)
{
	struct session *session = calloc(1, sizeof(*session));
	struct session **bucket;

	if (session == NULL) {
		return -ENOMEM;
	}
	if (directory->n_sessions >= directory->n_buckets) {
		grow(directory);
	}
	bucket = &directory->buckets[bucket_of(directory, id)];
	memcpy(session->id, id, sizeof(session->id));
	session->owner = owner;
	session->held.seed = directory->seed;
	session->held.keeps = directory->keeps;
	session->next = *bucket;
	*bucket = session;
	count(directory, session);
	*ret_session = session;
	return 0;
}

static int claim_locked(struct directory *directory, const uint8_t *id, unsigned self, bool settle,
			struct session **ret_session, unsigned *ret_owner)
{
	struct session *session = find(directory, id);
	unsigned owner;

	if (session != NULL && session->owner == self && !session->parked) {
		*ret_session = session;
		return 0;
	}
	if ((session == NULL || session->parked) &&
	    directory->n_sessions >= directory->max_sessions) {
		return DIRECTORY_E_FULL;
	}
	if (session != NULL && session->owner == self) {
		session->parked = false;
		count(directory, session);
		*ret_session = session;
		return 0;
	}
	owner = session != NULL ? session->owner : settle ? self : least_loaded(directory, self);
	if (owner == self) {
		return add(directory, id, self, ret_session);
	}
	*ret_owner = owner;
	return DIRECTORY_E_ELSEWHERE;
}

int directory_claim(struct directory *directory, const uint8_t *id, unsigned self, bool settle,
		    struct session **ret_session, unsigned *ret_owner)
{
	int r;

	(void)pthread_mutex_lock(&directory->lock);
	r = claim_locked(directory, id, self, settle, ret_session, ret_owner);
	(void)pthread_mutex_unlock(&directory->lock);
	return r;
}

void directory_end(struct directory *directory, struct session *session)
{
	struct session **link;

	(void)pthread_mutex_lock(&directory->lock);
	link = &directory->buckets[bucket_of(directory, session->id)];
	while (*link != session) {
		link = &(*link)->next;
	}
	*link = session->next;
	if (!session->parked) {
		discount(directory, session);
	}
	(void)pthread_mutex_unlock(&directory->lock);
	session_free(session);
}

void directory_park(struct directory *directory, struct session *session)
{
	(void)pthread_mutex_lock(&directory->lock);
	discount(directory, session);
	session->parked = true;
	(void)pthread_mutex_unlock(&directory->lock);
	session_clear(session);
}

int directory_restore(struct directory *directory, const uint8_t *id, struct session **ret_session)
{
	int r;

	(void)pthread_mutex_lock(&directory->lock);
	r = add(directory, id, least_loaded(directory, 0), ret_session);
	(void)pthread_mutex_unlock(&directory->lock);
	return r;
}

struct session *directory_find(struct directory *directory, const uint8_t *id)
{
	struct session *session;

	(void)pthread_mutex_lock(&directory->lock);
	session = find(directory, id);
	(void)pthread_mutex_unlock(&directory->lock);
	return session;
}

bool directory_take_handles(struct directory *directory, uint64_t n)
{
	bool fits;

	(void)pthread_mutex_lock(&directory->lock);
	fits = n <= directory->max_handles && directory->n_handles <= directory->max_handles - n;
	if (fits) {
		directory->n_handles += n;
	}
	(void)pthread_mutex_unlock(&directory->lock);
	return fits;
}

void directory_give_handles(struct directory *directory, uint64_t n)
{
	(void)pthread_mutex_lock(&directory->lock);
	directory->n_handles -= n;
	(void)pthread_mutex_unlock(&directory->lock);
}

uint32_t directory_sessions(struct directory *directory)
{
	uint32_t n;

	(void)pthread_mutex_lock(&directory->lock);
	n = directory->n_sessions;
	(void)pthread_mutex_unlock(&directory->lock);
	return n;
}

uint64_t directory_handles(struct directory *directory)
{
	uint64_t n;

	(void)pthread_mutex_lock(&directory->lock);
	n = directory->n_handles;
	(void)pthread_mutex_unlock(&directory->lock);
	return n;
}
