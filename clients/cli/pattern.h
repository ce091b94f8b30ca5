#pragma once
/*
 * pattern: what the pattern of a rule is about. A path; or a template, in which `*` stands for any one segment and `**` at the end for
 * one or more. Which of several rules counts is the daemon's to say.
 *
 * Pure; any thread.
 */
#include <stdbool.h>

bool pattern_matches(const char *pattern, const char *path);

bool pattern_is_template(const char *pattern);

/* Is `path` (which may be a pattern itself) `root`, or below it? */
bool pattern_is_within(const char *path, const char *root);
