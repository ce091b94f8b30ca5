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
		OPTION(OPT_DURABLE),
		false,
		1,
		2,
		"Adds N to the counter at PATH, which is made if it is not there, and returns when every total includes it. N may be "
		"negative where the metric is a gauge. Whether it is one is asked of the daemon, at the first negative N. With --durable it returns "
		"when what was added is in the daemon's state file as well; that is so within a fraction of a second anyway, see rationd-delivery(7).\n"
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
		READING | OPTION(OPT_CHECK),
		false,
		1,
		OPERANDS_MANY,
		"Prints a line for each PATH: its total (all that was added at it and below it) and the path. With --json also what was "
		"added at the very path (own). A path that is not there is reported, the others are printed, and the exit status is 3.\n"
		"\n"
		"With --check the exit status is 1 if usage is above a max (or a rate's burst) at one of the paths or at anything it is below "
		"of, in any window, and each such place is reported. Reaching a max exactly is not over it, going over a high is not "
		"either, and limits in shadow don't count. Charges never bring usage above a max, but what is added does. Whether there is "
		"room for more is another question: 'rationctl charge --dry-run PATH' answers it.",
		cmd_get,
	},
	{
		"tree",
		"[PATH]",
		"print all that is below PATH, or everything",
		READING | OPTION(OPT_DEPTH) | OPTION(OPT_SORT) | OPTION(OPT_LIMITS),
		false,
		0,
		1,
		"Prints a line for each counter, parents before children: its total, what was added at the very path (own), and its name. "
		"On a terminal with a UTF-8 locale the tree is drawn with lines, otherwise with two blanks a level. With --json \"nodes\" "
		"lists them in the same order, each with its whole path and its depth (1: a metric).\n"
		"\n"
		"On a terminal, or with --limits, nodes that have limits show the fullest of them: a bar, usage, the limit and what it is. The "
		"bar is full only if nothing is left. With --json \"limits\" has all of a node's limits.",
		cmd_tree,
	},
	{
		"charge",
		"PATH [N]...",
		"ask for room: charge N, or 1, at PATH; 'charge -' reads lines of PATH N",
		OPTION(OPT_DRY_RUN) | OPTION(OPT_WAIT),
		false,
		1,
		OPERANDS_MANY,
		"Charges N at PATH, and so at all that PATH is below of, if every limit on the way has room for it. Several PATH N are one "
		"charge: all are granted or none. A word after PATH that begins with a digit or a sign is its N; in front of a PATH that begins "
		"so its predecessor's N has to be written out.\n"
		"\n"
		"The exit status is 0 if it is granted, and 1 if it is refused: then nothing is charged, and each limit that has no room is "
		"reported with its path, its window, what is used, what is left, and when to try again. Limits that are over their high, or "
		"in shadow and would have refused, are reported too.\n"
		"\n"
		"On a gauge the charge is held until 'rationctl uncharge' gives it back; see 'rationctl run' for one that ends by itself. On a "
		"counter it is counted, and stays.\n"
		"\n"
		"With - in the place of PATH, lines of PATH N are read from standard input, written as those of 'rationctl add -'. Each line is a "
		"charge of its own, in their order, and for each one line is printed: granted or refused, N, PATH, and the first limit that "
		"has something to say, with tabs between them. The exit status is 1 if any was refused. With --json there are sums, and the first "
		"100 refusals.\n"
		"\n"
		"  rationctl charge requests/acme/web 5 traffic/acme 64Ki\n"
		"  rationctl charge --wait=30s jobs/acme",
		cmd_charge,
	},
	{
		"uncharge",
		"PATH [N]",
		"give back N, or 1, of what was charged at PATH, a gauge",
		0,
		false,
		1,
		2,
		"Gives back what 'rationctl charge' has charged at this very PATH, by anyone. More than that is an error, and nothing is given back "
		"then; so is a counter, where charges stay. What was counted in a window stays counted there.",
		cmd_uncharge,
	},
	{
		"run",
		"--charge PATH[:N] -- COMMAND...",
		"run COMMAND, and hold a charge while it runs",
		OPTION(OPT_CHARGE) | OPTION(OPT_WAIT),
		true,
		1,
		OPERANDS_MANY,
		"Charges N, or 1, at PATH and runs COMMAND if that is granted; when COMMAND has ended, what was charged on gauges is given back. "
		"What was charged on counters, which only grow, stays charged, and that is reported. "
		"What follows the last colon is N, so a PATH with a colon in it needs its N. With several --charge all are charged or none. "
		"If it is refused COMMAND is not run, and the exit status is 1. With --wait it waits for room, in a queue with all others who do.\n"
		"\n"
		"The exit status is COMMAND's, 128 and the signal's number if a signal ended it, 127 if there is no such command, and 126 if it "
		"can't be run. SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to it; but not those that a terminal "
		"sends, which COMMAND gets by itself. Standard input and output are COMMAND's alone: with --json there is an object only if "
		"COMMAND was not run.\n"
		"\n"
		"However rationctl ends, SIGKILL included, the charge is given back: the daemon does it when the connection has been gone for "
		"2 seconds (15 seconds over TCP). A connection that is back before has lost nothing. A COMMAND whose rationctl was killed goes on "
		"uncharged: end COMMAND too, or use SIGTERM, which is passed on. If the daemon goes away while COMMAND "
		"runs, that is reported, and COMMAND goes on; a daemon that was started anew does not hold the charge, which is reported at the end.\n"
		"\n"
		"  rationctl run --charge jobs/acme:4 --wait=10m -- make -j4",
		cmd_run,
	},
	{
		"quota set",
		"PATH",
		"set limits for PATH, or for all paths that match it",
		OPTION(OPT_MAX) | OPTION(OPT_HIGH) | OPTION(OPT_LOW) | OPTION(OPT_MIN) |
			OPTION(OPT_PER) | OPTION(OPT_CALENDAR) | OPTION(OPT_RATE) |
			OPTION(OPT_BURST) | OPTION(OPT_SHADOW),
		false,
		1,
		1,
		"PATH may be a template: * is any one segment, ** at the end one or more. Limits without a window hold for all that a counter "
		"ever counted, or for what a gauge has now; --per, --calendar and --rate choose a window. A path can have limits in several "
		"windows, each set by a command of its own; a charge must fit them all, at PATH and at all it is below of.\n"
		"\n"
		"The limits are exactly those that the options say: what was set before for this PATH and window, or is in the daemon's "
		"configuration, is replaced. They hold at once, and until 'rationctl quota remove': they are in the daemon's state file, if it has one. A max may be below what is "
		"in use: then charges are refused until usage has fallen. What is allowed, but unwise, is reported as a note.\n"
		"\n"
		"  rationctl quota set requests/acme --max 10k --per 1m\n"
		"  rationctl quota set 'requests/*/web' --rate 100/s --burst 500\n"
		"  rationctl quota set jobs --max 64 --high 48",
		cmd_quota_set,
	},
	{
		"quota show",
		"[PATH]",
		"print what limits are set, and where",
		0,
		false,
		0,
		1,
		"Prints a line for each rule: max (or a rate's burst), high, low and min, its window, where it comes from, and its path or template. "
		"A rule of the configuration that does not hold, because one set at run time does, is marked as overridden. With PATH those "
		"of PATH, of what is below it, and the templates that match it; the exit status is 3 if there is none. How the limits stand "
		"is told by 'rationctl quota explain' and 'rationctl tree'.",
		cmd_quota_show,
	},
	{
		"quota explain",
		"PATH",
		"print all that limits PATH, and how it stands",
		0,
		false,
		1,
		1,
		"Says how much more fits, and where the least is left. Then, from PATH up to its metric, a line for each limit in each window: "
		"usage, max (or a rate's burst), what is left, high, the highest usage there was, how many charges were refused here, how much "
		"was added beyond max without being asked for (forced), the window, and whether it is the one that binds, or over its max or "
		"high. Then what is protected by min and low, as set and in effect; the siblings on the way that use more than is "
		"protected of them; leases, which are units that programs have taken in advance; and the rules that the limits come from, in the "
		"order of the limits.",
		cmd_quota_explain,
	},
	{
		"quota remove",
		"PATH",
		"remove limits that were set at run time",
		OPTION(OPT_PER) | OPTION(OPT_CALENDAR) | OPTION(OPT_WINDOW),
		false,
		1,
		1,
		"Removes those of all windows, or of the one that an option names. What the daemon's configuration says for PATH holds again.",
		cmd_quota_remove,
	},
	{
		"flush",
		"",
		"have the daemon fold all that its workers hold back",
		OPTION(OPT_DURABLE),
		false,
		0,
		0,
		"When it returns, every total includes all that the daemon had received. Totals do so within the daemon's flush interval "
		"anyway, and 'get --exact' asks for it by itself. With --durable it returns when all of that is in the daemon's state file "
		"too, with limits and metrics that were set: the exit status is 5 if the daemon has none, or can't write it.",
		cmd_flush,
	},
	{
		"status",
		"",
		"print the daemon's version and what it says of itself",
		0,
		false,
		0,
		0,
		"Prints name, value and meaning of each of the daemon's own metrics.",
		cmd_status,
	},
	{
		"reload",
		"",
		"have the daemon read its configuration again",
		0,
		false,
		0,
		0,
		"Returns when that is done. The exit status is 0 if the configuration is in force, and 5 if it has errors, which are printed, and "
		"all is as it was. What takes effect at restart only is told too. Root, the daemon's own user and the members of its "
		"admin_group may do this.",
		cmd_reload,
	},
	{
		"metric show",
		"[NAME...]",
		"print what metrics are declared to be",
		0,
		false,
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
		false,
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
		"export",
		"",
		"print all that is counted, limits and metrics, to be imported again",
		0,
		false,
		0,
		0,
		"Prints lines of JSON, an object each: a head with the version of the format (1) and the time; metrics, as declared; limits, "
		"of run time and, marked as such, of the daemon's configuration; then of every counter its path and its own value, which is "
		"what was added at this very path. The last line says how many there were before it, so that one that was cut off is "
		"noticed.\n"
		"\n"
		"  {\"rationd_export\":1,\"time\":\"2026-01-31T12:00:00Z\",\"rationctl\":\"0.1.0\"}\n"
		"  {\"metric\":\"jobs\",\"kind\":\"gauge\",\"max_counters\":0,\"overflow\":false,\"expire_after_ms\":0}\n"
		"  {\"quota\":\"jobs\",\"layer\":\"run time\",\"window\":null,\"max\":64,\"high\":null,\"low\":0,\"min\":0,\"shadow\":false}\n"
		"  {\"counter\":\"jobs/acme\",\"own\":3}\n"
		"  {\"end\":4}\n"
		"\n"
		"Totals are not in it, for they follow from own values: so an import is right whatever is counted while the export is made. Each "
		"value is exact at a moment of the export, and not all are of the same moment: what is added meanwhile is in those that are "
		"printed later. A counter that is there all the time is printed once; one that comes or goes meanwhile once or not at all. For "
		"values of one moment, have nobody count meanwhile, or copy the daemon's state file.\n"
		"\n"
		"Usage of limits with a window, what clients hold, and leases are not in it: they are the running daemon's. But a gauge's own value "
		"has what is held of it: in another daemon, where nobody holds that, it has to be reset, or its lines left out. Where standard error "
		"is a terminal, progress is shown.\n"
		"\n"
		"  rationctl export | gzip >counts.gz",
		cmd_export,
	},
	{
		"import",
		"[FILE]",
		"set counters, limits and metrics as they were exported",
		OPTION(OPT_DRY_RUN) | OPTION(OPT_DURABLE),
		false,
		0,
		1,
		"Reads what 'rationctl export' has printed from FILE, or from standard input without one or with -. Metrics are declared, limits of "
		"run time are set, and each counter's own value becomes what the line says, whatever it is; other counters and limits stay. "
		"What is added at the same time is added to it. Limits of a daemon's configuration are left to it, and noted. It can be repeated.\n"
		"\n"
		"A line that is wrong, or that the daemon refuses, is reported by its number, and all others are imported; the exit status is 2 or 5 then. If the "
		"last line of the export is missing that is reported too. With --dry-run all lines are read and checked, and the daemon is not "
		"asked. Root, the daemon's own user and the members of its admin_group may do this.\n"
		"\n"
		"  zcat counts.gz | rationctl import --durable",
		cmd_import,
	},
	{
		"reset",
		"PATH",
		"set what was counted at PATH, and below it, to 0",
		OPTION(OPT_YES),
		false,
		1,
		1,
		"Totals of all that PATH is below of fall by as much, and so does the usage of limits without a window. Counters, limits and what "
		"clients hold stay; usage in windows does. On a terminal it is asked whether that is meant; elsewhere --yes has to say so. A large "
		"subtree takes some time, in which everybody else is served: what comes in meanwhile may be set to 0 or not. 'rationctl flush --durable' "
		"behind it makes sure that it is in the daemon's state file. Root, the daemon's own user and the members of its admin_group may do this.",
		cmd_reset,
	},
	{
		"version",
		"",
		"print the version",
		0,
		false,
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
		false,
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
