#pragma once
/*
 * help: the texts of --help, from the tables of commands and options.
 */
#include "clients/cli/command.h"

void help_all(FILE *out);
void help_command(FILE *out, const struct command *command);

/* The commands whose first word is `word`, one line each. False: there are none. */
bool help_group(struct cli *cli, const char *word);

/*
 * Visit the details of a command: a paragraph with its line breaks as they are in the table, or (verbatim) one example line. The
 * man page uses it too.
 */
void help_visit(const char *details,
		void (*visit)(void *ctx, const char *text, size_t len, bool verbatim), void *ctx);
