#include "tests/bench/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum verdict report_at_least(double value, double bound)
{
	return value >= bound ? VERDICT_MET : VERDICT_MISSED;
}

enum verdict report_at_most(double value, double bound)
{
	return value <= bound ? VERDICT_MET : VERDICT_MISSED;
}

void report_table(const char *title)
{
	(void)printf("\n%s\n%-64s %20s %9s %12s\n", title, "", "figure", "ratio", "bound");
}

void report_line(const char *what, double ratio, const char *bound, enum verdict verdict,
		 const char *format, ...)
{
	static const char *const words[] = { "", "met", "MISSED" };
	char figure[64], ratio_text[32] = "";
	va_list args;

	va_start(args, format);
	(void)vsnprintf(figure, sizeof(figure), format, args);
	va_end(args);
	if (ratio > 0) {
		(void)snprintf(ratio_text, sizeof(ratio_text), "%.2f", ratio);
	}
	(void)printf("%-64s %20s %9s %12s %s\n", what, figure, ratio_text,
		     bound != NULL ? bound : "", words[verdict]);
	(void)fflush(stdout);
}

void report_require(bool condition, const char *format, ...)
{
	va_list args;

	if (condition) {
		return;
	}
	(void)fflush(stdout);
	(void)fputs("failed: ", stderr);
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fputc('\n', stderr);
	exit(1);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double report_quantile(double *values, size_t n, double share)
{
	size_t at = (size_t)((double)n * share);

	qsort(values, n, sizeof(*values), compare);
	return values[at < n ? at : n - 1];
}

double report_median(double *values, size_t n)
{
	return report_quantile(values, n, 0.5);
}

double report_wall_seconds(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
