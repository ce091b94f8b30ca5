#include "clients/cli/help.h"

#include <string.h>

#define WIDTH 80
#define OPTION_COLUMN 25

/* Words of `text` in lines of at most WIDTH columns, each after `indent` blanks; `column`: where the first one begins. */
static void print_wrapped(FILE *out, const char *text, size_t len, int column, int indent)
{
	const char *end = text + len;
	bool first = true;

	while (text < end) {
		size_t word = 0;

		while (text + word < end && text[word] != ' ') {
			word++;
		}
		if (!first && column + 1 + (int)word > WIDTH) {
			(void)fprintf(out, "\n%*s", indent, "");
			column = indent;
		} else if (!first) {
			(void)fputc(' ', out);
			column++;
		}
		(void)fwrite(text, 1, word, out);
		column += (int)word;
		text += word + (text + word < end);
		first = false;
	}
	(void)fputc('\n', out);
}

void help_visit(const char *details,
		void (*visit)(void *ctx, const char *text, size_t len, bool verbatim), void *ctx)
{
	while (*details != '\0') {
		size_t len = strcspn(details, "\n");

		if (len > 0) {
			visit(ctx, details, len, details[0] == ' ');
		}
		details += len + (details[len] == '\n');
	}
}

struct paragraphs {
	FILE *out;
	bool verbatim; /* the last one was */
};

static void print_paragraph(void *ctx, const char *text, size_t len, bool verbatim)
{
	struct paragraphs *paragraphs = ctx;

	if (!(verbatim && paragraphs->verbatim)) {
		(void)fputc('\n', paragraphs->out);
	}
	paragraphs->verbatim = verbatim;
	if (verbatim) {
		(void)fprintf(paragraphs->out, "%.*s\n", (int)len, text);
	} else {
		print_wrapped(paragraphs->out, text, len, 0, 0);
	}
}

/* What stands to the left of OPTION_COLUMN, or on a line of its own. */
static void print_head(FILE *out, const char *head)
{
	if (strlen(head) < OPTION_COLUMN) {
		(void)fprintf(out, "%-*s", OPTION_COLUMN, head);
	} else {
		(void)fprintf(out, "%s\n%*s", head, OPTION_COLUMN, "");
	}
}

static void print_options(FILE *out, uint64_t options)
{
	for (int id = 0; id < _OPT_COUNT; id++) {
		const struct option_spec *spec = &option_specs[id];
		char value[OPTION_VALUE_BYTES];
		char head[128];

		if (!(options & OPTION(id))) {
			continue;
		}
		(void)snprintf(head, sizeof(head), "  --%s%s", spec->name,
			       option_value_text(spec, value));
		print_head(out, head);
		print_wrapped(out, spec->help, strlen(spec->help), OPTION_COLUMN, OPTION_COLUMN);
	}
}

static void print_command(FILE *out, const struct command *command)
{
	char head[128];

	(void)snprintf(head, sizeof(head), "  %s %s", command->name, command->args);
	print_head(out, head);
	print_wrapped(out, command->summary, strlen(command->summary), OPTION_COLUMN,
		      OPTION_COLUMN);
}

void help_all(FILE *out)
{
	(void)fputs("rationctl counts, rations and reads through rationd.\n\n"
		    "usage: rationctl [--socket URL] [--json] [--timeout D] COMMAND ...\n\n"
		    "commands:\n",
		    out);
	for (const struct command *command = commands; command->name != NULL; command++) {
		print_command(out, command);
	}
	(void)fputs("\noptions:\n", out);
	print_options(out, OPTIONS_GLOBAL | OPTION(OPT_VERSION));
	(void)fputs(
		"\nA PATH is like requests/acme/web; N is a whole number, which may end in k M G T\n"
		"or Ki Mi Gi Ti. Exit status:\n",
		out);
	for (int status = 0; status < _CLI_STATUS_COUNT; status++) {
		(void)fprintf(out, "  %d  %s\n", status, cli_statuses[status].meaning);
	}
	(void)fputs("\n'rationctl COMMAND --help' says more; so does man rationctl.\n", out);
}

void help_command(FILE *out, const struct command *command)
{
	struct paragraphs paragraphs = { out, false };
	const char *space = command->args[0] != '\0' ? " " : "";

	(void)fprintf(out, "rationctl %s: %s\n\nusage: rationctl [options] %s%s%s\n", command->name,
		      command->summary, command->name, space, command->args);
	help_visit(command->details, print_paragraph, &paragraphs);
	(void)fputs("\noptions:\n", out);
	print_options(out, command->options & ~OPTIONS_GLOBAL);
	print_options(out, OPTIONS_GLOBAL);
}

bool help_group(struct cli *cli, const char *word)
{
	size_t len = strlen(word);
	bool found = false;

	for (const struct command *command = commands; command->name != NULL; command++) {
		if (strncmp(command->name, word, len) == 0 && command->name[len] == ' ') {
			if (!found) {
				(void)fprintf(cli->out, "rationctl %s has these commands:\n", word);
			}
			found = true;
			print_command(cli->out, command);
		}
	}
	return found;
}
