#pragma once
/*
 * args: one command line against the tables of options: getopt_long with errors that say what would be right.
 *
 * Options are known by number; a command lists its own as a set of bits. All values are checked here, so that a command reads
 * plain values. Options and operands may come in any order; "--" ends the options; "-5" is an operand, so that N may be negative.
 * A value that may be left out, as in --wait[=D], is only taken from the same word.
 */
#include "clients/cli/cli.h"

enum option_id {
	OPT_SOCKET,
	OPT_JSON,
	OPT_TIMEOUT,
	OPT_HELP,
	OPT_VERSION,
	OPT_EXACT,
	OPT_CACHED,
	OPT_DEPTH,
	OPT_SORT,
	OPT_KIND,
	OPT_MAX_COUNTERS,
	OPT_OVERFLOW,
	OPT_EXPIRE_AFTER,
	OPT_CHECK,
	OPT_LIMITS,
	OPT_DRY_RUN,
	OPT_WAIT,
	OPT_CHARGE,
	OPT_MAX,
	OPT_HIGH,
	OPT_LOW,
	OPT_MIN,
	OPT_PER,
	OPT_CALENDAR,
	OPT_RATE,
	OPT_BURST,
	OPT_WINDOW,
	OPT_SHADOW,
	OPT_DURABLE,
	OPT_YES,
	_OPT_COUNT,
};

#define OPTION(id) (UINT64_C(1) << (id))
/* Known to every command, before and after its name. */
#define OPTIONS_GLOBAL \
	(OPTION(OPT_SOCKET) | OPTION(OPT_JSON) | OPTION(OPT_TIMEOUT) | OPTION(OPT_HELP))

enum option_type {
	OPTION_FLAG,
	OPTION_TEXT,
	OPTION_NUMBER,
	OPTION_DURATION, /* milliseconds */
	OPTION_CHOICE,	 /* the index into `choices` */
	OPTION_RATE,	 /* N in `number`, D in `per_ms` */
	OPTION_LIST,	 /* text; given again, all of it is kept */
};

struct option_spec {
	const char *name;
	char letter; /* 0: none */
	enum option_type type;
	bool optional;	 /* its value may be left out: a duration */
	const char *arg; /* what help calls its value */
	const char *help;
	const char *const *choices; /* NULL at the end */
	int64_t min;
	int64_t max;
	uint64_t excludes;
};
extern const struct option_spec option_specs[_OPT_COUNT];

struct option_value {
	bool given;
	const char *text; /* NULL: it was left out */
	int64_t number;
	int64_t per_ms;
};

struct args {
	struct option_value option[_OPT_COUNT];
	const char **list; /* of OPTION_LIST; no command has two of them */
	size_t n_list;
	char **operands; /* in argv, which is reordered */
	size_t n_operands;
};

static inline bool args_has(const struct args *args, enum option_id id)
{
	return args->option[id].given;
}

/* --exact, --cached or neither. */
static inline enum ration_consistency args_consistency(const struct args *args)
{
	return args_has(args, OPT_EXACT)    ? RATION_EXACT
	       : args_has(args, OPT_CACHED) ? RATION_CACHED
					    : RATION_FRESH;
}

/*
 * Parse argv[1..] with the options in `allowed`. whole: all of it; else up to the first operand, which is where the rest begins.
 * `name`: the command, for messages, or NULL. args->option keeps what earlier calls found. False: reported.
 */
bool args_parse(struct cli *cli, const char *name, uint64_t allowed, bool whole, int argc,
		char **argv, struct args *args);
void args_deinit(struct args *args);

/* What follows an option's name in help: " D"; "[=D]" where the value may be left out; "" where there is none. */
#define OPTION_VALUE_BYTES 64
const char *option_value_text(const struct option_spec *spec, char text[OPTION_VALUE_BYTES]);
