#pragma once
/*
 * config-keys: the table of all configuration keys, and what follows from it for a single value.
 */
#include "daemon/config.h"

#define CONFIG_MAX_VALUE_TEXT 64u
#define CONFIG_MAX_ERROR_TEXT 512u

enum config_section {
	CONFIG_DAEMON, /* [daemon] */
	CONFIG_METRIC, /* [metric NAME] */
	CONFIG_QUOTA,  /* [quota PATTERN] */
};

enum config_type {
	CONFIG_COUNT,	 /* 100000, 100k, 16M */
	CONFIG_BYTES,	 /* 65536, 64Ki, 4Mi */
	CONFIG_DURATION, /* 250ms, 10s; kept in nanoseconds */
	CONFIG_BOOL,	 /* yes, no */
	CONFIG_KIND,	 /* counter, gauge */
	CONFIG_MODE,	 /* 0660 */
	CONFIG_LISTEN,	 /* an address; may be given more than once */
	CONFIG_LIMIT,	 /* as CONFIG_BYTES; or none, which is QUOTA_NONE */
	CONFIG_CALENDAR, /* none, day, week, month */
	CONFIG_GROUP,	 /* a group by name or number; kept as its number and 1 */
	CONFIG_LEVELS,	 /* host, route: names; kept as text */
	CONFIG_RATE,	 /* 100/1s: two numbers in a row, the second in nanoseconds */
	CONFIG_PATH,	 /* of a file; kept as text, "" is the key's `zero` */
	CONFIG_TEXT,	 /* a sentence */
	CONFIG_UNIT,	 /* letters and digits; kept as text */
};

struct config_key {
	enum config_section section;
	const char *name;
	enum config_type type;
	size_t offset; /* in struct config, config_metric or config_quota; unused for CONFIG_LISTEN */
	int64_t fallback, min, max;
	const char *fallback_path; /* of a CONFIG_PATH */
	const char *zero; /* the word for 0, which is then allowed beside min .. max; or NULL */
	bool fixed;	  /* takes effect at restart */
	const char *flag; /* what --NAME's value is called in the help, if there is such a flag */
	const char *help; /* sentences */
};

extern const struct config_key config_keys[];
extern const size_t config_n_keys;

/* "daemon", "metric", "quota" */
const char *config_section_name(enum config_section section);

/* Has it bounds to tell of? */
static inline bool config_type_has_range(enum config_type type)
{
	return type == CONFIG_COUNT || type == CONFIG_BYTES || type == CONFIG_DURATION ||
	       type == CONFIG_MODE || type == CONFIG_LIMIT;
}

/* NULL if there is none. */
const struct config_key *config_key_find(enum config_section section, const char *name);

/* Is it one number, or two in a row? */
static inline bool config_type_is_number(enum config_type type)
{
	return type != CONFIG_LISTEN && type != CONFIG_LEVELS && type != CONFIG_PATH &&
	       type != CONFIG_TEXT && type != CONFIG_UNIT;
}

static inline int64_t *config_key_place(const struct config_key *key, void *object)
{
	return (int64_t *)(void *)((char *)object + key->offset);
}

/* char[CONFIG_MAX_PATH] of CONFIG_PATH, CONFIG_TEXT and CONFIG_UNIT, char[CONFIG_MAX_LEVELS_TEXT] of CONFIG_LEVELS. */
static inline char *config_key_text(const struct config_key *key, void *object)
{
	return (char *)object + key->offset;
}

/*
 * The names of `text`, between which there are blanks or commas, with a comma between them, into levels[CONFIG_MAX_LEVELS_TEXT]; false as of config_value_parse.
 */
bool config_levels_parse(const char *text, char *levels, char *error);

/*
 * The value of `text`, if it is a number (config_type_is_number). For CONFIG_RATE *ret_value is the first of two. False: error[CONFIG_MAX_ERROR_TEXT] says what is wrong and what would be right, to stand
 * after "KEY = VALUE: ", or after "KEY " if `text` is empty.
 */
bool config_value_parse(const struct config_key *key, const char *text, int64_t *ret_value,
			char *error);

/*
 * As config_value_parse reads it; writes to text[CONFIG_MAX_VALUE_TEXT] and returns it. Numbers alone, and not CONFIG_RATE, for which
 * config_rate_format has both.
 */
const char *config_value_format(const struct config_key *key, int64_t value, char *text);
const char *config_rate_format(const int64_t *rate, char *text);

/* The same for CONFIG_PATH, CONFIG_TEXT and CONFIG_UNIT, with path[CONFIG_MAX_PATH]. */
bool config_path_parse(const struct config_key *key, const char *text, char *path, char *error);
/* As config_path_parse reads it. */
const char *config_path_format(const struct config_key *key, const char *path);

/* As a file would say it, in `text` or the key's own; NULL: there is none to be said in a value. */
const char *config_default_format(const struct config_key *key, char *text);

/* "1 to 64, or auto" into text[CONFIG_MAX_VALUE_TEXT * 3]; what is allowed for this key. */
const char *config_value_range(const struct config_key *key, char *text);
