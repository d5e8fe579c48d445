/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a template from an uploaded archive. This process only copies bytes: one sandbox receives
 * the files, another one decompresses the archive and stores the parts of an image until they are
 * unpacked. No record names these sandboxes, so the next startup removes them after a crash. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/test_hook.h"
#include "sandbox/files_client.h"
#include "sandbox/template/template_fill.h"
#include "sandbox/template/template_json.h"
#include "admit/policy_rules.h"
#include "template/templates.h"
#include "engine/internal.h"
#include "engine/keeper_conn.h"
#include "engine/scratch.h"
#include "engine/name_lock.h"
#include "session/capacity.h"
#include "template/template_build.h"

enum { CAPACITY_MS = 60000, ENTRIES_MAX = 4 << 20 };

#define LAYOUT "layout" /* in the home of the second sandbox's user */

struct template_build {
	struct engine *engine;
	char name[STORE_ID];
	bool oci, has_capacity, wants_root;
	unsigned features;
	struct sandbox *into, *host;
	bool sealed; /* the keeper has ended the sandbox `into` */
	struct template t;
	int64_t until_ms;
};

/* ---- sandboxes --------------------------------------------------------------------------- */

static int need_host(void *arg, struct sandbox **ret, struct err *err)
{
	struct template_build *b = arg;
	struct sandbox_spec spec =
		template_fill_host_spec(b->oci ? b->engine->opts.template_bytes : 0);

	if (!b->host && scratch_create(b->engine, &spec, NULL, &b->host, err) < 0)
		return -1;
	*ret = b->host;
	return 0;
}

/* Both sandboxes share one unit of capacity: waiting for a second one could deadlock with another
 * build that does the same. */
int template_build_new(struct engine *e, const char *name, bool oci, struct template_build **ret,
		       struct err *err)
{
	auto_call(template_build_free) struct template_build *b = NULL;
	struct sandbox_spec spec = template_fill_spec(e->opts.template_bytes);

	if (template_check_new(e, name, err) < 0)
		return -1;
	b = calloc(1, sizeof(*b));
	if (!b)
		return err_sys(err, ENOMEM, "template");
	b->engine = e;
	b->oci = oci;
	b->until_ms = clock_mono_ms() + e->opts.template_ms;
	snprintf(b->name, sizeof(b->name), "%s", name);
	template_init(&b->t);
	if (capacity_acquire(e, CAPACITY_MS, err) < 0)
		return -1;
	b->has_capacity = true;
	if (scratch_create(e, &spec, &b->features, &b->into, err) < 0)
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
	if (b->has_capacity)
		capacity_release(b->engine);
	template_fini(&b->t);
	free(b);
}

bool template_build_wants_root(const struct template_build *b)
{
	return b->wants_root;
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

static int open_part(void *arg, const char *path, struct err *err)
{
	struct template_build *b = arg;
	char full[256];
	int fd;

	snprintf(full, sizeof(full), LAYOUT "/%s", path);
	if (files_open(b->host, NULL, full, AGENT_READ, 0, &fd, err) == 0)
		return fd;
	return err->code == ERR_NOT_FOUND
		       ? err_set(err, ERR_INVALID, "%s: not in the archive", path)
		       : -1;
}

/* Unpacks the whole layout first, because its layers may come in any order. */
static int fill_image(struct template_build *b, int fd, struct archive_unpack *u, struct err *err)
{
	struct oci_image_files from = { open_part, b };
	struct oci_image img;
	struct archive_unpack layout;
	int r;

	if (need_host(b, &u->host, err) < 0)
		return -1;
	layout = make_unpack(b, b->host);
	if (archive_unpack_tar(&layout, fd, LAYOUT, 0, err) < 0 ||
	    oci_image_open(&from, &b->t, &img, err) < 0)
		return -1;
	b->wants_root = img.wants_root;
	r = template_fill_layers(u, &img, template_fill_flags(b->features), err);
	oci_image_close(&img);
	return r;
}

static int fill_files(struct template_build *b, int fd, struct err *err)
{
	struct archive_unpack u = make_unpack(b, b->into);
	int r;

	r = b->oci ? fill_image(b, fd, &u, err)
		   : archive_unpack_tar(&u, fd, "/", template_fill_flags(b->features), err);
	if (r < 0 || template_fill_user(b->into, &b->t, err) < 0)
		return -1;
	b->t.made.at = engine_now(b->engine);
	b->t.made.bytes = u.bytes;
	b->t.made.from = strdup(b->oci ? "oci" : "tar");
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

static int seal_files(struct template_build *b, struct err *err)
{
	struct keeper_request req =
		keeper_client_request(KEEPER_TEMPLATE_SEAL, sandbox_id(b->into));

	snprintf(req.template, sizeof(req.template), "%s", b->name);
	b->sealed = keeper_conn_call(b->engine, &req, NULL, err) == 0;
	return b->sealed ? 0 : -1;
}

static int seal_template(struct template_build *b, struct err *err)
{
	const char *home = b->engine->home;
	struct err ignored;

	/* files without a template.json are left over from an interrupted change */
	if (template_mark(home, b->name, TEMPLATE_UNFINISHED, err) < 0 ||
	    template_delete_files(b->engine, b->name, err) < 0)
		return -1;
	hook_crash("template:marked");
	if (seal_files(b, err) == 0) {
		hook_crash("template:sealed");
		if (template_save(home, b->name, &b->t, err) == 0) {
			hook_crash("template:saved");
			template_unmark(home, b->name, TEMPLATE_UNFINISHED);
			return 0;
		}
		(void)template_delete_files(b->engine, b->name, &ignored);
	}
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
