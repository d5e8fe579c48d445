/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of snapshots: homes with both kinds of storage, and their layers. */
#ifndef LODGE_TESTS_SESSION_SNAPSHOT_H
#define LODGE_TESTS_SESSION_SNAPSHOT_H

#include "session_engine.h"
#include "tmp_name.h"

#include <sys/stat.h>

#include "engine/internal.h"
#include "layers/layers.h"
#include "service/timers.h"
#include "engine/keeper_conn.h"
#include "engine/keeper_listing.h"
#include "snapshot/snapshot.h"
#include "snapshot/fork.h"

static bool is_dir_store; /* plain directories: files of running sandboxes are copied, layers are
			     stacked */

/* Makes a home on plain directories if `dir`, else on a btrfs volume where the host has btrfs. */
static inline void new_home(bool dir)
{
	char path[TMP_NAME_SIZE + 8];

	is_dir_store = dir;
	if (why_not || !mkdtemp(tmp_name(home, "lodge-sessions"))) {
		home[0] = '\0';
		why_not = why_not ? why_not : "needs a directory of its own";
		return;
	}
	snprintf(path, sizeof(path), "%s/store", home);
	if (dir && mkdir(path, 0700) < 0)
		why_not = "needs a directory of its own";
}

static inline bool take(const char *name, const char *as, struct store_snapshot *ret)
{
	struct session_ref ref = key(name);
	struct snapshot_opts want = { .name = as };

	if (session_snapshot(engine, &me, &ref, &want, ret, &err) == 0)
		return true;
	printf("# %s\n", err.msg);
	return false;
}

static inline bool roll_back(const char *name, const char *snapshot)
{
	struct session_ref ref = key(name);

	if (session_rollback(engine, &me, &ref, snapshot, 0, NULL, &err) == 0)
		return true;
	printf("# %s\n", err.msg);
	return false;
}

static inline bool hibernate(const char *name)
{
	struct session_ref ref = key(name);

	if (session_hibernate(engine, &me, &ref, 0, NULL, &err) == 0)
		return true;
	printf("# %s\n", err.msg);
	return false;
}

static inline bool destroy(const char *name)
{
	struct session_ref ref = key(name);

	return session_destroy(engine, &me, &ref, NULL, NULL, &err) == 0;
}

/* Counts layers on disk; -1: unknown. */
static inline int on_disk(void)
{
	struct keeper_listing l;
	int n = 0;

	if (keeper_listing_read(engine, &l, &err) < 0)
		return -1;
	for (size_t i = 0; i < l.count; i++)
		n += l.items[i].what == KEEPER_IS_LAYER;
	keeper_listing_fini(&l);
	return n;
}

static inline bool has_layer(const char *id)
{
	struct keeper_listing l;
	bool has;

	if (keeper_listing_read(engine, &l, &err) < 0)
		return false;
	has = keeper_listing_has_layer(&l, id);
	keeper_listing_fini(&l);
	return has;
}

/* Removes everything that nothing refers to. */
static inline void collect_all(void)
{
	pass(20 * MINUTE);
	timers_collect(engine);
}

/* Removes the test's snapshots too. */
static inline void forget_snapshots(void)
{
	struct store_page page = { .limit = STORE_PAGE_MAX };
	struct store_snapshot_list l = { 0 };

	if (snapshot_list(engine, &me, NULL, page, &l, &err) < 0)
		return;
	for (size_t i = 0; i < l.count; i++)
		(void)snapshot_remove(engine, &me, l.items[i].id, &err);
	store_snapshot_list_fini(&l);
}

/* Opens an engine without anything from the previous test. */
#define FRESH()                                                                                    \
	do {                                                                                       \
		ENGINE();                                                                          \
		forget_snapshots();                                                                \
		collect_all();                                                                     \
		CHECK(on_disk() == 0);                                                             \
	} while (0)

static inline void find_keeper(void)
{
	const char *build = getenv("LODGE_BUILD");

	setvbuf(stdout, NULL, _IOLBF, 0); /* a leak report must not lose earlier output */
	the_time = (int64_t)time(NULL) * 1000;
	snprintf(keeper, sizeof(keeper), "%s/lodge-keeper", build ? build : "build");
	if (access(keeper, X_OK) < 0)
		why_not = "needs lodge-keeper in $LODGE_BUILD";
	else if (geteuid() != 0)
		why_not = "needs root";
}

static inline size_t depth_of(const char *name)
{
	char ids[KEEPER_LAYERS_MAX][STORE_ID];
	struct store_session r;
	size_t n = 0;

	if (look(name, &r) < 0 || layers_list_deep_stack(engine, r.layer, ids, &n, &err) < 0)
		return 0;
	return n;
}

#endif
