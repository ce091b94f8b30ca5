/*
 * replay: the main of a fuzzer where there is no libFuzzer. Runs the target once over each file named on the command line.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t size = 0;
	int r = -1;

	if (file == NULL) {
		goto out;
	}
	if (fseek(file, 0, SEEK_END) != 0) {
		goto out;
	}
	long end = ftell(file);

	if (end < 0) {
		goto out;
	}
	rewind(file);
	size = (size_t)end;
	/* Exactly as large as the input, so that a sanitizer sees the first byte read beyond it. */
	data = malloc(size > 0 ? size : 1);
	if (data == NULL || fread(data, 1, size, file) != size) {
		goto out;
	}
	(void)LLVMFuzzerTestOneInput(data, size);
	r = 0;
out:
	free(data);
	if (file != NULL) {
		(void)fclose(file);
	}
	return r;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (replay(argv[i]) != 0) {
			perror(argv[i]);
			return 1;
		}
	}
	return 0;
}
