#include "clients/cli/args.h"

#include "clients/cli/amount.h"
#include "clients/cli/text.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const choices_sort[] = { "name", "total", NULL };
static const char *const choices_kind[] = { "counter", "gauge", NULL };
static const char *const choices_yes[] = { "no", "yes", NULL };
static const char *const choices_window[] = { "none", "rate", NULL };
static const char *const choices_calendar[] = { "day", "week", "month", NULL };

/* What limits and charges may be at most. */
#define QUOTA_MAX (INT64_C(1) << 62)
#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)
#define WINDOWS (OPTION(OPT_PER) | OPTION(OPT_CALENDAR) | OPTION(OPT_RATE) | OPTION(OPT_WINDOW))

const struct option_spec option_specs[_OPT_COUNT] = {
	[OPT_SOCKET] = {
		.name = "socket", .type = OPTION_TEXT, .arg = "URL",
		.help = "where the daemon is: unix:PATH or tcp:HOST:PORT; else $RATIOND_SOCKET, else unix:/run/rationd/rationd.sock",
	},
	[OPT_JSON] = {
		.name = "json", .type = OPTION_FLAG,
		.help = "print one JSON object, errors included",
	},
	[OPT_TIMEOUT] = {
		.name = "timeout", .type = OPTION_DURATION, .arg = "D", .min = 1, .max = 24 * DAY_MS,
		.help = "how long to wait for the daemon, like 500ms or 1m; else 10s",
	},
	[OPT_HELP] = {
		.name = "help", .letter = 'h', .type = OPTION_FLAG,
		.help = "print help and exit",
	},
	[OPT_VERSION] = {
		.name = "version", .type = OPTION_FLAG,
		.help = "print the version and exit",
	},
	[OPT_EXACT] = {
		.name = "exact", .type = OPTION_FLAG, .excludes = OPTION(OPT_CACHED),
		.help = "have the daemon fold all that its workers hold back, then answer: nothing is missing",
	},
	[OPT_CACHED] = {
		.name = "cached", .type = OPTION_FLAG, .excludes = OPTION(OPT_EXACT),
		.help = "answer from the folded totals as they are: cheapest, and furthest behind",
	},
	[OPT_DEPTH] = {
		.name = "depth", .type = OPTION_NUMBER, .arg = "N", .max = UINT32_MAX - 1,
		.help = "show at most N levels below the top; else all",
	},
	[OPT_SORT] = {
		.name = "sort", .type = OPTION_CHOICE, .arg = "name|total", .choices = choices_sort,
		.help = "the order of siblings: by name (the default), or the largest total first",
	},
	[OPT_KIND] = {
		.name = "kind", .type = OPTION_CHOICE, .arg = "counter|gauge", .choices = choices_kind,
		.help = "counter only grows; gauge goes up and down",
	},
	[OPT_MAX_COUNTERS] = {
		.name = "max-counters", .type = OPTION_NUMBER, .arg = "N", .max = UINT32_MAX,
		.help = "how many counters there may be under the metric; 0: as many as the daemon allows",
	},
	[OPT_OVERFLOW] = {
		.name = "overflow", .type = OPTION_CHOICE, .arg = "yes|no", .choices = choices_yes,
		.help = "past that, count under PARENT/__other__ (yes) or refuse (no)",
	},
	[OPT_EXPIRE_AFTER] = {
		.name = "expire-after", .type = OPTION_DURATION, .arg = "D", .max = INT64_MAX,
		.help = "remove counters idle for so long, their totals stay in their parents; 0: never",
	},
	[OPT_CHECK] = {
		.name = "check", .type = OPTION_FLAG,
		.help = "exit status 1 if usage is above a max, at a PATH or at what it is below of",
	},
	[OPT_LIMITS] = {
		.name = "limits", .type = OPTION_FLAG,
		.help = "show limits and usage too, as on a terminal",
	},
	[OPT_DRY_RUN] = {
		.name = "dry-run", .type = OPTION_FLAG, .excludes = OPTION(OPT_WAIT),
		.help = "change nothing, only say what would be answered, or what is wrong",
	},
	[OPT_WAIT] = {
		.name = "wait", .type = OPTION_DURATION, .optional = true, .arg = "D", .max = DAY_MS,
		.excludes = OPTION(OPT_DRY_RUN),
		.help = "if there is no room, wait for it, first come first served; at most D, else a day",
	},
	[OPT_CHARGE] = {
		.name = "charge", .type = OPTION_LIST, .arg = "PATH[:N]",
		.help = "what to charge: N, or 1, at PATH; may be given again, and all are charged or none",
	},
	[OPT_MAX] = {
		.name = "max", .type = OPTION_NUMBER, .arg = "N", .max = QUOTA_MAX,
		.excludes = OPTION(OPT_RATE),
		.help = "a charge that would bring usage above N is refused; 0 refuses all",
	},
	[OPT_HIGH] = {
		.name = "high", .type = OPTION_NUMBER, .arg = "N", .max = QUOTA_MAX,
		.excludes = OPTION(OPT_RATE),
		.help = "a charge that brings usage above N is granted, and told so",
	},
	[OPT_LOW] = {
		.name = "low", .type = OPTION_NUMBER, .arg = "N", .max = QUOTA_MAX, .excludes = WINDOWS,
		.help = "N of usage is protected against siblings, as far as can be",
	},
	[OPT_MIN] = {
		.name = "min", .type = OPTION_NUMBER, .arg = "N", .max = QUOTA_MAX, .excludes = WINDOWS,
		.help = "N of usage is protected against siblings",
	},
	[OPT_PER] = {
		.name = "per", .type = OPTION_DURATION, .arg = "D", .min = 1000, .max = 31 * DAY_MS,
		.excludes = WINDOWS | OPTION(OPT_LOW) | OPTION(OPT_MIN),
		.help = "count anew in each stretch of D, 1s to 31d, aligned to UTC",
	},
	[OPT_CALENDAR] = {
		.name = "calendar", .type = OPTION_CHOICE, .arg = "day|week|month", .choices = choices_calendar,
		.excludes = WINDOWS | OPTION(OPT_LOW) | OPTION(OPT_MIN),
		.help = "count anew each day, week (from Monday) or month, in UTC",
	},
	[OPT_RATE] = {
		.name = "rate", .type = OPTION_RATE, .arg = "N/D", .min = 1, .max = QUOTA_MAX,
		.excludes = WINDOWS | OPTION(OPT_MAX) | OPTION(OPT_HIGH) | OPTION(OPT_LOW) | OPTION(OPT_MIN),
		.help = "grant N in D, steadily, like 100/s or 5k/10m; with --burst",
	},
	[OPT_BURST] = {
		.name = "burst", .type = OPTION_NUMBER, .arg = "N", .min = 1, .max = QUOTA_MAX,
		.help = "with --rate: how many at most at once, after a pause",
	},
	[OPT_WINDOW] = {
		.name = "window", .type = OPTION_CHOICE, .arg = "none|rate", .choices = choices_window,
		.excludes = WINDOWS,
		.help = "the limits without a window, or the rate",
	},
	[OPT_SHADOW] = {
		.name = "shadow", .type = OPTION_FLAG,
		.help = "try it out: decide and count, but refuse nothing",
	},
	[OPT_DURABLE] = {
		.name = "durable", .type = OPTION_FLAG,
		.help = "return when it is in the daemon's state file, too",
	},
	[OPT_YES] = {
		.name = "yes", .type = OPTION_FLAG,
		.help = "do it without asking",
	},
};

const char *option_value_text(const struct option_spec *spec, char text[OPTION_VALUE_BYTES])
{
	text[0] = '\0';
	if (spec->arg != NULL) {
		(void)snprintf(text, OPTION_VALUE_BYTES, spec->optional ? "[=%s]" : " %s",
			       spec->arg);
	}
	return text;
}

/* getopt_long's val of a long option, beyond any letter. */
#define VAL(id) (256 + (int)(id))

/* Where an error was: "add" or, outside any command, what leads to its hint. */
struct where {
	struct cli *cli;
	const char *name;
	uint64_t allowed;
};

static void fail(const struct where *where, const char *what, const char *subject, const char *hint)
{
	char *safe = text_safe_string(subject);

	cli_fail(where->cli, CLI_USAGE, RATION_INVALID_ARGUMENT, "%s%s%s %s%s%s",
		 where->name != NULL ? where->name : "", where->name != NULL ? ": " : "", what,
		 safe != NULL ? safe : "", hint[0] != '\0' ? "; " : "", hint);
	free(safe);
}

static void fail_unknown(const struct where *where, const char *given)
{
	const char *names[_OPT_COUNT + 1];
	const char *nearest = NULL;
	char hint[160];
	char option[64];
	size_t n = 0;
	size_t len = strcspn(given, "=");

	for (int id = 0; id < _OPT_COUNT; id++) {
		if (where->allowed & OPTION(id)) {
			names[n++] = option_specs[id].name;
		}
	}
	names[n] = NULL;
	(void)snprintf(option, sizeof(option), "%.*s",
		       (int)(len < sizeof(option) ? len : sizeof(option) - 1), given);
	nearest = strncmp(option, "--", 2) == 0 ? text_nearest(option + 2, names) : NULL;
	if (nearest != NULL) {
		(void)snprintf(hint, sizeof(hint), "did you mean --%s?", nearest);
	} else {
		(void)snprintf(hint, sizeof(hint), "'rationctl%s%s --help' lists the options",
			       where->name != NULL ? " " : "",
			       where->name != NULL ? where->name : "");
	}
	fail(where, "unknown option", option, hint);
}

static bool bad_value(const struct where *where, const struct option_spec *spec, const char *value,
		      const char *why)
{
	char *safe = text_safe_string(value);

	cli_fail(where->cli, CLI_USAGE, RATION_INVALID_ARGUMENT, "%s%s--%s '%s': %s",
		 where->name != NULL ? where->name : "", where->name != NULL ? ": " : "",
		 spec->name, safe != NULL ? safe : "", why);
	free(safe);
	return false;
}

static bool parse_choice(const struct where *where, const struct option_spec *spec,
			 const char *text, int64_t *ret_number)
{
	char why[64];

	for (int i = 0; spec->choices[i] != NULL; i++) {
		if (strcmp(spec->choices[i], text) == 0) {
			*ret_number = i;
			return true;
		}
	}
	(void)snprintf(why, sizeof(why), "not a choice; one of %s is", spec->arg);
	return bad_value(where, spec, text, why);
}

/* A bound as it can be given. */
static const char *bound_text(const struct option_spec *spec, int64_t bound,
			      char text[AMOUNT_DURATION_BYTES])
{
	if (spec->type == OPTION_DURATION && bound > 0) {
		return amount_format_duration((uint64_t)bound, text);
	}
	(void)snprintf(text, AMOUNT_DURATION_BYTES, "%" PRId64, bound);
	return text;
}

static bool in_range(const struct where *where, const struct option_spec *spec, const char *text,
		     int64_t number)
{
	char min[AMOUNT_DURATION_BYTES], max[AMOUNT_DURATION_BYTES];
	char why[2 * AMOUNT_DURATION_BYTES + 32];

	if (number >= spec->min && number <= spec->max) {
		return true;
	}
	(void)snprintf(why, sizeof(why), "out of range; %s .. %s is right",
		       bound_text(spec, spec->min, min), bound_text(spec, spec->max, max));
	return bad_value(where, spec, text, why);
}

/* "100/s", "5k/10m": N and D; a unit alone is one of it. */
static bool parse_rate(const struct where *where, const struct option_spec *spec, const char *text,
		       struct option_value *value)
{
	const char *slash = strchr(text, '/');
	char number[32];
	char duration[32];
	enum amount_error error = AMOUNT_OK;

	if (slash == NULL || (size_t)(slash - text) >= sizeof(number) ||
	    strlen(slash) >= sizeof(duration) - 1) {
		return bad_value(where, spec, text, "not N/D; give one like 100/s or 5k/10m");
	}
	(void)snprintf(number, sizeof(number), "%.*s", (int)(slash - text), text);
	(void)snprintf(duration, sizeof(duration), "%s%s",
		       slash[1] >= 'a' && slash[1] <= 'z' ? "1" : "", slash + 1);
	error = amount_parse(number, &value->number);
	if (error != AMOUNT_OK) {
		return bad_value(where, spec, text, amount_error_text(error));
	}
	error = amount_parse_duration(duration, &value->per_ms);
	if (error != AMOUNT_OK) {
		return bad_value(where, spec, text, amount_duration_error_text(error));
	}
	if (value->per_ms == 0) {
		return bad_value(where, spec, text, "no time; give a rate like 100/s or 5k/10m");
	}
	return in_range(where, spec, text, value->number);
}

/* What takes the value of an option that was given without one? The word after it would be an operand. */
static bool lacks_sign(const struct where *where, const struct option_spec *spec, const char *next)
{
	char hint[96];
	char right[64];
	int64_t number = 0;

	if (next == NULL || amount_parse_duration(next, &number) != AMOUNT_OK) {
		return false;
	}
	(void)snprintf(right, sizeof(right), "--%s %s", spec->name, next);
	(void)snprintf(hint, sizeof(hint), "--%s=%s is right", spec->name, next);
	fail(where, "a value stands apart from its option:", right, hint);
	return true;
}

static bool append(struct args *args, const char *text)
{
	const char **list = reallocarray(args->list, args->n_list + 1, sizeof(*list));

	if (list == NULL) {
		return false;
	}
	args->list = list;
	args->list[args->n_list++] = text;
	return true;
}

void args_deinit(struct args *args)
{
	free(args->list);
	args->list = NULL;
	args->n_list = 0;
}

static bool parse_value(const struct where *where, enum option_id id, const char *text,
			struct option_value *ret_value)
{
	const struct option_spec *spec = &option_specs[id];
	struct option_value value = { .given = true, .text = text };
	enum amount_error error = AMOUNT_OK;

	if (text == NULL) {
		*ret_value = value;
		return true;
	}
	switch (spec->type) {
	case OPTION_NUMBER:
		error = amount_parse(text, &value.number);
		if (error != AMOUNT_OK) {
			return bad_value(where, spec, text, amount_error_text(error));
		}
		break;
	case OPTION_DURATION:
		error = amount_parse_duration(text, &value.number);
		if (error != AMOUNT_OK) {
			return bad_value(where, spec, text, amount_duration_error_text(error));
		}
		break;
	case OPTION_CHOICE:
		if (!parse_choice(where, spec, text, &value.number)) {
			return false;
		}
		break;
	case OPTION_RATE:
		if (!parse_rate(where, spec, text, &value)) {
			return false;
		}
		break;
	case OPTION_FLAG:
	case OPTION_TEXT:
	case OPTION_LIST:
	default:
		break;
	}
	if ((spec->type == OPTION_NUMBER || spec->type == OPTION_DURATION) &&
	    !in_range(where, spec, text, value.number)) {
		return false;
	}
	*ret_value = value;
	return true;
}

/* The options in `allowed` as getopt_long wants them. */
static void describe(uint64_t allowed, struct option *ret_long, char *ret_letters)
{
	*ret_letters++ = '+';
	*ret_letters++ = ':';
	for (int id = 0; id < _OPT_COUNT; id++) {
		const struct option_spec *spec = &option_specs[id];

		if (!(allowed & OPTION(id))) {
			continue;
		}
		*ret_long++ = (struct option){ spec->name,
					       spec->type == OPTION_FLAG ? no_argument
					       : spec->optional		 ? optional_argument
									 : required_argument,
					       NULL, VAL(id) };
		if (spec->letter != 0) {
			*ret_letters++ = spec->letter;
		}
	}
	*ret_long = (struct option){ 0 };
	*ret_letters = '\0';
}

static enum option_id option_of(int val)
{
	int id = 0;

	if (val >= VAL(0)) {
		return (enum option_id)(val - VAL(0));
	}
	while (id < _OPT_COUNT - 1 && option_specs[id].letter != val) {
		id++;
	}
	return (enum option_id)id;
}

/* What getopt_long gave for one option. `given`: the word it was in; `next`: the one after it, or NULL. */
static bool take(const struct where *where, int val, const char *given, const char *next,
		 struct args *args)
{
	enum option_id id = option_of(val == ':' || val == '?' ? optopt : val);
	char hint[96];

	if (val == ':') {
		(void)snprintf(hint, sizeof(hint), "--%s %s is right", option_specs[id].name,
			       option_specs[id].arg);
		fail(where, "a value is missing after", given, hint);
		return false;
	}
	if (val == '?' && optopt >= VAL(0)) {
		fail(where, "a value was given in", given, "this option takes none");
		return false;
	}
	if (val == '?') {
		fail_unknown(where, given);
		return false;
	}
	for (int other = 0; other < _OPT_COUNT; other++) {
		if ((option_specs[id].excludes & OPTION(other)) && other != (int)id &&
		    args->option[other].given) {
			(void)snprintf(hint, sizeof(hint), "it does not go with --%s",
				       option_specs[other].name);
			fail(where, "an option contradicts another:", given, hint);
			return false;
		}
	}
	if (option_specs[id].optional && optarg == NULL &&
	    lacks_sign(where, &option_specs[id], next)) {
		return false;
	}
	if (option_specs[id].type == OPTION_LIST && !append(args, optarg)) {
		where->cli->no_memory = true;
		return false;
	}
	return parse_value(where, id, optarg, &args->option[id]);
}

static bool is_operand(const char *word)
{
	return word[0] != '-' || word[1] == '\0' || (word[1] >= '0' && word[1] <= '9');
}

bool args_parse(struct cli *cli, const char *name, uint64_t allowed, bool whole, int argc,
		char **argv, struct args *args)
{
	struct where where = { cli, name, allowed };
	struct option longs[_OPT_COUNT + 1];
	char letters[_OPT_COUNT + 3];
	int at = 1;
	int n = 1;

	describe(allowed, longs, letters);
	opterr = 0;
	while (at < argc) {
		if (strcmp(argv[at], "--") == 0) {
			at++;
			break;
		}
		if (is_operand(argv[at])) {
			if (!whole) {
				break;
			}
			argv[n++] = argv[at++];
			continue;
		}
		/* One word at a time, as the first of an argv of its own: 0 has glibc start anew, 1 means that letters are left. */
		optind = 0;
		do {
			int val = getopt_long(argc - at + 1, argv + at - 1, letters, longs, NULL);

			if (!take(&where, val, argv[at], at + 1 < argc ? argv[at + 1] : NULL,
				  args)) {
				return false;
			}
		} while (optind == 1);
		at += optind - 1;
	}
	if (!whole) {
		args->operands = argv + at;
		args->n_operands = (size_t)(argc - at);
		return true;
	}
	while (at < argc) {
		argv[n++] = argv[at++];
	}
	args->operands = argv + 1;
	args->n_operands = (size_t)n - 1;
	return true;
}
