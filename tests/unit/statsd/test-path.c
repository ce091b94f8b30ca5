#include "daemon/statsd/path.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct statsd_levels *levels;

/* The path, or the reason's name in brackets. */
static const char *path_of(const char *name, const char *tags, unsigned *ret_dropped)
{
	static char text[PATH_MAX_BYTES + 1];
	char path[PATH_MAX_BYTES];
	size_t len = 0;
	enum statsd_reason reason = statsd_path(name, strlen(name), tags, strlen(tags), levels,
						path, &len, ret_dropped);

	if (reason != STATSD_OK) {
		(void)snprintf(text, sizeof(text), "(%s)", statsd_reason_name(reason));
	} else {
		assert_int_equal(path_check(path, len, NULL), PATH_OK);
		(void)snprintf(text, sizeof(text), "%.*s", (int)len, path);
	}
	return text;
}

static void expect(const char *name, const char *tags, const char *path, unsigned n_dropped)
{
	unsigned dropped = 0;

	assert_string_equal(path_of(name, tags, &dropped), path);
	assert_int_equal(dropped, n_dropped);
}

static void test_tags(void **state)
{
	(void)state;
	levels = NULL;
	expect("a", "", "a", 0);
	expect("a.b/c", "", "a/b/c", 0);
	expect("a", "y:2,x:1", "a/x=1/y=2", 0);
	expect("a", "x:1,x:2", "a/x=2", 0);
	expect("a", "#x:1,,#,:v,bare,", "a/bare=/x=1", 0);
	expect("a", "ab:1,a:2,b:3", "a/a=2/ab=1/b=3", 0);
	expect("a", "url:http://x/%?a=b", "a/url=http:%2F%2Fx%2F%25?a=b", 0);
	expect("a", "k=v:1", "a/k%3Dv=1", 0);
	expect("a", " k : v ", "a/%20k = v%20", 0);
	expect("\xc2\xa0"
	       "a\xe3\x80\x80.b",
	       "",
	       "%C2%A0"
	       "a%E3%80%80/b",
	       0);
}

static void test_levels(void **state)
{
	static const char config_text[] =
		"[metric requests]\nlevels = host, route\n[metric z]\nlevels = one\n[metric plain]\nkind = counter\n";
	struct config_report report = { 0 };
	struct config *config = NULL, *other = NULL;
	struct statsd_levels *made;

	(void)state;
	assert_int_equal(config_load_text("f", config_text, strlen(config_text), &report, &config),
			 0);
	made = statsd_levels_new(config, 7);
	assert_non_null(made);
	assert_int_equal(made->generation, 7);
	levels = made;
	expect("requests", "route:/a,host:h", "requests/h/%2Fa", 0);
	expect("requests", "route:/a,x:1,y", "requests/-/%2Fa", 2);
	expect("requests", "host:,route", "requests/-/-", 0);
	expect("requests", "host:a,host:b", "requests/b/-", 0);
	expect("requests", "host:.,route:..", "requests/%2E/%2E.", 0);
	expect("requests", "host:*,route:**", "requests/%2A/%2A*", 0);
	expect("requests", "", "requests/-/-", 0);
	/* A segment of the name stands for its level. */
	expect("requests.h", "route:r,host:x", "requests/h/r", 1);
	expect("requests.h.r", "route:x", "requests/h/r", 1);
	expect("requests.h.r.more", "", "requests/h/r/more", 0);
	expect("z", "one:1", "z/1", 0);
	expect("plain", "one:1", "plain/one=1", 0);
	expect("request", "one:1", "request/one=1", 0);
	expect("requestss", "one:1", "requestss/one=1", 0);
	/* Which of two configurations differ. */
	assert_int_equal(config_load_text("f", "", 0, &report, &other), 0);
	assert_true(statsd_levels_differ(config, other));
	assert_true(statsd_levels_differ(other, config));
	assert_false(statsd_levels_differ(config, config));
	levels = NULL;
	free(made);
	(void)config_free(other);
	(void)config_free(config);
}

/* What would be too long is cut, and still told from what begins alike. */
static void test_long_segments(void **state)
{
	char name[256], one[PATH_MAX_BYTES], tags[1024];

	(void)state;
	levels = NULL;
	(void)snprintf(name, sizeof(name), "%0*d", (int)PATH_MAX_SEGMENT, 0);
	expect(name, "", name, 0);
	(void)snprintf(name, sizeof(name), "%0255d", 1);
	(void)snprintf(one, sizeof(one), "%s", path_of(name, "", &(unsigned){ 0 }));
	assert_int_equal(strlen(one), PATH_MAX_SEGMENT);
	assert_int_equal(one[111], '~');
	(void)snprintf(name, sizeof(name), "%0255d", 2);
	assert_string_not_equal(path_of(name, "", &(unsigned){ 0 }), one);
	/* Not in the middle of a character, and blanks at the ends all the same. */
	for (size_t len = 100; len < 140; len++) {
		(void)snprintf(
			tags, sizeof(tags), "%.*s\xc3\xa9\xc3\xa9\xe3\x80\x80:%.*s ", (int)len,
			"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
			"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk",
			(int)(len % 7), "vvvvvvv");
		(void)path_of("a", tags, &(unsigned){ 0 });
	}
}

static void test_too_much(void **state)
{
	char tags[4096];
	size_t len = 0;

	(void)state;
	levels = NULL;
	for (int i = 0; i < 15; i++) {
		len += (size_t)snprintf(tags + len, sizeof(tags) - len, "k%d:v,", i);
	}
	assert_string_not_equal(path_of("a", tags, &(unsigned){ 0 }), "(name_too_long)");
	expect("a.b", tags, "(name_too_long)", 0);
	(void)snprintf(tags + len, sizeof(tags) - len, "k15:v");
	expect("a", tags, "(name_too_long)", 0);
	/* The same key again is no other tag. */
	(void)snprintf(tags + len, sizeof(tags) - len, "k14:v");
	assert_string_not_equal(path_of("a", tags, &(unsigned){ 0 }), "(name_too_long)");
	expect("a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a", "", "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a", 0);
	expect("a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a", "", "(name_too_long)", 0);
	(void)snprintf(tags, sizeof(tags), "a:%0100d,b:%0100d,c:%0100d,d:%0100d,e:%0100d", 0, 0, 0,
		       0, 0);
	expect("a", tags, "(name_too_long)", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tags),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_long_segments),
		cmocka_unit_test(test_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
