#include "clients/cli/command.h"

#include "clients/cli/text.h"

#include <stdlib.h>
#include <string.h>

#define READING (OPTION(OPT_EXACT) | OPTION(OPT_CACHED))

const struct command commands[] = {
	{
		"add",
		"PATH [N]",
		"count N, or 1, at PATH; 'add -' reads lines of PATH N",
		0,
		1,
		2,
		"Adds N to the counter at PATH, which is made if it is not there, and returns when every total includes it. N may be "
		"negative where the metric is a gauge.\n"
		"\n"
		"With - in the place of PATH, lines are read from standard input:\n"
		"\n"
		"  requests/acme/web 12\n"
		"  requests/acme/mail\n"
		"  # a comment; blank lines are ignored as well\n"
		"\n"
		"A line is PATH N, or PATH alone for 1. Blanks around both are no part of them. If there are blanks inside a line its last "
		"word is always N: so a path with blanks in it needs its N. A line that is wrong is reported by its number, with what "
		"would be right; all others count, and the exit status is 2 at the end. Lines have at most 4096 bytes.\n"
		"\n"
		"Lines are sent while more are read, so that the end of a pipe that goes on for days counts too; an interrupt (or SIGTERM) "
		"ends the reading and what was read is still delivered. Where standard error is a terminal, progress is shown.",
		cmd_add,
	},
	{
		"get",
		"PATH...",
		"print totals",
		READING,
		1,
		OPERANDS_MANY,
		"Prints a line for each PATH: its total (all that was added at it and below it) and the path. With --json also what was "
		"added at the very path (own). A path that is not there is reported, the others are printed, and the exit status is 3.",
		cmd_get,
	},
	{
		"tree",
		"[PATH]",
		"print all that is below PATH, or everything",
		READING | OPTION(OPT_DEPTH) | OPTION(OPT_SORT),
		0,
		1,
		"Prints a line for each counter, parents before children: its total, what was added at the very path (own), and its name. "
		"On a terminal with a UTF-8 locale the tree is drawn with lines, otherwise with two blanks a level. With --json \"nodes\" "
		"lists them in the same order, each with its whole path and its depth (1: a metric).",
		cmd_tree,
	},
	{
		"flush",
		"",
		"have the daemon fold all that its workers hold back",
		0,
		0,
		0,
		"When it returns, every total includes all that the daemon had received. Totals do so within the daemon's flush interval "
		"anyway, and 'get --exact' asks for it by itself.",
		cmd_flush,
	},
	{
		"status",
		"",
		"print the daemon's version and what it says of itself",
		0,
		0,
		0,
		"Prints name, value and meaning of each of the daemon's own metrics.",
		cmd_status,
	},
	{
		"metric show",
		"[NAME...]",
		"print what metrics are declared to be",
		0,
		0,
		OPERANDS_MANY,
		"A metric is the first segment of a path. Prints its kind, its ceiling on counters, what happens past that, and after how "
		"long idle counters are removed. Without NAME, of all metrics that have counters.",
		cmd_metric_show,
	},
	{
		"metric set",
		"NAME",
		"declare a metric, or change it",
		OPTION(OPT_KIND) | OPTION(OPT_MAX_COUNTERS) | OPTION(OPT_OVERFLOW) |
			OPTION(OPT_EXPIRE_AFTER),
		1,
		1,
		"What no option names stays as it is; a new metric is a counter without a ceiling of its own, whose counters never expire. "
		"For example:\n"
		"\n"
		"  rationctl metric set jobs_running --kind gauge\n"
		"  rationctl metric set requests --max-counters 50k --overflow yes",
		cmd_metric_set,
	},
	{
		"version",
		"",
		"print the version",
		0,
		0,
		0,
		"Prints the versions of rationctl and of its libration. The daemon's own is in 'rationctl status'.",
		cmd_version,
	},
	{
		"help",
		"[COMMAND]",
		"print help, for COMMAND if it is named",
		0,
		0,
		2,
		"The same as 'rationctl --help' and 'rationctl COMMAND --help'.",
		cmd_help,
	},
	{ 0 },
};

/* Does `name` begin with `word`, as a whole word? What follows in *ret_rest. */
static bool begins_with(const char *name, const char *word, const char **ret_rest)
{
	size_t len = strlen(word);

	if (len == 0 || strncmp(name, word, len) != 0 || (name[len] != '\0' && name[len] != ' ')) {
		return false;
	}
	*ret_rest = name + len + (name[len] == ' ');
	return true;
}

const struct command *command_find(char *const *words, size_t n, size_t *ret_words)
{
	for (const struct command *command = commands; command->name != NULL; command++) {
		const char *rest = command->name;
		size_t i = 0;

		while (i < n && *rest != '\0' && begins_with(rest, words[i], &rest)) {
			i++;
		}
		if (*rest == '\0') {
			*ret_words = i;
			return command;
		}
	}
	return NULL;
}

/* The words that may come first, or after `first`; each once, NULL at the end. They are slices of the names, to be freed. */
static size_t next_words(const char *first, char **ret_words, size_t max)
{
	size_t n = 0;

	for (const struct command *command = commands; command->name != NULL && n + 1 < max;
	     command++) {
		const char *rest = command->name;
		char *word = NULL;

		if (first != NULL && (!begins_with(rest, first, &rest) || *rest == '\0')) {
			continue;
		}
		word = strndup(rest, strcspn(rest, " "));
		if (word != NULL && (n == 0 || strcmp(ret_words[n - 1], word) != 0)) {
			ret_words[n++] = word;
		} else {
			free(word);
		}
	}
	ret_words[n] = NULL;
	return n;
}

#define WORDS_MAX 32

void command_unknown(struct cli *cli, char *const *words, size_t n)
{
	char *known[WORDS_MAX];
	size_t n_known = next_words(words[0], known, WORDS_MAX);
	bool group = n_known > 0;
	const char *wrong = !group ? words[0] : n > 1 ? words[1] : NULL;
	const char *nearest = NULL;
	char *safe = NULL;
	char list[256] = "";

	if (!group) {
		n_known = next_words(NULL, known, WORDS_MAX);
	}
	for (size_t i = 0; i < n_known; i++) {
		size_t used = strlen(list);

		(void)snprintf(list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : "",
			       known[i]);
	}
	nearest = wrong != NULL ? text_nearest(wrong, (const char *const *)known) : NULL;
	safe = wrong != NULL ? text_safe(wrong, strlen(wrong), 64) : NULL;
	if (wrong == NULL) {
		cli_fail(cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			 "%s: a word is missing after it; one of %s is right", words[0], list);
	} else if (nearest != NULL) {
		cli_fail(cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			 "unknown command '%s%s%s'; did you mean '%s%s%s'?", group ? words[0] : "",
			 group ? " " : "", safe != NULL ? safe : "", group ? words[0] : "",
			 group ? " " : "", nearest);
	} else {
		cli_fail(cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			 "unknown command '%s%s%s'; one of %s is right", group ? words[0] : "",
			 group ? " " : "", safe != NULL ? safe : "", list);
	}
	free(safe);
	for (size_t i = 0; i < n_known; i++) {
		free(known[i]);
	}
}
