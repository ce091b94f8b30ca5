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
};

enum config_type {
	CONFIG_COUNT,	 /* 100000, 100k, 16M */
	CONFIG_BYTES,	 /* 65536, 64Ki, 4Mi */
	CONFIG_DURATION, /* 250ms, 10s; kept in nanoseconds */
	CONFIG_BOOL,	 /* yes, no */
	CONFIG_KIND,	 /* counter, gauge */
	CONFIG_MODE,	 /* 0660 */
	CONFIG_LISTEN,	 /* an address; may be given more than once */
};

struct config_key {
	enum config_section section;
	const char *name;
	enum config_type type;
	size_t offset; /* in struct config or struct config_metric; unused for CONFIG_LISTEN */
	int64_t fallback, min, max;
	const char *zero; /* the word for 0, which is then allowed beside min .. max; or NULL */
	bool fixed;	  /* takes effect at restart */
	const char *flag; /* what --NAME's value is called in the help, if there is such a flag */
	const char *help; /* sentences */
};

extern const struct config_key config_keys[];
extern const size_t config_n_keys;

/* NULL if there is none. */
const struct config_key *config_key_find(enum config_section section, const char *name);

static inline int64_t *config_key_place(const struct config_key *key, void *object)
{
	return (int64_t *)(void *)((char *)object + key->offset);
}

/*
 * The value of `text`; not for CONFIG_LISTEN. False: error[CONFIG_MAX_ERROR_TEXT] says what is wrong and what would be right, to stand
 * after "KEY = VALUE: ".
 */
bool config_value_parse(const struct config_key *key, const char *text, int64_t *ret_value,
			char *error);

/* As config_value_parse reads it; writes to text[CONFIG_MAX_VALUE_TEXT] and returns it. */
const char *config_value_format(const struct config_key *key, int64_t value, char *text);

/* "1 to 64, or auto" into text[CONFIG_MAX_VALUE_TEXT * 3]; what is allowed for this key. */
const char *config_value_range(const struct config_key *key, char *text);
