/* SPDX-License-Identifier: Apache-2.0 */
/* The archive reader, unpacking into a directory: nothing may appear outside it. The first byte
 * chooses the options. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init/files/tar_head.h"
#include "init/files/tar_read.h"
#include "init/files/remove_job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int base = -1, inside = -1, input = -1;
static char path[96];

static void clean(void)
{
	remove_job_contents(base);
	rmdir(path);
}

static void prepare(void)
{
	const char *dir = getenv("TMPDIR");

	snprintf(path, sizeof(path), "%.64s/lodge-fuzz-XXXXXX", dir ? dir : "/tmp");
	if (!mkdtemp(path))
		abort();
	base = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (base < 0 || mkdirat(base, "in", 0700) < 0)
		abort();
	inside = openat(base, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	input = memfd_create("input", MFD_CLOEXEC);
	umask(0);
	atexit(clean);
}

static void nothing_beside(void)
{
	DIR *d = fdopendir(openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    strcmp(e->d_name, "in") != 0)
			abort();
	}
	closedir(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tar_options o = { .max_bytes = 1 << 20, .max_entries = 64 };
	struct err err;

	if (base < 0)
		prepare();
	if (!size)
		return 0;
	o.oci = data[0] & 1;
	if (ftruncate(input, 0) < 0 || pwrite(input, data + 1, size - 1, 0) != (ssize_t)size - 1 ||
	    lseek(input, 0, SEEK_SET) != 0)
		abort();
	tar_extract(input, inside, &o, &err);
	nothing_beside();
	/* Modes in the archive must not block the next input. */
	if (remove_job_contents(inside) < 0) {
		fchmod(inside, 0700);
		remove_job_contents(inside);
	}
	return 0;
}
