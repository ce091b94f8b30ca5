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

/* Does its value stand in the next word? */
static bool takes_word(const struct option_spec *spec)
{
	return spec->type != OPTION_FLAG && !spec->optional;
}

/* The options that take a value, as a pattern of case. */
static void put_pattern(void)
{
	const char *bar = "";

	for (int id = 0; id < _OPT_COUNT; id++) {
		if (takes_word(&option_specs[id])) {
			(void)printf("%s--%s", bar, option_specs[id].name);
			bar = " | ";
		}
	}
}

/* Branches of a case: the values of the option before the cursor. */
static void put_values(void)
{
	for (int id = 0; id < _OPT_COUNT; id++) {
		const struct option_spec *spec = &option_specs[id];

		if (spec->choices == NULL) {
			continue;
		}
		(void)printf("\t--%s)\n\t\t_rationctl_offer \"", spec->name);
		for (size_t i = 0; spec->choices[i] != NULL; i++) {
			(void)printf("%s%s", i > 0 ? " " : "", spec->choices[i]);
		}
		(void)printf("\"\n\t\treturn\n\t\t;;\n");
	}
	/* Any other value is the user's. */
	for (int id = 0; id < _OPT_COUNT; id++) {
		const struct option_spec *spec = &option_specs[id];

		if (takes_word(spec) && spec->choices == NULL && id != OPT_SOCKET) {
			(void)printf("\t--%s)\n\t\treturn\n\t\t;;\n", spec->name);
		}
	}
}

/* Words that a command of two words may begin with, each with a blank around. */
static void put_groups(void)
{
	const char *last = "";

	for (const struct command *command = commands; command->name != NULL; command++) {
		size_t len = strcspn(command->name, " ");

		if (command->name[len] != '\0' && strncmp(last, command->name, len + 1) != 0) {
			(void)printf(" %.*s ", (int)len, command->name);
			last = command->name;
		}
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

/* bash takes "unix:/run" apart into "unix" ":" "/run", and "--sort=name" into "--sort" "=" "name". */
static const char head[] =
	"# bash completion for rationctl; generated from the tables of clients/cli.\n"
	"\n"
	"_rationctl_offer() {\n"
	"\tmapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$current\")\n"
	"}\n"
	"\n"
	"_rationctl() {\n"
	"\tlocal current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
	"\tlocal command=\"\" options=\"\" words=\"\" i word\n"
	"\n"
	"\tCOMPREPLY=()\n"
	"\tif [[ $current == [=:] ]]; then\n"
	"\t\tbefore+=$current current=\"\"\n"
	"\telif [[ $before == [=:] ]]; then\n"
	"\t\tbefore=${COMP_WORDS[COMP_CWORD - 2]}$before\n"
	"\tfi\n"
	"\tcase \"${before%=}\" in\n"
	"\tunix:)\n"
	"\t\tcompopt -o filenames 2>/dev/null\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
	"\t\treturn\n"
	"\t\t;;\n"
	"\t--socket)\n"
	"\t\tcompopt -o nospace 2>/dev/null\n"
	"\t\t_rationctl_offer \"unix: tcp:\"\n"
	"\t\treturn\n"
	"\t\t;;\n";

static const char tail[] = "\tesac\n"
			   "\n"
			   "\tif [[ $current == -* ]]; then\n"
			   "\t\t_rationctl_offer \"$options\"\n"
			   "\telse\n"
			   "\t\t_rationctl_offer \"$words\"\n"
			   "\tfi\n"
			   "}\n"
			   "\n"
			   "complete -F _rationctl rationctl\n";

/* Finds the command: the first word, or two, that is neither an option nor a part of an option's value. */
static void put_search(void)
{
	(void)printf("\tesac\n\n"
		     "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		     "\t\tword=${COMP_WORDS[i]}\n"
		     "\t\tcase \"$word\" in\n\t\t");
	put_pattern();
	(void)printf(")\n"
		     "\t\t\t[[ ${COMP_WORDS[i + 1]} == = ]] && i=$((i + 1))\n"
		     "\t\t\ti=$((i + 1))\n"
		     "\t\t\twhile [[ ${COMP_WORDS[i + 1]} == : ]]; do i=$((i + 2)); done\n"
		     "\t\t\t;;\n"
		     "\t\t-*) ;;\n"
		     "\t\t*)\n"
		     "\t\t\tcommand=${command:+$command }$word\n"
		     "\t\t\t[[ \"");
	put_groups();
	(void)printf("\" == *\" $command \"* ]] || break\n"
		     "\t\t\t;;\n"
		     "\t\tesac\n"
		     "\tdone\n\n");
}

int main(void)
{
	(void)fputs(head, stdout);
	put_values();
	put_search();
	(void)printf("\tcase \"$command\" in\n\t\"\")\n\t\twords=\"");
	put_words(NULL);
	(void)printf("\"\n\t\toptions=\"");
	put_option_names(OPTIONS_GLOBAL | OPTION(OPT_VERSION));
	(void)printf("\"\n\t\t;;\n");
	put_commands();
	(void)fputs(tail, stdout);
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
