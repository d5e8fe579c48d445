/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/keeper_proto.h"

#include "base/array.h"
#include "tap.h"
#include "wire/boot_fds.h"

static struct keeper_request request(enum keeper_op op, const char *id)
{
	struct keeper_request r;

	memset(&r, 0, sizeof(r));
	r.version = KEEPER_VERSION;
	r.op = op;
	if (id)
		strcpy(r.id, id);
	return r;
}

static struct keeper_request create(void)
{
	struct keeper_request r = request(KEEPER_CREATE, "box-1");

	strcpy(r.create.template, "host");
	strcpy(r.create.hostname, "lodge");
	r.create.limits = limits_default();
	r.create.store = KEEPER_STORE_MEMORY;
	r.create.uid = r.create.gid = 1000;
	return r;
}

static const char *problem(const struct keeper_request *r, size_t nfds)
{
	return keeper_request_problem(r, sizeof(*r), nfds);
}

static void ids(void)
{
	static const char *const good[] = { "a", "0", "box-1", "a.b_c-d", "x..y" };
	static const char *const bad[] = {
		"", ".", "..", "-a", "_a", "A", "a/b", "a b", "\xc3\xa4"
	};
	char id[KEEPER_ID_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		memset(id, 0, sizeof(id));
		strcpy(id, good[i]);
		CHECK(keeper_id_is_valid(id));
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		memset(id, 0, sizeof(id));
		strcpy(id, bad[i]);
		CHECK(!keeper_id_is_valid(id));
	}
	memset(id, 'a', sizeof(id));
	CHECK(!keeper_id_is_valid(id)); /* not terminated */
	id[KEEPER_ID_SIZE - 1] = '\0';
	CHECK(keeper_id_is_valid(id));
	id[5] = '\0';
	CHECK(!keeper_id_is_valid(id)); /* bytes after the terminator */
}

static void paths(void)
{
	static const char *const good[] = { "/a", "/a/b", "/...", "/.a", "/a b/\n", "/..a" };
	static const char *const bad[] = { "",	 "/",	"a",	  "//",	     "/a/",   "/a//b",
					   "/.", "/..", "/a/./b", "/a/../b", "/a/..", "./a" };
	char path[KEEPER_PATH_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		memset(path, 0, sizeof(path));
		strcpy(path, good[i]);
		CHECK(keeper_path_is_valid(path));
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		memset(path, 0, sizeof(path));
		strcpy(path, bad[i]);
		CHECK(!keeper_path_is_valid(path));
	}
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	CHECK(!keeper_path_is_valid(path));
	path[KEEPER_PATH_SIZE - 1] = '\0';
	CHECK(keeper_path_is_valid(path));
}

static void well_formed_requests_pass(void)
{
	struct keeper_request r;

	r = create();
	CHECK(!problem(&r, 0));
	r.create.hostname[0] = '\0';
	memset(r.create.hostname, 0, sizeof(r.create.hostname));
	CHECK(!problem(&r, 0));
	r.create.nbinds = 2;
	strcpy(r.create.binds[0].path, "/work");
	strcpy(r.create.binds[1].path, "/device"); /* not below /dev */
	r.create.binds[1].writable = 1;
	CHECK(!problem(&r, 2));
	r.create.class = KEEPER_CLASS_ROOT;
	r.create.uid = r.create.gid = 0;
	CHECK(!problem(&r, 2));
	r = request(KEEPER_HELLO, NULL);
	CHECK(!problem(&r, 0));
	r = request(KEEPER_DESTROY, "x");
	CHECK(!problem(&r, 0));
	r = request(KEEPER_POOL, NULL);
	CHECK(!problem(&r, 0));
	r = request(KEEPER_TEMPLATE_SEAL, "x");
	strcpy(r.template, "debian");
	CHECK(!problem(&r, 0));
	r = request(KEEPER_LIMITS, "x");
	r.limits = limits_default();
	CHECK(!problem(&r, 0));
}

static void the_frame_is_checked_first(void)
{
	struct keeper_request r = create();

	CHECK_STR(keeper_request_problem(&r, sizeof(r) - 1, 0), "wrong size");
	CHECK_STR(keeper_request_problem(&r, 0, 0), "wrong size");
	r.version = 2;
	CHECK_STR(problem(&r, 0), "wrong version");
	r = request(KEEPER_OP_MAX, NULL);
	CHECK_STR(problem(&r, 0), "unknown operation");
	r = request((enum keeper_op)0, NULL);
	CHECK_STR(problem(&r, 0), "unknown operation");
	r = request(KEEPER_HELLO, NULL);
	CHECK_STR(problem(&r, 1), "unexpected descriptor");
	r = request(KEEPER_HELLO, "x");
	CHECK_STR(problem(&r, 0), "invalid id");
	r = request(KEEPER_FREEZE, NULL);
	CHECK_STR(problem(&r, 0), "invalid id");
}

static void each_field_of_create_is_checked(void)
{
	struct keeper_request r;

#define REFUSED(change, nfds, what)                                                                \
	r = create();                                                                              \
	change;                                                                                    \
	CHECK(problem(&r, nfds));                                                                  \
	CHECK_STR(problem(&r, nfds), what)

	REFUSED(strcpy(r.create.template, "../x"), 0, "invalid template name");
	REFUSED(strcpy(r.create.hostname, "a b"), 0, "invalid hostname");
	REFUSED(r.create.limits.memory_bytes = 0, 0, "memory_bytes");
	REFUSED(r.create.limits.pids = UINT32_MAX, 0, "pids");
	REFUSED(r.create.store = 0, 0, "unknown store");
	REFUSED(r.create.store = 3, 0, "unknown store");
	REFUSED(r.create.class = 2, 0, "unknown class");
	REFUSED(r.create.demand = 8, 0, "unknown demand");
	REFUSED(r.create.uid = 0, 0, "uid or gid 0 requires the root class");
	REFUSED(r.create.gid = 0, 0, "uid or gid 0 requires the root class");
	REFUSED(r.create.uid = BOOT_INIT_ID, 0, "uid or gid out of range");
	REFUSED(r.create.gid = 65535, 0, "uid or gid out of range");
	REFUSED(r.create.uid = UINT32_MAX, 0, "uid or gid out of range");
	REFUSED(r.create.no_pool = 2, 0, "no_pool must be 0 or 1");
	REFUSED(r.create.nbinds = 9, 9, "too many binds");
	REFUSED(r.create.nbinds = UINT32_MAX, 0, "too many binds");
	REFUSED(r.create.nbinds = 1, 0, "the number of descriptors is not the number of binds");
	REFUSED(r.create.nbinds = 0, 1, "the number of descriptors is not the number of binds");
	REFUSED(r.create.nbinds = 1, 1, "bind: invalid path");
#define BIND(p) (r.create.nbinds = 1, strcpy(r.create.binds[0].path, p))
	REFUSED(BIND("/proc"), 1, "bind: cannot mount over /proc, /sys or /dev");
	REFUSED(BIND("/sys/fs"), 1, "bind: cannot mount over /proc, /sys or /dev");
	REFUSED(BIND("/dev/shm"), 1, "bind: cannot mount over /proc, /sys or /dev");
	REFUSED(BIND("/a/.."), 1, "bind: invalid path");
	REFUSED((BIND("/a"), r.create.binds[0].writable = 7), 1, "bind: writable must be 0 or 1");
}

static struct keeper_request resume(void)
{
	struct keeper_request r = create();

	r.create.store = KEEPER_STORE_DISK;
	r.create.keep = r.create.take = 1;
	r.create.nlayers = 2;
	strcpy(r.create.layers[0], "top");
	strcpy(r.create.layers[1], "low");
	return r;
}

static void kept_files_and_their_layers(void)
{
	struct keeper_request r = resume();

	CHECK(!problem(&r, 0));
	r.create.take = r.create.nlayers = 0;
	memset(r.create.layers, 0, sizeof(r.create.layers));
	CHECK(!problem(&r, 0));
	r = resume();
	r.create.nlayers = KEEPER_LAYERS_MAX;
	memset(r.create.layers, 0, sizeof(r.create.layers));
	for (int i = 0; i < KEEPER_LAYERS_MAX; i++)
		strcpy(r.create.layers[i], "l");
	CHECK(!problem(&r, 0));

#define NO_RESUME(change, what)                                                                    \
	r = resume();                                                                              \
	change;                                                                                    \
	CHECK(problem(&r, 0));                                                                     \
	CHECK_STR(problem(&r, 0), what)

	NO_RESUME(r.create.store = KEEPER_STORE_MEMORY, "keep requires the disk store");
	NO_RESUME(r.create.keep = 2, "keep and take must be 0 or 1");
	NO_RESUME(r.create.take = 2, "keep and take must be 0 or 1");
	NO_RESUME(r.create.keep = 0, "layers require keep");
	NO_RESUME(r.create.nlayers = 0, "take requires a layer");
	NO_RESUME(r.create.nlayers = 1, "invalid layer name"); /* a name after the last one */
	NO_RESUME(r.create.nlayers = 3, "invalid layer name");
	NO_RESUME(r.create.nlayers = KEEPER_LAYERS_MAX + 1, "too many layers");
	NO_RESUME(r.create.nlayers = UINT32_MAX, "too many layers");
	NO_RESUME(strcpy(r.create.layers[1], "../x"), "invalid layer name");
	NO_RESUME(memset(r.create.layers[0], 'a', KEEPER_ID_SIZE), "invalid layer name");
}

static struct keeper_request layer(enum keeper_op op, const char *id, uint32_t nfrom)
{
	struct keeper_request r = request(op, id);

	strcpy(r.layer.name, "new");
	r.layer.nfrom = nfrom;
	for (uint32_t i = 0; i < nfrom && i < KEEPER_LAYERS_MAX; i++)
		strcpy(r.layer.from[i], "old");
	return r;
}

static void each_operation_on_layers_is_checked(void)
{
	static const enum keeper_op of_sandboxes[] = { KEEPER_SEAL, KEEPER_SNAP };
	static const enum keeper_op of_layers[] = { KEEPER_LAYER_DROP, KEEPER_LAYER_SYNC,
						    KEEPER_JOB };
	struct keeper_request r = request(KEEPER_STOP, "x");

	CHECK(!problem(&r, 0));
	r = request(KEEPER_STOP, NULL);
	CHECK_STR(problem(&r, 0), "invalid id");
	for (size_t i = 0; i < ARRAY_LEN(of_sandboxes); i++) {
		r = layer(of_sandboxes[i], "x", 0);
		CHECK(!problem(&r, 0));
		CHECK_STR(problem(&r, 1), "unexpected descriptor");
		r = layer(of_sandboxes[i], NULL, 0);
		CHECK_STR(problem(&r, 0), "invalid id");
		r = request(of_sandboxes[i], "x");
		CHECK_STR(problem(&r, 0), "invalid layer name");
		r = layer(of_sandboxes[i], "x", 1);
		CHECK_STR(problem(&r, 0), "unexpected source layers");
	}
	for (size_t i = 0; i < ARRAY_LEN(of_layers); i++) {
		r = layer(of_layers[i], NULL, 0);
		CHECK(!problem(&r, 0));
		strcpy(r.layer.from[0], "x");
		CHECK_STR(problem(&r, 0), "invalid layer name"); /* a name after the last one */
		r = layer(of_layers[i], "x", 0);
		CHECK_STR(problem(&r, 0), "invalid id");
		r = layer(of_layers[i], NULL, 1);
		CHECK_STR(problem(&r, 0), "unexpected source layers");
	}
}

static void layers_are_merged_and_written_out(void)
{
	struct keeper_request r = layer(KEEPER_LAYER_MERGE, NULL, KEEPER_LAYERS_MAX);

	CHECK(!problem(&r, 0));
	CHECK_STR(problem(&r, 1), "unexpected descriptor");
	r = layer(KEEPER_LAYER_MERGE, NULL, 0);
	CHECK_STR(problem(&r, 0), "no source layers");
	r = layer(KEEPER_LAYER_MERGE, NULL, KEEPER_LAYERS_MAX + 1);
	CHECK_STR(problem(&r, 0), "too many layers");
	r = layer(KEEPER_LAYER_EXPORT, NULL, 1);
	CHECK(!problem(&r, 1));
	CHECK_STR(problem(&r, 0), "exactly one descriptor is required");
	CHECK_STR(problem(&r, 2), "exactly one descriptor is required");
	r = layer(KEEPER_LAYER_EXPORT, NULL, 0);
	CHECK_STR(problem(&r, 1), "no source layers");
}

static void pools_and_templates(void)
{
	struct keeper_request r = request(KEEPER_POOL, NULL);

	r.pool = (struct keeper_pool){ 2, 1, 3 };
	CHECK(problem(&r, 0));
	r.pool = (struct keeper_pool){ 1, 4, 3 };
	CHECK(problem(&r, 0));
	r.pool = (struct keeper_pool){ 1, 2, UINT32_MAX };
	CHECK(problem(&r, 0));
	r.pool = (struct keeper_pool){ 1, 2, 3, 2 };
	CHECK_STR(problem(&r, 0), "pool: kept must be 0 or 1");
	r.pool.kept = 1;
	CHECK(!problem(&r, 0));
	r = request(KEEPER_TEMPLATE_DROP, NULL);
	strcpy(r.template, "host");
	CHECK_STR(problem(&r, 0), "cannot change a built-in template");
	strcpy(r.template, "empty");
	CHECK(problem(&r, 0));
	r = request(KEEPER_LIMITS, "x");
	CHECK(problem(&r, 0));
	r = request(KEEPER_DISK, NULL);
	CHECK(!problem(&r, 0));
	r.disk.reserve_bytes = LIMITS_RESERVE_MIN - 1;
	CHECK_STR(problem(&r, 0), "disk: reserve_bytes is out of bounds");
	r.disk.reserve_bytes = LIMITS_RESERVE_MAX + 1;
	CHECK(problem(&r, 0));
	r.disk.reserve_bytes = LIMITS_RESERVE_MAX;
	CHECK(!problem(&r, 0));
}

/* Clients and keepers of different builds may be combined, so a number never changes. */
static void numbers_and_names_on_the_wire(void)
{
	static const char *const names[] = {
		NULL,	  "hello",	   "create",	    "connect",	   "destroy",
		"freeze", "thaw",	   "stats",	    "limits",	   "list",
		"pool",	  "template_seal", "template_drop", "stop",	   "seal",
		"snap",	  "layer_drop",	   "layer_sync",    "layer_merge", "layer_export",
		"job",	  "exit",	   "disk",	    "sweep",
	};

	CHECK(ARRAY_LEN(names) == KEEPER_OP_MAX);
	for (uint32_t op = 1; op < KEEPER_OP_MAX; op++)
		CHECK_STR(keeper_op_name(op), names[op]);
	CHECK(!keeper_op_name(0) && !keeper_op_name(KEEPER_OP_MAX) && !keeper_op_name(UINT32_MAX));
	for (uint32_t op = 0; op <= KEEPER_OP_MAX; op++)
		CHECK(keeper_op_returns_fd(op) == (op == KEEPER_CREATE || op == KEEPER_CONNECT));
	CHECK(!keeper_op_returns_fd(UINT32_MAX));
}

/* A request with an invalid id is refused for its id, but never
 * as unknown: every operation has a check. */
static void every_operation_has_a_check(void)
{
	struct keeper_request r;

	for (uint32_t op = 1; op < KEEPER_OP_MAX; op++) {
		r = request((enum keeper_op)op, "UPPER");
		CHECK(problem(&r, 0) && strcmp(problem(&r, 0), "unknown operation") != 0);
		CHECK(problem(&r, KEEPER_BINDS_MAX + 1));
	}
	r = request((enum keeper_op)UINT32_MAX, NULL);
	CHECK_STR(problem(&r, 0), "unknown operation");
}

int main(void)
{
	RUN(ids);
	RUN(paths);
	RUN(well_formed_requests_pass);
	RUN(the_frame_is_checked_first);
	RUN(each_field_of_create_is_checked);
	RUN(kept_files_and_their_layers);
	RUN(each_operation_on_layers_is_checked);
	RUN(layers_are_merged_and_written_out);
	RUN(pools_and_templates);
	RUN(numbers_and_names_on_the_wire);
	RUN(every_operation_has_a_check);
	return tap_done();
}
