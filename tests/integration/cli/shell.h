#pragma once
/*
 * shell: lines of shell with rationctl in them, against a real daemon.
 *
 * A test's state is its daemon. In the environment: the PATH leads to rationctl, RATIOND_SOCKET to the daemon, D is the daemon's folder
 * and P its process. The locale is C.UTF-8.
 */
#include "tests/support/daemon.h"

int shell_setup(void **state);
int shell_teardown(void **state);

/* Runs a line of shell. Its standard output and error, in the order written, are `expected`; its status too. */
void shell(const char *line, int status, const char *expected);
