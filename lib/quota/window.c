#include "lib/quota/window.h"

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_DAY (86400 * NS_PER_S)

/* How long a number must not come again: 68 years. */
#define RANGE_NS ((INT64_C(1) << 31) * (unsigned __int128)NS_PER_S)

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Days since the epoch of the first of a month (months since January of the year 0), proleptic Gregorian. */
static int64_t days_of_month(int64_t month)
{
	/* Years that begin in March, so that the leap day is their last. */
	int64_t shifted = month - 2;
	int64_t year = floor_div(shifted, 12);
	int64_t of_year = shifted - year * 12;
	int64_t era = floor_div(year, 400);
	int64_t year_of_era = year - era * 400;
	int64_t day_of_year = (153 * of_year + 2) / 5;

	return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
	       day_of_year - 719468;
}

/* The other way: the month that holds a day. */
static int64_t month_of_day(int64_t day)
{
	int64_t shifted = day + 719468;
	int64_t era = floor_div(shifted, 146097);
	int64_t day_of_era = shifted - era * 146097;
	int64_t year_of_era =
		(day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	int64_t day_of_year =
		day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);

	return (era * 400 + year_of_era) * 12 + (5 * day_of_year + 2) / 153 + 2;
}

/* Months are numbered from January 1970. */
#define EPOCH_MONTH (INT64_C(1970) * 12)
/* The epoch was a Thursday: the week that holds it began three days before. */
#define EPOCH_WEEKDAY 3

static int64_t calendar_number(enum window_unit unit, int64_t wall_ns)
{
	int64_t day = floor_div(wall_ns, NS_PER_DAY);

	switch (unit) {
	case WINDOW_WEEK:
		return floor_div(day + EPOCH_WEEKDAY, 7);
	case WINDOW_MONTH:
		return month_of_day(day) - EPOCH_MONTH;
	case WINDOW_DAY:
	default:
		return day;
	}
}

static __int128 calendar_start(enum window_unit unit, int64_t number)
{
	switch (unit) {
	case WINDOW_WEEK:
		return ((__int128)number * 7 - EPOCH_WEEKDAY) * NS_PER_DAY;
	case WINDOW_MONTH:
		return (__int128)days_of_month(number + EPOCH_MONTH) * NS_PER_DAY;
	case WINDOW_DAY:
	default:
		return (__int128)number * NS_PER_DAY;
	}
}

bool window_equal(const struct window *a, const struct window *b)
{
	if (a->kind != b->kind) {
		return false;
	}
	if (a->kind == WINDOW_PER) {
		return a->duration_ns == b->duration_ns;
	}
	return a->kind != WINDOW_CALENDAR || a->unit == b->unit;
}

/* Of those that begin at the epoch; 0: others. */
static int64_t length(const struct window *window)
{
	return window->kind == WINDOW_PER				       ? window->duration_ns
	       : window->kind == WINDOW_CALENDAR && window->unit == WINDOW_DAY ? NS_PER_DAY
									       : 0;
}

bool window_within(const struct window *window, const struct window *other)
{
	int64_t within = other->kind == WINDOW_CALENDAR ? NS_PER_DAY : length(other);

	/* Whole days make up weeks and months. */
	return length(window) > 0 ? within > 0 && within % length(window) == 0
				  : window->kind == WINDOW_CALENDAR && window_equal(window, other);
}

bool window_valid(const struct window *window)
{
	switch (window->kind) {
	case WINDOW_NONE:
	case WINDOW_RATE:
		return true;
	case WINDOW_PER:
		return window->duration_ns >= WINDOW_MIN_NS && window->duration_ns <= WINDOW_MAX_NS;
	case WINDOW_CALENDAR:
		return window->unit == WINDOW_DAY || window->unit == WINDOW_WEEK ||
		       window->unit == WINDOW_MONTH;
	default:
		return false;
	}
}

int64_t window_number(const struct window *window, int64_t wall_ns)
{
	switch (window->kind) {
	case WINDOW_PER:
		return floor_div(wall_ns, window->duration_ns);
	case WINDOW_CALENDAR:
		return calendar_number(window->unit, wall_ns);
	case WINDOW_NONE:
	case WINDOW_RATE:
	default:
		return 0;
	}
}

static int64_t saturated(__int128 ns)
{
	if (ns < INT64_MIN) {
		return INT64_MIN;
	}
	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

int64_t window_start(const struct window *window, int64_t number)
{
	switch (window->kind) {
	case WINDOW_PER:
		return saturated((__int128)number * window->duration_ns);
	case WINDOW_CALENDAR:
		return saturated(calendar_start(window->unit, number));
	case WINDOW_NONE:
	case WINDOW_RATE:
	default:
		return INT64_MIN;
	}
}

int64_t window_end(const struct window *window, int64_t number)
{
	if (window->kind == WINDOW_PER || window->kind == WINDOW_CALENDAR) {
		return window_start(window, number + 1);
	}
	return INT64_MAX;
}

unsigned window_bits(const struct window *window)
{
	static const int64_t shortest[] = {
		[WINDOW_DAY] = NS_PER_DAY,
		[WINDOW_WEEK] = 7 * NS_PER_DAY,
		[WINDOW_MONTH] = 28 * NS_PER_DAY,
	};
	int64_t length = window->kind == WINDOW_PER ? window->duration_ns : shortest[window->unit];
	unsigned bits = 1;

	while ((unsigned __int128)(uint64_t)length << bits < RANGE_NS) {
		bits++;
	}
	return bits;
}

int64_t window_count_max(const struct window *window)
{
	if (window->kind == WINDOW_PER || window->kind == WINDOW_CALENDAR) {
		return (int64_t)((UINT64_C(1) << (64 - window_bits(window))) - 2);
	}
	return INT64_MAX;
}
