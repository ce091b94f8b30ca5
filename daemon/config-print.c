#include "daemon/config-keys.h"

#include <errno.h>
#include <string.h>

/* Words of `text` behind "# ", in lines of at most 100 columns. */
static void print_comment(FILE *file, const char *text)
{
	int column = 0;

	while (*text != '\0') {
		int len = (int)strcspn(text, " ");

		if (column > 0 && column + 1 + len > 100) {
			(void)fprintf(file, "\n");
			column = 0;
		}
		column += fprintf(file, "%s%.*s", column > 0 ? " " : "# ", len, text);
		text += len;
		text += *text == ' ';
	}
	(void)fprintf(file, "\n");
}

static void print_listen(FILE *file, const struct config *config)
{
	char text[ADDRESS_MAX_TEXT];

	if (config->n_listen == 0) {
		(void)fprintf(file, "#listen = %s\n", ADDRESS_DEFAULT);
	}
	for (size_t i = 0; i < config->n_listen; i++) {
		(void)fprintf(file, "listen = %s\n", address_format(&config->listen[i], text));
	}
}

static void print_rate(FILE *file, const struct config_key *key, const int64_t *rate)
{
	char text[CONFIG_MAX_VALUE_TEXT];

	if (rate[0] == 0) {
		(void)fprintf(file, "#%s = 100/1s\n", key->name);
	} else {
		(void)fprintf(file, "%s = %s\n", key->name, config_rate_format(rate, text));
	}
}

static void print_path(FILE *file, const struct config_key *key, const char *path)
{
	if (key->fixed) {
		(void)fprintf(file, "# Takes effect at restart.\n");
	}
	(void)fprintf(file, "%s%s = %s\n", strcmp(path, key->fallback_path) == 0 ? "#" : "",
		      key->name, config_path_format(key, path));
}

/* A default is a comment, so that the file keeps to defaults of later versions. */
static void print_keys(FILE *file, enum config_section section, const struct config *config,
		       void *object, bool help)
{
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];
		char text[CONFIG_MAX_VALUE_TEXT], range[CONFIG_MAX_VALUE_TEXT * 3];
		int64_t value;

		if (key->section != section) {
			continue;
		}
		if (help) {
			(void)fprintf(file, "\n");
			print_comment(file, key->help);
		}
		if (key->type == CONFIG_LISTEN) {
			print_listen(file, config);
			continue;
		}
		if (key->type == CONFIG_RATE) {
			print_rate(file, key, config_key_place(key, object));
			continue;
		}
		if (key->type == CONFIG_PATH || key->type == CONFIG_TEXT ||
		    key->type == CONFIG_UNIT) {
			print_path(file, key, config_key_text(key, object));
			continue;
		}
		if (key->type == CONFIG_LEVELS) {
			const char *levels = config_key_text(key, object);

			(void)fprintf(file, levels[0] != '\0' ? "%s = %s\n" : "#%s = host, route\n",
				      key->name, levels);
			continue;
		}
		if (help && config_type_has_range(key->type)) {
			(void)fprintf(file, "# %s%s\n", config_value_range(key, range),
				      key->fixed ? "; takes effect at restart" : "");
		}
		value = *config_key_place(key, object);
		(void)fprintf(file, "%s%s = %s\n", value == key->fallback ? "#" : "", key->name,
			      config_value_format(key, value, text));
	}
}

int config_print(const struct config *config, FILE *file)
{
	struct config_metric example = { .name = "NAME" };
	struct config_quota quota = { .max = QUOTA_NONE, .high = QUOTA_NONE };

	(void)fprintf(
		file,
		"# The configuration of rationd; see rationd.conf(5). Defaults are comments.\n\n[daemon]\n");
	print_keys(file, CONFIG_DAEMON, config, (void *)(uintptr_t)config, /* help= */ true);
	(void)fprintf(
		file,
		"\n# What a metric may do, by its name: the first segment of a path.\n#[metric NAME]\n");
	print_keys(file, CONFIG_METRIC, config, &example, /* help= */ true);
	for (size_t i = 0; i < config->n_metrics; i++) {
		(void)fprintf(file, "\n[metric %s]\n", config->metrics[i].name);
		print_keys(file, CONFIG_METRIC, config, &config->metrics[i], /* help= */ false);
	}
	(void)fprintf(
		file,
		"\n# What a path may use, or every path that fits a template: * stands for one segment, ** at the end for one or\n"
		"# more. A path may have several of these, each with another window: per, calendar, rate or none.\n#[quota PATH]\n");
	print_keys(file, CONFIG_QUOTA, config, &quota, /* help= */ true);
	for (size_t i = 0; i < config->n_quotas; i++) {
		(void)fprintf(file, "\n[quota %s]\n", config->quotas[i].pattern);
		print_keys(file, CONFIG_QUOTA, config, &config->quotas[i], /* help= */ false);
	}
	return fflush(file) == 0 && !ferror(file) ? 0 : -EIO;
}
