/*
 * Writes rationctl's bash completion to standard output, from the tables that --help is made of.
 */
#include "clients/cli/command.h"

#include <string.h>

static void put_option_names(uint64_t options)
{
	const char *space = "";

	for (int id = 0; id < _OPT_COUNT; id++) {
		if (options & OPTION(id)) {
			(void)printf("%s--%s", space, option_specs[id].name);
			space = " ";
		}
	}
}

/* Words that may follow `first`, or come first (NULL); a word that begins several commands once. */
static void put_words(const char *first)
{
	char last[32] = "";
	size_t len = first != NULL ? strlen(first) : 0;

	for (const struct command *command = commands; command->name != NULL; command++) {
		const char *word = command->name;
		size_t n = 0;

		if (first != NULL && (strncmp(word, first, len) != 0 || word[len] != ' ')) {
			continue;
		}
		word += first != NULL ? len + 1 : 0;
		n = strcspn(word, " ");
		if (n < sizeof(last) && (strncmp(last, word, n) != 0 || last[n] != '\0')) {
			(void)printf("%s%.*s", last[0] != '\0' ? " " : "", (int)n, word);
			memcpy(last, word, n);
			last[n] = '\0';
		}
	}
}

/* case branches: the values of the option before the cursor */
static void put_values(void)
{
	for (int id = 0; id < _OPT_COUNT; id++) {
		const struct option_spec *spec = &option_specs[id];

		if (spec->type == OPTION_FLAG) {
			continue;
		}
		(void)printf("\t--%s)\n\t\t_rationctl_offer \"", spec->name);
		for (size_t i = 0; spec->choices != NULL && spec->choices[i] != NULL; i++) {
			(void)printf("%s%s", i > 0 ? " " : "", spec->choices[i]);
		}
		(void)printf("%s\"\n\t\treturn\n\t\t;;\n", id == OPT_SOCKET ? "unix: tcp:" : "");
	}
}

static void put_commands(void)
{
	const char *group = "";
	size_t len = 0;

	for (const struct command *command = commands; command->name != NULL; command++) {
		if (strchr(command->name, ' ') != NULL &&
		    (len == 0 || strncmp(command->name, group, len + 1) != 0)) {
			char first[32];

			group = command->name;
			len = strcspn(group, " ");
			(void)snprintf(first, sizeof(first), "%.*s", (int)len, group);
			(void)printf("\t%s)\n\t\twords=\"", first);
			put_words(first);
			(void)printf("\"\n\t\t;;\n");
		}
		(void)printf("\t\"%s\")\n\t\toptions=\"", command->name);
		put_option_names(command->options | OPTIONS_GLOBAL);
		(void)printf("\"\n\t\t;;\n");
	}
}

int main(void)
{
	(void)fputs(
		"# bash completion for rationctl; generated from the tables of clients/cli.\n"
		"\n"
		"_rationctl_offer() {\n"
		"\tmapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"${COMP_WORDS[COMP_CWORD]}\")\n"
		"}\n"
		"\n"
		"_rationctl() {\n"
		"\tlocal command=\"\" options words=\"\" i word\n"
		"\n"
		"\tCOMPREPLY=()\n"
		"\tcase \"${COMP_WORDS[COMP_CWORD - 1]}\" in\n",
		stdout);
	put_values();
	(void)fputs(
		"\tesac\n"
		"\n"
		"\t# The command is the first word, or two, that is neither an option nor an option's value.\n"
		"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		"\t\tword=${COMP_WORDS[i]}\n"
		"\t\tcase \"$word\" in\n"
		"\t\t--json | --help | --version) ;;\n"
		"\t\t--*) ((i++)) ;;\n"
		"\t\t*)\n"
		"\t\t\tcommand=${command:+$command }$word\n"
		"\t\t\t[[ $word == metric && $command == metric ]] || break\n"
		"\t\t\t;;\n"
		"\t\tesac\n"
		"\tdone\n"
		"\n"
		"\tcase \"$command\" in\n"
		"\t\"\")\n"
		"\t\twords=\"",
		stdout);
	put_words(NULL);
	(void)fputs("\"\n\t\toptions=\"", stdout);
	put_option_names(OPTIONS_GLOBAL | OPTION(OPT_VERSION));
	(void)fputs("\"\n\t\t;;\n", stdout);
	put_commands();
	(void)fputs("\tesac\n"
		    "\n"
		    "\tif [[ ${COMP_WORDS[COMP_CWORD]} == -* ]]; then\n"
		    "\t\t_rationctl_offer \"$options\"\n"
		    "\telse\n"
		    "\t\t_rationctl_offer \"$words\"\n"
		    "\tfi\n"
		    "}\n"
		    "\n"
		    "complete -F _rationctl rationctl\n",
		    stdout);
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
