#include "clients/cli/table.h"

#include <inttypes.h>
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

void table_number(struct table *table, bool has, int64_t number)
{
	if (has) {
		table_cell(table, "%" PRId64, number);
	} else {
		table_cell(table, "-");
	}
}

void table_head(struct table *table, const char *const *texts)
{
	for (size_t i = 0; i < table->n_columns; i++) {
		table_cell(table, "%s", texts[i]);
	}
}

static size_t width_of(const char *text)
{
	size_t width = 0;

	for (; *text != '\0'; text++) {
		width += ((unsigned char)*text & 0xc0) != 0x80;
	}
	return width;
}

bool table_print(const struct table *table, FILE *out)
{
	size_t widths[TABLE_MAX_COLUMNS] = { 0 };

	if (table->no_memory) {
		return false;
	}
	for (size_t i = 0; i < table->n_cells; i++) {
		size_t width = width_of(table->cells[i]);
		size_t *widest = &widths[i % table->n_columns];

		*widest = width > *widest ? width : *widest;
	}
	for (size_t i = 0; i < table->n_cells; i++) {
		size_t column = i % table->n_columns;
		bool last = column + 1 == table->n_columns;
		bool right = table->align[column] == 'r';
		int blanks = (int)(widths[column] - width_of(table->cells[i]));

		(void)fprintf(out, "%*s%s%*s%s", right ? blanks : 0, "", table->cells[i],
			      right || last ? 0 : blanks, "", last ? "\n" : "  ");
	}
	return true;
}
