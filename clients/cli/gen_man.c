/*
 * Writes rationctl(1) to standard output, from the tables that --help is made of.
 */
#include "clients/cli/help.h"

#include <ctype.h>
#include <string.h>

#define WIDTH 78

/* One word in roff: no backslash escapes, and "-" is the minus that can be copied. */
static size_t put_word(const char *word, size_t len, bool at_begin)
{
	size_t put = len;

	/* Nor does a line begin a request. */
	if (at_begin && len > 0 && (word[0] == '.' || word[0] == '\'')) {
		(void)fputs("\\&", stdout);
		put += 2;
	}
	for (size_t i = 0; i < len; i++) {
		if (word[i] == '\\') {
			(void)fputs("\\e", stdout);
			put++;
		} else if (word[i] == '-') {
			(void)fputs("\\-", stdout);
			put++;
		} else {
			(void)fputc(word[i], stdout);
		}
	}
	return put;
}

/* Text in lines of at most WIDTH columns. */
static void put_text_of(const char *text, size_t len)
{
	const char *end = text + len;
	size_t column = 0;

	while (text < end) {
		const char *blank = memchr(text, ' ', (size_t)(end - text));
		size_t word = blank != NULL ? (size_t)(blank - text) : (size_t)(end - text);
		bool new_line = column + 1 + word > WIDTH;

		if (column > 0) {
			(void)fputc(new_line ? '\n' : ' ', stdout);
			column = new_line ? 0 : column + 1;
		}
		column += put_word(text, word, column == 0);
		text += word + (blank != NULL);
	}
}

static void put_string(const char *text)
{
	put_text_of(text, strlen(text));
}

/* The words of a table as a sentence. */
static void put_sentence(const char *text)
{
	(void)fputc(toupper((unsigned char)text[0]), stdout);
	put_string(text + 1);
	(void)puts(".");
}

static void section(const char *name)
{
	(void)printf(".SH %s\n", name);
}

struct paragraphs {
	bool first;    /* right after a heading, where a paragraph begins by itself */
	bool verbatim; /* an example is open */
};

static void put_paragraph(void *ctx, const char *text, size_t len, bool verbatim)
{
	struct paragraphs *paragraphs = ctx;

	if (paragraphs->verbatim && !verbatim) {
		(void)puts(".EE\n.RE");
	}
	if (!paragraphs->first && !(paragraphs->verbatim && verbatim)) {
		(void)puts(".PP");
	}
	if (verbatim && !paragraphs->verbatim) {
		(void)puts(".RS 4\n.EX");
	}
	paragraphs->first = false;
	paragraphs->verbatim = verbatim;
	if (verbatim) {
		size_t blanks = strspn(text, " ");

		(void)put_word(text + blanks, len - blanks, true);
	} else {
		put_text_of(text, len);
	}
	(void)puts("");
}

static void put_text(const char *text, bool after_heading)
{
	struct paragraphs paragraphs = { .first = after_heading };

	help_visit(text, put_paragraph, &paragraphs);
	if (paragraphs.verbatim) {
		(void)puts(".EE\n.RE");
	}
}

static void put_options(uint64_t options)
{
	for (int id = 0; id < _OPT_COUNT; id++) {
		const struct option_spec *spec = &option_specs[id];

		if (!(options & OPTION(id))) {
			continue;
		}
		(void)puts(".TP");
		(void)fputs(".BR ", stdout);
		if (spec->letter != 0) {
			(void)printf("\\-%c \", \" ", spec->letter);
		}
		(void)fputs("\\-\\-", stdout);
		put_string(spec->name);
		if (spec->arg != NULL) {
			char value[OPTION_VALUE_BYTES];

			(void)option_value_text(spec, value);
			(void)fputs(value[0] == ' ' ? " \" " : " \"", stdout);
			put_string(value + strspn(value, " "));
			(void)fputs("\"", stdout);
		}
		(void)puts("");
		put_sentence(spec->help);
	}
}

static void put_command(const struct command *command)
{
	(void)printf(".SS \"rationctl ");
	put_string(command->name);
	(void)printf("%s", command->args[0] != '\0' ? " " : "");
	put_string(command->args);
	(void)printf("\"\n");
	put_sentence(command->summary);
	put_text(command->details, false);
	put_options(command->options);
}

static void put_head(void)
{
	(void)printf(
		".\\\" Generated from the tables of clients/cli.\n.TH RATIONCTL 1 \"\" \"rationd " RATION_VERSION
		"\" \"User Commands\"\n");
	section("NAME");
	(void)puts("rationctl \\- count, ration and read through rationd");
	section("SYNOPSIS");
	(void)puts(
		".B rationctl\n[\\fB\\-\\-socket\\fR \\fIURL\\fR] [\\fB\\-\\-json\\fR]\n[\\fB\\-\\-timeout\\fR \\fID\\fR] \\fICOMMAND\\fR ...");
	section("DESCRIPTION");
	put_text(
		"rationctl talks to rationd, which counts things at very high rates, and rations them: it adds to counters, prints them, sets "
		"limits, asks for room within them, runs commands for which there is room, and asks the daemon about itself.\n"
		"\n"
		"A counter has a PATH like requests/acme/web: segments joined by slashes. The first segment is the metric. A segment is 1 to 128 "
		"bytes of UTF-8 without control characters and without blanks at its ends, and is none of . .. * **; a path has at most 16 "
		"segments and 512 bytes. Every prefix of a path is a counter too: its total is what was added at it (own) and below it.\n"
		"\n"
		"What is counted can be limited, at any PATH, in one or several windows of time. What is added is counted in any case; a charge "
		"is granted if every limit at its PATH and above has room for it, and refused if one has not. Counters only grow; a metric "
		"declared as a gauge goes up and down, and there a charge is held until it is given back.\n"
		"\n"
		"N is a whole number of 64 bits, with a sign if you like, and may end in k M G T (thousands) or Ki Mi Gi Ti (1024 times). D is a "
		"duration: digits and ms, s, m, h or d.",
		true);
	section("OPTIONS");
	(void)puts("These may stand before the command or after it.");
	put_options(OPTIONS_GLOBAL);
	(void)puts(
		".TP\n.B \\-\\-version\nPrint the version and exit.\n.PP\n.B \\-\\-\nends the options.\n"
		"A word that begins with a minus and a digit is no option: it is a negative N.");
}

static void put_tail(void)
{
	section("JSON");
	put_text(
		"With --json each command prints exactly one object on standard output. It has a member \"error\" if and only if the exit status "
		"is not 0:\n"
		"\n"
		"  {\"error\": {\"status\": 3, \"code\": \"NOT_FOUND\", \"text\": \"no such path: requests/acme\"}}\n"
		"\n"
		"beside what could be answered. Its code is one of google.rpc.Code's names; of several errors it is the gravest, and all of "
		"them are on standard error as text. 'rationctl export' prints its lines in any case, and the object behind them only if something "
		"went wrong. After 'rationctl run' there is an object only if the command was not run. Numbers are JSON integers up to 2^53 either way and strings beyond. Totals come with "
		"error_bound (each may lack at most this much) and age_ms.",
		true);
	section("EXIT STATUS");
	for (int status = 0; status < _CLI_STATUS_COUNT; status++) {
		(void)printf(".TP\n.B %d\n", status);
		put_sentence(cli_statuses[status].meaning);
	}
	(void)puts(
		".PP\nBut the exit status of \\fBrationctl run\\fR is that of the command it has run,\nor 126 or 127.");
	section("ENVIRONMENT");
	(void)puts(
		".TP\n.B RATIOND_SOCKET\nWhere the daemon is, unless \\fB\\-\\-socket\\fR says so.");
	section("FILES");
	(void)puts(
		".TP\n.I /run/rationd/rationd.sock\nThe daemon's socket, where nothing else is said.");
	section("EXAMPLES");
	put_text("  rationctl add requests/acme/web\n"
		 "  rationctl add traffic/eth0 64Ki\n"
		 "  du -k --max-depth=1 /var | awk '{print \"disk_kib\" $2, $1}' | rationctl add -\n"
		 "  rationctl tree --depth 2 --sort total\n"
		 "  rationctl quota set jobs --max 64 --high 48\n"
		 "  rationctl run --charge jobs/acme:4 --wait=10m -- make -j4\n"
		 "  rationctl charge requests/acme/web 5 || echo 'no more of it'\n"
		 "  rationctl --json get requests/acme | jq '.values[0].total'\n"
		 "  rationctl export >counts.json && rationctl import --dry-run counts.json",
		 true);
	section("SEE ALSO");
	(void)puts(".BR rationd\\-delivery (7),\n.BR rationd (8),\n.BR libration (3)");
}

int main(void)
{
	put_head();
	section("COMMANDS");
	for (const struct command *command = commands; command->name != NULL; command++) {
		put_command(command);
	}
	put_tail();
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
