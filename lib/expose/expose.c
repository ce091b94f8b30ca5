#include "lib/expose/expose.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/duration.h"

void expose_init(struct expose *expose, struct engine *engine, struct sheet *sheet,
		 struct quota_time time, expose_look_up look_up, void *ctx)
{
	memset(expose, 0, sizeof(*expose));
	expose->engine = engine;
	expose->sheet = sheet;
	expose->time = time;
	expose->newest = engine_newest(engine);
	expose->look_up = look_up;
	expose->ctx = ctx;
}

/* ---- metrics ---- */

static bool exists(void *ctx, const char *path, size_t len)
{
	const struct expose *expose = ctx;
	struct engine_reading reading;

	return engine_get(expose->engine, path, len, &reading) == 0 &&
	       reading.born_ns <= expose->newest;
}

static void begin_family(struct expose *expose, bool counter)
{
	const struct family_metric metric = {
		.name = expose->metric,
		.len = expose->metric_len,
		.counter = counter,
		.unit = expose->said.unit,
	};

	expose->family = (struct sheet_family){
		.name = expose->name,
		.name_len = family_name(&metric, exists, expose, expose->name, &expose->has_unit),
		.type = counter ? SHEET_COUNTER : SHEET_GAUGE,
		.help = expose->said.help,
		.unit = expose->has_unit ? expose->said.unit : "",
	};
	if (expose->said.help[0] == '\0') {
		(void)snprintf(expose->help, sizeof(expose->help), "%.*s, as rationd counts it.",
			       (int)expose->metric_len, expose->metric);
		expose->family.help = expose->help;
	}
	sheet_family(expose->sheet, &expose->family);
	expose->family_begun = true;
}

/* A metric comes before all that is below it. */
static void begin_metric(struct expose *expose, const struct engine_entry *entry)
{
	memcpy(expose->metric, entry->path, entry->len);
	expose->metric_len = entry->len;
	expose->family_begun = false;
	expose->look_up(expose->ctx, expose->metric, expose->metric_len, &expose->said);
	levels_init(&expose->levels, expose->said.levels);
}

static void show(void *ctx, const struct engine_entry *entry)
{
	struct expose *expose = ctx;

	if (entry->reading.born_ns > expose->newest) {
		return;
	}
	if (entry->depth == 1) {
		begin_metric(expose, entry);
	}
	if (entry->reading.own == 0 && !entry->reading.leaf) {
		return;
	}
	if (!expose->family_begun) {
		begin_family(expose, entry->reading.kind == ENGINE_COUNTER);
	}
	labels_put(expose->sheet, &expose->levels, entry->path, entry->len, expose->metric_len,
		   exists, expose);
	sheet_sample(expose->sheet, &expose->family, entry->reading.own);
	sheet_created(expose->sheet, &expose->family, entry->reading.born_ns);
}

static void some_metrics(struct expose *expose, size_t n)
{
	if (engine_walk(expose->engine, "", 0, UINT32_MAX, n, &expose->cursor, show, expose,
			&expose->metrics_done) != 0) {
		expose->metrics_done = true;
	}
}

/* ---- limits ---- */

/* One figure of a limit; false: this one has none. */
struct figure {
	const char *name;
	const char *help;
	enum sheet_type type;
	bool (*get)(const struct engine_limited *limited, double *ret_real, int64_t *ret_value);
};

static bool get_usage(const struct engine_limited *limited, double *ret_real, int64_t *ret_value)
{
	(void)ret_real;
	*ret_value = limited->usage;
	return true;
}

static bool get_peak(const struct engine_limited *limited, double *ret_real, int64_t *ret_value)
{
	(void)ret_real;
	*ret_value = limited->peak;
	return true;
}

static bool get_max(const struct engine_limited *limited, double *ret_real, int64_t *ret_value)
{
	(void)ret_real;
	*ret_value =
		limited->window->kind == WINDOW_RATE ? limited->limits.burst : limited->limits.max;
	return *ret_value != QUOTA_NONE;
}

static bool get_high(const struct engine_limited *limited, double *ret_real, int64_t *ret_value)
{
	(void)ret_real;
	*ret_value = limited->limits.high;
	return limited->window->kind != WINDOW_RATE && *ret_value != QUOTA_NONE;
}

static bool get_low(const struct engine_limited *limited, double *ret_real, int64_t *ret_value)
{
	(void)ret_real;
	*ret_value = limited->limits.low;
	return *ret_value != 0;
}

static bool get_min(const struct engine_limited *limited, double *ret_real, int64_t *ret_value)
{
	(void)ret_real;
	*ret_value = limited->limits.min;
	return *ret_value != 0;
}

static bool get_rate(const struct engine_limited *limited, double *ret_real, int64_t *ret_value)
{
	(void)ret_value;
	if (limited->window->kind != WINDOW_RATE) {
		return false;
	}
	*ret_real = (double)limited->limits.rate * 1e9 / (double)limited->limits.per_ns;
	return true;
}

static bool get_shadow(const struct engine_limited *limited, double *ret_real, int64_t *ret_value)
{
	(void)ret_real;
	*ret_value = 1;
	return limited->limits.shadow;
}

static bool get_refusals(const struct engine_limited *limited, double *ret_real, int64_t *ret_value)
{
	(void)ret_real;
	*ret_value = limited->refusals;
	return true;
}

static bool get_forced(const struct engine_limited *limited, double *ret_real, int64_t *ret_value)
{
	(void)ret_real;
	*ret_value = limited->forced;
	return true;
}

static const struct figure figures[] = {
	{ "rationd_quota_usage", "What is used of a limit, in its window.", SHEET_GAUGE, get_usage },
	{ "rationd_quota_peak", "The most that was used of it, in one window.", SHEET_GAUGE,
	  get_peak },
	{ "rationd_quota_max", "What a charge must not pass; of a rate, its burst.", SHEET_GAUGE,
	  get_max },
	{ "rationd_quota_high", "What a charge may pass, and is told so.", SHEET_GAUGE, get_high },
	{ "rationd_quota_low", "What is protected as far as there is room.", SHEET_GAUGE, get_low },
	{ "rationd_quota_min", "What is protected.", SHEET_GAUGE, get_min },
	{ "rationd_quota_rate", "So many a second, in the long run.", SHEET_GAUGE, get_rate },
	{ "rationd_quota_shadow", "1: a limit that is tried out and refuses nothing.", SHEET_GAUGE,
	  get_shadow },
	{ "rationd_quota_refusals", "Charges that the limit refused, or as a shadow would have.",
	  SHEET_COUNTER, get_refusals },
	{ "rationd_quota_forced", "What was added past the max.", SHEET_COUNTER, get_forced },
};

#define N_FIGURES (sizeof(figures) / sizeof(figures[0]))

static void put_window(struct sheet *sheet, const struct window *window)
{
	char text[ENGINE_MAX_WINDOW_TEXT];

	switch (window->kind) {
	case WINDOW_NONE:
		sheet_label(sheet, "window", "none", 4);
		break;
	case WINDOW_PER:
		(void)duration_format(window->duration_ns, text);
		sheet_label(sheet, "window", text, strlen(text));
		break;
	case WINDOW_CALENDAR:
		(void)engine_window_text(window, text);
		sheet_label(sheet, "window", text + strlen("per calendar "),
			    strlen(text) - strlen("per calendar "));
		break;
	case WINDOW_RATE:
		sheet_label(sheet, "window", "rate", 4);
		break;
	}
}

static void show_figure(void *ctx, const struct engine_limited *limited)
{
	struct expose *expose = ctx;
	const struct figure *figure = &figures[expose->figure];
	struct sheet_family family = { .name = figure->name,
				       .name_len = strlen(figure->name),
				       .type = figure->type,
				       .help = figure->help,
				       .unit = "" };
	double real = 0;
	int64_t value = 0;

	if (!figure->get(limited, &real, &value)) {
		return;
	}
	if (!expose->figure_begun) {
		sheet_family(expose->sheet, &family);
		expose->figure_begun = true;
	}
	sheet_labels(expose->sheet);
	sheet_label(expose->sheet, "path", limited->path, limited->len);
	put_window(expose->sheet, limited->window);
	if (figure->get == get_rate) {
		sheet_sample_real(expose->sheet, &family, real);
	} else {
		sheet_sample(expose->sheet, &family, value);
	}
}

static void some_limits(struct expose *expose, size_t n)
{
	bool done = false;

	engine_limits_walk(expose->engine, &expose->time, n, &expose->limits_cursor, show_figure,
			   expose, &done);
	if (done) {
		expose->figure++;
		expose->figure_begun = false;
		expose->limits_cursor = (struct engine_limits_cursor){ 0 };
	}
}

bool expose_some(struct expose *expose, size_t n)
{
	if (!expose->metrics_done) {
		some_metrics(expose, n);
	} else if (expose->figure < N_FIGURES) {
		some_limits(expose, n);
	}
	return expose->figure < N_FIGURES;
}
