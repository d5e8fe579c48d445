/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/template/oci_image.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/auto.h"

DEFINE_AUTO(json_t *, json_decref);

enum { JSON_SIZE_MAX = 4 << 20, NESTED_MAX = 4, DIGEST_HEX = 64 };

bool oci_image_is_layout(int dir)
{
	return faccessat(dir, "oci-layout", F_OK, 0) == 0 &&
	       faccessat(dir, "index.json", F_OK, 0) == 0;
}

int oci_image_open_at(void *arg, const char *path, struct err *err)
{
	int fd = openat(*(const int *)arg, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? err_sys(err, errno, "%s", path) : fd;
}

static int open_file(const struct oci_image_files *from, const char *path, struct stat *st,
		     struct err *err)
{
	auto_close int fd = from->open(from->arg, path, err);

	if (fd < 0)
		return -1;
	if (fstat(fd, st) < 0)
		return err_sys(err, errno, "%s", path);
	if (!S_ISREG(st->st_mode))
		return err_set(err, ERR_INVALID, "%s: not a regular file", path);
	return steal_fd(&fd);
}

static json_t *load_json(const struct oci_image_files *from, const char *path, struct err *err)
{
	struct stat st;
	auto_close int fd = open_file(from, path, &st, err);
	auto_free char *text = NULL;
	json_error_t why;
	json_t *j;
	ssize_t n;

	if (fd < 0)
		return NULL;
	if (st.st_size > JSON_SIZE_MAX) {
		err_set(err, ERR_LIMIT, "%s: too large", path);
		return NULL;
	}
	text = malloc((size_t)st.st_size + 1);
	n = text ? read(fd, text, (size_t)st.st_size) : -1;
	if (n != st.st_size) {
		err_set(err, ERR_INTERNAL, "%s: cannot read the file", path);
		return NULL;
	}
	j = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, &why);
	if (!j)
		err_set(err, ERR_INVALID, "%s:%d: %s", path, why.line, why.text);
	return j;
}

/* Turns "sha256:<hex>" into "blobs/sha256/<hex>"; refuses all other digests. */
static int blob_path(const json_t *descriptor, char *ret, size_t size, struct err *err)
{
	const char *digest = json_string_value(json_object_get(descriptor, "digest"));
	const char *hex = digest && !strncmp(digest, "sha256:", 7) ? digest + 7 : "";

	if (strlen(hex) != DIGEST_HEX || strspn(hex, "0123456789abcdef") != DIGEST_HEX)
		return err_set(err, ERR_INVALID, "index.json: digest is not sha256");
	snprintf(ret, size, "blobs/sha256/%s", hex);
	return 0;
}

static const char *architecture(void)
{
	static struct utsname u;

	if (uname(&u) < 0)
		return "amd64";
	if (!strcmp(u.machine, "x86_64"))
		return "amd64";
	return !strcmp(u.machine, "aarch64") ? "arm64" : u.machine;
}

static const char *get_platform(const json_t *descriptor, const char *key)
{
	const char *s =
		json_string_value(json_object_get(json_object_get(descriptor, "platform"), key));

	return s ? s : "";
}

/* The entry for this architecture, or a single entry without a platform. */
static const json_t *choose_manifest(const json_t *index)
{
	const json_t *list = json_object_get(index, "manifests"), *d;
	size_t i;

	json_array_foreach (list, i, d) {
		if (!strcmp(get_platform(d, "os"), "linux") &&
		    !strcmp(get_platform(d, "architecture"), architecture()))
			return d;
	}
	d = json_array_get(list, 0);
	return json_array_size(list) == 1 && !json_object_get(d, "platform") ? d : NULL;
}

static json_t *find_manifest(const struct oci_image_files *from, struct err *err)
{
	auto_call(json_decref) json_t *index = load_json(from, "index.json", err);
	char path[128];

	for (int depth = 0; index && depth < NESTED_MAX; depth++) {
		const json_t *d;
		json_t *next;

		if (json_is_array(json_object_get(index, "layers")))
			return steal_ptr(&index);
		d = choose_manifest(index);
		if (!d) {
			err_set(err, ERR_NOT_FOUND, "image has no variant for linux/%s",
				architecture());
			return NULL;
		}
		if (blob_path(d, path, sizeof(path), err) < 0)
			return NULL;
		next = load_json(from, path, err);
		json_decref(index);
		index = next;
	}
	if (index)
		err_set(err, ERR_INVALID, "index.json: no manifest found");
	return NULL;
}

/* ---- image configuration ------------------------------------------------------------------- */

static int apply_env(const json_t *config, struct template *t, struct err *err)
{
	const json_t *list = json_object_get(config, "Env"), *v;
	struct template merged;
	size_t i;
	int r = 0;

	/* Variables that are already set override those of the image. */
	template_init(&merged);
	json_array_foreach (list, i, v) {
		if (json_is_string(v) && strchr(json_string_value(v), '=') && !r)
			r = template_set_env(&merged, json_string_value(v), err);
	}
	for (i = 0; !r && i < t->nenv; i++)
		r = template_set_env(&merged, t->env[i], err);
	for (i = 0; !r && i < merged.nenv; i++)
		r = template_set_env(t, merged.env[i], err);
	template_fini(&merged);
	return r;
}

static bool is_root(const char *user)
{
	return !*user || !strcmp(user, "root") || !strncmp(user, "root:", 5) ||
	       !strcmp(user, "0") || !strncmp(user, "0:", 2);
}

static int apply_user(const char *user, struct template *t, struct oci_image *img, struct err *err)
{
	img->wants_root = is_root(user);
	if (t->user || img->wants_root)
		return 0;
	if (template_set_string(&t->user, user, err) < 0)
		return -1;
	/* Drop the group of "name:group"; numbers keep theirs. */
	if (user[0] < '0' || user[0] > '9')
		t->user[strcspn(t->user, ":")] = '\0';
	return 0;
}

static int apply_config(const struct oci_image_files *from, const json_t *manifest,
			struct template *t, struct oci_image *img, struct err *err)
{
	auto_call(json_decref) json_t *whole = NULL;
	const json_t *config;
	const char *s;
	char path[128];

	if (blob_path(json_object_get(manifest, "config"), path, sizeof(path), err) < 0)
		return -1;
	whole = load_json(from, path, err);
	if (!whole)
		return -1;
	config = json_object_get(whole, "config");
	s = json_string_value(json_object_get(config, "WorkingDir"));
	if (s && s[0] == '/' && !t->workdir && template_set_string(&t->workdir, s, err) < 0)
		return -1;
	s = json_string_value(json_object_get(config, "User"));
	if (apply_user(s ? s : "", t, img, err) < 0)
		return -1;
	return apply_env(config, t, err);
}

static int open_layers(const struct oci_image_files *from, const json_t *manifest,
		       struct oci_image *img, struct err *err)
{
	const json_t *list = json_object_get(manifest, "layers"), *d;
	char path[128];
	size_t i;

	if (json_array_size(list) > OCI_IMAGE_LAYERS_MAX)
		return err_set(err, ERR_LIMIT, "image has more than %d layers",
			       OCI_IMAGE_LAYERS_MAX);
	json_array_foreach (list, i, d) {
		json_int_t size = json_integer_value(json_object_get(d, "size"));
		struct stat st;
		int fd;

		if (blob_path(d, path, sizeof(path), err) < 0)
			return -1;
		fd = open_file(from, path, &st, err);
		if (fd < 0)
			return -1;
		img->layers[img->nlayers++] = fd;
		if (size != st.st_size)
			return err_set(err, ERR_INVALID, "%s: size differs from the manifest",
				       path);
		img->total += (uint64_t)st.st_size;
	}
	return 0;
}

int oci_image_open(const struct oci_image_files *from, struct template *t, struct oci_image *ret,
		   struct err *err)
{
	struct oci_image img = { 0 };
	auto_call(json_decref) json_t *manifest = find_manifest(from, err);

	if (!manifest || apply_config(from, manifest, t, &img, err) < 0 ||
	    open_layers(from, manifest, &img, err) < 0) {
		oci_image_close(&img);
		return -1;
	}
	*ret = img;
	return 0;
}

void oci_image_close(struct oci_image *img)
{
	for (size_t i = 0; i < img->nlayers; i++)
		close(img->layers[i]);
	img->nlayers = 0;
}
