#include "daemon/config-keys.h"

#include "lib/base/duration.h"
#include "lib/base/number.h"
#include "lib/engine/engine.h"
#include "lib/names/path.h"
#include "lib/quota/limits.h"

#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *suffix;
	int64_t factor;
} suffixes[] = {
	/* Of those that divide a value, the first is used to print it. */
	{ "Ti", INT64_C(1) << 40 }, { "Gi", INT64_C(1) << 30 },
	{ "Mi", 1 << 20 },	    { "Ki", 1 << 10 },
	{ "T", 1000000000000 },	    { "G", 1000000000 },
	{ "M", 1000000 },	    { "k", 1000 },
};

#define N_SUFFIXES (sizeof(suffixes) / sizeof(suffixes[0]))

const char *config_section_name(enum config_section section)
{
	switch (section) {
	case CONFIG_DAEMON:
		return "daemon";
	case CONFIG_METRIC:
		return "metric";
	case CONFIG_QUOTA:
		return "quota";
	}
	return "";
}

const struct config_key *config_key_find(enum config_section section, const char *name)
{
	for (size_t i = 0; i < config_n_keys; i++) {
		if (config_keys[i].section == section && strcmp(config_keys[i].name, name) == 0) {
			return &config_keys[i];
		}
	}
	return NULL;
}

static bool parse_count(const char *text, int64_t *ret_value)
{
	size_t len = strlen(text);
	int64_t factor = 1, value;

	for (size_t i = 0; i < N_SUFFIXES; i++) {
		size_t suffix = strlen(suffixes[i].suffix);

		if (len > suffix && strcmp(text + len - suffix, suffixes[i].suffix) == 0) {
			factor = suffixes[i].factor;
			len -= suffix;
			break;
		}
	}
	if (number_parse_signed(text, len, 0, INT64_MAX, &value) != NUMBER_OK ||
	    __builtin_mul_overflow(value, factor, &value)) {
		return false;
	}
	*ret_value = value;
	return true;
}

static bool parse_mode(const char *text, int64_t *ret_value)
{
	int64_t value = 0;

	if (text[0] == '\0' || strlen(text) > 4) {
		return false;
	}
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '7') {
			return false;
		}
		value = value * 8 + (*text - '0');
	}
	*ret_value = value;
	return true;
}

static bool parse_word(const char *text, const char *zero, const char *one, int64_t *ret_value)
{
	if (strcmp(text, zero) != 0 && strcmp(text, one) != 0) {
		return false;
	}
	*ret_value = strcmp(text, one) == 0;
	return true;
}

static bool parse_bool(const char *text, int64_t *ret_value)
{
	return parse_word(text, "no", "yes", ret_value) ||
	       parse_word(text, "false", "true", ret_value) ||
	       parse_word(text, "off", "on", ret_value);
}

static const char *const calendar_words[] = { "none", "day", "week", "month" };

static bool parse_calendar(const char *text, int64_t *ret_value)
{
	for (size_t i = 0; i < sizeof(calendar_words) / sizeof(calendar_words[0]); i++) {
		if (strcmp(text, calendar_words[i]) == 0) {
			*ret_value = (int64_t)i;
			return true;
		}
	}
	return false;
}

static bool parse_limit(const char *text, int64_t *ret_value)
{
	if (strcmp(text, "none") == 0) {
		*ret_value = QUOTA_NONE;
		return true;
	}
	/* The number that stands for none can't be written. */
	return parse_count(text, ret_value) && *ret_value != QUOTA_NONE;
}

/* "100/1s" */
static bool parse_rate(const char *text, int64_t *ret_values)
{
	const char *slash = strchr(text, '/');
	char count[CONFIG_MAX_VALUE_TEXT];
	int64_t rate, per_ns;

	if (slash == NULL || (size_t)(slash - text) >= sizeof(count)) {
		return false;
	}
	memcpy(count, text, (size_t)(slash - text));
	count[slash - text] = '\0';
	if (!parse_count(count, &rate) || rate < 1 ||
	    duration_parse(slash + 1, strlen(slash + 1), &per_ns) != DURATION_OK || per_ns < 1 ||
	    per_ns > WINDOW_MAX_NS) {
		return false;
	}
	ret_values[0] = rate;
	ret_values[1] = per_ns;
	return true;
}

static bool parse_group(const char *text, int64_t *ret_value)
{
	struct group group, *found = NULL;
	char buffer[16384];
	int64_t number;

	if (number_parse_signed(text, strlen(text), 0, UINT32_MAX - 1, &number) == NUMBER_OK) {
		*ret_value = number + 1;
		return true;
	}
	if (getgrnam_r(text, &group, buffer, sizeof(buffer), &found) != 0 || found == NULL) {
		return false;
	}
	*ret_value = (int64_t)found->gr_gid + 1;
	return true;
}

static bool parse_typed(const struct config_key *key, const char *text, int64_t *ret_value)
{
	switch (key->type) {
	case CONFIG_COUNT:
	case CONFIG_BYTES:
		return parse_count(text, ret_value);
	case CONFIG_DURATION:
		return duration_parse(text, strlen(text), ret_value) == DURATION_OK;
	case CONFIG_BOOL:
		return parse_bool(text, ret_value);
	case CONFIG_KIND:
		return parse_word(text, "counter", "gauge", ret_value);
	case CONFIG_MODE:
		return parse_mode(text, ret_value);
	case CONFIG_LIMIT:
		return parse_limit(text, ret_value);
	case CONFIG_CALENDAR:
		return parse_calendar(text, ret_value);
	case CONFIG_GROUP:
		return parse_group(text, ret_value);
	case CONFIG_RATE:
		return parse_rate(text, ret_value);
	case CONFIG_LEVELS:
	case CONFIG_LISTEN:
	case CONFIG_PATH:
	case CONFIG_TEXT:
	case CONFIG_UNIT:
		break;
	}
	return false;
}

static const char *type_text(enum config_type type)
{
	switch (type) {
	case CONFIG_COUNT:
		return "a whole number";
	case CONFIG_BYTES:
		return "a number of bytes (such as 65536, 64Ki or 4Mi)";
	case CONFIG_DURATION:
		return "a duration (a whole number and ns, us, ms, s, m, h or d, such as 250ms)";
	case CONFIG_BOOL:
		return "yes or no";
	case CONFIG_KIND:
		return "counter or gauge";
	case CONFIG_MODE:
		return "an octal mode (such as 0660)";
	case CONFIG_LIMIT:
		return "a number (such as 250, 100k or 64Mi) or none";
	case CONFIG_CALENDAR:
		return "day, week, month or none";
	case CONFIG_GROUP:
		return "the name or number of a group that exists";
	case CONFIG_RATE:
		return "a rate (a number of at least 1, a slash and a duration of up to 31d, such as 100/1s)";
	case CONFIG_LEVELS:
		return "a list of names";
	case CONFIG_LISTEN:
		return "an address";
	case CONFIG_PATH:
		return "the path of a file";
	case CONFIG_TEXT:
		return "a text";
	case CONFIG_UNIT:
		return "a unit (letters and digits, such as bytes or seconds)";
	}
	return "a value";
}

/* Is the name of `len` bytes one of those in `levels` already? */
static bool has_level(const char *levels, const char *name, size_t len)
{
	while (*levels != '\0') {
		size_t n = strcspn(levels, ",");

		if (n == len && memcmp(levels, name, n) == 0) {
			return true;
		}
		levels += n + (levels[n] == ',');
	}
	return false;
}

bool config_levels_parse(const char *text, char *levels, char *error)
{
	const char *at = text + strspn(text, " \t");
	size_t len = 0, n = 0;

	levels[0] = '\0';
	do {
		size_t name = strcspn(at, " \t,");

		if (name == 0 || strcspn(at, ":|#=") < name || n == CONFIG_MAX_LEVELS ||
		    len + name + 2 > CONFIG_MAX_LEVELS_TEXT || has_level(levels, at, name)) {
			(void)snprintf(
				error, CONFIG_MAX_ERROR_TEXT,
				"is not a list of names; expected up to %u different ones without : | # or =, with "
				"commas between them, such as host, route",
				CONFIG_MAX_LEVELS);
			return false;
		}
		len += (size_t)snprintf(levels + len, CONFIG_MAX_LEVELS_TEXT - len, "%s%.*s",
					n++ > 0 ? "," : "", (int)name, at);
		at += name + strspn(at + name, " \t");
		if (*at == ',') {
			at += 1 + strspn(at + 1, " \t");
		} else if (*at == '\0') {
			return true;
		}
	} while (true);
}

bool config_value_parse(const struct config_key *key, const char *text, int64_t *ret_value,
			char *error)
{
	char range[CONFIG_MAX_VALUE_TEXT * 3];
	int64_t value[2];

	if (key->zero != NULL && strcmp(text, key->zero) == 0) {
		*ret_value = 0;
		return true;
	}
	if (text[0] == '\0' || !parse_typed(key, text, value)) {
		(void)snprintf(error, CONFIG_MAX_ERROR_TEXT, "%s %s%s%s",
			       text[0] == '\0' ? "has no value; expected" : "is not",
			       type_text(key->type), key->zero != NULL ? " or " : "",
			       key->zero != NULL ? key->zero : "");
		return false;
	}
	if (config_type_has_range(key->type) && (value[0] < key->min || value[0] > key->max) &&
	    !(key->type == CONFIG_LIMIT && value[0] == QUOTA_NONE && key->fallback == QUOTA_NONE)) {
		(void)snprintf(error, CONFIG_MAX_ERROR_TEXT, "is out of range; allowed is %s",
			       config_value_range(key, range));
		return false;
	}
	memcpy(ret_value, value, (key->type == CONFIG_RATE ? 2 : 1) * sizeof(value[0]));
	return true;
}

/* What is wrong with a value of this type; NULL: nothing. */
static const char *check_text(enum config_type type, const char *text)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

	if (type == CONFIG_TEXT && !path_is_text(text, strlen(text))) {
		return "is no UTF-8 text without control characters";
	}
	/* The last three mean something else at the end of a name. */
	if (type == CONFIG_UNIT &&
	    (text[strspn(text, letters)] != '\0' || strcmp(text, "total") == 0 ||
	     strcmp(text, "created") == 0 || strcmp(text, "info") == 0)) {
		return "is not a unit; expected letters and digits, such as bytes or seconds, but not total, created or info";
	}
	return NULL;
}

bool config_path_parse(const struct config_key *key, const char *text, char *path, char *error)
{
	size_t len = strlen(text);
	const char *wrong = check_text(key->type, text);

	if (len == 0) {
		(void)snprintf(error, CONFIG_MAX_ERROR_TEXT, "has no value; expected %s or %s",
			       type_text(key->type), key->zero);
		return false;
	}
	if (wrong != NULL) {
		(void)snprintf(error, CONFIG_MAX_ERROR_TEXT, "%s", wrong);
		return false;
	}
	if (len >= CONFIG_MAX_PATH) {
		(void)snprintf(error, CONFIG_MAX_ERROR_TEXT, "is longer than %u bytes",
			       CONFIG_MAX_PATH - 1);
		return false;
	}
	if (strcmp(text, key->zero) == 0) {
		len = 0;
	}
	memcpy(path, text, len);
	path[len] = '\0';
	return true;
}

const char *config_path_format(const struct config_key *key, const char *path)
{
	return path[0] != '\0' ? path : key->zero;
}

const char *config_default_format(const struct config_key *key, char *text)
{
	if (key->type == CONFIG_LISTEN || key->type == CONFIG_RATE || key->type == CONFIG_LEVELS) {
		return NULL;
	}
	return config_type_is_number(key->type) ? config_value_format(key, key->fallback, text)
						: config_path_format(key, key->fallback_path);
}

static const char *format_count(int64_t value, char *text)
{
	for (size_t i = 0; i < N_SUFFIXES; i++) {
		if (value != 0 && value % suffixes[i].factor == 0) {
			(void)snprintf(text, CONFIG_MAX_VALUE_TEXT, "%" PRIi64 "%s",
				       value / suffixes[i].factor, suffixes[i].suffix);
			return text;
		}
	}
	(void)snprintf(text, CONFIG_MAX_VALUE_TEXT, "%" PRIi64, value);
	return text;
}

const char *config_value_format(const struct config_key *key, int64_t value, char *text)
{
	if (key->zero != NULL && value == 0) {
		(void)snprintf(text, CONFIG_MAX_VALUE_TEXT, "%s", key->zero);
		return text;
	}
	switch (key->type) {
	case CONFIG_COUNT:
		(void)snprintf(text, CONFIG_MAX_VALUE_TEXT, "%" PRIi64, value);
		break;
	case CONFIG_BYTES:
		return format_count(value, text);
	case CONFIG_DURATION:
		return duration_format(value, text);
	case CONFIG_BOOL:
		return value != 0 ? "yes" : "no";
	case CONFIG_KIND:
		return value == ENGINE_GAUGE ? "gauge" : "counter";
	case CONFIG_MODE:
		(void)snprintf(text, CONFIG_MAX_VALUE_TEXT, "%04" PRIo64, (uint64_t)value);
		break;
	case CONFIG_LIMIT:
		if (value != QUOTA_NONE) {
			return format_count(value, text);
		}
		(void)snprintf(text, CONFIG_MAX_VALUE_TEXT, "none");
		break;
	case CONFIG_CALENDAR:
		return calendar_words[value];
	case CONFIG_GROUP:
		(void)snprintf(text, CONFIG_MAX_VALUE_TEXT, "%" PRIi64, value - 1);
		break;
	case CONFIG_LEVELS:
	case CONFIG_LISTEN:
	case CONFIG_RATE:
	case CONFIG_PATH:
	case CONFIG_TEXT:
	case CONFIG_UNIT:
		text[0] = '\0';
		break;
	}
	return text;
}

const char *config_rate_format(const int64_t *rate, char *text)
{
	char count[CONFIG_MAX_VALUE_TEXT], per[DURATION_MAX_TEXT];

	(void)snprintf(text, CONFIG_MAX_VALUE_TEXT, "%s/%s", format_count(rate[0], count),
		       duration_format(rate[1], per));
	return text;
}

const char *config_value_range(const struct config_key *key, char *text)
{
	char min[CONFIG_MAX_VALUE_TEXT], max[CONFIG_MAX_VALUE_TEXT];
	struct config_key plain = *key;

	plain.zero = NULL;
	(void)snprintf(text, CONFIG_MAX_VALUE_TEXT * 3, "%s to %s%s%s",
		       config_value_format(&plain, key->min, min),
		       config_value_format(&plain, key->max, max), key->zero != NULL ? ", or " : "",
		       key->zero != NULL ? key->zero : "");
	return text;
}
