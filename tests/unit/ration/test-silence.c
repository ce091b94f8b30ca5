/*
 * A daemon that is connected and says nothing, as after a host has vanished: given up after some seconds, and everything is sent again
 * on another connection. The waits are the library's own, so this takes a while.
 */
#include "clients/c/include/ration.h"
#include "clients/c/link.h"
#include "tests/support/test.h"
#include "tests/unit/ration/fake.h"

#include <errno.h>
#include <unistd.h>

/* Somebody calls, and not earlier than ms after begin_ns. */
static void accept_after(struct fake *fake, int64_t begin_ns, int ms, struct fake_peer *ret_peer)
{
	assert_true(fake_is_called(fake, ms + FAKE_WAIT_MS));
	assert_true(test_now_ns() - begin_ns >= ms * INT64_C(1000000));
	fake_accept(fake, ret_peer);
}

static void test_silent_daemon(void **state)
{
	struct ration_options options = RATION_OPTIONS_INIT;
	struct fake_peer mute, deaf, peer;
	struct ration *client;
	struct request request;
	struct fake fake;
	int64_t begin_ns;

	fake_listen(&fake, *state);
	options.send_interval_ms = 5;
	begin_ns = test_now_ns();
	client = ration_open(fake.url, &options);
	assert_non_null(client);
	ration_add(ration_counter(client, "m/a"), 5);

	/* No Welcome. */
	fake_accept(&fake, &mute);
	fake_take(&mute, REQUEST_HELLO, &request);

	/* A Welcome, and no answer to a batch. */
	accept_after(&fake, begin_ns, LINK_CONNECT_MS, &deaf);
	fake_expect_end(&mute);
	begin_ns = test_now_ns();
	fake_welcome(&deaf, false, 0, &FAKE_LIMITS, NULL);
	fake_take(&deaf, REQUEST_INTERN, &request);
	fake_take(&deaf, REQUEST_ADD, &request);
	accept_after(&fake, begin_ns, LINK_ANSWER_MS, &peer);
	fake_expect_end(&deaf);

	/* One that speaks. */
	fake_welcome(&peer, true, 0, &FAKE_LIMITS, NULL);
	fake_take(&peer, REQUEST_INTERN, &request);
	fake_interned(&peer, request.id);
	fake_take(&peer, REQUEST_ADD, &request);
	assert_int_equal(request.add.batch, 1);
	assert_int_equal(request.add.deltas[0], 5);
	fake_applied(&peer, &request);
	assert_int_equal(ration_close(client, FAKE_WAIT_MS, NULL), 0);
	fake_hang_up(&mute);
	fake_hang_up(&deaf);
	fake_hang_up(&peer);
	fake_close(&fake);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_silent_daemon, test_dir_setup,
						test_dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
