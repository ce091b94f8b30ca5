#include "daemon/config.h"

#include "daemon/config-keys.h"
#include "lib/engine/quota.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* All errors, one a line. */
struct errors {
	char text[16384];
	size_t len;
};

static void take_error(void *ctx, const char *text)
{
	struct errors *errors = ctx;
	size_t left = sizeof(errors->text) - errors->len;
	int len = snprintf(errors->text + errors->len, left, "%s\n", text);

	assert_in_range(len, 1, left - 1);
	errors->len += (size_t)len;
}

static struct config *load_text(const char *text, struct errors *errors)
{
	struct config_report report = { .error = take_error, .ctx = errors };
	struct config *config = NULL;
	int r = config_load_text("f", text, strlen(text), &report, &config);

	assert_int_equal(r, report.n_errors > 0 ? CONFIG_E_INVALID : 0);
	assert_int_equal(config == NULL, report.n_errors > 0);
	return config;
}

static void expect_errors(const char *text, const char *expected)
{
	struct errors errors = { .len = 0 };

	assert_null(load_text(text, &errors));
	assert_string_equal(errors.text, expected);
}

static struct config *expect_good(const char *text)
{
	struct errors errors = { .len = 0 };
	struct config *config = load_text(text, &errors);

	assert_string_equal(errors.text, "");
	assert_non_null(config);
	return config;
}

/* Defaults are within their bounds, help is in sentences, names are unique, print and parse agree. */
static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];
		char text[CONFIG_MAX_VALUE_TEXT], error[CONFIG_MAX_ERROR_TEXT];
		int64_t value;

		assert_ptr_equal(config_key_find(key->section, key->name), key);
		assert_int_equal(key->help[strlen(key->help) - 1], '.');
		if (!config_type_is_number(key->type) || key->type == CONFIG_RATE) {
			continue;
		}
		assert_true(config_value_parse(key, config_value_format(key, key->fallback, text),
					       &value, error));
		assert_int_equal(value, key->fallback);
		if (!config_type_has_range(key->type)) {
			continue;
		}
		assert_true(config_value_parse(key, config_value_format(key, key->min, text),
					       &value, error));
		assert_int_equal(value, key->min);
		assert_true(config_value_parse(key, config_value_format(key, key->max, text),
					       &value, error));
		assert_int_equal(value, key->max);
		/* One beyond is refused, with what is allowed. */
		assert_false(config_value_parse(key, config_value_format(key, key->max + 1, text),
						&value, error));
		assert_non_null(strstr(error, "allowed is"));
		if (key->min > 1) {
			assert_false(config_value_parse(
				key, config_value_format(key, key->min - 1, text), &value, error));
		}
	}
}

static void test_defaults(void **state)
{
	struct config *config = expect_good("");

	(void)state;
	assert_int_equal(config->n_listen, 0);
	assert_int_equal(config->workers, 0);
	assert_int_equal(config->max_counters, 1000000);
	assert_int_equal(config->flush_interval_ns, 1000000000);
	assert_int_equal(config->max_connections, 4096);
	assert_int_equal(config->max_sessions, 10000);
	assert_int_equal(config->settings.max_output, 4 << 20);
	assert_int_equal(config->settings.max_items, 65536);
	assert_int_equal(config->socket_mode, 0666);
	assert_int_equal(config->n_metrics, 0);
	(void)config_free(config);
}

static void test_values(void **state)
{
	struct config *config = expect_good(
		"# comment\n; comment\n\n[daemon] # comment\n  workers=4\nbatch = 64 ; comment\n"
		"listen = unix:/a\nlisten = tcp:[::1]:2\nmax_output = 8Mi\nflush_interval = 250ms\n"
		"max_counters = 2M\nsocket_mode = 0600\r\n[metric x y]\nkind = gauge\nexpire_after = 7d\n"
		"[metric \xc3\xa4]\nmax_counters = 10k\noverflow = yes\n[metric empty]");
	const struct config_metric *metric;

	(void)state;
	assert_int_equal(config->workers, 4);
	assert_int_equal(config->batch, 64);
	assert_int_equal(config->n_listen, 2);
	assert_string_equal(config->listen[0].host, "/a");
	assert_string_equal(config->listen[1].host, "::1");
	assert_int_equal(config->settings.max_output, 8 << 20);
	assert_int_equal(config->flush_interval_ns, 250000000);
	assert_int_equal(config->max_counters, 2000000);
	assert_int_equal(config->socket_mode, 0600);
	assert_int_equal(config->n_metrics, 3);
	metric = config_metric_find(config, "x y");
	assert_int_equal(metric->kind, ENGINE_GAUGE);
	assert_int_equal(metric->expire_after_ns, INT64_C(7) * 86400 * 1000000000);
	metric = config_metric_find(config, "\xc3\xa4");
	assert_int_equal(metric->max_counters, 10000);
	assert_true(metric->overflow);
	assert_non_null(config_metric_find(config, "empty"));
	assert_null(config_metric_find(config, "none"));
	(void)config_free(config);
}

static void test_state(void **state)
{
	struct config *config = expect_good("");
	struct config *other = expect_good("[daemon]\nstate = none\ncheckpoint_interval = 1s\n");
	char path[CONFIG_MAX_PATH + 2], error[CONFIG_MAX_ERROR_TEXT];
	const struct config_key *key = config_key_find(CONFIG_DAEMON, "state");

	(void)state;
	assert_string_equal(config->state, CONFIG_DEFAULT_STATE);
	assert_int_equal(config->checkpoint_interval_ns, 200000000);
	assert_string_equal(other->state, "");
	assert_int_equal(other->checkpoint_interval_ns, 1000000000);
	(void)config_free(other);
	other = expect_good("[daemon]\nstate = x y.db\n");
	assert_string_equal(other->state, "x y.db");
	(void)config_free(other);
	(void)config_free(config);
	memset(path, 'x', sizeof(path));
	path[CONFIG_MAX_PATH] = '\0';
	assert_false(config_path_parse(key, path, path, error));
	assert_string_equal(error, "is longer than 189 bytes");
	path[CONFIG_MAX_PATH - 1] = '\0';
	assert_true(config_path_parse(key, path, path, error));
	expect_errors("[daemon]\nstate =\n",
		      "f:2: state has no value; expected the path of a file or none\n");
	expect_errors(
		"[daemon]\nstate = /a ;b\n",
		"f:2: state = /a: is followed by ';b', which would be a comment and no part of it; put comments on "
		"lines of their own, and have no blank before a semicolon in a path\n");
}

/* Kept as its number and 1, for 0 is none; and printed as a number, which is a value too. */
static void test_group(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} cases[] = {
		{ "none", 0 },
		{ "root", 1 },
		{ "0", 1 },
		{ "4711", 4712 },
		{ "4294967294", 4294967295 },
	};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config *config;

		(void)snprintf(text, sizeof(text), "[daemon]\nadmin_group = %s\n", cases[i].text);
		config = expect_good(text);
		assert_int_equal(config->settings.admin_group, cases[i].value);
		(void)config_free(config);
	}
	/* The number that stands for no group at all. */
	expect_errors(
		"[daemon]\nadmin_group = 4294967295\n",
		"f:2: admin_group = 4294967295: is not the name or number of a group that exists or none\n");
	expect_errors(
		"[daemon]\nadmin_group = no such\n",
		"f:2: admin_group = no such: is not the name or number of a group that exists or none\n");
}

static void test_lines_that_are_wrong(void **state)
{
	(void)state;
	expect_errors("workers = 1\n",
		      "f:1: workers = 1 stands before any section; begin with [daemon]\n");
	expect_errors(
		"[daemon\n",
		"f:1: '[daemon' has no ']'; expected [daemon], [metric NAME] or [quota PATH]\n");
	expect_errors(
		"[daemons]\nworkers = x\n",
		"f:1: unknown section [daemons]; expected [daemon], [metric NAME] or [quota PATH]\n");
	expect_errors("[daemon] workers\n",
		      "f:1: 'workers' after [daemon]; expected nothing more on this line\n");
	expect_errors(
		"[daemon]\nworkers\n",
		"f:2: 'workers' is no setting; expected KEY = VALUE, [SECTION] or # COMMENT\n");
	expect_errors("[daemon]\n[metric a]\n[daemon]\nworkers = x",
		      "f:3: [daemon] was there before in this file; put all its keys into one\n");
	expect_errors("[metric a]\n[metric a]\n",
		      "f:2: [metric a] was there before in this file; put all its keys into one\n");
	expect_errors(
		"[metric a/b]\n",
		"f:1: [metric a/b]: the name of a metric is one segment of a path: it has no '/'\n");
	expect_errors(
		"[metric ]\n",
		"f:1: [metric ]: the name of a metric is one segment of a path: the path is empty; "
		"it needs at least one segment, the metric\n");
	expect_errors("[daemon]\n= 5\n",
		      "f:2: unknown key '' in [daemon]; see rationd.conf(5) for those there are\n");
}

static void test_keys_that_are_wrong(void **state)
{
	(void)state;
	expect_errors(
		"[daemon]\nmax_conections = 3\n",
		"f:2: unknown key 'max_conections' in [daemon]; did you mean 'max_connections'?\n");
	expect_errors(
		"[daemon]\ncolour = red\n",
		"f:2: unknown key 'colour' in [daemon]; see rationd.conf(5) for those there are\n");
	expect_errors(
		"[metric a]\nworkers = 3\n",
		"f:2: unknown key 'workers' in [metric]; see rationd.conf(5) for those there are\n");
	expect_errors("[daemon]\nworkers = 3\nworkers = 3\n",
		      "f:3: workers = 3: workers was set before in this file; set it once\n");
	expect_errors(
		"[metric a]\noverflow = yes\n",
		"configuration: [metric a]: overflow = yes has no effect without max_counters; set both\n");
}

static void test_values_that_are_wrong(void **state)
{
	(void)state;
	expect_errors("[daemon]\nworkers = 65\n",
		      "f:2: workers = 65: is out of range; allowed is 1 to 64, or auto\n");
	expect_errors("[daemon]\nworkers = 0\n",
		      "f:2: workers = 0: is out of range; allowed is 1 to 64, or auto\n");
	expect_errors("[daemon]\nworkers = two\n",
		      "f:2: workers = two: is not a whole number or auto\n");
	expect_errors("[daemon]\nworkers = -1\n",
		      "f:2: workers = -1: is not a whole number or auto\n");
	expect_errors("[daemon]\nworkers =\n",
		      "f:2: workers has no value; expected a whole number or auto\n");
	expect_errors("[daemon]\nmax_items = 99999999999999999999\n",
		      "f:2: max_items = 99999999999999999999: is not a whole number\n");
	expect_errors("[daemon]\nmax_items = 9223372036854775807k\n",
		      "f:2: max_items = 9223372036854775807k: is not a whole number\n");
	expect_errors("[daemon]\nmax_items = 1.5\n",
		      "f:2: max_items = 1.5: is not a whole number\n");
	expect_errors("[daemon]\nmax_output = 2Mi\n",
		      "f:2: max_output = 2Mi: is out of range; allowed is 2097168 to 1Gi\n");
	expect_errors(
		"[daemon]\nmax_output = 4MB\n",
		"f:2: max_output = 4MB: is not a number of bytes (such as 65536, 64Ki or 4Mi)\n");
	expect_errors(
		"[daemon]\nflush_interval = 5\n",
		"f:2: flush_interval = 5: is not a duration (a whole number and ns, us, ms, s, m, h or d, such as 250ms)\n");
	expect_errors("[daemon]\nflush_interval = 9ms\n",
		      "f:2: flush_interval = 9ms: is out of range; allowed is 10ms to 1h\n");
	expect_errors("[daemon]\nsocket_mode = 0800\n",
		      "f:2: socket_mode = 0800: is not an octal mode (such as 0660)\n");
	expect_errors("[daemon]\nsocket_mode = 1777\n",
		      "f:2: socket_mode = 1777: is out of range; allowed is 0000 to 0777\n");
	expect_errors("[metric a]\nkind = meter\n", "f:2: kind = meter: is not counter or gauge\n");
	expect_errors("[metric a]\nmax_counters = 5\noverflow = maybe\n",
		      "f:3: overflow = maybe: is not yes or no\n");
	expect_errors(
		"[metric a]\nexpire_after = 1ms\n",
		"f:2: expire_after = 1ms: is out of range; allowed is 1s to 3660d, or never\n");
	expect_errors(
		"[daemon]\nlisten = /x\n",
		"f:2: listen = /x: is not an address to listen on; expected unix:PATH, tcp:HOST:PORT, statsd+udp:HOST:PORT, "
		"statsd+tcp:HOST:PORT, statsd+unix:PATH or http:HOST:PORT\n");
	expect_errors("[daemon]\nlisten = unix:/x\nlisten = unix:/x\n",
		      "f:3: listen = unix:/x: is there already; give each address once\n");
}

static void test_help(void **state)
{
	struct config *config =
		expect_good("[metric requests]\nhelp = What came in: \"all\" of it.\nunit = bytes\n"
			    "[metric plain]\nhelp = none\n");
	const struct config_metric *metric = config_metric_find(config, "requests");

	(void)state;
	assert_string_equal(metric->help, "What came in: \"all\" of it.");
	assert_string_equal(metric->unit, "bytes");
	metric = config_metric_find(config, "plain");
	assert_string_equal(metric->help, "");
	assert_string_equal(metric->unit, "");
	(void)config_free(config);
	expect_errors(
		"[metric m]\nunit = per cent\nhelp = a\tb\n",
		"f:2: unit = per cent: is not a unit; expected letters and digits, such as bytes or seconds, but not total, created or info\n"
		"f:3: help = a\tb: is no UTF-8 text without control characters\n");
	expect_errors(
		"[metric m]\nhelp =\nunit = total\n",
		"f:2: help has no value; expected a text or none\n"
		"f:3: unit = total: is not a unit; expected letters and digits, such as bytes or seconds, but not total, created or info\n");
}

static void test_levels(void **state)
{
#define LEVELS_TEXT(value)                                                                \
	"f:2: levels = " value                                                            \
	": is not a list of names; expected up to 15 different ones without : | # or =, " \
	"with commas between them, such as host, route\n"
	static const char most[] = "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o";
	struct config *config =
		expect_good("[metric x]\nlevels =  host ,route,the\tthird  \n[metric y]\n");

	(void)state;
	assert_string_equal(config_metric_find(config, "x")->levels, "host,route,the,third");
	assert_string_equal(config_metric_find(config, "y")->levels, "");
	(void)config_free(config);
	config = expect_good("[metric x]\nlevels = a,b,c,d,e,f,g,h,i,j,k,l,m,n,o\n");
	assert_string_equal(config_metric_find(config, "x")->levels, most);
	(void)config_free(config);
	expect_errors("[metric x]\nlevels = a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p\n",
		      LEVELS_TEXT("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p"));
	expect_errors("[metric x]\nlevels = a,,b\n", LEVELS_TEXT("a,,b"));
	expect_errors("[metric x]\nlevels = a,b,\n", LEVELS_TEXT("a,b,"));
	expect_errors("[metric x]\nlevels = a,b, a\n", LEVELS_TEXT("a,b, a"));
	expect_errors("[metric x]\nlevels = a:b\n", LEVELS_TEXT("a:b"));
}

/* Not only the first. */
static void test_all_errors_are_told(void **state)
{
	(void)state;
	expect_errors(
		"[daemon]\nworkers = x\nfoo\n[nope]\nbar = 1\n[metric a]\nkind = x\n",
		"f:2: workers = x: is not a whole number or auto\n"
		"f:3: 'foo' is no setting; expected KEY = VALUE, [SECTION] or # COMMENT\n"
		"f:4: unknown section [nope]; expected [daemon], [metric NAME] or [quota PATH]\n"
		"f:7: kind = x: is not counter or gauge\n");
}

static void test_long_lines_and_zero_bytes(void **state)
{
	char text[1024], expected[1024];
	struct config_report report = { 0 };
	struct config *config = NULL;
	char name[160];

	(void)state;
	/* Where a comment on the same line would cut a path, it is not taken for one. */
	expect_errors(
		"[daemon]\nlisten = unix:/run/a ;b.sock\nlisten = tcp:*:1 ; for all\nlisten = unix:/a;b\n",
		"f:2: listen = unix:/run/a: is followed by ';b.sock', which would be a comment and no part of it; put comments on "
		"lines of their own, and have no blank before a semicolon in a path\n"
		"f:3: listen = tcp:*:1: is followed by '; for all', which would be a comment and no part of it; put comments on "
		"lines of their own, and have no blank before a semicolon in a path\n");
	/* Nothing at all. */
	expect_errors(
		"[daemon]\nworkers =\nbatch = ; auto\nlisten=\nfoo =\n[metric a]\nkind = \n[quota a]\nmax =\nrate =\n",
		"f:2: workers has no value; expected a whole number or auto\n"
		"f:3: batch has no value; expected a whole number or auto\n"
		"f:4: listen has no value; expected an address such as unix:PATH or tcp:HOST:PORT\n"
		"f:5: unknown key 'foo' in [daemon]; see rationd.conf(5) for those there are\n"
		"f:7: kind has no value; expected counter or gauge\n"
		"f:9: max has no value; expected a number (such as 250, 100k or 64Mi) or none\n"
		"f:10: rate has no value; expected a rate (a number of at least 1, a slash and a duration of up to 31d, such as "
		"100/1s)\n");
	/* 198 bytes are read, and found wrong for what they say; 199 are not. */
	(void)snprintf(text, sizeof(text), "[daemon]\nlisten = unix:/%0183d\n", 0);
	(void)snprintf(
		expected, sizeof(expected),
		"f:2: listen = unix:/%0183d: is too long; the path of a socket has at most 107 bytes\n",
		0);
	expect_errors(text, expected);
	(void)snprintf(text, sizeof(text), "[daemon]\nlisten = unix:/%0184d\n", 0);
	expect_errors(text, "f:2: the line has 199 bytes; at most 198 are allowed\n");
	(void)snprintf(text, sizeof(text), "[daemon]\nlisten = unix:/%0300d\nworkers = x\n", 0);
	expect_errors(
		text,
		"f:2: the line has 315 bytes; at most 198 are allowed\nf:3: workers = x: is not a whole number or auto\n");
	/* A comment may be as long as it likes, and a metric's name as long as a segment. */
	memset(name, 'm', 128);
	name[128] = '\0';
	(void)snprintf(text, sizeof(text), "# %0500d\n[metric %s]\nkind = gauge\n", 0, name);
	config = expect_good(text);
	assert_non_null(config_metric_find(config, name));
	config = config_free(config);
	assert_int_equal(config_load_text("f", "[daemon]\nwork\0ers = 1\n", 21, &report, &config),
			 CONFIG_E_INVALID);
	assert_int_equal(report.n_errors, 1);
	config = expect_good("\xef\xbb\xbf[daemon]\nworkers = 2");
	assert_int_equal(config->workers, 2);
	(void)config_free(config);
}

/* What is printed is a valid file that says the same. */
static void test_print(void **state)
{
	static const char *const texts[] = {
		"",
		"[daemon]\nlisten = unix:/a\nlisten = tcp:*:1\nworkers = 3\nmax_output = 5000000\nidle_frame = 1500ms\n"
		"state = /var/tmp/x\n[metric b]\nkind = gauge\n[metric a]\nmax_counters = 5\noverflow = yes\nexpire_after = 90s\n"
		"levels = host, route\n",
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct config *config = expect_good(texts[i]), *again;
		char *printed = NULL, *printed_again = NULL;
		size_t len;
		FILE *file = open_memstream(&printed, &len);

		assert_int_equal(config_print(config, file), 0);
		(void)fclose(file);
		again = expect_good(printed);
		file = open_memstream(&printed_again, &len);
		assert_int_equal(config_print(again, file), 0);
		(void)fclose(file);
		assert_string_equal(printed, printed_again);
		assert_int_equal(
			memcmp(&config->settings, &again->settings, sizeof(config->settings)), 0);
		assert_string_equal(config->state, again->state);
		assert_int_equal(config->n_metrics, again->n_metrics);
		assert_memory_equal(config->metrics, again->metrics,
				    config->n_metrics * sizeof(*config->metrics) + 1);
		free(printed);
		free(printed_again);
		(void)config_free(config);
		(void)config_free(again);
	}
}

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "we");
	assert_non_null(file);
	(void)fputs(text, file);
	(void)fclose(file);
}

/* The file, the folder by name, the flags: later wins; a list is replaced as a whole. */
static void test_order(void **state)
{
	const char *dir = *state;
	char file[256], folder[256];
	const struct config_flag flags[] = { { "workers", "9" } },
				 listen[] = { { "listen", "unix:/flag" },
					      { "listen", "unix:/flag2" } };
	struct config_source source = { .file = file };
	struct config_report report = { 0 };
	struct config *config;

	(void)snprintf(file, sizeof(file), "%s/r.conf", dir);
	(void)snprintf(folder, sizeof(folder), "%s/r.conf.d", dir);
	assert_int_equal(mkdir(folder, 0700), 0);
	write_file(
		dir, "r.conf",
		"[daemon]\nworkers = 1\nmax_items = 1\nmax_walks = 1\nlisten = unix:/a\nlisten = unix:/b\n"
		"[metric m]\nkind = gauge\nmax_counters = 1\n");
	write_file(folder, "20-b.conf",
		   "[daemon]\nmax_items = 20\n[metric m]\nmax_counters = 20\n");
	write_file(folder, "10-a.conf",
		   "[daemon]\nmax_items = 10\nmax_walks = 10\nlisten = unix:/c\n[metric n]\n");
	write_file(folder, "30-ignored.txt", "nonsense");
	write_file(folder, ".hidden.conf", "nonsense");
	assert_int_equal(config_load(&source, &report, &config), 0);
	assert_int_equal(config->workers, 1);
	assert_int_equal(config->settings.max_items, 20);
	assert_int_equal(config->settings.max_walks, 10);
	assert_int_equal(config->n_listen, 1);
	assert_string_equal(config->listen[0].host, "/c");
	assert_int_equal(config->n_metrics, 2);
	assert_int_equal(config_metric_find(config, "m")->kind, ENGINE_GAUGE);
	assert_int_equal(config_metric_find(config, "m")->max_counters, 20);
	config = config_free(config);

	source.flags = flags;
	source.n_flags = 1;
	assert_int_equal(config_load(&source, &report, &config), 0);
	assert_int_equal(config->workers, 9);
	config = config_free(config);
	source.flags = listen;
	source.n_flags = 2;
	assert_int_equal(config_load(&source, &report, &config), 0);
	assert_int_equal(config->n_listen, 2);
	assert_string_equal(config->listen[0].host, "/flag");
	(void)config_free(config);
}

static void test_files_that_are_wrong(void **state)
{
	const char *dir = *state;
	char file[256], expected[600];
	struct errors errors = { .len = 0 };
	struct config_source source = { .file = file,
					.flags = &(struct config_flag){ "workers", "x" },
					.n_flags = 1 };
	struct config_report report = { .error = take_error, .ctx = &errors };
	struct config *config = NULL;

	(void)snprintf(file, sizeof(file), "%s/none.conf", dir);
	assert_int_equal(config_load(&source, &report, &config), CONFIG_E_INVALID);
	(void)snprintf(
		expected, sizeof(expected),
		"%s: can't be read: No such file or directory\n--workers: workers = x: is not a whole number or auto\n",
		file);
	assert_string_equal(errors.text, expected);
}

static void take_change(void *ctx, const char *key)
{
	take_error(ctx, key);
}

static void test_fixed_changes(void **state)
{
	struct config *a = expect_good("[daemon]\nworkers = 1\nlisten = unix:/a\nmax_items = 5\n");
	struct config *b =
		expect_good("[daemon]\nworkers = 2\nlisten = unix:/b\nmax_items = 6\nbatch = 5\n");
	struct errors keys = { .len = 0 };

	(void)state;
	assert_int_equal(config_fixed_changes(a, a, take_change, &keys), 0);
	assert_string_equal(keys.text, "");
	assert_int_equal(config_fixed_changes(a, b, take_change, &keys), 3);
	assert_string_equal(keys.text, "listen\nworkers\nbatch\n");
	(void)config_free(a);
	(void)config_free(b);
}

static void test_quotas(void **state)
{
	struct config *config = expect_good(
		"[quota requests]\nmax = 100k\nhigh=64Ki\nlow = 5\nmin = 1\nshadow = yes\n"
		"[quota requests]\nper = 1m\nmax = 10G ; not too many\n[quota requests] # a day\ncalendar = day\nhigh = 0\n"
		"[quota requests/*/x/**]\nrate = 2k/1s\n[quota requests/a b]\nrate = 1k/1s\nburst = 1Mi\n");
	const struct config_quota *quota = config->quotas;
	const struct window day = { .kind = WINDOW_CALENDAR, .unit = WINDOW_DAY };
	const struct window week = { .kind = WINDOW_CALENDAR, .unit = WINDOW_WEEK };
	struct engine_rule *rules = config_rules(config);

	(void)state;
	assert_int_equal(config->n_quotas, 5);
	assert_string_equal(quota[0].pattern, "requests");
	assert_string_equal(quota[0].where, "f:1");
	assert_int_equal(quota[0].window.kind, WINDOW_NONE);
	assert_int_equal(quota[0].limits.max, 100000);
	assert_int_equal(quota[0].limits.high, 65536);
	assert_int_equal(quota[0].limits.low, 5);
	assert_int_equal(quota[0].limits.min, 1);
	assert_true(quota[0].limits.shadow);
	assert_int_equal(quota[1].window.kind, WINDOW_PER);
	assert_int_equal(quota[1].window.duration_ns, INT64_C(60000000000));
	assert_int_equal(quota[1].limits.max, INT64_C(10000000000));
	assert_int_equal(quota[1].limits.high, QUOTA_NONE);
	assert_int_equal(quota[2].limits.max, QUOTA_NONE);
	assert_int_equal(quota[2].limits.high, 0);
	assert_int_equal(quota[3].window.kind, WINDOW_RATE);
	assert_int_equal(quota[3].limits.rate, 2000);
	assert_int_equal(quota[3].limits.per_ns, 1000000000);
	assert_int_equal(quota[3].limits.burst, 2000);
	assert_string_equal(quota[4].pattern, "requests/a b");
	assert_int_equal(quota[4].limits.burst, 1 << 20);
	assert_int_equal(rules[4].tag, 5);
	assert_string_equal(config_quota_where(config, 5), quota[4].where);
	assert_string_equal(config_quota_where(config, 0), "");
	assert_string_equal(config_quota_where(config, 6), "");
	assert_string_equal(config_quota_source(config, "requests/x", 8, &day), "f:10");
	assert_string_equal(config_quota_source(config, "requests", 8, &week), "");
	assert_string_equal(config_quota_source(config, "requests", 7, &day), "");
	free(rules);
	(void)config_free(config);
	/* A path may be longer than another line may be. */
	{
		char text[700], path[512];

		memset(path, 'p', sizeof(path));
		for (size_t i = 100; i < sizeof(path); i += 101) {
			path[i] = '/';
		}
		(void)snprintf(text, sizeof(text), "  [quota %.*s]\nmax = 1\n", (int)sizeof(path),
			       path);
		config = expect_good(text);
		assert_int_equal(strlen(config->quotas[0].pattern), sizeof(path));
		(void)config_free(config);
	}
}

static void test_quotas_that_are_wrong(void **state)
{
	(void)state;
	expect_errors(
		"[quota a]\nmax = -1\nhigh = x\nlow = none\nmin = 5E\nper = 999ms\ncalendar = year\nrate = 5\nburst = 0\n",
		"f:2: max = -1: is not a number (such as 250, 100k or 64Mi) or none\n"
		"f:3: high = x: is not a number (such as 250, 100k or 64Mi) or none\n"
		"f:4: low = none: is out of range; allowed is 0 to 4194304Ti\n"
		"f:5: min = 5E: is not a number (such as 250, 100k or 64Mi) or none\n"
		"f:6: per = 999ms: is out of range; allowed is 1s to 31d, or none\n"
		"f:7: calendar = year: is not day, week, month or none\n"
		"f:8: rate = 5: is not a rate (a number of at least 1, a slash and a duration of up to 31d, such as 100/1s)\n"
		"f:9: burst = 0: is out of range; allowed is 1 to 4194304Ti, or rate\n");
	expect_errors(
		"[quota a]\nmax = 9223372036854775807\n[quota b]\nmax = 4194305Ti\n[quota c]\nmax = 10000000T\n",
		"f:2: max = 9223372036854775807: is not a number (such as 250, 100k or 64Mi) or none\n"
		"f:4: max = 4194305Ti: is out of range; allowed is 0 to 4194304Ti\n"
		"f:6: max = 10000000T: is not a number (such as 250, 100k or 64Mi) or none\n");
	expect_errors(
		"[quota a]\nrate = 0/1s\n[quota b]\nrate = 1/0\n[quota c]\nrate = 1/32d\n[quota d]\nrate = /1s\n",
		"f:2: rate = 0/1s: is not a rate (a number of at least 1, a slash and a duration of up to 31d, such as 100/1s)\n"
		"f:4: rate = 1/0: is not a rate (a number of at least 1, a slash and a duration of up to 31d, such as 100/1s)\n"
		"f:6: rate = 1/32d: is not a rate (a number of at least 1, a slash and a duration of up to 31d, such as 100/1s)\n"
		"f:8: rate = /1s: is not a rate (a number of at least 1, a slash and a duration of up to 31d, such as 100/1s)\n");
	expect_errors(
		"[quota a]\n[quota b]\nburst = 2\nmax = 1\n[quota c]\nper = 1m\nrate = 1/1s\nmax = 1\n[quota d]\nmaximum = 1\n",
		"f:10: unknown key 'maximum' in [quota]; see rationd.conf(5) for those there are\n"
		"f:1: [quota a]: it sets no limit; expected at least one of max, high, low, min and rate\n"
		"f:2: [quota b]: burst goes with rate, which is not set\n"
		"f:5: [quota c]: only one of per, calendar and rate can be set; begin another section for the same path\n");
	expect_errors(
		"[quota a]\nmax = 1\n[quota a]\nper = 60s\nmax = 1\n[quota a]\nper = 1m\nmax = 1\n",
		"f:6: [quota a]: the same path with the same window is at f:3; put all into one section\n");
}

struct told {
	char errors[4096], warnings[4096];
};

static void tell(char *text, const char *more)
{
	size_t len = strlen(text);

	(void)snprintf(text + len, 4096 - len, "%s\n", more);
}

static void tell_error(void *ctx, const char *text)
{
	tell(((struct told *)ctx)->errors, text);
}

static void tell_warning(void *ctx, const char *text)
{
	tell(((struct told *)ctx)->warnings, text);
}

static struct config *load_told(const char *text, struct told *told)
{
	struct config_report report = { .error = tell_error, .warning = tell_warning, .ctx = told };
	struct config *config = NULL;

	memset(told, 0, sizeof(*told));
	(void)config_load_text("f", text, strlen(text), &report, &config);
	return config;
}

/* What only all of them together can be. */
static void test_quotas_together(void **state)
{
	struct told told;
	struct config *config = load_told(
		"[quota a]\nmax = 10\n[quota a/b]\nmax = 20\n[quota a/b]\nper = 1m\nmax = 30\n",
		&told);

	(void)state;
	assert_non_null(config);
	assert_string_equal(told.errors, "");
	assert_non_null(strstr(told.warnings, "f:3: a/b"));
	assert_non_null(strstr(told.warnings, "(f:1)"));
	assert_null(strstr(told.warnings, "f:5"));
	(void)config_free(config);
	assert_null(load_told(
		"[quota a/*/c]\nmax = 1\n[quota b]\nmax = 1\n[quota a/*/*]\nmax = 2\n[quota c]\nmax = 1\nmin = 2\n",
		&told));
	assert_non_null(strstr(told.errors, "a/*/*"));
	assert_non_null(strstr(told.errors, "f:7: "));
	/* One that has a fault of its own does not hide those of others. */
	assert_null(load_told("[quota a]\nmax = x\n[quota **]\nmax = 1\n", &told));
	assert_non_null(strstr(told.errors, "f:2: max = x"));
	assert_non_null(strstr(told.errors, "f:3: "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_quotas),
		cmocka_unit_test(test_quotas_that_are_wrong),
		cmocka_unit_test(test_quotas_together),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_lines_that_are_wrong),
		cmocka_unit_test(test_keys_that_are_wrong),
		cmocka_unit_test(test_values_that_are_wrong),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_all_errors_are_told),
		cmocka_unit_test(test_long_lines_and_zero_bytes),
		cmocka_unit_test(test_print),
		cmocka_unit_test_setup_teardown(test_order, test_dir_setup, test_dir_teardown),
		cmocka_unit_test_setup_teardown(test_files_that_are_wrong, test_dir_setup,
						test_dir_teardown),
		cmocka_unit_test(test_fixed_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
