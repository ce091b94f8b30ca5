#include "daemon/http/self.h"

#include "daemon/daemon.h"
#include "daemon/status.h"

#include <stdbool.h>
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

static bool ends(const char *name, const char *with, size_t *ret_len)
{
	size_t len = strlen(name), n = strlen(with);

	*ret_len = len - n;
	return len > n && strcmp(name + len - n, with) == 0;
}

/* Times are seconds for Prometheus, whatever the table has. Into name[SELF_MAX_NAME]; what a value is to be divided by, 0: it is as it is. */
static double name_row(const struct status_row *row, char *name)
{
	static const struct {
		const char *suffix;
		double per_second;
	} units[] = { { "_ms", 1e3 }, { "_us", 1e6 } };
	size_t len;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (ends(row->name, units[i].suffix, &len)) {
			(void)snprintf(name, SELF_MAX_NAME, "rationd_%.*s_seconds", (int)len,
				       row->name);
			return units[i].per_second;
		}
	}
	(void)snprintf(name, SELF_MAX_NAME, "rationd_%s", row->name);
	return 0;
}

static void put_row(struct sheet *sheet, const struct status_row *row, struct status_now *status)
{
	struct sheet_family family;
	char name[SELF_MAX_NAME];
	double per_second = name_row(row, name);

	put_family(sheet, name, row->kind == STATUS_COUNTER ? SHEET_COUNTER : SHEET_GAUGE,
		   row->help, &family);
	if (row->kind == STATUS_TEXT) {
		put_text(sheet, &family, row->name, row->text(status));
	} else if (per_second > 0) {
		sheet_sample_real(sheet, &family, (double)row->number(status) / per_second);
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

/* Rows of the table that differ in the end of their names are one family here. */
#define REJECTED "statsd_rejected_"

static void put_rejected(struct sheet *sheet, struct status_now *status)
{
	struct sheet_family family;

	put_family(sheet, "rationd_statsd_rejected", SHEET_COUNTER,
		   "StatsD lines that were not counted, by what was wrong with them.", &family);
	for (size_t i = 0; i < status_n_rows; i++) {
		const struct status_row *row = &status_rows[i];
		const char *reason = row->name + strlen(REJECTED);

		if (strncmp(row->name, REJECTED, strlen(REJECTED)) == 0) {
			sheet_labels(sheet);
			sheet_label(sheet, "reason", reason, strlen(reason));
			sheet_sample(sheet, &family, row->number(status));
		}
	}
}

/* Has the worker a socket of this name before this one? Those passed by systemd may be called alike. */
static bool came_before(const struct worker *worker, const struct statsd_socket_stats *socket)
{
	const struct statsd_socket_stats *other = SLIST_FIRST(&worker->statsd_sockets);

	while (other != socket && strcmp(other->name, socket->name) != 0) {
		other = SLIST_NEXT(other, link);
	}
	return other != socket;
}

/* Over the worker's sockets of this name. */
static uint64_t sum_sockets(const struct worker *worker, const char *name, bool dropped)
{
	const struct statsd_socket_stats *socket;
	uint64_t sum = 0;

	SLIST_FOREACH(socket, &worker->statsd_sockets, link)
	{
		if (strcmp(socket->name, name) == 0) {
			sum += stats_read(dropped ? &socket->dropped : &socket->datagrams);
		}
	}
	return sum;
}

/* By socket: every worker has one of its own for an address. */
static void put_sockets(struct sheet *sheet, const struct daemon *daemon, bool dropped)
{
	struct sheet_family family;

	put_family(sheet, dropped ? "rationd_statsd_dropped" : "rationd_statsd_datagrams",
		   SHEET_COUNTER,
		   dropped ? "Datagrams dropped by the kernel, because a socket's buffer was full."
			   : "Datagrams received.",
		   &family);
	for (unsigned i = 0; i < daemon->n_workers; i++) {
		const struct worker *worker = &daemon->workers[i];
		const struct statsd_socket_stats *socket;
		char number[16];

		(void)snprintf(number, sizeof(number), "%u", i);
		SLIST_FOREACH(socket, &worker->statsd_sockets, link)
		{
			if (came_before(worker, socket)) {
				continue;
			}
			sheet_labels(sheet);
			sheet_label(sheet, "socket", socket->name, strlen(socket->name));
			sheet_label(sheet, "worker", number, strlen(number));
			sheet_sample(sheet, &family,
				     (int64_t)sum_sockets(worker, socket->name, dropped));
		}
	}
}

/* Most rows are a family of one series; these are told with labels instead. */
static bool has_labels(const struct status_row *row)
{
	return strcmp(row->name, "refused_prefixes") == 0 ||
	       strncmp(row->name, REJECTED, strlen(REJECTED)) == 0 ||
	       strcmp(row->name, "statsd_dropped") == 0 ||
	       strcmp(row->name, "statsd_datagrams") == 0;
}

void self_put(struct sheet *sheet, struct daemon *daemon)
{
	struct status_now *status = malloc(sizeof(*status));

	if (status == NULL) {
		return;
	}
	status_take(daemon, status);
	for (size_t i = 0; i < status_n_rows; i++) {
		if (!has_labels(&status_rows[i])) {
			put_row(sheet, &status_rows[i], status);
		}
	}
	put_rejected(sheet, status);
	put_sockets(sheet, daemon, /* dropped= */ false);
	put_sockets(sheet, daemon, /* dropped= */ true);
	put_refused_prefixes(sheet, status);
	free(status);
}
