#include "tests/integration/cli/shell.h"

#include "tests/support/test.h"

#include <paths.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

int shell_setup(void **state)
{
	struct test_daemon *daemon = test_daemon_start(NULL);
	char path[4096];
	char pid[16];

	/* What is not there is not there: folders of ours that we may not look into would say otherwise. */
	(void)snprintf(path, sizeof(path), "%s:%s", RATIONCTL_DIR, _PATH_STDPATH);
	(void)snprintf(pid, sizeof(pid), "%d", (int)daemon->pid);
	*state = daemon;
	return setenv("PATH", path, 1) != 0 || setenv("RATIOND_SOCKET", daemon->url, 1) != 0 ||
	       setenv("D", daemon->dir, 1) != 0 || setenv("P", pid, 1) != 0 ||
	       setenv("LC_ALL", "C.UTF-8", 1) != 0;
}

int shell_teardown(void **state)
{
	test_daemon_stop(*state);
	return 0;
}

void shell(const char *line, int status, const char *expected)
{
	char command[8192];
	char output[16384];
	FILE *pipe = NULL;
	size_t len = 0;
	int result = 0;

	(void)snprintf(command, sizeof(command), "{ %s\n} 2>&1", line);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	len = fread(output, 1, sizeof(output) - 1, pipe);
	output[len] = '\0';
	result = pclose(pipe);
	assert_string_equal(output, expected);
	assert_true(WIFEXITED(result));
	assert_int_equal(WEXITSTATUS(result), status);
}
