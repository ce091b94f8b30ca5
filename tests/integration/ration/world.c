#include "tests/integration/ration/world.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int64_t world_total(const char *url, const char *path)
{
	struct ration *client = ration_open(url, NULL);
	struct ration_value value;

	assert_non_null(client);
	assert_int_equal(ration_get(client, &path, 1, RATION_EXACT, 30000, &value, NULL), 0);
	assert_true(value.code == RATION_OK || value.code == RATION_NOT_FOUND);
	assert_int_equal(ration_close(client, 0, NULL), 0);
	return value.total;
}

static void no_loss(void *ctx, const struct ration_loss *loss)
{
	(void)ctx;
	(void)fprintf(stderr, "lost: %s %lld: %s (%s)\n", loss->path, (long long)loss->amount,
		      loss->text, ration_error());
	abort();
}

struct ration *world_open(const char *url, uint32_t send_interval_ms)
{
	struct ration_options options = RATION_OPTIONS_INIT;
	struct ration *client;

	options.send_interval_ms = send_interval_ms;
	options.on_loss = no_loss;
	client = ration_open(url, &options);
	assert_non_null(client);
	return client;
}

void world_close(struct ration *client)
{
	uint64_t undelivered = 1;

	assert_int_equal(ration_close(client, 30000, &undelivered), 0);
	assert_int_equal(undelivered, 0);
}

int64_t world_rss(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	char line[128], *resident;

	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	assert_int_equal(fclose(file), 0);
	resident = strchr(line, ' '); /* after the size, in pages */
	assert_non_null(resident);
	return strtoll(resident, NULL, 10) * sysconf(_SC_PAGESIZE);
}
