#include "clients/cli/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void table_init(struct table *table, const char *align)
{
	*table = (struct table){ .n_columns = strlen(align), .align = align };
}

void table_deinit(struct table *table)
{
	for (size_t i = 0; i < table->n_cells; i++) {
		free(table->cells[i]);
	}
	free(table->cells);
	*table = (struct table){ 0 };
}

static bool reserve(struct table *table)
{
	size_t capacity = table->capacity > 0 ? 2 * table->capacity : 64;
	char **cells = NULL;

	if (table->n_cells < table->capacity) {
		return true;
	}
	cells = reallocarray(table->cells, capacity, sizeof(*cells));
	if (cells == NULL) {
		return false;
	}
	table->cells = cells;
	table->capacity = capacity;
	return true;
}

void table_cell(struct table *table, const char *format, ...)
{
	char *text = NULL;
	va_list ap;
	int r = 0;

	va_start(ap, format);
	r = vasprintf(&text, format, ap);
	va_end(ap);
	if (r < 0 || !reserve(table)) {
		table->no_memory = true;
		if (r >= 0) {
			free(text);
		}
		return;
	}
	table->cells[table->n_cells++] = text;
}

bool table_print(const struct table *table, FILE *out)
{
	size_t widths[TABLE_MAX_COLUMNS] = { 0 };

	if (table->no_memory) {
		return false;
	}
	for (size_t i = 0; i < table->n_cells; i++) {
		size_t len = strlen(table->cells[i]);
		size_t *width = &widths[i % table->n_columns];

		*width = len > *width ? len : *width;
	}
	for (size_t i = 0; i < table->n_cells; i++) {
		size_t column = i % table->n_columns;
		bool last = column + 1 == table->n_columns;
		int width = table->align[column] == 'r' ? (int)widths[column]
			    : last			? 0
							: -(int)widths[column];

		(void)fprintf(out, "%*s%s", width, table->cells[i], last ? "\n" : "  ");
	}
	return true;
}
