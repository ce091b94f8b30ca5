#include "tests/unit/cli/run.h"

#include "tests/support/test.h"
#include "tests/unit/cli/fake.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_WORDS 32

static struct run last;

void run_free(void)
{
	free(last.out);
	free(last.err);
	last = (struct run){ 0 };
}

int run_setup(void **state)
{
	(void)state;
	fake_reset();
	return unsetenv("RATIOND_SOCKET");
}

int run_teardown(void **state)
{
	(void)state;
	run_free();
	return fake.n_opened == fake.n_closed ? 0 : -1;
}

/* A file that holds the text, to be read from its beginning. */
static int input_of(const struct run_setting *setting)
{
	size_t len = setting->input_len != 0 ? setting->input_len : strlen(setting->input);
	FILE *file = tmpfile();
	int fd = -1;

	assert_non_null(file);
	assert_int_equal(fwrite(setting->input, 1, len, file), len);
	assert_int_equal(fflush(file), 0);
	fd = dup(fileno(file));
	assert_int_equal(fclose(file), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

const struct run *run_words(const struct run_setting *setting, const char *const *words)
{
	char *argv[MAX_WORDS] = { strdup("rationctl") };
	struct cli cli = { .in = -1 };
	size_t out_len = 0;
	size_t err_len = 0;
	int argc = 1;

	run_free();
	for (; *words != NULL; words++) {
		argv[argc++] = strdup(*words);
	}
	/* argv is reordered on the way. */
	char *all[MAX_WORDS];

	memcpy(all, argv, sizeof(all));
	if (setting != NULL) {
		cli.in = setting->input != NULL ? input_of(setting) : -1;
		cli.watch_ms = setting->watch_ms;
		cli.in_terminal = cli.out_terminal = cli.err_terminal = cli.utf8 =
			setting->terminal;
	}
	cli.out = open_memstream(&last.out, &out_len);
	cli.err = open_memstream(&last.err, &err_len);
	last.status = cli_run(&cli, argc, argv);
	assert_int_equal(fclose(cli.out), 0);
	assert_int_equal(fclose(cli.err), 0);
	if (cli.in >= 0) {
		assert_int_equal(close(cli.in), 0);
	}
	for (int i = 0; i < argc; i++) {
		free(all[i]);
	}
	return &last;
}
