/*
 * What a program of somebody else's may look like; also compiled as C++. There is no daemon: everything it adds is undelivered.
 */
#include <ration.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void count_loss(void *ctx, const struct ration_loss *loss)
{
	*(int64_t *)ctx += loss->amount;
}

int main(void)
{
	struct ration_options options = RATION_OPTIONS_INIT;
	struct ration_metric metric = RATION_METRIC_INIT;
	struct ration_counter *counter;
	uint64_t undelivered = 0;
	struct ration *client;
	int64_t lost = 0;

	options.on_loss = count_loss;
	options.ctx = &lost;
	client = ration_open("unix:/nonexistent/socket", &options);
	if (client == NULL) {
		return 1;
	}
	counter = ration_counter(client, "requests/acme/web");
	if (counter == NULL || ration_counter(client, "//") != NULL || errno != EINVAL) {
		return 2;
	}
	ration_inc(counter);
	ration_add(counter, 2);
	if (ration_metric_set(client, "requests", &metric, 100) != -ENOTCONN ||
	    strlen(ration_error()) == 0) {
		return 3;
	}
	if (ration_close(client, 0, &undelivered) != -ETIMEDOUT || undelivered != 3 || lost != 3) {
		return 4;
	}
	(void)printf("%s %s\n", ration_version(), ration_code_name(RATION_NOT_FOUND));
	return 0;
}
