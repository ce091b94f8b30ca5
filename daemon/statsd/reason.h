#pragma once
/*
 * reason: why a line was not counted. The names are those that status items and metrics carry.
 */

/* X(name, help), in the order in which they are looked for: of several faults of a line the first one is told. */
#define STATSD_REASONS(X)                                                                   \
	X(line_too_long, "Lines of more than 8,192 bytes.")                                 \
	X(control_char, "Lines with a control character in them.")                          \
	X(bad_utf8, "Lines that are not UTF-8.")                                            \
	X(no_type, "Lines without a type: there is no | in them.")                          \
	X(unsupported_event, "DogStatsD events and service checks.")                        \
	X(no_value, "Lines without a : before the type.")                                   \
	X(empty_name, "Lines without a name.")                                              \
	X(name_too_long,                                                                    \
	  "Names of more than 255 bytes, and such as make no path of 16 segments or less.") \
	X(name_charset, "Names with a character that none may have.")                       \
	X(empty_path_segment, "Names with two dots in a row, or one at an end.")            \
	X(unsupported_type, "Gauges, timers, histograms, distributions and sets.")          \
	X(bad_type, "Lines of a type that there is not.")                                   \
	X(legacy_multisample, "Lines with several samples of different types or rates.")    \
	X(bad_value, "Values that are no numbers.")                                         \
	X(empty_value, "Lines without any value.")                                          \
	X(bad_rate, "Sample rates that are no number from 0.000001 to 1.")                  \
	X(dup_rate, "Lines with two sample rates.")                                         \
	X(out_of_range, "Values and totals beyond 64 bits.")                                \
	X(truncated,                                                                        \
	  "Lines cut short: by a datagram that is too long, or a connection that broke.")   \
	X(negative, "Negative values for counters that only grow.")                         \
	X(cardinality, "Lines with a new path when there may be no more counters.")

enum statsd_reason {
	STATSD_OK = 0,
#define STATSD_REASON(name, help) STATSD_##name,
	STATSD_REASONS(STATSD_REASON)
#undef STATSD_REASON
	STATSD_N_REASONS, /* STATSD_OK included */
};

/* "bad_value"; "ok" for STATSD_OK. */
const char *statsd_reason_name(enum statsd_reason reason);
