#pragma once
/*
 * text: strings of others, made safe to print, and the word that someone may have meant.
 */
#include <stddef.h>

/*
 * `bytes` as valid UTF-8 without anything that steers a terminal: control characters (C0, DEL, C1), bidirectional controls, line
 * and paragraph separators, and bytes that are not UTF-8 become \xHH, byte by byte. What is ordinary stays as it is, so that a
 * path is printed as itself. The longest input that is shown whole is `max` bytes; a longer one ends in "...". To be freed;
 * NULL: no memory.
 */
char *text_safe(const char *bytes, size_t len, size_t max);

/* The same for a terminated string, whole. */
char *text_safe_string(const char *string);

/*
 * The one of `words` (NULL at the end) that is nearest to `word`: few letters away, or begun by it. NULL if none is near.
 * Damerau-Levenshtein distance, restricted form (Boytsov 2011, optimal string alignment).
 */
const char *text_nearest(const char *word, const char *const *words);
