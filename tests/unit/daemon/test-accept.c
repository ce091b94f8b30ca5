/* accept: which page a client gets. */
#include "daemon/http/accept.h"
#include "tests/support/test.h"

#include <stdio.h>

#define OM "application/openmetrics-text"

static void test_format(void **state)
{
	static const struct {
		const char *accept;
		enum sheet_format format;
	} cases[] = {
		{ NULL, SHEET_TEXT },
		{ "", SHEET_TEXT },
		{ "*/*", SHEET_TEXT },
		{ "text/plain", SHEET_TEXT },
		{ "text/html", SHEET_TEXT },
		{ "image/png", SHEET_TEXT },
		{ OM, SHEET_OPENMETRICS },
		{ "APPLICATION/OpenMetrics-Text", SHEET_OPENMETRICS },
		{ OM "; version=1.0.0", SHEET_OPENMETRICS },
		{ OM ";version=0.0.1", SHEET_OPENMETRICS },
		{ OM " ; version = \"1.0.0\" ; charset=utf-8", SHEET_OPENMETRICS },
		{ OM ";version=2.0.0", SHEET_TEXT },
		{ OM ";version=2.0.0,*/*;q=0.1", SHEET_TEXT },
		{ OM ";q=0", SHEET_TEXT },
		{ OM ";q=0.0", SHEET_TEXT },
		{ OM ";q=0.001", SHEET_OPENMETRICS },
		{ OM ";q=1.000", SHEET_OPENMETRICS },
		{ OM ";Q=0.5, text/plain;q=0.4", SHEET_OPENMETRICS },
		{ OM ";q=0.4, text/plain;q=0.5", SHEET_TEXT },
		{ OM ", text/plain", SHEET_OPENMETRICS },
		{ "text/plain, " OM, SHEET_OPENMETRICS },
		{ "text/plain;q=0.5, " OM ";q=0.5", SHEET_OPENMETRICS },
		{ OM ";q=0.5, */*", SHEET_TEXT },
		{ "text/plain;version=0.0.4;q=0.5," OM ";q=0.6", SHEET_OPENMETRICS },
		/* A version of text that there is not leaves it to the others. */
		{ "text/plain;version=1.0.0, " OM ";q=0.1", SHEET_OPENMETRICS },
		{ "application/*", SHEET_OPENMETRICS },
		{ "application/*, text/*", SHEET_TEXT },
		{ "application/*;q=0.5, text/*;q=0.4", SHEET_OPENMETRICS },
		/* The most exact range counts, wherever it stands. */
		{ "*/*, " OM ";q=0.1", SHEET_TEXT },
		{ "application/*;q=0.1, " OM ";q=0.9, text/plain;q=0.5", SHEET_OPENMETRICS },
		{ OM ";version=1.0.0;q=0.1, " OM ";version=0.0.1;q=0.9, text/plain;q=0.5",
		  SHEET_OPENMETRICS },
		/* What is malformed is passed over. */
		{ OM ";q=2", SHEET_TEXT },
		{ OM ";q=1.001", SHEET_TEXT },
		{ OM ";q=0.1234", SHEET_TEXT },
		{ OM ";q=-1", SHEET_TEXT },
		{ OM ";q=", SHEET_TEXT },
		{ OM ";q=0,5", SHEET_TEXT },
		{ OM ";q=.5", SHEET_TEXT },
		{ OM ";;;,,, ;,", SHEET_OPENMETRICS },
		{ ",,,;q=1," OM, SHEET_OPENMETRICS },
		{ OM ";a=\"x,y;q=0\";q=0.5", SHEET_OPENMETRICS },
		{ OM ";a=\"x\\\",y;q=0\";q=0.5", SHEET_OPENMETRICS },
		{ OM ";a=\"never ends, text/plain", SHEET_OPENMETRICS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (accept_format(cases[i].accept) != cases[i].format) {
			fail_msg("Accept: %s", cases[i].accept);
		}
	}
}

static void test_gzip(void **state)
{
	static const struct {
		const char *accept;
		bool gzip;
	} cases[] = {
		{ NULL, false },
		{ "", false },
		{ "gzip", true },
		{ "GZIP", true },
		{ "x-gzip", true },
		{ "deflate, gzip;q=0.5, br", true },
		{ "deflate", false },
		{ "identity", false },
		{ "gzip;q=0", false },
		{ "gzip;q=0.000", false },
		{ "*", true },
		{ "*;q=0", false },
		{ "*, gzip;q=0", false },
		{ "gzip;q=0.4, identity;q=0.5", false },
		{ "gzip;q=0.5, identity;q=0.5", true },
		{ "gzipped", false },
		{ "gzip;q=x", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (accept_gzip(cases[i].accept) != cases[i].gzip) {
			fail_msg("Accept-Encoding: %s", cases[i].accept);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_gzip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
