/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz driver as an ordinary test: every file of its corpus, every prefix of it, and every
 * file with one byte changed. Inputs are exact-size heap copies, so that ASan detects each overrun.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 20, VARIED_MAX = 2048 };

static void try_bytes(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void try_variants(uint8_t *data, size_t size)
{
	static const uint8_t flips[] = { 0x01, 0x80, 0xff };

	try_bytes(data, size);
	if (size > VARIED_MAX)
		return;
	for (size_t i = 0; i < size; i++) {
		try_bytes(data, i);
		for (size_t f = 0; f < sizeof(flips); f++) {
			data[i] ^= flips[f];
			try_bytes(data, size);
			data[i] ^= flips[f];
		}
	}
}

static int try_file(const char *dir, const char *name)
{
	static uint8_t data[INPUT_MAX];
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "rbe");
	if (!f)
		return -1;
	size_t size = fread(data, 1, sizeof(data), f);
	fclose(f);
	try_variants(data, size);
	return 0;
}

int main(int argc, char **argv)
{
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	struct dirent *e;
	int files = 0;

	if (!dir) {
		fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
		return 2;
	}
	try_bytes((const uint8_t *)"", 0);
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		if (try_file(argv[1], e->d_name) < 0)
			return 1;
		files++;
	}
	closedir(dir);
	printf("%d files and their variants\n", files);
	return files == 0; /* an empty corpus tests nothing */
}
