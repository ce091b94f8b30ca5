/* labels: as they should be, and no two series the same, whatever paths there are. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/expose/labels.h"
#include "tests/unit/expose/sink.h"

struct world {
	const char *paths[64];
	size_t n;
	unsigned asked;
};

static bool exists(void *ctx, const char *path, size_t len)
{
	struct world *world = ctx;

	world->asked++;
	for (size_t i = 0; i < world->n; i++) {
		/* Every prefix of a path is a counter too. */
		if (strncmp(world->paths[i], path, len) == 0 &&
		    (world->paths[i][len] == '\0' || world->paths[i][len] == '/')) {
			return true;
		}
	}
	return false;
}

static const struct sheet_family family = {
	.name = "m", .name_len = 1, .type = SHEET_GAUGE, .help = "", .unit = ""
};

/* The labels of a path, as text that is good until the next call. */
static const char *labels_of(struct world *world, const char *levels_text, const char *path)
{
	static char text[8192];
	static struct sheet sheet;
	struct sink sink = { 0 };
	struct levels levels;

	levels_init(&levels, levels_text);
	sheet_init(&sheet, SHEET_TEXT, sink_take, &sink);
	labels_put(&sheet, &levels, path, strlen(path), strcspn(path, "/"), exists, world);
	sheet_sample(&sheet, &family, 0);
	sheet_end(&sheet);
	(void)snprintf(text, sizeof(text), "%.*s", (int)(sink.len - 4), sink.text + 1);
	sink_clear(&sink);
	return text;
}

static void expect(const char *levels, const char *path, const char *expected)
{
	struct world world = { .paths = { path }, .n = 1 };

	assert_string_equal(labels_of(&world, levels, path), expected);
}

static void test_alone(void **state)
{
	(void)state;
	expect("", "m", "");
	expect("", "m/a", "{path=\"a\"}");
	expect("", "m/a/b", "{path=\"a/b\"}");
	expect("", "m/tenant=acme/service=web", "{tenant=\"acme\",service=\"web\"}");
	expect("", "m/tenant=acme/web", "{tenant=\"acme\",path=\"web\"}");
	expect("", "m/a/code=200/b", "{code=\"200\",path=\"a/b\"}");
	expect("tenant,service", "m", "");
	expect("tenant,service", "m/acme", "{tenant=\"acme\"}");
	expect("tenant,service", "m/acme/web", "{tenant=\"acme\",service=\"web\"}");
	expect("tenant,service", "m/-/web", "{tenant=\"-\",service=\"web\"}");
	expect("tenant,service", "m/acme/web/GET/code=200",
	       "{tenant=\"acme\",service=\"web\",code=\"200\",path=\"GET\"}");
	expect("tenant", "m/tenant=acme", "{tenant=\"tenant=acme\"}");
	expect("", "m/a\"b\\c", "{path=\"a\\\"b\\\\c\"}");
}

/* Levels have any name: labels have not. */
static void test_levels(void **state)
{
	(void)state;
	expect("kube-cluster,9,path,__x,a.b,a_b,a-b", "m/1/2/3/4/5/6/7",
	       "{kube_cluster=\"1\",level_2=\"2\",level_3=\"3\",level_4=\"4\",a_b=\"5\",level_6=\"6\",level_7=\"7\"}");
	expect("level_2,path", "m/1/2", "{level_2=\"1\",level_2_=\"2\"}");
	expect("gr\xc3\xb6\xc3\x9f"
	       "e",
	       "m/1", "{gr____e=\"1\"}");
	expect("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", "m/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15",
	       "{a=\"1\",b=\"2\",c=\"3\",d=\"4\",e=\"5\",f=\"6\",g=\"7\",h=\"8\",i=\"9\",j=\"10\",k=\"11\",l=\"12\",m=\"13\","
	       "n=\"14\",o=\"15\"}");
}

/* What is no label. */
static void test_plain(void **state)
{
	(void)state;
	expect("", "m/=", "{path=\"=\"}");
	expect("", "m/a=", "{path=\"a=\"}");
	expect("", "m/=a", "{path=\"=a\"}");
	expect("", "m/a-b=c", "{path=\"a-b=c\"}");
	expect("", "m/__a=b", "{path=\"__a=b\"}");
	expect("", "m/1a=b", "{path=\"1a=b\"}");
	expect("", "m/path=b", "{path=\"path=b\"}");
	expect("", "m/a=b=c", "{a=\"b=c\"}");
	expect("tenant", "m/x/tenant=y", "{tenant=\"x\",path=\"tenant=y\"}");
	expect("", "m/a=1/a=2", "{path=\"a=1/a=2\"}");
	expect("l", "m/x/a=1/a=2", "{path=\"x/a=1/a=2\"}");
}

static void test_decoded(void **state)
{
	(void)state;
	expect("", "m/url=%2Fa%2F%25b", "{url=\"/a/%b\"}");
	expect("", "m/a=100%", "{path=\"a=100%\"}");
	expect("", "m/a=%41", "{path=\"a=%41\"}");
	expect("", "m/a=%2f", "{path=\"a=%2f\"}");
	expect("l", "m/%2Fx", "{l=\"/x\"}");
	expect("l", "m/100%", "{path=\"100%\"}");
	expect("l,k", "m/a/100%/b=c", "{path=\"a/100%/b=c\"}");
	expect("", "m/100%2F", "{path=\"100%2F\"}");
}

/* Of paths with the same segments the first has the labels. */
static void test_orders(void **state)
{
	struct world world = { .paths = { "m/b=2/a=1", "m/a=1/b=2", "m/a=1/x", "m/x/a=1",
					  "m/c=1/d=2/b=3", "m/d=2/c=1/b=3" },
			       .n = 6 };

	(void)state;
	assert_string_equal(labels_of(&world, "", "m/a=1/b=2"), "{a=\"1\",b=\"2\"}");
	assert_string_equal(labels_of(&world, "", "m/b=2/a=1"), "{path=\"b=2/a=1\"}");
	assert_string_equal(labels_of(&world, "", "m/x/a=1"), "{a=\"1\",path=\"x\"}");
	assert_string_equal(labels_of(&world, "", "m/a=1/x"), "{path=\"a=1/x\"}");
	assert_string_equal(labels_of(&world, "", "m/c=1/d=2/b=3"), "{c=\"1\",d=\"2\",b=\"3\"}");
	assert_string_equal(labels_of(&world, "", "m/d=2/c=1/b=3"), "{path=\"d=2/c=1/b=3\"}");
}

/* A path in order asks nothing; others not too much, however many orders there are. */
static void test_questions(void **state)
{
	struct world world = { .paths = { "m/x/a=1/b=2/c=3",
					  "m/o=1/n=1/m=1/l=1/k=1/j=1/i=1/h=1/g=1/f=1/e=1/d=1",
					  "m/tenant=a/service=b" },
			       .n = 3 };

	(void)state;
	(void)labels_of(&world, "", world.paths[0]);
	assert_int_equal(world.asked, 0);
	(void)labels_of(&world, "", world.paths[2]);
	assert_int_equal(world.asked, 1);
	world.asked = 0;
	assert_memory_equal(labels_of(&world, "", world.paths[1]), "{path=", 6);
	assert_in_range(world.asked, 60, 64);
}

/* Any set of paths over few segments, so that they meet often. */
static void test_unique(void **state)
{
	static const char *const segments[] = { "a=1", "b=1",	"a=2",	  "x",	 "y",
						"a=",  "a=%",	"%",	  "%25", "%2F",
						"c=%", "c=%25", "path=x", "l=1" };
	static const char *const levels[] = { "", "l", "l,k" };
	enum {
		N = 40,
		ROUNDS = 3000
	};
	struct test_random random;

	(void)state;
	test_random_init(&random, 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		char paths[N][64], seen[N][256];
		struct world world = { .n = 0 };

		while (world.n < N) {
			char *path = paths[world.n];
			bool known = false;

			(void)snprintf(path, sizeof(paths[0]), "m");
			for (uint64_t i = test_random_below(&random, 5); i > 0; i--) {
				(void)snprintf(path + strlen(path), sizeof(paths[0]) - strlen(path),
					       "/%s", segments[test_random_below(&random, 14)]);
			}
			for (size_t i = 0; i < world.n; i++) {
				known |= strcmp(world.paths[i], path) == 0;
			}
			if (!known) {
				world.paths[world.n++] = path;
			}
		}
		for (size_t i = 0; i < N; i++) {
			(void)snprintf(seen[i], sizeof(seen[i]), "%s",
				       labels_of(&world, levels[round % 3], paths[i]));
			for (size_t k = 0; k < i; k++) {
				if (strcmp(seen[i], seen[k]) == 0) {
					fail_msg("%s and %s are both %s", paths[i], paths[k],
						 seen[i]);
				}
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),  cmocka_unit_test(test_plain),
		cmocka_unit_test(test_levels), cmocka_unit_test(test_decoded),
		cmocka_unit_test(test_orders), cmocka_unit_test(test_questions),
		cmocka_unit_test(test_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
