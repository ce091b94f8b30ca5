#pragma once
/*
 * report: what benchmarks print, and the arithmetic behind it: one line for each figure, with the bound it is held against.
 *
 * A bound that is missed is said, not failed: figures depend on the machine and on what else it does. A benchmark fails only when
 * a count was lost or it could not run: report_require, report_must.
 */
#include <stdbool.h>
#include <stddef.h>

enum verdict {
	VERDICT_NONE, /* a figure without a bound */
	VERDICT_MET,
	VERDICT_MISSED,
};

/* The verdict on a value that should be at least, or at most, `bound`. */
enum verdict report_at_least(double value, double bound);
enum verdict report_at_most(double value, double bound);

/* A table's title and head. */
void report_table(const char *title);
/* ratio: 0 for none; bound: NULL for none. `format` and what follows say the figure. */
void report_line(const char *what, double ratio, const char *bound, enum verdict verdict,
		 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Says what is wrong and exits with 1, stopping what servers run, unless the condition holds. */
void report_require(bool condition, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- arithmetic ---- */

/* Sort the values and return the one below which `share` (0 to 1) of them lie. n > 0. */
double report_quantile(double *values, size_t n, double share);
double report_median(double *values, size_t n);

double report_wall_seconds(void);
