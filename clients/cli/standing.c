#include "clients/cli/standing.h"

#include "clients/cli/pattern.h"

#include <stdlib.h>
#include <string.h>

/* ---- which nodes have a rule ---- */

struct patterns {
	char **paths; /* sorted */
	size_t n_paths;
	char **templates;
	size_t n_templates;
	bool no_memory;
};

static void append(struct patterns *patterns, char ***list, size_t *n, const char *text)
{
	char *copy = strdup(text);
	char **longer = *list;

	/* A power of two of them: there is room for as many again. */
	if ((*n & (*n - 1)) == 0) {
		longer = reallocarray(*list, *n > 0 ? 2 * *n : 1, sizeof(*longer));
		*list = longer != NULL ? longer : *list;
	}
	if (copy == NULL || longer == NULL) {
		free(copy);
		patterns->no_memory = true;
		return;
	}
	(*list)[(*n)++] = copy;
}

static void take_rule(void *ctx, const struct ration_rule *rule)
{
	struct patterns *patterns = ctx;

	if (pattern_is_template(rule->pattern)) {
		append(patterns, &patterns->templates, &patterns->n_templates, rule->pattern);
	} else {
		append(patterns, &patterns->paths, &patterns->n_paths, rule->pattern);
	}
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool have_rule(const struct patterns *patterns, const char *path)
{
	if (patterns->n_paths > 0 && bsearch(&path, patterns->paths, patterns->n_paths,
					     sizeof(*patterns->paths), compare) != NULL) {
		return true;
	}
	for (size_t i = 0; i < patterns->n_templates; i++) {
		if (pattern_matches(patterns->templates[i], path)) {
			return true;
		}
	}
	return false;
}

static void free_list(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i]);
	}
	free(list);
}

static void patterns_deinit(struct patterns *patterns)
{
	free_list(patterns->paths, patterns->n_paths);
	free_list(patterns->templates, patterns->n_templates);
}

/* ---- how they stand ---- */

/* The levels of an explanation that are at `path`. NULL: none, or no memory. */
static struct standing *levels_at(struct cli *cli, const struct ration_explanation *explanation,
				  const char *path)
{
	struct standing *standing = NULL;
	size_t n = 0;

	for (size_t i = 0; i < explanation->n_levels; i++) {
		n += strcmp(explanation->levels[i].path, path) == 0;
	}
	if (n == 0) {
		return NULL;
	}
	standing = malloc(sizeof(*standing) + n * sizeof(standing->levels[0]));
	if (standing == NULL) {
		cli->no_memory = true;
		return NULL;
	}
	standing->n = 0;
	for (size_t i = 0; i < explanation->n_levels; i++) {
		if (strcmp(explanation->levels[i].path, path) == 0) {
			struct ration_level *level = &standing->levels[standing->n++];

			*level = explanation->levels[i];
			level->path = level->pattern = level->source = NULL;
		}
	}
	return standing;
}

/* Ask for one node, and take what is said of its ancestors too. `known`: of which nodes it was said. False: reported. */
static bool explain(struct standings *standings, struct cli *cli, struct ration *client,
		    const struct tree *tree, const struct tree_node *node, bool *known)
{
	struct ration_explanation *explanation = NULL;
	int r = ration_quota_explain(client, node->path, cli->timeout_ms, &explanation);

	if (r == RATION_NOT_FOUND) {
		/* It was removed meanwhile. */
		return true;
	}
	cli_answer(cli, r, NULL);
	for (; r == 0 && node != NULL && !known[node - tree->nodes]; node = node->parent) {
		struct standing *standing = levels_at(cli, explanation, node->path);

		standings->list[node - tree->nodes] = standing;
		standings->n_limited += standing != NULL;
		known[node - tree->nodes] = true;
	}
	ration_explanation_free(explanation);
	return r == 0;
}

bool standings_init(struct standings *standings, struct cli *cli, struct ration *client,
		    const struct tree *tree)
{
	struct patterns patterns = { 0 };
	bool *known = calloc(tree->n + 1, sizeof(*known));
	int r = 0;
	bool fine = true;

	*standings = (struct standings){
		.list = calloc(tree->n + 1, sizeof(struct standing *)),
		.n = tree->n,
	};
	if (known == NULL || standings->list == NULL) {
		cli->no_memory = true;
		free(known);
		return false;
	}
	r = ration_quota_list(client, cli->timeout_ms, take_rule, &patterns);
	cli_answer(cli, r, NULL);
	if (patterns.n_paths > 0) {
		qsort(patterns.paths, patterns.n_paths, sizeof(*patterns.paths), compare);
	}
	cli->no_memory |= patterns.no_memory;
	fine = r == 0 && !patterns.no_memory;
	/* In the order of names a parent stands before its children: so, from the end, what is below a node was asked before it. */
	for (size_t i = tree->n; fine && i-- > 0;) {
		if (!known[i] && have_rule(&patterns, tree->nodes[i].path)) {
			fine = explain(standings, cli, client, tree, &tree->nodes[i], known);
		}
	}
	patterns_deinit(&patterns);
	free(known);
	return fine;
}

void standings_deinit(struct standings *standings)
{
	for (size_t i = 0; standings->list != NULL && i < standings->n; i++) {
		free(standings->list[i]);
	}
	free(standings->list);
	*standings = (struct standings){ 0 };
}

/* ---- the fullest, and its bar ---- */

static bool limit_of(const struct ration_level *level, int64_t *ret_limit)
{
	const struct ration_limits *limits = &level->limits;

	if (limits->window.kind == RATION_RATE || limits->has_max) {
		*ret_limit = limits->has_max ? limits->max : limits->burst;
		return true;
	}
	if (limits->has_high) {
		*ret_limit = limits->high;
	}
	return limits->has_high;
}

/* Is a of b a larger part than c of d? Of nothing everything is in use. */
static bool is_fuller(int64_t a, int64_t b, int64_t c, int64_t d)
{
	if (b == 0 || d == 0) {
		return b == 0 && (d != 0 || a > c);
	}
	return (__int128)a * d > (__int128)c * b;
}

/* What is only tried out comes after all that refuses. */
static bool is_before(const struct ration_level *a, int64_t a_limit, const struct ration_level *b,
		      int64_t b_limit)
{
	if (a->limits.shadow != b->limits.shadow) {
		return b->limits.shadow;
	}
	return is_fuller(a->usage, a_limit, b->usage, b_limit);
}

const struct ration_level *standing_fullest(const struct standing *standing, int64_t *ret_limit)
{
	const struct ration_level *fullest = NULL;
	int64_t limit = 0;

	for (size_t i = 0; standing != NULL && i < standing->n; i++) {
		const struct ration_level *level = &standing->levels[i];
		int64_t of = 0;

		if (limit_of(level, &of) &&
		    (fullest == NULL || is_before(level, of, fullest, limit))) {
			fullest = level;
			limit = of;
		}
	}
	if (fullest != NULL) {
		*ret_limit = limit;
	}
	return fullest;
}

const char *standing_bar(int64_t usage, int64_t limit, bool utf8, char bar[STANDING_BAR_BYTES])
{
	static const char *const eighths[] = { " ", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	int steps = utf8 ? 8 * STANDING_CELLS : STANDING_CELLS;
	int filled = 0;
	char *to = bar;

	if (usage >= limit) {
		filled = steps;
	} else if (usage > 0) {
		filled = (int)((__int128)usage * steps / limit);
		filled = filled > 0 ? filled : 1;
	}
	for (int i = 0; i < STANDING_CELLS; i++) {
		int in_cell = utf8 ? filled - 8 * i : 8 * (filled - i);
		const char *cell = !utf8	  ? (in_cell > 0 ? "#" : ".")
				   : in_cell >= 8 ? "█"
						  : eighths[in_cell > 0 ? in_cell : 0];

		to = mempcpy(to, cell, strlen(cell));
	}
	*to = '\0';
	return bar;
}
