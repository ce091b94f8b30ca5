/*
 * rationd: read the command line, read the configuration, make the daemon, run it.
 */
#include "daemon/args.h"
#include "daemon/config.h"
#include "daemon/daemon.h"
#include "daemon/notify.h"
#include "lib/base/cleanup.h"
#include "lib/rcu/grace.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

DEFINE_CLEANUP(struct daemon *, daemon_free);

static void report_to_stderr(void *ctx, const char *text)
{
	(void)ctx;
	(void)fprintf(stderr, "rationd: %s\n", text);
}

static void warn_to_stderr(void *ctx, const char *text)
{
	(void)ctx;
	(void)fprintf(stderr, "rationd: warning: %s\n", text);
}

static int run(struct config *config, const struct config_source *source)
{
	_cleanup_(daemon_freep) struct daemon *daemon = NULL;
	int r = daemon_new(config, source, &daemon);

	if (r == STORE_E_DAMAGED || r == STORE_E_NEWER) {
		return EX_DATAERR; /* to try again does not help */
	}
	if (r == 0) {
		r = daemon_run(daemon);
	}
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int check(size_t n_warnings)
{
	if (n_warnings > 0) {
		(void)printf("the configuration is good, but for %zu warning%s\n", n_warnings,
			     n_warnings == 1 ? "" : "s");
	} else {
		(void)printf("the configuration is good\n");
	}
	return EXIT_SUCCESS;
}

static int print(const struct config *config)
{
	int r = config_print(config, stdout);

	if (r < 0) {
		(void)fprintf(stderr, "rationd: can't print the configuration: %s\n", strerror(-r));
	}
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int with_config(const struct args *args)
{
	const struct config_source source = { .file = args->config,
					      .flags = args->flags,
					      .n_flags = args->n_flags,
					      .recover = args->recover };
	struct config_report report = { .error = report_to_stderr, .warning = warn_to_stderr };
	struct config *config = NULL;
	int r = config_load(&source, &report, &config);

	if (r < 0) {
		(void)fprintf(stderr, "rationd: can't read the configuration: %s\n", strerror(-r));
		return EXIT_FAILURE;
	}
	if (r > 0) {
		(void)fprintf(stderr, "rationd: the configuration has %zu error%s\n",
			      report.n_errors, report.n_errors == 1 ? "" : "s");
		notify_failed(EINVAL, "The configuration has errors: see the log.");
		return EX_CONFIG;
	}
	switch (args->action) {
	case ARGS_CHECK_CONFIG:
		r = check(report.n_warnings);
		break;
	case ARGS_PRINT_CONFIG:
		r = print(config);
		break;
	default:
		return run(config, &source);
	}
	(void)config_free(config);
	return r;
}

int main(int argc, char **argv)
{
	struct args args;
	int status;

	if (args_parse(argc, argv, &args) < 0) {
		return EX_USAGE;
	}
	if (args.action == ARGS_HELP) {
		args_help(stdout);
		return EXIT_SUCCESS;
	}
	if (args.action == ARGS_VERSION) {
		(void)printf("rationd %s\n", RATION_VERSION);
		return EXIT_SUCCESS;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	grace_register();
	status = with_config(&args);
	grace_unregister();
	return status;
}
