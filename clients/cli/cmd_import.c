#include "clients/cli/command.h"

#include "clients/cli/input.h"
#include "clients/cli/record.h"
#include "clients/cli/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT_ONCE 1000 /* counters in one question */

struct importing {
	struct cli *cli;
	struct ration *client; /* NULL: a dry run */
	struct input *input;
	bool begun, ended; /* the first line was there; the last one was */
	uint64_t n_lines;  /* but for blank ones, and the last */
	uint64_t n_counters, n_metrics, n_quotas, n_of_file;
	bool gone; /* there is no use in going on */

	/* Counters that wait for their turn. */
	struct ration_own owns[AT_ONCE];
	char *paths[AT_ONCE];
	uint64_t numbers[AT_ONCE]; /* of their lines */
	size_t n;
};

/* ---- what the daemon says ---- */

static void refused(struct importing *importing, uint64_t number, int code, const char *what,
		    const char *text)
{
	char *safe_what = text_safe_string(what), *safe_text = text_safe_string(text);

	importing->input->n_bad++;
	cli_fail(importing->cli, CLI_ANSWERED, code,
		 "line %" PRIu64 ": %s: the daemon answered %s%s%s", number,
		 safe_what != NULL ? safe_what : "", ration_code_name(code),
		 text[0] != '\0' ? ": " : "", safe_text != NULL ? safe_text : "");
	cli_list(importing->cli, importing->input->bad,
		 json_pack("{s:o, s:s}", "line", json_exact((int64_t)number), "text",
			   safe_text != NULL ? safe_text : ""));
	free(safe_what);
	free(safe_text);
}

/* Of a metric or a limit: one that the daemon refuses is a wrong line, all else ends the run. */
static bool answered(struct importing *importing, const struct record *record, int r)
{
	char *why = NULL;

	if (r == 0) {
		return true;
	}
	if (r < 0 || r == RATION_PERMISSION_DENIED) {
		cli_answer(importing->cli, r, NULL);
		importing->gone = true;
		return false;
	}
	why = cli_reason("");
	refused(importing, importing->input->lines.number, r, record->name, why != NULL ? why : "");
	free(why);
	return false;
}

static void counter_refused(void *ctx, size_t index, int code, const char *text)
{
	struct importing *importing = ctx;

	refused(importing, importing->numbers[index], code, importing->paths[index], text);
	importing->n_counters--;
}

/* ---- counters ---- */

static void set_counters(struct importing *importing)
{
	int r = 0;

	if (importing->n > 0 && !importing->gone) {
		importing->n_counters += importing->n;
		r = ration_import(importing->client, importing->owns, importing->n,
				  importing->cli->timeout_ms, counter_refused, importing);
		if (r != 0) {
			cli_answer(importing->cli, r, NULL);
			importing->n_counters -= importing->n;
			importing->gone = true;
		}
	}
	for (size_t i = 0; i < importing->n; i++) {
		free(importing->paths[i]);
	}
	importing->n = 0;
}

static void take_counter(struct importing *importing, const struct record *record)
{
	size_t i = importing->n;

	if (importing->client == NULL) {
		importing->n_counters++;
		return;
	}
	importing->paths[i] = strdup(record->name);
	if (importing->paths[i] == NULL) {
		importing->cli->no_memory = importing->gone = true;
		return;
	}
	importing->owns[i] =
		(struct ration_own){ .path = importing->paths[i], .own = record->number };
	importing->numbers[i] = importing->input->lines.number;
	importing->n++;
	if (importing->n == AT_ONCE) {
		set_counters(importing);
	}
}

/* ---- all others ---- */

static void take_metric(struct importing *importing, const struct record *record)
{
	if (importing->client != NULL) {
		/* A counter before it may be what it is about. */
		set_counters(importing);
		if (importing->gone ||
		    !answered(importing, record,
			      ration_metric_set(importing->client, record->name, &record->metric,
						importing->cli->timeout_ms))) {
			return;
		}
	}
	importing->n_metrics++;
}

static void note(void *ctx, const char *text)
{
	struct importing *importing = ctx;
	char *safe = text_safe_string(text);

	cli_warn(importing->cli, "line %" PRIu64 ": note: %s", importing->input->lines.number,
		 safe != NULL ? safe : "");
	free(safe);
}

static void take_quota(struct importing *importing, const struct record *record)
{
	if (record->of_file) {
		importing->n_of_file++;
		return;
	}
	if (importing->client != NULL) {
		set_counters(importing);
		if (importing->gone ||
		    !answered(importing, record,
			      ration_quota_set(importing->client, record->name, &record->limits,
					       importing->cli->timeout_ms, note, importing))) {
			return;
		}
	}
	importing->n_quotas++;
}

static void take_head(struct importing *importing, const struct record *record)
{
	if (record->number == RECORD_VERSION) {
		importing->begun = true;
		return;
	}
	cli_fail(importing->cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
		 "line %" PRIu64 ": an export of version %" PRId64
		 "; this rationctl reads version %d",
		 importing->input->lines.number, record->number, RECORD_VERSION);
	importing->gone = true;
}

static void take_end(struct importing *importing, const struct record *record)
{
	importing->ended = true;
	if ((uint64_t)record->number != importing->n_lines) {
		input_bad(importing->input,
			  "%" PRId64 " lines were to be before this one, and %" PRIu64 " are",
			  record->number, importing->n_lines);
	}
}

static void take_record(struct importing *importing, const struct record *record)
{
	if (importing->ended) {
		input_bad(importing->input, "it is behind the last line of the export");
		return;
	}
	if (record->type == RECORD_END) {
		take_end(importing, record);
		return;
	}
	importing->n_lines++;
	switch (record->type) {
	case RECORD_METRIC:
		take_metric(importing, record);
		break;
	case RECORD_QUOTA:
		take_quota(importing, record);
		break;
	case RECORD_COUNTER:
		take_counter(importing, record);
		break;
	default:
		input_bad(importing->input, "the first line of an export, where one is under way");
		break;
	}
}

static bool is_blank(const char *text, size_t len)
{
	size_t blanks = 0;

	while (blanks < len &&
	       (text[blanks] == ' ' || text[blanks] == '\t' || text[blanks] == '\r')) {
		blanks++;
	}
	return blanks == len;
}

static void take_line(struct importing *importing, const char *text, size_t len)
{
	char why[RECORD_WHY_BYTES];
	struct record record;

	if (is_blank(text, len)) {
		return;
	}
	if (len > LINES_MAX_BYTES) {
		(void)snprintf(why, sizeof(why), "longer than %d bytes", LINES_MAX_BYTES);
	} else if (record_parse(text, len, &record, why)) {
		if (!importing->begun && record.type == RECORD_HEAD) {
			importing->n_lines++;
			take_head(importing, &record);
		} else if (importing->begun) {
			take_record(importing, &record);
		}
		record_deinit(&record);
		if (importing->begun || importing->gone) {
			return;
		}
	} else if (importing->begun) {
		importing->n_lines++;
	}
	if (!importing->begun) {
		cli_fail(
			importing->cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			"line %" PRIu64
			": this is no export of rationctl; its first line is {\"rationd_export\":1,...}",
			importing->input->lines.number);
		importing->gone = true;
		return;
	}
	input_bad(importing->input, "%s", why);
}

/* ---- the run ---- */

static void sum_up(struct importing *importing, bool dry_run)
{
	struct cli *cli = importing->cli;

	if (!importing->gone && cli->signal == 0 && !importing->ended) {
		cli_fail(
			cli, CLI_USAGE, RATION_INVALID_ARGUMENT,
			"after line %" PRIu64
			": the last line of the export is missing, so it is not whole; all that is there was %s",
			importing->input->lines.number, dry_run ? "read" : "imported");
	}
	if (importing->n_of_file > 0) {
		cli_warn(cli,
			 "note: %" PRIu64
			 " limits were those of a daemon's configuration, and are left to it",
			 importing->n_of_file);
	}
	if (cli->signal != 0) {
		cli_note(cli, "(interrupted)");
	}
	cli_note(cli,
		 "%" PRIu64 " counters, %" PRIu64 " metrics, %" PRIu64 " limits %s, %" PRIu64
		 " wrong",
		 importing->n_counters, importing->n_metrics, importing->n_quotas,
		 dry_run ? "read" : "imported", importing->input->n_bad);
	cli_put(cli, "counters", json_exact((int64_t)importing->n_counters));
	cli_put(cli, "metrics", json_exact((int64_t)importing->n_metrics));
	cli_put(cli, "quotas", json_exact((int64_t)importing->n_quotas));
	cli_put(cli, "quotas_of_file", json_exact((int64_t)importing->n_of_file));
	cli_put(cli, "bad", json_exact((int64_t)importing->input->n_bad));
	cli_put(cli, "bad_lines", json_incref(importing->input->bad));
}

static void run(struct importing *importing, bool dry_run, bool durable)
{
	char *text = NULL;
	size_t len = 0;
	int r = 0;

	while (!importing->gone && input_next_text(importing->input, &text, &len)) {
		take_line(importing, text, len);
	}
	set_counters(importing);
	if (durable && !dry_run && !importing->gone) {
		r = ration_flush_durable(importing->client, importing->cli->timeout_ms);
		cli_answer(importing->cli, r, NULL);
	}
	sum_up(importing, dry_run);
}

/* -1: reported. */
static int open_file(struct cli *cli, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *safe = NULL;

	if (fd < 0) {
		int error = errno;

		safe = text_safe_string(path);
		cli_fail(cli, CLI_SYSTEM, RATION_INTERNAL, "%s: %s", safe != NULL ? safe : "",
			 strerror(error));
		free(safe);
	}
	return fd;
}

void cmd_import(struct cli *cli, const struct args *args)
{
	const char *path = args->n_operands > 0 ? args->operands[0] : "-";
	bool dry_run = args_has(args, OPT_DRY_RUN), from_file = strcmp(path, "-") != 0;
	struct importing *importing = NULL;
	int fd = from_file ? open_file(cli, path) : -1;

	if (from_file && fd < 0) {
		return;
	}
	importing = calloc(1, sizeof(*importing));
	if (importing == NULL) {
		cli->no_memory = true;
	} else {
		importing->cli = cli;
		importing->input = input_new(cli, NULL, /* catch_signals= */ true);
	}
	if (importing != NULL && importing->input != NULL) {
		if (from_file) {
			input_from(importing->input, fd, path);
		}
		importing->client = dry_run ? NULL : cli_client(cli, NULL);
		if (dry_run || importing->client != NULL) {
			run(importing, dry_run, args_has(args, OPT_DURABLE));
		}
		input_free(importing->input);
	}
	free(importing);
	if (fd >= 0) {
		(void)close(fd);
	}
}
