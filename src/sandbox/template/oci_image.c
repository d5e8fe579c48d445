/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/template/oci_image.h"

#include <dirent.h>
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
#include "base/file_io.h"
#include "base/json.h"
#include "sandbox/template/oci_config.h"

DEFINE_AUTO(json_t *, json_decref);

enum {
	JSON_SIZE_MAX = 4 << 20,
	JSON_VALUES_MAX = 16 << 10,
	NESTED_MAX = 4,
	NAMES_MAX = 1 << 16, /* at the root of an archive */
	DIGEST_HEX = SHA256_HEX - 1
};

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

/* ---- files and digests ----------------------------------------------------------------------- */

/* A part of the image, as the file that refers to it describes it. */
struct part {
	char path[OCI_IMAGE_PATH];
	char digest[SHA256_HEX]; /* "": unknown */
	int64_t size; /* -1: unknown */
};

static int open_file(const struct oci_image_files *from, const struct part *p, struct stat *st,
		     struct err *err)
{
	auto_close int fd = from->open(from->arg, p->path, err);

	if (fd < 0)
		return err->code == ERR_NOT_FOUND
			       ? err_set(err, ERR_INVALID, "%s: not in the archive", p->path)
			       : -1;
	if (fstat(fd, st) < 0)
		return err_sys(err, errno, "%s", p->path);
	if (!S_ISREG(st->st_mode))
		return err_set(err, ERR_INVALID, "%s: not a regular file", p->path);
	if (p->size >= 0 && p->size != st->st_size)
		return err_set(err, ERR_INVALID,
			       "%s: size differs from the manifest (%lld instead of %lld bytes)",
			       p->path, (long long)st->st_size, (long long)p->size);
	return steal_fd(&fd);
}

static int check_digest(const struct part *p, const char *text, size_t len, struct err *err)
{
	char got[SHA256_HEX];
	struct sha256 s;

	if (!*p->digest)
		return 0;
	sha256_init(&s);
	sha256_add(&s, text, len);
	sha256_end(&s, got);
	return strcmp(got, p->digest) == 0
		       ? 0
		       : err_set(err, ERR_INVALID,
				 "%s: content does not match its digest (it has sha256:%s)",
				 p->path, got);
}

/* The whole file; the caller owns *ret. */
static int read_part(const struct oci_image_files *from, const struct part *p, char **ret,
		     size_t *ret_len, struct err *err)
{
	struct stat st;
	auto_close int fd = open_file(from, p, &st, err);
	auto_free char *text = NULL;
	ssize_t n;

	if (fd < 0)
		return -1;
	if (st.st_size > JSON_SIZE_MAX)
		return err_set(err, ERR_LIMIT, "%s: larger than 4 MiB", p->path);
	text = malloc((size_t)st.st_size + 1);
	n = text ? file_read_fd(fd, text, (size_t)st.st_size + 1) : -ENOMEM;
	if (n < 0)
		return err_sys(err, (int)-n, "%s", p->path);
	if (check_digest(p, text, (size_t)n, err) < 0)
		return -1;
	*ret = steal_ptr(&text);
	*ret_len = (size_t)n;
	return 0;
}

static json_t *load_json(const struct oci_image_files *from, const struct part *p, struct err *err)
{
	auto_free char *text = NULL;
	json_error_t why;
	size_t len = 0, values;
	json_t *j;

	if (read_part(from, p, &text, &len, err) < 0)
		return NULL;
	if (!json_is_shallow(text, len, &values) || values > JSON_VALUES_MAX) {
		err_set(err, ERR_INVALID,
			"%s: more than %d values, or nested more than %d levels deep", p->path,
			JSON_VALUES_MAX, JSON_READ_DEPTH_MAX);
		return NULL;
	}
	j = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (!j)
		err_set(err, ERR_INVALID, "%s:%d: %s", p->path, why.line, why.text);
	return j;
}

static struct part named_part(const char *path)
{
	struct part p = { .size = -1 };

	snprintf(p.path, sizeof(p.path), "%s", path);
	return p;
}

static bool is_hex(const char *s, size_t len)
{
	return len == DIGEST_HEX && strspn(s, "0123456789abcdef") >= DIGEST_HEX;
}

/* Of "sha256:<hex>"; refuses all other digests. */
static int parse_digest(const json_t *value, const char *where, char ret[SHA256_HEX],
			struct err *err)
{
	const char *digest = json_string_value(value);
	const char *hex = digest && !strncmp(digest, "sha256:", 7) ? digest + 7 : "";

	if (!is_hex(hex, strlen(hex)))
		return err_set(err, ERR_INVALID, "%s: digest is not sha256", where);
	memcpy(ret, hex, SHA256_HEX);
	return 0;
}

/* The blob that a descriptor names: "blobs/sha256/<hex>". */
static int parse_descriptor(const json_t *descriptor, struct part *ret, struct err *err)
{
	const json_t *size = json_object_get(descriptor, "size");
	struct part p = { .size = -1 };

	if (parse_digest(json_object_get(descriptor, "digest"), "index.json", p.digest, err) < 0)
		return -1;
	snprintf(p.path, sizeof(p.path), "blobs/sha256/%s", p.digest);
	if (!json_is_integer(size) || json_integer_value(size) < 0)
		return err_set(err, ERR_INVALID, "%s: the manifest names no size", p.path);
	p.size = json_integer_value(size);
	*ret = p;
	return 0;
}

/* ---- the manifest of a layout ------------------------------------------------------------- */

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

static int fail_no_manifest(const json_t *index, struct err *err)
{
	const json_t *list = json_object_get(index, "manifests"), *d;
	size_t i;

	json_array_foreach (list, i, d) {
		if (json_object_get(d, "platform"))
			return err_set(err, ERR_INVALID, "image has no variant for linux/%s",
				       architecture());
	}
	if (json_array_size(list) < 2)
		return err_set(err, ERR_INVALID, "index.json: names no manifest");
	return err_set(err, ERR_INVALID,
		       "index.json: the archive has %zu images; save one image at a time",
		       json_array_size(list));
}

static json_t *find_manifest(const struct oci_image_files *from, struct err *err)
{
	struct part p = named_part("index.json");
	auto_call(json_decref) json_t *index = load_json(from, &p, err);

	for (int depth = 0; index && depth < NESTED_MAX; depth++) {
		const json_t *d;
		json_t *next;

		if (json_is_array(json_object_get(index, "layers")))
			return steal_ptr(&index);
		d = choose_manifest(index);
		if (!d) {
			fail_no_manifest(index, err);
			return NULL;
		}
		if (parse_descriptor(d, &p, err) < 0)
			return NULL;
		next = load_json(from, &p, err);
		json_decref(index);
		index = next;
	}
	if (index)
		err_set(err, ERR_INVALID, "index.json: no manifest within %d indexes", NESTED_MAX);
	return NULL;
}

/* ---- image configuration ------------------------------------------------------------------- */

/* An image for another machine would start no program. */
static int check_platform(const json_t *whole, struct err *err)
{
	const char *os = json_string_value(json_object_get(whole, "os"));
	const char *arch = json_string_value(json_object_get(whole, "architecture"));

	if ((!os || !*os || !strcmp(os, "linux")) &&
	    (!arch || !*arch || !strcmp(arch, architecture())))
		return 0;
	return err_set(err, ERR_INVALID,
		       "image has no variant for linux/%s: it is made for %.20s/%.20s",
		       architecture(), os && *os ? os : "linux", arch ? arch : "");
}

/* The layers are shared by these digests, so an image without them is refused. */
static int take_diff_ids(const json_t *whole, struct oci_image *img, struct err *err)
{
	const json_t *list = json_object_get(json_object_get(whole, "rootfs"), "diff_ids");

	if (json_array_size(list) != img->nlayers)
		return err_set(err, ERR_INVALID,
			       "image has %zu layers, but its configuration names %zu (diff_ids)",
			       img->nlayers, json_array_size(list));
	for (size_t i = 0; i < img->nlayers; i++)
		if (parse_digest(json_array_get(list, i), "rootfs.diff_ids", img->layers[i].diff_id,
				 err) < 0)
			return -1;
	return 0;
}

static int apply_config(const struct oci_image_files *from, const struct part *p,
			struct template *t, struct oci_image *img, struct err *err)
{
	auto_call(json_decref) json_t *whole = load_json(from, p, err);

	if (!whole || check_platform(whole, err) < 0 || take_diff_ids(whole, img, err) < 0)
		return -1;
	return oci_config_apply(json_object_get(whole, "config"), t, &img->wants_root, err);
}

/* ---- layers ---------------------------------------------------------------------------------- */

static int check_count(const json_t *list, struct err *err)
{
	if (json_array_size(list) == 0)
		return err_set(err, ERR_INVALID, "image has no layers");
	return json_array_size(list) <= OCI_IMAGE_LAYERS_MAX
		       ? 0
		       : err_set(err, ERR_LIMIT, "image has more than %d layers",
				 OCI_IMAGE_LAYERS_MAX);
}

static int add_layer(const struct oci_image_files *from, const struct part *p,
		     struct oci_image *img, struct err *err)
{
	struct oci_layer *l = &img->layers[img->nlayers];
	struct stat st;
	int fd = open_file(from, p, &st, err);

	if (fd < 0)
		return -1;
	*l = (struct oci_layer){ .fd = fd };
	memcpy(l->digest, p->digest, sizeof(l->digest));
	img->nlayers++;
	img->total += (uint64_t)st.st_size;
	return 0;
}

static int open_layout(const struct oci_image_files *from, struct template *t,
		       struct oci_image *img, struct err *err)
{
	auto_call(json_decref) json_t *manifest = find_manifest(from, err);
	const json_t *list = json_object_get(manifest, "layers"), *d;
	struct part p;
	size_t i;

	if (!manifest || check_count(list, err) < 0)
		return -1;
	json_array_foreach (list, i, d) {
		if (parse_descriptor(d, &p, err) < 0 || add_layer(from, &p, img, err) < 0)
			return -1;
	}
	if (parse_descriptor(json_object_get(manifest, "config"), &p, err) < 0)
		return -1;
	return apply_config(from, &p, t, img, err);
}

/* ---- docker save ----------------------------------------------------------------------------- */

/* manifest.json names its parts by path. Some are named by their digest, "<hex>.json" or
 * "blobs/sha256/<hex>": that digest is checked too. */
static int parse_path(const json_t *value, struct part *ret, struct err *err)
{
	const char *path = json_string_value(value), *name;
	size_t len;

	if (!path || !*path || *path == '/' || strlen(path) >= OCI_IMAGE_PATH - 16 ||
	    !strncmp(path, "../", 3) || strstr(path, "/../"))
		return err_set(err, ERR_INVALID,
			       "manifest.json: \"%.60s\" is not the path of a file in the archive",
			       path ? path : "");
	*ret = named_part(path);
	name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	len = strcspn(name, ".");
	if (is_hex(name, len) && (!name[len] || !strcmp(name + len, ".json")))
		memcpy(ret->digest, name, len);
	return 0;
}

static int open_docker(const struct oci_image_files *from, struct template *t,
		       struct oci_image *img, struct err *err)
{
	struct part p = named_part("manifest.json");
	auto_call(json_decref) json_t *all = load_json(from, &p, err);
	const json_t *image = json_array_get(all, 0), *list = json_object_get(image, "Layers"), *v;
	size_t i;

	if (!all)
		return -1;
	if (json_array_size(all) != 1)
		return err_set(
			err, ERR_INVALID,
			"manifest.json: the archive has %zu images; save one image at a time",
			json_array_size(all));
	if (check_count(list, err) < 0)
		return -1;
	json_array_foreach (list, i, v) {
		if (parse_path(v, &p, err) < 0 || add_layer(from, &p, img, err) < 0)
			return -1;
	}
	if (parse_path(json_object_get(image, "Config"), &p, err) < 0)
		return -1;
	return apply_config(from, &p, t, img, err);
}

/* ---- detection ------------------------------------------------------------------------------- */

/* 1 or 0; -1: cannot tell. */
static int has_file(const struct oci_image_files *from, const char *path, struct err *err)
{
	int fd = from->open(from->arg, path, err);

	if (fd < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	close(fd);
	return 1;
}

static bool mentions_layers(const struct oci_image_files *from, const struct part *p)
{
	auto_free char *text = NULL;
	struct err ignored;
	size_t len;

	return read_part(from, p, &text, &len, &ignored) == 0 &&
	       memmem(text, len, "\"Layers\"", strlen("\"Layers\""));
}

/* A root file system may have a manifest.json of its own. 1 or 0; -1: it is one, but damaged. */
static int is_docker_manifest(const struct oci_image_files *from, struct err *err)
{
	struct part p = named_part("manifest.json");
	auto_call(json_decref) json_t *all = load_json(from, &p, err);
	const json_t *image = json_array_get(all, 0);

	if (!all)
		return mentions_layers(from, &p) ? -1 : 0;
	return json_object_get(image, "Config") && json_object_get(image, "Layers");
}

/* ---- incomplete images ----------------------------------------------------------------------- */

static bool exists(const struct oci_image_files *from, const char *path)
{
	struct err ignored;

	return has_file(from, path, &ignored) == 1;
}

static bool is_index(const struct oci_image_files *from)
{
	struct part p = named_part("index.json");
	struct err ignored;
	auto_call(json_decref) json_t *index = load_json(from, &p, &ignored);

	return json_is_array(json_object_get(index, "manifests"));
}

/* Whether `name`, at the root of the archive, belongs to an image of docker: "<hex>.json", or the
 * directory of a layer. */
static bool is_docker_part(const struct oci_image_files *from, const char *name,
			   char ret[OCI_IMAGE_PATH])
{
	size_t len = strcspn(name, ".");

	if (!is_hex(name, len) || (name[len] && strcmp(name + len, ".json") != 0))
		return false;
	snprintf(ret, OCI_IMAGE_PATH, "%.80s%s", name, name[len] ? "" : "/layer.tar");
	return name[len] || exists(from, ret);
}

/* Fails if the root has a part of an image of docker. */
static int check_root(const struct oci_image_files *from, struct err *err)
{
	int fd = from->open(from->arg, ".", err);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char part[OCI_IMAGE_PATH];
	bool found = false;
	const struct dirent *d;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return fd < 0 ? -1 : err_sys(err, errno, "list the archive");
	}
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is of this thread */
	for (int n = 0; !found && n < NAMES_MAX && (d = readdir(dir)); n++) {
		found = is_docker_part(from, d->d_name, part);
	}
	closedir(dir);
	if (found)
		return err_set(err, ERR_INVALID,
			       "manifest.json: not in the archive, but %s is: the image is "
			       "incomplete",
			       part);
	return 0;
}

/* There is neither a layout nor a manifest of docker: fails if there are parts of one. */
static int check_no_parts(const struct oci_image_files *from, struct err *err)
{
	bool blobs = exists(from, "blobs/sha256"), index = exists(from, "index.json");

	if (index && (blobs || is_index(from)))
		return err_set(err, ERR_INVALID,
			       "oci-layout%s: not in the archive, but index.json is: the image is "
			       "incomplete",
			       blobs ? "" : " and blobs/sha256");
	if (blobs)
		return err_set(err, ERR_INVALID,
			       "index.json and manifest.json: not in the archive, but "
			       "blobs/sha256 is: the image is incomplete");
	return check_root(from, err);
}

/* The messages name parts of the image, and a newline would end them. */
static int fail_cleanly(struct err *err)
{
	for (char *s = err->msg; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?';
	return -1;
}

int oci_image_find(const struct oci_image_files *from, enum oci_image_kind *ret, struct err *err)
{
	int layout = has_file(from, "oci-layout", err);
	int index = layout < 0 ? -1 : has_file(from, "index.json", err);
	int old = index < 0 ? -1 : has_file(from, "repositories", err);
	int docker = old < 0 ? -1 : (layout && index) ? 0 : is_docker_manifest(from, err);

	if (docker < 0)
		return fail_cleanly(err);
	*ret = OCI_IMAGE_NONE;
	if (layout && index)
		*ret = OCI_IMAGE_LAYOUT;
	else if (docker)
		*ret = OCI_IMAGE_DOCKER;
	else if (layout)
		return err_set(err, ERR_INVALID,
			       "index.json: not in the archive, but oci-layout "
			       "is: the image is incomplete");
	else if (old)
		return err_set(err, ERR_INVALID,
			       "archive is an image in the format of docker before 1.10 "
			       "(repositories without manifest.json); save it with a newer docker");
	else
		return check_no_parts(from, err);
	return 0;
}

int oci_image_open(const struct oci_image_files *from, enum oci_image_kind kind, struct template *t,
		   struct oci_image *ret, struct err *err)
{
	struct oci_image *img = calloc(1, sizeof(*img));
	int r;

	if (!img)
		return err_sys(err, ENOMEM, "image");
	r = (kind == OCI_IMAGE_DOCKER ? open_docker : open_layout)(from, t, img, err);
	if (r < 0)
		oci_image_close(img);
	else
		*ret = *img;
	free(img);
	return r < 0 ? fail_cleanly(err) : 0;
}

void oci_image_close(struct oci_image *img)
{
	for (size_t i = 0; i < img->nlayers; i++)
		close(img->layers[i].fd);
	img->nlayers = 0;
}
