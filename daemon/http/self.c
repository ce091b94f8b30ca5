#include "daemon/http/self.h"

#include "daemon/daemon.h"
#include "daemon/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SELF_MAX_NAME 96u

static void put_family(struct sheet *sheet, const char *name, enum sheet_type type,
		       const char *help, struct sheet_family *ret_family)
{
	*ret_family = (struct sheet_family){
		.name = name, .name_len = strlen(name), .type = type, .help = help, .unit = ""
	};
	sheet_family(sheet, ret_family);
	sheet_labels(sheet);
}

/* A text is the label of a series that is 1. */
static void put_text(struct sheet *sheet, const struct sheet_family *family, const char *label,
		     const char *text)
{
	sheet_label(sheet, label, text, strlen(text));
	sheet_sample(sheet, family, 1);
}

static void put_row(struct sheet *sheet, const struct status_row *row, struct status_now *status)
{
	struct sheet_family family;
	char name[SELF_MAX_NAME];

	(void)snprintf(name, sizeof(name), "rationd_%s", row->name);
	put_family(sheet, name, row->kind == STATUS_COUNTER ? SHEET_COUNTER : SHEET_GAUGE,
		   row->help, &family);
	if (row->kind == STATUS_TEXT) {
		put_text(sheet, &family, row->name, row->text(status));
	} else {
		sheet_sample(sheet, &family, row->number(status));
	}
}

/* ---- families with labels: a function for each, and its place in self_put ---- */

static void put_refused_prefixes(struct sheet *sheet, const struct status_now *status)
{
	struct sheet_family family;

	put_family(
		sheet, "rationd_paths_refused_by_parent", SHEET_COUNTER,
		"New paths refused because a ceiling on counters was reached, where that was most often.",
		&family);
	for (size_t i = 0; i < status->engine.n_refused_prefixes; i++) {
		const struct engine_refused *refused = &status->engine.refused_prefixes[i];

		sheet_labels(sheet);
		sheet_label(sheet, "parent", refused->prefix, strlen(refused->prefix));
		sheet_sample(sheet, &family, (int64_t)refused->count);
	}
}

/* Most rows are a family of one series; those that are a list are told with labels instead. */
static bool is_list(const struct status_row *row)
{
	return strcmp(row->name, "refused_prefixes") == 0;
}

void self_put(struct sheet *sheet, struct daemon *daemon)
{
	struct status_now *status = malloc(sizeof(*status));

	if (status == NULL) {
		return;
	}
	status_take(daemon, status);
	for (size_t i = 0; i < status_n_rows; i++) {
		if (!is_list(&status_rows[i])) {
			put_row(sheet, &status_rows[i], status);
		}
	}
	put_refused_prefixes(sheet, status);
	free(status);
}
