#include "clients/cli/pattern.h"

#include <stddef.h>
#include <string.h>

static bool is_segment(const char *segment, size_t len, const char *text)
{
	return strlen(text) == len && memcmp(segment, text, len) == 0;
}

bool pattern_matches(const char *pattern, const char *path)
{
	for (;;) {
		size_t wanted = strcspn(pattern, "/");
		size_t given = strcspn(path, "/");

		if (given == 0) {
			return false;
		}
		if (is_segment(pattern, wanted, "**") && pattern[wanted] == '\0') {
			return true;
		}
		if (!is_segment(pattern, wanted, "*") &&
		    (wanted != given || memcmp(pattern, path, given) != 0)) {
			return false;
		}
		if (pattern[wanted] == '\0' || path[given] == '\0') {
			return pattern[wanted] == path[given];
		}
		pattern += wanted + 1;
		path += given + 1;
	}
}

bool pattern_is_template(const char *pattern)
{
	while (*pattern != '\0') {
		size_t len = strcspn(pattern, "/");

		if (is_segment(pattern, len, "*") || is_segment(pattern, len, "**")) {
			return true;
		}
		pattern += len + (pattern[len] == '/');
	}
	return false;
}

bool pattern_is_within(const char *path, const char *root)
{
	size_t len = strlen(root);

	return strncmp(path, root, len) == 0 && (path[len] == '\0' || path[len] == '/');
}
