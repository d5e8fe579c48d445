/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a template from an uploaded archive. This process only copies and hashes bytes: one
 * sandbox receives the files, another one decompresses the archive. If the files are those of an
 * image, the first sandbox keeps them, and others unpack the layers. No record names these
 * sandboxes, so the next startup removes them after a crash. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/test_hook.h"
#include "sandbox/template/image_fill.h"
#include "sandbox/template/template_fill.h"
#include "sandbox/template/template_json.h"
#include "admit/policy_rules.h"
#include "template/templates.h"
#include "engine/disk_space.h"
#include "engine/internal.h"
#include "engine/keeper_conn.h"
#include "engine/scratch.h"
#include "engine/name_lock.h"
#include "session/capacity.h"
#include "template/template_build.h"

enum { CAPACITY_MS = 60000, ENTRIES_MAX = 4 << 20 };

struct template_build {
	struct engine *engine;
	char name[STORE_ID];
	enum template_format format;
	bool is_image, has_capacity, wants_root;
	unsigned features;
	struct sandbox *into, *host;
	struct sandbox *parts; /* with the files of the image */
	struct image_fill image;
	bool sealed; /* the keeper has ended the sandbox `into` */
	struct template t;
	int64_t until_ms;
};

/* ---- sandboxes --------------------------------------------------------------------------- */

static int need_host(void *arg, struct sandbox **ret, struct err *err)
{
	struct template_build *b = arg;
	struct sandbox_spec spec = template_fill_host_spec(0);

	if (!b->host && scratch_create(b->engine, &spec, NULL, &b->host, err) < 0)
		return -1;
	*ret = b->host;
	return 0;
}

static int create_target(void *arg, const char *template, struct sandbox **ret, struct err *err)
{
	struct template_build *b = arg;
	struct sandbox_spec spec = template_fill_spec(b->engine->opts.template_bytes);

	spec.template = template;
	return scratch_create(b->engine, &spec, &b->features, ret, err);
}

/* All sandboxes share one unit of capacity: waiting for a second one could deadlock with another
 * build that does the same. */
int template_build_new(struct engine *e, const char *name, enum template_format format,
		       struct template_build **ret, struct err *err)
{
	auto_call(template_build_free) struct template_build *b = NULL;

	if (template_check_new(e, name, err) < 0 || disk_space_check(e, err) < 0)
		return -1;
	b = calloc(1, sizeof(*b));
	if (!b)
		return err_sys(err, ENOMEM, "template");
	b->engine = e;
	b->format = format;
	b->until_ms = clock_mono_ms() + e->opts.template_ms;
	snprintf(b->name, sizeof(b->name), "%s", name);
	template_init(&b->t);
	if (capacity_acquire(e, CAPACITY_MS, err) < 0)
		return -1;
	b->has_capacity = true;
	if (create_target(b, "empty", &b->into, err) < 0)
		return -1;
	*ret = steal_ptr(&b);
	return 0;
}

void template_build_free(struct template_build *b)
{
	if (!b)
		return;
	if (b->sealed)
		sandbox_free(b->into);
	else
		scratch_destroy(b->engine, b->into);
	scratch_destroy(b->engine, b->host);
	scratch_destroy(b->engine, b->parts);
	if (!b->sealed)
		image_fill_undo(&b->image);
	if (b->has_capacity)
		capacity_release(b->engine);
	template_fini(&b->t);
	free(b);
}

bool template_build_is_image(const struct template_build *b)
{
	return b->is_image;
}

bool template_build_wants_root(const struct template_build *b)
{
	return b->wants_root;
}

/* ---- layers of an image ------------------------------------------------------------------ */

static int seal_files(struct engine *e, struct sandbox *sb, const char *name, struct err *err)
{
	struct keeper_request req = keeper_client_request(KEEPER_TEMPLATE_SEAL, sandbox_id(sb));

	snprintf(req.template, sizeof(req.template), "%s", name);
	return KEEPER_CALL_ONCE(e, err, keeper_client_call, &req, NULL, 0, NULL, NULL, err);
}

static int seal_layer(void *arg, struct sandbox *sb, const char *name, struct err *err)
{
	struct template_build *b = arg;

	if (seal_files(b->engine, sb, name, err) < 0)
		return -1;
	sandbox_free(sb);
	return 0;
}

static void destroy_target(void *arg, struct sandbox *sb)
{
	scratch_destroy(((struct template_build *)arg)->engine, sb);
}

static void drop_layer(void *arg, const char *name)
{
	struct err in_use;

	(void)template_delete_files(((struct template_build *)arg)->engine, name, &in_use);
}

/* ---- filling ----------------------------------------------------------------------------- */

static struct archive_unpack make_unpack(struct template_build *b, struct sandbox *into)
{
	return (struct archive_unpack){ .into = into,
					.host = b->host,
					.need_host = need_host,
					.arg = b,
					.max_bytes = b->engine->opts.template_bytes,
					.max_entries = ENTRIES_MAX,
					.until_ms = b->until_ms };
}

/* The archive is unpacked: is it an image? */
static int find_image(struct template_build *b, enum oci_image_kind *ret, struct err *err)
{
	struct oci_image_files from = { image_fill_open_part, b->into };

	if (oci_image_find(&from, ret, err) < 0)
		return -1;
	if (*ret != OCI_IMAGE_NONE && b->format == TEMPLATE_ROOTFS)
		return err_set(err, ERR_INVALID,
			       "format: the archive is an image (%s), not a root "
			       "file system; use \"oci\"",
			       *ret == OCI_IMAGE_DOCKER ? "docker save" : "OCI image layout");
	if (*ret == OCI_IMAGE_NONE && b->format == TEMPLATE_IMAGE)
		*ret = OCI_IMAGE_LAYOUT; /* the error says what is missing */
	return 0;
}

static int fill_image(struct template_build *b, enum oci_image_kind kind, struct err *err)
{
	struct oci_image_files from = { image_fill_open_part, b->into };
	struct oci_image img;
	int r;

	if (oci_image_open(&from, kind, &b->t, &img, err) < 0)
		return -1;
	b->wants_root = img.wants_root;
	b->parts = steal_ptr(&b->into);
	b->image = (struct image_fill){
		.ops = { create_target, seal_layer, destroy_target, drop_layer, b },
		.unpack = make_unpack(b, NULL),
		.flags = template_fill_flags(b->features),
	};
	r = image_fill(&b->image, &img, &b->into, err);
	oci_image_close(&img);
	return r;
}

static int fill_files(struct template_build *b, int fd, struct err *err)
{
	struct archive_unpack u = make_unpack(b, b->into);
	enum oci_image_kind kind;

	if (archive_unpack_tar(&u, fd, "/", template_fill_flags(b->features), err) < 0 ||
	    find_image(b, &kind, err) < 0)
		return -1;
	b->is_image = kind != OCI_IMAGE_NONE;
	if (b->is_image && fill_image(b, kind, err) < 0)
		return -1;
	if (template_fill_check(b->into, b->is_image, err) < 0 ||
	    template_fill_user(b->into, &b->t, err) < 0 || template_fill_sync(b->into, err) < 0)
		return -1;
	b->t.made.at = engine_now(b->engine);
	b->t.made.bytes = b->is_image ? b->image.unpack.bytes : u.bytes;
	b->t.made.from = strdup(b->is_image ? "oci" : "tar");
	return b->t.made.from ? 0 : err_sys(err, ENOMEM, "template");
}

int template_build_fill(struct template_build *b, int fd, struct err *err)
{
	if (fill_files(b, fd, err) == 0)
		return 0;
	if (err->code == ERR_NOT_FOUND) /* the archive is incomplete */
		err->code = ERR_INVALID;
	if (err->code == ERR_LIMIT && !err->sys)
		err->sys = EMSGSIZE;
	return -1;
}

/* ---- sealing ----------------------------------------------------------------------------- */

static int seal_template(struct template_build *b, struct err *err)
{
	const char *home = b->engine->home;
	struct err ignored;

	/* files without a template.json are left over from an interrupted change */
	if (template_mark(home, b->name, TEMPLATE_UNFINISHED, err) < 0 ||
	    template_delete_files(b->engine, b->name, err) < 0)
		return -1;
	hook_crash("template:marked");
	b->sealed = seal_files(b->engine, b->into, b->name, err) == 0;
	if (b->sealed) {
		hook_crash("template:sealed");
		if (template_save(home, b->name, &b->t, err) == 0) {
			hook_crash("template:saved");
			template_unmark(home, b->name, TEMPLATE_UNFINISHED);
			return 0;
		}
	}
	/* A keeper that does not answer may seal it later: the mark stays for the next start. */
	if (template_delete_files(b->engine, b->name, &ignored) == 0)
		(void)template_remove(home, b->name, &ignored);
	return -1;
}

int template_build_commit(struct template_build *b, const char *actor, struct err *err)
{
	struct name_lock lock;
	int r;

	name_lock(b->engine, &lock, TEMPLATES_LOCK, NULL, "");
	r = template_check_new(b->engine, b->name, err);
	if (r == 0)
		r = seal_template(b, err);
	name_unlock(&lock);
	if (r == 0)
		template_audit(b->engine, actor, b->name, "created from an archive");
	return r;
}
