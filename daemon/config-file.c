/*
 * Files and their lines. inih takes a line apart; what it can't do is done before it sees the line: section names of any
 * length, line numbers in errors, lines that are too long or are no line at all, empty sections.
 */
#include "daemon/config-load.h"

#include "lib/base/cleanup.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum section {
	SECTION_NONE,
	SECTION_BAD, /* reported; its keys are passed over */
	SECTION_DAEMON,
	SECTION_METRIC,
	SECTION_QUOTA,
};

static_assert(CONFIG_MAX_LINE + 2 <= INI_MAX_LINE,
	      "inih takes such lines, with a newline and an end");

#define MAX_SECTION_LINE 1024u /* a path may be longer than inih takes a line to be */

struct lines {
	struct config_load *load;
	const char *name;
	const char *at, *end;
	unsigned number; /* of the line handed out last */
	enum section section;
	size_t index;	    /* SECTION_METRIC, SECTION_QUOTA: since the array can move */
	unsigned daemon_in; /* the source in which [daemon] was begun last */
	const char *
		comment; /* what inih will cut off the setting at hand, behind its semicolon; NULL: nothing */
	char where[CONFIG_MAX_ERROR_TEXT / 2];
};

static const char *where(struct lines *lines)
{
	(void)snprintf(lines->where, sizeof(lines->where), "%s:%u", lines->name, lines->number);
	return lines->where;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

static void begin_metric(struct lines *lines, const char *name)
{
	struct config_draft_metric *metric = config_load_metric(lines->load, where(lines), name);

	lines->section = SECTION_BAD;
	if (metric == NULL) {
		return;
	}
	if (metric->section_in == lines->load->source) {
		config_load_error(
			lines->load, where(lines),
			"[metric %s] was there before in this file; put all its keys into one",
			name);
		return;
	}
	metric->section_in = lines->load->source;
	lines->section = SECTION_METRIC;
	lines->index = (size_t)(metric - lines->load->metrics);
}

static void begin_quota(struct lines *lines, const char *pattern)
{
	const struct config_draft_quota *quota =
		config_load_quota(lines->load, where(lines), pattern);

	if (quota != NULL) {
		lines->section = SECTION_QUOTA;
		lines->index = (size_t)(quota - lines->load->quotas);
	}
}

#define EXPECTED_SECTIONS "[daemon], [metric NAME] or [quota PATH]"

/* `text` is a section's line without blanks around it: "[...". It is changed. */
static void begin_section(struct lines *lines, char *text)
{
	char *close = strchr(text, ']');
	char *name = text + 1;

	lines->section = SECTION_BAD;
	if (close == NULL) {
		config_load_error(lines->load, where(lines),
				  "'%s' has no ']'; expected " EXPECTED_SECTIONS, text);
		return;
	}
	*close = '\0';
	close += 1 + strspn(close + 1, " \t");
	if (*close != '\0' && *close != ';' && *close != '#') {
		config_load_error(lines->load, where(lines),
				  "'%s' after [%s]; expected nothing more on this line", close,
				  name);
		return;
	}
	if (strcmp(name, "daemon") == 0) {
		if (lines->daemon_in == lines->load->source) {
			config_load_error(
				lines->load, where(lines),
				"[daemon] was there before in this file; put all its keys into one");
			return;
		}
		lines->daemon_in = lines->load->source;
		lines->section = SECTION_DAEMON;
	} else if (strncmp(name, "metric ", 7) == 0) {
		name += 7;
		name += strspn(name, " \t");
		begin_metric(lines, name);
	} else if (strncmp(name, "quota ", 6) == 0) {
		name += 6;
		name += strspn(name, " \t");
		begin_quota(lines, name);
	} else {
		config_load_error(lines->load, where(lines),
				  "unknown section [%s]; expected " EXPECTED_SECTIONS, name);
	}
}

/* As inih finds it: behind a blank and a semicolon in a value. What follows the semicolon; NULL: there is none. */
static const char *find_comment(const char *text)
{
	const char *value = strpbrk(text, "=:");

	for (const char *at = value; at != NULL && *at != '\0'; at++) {
		if (is_blank(at[0]) && at[1] == ';') {
			return at + 2;
		}
	}
	return NULL;
}

/* True: inih may see this line. */
static bool check_line(struct lines *lines, char *text)
{
	switch (text[0]) {
	case '\0':
	case '#':
	case ';':
		return false;
	default:
		break;
	}
	if (strpbrk(text, "=") == NULL) {
		config_load_error(
			lines->load, where(lines),
			"'%s' is no setting; expected KEY = VALUE, [SECTION] or # COMMENT", text);
		return false;
	}
	lines->comment = find_comment(text);
	return true;
}

static void read_section(struct lines *lines, const char *start, size_t len)
{
	char text[MAX_SECTION_LINE];

	memcpy(text, start, len);
	text[len] = '\0';
	begin_section(lines, text);
}

/* inih's reader, instead of fgets. An empty line is handed on in place of what was dealt with here. */
static char *read_line(char *line, int size, void *stream)
{
	struct lines *lines = stream;
	const char *start = lines->at, *newline, *stop;
	size_t len;

	if (start >= lines->end) {
		return NULL;
	}
	newline = memchr(start, '\n', (size_t)(lines->end - start));
	stop = newline != NULL ? newline : lines->end;
	lines->at = newline != NULL ? newline + 1 : lines->end;
	lines->number++;
	if (lines->number == 1 && stop - start >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0) {
		start += 3;
	}
	/* Blanks in front would make inih take the line for more of the one before. */
	while (start < stop && is_blank(*start)) {
		start++;
	}
	while (start < stop && is_blank(stop[-1])) {
		stop--;
	}
	len = (size_t)(stop - start);
	line[0] = '\0';
	if (len > 0 && memchr(start, '\0', len) != NULL) {
		config_load_error(lines->load, where(lines),
				  "the line holds a zero byte; expected text");
	} else if (len > 0 && start[0] == '[' && len < MAX_SECTION_LINE) {
		read_section(lines, start, len);
	} else if (len > CONFIG_MAX_LINE || len + 2 > (size_t)size) {
		if (start[0] != '#' && start[0] != ';') {
			config_load_error(lines->load, where(lines),
					  "the line has %zu bytes; at most %d are allowed", len,
					  CONFIG_MAX_LINE);
		}
	} else {
		memcpy(line, start, len);
		line[len] = '\0';
		if (!check_line(lines, line)) {
			line[0] = '\0';
		}
	}
	return line;
}

static struct config_target metric_target(struct config_draft_metric *draft)
{
	return (struct config_target){ .section = CONFIG_METRIC,
				       .object = &draft->metric,
				       .set_in = draft->set_in };
}

static struct config_target quota_target(struct config_draft_quota *draft)
{
	return (struct config_target){ .section = CONFIG_QUOTA,
				       .object = &draft->quota,
				       .set_in = draft->set_in,
				       .bad = &draft->bad };
}

/* A value that a comment behind it might be a part of. */
static bool is_path(const char *name)
{
	const struct config_key *key = config_key_find(CONFIG_DAEMON, name);

	return key != NULL && (key->type == CONFIG_LISTEN || key->type == CONFIG_PATH);
}

static int take_setting(void *user, const char *section, const char *name, const char *value)
{
	struct lines *lines = user;
	struct config_load *load = lines->load;
	struct config_target target;

	(void)section;
	switch (lines->section) {
	case SECTION_NONE:
		config_load_error(lines->load, where(lines),
				  "%s = %s stands before any section; begin with [daemon]", name,
				  value);
		break;
	case SECTION_BAD:
		break;
	case SECTION_DAEMON:
		if (lines->comment != NULL && value[0] != '\0' && is_path(name)) {
			config_load_error(
				load, where(lines),
				"%s = %s: is followed by ';%s', which would be a comment and no part of it; put comments "
				"on lines of their own, and have no blank before a semicolon in a path",
				name, value, lines->comment);
			break;
		}
		target = config_load_daemon(load);
		config_load_set(load, where(lines), &target, name, value);
		break;
	case SECTION_METRIC:
		target = metric_target(&load->metrics[lines->index]);
		config_load_set(load, where(lines), &target, name, value);
		break;
	case SECTION_QUOTA:
		target = quota_target(&load->quotas[lines->index]);
		config_load_set(load, where(lines), &target, name, value);
		break;
	}
	return 1;
}

void config_load_lines(struct config_load *load, const char *name, const char *text, size_t len)
{
	struct lines lines = { .load = load, .name = name, .at = text, .end = text + len };
	int r = ini_parse_stream(read_line, &lines, take_setting, &lines);

	if (r != 0) {
		lines.number = r > 0 ? (unsigned)r : lines.number;
		config_load_error(load, where(&lines), "is no setting; expected KEY = VALUE");
	}
}

static int read_file(const char *path, char **ret_text, size_t *ret_len)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	_cleanup_free_ char *text = malloc(CONFIG_MAX_FILE + 1);
	size_t len = 0;

	if (text == NULL) {
		return -ENOMEM;
	}
	if (fd < 0) {
		return -errno;
	}
	while (len <= CONFIG_MAX_FILE) {
		ssize_t n = read(fd, text + len, CONFIG_MAX_FILE + 1 - len);

		if (n < 0 && errno != EINTR) {
			return -errno;
		}
		if (n == 0) {
			*ret_text = text;
			*ret_len = len;
			text = NULL;
			return 0;
		}
		len += n > 0 ? (size_t)n : 0;
	}
	return -EFBIG;
}

void config_load_file(struct config_load *load, const char *path, bool may_be_missing)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	int r = read_file(path, &text, &len);

	load->source++;
	if (r == -ENOENT && may_be_missing) {
		return;
	}
	if (r == -ENOMEM) {
		load->no_memory = true;
	} else if (r != 0) {
		config_load_error(load, path, "can't be read: %s", strerror(-r));
	} else {
		config_load_lines(load, path, text, len);
	}
}

static int is_conf_file(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return entry->d_name[0] != '.' && len > 5 && strcmp(entry->d_name + len - 5, ".conf") == 0;
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

void config_load_folder(struct config_load *load, const char *path)
{
	struct dirent **entries = NULL;
	int n = scandir(path, &entries, is_conf_file, compare_names);

	if (n < 0 && errno != ENOENT) {
		config_load_error(load, path, "can't be read: %s", strerror(errno));
	}
	for (int i = 0; i < n; i++) {
		char *file = NULL;

		if (asprintf(&file, "%s/%s", path, entries[i]->d_name) < 0) {
			load->no_memory = true;
		} else {
			config_load_file(load, file, /* may_be_missing= */ false);
			free(file);
		}
		free(entries[i]);
	}
	free(entries);
}
