#pragma once
/*
 * args: the command line, from one const table that also is the --help and the manual page.
 */
#include "daemon/config.h"

#include <stdio.h>

#define ARGS_MAX_FLAGS 128u

enum args_action {
	ARGS_RUN,
	ARGS_CHECK_CONFIG,
	ARGS_PRINT_CONFIG,
	ARGS_VERSION,
	ARGS_HELP,
};

struct args {
	enum args_action action;
	const char *config; /* NULL: the default */
	struct config_flag flags[ARGS_MAX_FLAGS];
	size_t n_flags;
	bool recover;
};

struct args_option {
	const char *name;  /* without the dashes */
	const char *value; /* what its value is called; NULL: it takes none */
	enum args_action action;
	const char *help;
	bool recover;		 /* sets args.recover */
	struct config_flag flag; /* stands for this one, if it has a name */
};

extern const struct args_option args_options[];
extern const size_t args_n_options;

/* 0; -EINVAL: wrong usage, said on standard error. The strings of argv are kept. */
int args_parse(int argc, char **argv, struct args *ret_args);

void args_help(FILE *file);
