#include "daemon/manual.h"

#include "daemon/args.h"
#include "daemon/config-keys.h"
#include "daemon/log.h"

#include <string.h>

#define TEXT_OF_(number) #number
#define TEXT_OF(number) TEXT_OF_(number)

/* Text as roff: what begins a request or an escape is taken for what it is, and a minus is a minus. */
static void put_text(FILE *file, const char *text)
{
	if (*text == '.' || *text == '\'') {
		(void)fputs("\\&", file);
	}
	for (; *text != '\0'; text++) {
		switch (*text) {
		case '\\':
			(void)fputs("\\e", file);
			break;
		case '-':
			(void)fputs("\\-", file);
			break;
		default:
			(void)fputc(*text, file);
			break;
		}
	}
}

/* Each sentence on a line of its own, as man pages have them. */
static void put_sentences(FILE *file, const char *text)
{
	const char *end;

	while ((end = strstr(text, ". ")) != NULL) {
		char line[512];

		(void)snprintf(line, sizeof(line), "%.*s", (int)(end + 1 - text), text);
		put_text(file, line);
		(void)fputc('\n', file);
		text = end + 2;
	}
	put_text(file, text);
	(void)fputc('\n', file);
}

static void put_title(FILE *file, const char *name, int section, const char *about)
{
	(void)fprintf(file, ".TH %s %d \"\" \"rationd %s\" \"rationd\"\n.SH NAME\n", name, section,
		      RATION_VERSION);
	put_text(file, name);
	(void)fputs(" \\- ", file);
	put_text(file, about);
	(void)fputc('\n', file);
}

static void put_option(FILE *file, const char *name, const char *value, const char *help,
		       const char *fallback)
{
	(void)fputs(".TP\n\\fB\\-\\-", file);
	put_text(file, name);
	(void)fputs("\\fR", file);
	if (value != NULL) {
		(void)fprintf(file, " \\fI%s\\fR", value);
	}
	(void)fputc('\n', file);
	put_sentences(file, help);
	if (fallback != NULL) {
		(void)fputs("Default: ", file);
		put_text(file, fallback);
		(void)fputs(".\n", file);
	}
}

static void put_options(FILE *file)
{
	char text[CONFIG_MAX_VALUE_TEXT];

	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (key->flag != NULL) {
			put_option(file, key->name, key->flag, key->help,
				   config_default_format(key, text));
		}
	}
	for (size_t i = 0; i < args_n_options; i++) {
		put_option(file, args_options[i].name, args_options[i].value, args_options[i].help,
			   NULL);
	}
}

static void put_paragraph(FILE *file, const char *text)
{
	(void)fputs(".PP\n", file);
	put_sentences(file, text);
}

static void put_journal(FILE *file)
{
	static const struct {
		const char *id, *what;
	} events[] = {
		{ LOG_ID_STARTED, "It serves." },
		{ LOG_ID_STOPPED, "It has ended in good order; the text says what it had counted." },
		{ LOG_ID_RELOADED, "The configuration was read again, and taken." },
		{ LOG_ID_RELOAD_FAILED, "It was not taken; lines before say why." },
		{ LOG_ID_DENIED, "A peer may not do what it asked for." },
		{ LOG_ID_LIMITS, "Limits were set or removed at run time." },
		{ LOG_ID_METRIC, "A metric was declared at run time." },
		{ LOG_ID_SET, "Counters were reset or imported." },
		{ LOG_ID_HANGS, "A thread has not gone round for half of WatchdogSec=." },
		{ LOG_ID_NOT_DURABLE,
		  "The state file can't be written, as the text says; counting goes on, but nothing more becomes durable." },
		{ LOG_ID_DURABLE_AGAIN,
		  "It can be written again, and all that was counted is durable." },
		{ LOG_ID_STATE_REFUSED,
		  "It is damaged, of a newer version, somebody else's or can't be read: the daemon does not start." },
		{ LOG_ID_RECOVERED,
		  "It was moved aside (--recover); the text says where to, and what is lost." },
	};

	(void)fputs(".SH JOURNAL\n", file);
	put_sentences(
		file,
		"In the journal a line about a peer has RATIOND_PEER, and one about a path or pattern RATIOND_PATH. These events can be "
		"told by MESSAGE_ID:");
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		(void)fprintf(file, ".TP\n%s\n", events[i].id);
		put_sentences(file, events[i].what);
	}
}

void manual_daemon(FILE *file)
{
	put_title(file, "rationd", 8, "counts what programs report over sockets, and rations it");
	(void)fputs(".SH SYNOPSIS\n\\fBrationd\\fR [\\fIOPTION\\fR]...\n.SH DESCRIPTION\n", file);
	put_sentences(
		file,
		"rationd takes counter increments from programs over its sockets, keeps exact totals for every node of the "
		"hierarchy that their paths make, and answers how much was counted, and whether limits leave room for more. Programs talk to "
		"it with libration(3) or the libraries for Python and Node, and with StatsD lines (rationd-statsd(7)); people with rationctl(1); Prometheus reads it over HTTP (rationd-http(7)).");
	put_paragraph(
		file,
		"What is counted is in its state file within a fraction of a second, and what clients of its own protocol were told to be counted is "
		"counted once, also if the daemon is killed: see rationd-delivery(7).");
	put_paragraph(
		file,
		"It stays in the foreground, tells a service manager when it is ready (see sd_notify(3)), and accepts sockets that "
		"one has passed to it (see systemd.socket(5)). Its log goes to the journal when standard error is connected to it, "
		"and to standard error otherwise.");
	(void)fputs(".SH OPTIONS\n", file);
	put_options(file);
	(void)fputs(".SH SIGNALS\n.TP\nSIGTERM, SIGINT\n", file);
	put_sentences(
		file,
		"Stop. No more connections are accepted, what the sockets hold is answered (for stop_timeout at most), all is folded "
		"into the totals, and the exit status is 0. Everything that was acknowledged has been counted.");
	(void)fputs(".TP\nSIGHUP\n", file);
	put_sentences(
		file,
		"Read the configuration again, all or nothing. An error in it is logged, and what ran before goes on. Keys that can't "
		"change while the daemon runs are named in the log. rationctl reload does the same, waits, and says how it went.");
	put_journal(file);
	(void)fputs(
		".SH EXIT STATUS\n.TP\n0\nStopped by a signal.\n.TP\n1\nCan\\(aqt start or go on; the log says why.\n"
		".TP\n64\nWrong usage.\n.TP\n65\nThe state file is damaged or of a newer version; it was left as it is.\n.TP\n78\nThe configuration has errors.\n.SH FILES\n.TP\n",
		file);
	put_text(file, CONFIG_DEFAULT_FILE ", " CONFIG_DEFAULT_FILE ".d/*.conf");
	(void)fputs("\nThe configuration; see \\fBrationd.conf\\fR(5).\nNeither need exist.\n.TP\n",
		    file);
	put_text(file, CONFIG_DEFAULT_STATE);
	(void)fputs(
		"\nThe state file, where nothing else was said.\nWhile the daemon runs, and after a crash, the same name with \\-wal is a part of it.\n.TP\n",
		file);
	put_text(file, &ADDRESS_DEFAULT[strlen("unix:")]);
	(void)fputs(
		"\nThe socket, where nothing else was said.\nBeside it is a lock file of the same name and .lock.\n"
		".SH SEE ALSO\n\\fBrationd.conf\\fR(5), \\fBrationctl\\fR(1), \\fBrationd\\-delivery\\fR(7), "
		"\\fBrationd\\-statsd\\fR(7), \\fBrationd\\-http\\fR(7)\n",
		file);
}

static void put_default(FILE *file, const struct config_key *key)
{
	char value[CONFIG_MAX_VALUE_TEXT], range[CONFIG_MAX_VALUE_TEXT * 3];
	const char *text = config_default_format(key, value);

	if (text != NULL) {
		(void)fputs("Default: ", file);
		put_text(file, text);
		if (config_type_has_range(key->type)) {
			(void)fputs(". Allowed: ", file);
			put_text(file, config_value_range(key, range));
		}
		(void)fputs(".\n", file);
	}
	(void)fputs(key->fixed ? "Takes effect at restart.\n" : "", file);
}

static const char *type_name(enum config_type type)
{
	switch (type) {
	case CONFIG_COUNT:
		return "COUNT";
	case CONFIG_BYTES:
		return "BYTES";
	case CONFIG_DURATION:
		return "DURATION";
	case CONFIG_BOOL:
		return "YES-OR-NO";
	case CONFIG_KIND:
		return "KIND";
	case CONFIG_MODE:
		return "MODE";
	case CONFIG_LIMIT:
		return "COUNT";
	case CONFIG_CALENDAR:
		return "UNIT";
	case CONFIG_GROUP:
		return "GROUP";
	case CONFIG_RATE:
		return "COUNT/DURATION";
	case CONFIG_LEVELS:
		return "NAME, ...";
	case CONFIG_LISTEN:
		return "URL";
	case CONFIG_PATH:
		return "FILE";
	case CONFIG_TEXT:
		return "TEXT";
	case CONFIG_UNIT:
		return "UNIT";
	}
	return "VALUE";
}

static void put_keys(FILE *file, enum config_section section)
{
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (key->section == section) {
			(void)fputs(".TP\n\\fB", file);
			put_text(file, key->name);
			(void)fputs("\\fR = \\fI", file);
			put_text(file, type_name(key->type));
			(void)fputs("\\fR\n", file);
			put_sentences(file, key->help);
			put_default(file, key);
		}
	}
}

void manual_config(FILE *file)
{
	put_title(file, "rationd.conf", 5, "configuration of rationd");
	(void)fputs(".SH SYNOPSIS\n", file);
	put_text(file, CONFIG_DEFAULT_FILE);
	(void)fputs("\n.br\n", file);
	put_text(file, CONFIG_DEFAULT_FILE ".d/*.conf");
	(void)fputs("\n.SH DESCRIPTION\n", file);
	put_sentences(
		file,
		"The file is read first, then those in the folder in the order of their names; a later one wins over what an earlier one "
		"said of the same key, and flags of rationd(8) win over all. None of them need exist.");
	put_paragraph(
		file,
		"A line is a [SECTION], a KEY = VALUE, a comment that begins with # or ;, or empty. What follows a blank and a "
		"semicolon is a comment too, but for listen and state, where it is an error, so that no path is cut short. A line with a KEY = VALUE has at most " TEXT_OF(
			CONFIG_MAX_LINE) " bytes.");
	put_paragraph(
		file,
		"Any error (an unknown section or key, a value that is not allowed, a key that is set twice in one file) is told with its "
		"file and line, and keeps the daemon from starting, or from taking over anything of the new configuration. "
		"rationd --check-config tells all errors there are.");
	put_paragraph(
		file,
		"A COUNT is a whole number and may end in k, M, G or T (thousands) or Ki, Mi, Gi or Ti (1024). BYTES are the same. "
		"A DURATION is a whole number and one of ns, us, ms, s, m, h and d, without a blank between them.");
	(void)fputs(".SH [daemon]\n", file);
	put_keys(file, CONFIG_DAEMON);
	(void)fputs(".SH [metric NAME]\n", file);
	put_sentences(
		file,
		"What the metric NAME may do; the name is the first segment of a path. A metric that is not declared is a counter "
		"without a ceiling of its own. Clients can declare metrics too; a reload leaves those alone that the files say nothing "
		"new about.");
	put_keys(file, CONFIG_METRIC);
	(void)fputs(".SH [quota PATH]\n", file);
	put_sentences(
		file,
		"What the path PATH may use, all below it included, or every path that fits it as a template: * stands for any one segment, "
		"** at the end for one or more; the metric is always written out. Of several templates that fit, the one with the longest "
		"literal beginning holds, and a path itself before any template. A PATH with a ] in it can't be written here.");
	put_paragraph(
		file,
		"A section is one limit with one window: that of per, calendar or rate, or without any of them no window, which means all that a "
		"counter has ever counted, or what a gauge has now. A path may have several sections, each with another window. The "
		"same path with the same window twice is an error in one file; in a later file it takes the place of the whole "
		"earlier section.");
	put_paragraph(
		file,
		"What contradicts itself or another section is an error. What is allowed but unwise, such as a max above that of the path's "
		"parent, or a max of 500 a day where the same path has 400 a week, is a warning, which rationd --check-config tells too. "
		"Quotas can also be set at run time (see rationctl(1)); those "
		"hold in place of the same path and window here until they are removed (or, without a state file, the daemon restarts).");
	put_keys(file, CONFIG_QUOTA);
	(void)fputs(
		".SH EXAMPLE\n.nf\n[daemon]\nlisten = unix:/run/rationd/rationd.sock\nlisten = tcp:localhost:7311\n"
		"max_counters = 2M\n\n[metric sessions]\nkind = gauge\n\n[metric requests]\nmax_counters = 100k\noverflow = yes\n\n"
		"[quota sessions]\nmax = 500\n\n[quota requests/*]\nmax = 1M\ncalendar = day\n\n"
		"[quota requests/*]\nrate = 100/1s\nburst = 250\n.fi\n"
		".SH SEE ALSO\n\\fBrationd\\fR(8), \\fBrationctl\\fR(1)\n",
		file);
}
