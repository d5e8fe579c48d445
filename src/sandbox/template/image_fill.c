/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/template/image_fill.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/test_hook.h"
#include "sandbox/files_client.h"
#include "wire/agent_proto.h"

enum {
	LAYERS_MAX = KEEPER_TEMPLATE_DEPTH - 1, /* the template itself is one more */
	NAME_HEX = KEEPER_ID_SIZE - sizeof(KEEPER_IMAGE_PREFIX),
	TRIES_MAX = 3,
	OVERLAY_MAGIC = 0x794c7630,
};

/* The layers of the image that make one template: [first, end). */
struct step {
	size_t first, end;
	char name[KEEPER_ID_SIZE];
};

struct plan {
	struct step steps[LAYERS_MAX];
	size_t n;
};

/* ---- names ----------------------------------------------------------------------------------- */

/* Hashes the digest of the layers below together with that of this layer. */
static void chain_digest(char chain[SHA256_HEX], const char *diff_id)
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, chain, strlen(chain));
	sha256_add(&s, " ", 1);
	sha256_add(&s, diff_id, strlen(diff_id));
	sha256_end(&s, chain);
}

/* The uppermost step takes all layers that are left over, because an overlay has a maximum. How the
 * files are unpacked is part of the name: without root they all have one owner. */
static void make_plan(const struct oci_image *img, unsigned flags, struct plan *ret)
{
	char chain[SHA256_HEX];

	snprintf(chain, sizeof(chain), "lodge 1%s", flags & AGENT_JOB_OWNERS ? " owners" : "");
	ret->n = 0;
	for (size_t i = 0; i < img->nlayers; i++) {
		struct step *s = &ret->steps[ret->n];

		chain_digest(chain, img->layers[i].diff_id);
		if (ret->n < LAYERS_MAX) {
			s->first = i;
			ret->n++;
		} else {
			s--;
		}
		s->end = i + 1;
		snprintf(s->name, sizeof(s->name), KEEPER_IMAGE_PREFIX "%.*s", (int)NAME_HEX,
			 chain);
	}
}

/* ---- layers ---------------------------------------------------------------------------------- */

static int compare(const char *what, const char *want, struct sha256 *got, struct err *err)
{
	char hex[SHA256_HEX];

	sha256_end(got, hex);
	if (!*want || strcmp(hex, want) == 0)
		return 0;
	return err_set(err, ERR_INVALID,
		       "%s does not match its digest: sha256:%.12s... expected, "
		       "but it has sha256:%.12s...",
		       what, want, hex);
}

static int read_layer(struct image_fill *f, const struct oci_layer *l, struct sandbox *into,
		      struct err *err)
{
	struct archive_hash hash;
	int r;

	if (lseek(l->fd, 0, SEEK_SET) < 0)
		return err_sys(err, errno, "read the archive");
	f->unpack.into = into;
	f->unpack.hash = &hash;
	r = into ? archive_unpack_tar(&f->unpack, l->fd, "/", f->flags | AGENT_JOB_OCI, err)
		 : archive_unpack_verify(&f->unpack, l->fd, err);
	f->unpack.hash = NULL;
	if (r < 0 || compare("stored file", l->digest, &hash.stored, err) < 0)
		return -1;
	return compare("content", l->diff_id, &hash.content, err);
}

/* `into` NULL: the step exists already, and its layers are only read. */
static int read_step(struct image_fill *f, const struct oci_image *img, const struct step *s,
		     struct sandbox *into, struct err *err)
{
	for (size_t i = s->first; i < s->end; i++)
		if (read_layer(f, &img->layers[i], into, err) < 0)
			return err_ctx(err, "layer %zu", i + 1);
	return 0;
}

/* Another build may have made the same template meanwhile: it has the same files. */
static int seal_step(struct image_fill *f, struct sandbox **sb, const struct step *s,
		     struct err *err)
{
	if (f->ops.seal(f->ops.arg, *sb, s->name, err) == 0) {
		*sb = NULL;
	} else {
		if (err->code != ERR_CONFLICT)
			return -1;
		f->ops.destroy(f->ops.arg, *sb);
		*sb = NULL;
	}
	snprintf(f->top, sizeof(f->top), "%s", s->name);
	hook_crash("image:sealed");
	if (f->ops.create(f->ops.arg, s->name, sb, err) < 0)
		return -1;
	hook_crash("image:created");
	return 0;
}

/* A sandbox on the uppermost step that exists; *ret is the number of steps below it. */
static int open_existing(struct image_fill *f, const struct plan *p, struct sandbox **ret_sandbox,
			 size_t *ret, struct err *err)
{
	for (size_t n = p->n; n > 0; n--) {
		const char *name = p->steps[n - 1].name;

		if (f->ops.create(f->ops.arg, name, ret_sandbox, err) == 0) {
			snprintf(f->top, sizeof(f->top), "%s", name);
			*ret = n;
			return 0;
		}
		if (err->code != ERR_NOT_FOUND)
			return -1;
	}
	*ret = 0;
	return f->ops.create(f->ops.arg, "empty", ret_sandbox, err);
}

static int fill_once(struct image_fill *f, const struct oci_image *img, const struct plan *p,
		     struct sandbox **ret, struct err *err)
{
	struct sandbox *sb = NULL;
	size_t existing = 0;
	int r;

	f->unpack.total = img->total;
	f->unpack.done = f->unpack.bytes = 0;
	if (open_existing(f, p, &sb, &existing, err) < 0)
		return -1;
	r = 0;
	for (size_t i = 0; r == 0 && i < p->n; i++) {
		r = read_step(f, img, &p->steps[i], i < existing ? NULL : sb, err);
		if (r == 0 && i >= existing)
			r = seal_step(f, &sb, &p->steps[i], err);
	}
	if (r == 0)
		*ret = sb;
	else if (sb)
		f->ops.destroy(f->ops.arg, sb);
	return r;
}

/* Someone may delete the last template that uses a layer between two steps: then start again. */
int image_fill(struct image_fill *f, const struct oci_image *img, struct sandbox **ret,
	       struct err *err)
{
	struct plan p;

	make_plan(img, f->flags, &p);
	for (int i = 0; i < TRIES_MAX; i++) {
		if (fill_once(f, img, &p, ret, err) == 0)
			return 0;
		if (err->code != ERR_NOT_FOUND)
			break;
	}
	image_fill_undo(f);
	return -1;
}

void image_fill_undo(struct image_fill *f)
{
	if (*f->top)
		f->ops.drop(f->ops.arg, f->top);
	f->top[0] = '\0';
}

/* A link of the archive may lead to /proc or /dev of the sandbox, which are no part of it. */
int image_fill_open_part(void *arg, const char *path, struct err *err)
{
	char full[OCI_IMAGE_PATH + 1];
	auto_close int fd = -1;
	struct statfs fs;

	snprintf(full, sizeof(full), "/%s", path);
	if (files_open(arg, NULL, full, AGENT_READ, 0, &fd, err) < 0)
		return -1;
	if (fstatfs(fd, &fs) < 0 || fs.f_type != OVERLAY_MAGIC)
		return err_set(err, ERR_INVALID, "%s: leads out of the archive", path);
	return steal_fd(&fd);
}
