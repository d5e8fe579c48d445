/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON files of an image. The input is their content, separated by NUL bytes: manifest.json,
 * the configuration, index.json. Any other file exists and is empty. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sandbox/template/oci_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const char *parts[3];
	size_t lens[3];
};

static void must(bool holds)
{
	if (!holds)
		abort();
}

static int open_part(void *arg, const char *path, struct err *err)
{
	const struct input *in = arg;
	int n = !strcmp(path, "manifest.json") ? 0 : !strcmp(path, "config") ? 1 : 2;
	int fd = memfd_create("part", MFD_CLOEXEC);

	(void)err;
	must(fd >= 0 && path[0] != '/' && !strstr(path, "/../") && strncmp(path, "../", 3) != 0);
	if (n < 2 || !strcmp(path, "index.json"))
		must(write(fd, in->parts[n], in->lens[n]) == (ssize_t)in->lens[n]);
	return fd;
}

static void check(const struct oci_image *img, const struct template *t)
{
	must(img->nlayers > 0 && img->nlayers <= OCI_IMAGE_LAYERS_MAX);
	for (size_t i = 0; i < img->nlayers; i++) {
		must(strlen(img->layers[i].diff_id) == SHA256_HEX - 1);
		must(strspn(img->layers[i].diff_id, "0123456789abcdef") == SHA256_HEX - 1);
	}
	must(!t->workdir || t->workdir[0] == '/');
	for (size_t i = 0; i < t->nenv; i++)
		must(strchr(t->env[i], '=') != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { { "", "", "" }, { 0 } };
	struct oci_image_files from = { open_part, &in };
	const char *at = (const char *)data, *end = at + size;
	enum oci_image_kind kind;

	for (int i = 0; i < 3 && at < end; i++) {
		const char *nul = memchr(at, 0, (size_t)(end - at));

		in.parts[i] = at;
		in.lens[i] = (size_t)((nul ? nul : end) - at);
		at = nul ? nul + 1 : end;
	}
	for (kind = OCI_IMAGE_LAYOUT; kind <= OCI_IMAGE_DOCKER; kind++) {
		struct oci_image img;
		struct template t;
		struct err err;

		template_init(&t);
		if (oci_image_open(&from, kind, &t, &img, &err) == 0) {
			check(&img, &t);
			oci_image_close(&img);
		}
		template_fini(&t);
	}
	return 0;
}
