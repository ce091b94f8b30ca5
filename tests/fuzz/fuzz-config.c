/*
 * fuzz-config: a configuration file. What is taken can be printed, and what was printed is taken and prints the same; what is not
 * taken has at least one error, and no error is empty.
 */
#include "daemon/config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good) {
		abort();
	}
}

static void take_error(void *ctx, const char *text)
{
	size_t *n = ctx;

	check(strlen(text) > 4);
	(*n)++;
}

static struct config *load(const char *text, size_t len)
{
	size_t n = 0;
	struct config_report report = { .error = take_error, .ctx = &n };
	struct config *config = NULL;
	int r = config_load_text("f", text, len, &report, &config);

	check(n == report.n_errors);
	check(r == (n > 0 ? CONFIG_E_INVALID : 0));
	check((config == NULL) == (n > 0));
	return config;
}

static char *print(const struct config *config, size_t *ret_len)
{
	char *text = NULL;
	FILE *file = open_memstream(&text, ret_len);

	check(file != NULL && config_print(config, file) == 0);
	check(fclose(file) == 0);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *config = load((const char *)data, size), *again;
	size_t len, len_again;
	char *text, *text_again;

	if (config == NULL) {
		return 0;
	}
	text = print(config, &len);
	again = load(text, len);
	check(again != NULL);
	text_again = print(again, &len_again);
	check(len == len_again && memcmp(text, text_again, len) == 0);
	free(text);
	free(text_again);
	(void)config_free(config);
	(void)config_free(again);
	return 0;
}
