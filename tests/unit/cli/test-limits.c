/*
 * Limits and charges on the command line, against a fake libration: what is printed, to the letter, and exit statuses.
 */
#include "tests/support/test.h"

#include "clients/cli/standing.h"
#include "tests/unit/cli/fake.h"
#include "tests/unit/cli/run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

/* ---- quota set ---- */

static const struct ration_rule *only_rule(void)
{
	assert_int_equal(fake.n_rules, 1);
	return &fake.rules[0].rule;
}

static void set_sets(void **state)
{
	const struct ration_limits *limits = NULL;

	(void)state;
	assert_run(RUN("quota", "set", "requests/acme", "--max", "10k", "--high", "8Ki", "--low",
		       "5", "--min", "3"),
		   0, "", "");
	limits = &only_rule()->limits;
	assert_string_equal(only_rule()->pattern, "requests/acme");
	assert_int_equal(limits->size, sizeof(*limits));
	assert_int_equal(limits->window.kind, RATION_NO_WINDOW);
	assert_true(limits->has_max && limits->has_high && !limits->shadow);
	assert_int_equal(limits->max, 10000);
	assert_int_equal(limits->high, 8192);
	assert_int_equal(limits->low, 5);
	assert_int_equal(limits->min, 3);
	/* What no option says is no limit, whatever was set before. */
	assert_run(RUN("quota", "set", "requests/acme", "--max=0", "--shadow"), 0, "", "");
	limits = &only_rule()->limits;
	assert_true(limits->has_max && !limits->has_high && limits->shadow);
	assert_int_equal(limits->max, 0);
	assert_int_equal(limits->low, 0);
	assert_run(RUN("quota", "set", "a", "--max", "4611686018427387904"), 0, "", "");
}

static void set_takes_windows(void **state)
{
	const struct ration_limits *limits = NULL;

	(void)state;
	assert_run(RUN("quota", "set", "a/*/**", "--max", "5", "--per", "90s"), 0, "", "");
	limits = &fake.rules[0].rule.limits;
	assert_int_equal(limits->window.kind, RATION_PER);
	assert_int_equal(limits->window.duration_ms, 90000);
	assert_run(RUN("quota", "set", "a/*/**", "--high", "5", "--calendar", "week"), 0, "", "");
	limits = &fake.rules[1].rule.limits;
	assert_int_equal(limits->window.kind, RATION_CALENDAR);
	assert_int_equal(limits->window.unit, RATION_WEEK);
	assert_true(!limits->has_max && limits->has_high);
	assert_run(RUN("quota", "set", "a", "--rate", "5k/10m", "--burst", "2k"), 0, "", "");
	limits = &fake.rules[2].rule.limits;
	assert_int_equal(limits->window.kind, RATION_RATE);
	assert_int_equal(limits->rate, 5000);
	assert_int_equal(limits->per_ms, 600000);
	assert_int_equal(limits->burst, 2000);
	assert_false(limits->has_max);
	/* A unit alone is one of it. */
	assert_run(RUN("quota", "set", "a", "--rate=7/s", "--burst", "1"), 0, "", "");
	assert_int_equal(fake.rules[2].rule.limits.per_ms, 1000);
	assert_int_equal(fake.n_rules, 3);
}

static void set_prints_json_and_notes(void **state)
{
	(void)state;
	fake.note = "max 5 is above that of \033a";
	assert_run(RUN("quota", "set", "a/b", "--max", "5"), 0, "",
		   "rationctl: note: max 5 is above that of \\x1ba\n");
	assert_run(
		RUN("--json", "quota", "set", "a/b", "--max", "5", "--per", "1m"), 0,
		"{\"rule\": {\"window\": \"per 1m\", \"max\": 5, \"high\": null, \"low\": 0, \"min\": 0, \"shadow\": false, "
		"\"duration_ms\": 60000, \"pattern\": \"a/b\"}, \"notes\": [\"max 5 is above that of \\\\x1ba\"]}\n",
		"rationctl: note: max 5 is above that of \\x1ba\n");
	fake.note = NULL;
	assert_run(
		RUN("--json", "quota", "set", "a/b", "--rate", "9007199254740993/s", "--burst", "1",
		    "--shadow"),
		0,
		"{\"rule\": {\"window\": \"rate\", \"max\": null, \"high\": null, \"low\": 0, \"min\": 0, \"shadow\": true, "
		"\"rate\": \"9007199254740993\", \"per_ms\": 1000, \"burst\": 1, \"pattern\": \"a/b\"}, \"notes\": []}\n",
		"");
}

static void set_says_what_is_wrong(void **state)
{
	static const struct {
		const char *words[9];
		const char *err;
	} cases[] = {
		{ { "quota", "set" }, "an argument is missing; rationctl quota set PATH is right" },
		{ { "quota", "set", "a" },
		  "a limit is missing; one of --max, --high, --low, --min or --rate is right" },
		{ { "quota", "set", "a", "--per", "1m" },
		  "a limit is missing; one of --max, --high, --low, --min or --rate is right" },
		{ { "quota", "set", "a", "--rate", "5/s" },
		  "--rate N/D and --burst N go together; --burst is missing" },
		{ { "quota", "set", "a", "--burst", "5" },
		  "--rate N/D and --burst N go together; --rate is missing" },
		{ { "quota", "set", "a", "--rate", "5", "--burst", "5" },
		  "--rate '5': not N/D; give one like 100/s or 5k/10m" },
		{ { "quota", "set", "a", "--rate", "5/1", "--burst", "5" },
		  "--rate '5/1': not a duration's unit; ms s m h d are, as in 500ms or 10s" },
		{ { "quota", "set", "a", "--rate", "x/s", "--burst", "5" },
		  "--rate 'x/s': not a number; give one like 12, -3, 4k or 2Mi" },
		{ { "quota", "set", "a", "--rate", "5/0", "--burst", "5" },
		  "--rate '5/0': no time; give a rate like 100/s or 5k/10m" },
		{ { "quota", "set", "a", "--rate", "0/s", "--burst", "5" },
		  "--rate '0/s': out of range; 1 .. 4611686018427387904 is right" },
		{ { "quota", "set", "a", "--max", "4611686018427387905" },
		  "--max '4611686018427387905': out of range; 0 .. 4611686018427387904 is right" },
		{ { "quota", "set", "a", "--max", "-1" },
		  "--max '-1': out of range; 0 .. 4611686018427387904 is right" },
		{ { "quota", "set", "a", "--max", "5", "--per", "999ms" },
		  "--per '999ms': out of range; 1s .. 31d is right" },
		{ { "quota", "set", "a", "--max", "5", "--per", "32d" },
		  "--per '32d': out of range; 1s .. 31d is right" },
		{ { "quota", "set", "a", "--max", "5", "--calendar", "year" },
		  "--calendar 'year': not a choice; one of day|week|month is" },
		{ { "quota", "set", "a", "--per", "1m", "--calendar", "day" },
		  "an option contradicts another: --calendar; it does not go with --per" },
		{ { "quota", "set", "a", "--rate", "1/s", "--max", "5" },
		  "an option contradicts another: --max; it does not go with --rate" },
		{ { "quota", "set", "a", "--per", "1m", "--low", "5" },
		  "an option contradicts another: --low; it does not go with --per" },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		char *err = NULL;

		assert_true(asprintf(&err, "rationctl: quota set: %s\n", cases[i].err) > 0);
		assert_run(run_words(NULL, cases[i].words), 2, "", err);
		free(err);
	}
	assert_int_equal(fake.n_opened, 0);
	/* An option that is given again: the last counts. */
	assert_run(RUN("quota", "set", "a", "--max", "5", "--max", "6", "--per", "1m", "--per",
		       "2m"),
		   0, "", "");
	assert_int_equal(only_rule()->limits.max, 6);
	fake.result = RATION_INVALID_ARGUMENT;
	fake.text = "a: min is 9, more than max, 5";
	assert_run(RUN("quota", "set", "a", "--max", "5", "--min", "9"), 2, "",
		   "rationctl: quota set: a: min is 9, more than max, 5\n");
}

/* ---- quota show, quota remove ---- */

static void some_rules(void)
{
	struct ration_limits limits = RATION_LIMITS_INIT;

	limits.has_max = true;
	limits.max = 50;
	limits.window = (struct ration_window){ RATION_PER, RATION_DAY, 60000 };
	fake_rule("requests/*", &limits, "/etc/rationd/rationd.conf:31");
	fake_rule("requests/acme", &limits, "/etc/rationd/rationd.conf:35");
	assert_run(RUN("quota", "set", "requests/acme", "--max", "40", "--per", "1m"), 0, "", "");
	assert_run(RUN("quota", "set", "requests/acme", "--max", "100", "--high", "40"), 0, "", "");
	assert_run(RUN("quota", "set", "requests", "--low", "500", "--min", "20"), 0, "", "");
	assert_run(RUN("quota", "set", "requests", "--rate", "100/s", "--burst", "50", "--shadow"),
		   0, "", "");
	assert_run(RUN("quota", "set", "requests", "--max", "2k", "--calendar", "day"), 0, "", "");
}

static void show_prints_all(void **state)
{
	(void)state;
	some_rules();
	assert_run(
		RUN("quota", "show"), 0,
		" max  high  low  min  window               from                                       rule\n"
		"   -     -  500   20  -                    run time                                   requests\n"
		"2000     -    -    -  calendar day         run time                                   requests\n"
		"  50     -    -    -  rate 100/1s, shadow  run time                                   requests\n"
		"  50     -    -    -  per 1m               /etc/rationd/rationd.conf:31               requests/*\n"
		" 100    40    -    -  -                    run time                                   requests/acme\n"
		"  40     -    -    -  per 1m               run time                                   requests/acme\n"
		"  50     -    -    -  per 1m               /etc/rationd/rationd.conf:35 (overridden)  requests/acme\n",
		"");
	assert_run(RUN("quota", "show", "requests/umbrella"), 0,
		   "max  high  low  min  window  from                          rule\n"
		   " 50     -    -    -  per 1m  /etc/rationd/rationd.conf:31  requests/*\n",
		   "");
	assert_run(
		RUN("--json", "quota", "show", "requests/umbrella"), 0,
		"{\"rules\": [{\"window\": \"per 1m\", \"max\": 50, \"high\": null, \"low\": 0, \"min\": 0, \"shadow\": false, "
		"\"duration_ms\": 60000, \"pattern\": \"requests/*\", \"layer\": \"file\", \"overridden\": false, "
		"\"source\": \"/etc/rationd/rationd.conf:31\"}]}\n",
		"");
}

static void show_of_nothing(void **state)
{
	(void)state;
	assert_run(RUN("quota", "show"), 0, "", "");
	assert_run(RUN_TERMINAL(NULL, "quota", "show"), 0, "", "(no limits are set)\n");
	assert_run(RUN("--json", "quota", "show"), 0, "{\"rules\": []}\n", "");
	some_rules();
	assert_run(RUN("quota", "show", "errors"), 3, "",
		   "rationctl: no limits for errors, nor below it\n");
	assert_run(
		RUN("--json", "quota", "show", "errors"), 3,
		"{\"rules\": [], \"error\": {\"status\": 3, \"code\": \"NOT_FOUND\", \"text\": \"no limits for errors, nor below "
		"it\"}}\n",
		"rationctl: no limits for errors, nor below it\n");
}

static void remove_removes(void **state)
{
	(void)state;
	some_rules();
	assert_run(RUN("quota", "remove", "requests/acme", "--per", "1m"), 0, "", "");
	assert_false(fake.removed_all);
	assert_int_equal(fake.removed.kind, RATION_PER);
	assert_int_equal(fake.removed.duration_ms, 60000);
	assert_run(
		RUN("quota", "remove", "requests/acme", "--per", "1m"), 3, "",
		"rationctl: requests/acme: no limits of the window per 1m were set at run time\n");
	assert_run(RUN("quota", "remove", "requests", "--calendar", "day"), 0, "", "");
	assert_int_equal(fake.removed.kind, RATION_CALENDAR);
	assert_run(RUN("quota", "remove", "requests", "--window", "rate"), 0, "", "");
	assert_int_equal(fake.removed.kind, RATION_RATE);
	assert_run(RUN("quota", "remove", "requests", "--window", "rate"), 3, "",
		   "rationctl: requests: no limits of the window rate were set at run time\n");
	assert_run(RUN("--json", "quota", "remove", "requests", "--window", "none"), 0,
		   "{\"removed\": \"requests\"}\n", "");
	assert_int_equal(fake.removed.kind, RATION_NO_WINDOW);
	assert_run(RUN("quota", "remove", "requests", "--window", "none"), 3, "",
		   "rationctl: requests: no limits without a window were set at run time\n");
	assert_run(RUN("quota", "remove", "requests/acme"), 0, "", "");
	assert_true(fake.removed_all);
	/* What the file says is not for us to remove. */
	assert_run(RUN("quota", "remove", "requests/*"), 3, "",
		   "rationctl: requests/*: no limits were set at run time\n");
	assert_run(
		RUN("quota", "remove", "a", "--window", "none", "--per", "1m"), 2, "",
		"rationctl: quota remove: an option contradicts another: --per; it does not go with --window\n");
}

/* ---- quota explain ---- */

static const struct ration_level some_levels[] = {
	{
		.path = "requests/acme/web",
		.limits = { .window = { RATION_PER, RATION_DAY, 60000 },
			    .has_max = true,
			    .max = 100 },
		.layer = RATION_FILE,
		.pattern = "requests/*/*",
		.source = "/etc/rationd/rationd.conf:31",
		.usage = 37,
		.peak = 88,
		.left = 63,
		.refusals = 3,
		.ends_in_ms = 12500,
	},
	{
		.path = "requests/acme",
		.limits = { .has_max = true,
			    .max = 1000,
			    .has_high = true,
			    .high = 800,
			    .low = 600,
			    .min = 500 },
		.layer = RATION_RUN_TIME,
		.pattern = "requests/acme",
		.source = "",
		.usage = 950,
		.peak = 990,
		.left = 50,
		.refusals = 12,
		.effective_min = 500,
		.effective_low = 550,
		.binds = true,
		.over_high = true,
	},
	{
		.path = "requests",
		.limits = { .has_max = true, .max = 1000, .shadow = true },
		.layer = RATION_FILE,
		.pattern = "requests",
		.source = "/etc/rationd/rationd.conf:12",
		.usage = 1043,
		.peak = 1043,
		.left = 0,
		.forced = 43,
		.effective_min = 0,
		.over_max = true,
	},
	{
		.path = "requests",
		.limits = { .window = { RATION_RATE, RATION_DAY, 0 },
			    .rate = 100,
			    .per_ms = 1000,
			    .burst = 500 },
		.layer = RATION_RUN_TIME,
		.pattern = "requests",
		.source = "",
		.usage = 80,
		.peak = 120,
		.left = 420,
	},
};

static const struct ration_sibling some_siblings[] = {
	{ "requests/umbrella", 900, 0, 100 },
	{ "requests/acme/m\tail", 60, 5, 5 },
};

static const struct ration_leased some_leases[] = {
	{ "requests/acme/web", "libration/0.1.0", 100, 12000 },
	{ "requests/acme/web", "\033[1mmine", 7, 0 },
};

static const struct ration_explanation some_explanation = {
	.n_levels = N_ELEMENTS(some_levels),
	.levels = some_levels,
	.n_siblings = N_ELEMENTS(some_siblings),
	.siblings = some_siblings,
	.n_siblings_omitted = 4,
	.n_leases = N_ELEMENTS(some_leases),
	.leases = some_leases,
	.n_leases_omitted = 1,
};

static void explain_explains(void **state)
{
	(void)state;
	fake_some_counts();
	fake.explanation = &some_explanation;
	assert_run(
		RUN("quota", "explain", "requests/acme/web"), 0,
		"requests/acme/web: 50 more fit; the least is left at requests/acme: max 1000\n"
		"\n"
		"usage   max  left  high  peak  refused  forced  window                     state             path\n"
		"   37   100    63     -    88        3       0  per 1m, ends in 12s 500ms                    requests/acme/web\n"
		"  950  1000    50   800   990       12       0  -                          binds, over high  requests/acme\n"
		" 1043  1000     0     -  1043        0      43  -, shadow                  over max          requests\n"
		"   80   500   420     -   120        0       0  rate 100/1s                                  requests\n"
		"\n"
		"protected against siblings:\n"
		"usage  min  effective  low  effective  path\n"
		"  950  500        500  600        550  requests/acme\n"
		"\n"
		"siblings that use more than is protected of them:\n"
		"usage  effective min  effective low  path\n"
		"  900              0            100  requests/umbrella\n"
		"   60              5              5  requests/acme/m\\x09ail\n"
		"and 4 more\n"
		"\n"
		"leases:\n"
		"units  expires  holder           path\n"
		"  100  in 12s   libration/0.1.0  requests/acme/web\n"
		"    7  expired  \\x1b[1mmine      requests/acme/web\n"
		"and 1 more\n"
		"\n"
		"rules:\n"
		"window       from                          rule\n"
		"per 1m       /etc/rationd/rationd.conf:31  requests/*/*\n"
		"-            run time                      requests/acme\n"
		"-, shadow    /etc/rationd/rationd.conf:12  requests\n"
		"rate 100/1s  run time                      requests\n",
		"");
}

static void explain_in_one_line(void **state)
{
	struct ration_level level = some_levels[1];
	struct ration_explanation explanation = { .n_levels = 1, .levels = &level };
	char *out = NULL;

	(void)state;
	fake_some_counts();
	/* No limit at all. */
	assert_run(RUN("quota", "explain", "errors"), 0, "errors: no limit refuses anything\n", "");
	fake.explanation = &explanation;
	level.left = 0;
	level.usage = 1000;
	out = RUN("quota", "explain", "requests/acme")->out;
	assert_memory_equal(
		out,
		"requests/acme: nothing more fits; nothing is left at requests/acme: max 1000\n",
		76);
	level.limits.window = (struct ration_window){ RATION_CALENDAR, RATION_MONTH, 0 };
	level.left = 1;
	out = RUN("quota", "explain", "requests/acme")->out;
	assert_memory_equal(
		out,
		"requests/acme: 1 more fit; the least is left at requests/acme: max 1000 per calendar month\n",
		90);
	level = some_levels[3];
	level.binds = true;
	out = RUN("quota", "explain", "requests/acme")->out;
	assert_memory_equal(
		out,
		"requests/acme: 420 more fit; the least is left at requests: burst 500 (rate)\n",
		76);
	assert_run(RUN("quota", "explain", "nothing"), 3, "", "rationctl: no such path: nothing\n");
}

static void explain_prints_json(void **state)
{
	struct ration_explanation explanation = some_explanation;

	(void)state;
	fake_some_counts();
	explanation.n_levels = 1;
	explanation.n_siblings = 1;
	explanation.n_leases = 1;
	fake.explanation = &explanation;
	assert_run(
		RUN("--json", "quota", "explain", "requests/acme/web"), 0,
		"{\"path\": \"requests/acme/web\", \"levels\": [{\"path\": \"requests/acme/web\", \"window\": \"per 1m\", \"max\": 100, "
		"\"high\": null, \"low\": 0, \"min\": 0, \"shadow\": false, \"duration_ms\": 60000, \"usage\": 37, \"left\": 63, "
		"\"peak\": 88, \"refusals\": 3, \"forced\": 0, \"effective_min\": 0, \"effective_low\": 0, \"binds\": false, "
		"\"over_high\": false, \"over_max\": false, \"ends_in_ms\": 12500, \"layer\": \"file\", \"rule\": \"requests/*/*\", "
		"\"source\": \"/etc/rationd/rationd.conf:31\"}], "
		"\"siblings\": [{\"path\": \"requests/umbrella\", \"usage\": 900, \"effective_min\": 0, \"effective_low\": 100}], "
		"\"siblings_omitted\": 4, "
		"\"leases\": [{\"path\": \"requests/acme/web\", \"agent\": \"libration/0.1.0\", \"units\": 100, \"expires_in_ms\": "
		"12000}], \"leases_omitted\": 1}\n",
		"");
}

/* ---- charge ---- */

static void charge_charges(void **state)
{
	(void)state;
	fake_some_counts();
	assert_run(RUN("charge", "errors"), 0, "", "");
	assert_string_equal(fake.charged, "errors 1");
	assert_true(fake.charge_options.detached);
	assert_false(fake.charge_options.dry_run);
	assert_int_equal(fake.charge_options.wait_ms, 0);
	assert_int_equal(fake.options.session_lifetime_ms, 0);
	assert_run(RUN("charge", "errors", "2k"), 0, "", "");
	assert_string_equal(fake.charged, "errors 2000");
	assert_run(
		RUN("charge", "a", "b", "+3", "c/d", "5x/y", "4"), 2, "",
		"rationctl: charge: N '5x/y': not a number's suffix; k M G T and Ki Mi Gi Ti are\n");
	assert_run(RUN("charge", "a", "b", "+3", "c/d", "1", "5x/y", "4"), 0, "", "");
	assert_string_equal(fake.charged, "a 1, b 3, c/d 1, 5x/y 4");
	assert_int_equal(fake_own("errors"), 2008);
	assert_run(RUN("--json", "charge", "errors", "5", "a"), 0,
		   "{\"granted\": true, \"items\": [{\"path\": \"errors\", \"n\": 5}, "
		   "{\"path\": \"a\", \"n\": 1}], \"bindings\": [], \"omitted\": 0}\n",
		   "");
}

static void charge_to_the_edge(void **state)
{
	(void)state;
	assert_run(RUN("quota", "set", "jobs", "--max", "10"), 0, "", "");
	assert_run(RUN("charge", "jobs/a", "7"), 0, "", "");
	assert_run(
		RUN("charge", "jobs/b", "4"), 1, "",
		"rationctl: jobs/b 4: refused by jobs: max 10, usage 7, left 3; retry: when something is given back\n");
	assert_run(RUN("charge", "jobs/b", "3"), 0, "", "");
	assert_run(
		RUN("charge", "jobs/b"), 1, "",
		"rationctl: jobs/b 1: refused by jobs: max 10, usage 10, left 0; retry: when something is given back\n");
	assert_run(RUN("uncharge", "jobs/a", "2"), 0, "", "");
	assert_run(RUN("charge", "jobs/b"), 0, "", "");
	assert_run(
		RUN("uncharge", "jobs/a", "6"), 5, "",
		"rationctl: jobs/a: the daemon answered FAILED_PRECONDITION: not so much is held there\n");
	assert_run(RUN("--json", "uncharge", "jobs/a"), 0, "{\"path\": \"jobs/a\", \"n\": 1}\n",
		   "");
	assert_run(RUN("uncharge", "nothing"), 3, "", "rationctl: no such path: nothing\n");
	assert_int_equal(fake_own("jobs/a"), 4);
}

static void charge_dry(void **state)
{
	(void)state;
	assert_run(RUN("quota", "set", "jobs", "--max", "10"), 0, "", "");
	assert_run(RUN("charge", "--dry-run", "jobs/a", "10"), 0, "", "");
	assert_true(fake.charge_options.dry_run);
	assert_run(RUN_TERMINAL(NULL, "charge", "--dry-run", "jobs/a", "10"), 0, "",
		   "(it would be granted)\n");
	assert_run(
		RUN("charge", "--dry-run", "jobs/a", "11"), 1, "",
		"rationctl: jobs/a 11: refused by jobs: max 10, usage 0, left 10; retry: when something is given back\n");
	assert_int_equal(fake_own("jobs/a"), 0);
}

static void charge_waits(void **state)
{
	(void)state;
	assert_run(RUN("charge", "--wait", "a"), 0, "", "");
	assert_int_equal(fake.charge_options.wait_ms, UINT32_MAX);
	assert_run(RUN("charge", "--wait=1500ms", "a"), 0, "", "");
	assert_int_equal(fake.charge_options.wait_ms, 1500);
	assert_run(RUN("charge", "a", "--wait=1d"), 0, "", "");
	assert_int_equal(fake.charge_options.wait_ms, 86400000);
	assert_run(RUN("charge", "a", "--wait=25h"), 2, "",
		   "rationctl: charge: --wait '25h': out of range; 0 .. 1d is right\n");
	assert_run(
		RUN("charge", "--wait", "30s", "a"), 2, "",
		"rationctl: charge: a value stands apart from its option: --wait 30s; --wait=30s is right\n");
	assert_run(
		RUN("charge", "--wait", "--dry-run", "a"), 2, "",
		"rationctl: charge: an option contradicts another: --dry-run; it does not go with --wait\n");
}

static const struct ration_binding all_bindings[] = {
	{ RATION_BINDS_MAX, "a/b", { RATION_PER, RATION_DAY, 60000 }, 100, 98, 2, 12250 },
	{ RATION_BINDS_MAX, "a", { RATION_CALENDAR, RATION_MONTH, 0 }, 1000, 999, 1, 86400000 },
	{ RATION_BINDS_RATE, "a", { RATION_RATE, RATION_DAY, 0 }, 50, 48, 2, 1 },
	{ RATION_BINDS_MAX, "a\033", { RATION_NO_WINDOW, RATION_DAY, 0 }, 3, 0, 3, -1 },
	{ RATION_WOULD_REFUSE, "a", { RATION_NO_WINDOW, RATION_DAY, 0 }, 3, 0, 3, -1 },
};

static void charge_says_why_it_is_refused(void **state)
{
	const struct ration_charge_result refused = { .n_bindings = N_ELEMENTS(all_bindings),
						      .bindings = all_bindings,
						      .n_omitted = 7 };
	const struct ration_charge_result bare = { .granted = false };

	(void)state;
	fake.answer = &refused;
	assert_run(
		RUN("charge", "a/b", "5"), 1, "",
		"rationctl: a/b 5: refused by a/b: max 100 per 1m, usage 98, left 2; retry: in 12s 250ms\n"
		"rationctl: a/b 5: refused by a: max 1000 per calendar month, usage 999, left 1; retry: in 1d\n"
		"rationctl: a/b 5: refused by a: burst 50 (rate), usage 48, left 2; retry: in 1ms\n"
		"rationctl: a/b 5: refused by a\\x1b: max 3, usage 0, left 3; retry: never\n"
		"rationctl: a/b 5: a shadow limit would have refused: a: max 3, usage 0, left 3\n"
		"rationctl: a/b 5: and 7 more limits\n");
	assert_run(
		RUN("--json", "charge", "a/b", "5", "c"), 1,
		"{\"granted\": false, \"items\": [{\"path\": \"a/b\", \"n\": 5}, {\"path\": \"c\", \"n\": 1}], \"bindings\": ["
		"{\"kind\": \"max\", \"path\": \"a/b\", \"window\": \"per 1m\", \"limit\": 100, \"usage\": 98, \"left\": 2, "
		"\"retry_after_ms\": 12250}, "
		"{\"kind\": \"max\", \"path\": \"a\", \"window\": \"calendar month\", \"limit\": 1000, \"usage\": 999, \"left\": 1, "
		"\"retry_after_ms\": 86400000}, "
		"{\"kind\": \"rate\", \"path\": \"a\", \"window\": \"rate\", \"limit\": 50, \"usage\": 48, \"left\": 2, "
		"\"retry_after_ms\": 1}, "
		"{\"kind\": \"max\", \"path\": \"a\\\\x1b\", \"window\": null, \"limit\": 3, \"usage\": 0, \"left\": 3, "
		"\"retry_after_ms\": -1}, "
		"{\"kind\": \"shadow\", \"path\": \"a\", \"window\": null, \"limit\": 3, \"usage\": 0, \"left\": 3}], \"omitted\": 7, "
		"\"error\": {\"status\": 1, \"code\": \"RESOURCE_EXHAUSTED\", \"text\": \"these 2 together: refused by a/b: max 100 per "
		"1m, usage 98, left 2; retry: in 12s 250ms\"}}\n",
		"rationctl: these 2 together: refused by a/b: max 100 per 1m, usage 98, left 2; retry: in 12s 250ms\n"
		"rationctl: these 2 together: refused by a: max 1000 per calendar month, usage 999, left 1; retry: in 1d\n"
		"rationctl: these 2 together: refused by a: burst 50 (rate), usage 48, left 2; retry: in 1ms\n"
		"rationctl: these 2 together: refused by a\\x1b: max 3, usage 0, left 3; retry: never\n"
		"rationctl: these 2 together: a shadow limit would have refused: a: max 3, usage 0, left 3\n"
		"rationctl: these 2 together: and 7 more limits\n");
	/* Whoever refuses without a reason refuses all the same. */
	fake.answer = &bare;
	assert_run(RUN("charge", "a"), 1, "", "rationctl: a 1: refused\n");
}

static void charge_is_granted_with_remarks(void **state)
{
	static const struct ration_binding bindings[] = {
		{ RATION_OVER_HIGH, "a", { RATION_NO_WINDOW, RATION_DAY, 0 }, 8, 9, 1, 0 },
		{ RATION_OVER_HIGH, "a", { RATION_PER, RATION_DAY, 60000 }, 8, 9, INT64_MAX, 0 },
		{ RATION_WOULD_REFUSE, "a", { RATION_RATE, RATION_DAY, 0 }, 5, 5, 0, 100 },
	};
	const struct ration_charge_result granted = { .granted = true,
						      .n_bindings = N_ELEMENTS(bindings),
						      .bindings = bindings };

	(void)state;
	fake.answer = &granted;
	assert_run(
		RUN("charge", "a/b"), 0, "",
		"rationctl: a/b 1: over high at a: high 8, usage 9, left 1\n"
		"rationctl: a/b 1: over high at a: high 8 per 1m, usage 9\n"
		"rationctl: a/b 1: a shadow limit would have refused: a: burst 5 (rate), usage 5, left 0\n");
	assert_int_equal(RUN("--json", "charge", "a/b")->status, 0);
	assert_non_null(strstr(
		RUN("--json", "charge", "a/b")->out,
		"{\"kind\": \"high\", \"path\": \"a\", \"window\": \"per 1m\", \"limit\": 8, \"usage\": 9, \"left\": null}"));
}

static void charge_says_what_is_wrong(void **state)
{
	(void)state;
	assert_run(
		RUN("charge"), 2, "",
		"rationctl: charge: an argument is missing; rationctl charge PATH [N]... is right\n");
	assert_run(RUN("charge", "a", "0"), 2, "",
		   "rationctl: charge: N '0': out of range; 1 .. 4611686018427387904 is right\n");
	assert_run(RUN("charge", "a", "-5"), 2, "",
		   "rationctl: charge: N '-5': out of range; 1 .. 4611686018427387904 is right\n");
	assert_run(
		RUN("charge", "a", "4611686018427387905"), 2, "",
		"rationctl: charge: N '4611686018427387905': out of range; 1 .. 4611686018427387904 is right\n");
	assert_run(
		RUN("charge", "a", "9223372036854775808"), 2, "",
		"rationctl: charge: N '9223372036854775808': beyond 64 bits; -9223372036854775808 .. 9223372036854775807 is the "
		"range\n");
	assert_run(
		RUN("charge", "a", "1.5"), 2, "",
		"rationctl: charge: N '1.5': not a whole number; give one like 12, -3, 4k or 2Mi\n");
	assert_run(RUN("uncharge", "a", "0"), 2, "",
		   "rationctl: uncharge: N '0': out of range; 1 .. 4611686018427387904 is right\n");
	assert_run(RUN("charge", "-", "5"), 2, "",
		   "rationctl: charge: '-' takes no N; each line has its own\n");
	assert_int_equal(fake.n_charges, 0);
	assert_run(RUN("charge", "a", "4611686018427387904"), 0, "", "");
	assert_run(RUN("charge", "a//b"), 2, "", "rationctl: a//b 1: not a path\n");
	fake.text = "nobody declared, counted or limited it";
	fake.charge_result = RATION_NOT_FOUND;
	assert_run(RUN("charge", "a"), 3, "",
		   "rationctl: a 1: nobody declared, counted or limited it\n");
	/* Not a quota's word: nothing is known of what it refused. */
	fake.charge_result = RATION_RESOURCE_EXHAUSTED;
	fake.text = "there are as many counters as there may be";
	assert_run(
		RUN("charge", "a"), 5, "",
		"rationctl: the daemon answered RESOURCE_EXHAUSTED: there are as many counters as there may be\n");
}

/* ---- charge - ---- */

static void charge_reads_lines(void **state)
{
	const char *input = "jobs/a 5\n# no\n\njobs/b 9\njobs/a b 4\njobs/c\n";

	(void)state;
	assert_run(RUN("quota", "set", "jobs", "--max", "10"), 0, "", "");
	assert_run(
		RUN_INPUT(input, "charge", "-"), 1,
		"granted\t5\tjobs/a\n"
		"refused\t9\tjobs/b\trefused by jobs: max 10, usage 5, left 5; retry: when something is given back\n"
		"granted\t4\tjobs/a b\n"
		"granted\t1\tjobs/c\n",
		"rationctl: 1 of 4 charges were refused\n");
	assert_true(fake.charge_options.detached);
	assert_int_equal(fake_own("jobs/a b"), 4);
	assert_run(RUN_INPUT("", "charge", "-"), 0, "", "");
	assert_run(
		RUN_INPUT("jobs/a x\njobs//b 1\nerrors 1\n", "charge", "-"), 2,
		"granted\t1\terrors\n",
		"rationctl: line 1: N 'x': not a number; give one like 12, -3, 4k or 2Mi (a line is PATH N, or PATH if no blank is "
		"in it)\n"
		"rationctl: line 2: not a path\n");
	assert_run(
		RUN_INPUT("jobs/b 2\nerrors 1\nbad x\n", "charge", "-", "--json", "--dry-run"), 2,
		"{\"lines\": 3, \"granted\": 1, \"refused\": 1, \"refusals\": [{\"line\": 1, \"path\": \"jobs/b\", \"n\": 2, "
		"\"bindings\": [{\"kind\": \"max\", \"path\": \"jobs\", \"window\": null, \"limit\": 10, \"usage\": 10, \"left\": 0, "
		"\"retry_after_ms\": 0}]}], \"bad\": 1, \"bad_lines\": [{\"line\": 3, \"text\": \"N 'x': not a number; give one like "
		"12, -3, 4k or 2Mi (a line is PATH N, or PATH if no blank is in it)\"}], \"error\": {\"status\": 2, \"code\": "
		"\"INVALID_ARGUMENT\", \"text\": \"line 3: N 'x': not a number; give one like 12, -3, 4k or 2Mi (a line is PATH N, or "
		"PATH if no blank is in it)\"}}\n",
		"rationctl: line 3: N 'x': not a number; give one like 12, -3, 4k or 2Mi (a line is PATH N, or PATH if no blank is "
		"in it)\n"
		"rationctl: 1 of 2 charges were refused\n");
	assert_int_equal(fake_own("errors"), 1);
}

static void charge_ends_at_a_signal(void **state)
{
	struct cli cli = { 0 };
	char *argv[] = { (char[]){ "rationctl" }, (char[]){ "charge" }, (char[]){ "-" }, NULL };
	int ends[2];
	sigset_t set;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "a 1\n", 4), 4);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	assert_int_equal(raise(SIGTERM), 0);
	cli = (struct cli){ .in = ends[0], .out = stdout, .err = stderr };
	assert_int_equal(cli_run(&cli, 3, argv), 0);
	assert_int_equal(cli.signal, SIGTERM);
	assert_int_equal(fake.n_charges, 0);
	assert_int_equal(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
	assert_int_equal(close(ends[0]), 0);
	assert_int_equal(close(ends[1]), 0);
}

/* ---- get --check, tree ---- */

static void get_checks(void **state)
{
	(void)state;
	fake_some_counts();
	assert_run(RUN("quota", "set", "requests/acme", "--max", "43", "--high", "1"), 0, "", "");
	/* Exactly at max is not over it, nor is over high. */
	assert_run(RUN("get", "--check", "requests/acme/web"), 0, "12  requests/acme/web\n", "");
	fake_count("requests/acme/mail", 1);
	assert_run(RUN("get", "--check", "requests/acme/web", "errors", "requests/acme"), 1,
		   "12  requests/acme/web\n"
		   " 7  errors\n"
		   "44  requests/acme\n",
		   "rationctl: requests/acme/web: over max at requests/acme: max 43, usage 44\n"
		   "rationctl: requests/acme: over max at requests/acme: max 43, usage 44\n");
	assert_run(RUN("get", "requests/acme"), 0, "44  requests/acme\n", "");
	assert_run(RUN("get", "--check", "nothing", "requests/acme"), 3, "44  requests/acme\n",
		   "rationctl: no such path: nothing\n"
		   "rationctl: requests/acme: over max at requests/acme: max 43, usage 44\n");
	assert_run(
		RUN("--json", "get", "--check", "requests/acme"), 1,
		"{\"values\": [{\"path\": \"requests/acme\", \"kind\": \"counter\", \"leaf\": false, \"own\": 1, \"total\": 44}], "
		"\"error_bound\": 0, \"age_ms\": 0, \"error\": {\"status\": 1, \"code\": \"RESOURCE_EXHAUSTED\", \"text\": "
		"\"requests/acme: over max at requests/acme: max 43, usage 44\"}}\n",
		"rationctl: requests/acme: over max at requests/acme: max 43, usage 44\n");
	/* What is only tried out. */
	assert_run(RUN("quota", "set", "requests/acme", "--max", "43", "--shadow"), 0, "", "");
	assert_run(RUN("get", "--check", "requests/acme"), 0, "44  requests/acme\n", "");
}

static void tree_shows_limits_to_people(void **state)
{
	(void)state;
	fake_some_counts();
	some_rules();
	fake.n_explained = 0;
	assert_run(RUN_TERMINAL(NULL, "tree"), 0,
		   "total   own              usage  limit                    path\n"
		   "    7     7                                              errors\n"
		   " 1043     0  █████▏       1043   2000  max calendar day  requests\n"
		   "   43     1  ██████████     43     40  max per 1m        ├── acme\n"
		   "   30    30                                              │   ├── mail\n"
		   "   12    12                                              │   └── web\n"
		   " 1000  1000  ██████████   1000     50  max per 1m        └── umbrella\n",
		   "");
	/* One question for each node with a rule that has none below it. */
	assert_int_equal(fake.n_explained, 2);
	assert_run(RUN("tree", "--limits", "requests/acme"), 0,
		   "total  own              usage  limit              path\n"
		   "   43    1  ##########     43     40  max per 1m  requests/acme\n"
		   "   30   30                                          mail\n"
		   "   12   12                                          web\n",
		   "");
	/* Where nobody watches it is as ever. */
	assert_run(RUN("tree", "requests/acme"), 0,
		   "total  own  path\n"
		   "   43    1  requests/acme\n"
		   "   30   30    mail\n"
		   "   12   12    web\n",
		   "");
	assert_run(
		RUN("--json", "tree", "requests/acme", "--depth", "0"), 0,
		"{\"path\": \"requests/acme\", \"nodes\": [{\"path\": \"requests/acme\", \"depth\": 2, \"kind\": \"counter\", "
		"\"leaf\": false, \"own\": 1, \"total\": 43, \"limits\": ["
		"{\"window\": \"per 1m\", \"max\": 50, \"high\": null, \"low\": 0, \"min\": 0, \"shadow\": false, \"duration_ms\": 60000, "
		"\"usage\": 43, \"left\": 7}, "
		"{\"window\": \"per 1m\", \"max\": 40, \"high\": null, \"low\": 0, \"min\": 0, \"shadow\": false, \"duration_ms\": 60000, "
		"\"usage\": 43, \"left\": 0}, "
		"{\"window\": null, \"max\": 100, \"high\": 40, \"low\": 0, \"min\": 0, \"shadow\": false, \"usage\": 43, \"left\": 57}]}], "
		"\"error_bound\": 0, \"age_ms\": 0}\n",
		"");
}

static void bars(void **state)
{
	char bar[STANDING_BAR_BYTES];

	(void)state;
	assert_string_equal(standing_bar(0, 80, true, bar), "          ");
	assert_string_equal(standing_bar(1, 80, true, bar), "▏         ");
	assert_string_equal(standing_bar(44, 80, true, bar), "█████▌    ");
	assert_string_equal(standing_bar(80, 80, true, bar), "██████████");
	assert_string_equal(standing_bar(1, 1000000, true, bar), "▏         ");
	assert_string_equal(standing_bar(999999, 1000000, true, bar), "█████████▉");
	assert_string_equal(standing_bar(-5, 80, true, bar), "          ");
	assert_string_equal(standing_bar(81, 80, true, bar), "██████████");
	assert_string_equal(standing_bar(0, 0, true, bar), "██████████");
	assert_string_equal(standing_bar(INT64_MAX - 1, INT64_MAX, true, bar), "█████████▉");
	assert_string_equal(standing_bar(0, 10, false, bar), "..........");
	assert_string_equal(standing_bar(1, 1000, false, bar), "#.........");
	assert_string_equal(standing_bar(999, 1000, false, bar), "#########.");
	assert_string_equal(standing_bar(1000, 1000, false, bar), "##########");
}

/* ---- what a daemon can do wrong ---- */

static void every_failure(void **state)
{
	static const char *const commands[][6] = {
		{ "quota", "set", "a", "--max", "1" },
		{ "quota", "show" },
		{ "quota", "explain", "a" },
		{ "quota", "remove", "a" },
		{ "charge", "a" },
		{ "uncharge", "a" },
		{ "run", "--charge", "a", "--", "true" },
		{ "tree", "--limits" },
	};
	static const struct {
		int result;
		int status;
		const char *err;
	} failures[] = {
		{ -ENOTCONN, 4,
		  "rationctl: no daemon at unix:/run/rationd/rationd.sock: why; is rationd running? --socket URL says where\n" },
		{ -ETIMEDOUT, 4,
		  "rationctl: the daemon at unix:/run/rationd/rationd.sock did not answer within 10s; --timeout allows more\n" },
		{ -ENOMEM, 6, "rationctl: why\n" },
	};

	(void)state;
	fake.text = "why";
	for (size_t i = 0; i < N_ELEMENTS(commands); i++) {
		for (size_t j = 0; j < N_ELEMENTS(failures); j++) {
			fake.result = failures[j].result;
			assert_run(run_words(NULL, commands[i]), failures[j].status, "",
				   failures[j].err);
		}
		fake.result = RATION_INTERNAL;
		assert_int_equal(run_words(NULL, commands[i])->status, 5);
		assert_non_null(strstr(run_words(NULL, commands[i])->err,
				       "the daemon answered INTERNAL: why\n"));
	}
	fake.result = -ENOTCONN;
	assert_run(
		RUN_INPUT("a\nb\n", "charge", "-"), 4, "",
		"rationctl: no daemon at unix:/run/rationd/rationd.sock: why; is rationd running? --socket URL says where\n");
	assert_int_equal(fake.n_charges, 1 + 5 + 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, run_setup, run_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(set_sets),
		TEST(set_takes_windows),
		TEST(set_prints_json_and_notes),
		TEST(set_says_what_is_wrong),
		TEST(show_prints_all),
		TEST(show_of_nothing),
		TEST(remove_removes),
		TEST(explain_explains),
		TEST(explain_in_one_line),
		TEST(explain_prints_json),
		TEST(charge_charges),
		TEST(charge_to_the_edge),
		TEST(charge_dry),
		TEST(charge_waits),
		TEST(charge_says_why_it_is_refused),
		TEST(charge_is_granted_with_remarks),
		TEST(charge_says_what_is_wrong),
		TEST(charge_reads_lines),
		TEST(charge_ends_at_a_signal),
		TEST(get_checks),
		TEST(tree_shows_limits_to_people),
		TEST(bars),
		TEST(every_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
