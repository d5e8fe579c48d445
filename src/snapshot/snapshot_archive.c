/* SPDX-License-Identifier: Apache-2.0 */
/* Export: the keeper writes the merged layers as one OCI layer, and lodge-zstd compresses it.
 * Import: the archive is unpacked inside a sandbox of its own, whose files become the snapshot. No
 * privileged program decompresses an archive or parses its names. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test_hook.h"
#include "base/units.h"
#include "sandbox/files_client.h"
#include "sandbox/keeper_client.h"
#include "sandbox/layer_client.h"
#include "sandbox/files_stream.h"
#include "layers/layers.h"
#include "engine/name_check.h"
#include "engine/keeper_conn.h"
#include "snapshot/snapshot_archive.h"
#include "admit/quota.h"
#include "engine/session_state.h"
#include "engine/zstd_pipe.h"
#include "exec/side_conn.h"
#include "session/session_api.h"
#include "snapshot/snapshot.h"
#include "layers/snapshot_record.h"

enum {
	BUSY_MS = 20000, /* the keeper limits concurrent jobs */
	BUSY_US = 20000,
	CAPACITY_MS = 60000,
};

/* Limits while unpacking, unless a quota is lower. */
#define UNPACK_DISK (256ull << 30)
#define UNPACK_INODES (64ull << 20)

#define UNFINISHED "lodge.import"

/* ---- export ---------------------------------------------------------------------------------- */

static int start_export(struct engine *e, const char *job, const char *layer, int fd,
			struct err *err)
{
	char ids[KEEPER_LAYERS_MAX][STORE_ID];
	const char *names[KEEPER_LAYERS_MAX];
	int64_t until = clock_mono_ms() + BUSY_MS;
	size_t n;
	int r;

	if (layers_list_deep_stack(e, layer, ids, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		names[i] = ids[i];
	for (;;) {
		r = KEEPER_CALL_ONCE(e, err, layer_export, job, names, n, fd, err);
		if (r == 0 || err->sys != EBUSY || clock_mono_ms() > until)
			return r;
		usleep(BUSY_US);
	}
}

struct archive_export {
	struct engine *engine;
	const char *layer;
};

static int write_layers(void *arg, int fd, struct err *err)
{
	struct archive_export *x = arg;
	char job[STORE_ID];
	struct err ignored;

	if (id_generate("job_", job, err) < 0 ||
	    start_export(x->engine, job, x->layer, fd, err) < 0)
		return -1;
	if (keeper_conn_wait_job(x->engine, job, NULL, err) == 0)
		return 0;
	/* also cancels the job of this name */
	(void)KEEPER_CALL(x->engine, &ignored, layer_drop, job, &ignored);
	return err->sys == EILSEQ ? err_set(err, ERR_INVALID,
					    "cannot export: a file name starts with .wh., which "
					    "archives reserve")
				  : -1;
}

int snapshot_export(struct engine *e, const struct caller *caller, const char *id, int fd,
		    struct err *err)
{
	struct archive_export x = { e, NULL };
	struct store_snapshot s;
	char holder[STORE_ID];
	int r;

	if (id_generate("export:", holder, err) < 0 ||
	    snapshot_hold(e, caller, id, holder, &s, err) < 0)
		return -1;
	x.layer = s.layer;
	r = engine_zstd_pipe(e, &(struct zstd_pipe_opts){ 0 }, fd, write_layers, &x, err);
	layers_release(e, s.layer, holder);
	return r < 0 ? err_ctx(err, "snapshot %s", s.id) : 0;
}

/* ---- import ---------------------------------------------------------------------------------- */

struct archive_import {
	bool owners; /* the files keep theirs */
	bool by_quota; /* max_bytes is what the quota leaves */
	uint64_t max_bytes, max_entries;
	struct sandbox *sb;
};

/* What an import may take: UNPACK_DISK, limits_max_disk, or what the tenant's quota leaves.
 * Imported snapshots count against it here, or a tenant could import the same archive for ever. */
static int find_limit(struct engine *e, const struct caller *caller, struct archive_import *x,
		      struct err *err)
{
	struct store_quota q;
	struct store_usage used;
	uint64_t max = e->opts.limits_max.disk_bytes;
	int64_t imported = 0, left;

	x->max_bytes = max && max < UNPACK_DISK ? max : UNPACK_DISK;
	if (quota_get(e, caller->tenant, NULL, &q, &used, err) < 0 ||
	    STORE_CALL(e, store_snapshot_imported, caller->tenant, &imported, err) < 0)
		return -1;
	left = q.disk_bytes - used.disk_bytes - imported;
	if (!q.disk_bytes || left >= (int64_t)x->max_bytes)
		return 0;
	x->by_quota = true;
	x->max_bytes = left > 0 ? (uint64_t)left : 0;
	if (x->max_bytes >= LIMITS_DISK_MIN)
		return 0;
	err_set(err, ERR_LIMIT,
		"tenant '%s' is at its quota of disk bytes: %lld of %lld used, %lld of them by "
		"imported snapshots",
		caller->tenant, (long long)(q.disk_bytes - left), (long long)q.disk_bytes,
		(long long)imported);
	err->sys = EDQUOT;
	return -1;
}

static int set_limits(uint64_t disk, struct template *t, struct err *err)
{
	if (template_set_limit(t, "disk_bytes", disk, err) < 0 ||
	    template_set_limit(t, "file_bytes", disk, err) < 0)
		return -1;
	return template_set_limit(t, "inodes", UNPACK_INODES, err);
}

/* Creates a session to unpack in. Its metadata marks it for snapshot_clean_imports() after a
 * crash. */
static int create_session(struct engine *e, const struct caller *caller, const char *template,
			  const struct archive_import *x, char ret[STORE_ID], struct err *err)
{
	auto_fini(template_fini) struct template over;
	struct session_opts opts = { .template = template,
				     .overrides = &over,
				     .no_policy = true,
				     .on_idle = SESSION_END_DESTROY,
				     .on_expire = SESSION_END_DESTROY,
				     .metadata = "{\"" UNFINISHED "\":\"unfinished\"}",
				     .wait_ms = CAPACITY_MS };
	struct session_enter_result entered;

	template_init(&over);
	if (x->owners) { /* rootless sandboxes have a single owner */
		over.class = KEEPER_CLASS_ROOT;
		over.user = strdup("0:0");
		if (!over.user)
			return err_sys(err, ENOMEM, "import");
	}
	if (set_limits(x->max_bytes, &over, err) < 0 ||
	    session_enter(e, caller, &opts, &entered, err) < 0)
		return -1;
	memcpy(ret, entered.session.id, sizeof(entered.session.id));
	session_enter_result_fini(&entered);
	return 0;
}

static int unpack_tar_in(void *arg, int fd, struct err *err)
{
	const struct archive_import *x = arg;
	struct files_job_spec spec = {
		.op = AGENT_JOB_TAR_IN,
		.flags = AGENT_JOB_OCI | (x->owners ? AGENT_JOB_OWNERS : 0),
		.path = "/",
		.fd = fd,
		.max_bytes = x->max_bytes,
		.max_entries = x->max_entries,
	};

	return files_job_run(x->sb, &spec, err);
}

/* Names the quota if it is what the files did not fit in. */
static int explain_limit(const struct archive_import *x, struct err *err)
{
	char left[SIZE_TEXT];

	if (!x->by_quota || (err->sys != ENOSPC && err->sys != EDQUOT))
		return -1;
	err->sys = EDQUOT;
	return err_ctx(err, "the disk quota of the tenant leaves %s",
		       units_format(x->max_bytes, left));
}

static int unpack(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		  struct archive_import *x, int fd, struct err *err)
{
	auto_call(side_conn_close) struct side_conn *conn = NULL;
	struct zstd_pipe_opts o = { .back = true };

	if (e->opts.import_ratio != ENGINE_UNLIMITED)
		o.ratio = e->opts.import_ratio;
	if (side_conn_open(e, caller, ref, true, &conn, NULL, err) < 0)
		return -1;
	x->sb = side_conn_sandbox(conn);
	return engine_zstd_pipe(e, &o, fd, unpack_tar_in, x, err) < 0 ? explain_limit(x, err) : 0;
}

static int add_snapshot(struct engine *e, const struct caller *caller,
			const struct session_ref *ref, const char *name, struct store_snapshot *ret,
			struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct store_snapshot snap = { .generation = 1, .created_at = engine_now(e) };
	int r;

	if (session_hibernate(e, caller, ref, 0, &s, err) < 0)
		return -1;
	if (!session_has_files(&s))
		return err_set(err, ERR_INTERNAL, "the imported files are lost");
	hook_crash("import:sealed");
	if (id_generate("snp_", snap.id, err) < 0)
		return -1;
	memcpy(snap.tenant, s.tenant, sizeof(snap.tenant));
	memcpy(snap.layer, s.layer, sizeof(snap.layer));
	snprintf(snap.name, sizeof(snap.name), "%s", name ? name : "");
	r = STORE_CALL(e, store_snapshot_add, &snap, err);
	return r < 0 ? -1 : snapshot_get(e, caller, snap.id, ret, err);
}

int snapshot_import(struct engine *e, const struct caller *caller, const char *template,
		    const char *name, int fd, struct store_snapshot *ret, struct err *err)
{
	static const struct session_cause_opts done = { SESSION_CAUSE_REQUESTED,
							"the import is complete", "lodge" };
	char id[STORE_ID];
	struct session_ref ref = { .id = id };
	struct archive_import x = { .max_entries = e->opts.import_entries };
	struct err ignored;
	unsigned has = 0;
	int r;

	if (name_check_optional("name", name, STORE_NAME, err) < 0 ||
	    KEEPER_CALL(e, err, keeper_client_features, &has, err) < 0 ||
	    find_limit(e, caller, &x, err) < 0)
		return -1;
	x.owners = (has & KEEPER_HAS_ROOT) != 0;
	if (create_session(e, caller, template, &x, id, err) < 0)
		return -1;
	r = unpack(e, caller, &ref, &x, fd, err);
	if (r == 0)
		r = add_snapshot(e, caller, &ref, name, ret, err);
	(void)session_destroy(e, caller, &ref, &done, NULL, &ignored);
	return r;
}

void snapshot_clean_imports(struct engine *e)
{
	static const struct session_cause_opts left = {
		SESSION_CAUSE_INTERRUPTED, "an import was interrupted when the engine ended",
		"lodge"
	};
	struct store_session_filter f = { .meta_key = UNFINISHED, .meta_value = "unfinished" };
	struct store_page page = { .limit = STORE_PAGE_MAX };
	struct store_session_list l = { 0 };
	struct err ignored;
	int r = STORE_CALL(e, store_session_list, &f, page, &l, &ignored);

	for (size_t i = 0; r == 0 && i < l.count; i++) {
		struct caller owner = { .tenant = l.items[i].tenant, .actor = "lodge" };
		struct session_ref ref = { .id = l.items[i].id };

		/* a caller can set the same metadata, but our sessions have no keys either */
		if (l.items[i].nbindings || l.items[i].on_idle != SESSION_END_DESTROY)
			continue;
		(void)session_destroy(e, &owner, &ref, &left, NULL, &ignored);
	}
	store_session_list_fini(&l);
}
