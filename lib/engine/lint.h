#pragma once
/*
 * lint: what is wrong with rules, or unwise.
 *
 * Fatal: a rule that makes no sense by itself; the same pattern and window twice; templates that tie; more planes or shapes of templates
 * than a metric may have. Unwise, and told (unwise.c): a max that an ancestor's smaller one keeps from being reached, or the same pattern's for
 * a longer window in which this one lies; children's min that add up to more than their parent's; a high or low beyond the max.
 *
 * Of other pairs nothing is said: what is counted without a window can be given back, and what is added is not held to a rate.
 *
 * Templates are compared with what applies above them, whatever their wildcards stand for; how many counters they match nobody knows, so
 * sums of min are of paths alone.
 */
#include <stdbool.h>
#include <stddef.h>

#include "lib/engine/rules.h"

#define LINT_MINS_AT_ONCE 4096u

struct faults {
	engine_fault_fn fault; /* may be NULL */
	void *ctx;
	int n_fatal;
};

void faults_say(struct faults *faults, bool fatal, uint32_t tag, uint32_t other_tag,
		const char *format, ...) __attribute__((format(printf, 5, 6)));

/* By itself. False: a fatal fault, said. */
bool lint_rule(struct faults *faults, const struct engine_rule *rule, struct shape *ret_shape);

/*
 * Puts the rules, which are by themselves good or are said not to be, into an empty layer. Fatal faults are counted; -ENOMEM.
 */
int lint_fill(struct faults *faults, struct rules *rules, struct layer *layer,
	      const struct engine_rule *sources, size_t n);

/* Why layer_add had no place for it. */
void lint_full(struct faults *faults, const struct engine_rule *source, const struct layer *layer);

/* Ties within a layer: of all its rules; of one with the others. -ENOMEM. */
int lint_ties(struct faults *faults, const struct layer *layer);
int lint_tie(struct faults *faults, const struct rule *rule);

/* Too many planes in a metric? Each metric of `layer`, together with what `other` (may be NULL) has of it. */
void lint_planes(struct faults *faults, const struct layer *layer, const struct layer *other);
void lint_metric_planes(struct faults *faults, const struct layer_metric *metric,
			const struct layer *other, uint32_t tag);

/* What is unwise about a rule of one of the layers, as all of them are to be. */
void lint_unwise(struct faults *faults, const struct layer *const layers[2],
		 const struct rule *rule);

/* Its max and those for other windows of its pattern: what keeps its own from being reached; `both`: also what it keeps from that. */
void lint_windows(struct faults *faults, const struct layer *const layers[2],
		  const struct rule *rule, bool both);

/*
 * Sums of children's min; `rule` NULL: all; else those it takes part in, unless there are more than LINT_MINS_AT_ONCE rules with a min:
 * that is left to the next check of a file. No memory: some are not looked at.
 */
void lint_mins(struct faults *faults, const struct layer *const layers[2], const struct rule *rule);
