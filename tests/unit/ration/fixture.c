#include "tests/unit/ration/fixture.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

static void note_loss(void *ctx, const struct ration_loss *loss)
{
	struct lost *lost = ctx;

	(void)pthread_mutex_lock(&lost->lock);
	lost->n++;
	lost->code = loss->code;
	lost->amount += loss->amount;
	lost->last = loss->amount;
	(void)snprintf(lost->path, sizeof(lost->path), "%s", loss->path);
	(void)snprintf(lost->text, sizeof(lost->text), "%s", loss->text);
	(void)pthread_mutex_unlock(&lost->lock);
}

int fixture_setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct ration_options options = RATION_OPTIONS_INIT;
	void *dir;

	if (fixture == NULL || test_dir_setup(&dir) != 0) {
		return -1;
	}
	fixture->dir = dir;
	(void)pthread_mutex_init(&fixture->lost.lock, NULL);
	fake_listen(&fixture->fake, fixture->dir);
	options.send_interval_ms = 5;
	options.max_unacknowledged = FIXTURE_BOUND;
	options.on_loss = note_loss;
	options.ctx = &fixture->lost;
	fixture->client = ration_open(fixture->fake.url, &options);
	*state = fixture;
	return fixture->client == NULL ? -1 : 0;
}

int fixture_setup_counters(void **state)
{
	struct fixture *fixture;

	if (fixture_setup(state) != 0) {
		return -1;
	}
	fixture = *state;
	fixture->a = ration_counter(fixture->client, "m/a");
	fixture->b = ration_counter(fixture->client, "m/b");
	return fixture->a == NULL || fixture->b == NULL ? -1 : 0;
}

int fixture_teardown(void **state)
{
	struct fixture *fixture = *state;
	void *dir = fixture->dir;

	if (fixture->client != NULL) {
		(void)ration_close(fixture->client, 0, NULL);
	}
	fake_close(&fixture->fake);
	(void)pthread_mutex_destroy(&fixture->lost.lock);
	free(fixture);
	return test_dir_teardown(&dir);
}
