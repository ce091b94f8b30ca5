#include "daemon/args.h"

#include "daemon/config-keys.h"

#include <errno.h>
#include <string.h>

/* Options that set a key of [daemon] are in config_keys, marked by `flag`; these are the others. */
const struct args_option args_options[] = {
	{ .name = "config",
	  .value = "FILE",
	  .help = "Read FILE and FILE.d/*.conf in place of " CONFIG_DEFAULT_FILE
		  " and " CONFIG_DEFAULT_FILE ".d/*.conf." },
	{ .name = "ephemeral",
	  .help = "Keep no file: what is counted ends with the daemon. The same as --state none.",
	  .flag = { .name = "state", .value = "none" } },
	{ .name = "recover",
	  .help = "If the state file is damaged or of a newer version, move it aside, say what is lost, and begin a new one. Without this such a file "
		  "is left alone, and the daemon does not start.",
	  .recover = true },
	{ .name = "check-config",
	  .action = ARGS_CHECK_CONFIG,
	  .help = "Check the configuration and exit: with 0 if it is good, with 78 if not." },
	{ .name = "print-config",
	  .action = ARGS_PRINT_CONFIG,
	  .help = "Print the configuration that is in force, with what every key means, and exit." },
	{ .name = "version", .action = ARGS_VERSION, .help = "Print the version and exit." },
	{ .name = "help", .action = ARGS_HELP, .help = "Print this help and exit." },
};

const size_t args_n_options = sizeof(args_options) / sizeof(args_options[0]);

static int usage(const char *option, const char *text)
{
	(void)fprintf(stderr, "rationd: %s: %s; see rationd --help\n", option, text);
	return -EINVAL;
}

/* Does `arg` name this option? *ret_value: what follows its '=', or NULL. */
static bool is_option(const char *arg, const char *name, const char **ret_value)
{
	size_t len = strlen(name);

	if (strncmp(arg, "--", 2) != 0 || strncmp(arg + 2, name, len) != 0 ||
	    (arg[2 + len] != '\0' && arg[2 + len] != '=')) {
		return false;
	}
	*ret_value = arg[2 + len] == '=' ? arg + 2 + len + 1 : NULL;
	return true;
}

/* The value after '=' or in the next argument. */
static int take_value(int argc, char **argv, int *i, const char *called, const char **value)
{
	if (*value != NULL) {
		return 0;
	}
	if (*i + 1 >= argc) {
		(void)fprintf(stderr, "rationd: %s needs a value: %s %s; see rationd --help\n",
			      argv[*i], argv[*i], called);
		return -EINVAL;
	}
	*value = argv[++*i];
	return 0;
}

static int add_flag(struct args *args, const char *arg, const struct config_flag *flag)
{
	if (args->n_flags == ARGS_MAX_FLAGS) {
		return usage(arg, "is one option too many");
	}
	args->flags[args->n_flags++] = *flag;
	return 0;
}

static int take_option(struct args *args, const struct args_option *option, int argc, char **argv,
		       int *i, const char *value)
{
	const char *arg = argv[*i];

	if (option->value != NULL) {
		if (args->config != NULL) {
			return usage(arg, "was given before");
		}
		return take_value(argc, argv, i, option->value, &args->config);
	}
	if (value != NULL) {
		return usage(arg, "takes no value");
	}
	if (option->flag.name != NULL) {
		return add_flag(args, arg, &option->flag);
	}
	if (option->recover) {
		args->recover = true;
		return 0;
	}
	if (args->action != ARGS_RUN && args->action != option->action) {
		return usage(arg, "asks for something else than an option before it");
	}
	args->action = option->action;
	return 0;
}

static int take_flag(struct args *args, const struct config_key *key, int argc, char **argv, int *i,
		     const char *value)
{
	int r = take_value(argc, argv, i, key->flag, &value);

	if (r < 0) {
		return r;
	}
	return add_flag(args, argv[*i], &(struct config_flag){ .name = key->name, .value = value });
}

static int take_arg(struct args *args, int argc, char **argv, int *i)
{
	const char *value;

	for (size_t k = 0; k < args_n_options; k++) {
		if (is_option(argv[*i], args_options[k].name, &value)) {
			if (args_options[k].value != NULL && value != NULL && args->config == NULL) {
				args->config = value;
				return 0;
			}
			return take_option(args, &args_options[k], argc, argv, i, value);
		}
	}
	for (size_t k = 0; k < config_n_keys; k++) {
		if (config_keys[k].flag != NULL &&
		    is_option(argv[*i], config_keys[k].name, &value)) {
			return take_flag(args, &config_keys[k], argc, argv, i, value);
		}
	}
	return usage(argv[*i], argv[*i][0] == '-' ? "unknown option" : "unexpected argument");
}

int args_parse(int argc, char **argv, struct args *ret_args)
{
	struct args args = { .action = ARGS_RUN };

	for (int i = 1; i < argc; i++) {
		int r = take_arg(&args, argc, argv, &i);

		if (r < 0) {
			return r;
		}
	}
	*ret_args = args;
	return 0;
}

/* Words of `text` in lines that begin at `indent`. */
static void print_wrapped(FILE *file, const char *text, int indent)
{
	int column = indent;

	while (*text != '\0') {
		int len = (int)strcspn(text, " ");

		if (column > indent && column + 1 + len > 79) {
			(void)fprintf(file, "\n%*s", indent, "");
			column = indent;
		}
		(void)fprintf(file, "%s%.*s", column > indent ? " " : "", len, text);
		column += len + (column > indent);
		text += len;
		text += *text == ' ';
	}
	(void)fprintf(file, "\n");
}

static void print_option(FILE *file, const char *name, const char *value, const char *help,
			 const char *fallback)
{
	char left[64], all[1024];

	(void)snprintf(left, sizeof(left), "--%s%s%s", name, value != NULL ? " " : "",
		       value != NULL ? value : "");
	(void)snprintf(all, sizeof(all), "%s%s%s%s", help, fallback != NULL ? " Default: " : "",
		       fallback != NULL ? fallback : "", fallback != NULL ? "." : "");
	(void)fprintf(file, "  %-18s ", left);
	print_wrapped(file, all, 21);
}

void args_help(FILE *file)
{
	char text[CONFIG_MAX_VALUE_TEXT];

	(void)fprintf(
		file,
		"rationd counts what programs report over sockets, and rations it.\n\nusage: rationd [OPTION]...\n\n");
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (key->flag != NULL) {
			print_option(file, key->name, key->flag, key->help,
				     config_default_format(key, text));
		}
	}
	for (size_t i = 0; i < args_n_options; i++) {
		print_option(file, args_options[i].name, args_options[i].value,
			     args_options[i].help, NULL);
	}
	(void)fprintf(
		file,
		"\nTo try it as anybody:\n\n  rationd --listen unix:/tmp/rationd.sock --state /tmp/rationd.db\n\n"
		"See rationd(8), rationd.conf(5), rationd-delivery(7), rationd-statsd(7) and\nrationd-http(7).\n");
}
