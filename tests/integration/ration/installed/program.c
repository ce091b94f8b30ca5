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

/* Nothing is granted without a daemon, but by who asks for that. */
static int try_quotas(struct ration *client)
{
	struct ration_charge_options options = RATION_CHARGE_OPTIONS_INIT;
	struct ration_charge_item item = { "jobs/acme", 1 };
	struct ration_lease_info info = RATION_LEASE_INFO_INIT;
	struct ration_limits limits = RATION_LIMITS_INIT;
	struct ration_charge_result *result = NULL;
	struct ration_lease *lease = ration_lease_open(client, "jobs/acme", 10, 1000, NULL);
	int bad = 0;

	if (lease == NULL) {
		return 1;
	}
	options.dry_run = true;
	bad += ration_charge(client, &item, 1, NULL, 100, &result) != -ENOTCONN || result != NULL;
	bad += ration_charge(client, &item, 1, &options, 100, &result) != -ENOTCONN;
	bad += ration_quota_set(client, "jobs", &limits, 100, NULL, NULL) != -ENOTCONN;
	bad += ration_try(lease, 1, RATION_CLOSED) || !ration_try(lease, 1, RATION_OPEN);
	ration_lease_get(lease, &info);
	bad += info.opened != 1;
	bad += ration_lease_close(lease, 0, NULL) != 0;
	ration_charge_result_free(result);
	return bad;
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
	if (try_quotas(client) != 0) {
		return 5;
	}
	if (ration_close(client, 0, &undelivered) != -ETIMEDOUT || undelivered != 3 || lost != 3) {
		return 4;
	}
	(void)printf("%s %s\n", ration_version(), ration_code_name(RATION_NOT_FOUND));
	return 0;
}
