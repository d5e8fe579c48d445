/* SPDX-License-Identifier: Apache-2.0 */
/* Checks keeper requests. This runs in the privileged process on bytes from an unprivileged one: it
 * reads no field before the fields it depends on were checked. */
#include "wire/keeper_proto.h"

#include <string.h>

#include "base/array.h"
#include "wire/boot_fds.h"

enum { IDS = 65536 };

static bool all_zero(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool keeper_id_is_valid(const char id[KEEPER_ID_SIZE])
{
	size_t n = strnlen(id, KEEPER_ID_SIZE);

	if (n == 0 || n == KEEPER_ID_SIZE || !is_alnum(id[0]))
		return false;
	for (size_t i = 1; i < n; i++)
		if (!is_alnum(id[i]) && id[i] != '.' && id[i] != '_' && id[i] != '-')
			return false;
	return all_zero(id + n, KEEPER_ID_SIZE - n);
}

bool keeper_is_image_layer(const char *template)
{
	return strncmp(template, KEEPER_IMAGE_PREFIX, strlen(KEEPER_IMAGE_PREFIX)) == 0;
}

static bool part_is_valid(const char *p, size_t n)
{
	return n > 0 && !(n == 1 && p[0] == '.') && !(n == 2 && p[0] == '.' && p[1] == '.');
}

bool keeper_path_is_valid(const char path[KEEPER_PATH_SIZE])
{
	size_t n = strnlen(path, KEEPER_PATH_SIZE);
	const char *p = path;

	if (n < 2 || n == KEEPER_PATH_SIZE || path[0] != '/')
		return false;
	while (*p) {
		size_t len = strcspn(p + 1, "/");

		if (!part_is_valid(p + 1, len))
			return false;
		p += 1 + len;
	}
	return all_zero(path + n, KEEPER_PATH_SIZE - n);
}

/* The keeper masks files below these three; a bind over them would undo that. */
static bool path_is_reserved(const char *path)
{
	static const char *const reserved[] = { "/proc", "/sys", "/dev" };

	for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
		size_t n = strlen(reserved[i]);

		if (!strncmp(path, reserved[i], n) && (path[n] == '/' || path[n] == '\0'))
			return true;
	}
	return false;
}

bool keeper_user_is_valid(uint32_t id)
{
	/* 65535 is no id to programs that use 16 bits. */
	return id < IDS - 1 && id != BOOT_INIT_ID;
}

static const char *check_binds(const struct keeper_create *c, size_t nfds)
{
	if (c->nbinds > KEEPER_BINDS_MAX)
		return "too many binds";
	if (c->nbinds != nfds)
		return "the number of descriptors is not the number of binds";
	for (uint32_t i = 0; i < c->nbinds; i++) {
		if (c->binds[i].writable > 1)
			return "bind: writable must be 0 or 1";
		if (!keeper_path_is_valid(c->binds[i].path))
			return "bind: invalid path";
		if (path_is_reserved(c->binds[i].path))
			return "bind: cannot mount over /proc, /sys or /dev";
	}
	return NULL;
}

/* Unused names are zero, so that equal requests are equal bytes. */
static const char *check_names(const char names[KEEPER_LAYERS_MAX][KEEPER_ID_SIZE], uint32_t n)
{
	if (n > KEEPER_LAYERS_MAX)
		return "too many layers";
	for (uint32_t i = 0; i < KEEPER_LAYERS_MAX; i++)
		if (i < n ? !keeper_id_is_valid(names[i]) : !all_zero(names[i], KEEPER_ID_SIZE))
			return "invalid layer name";
	return NULL;
}

static const char *check_files(const struct keeper_create *c)
{
	if (c->keep > 1 || c->take > 1)
		return "keep and take must be 0 or 1";
	if (c->keep && c->store != KEEPER_STORE_DISK)
		return "keep requires the disk store";
	if (c->take && c->nlayers == 0)
		return "take requires a layer";
	if (c->nlayers && !c->keep)
		return "layers require keep";
	return check_names(c->layers, c->nlayers);
}

static const char *check_create(const struct keeper_request *r, size_t nfds)
{
	const struct keeper_create *c = &r->create;

	if (!keeper_id_is_valid(c->template))
		return "invalid template name";
	if (!keeper_id_is_valid(c->hostname) && !all_zero(c->hostname, sizeof(c->hostname)))
		return "invalid hostname";
	if (limits_bad_field(&c->limits))
		return limits_bad_field(&c->limits);
	if (c->store != KEEPER_STORE_MEMORY && c->store != KEEPER_STORE_DISK)
		return "unknown store";
	if (c->class != KEEPER_CLASS_USER && c->class != KEEPER_CLASS_ROOT)
		return "unknown class";
	if (c->demand &
	    ~(uint32_t)(KEEPER_DEMAND_CGROUP | KEEPER_DEMAND_DISK | KEEPER_DEMAND_INODES))
		return "unknown demand";
	if (!keeper_user_is_valid(c->uid) || !keeper_user_is_valid(c->gid))
		return "uid or gid out of range";
	if (c->class == KEEPER_CLASS_USER && (c->uid == 0 || c->gid == 0))
		return "uid or gid 0 requires the root class";
	if (c->no_pool > 1)
		return "no_pool must be 0 or 1";
	if (check_files(c))
		return check_files(c);
	if (!keeper_path_is_valid(c->workdir) && !all_zero(c->workdir, sizeof(c->workdir)))
		return "invalid working directory";
	return check_binds(c, nfds);
}

static const char *check_pool(const struct keeper_request *r, size_t nfds)
{
	const struct keeper_pool *p = &r->pool;

	(void)nfds;
	if (p->max > KEEPER_SLOTS_MAX)
		return "pool: max is too large";
	if (p->min > p->target || p->target > p->max)
		return "pool: must be min <= target <= max";
	if (p->kept > 1)
		return "pool: kept must be 0 or 1";
	return NULL;
}

static const char *check_disk(const struct keeper_request *r, size_t nfds)
{
	uint64_t n = r->disk.reserve_bytes;

	(void)nfds;
	if (n && (n < LIMITS_RESERVE_MIN || n > LIMITS_RESERVE_MAX))
		return "disk: reserve_bytes is out of bounds";
	return NULL;
}

/* The built-in templates cannot be replaced. */
static const char *check_template(const struct keeper_request *r, size_t nfds)
{
	const char *name = r->template;

	(void)nfds;
	if (!keeper_id_is_valid(name))
		return "invalid template name";
	if (!strcmp(name, "host") || !strcmp(name, "empty"))
		return "cannot change a built-in template";
	return NULL;
}

static const char *check_nothing(const struct keeper_request *r, size_t nfds)
{
	(void)r, (void)nfds;
	return NULL;
}

static const char *check_limits(const struct keeper_request *r, size_t nfds)
{
	(void)nfds;
	return limits_bad_field(&r->limits);
}

/* One layer by its name. */
static const char *check_layer(const struct keeper_request *r, size_t nfds)
{
	(void)nfds;
	if (!keeper_id_is_valid(r->layer.name))
		return "invalid layer name";
	if (r->layer.nfrom != 0)
		return "unexpected source layers";
	return check_names(r->layer.from, 0);
}

/* A name and the layers to read. */
static const char *check_layers(const struct keeper_request *r, size_t nfds)
{
	(void)nfds;
	if (!keeper_id_is_valid(r->layer.name))
		return "invalid layer name";
	if (r->layer.nfrom == 0)
		return "no source layers";
	return check_names(r->layer.from, r->layer.nfrom);
}

static const struct op {
	const char *name;
	bool has_id, returns_fd;
	enum keeper_fds fds;
	const char *(*check)(const struct keeper_request *r, size_t nfds);
} ops[KEEPER_OP_MAX] = {
#define OP_ROW(op, number, name, id, body, fds, reply_fd)                                          \
	[op] = { #name, id, reply_fd, KEEPER_FDS_##fds, check_##body },
	KEEPER_OPS(OP_ROW)
#undef OP_ROW
};

/* Numbers are dense, so that only 0 has no row. */
#define OP_COUNT(op, number, name, id, body, fds, reply_fd) +1
_Static_assert(KEEPER_OPS(OP_COUNT) == KEEPER_OP_MAX - 1, "a number has no row");
#undef OP_COUNT

static const struct op *find_op(uint32_t op)
{
	return op < ARRAY_LEN(ops) && ops[op].check ? &ops[op] : NULL;
}

const char *keeper_op_name(uint32_t op)
{
	const struct op *o = find_op(op);

	return o ? o->name : NULL;
}

bool keeper_op_returns_fd(uint32_t op)
{
	const struct op *o = find_op(op);

	return o && o->returns_fd;
}

/* check_create() compares the number of descriptors with the number of binds. */
static const char *check_fds(enum keeper_fds fds, size_t nfds)
{
	if (fds == KEEPER_FDS_NONE && nfds != 0)
		return "unexpected descriptor";
	if (fds == KEEPER_FDS_ONE && nfds != 1)
		return "exactly one descriptor is required";
	return NULL;
}

const char *keeper_request_problem(const void *bytes, size_t len, size_t nfds)
{
	struct keeper_request r;
	const struct op *o;

	if (len != sizeof(r))
		return "wrong size";
	memcpy(&r, bytes, sizeof(r));
	if (r.version != KEEPER_VERSION)
		return "wrong version";
	o = find_op(r.op);
	if (!o)
		return "unknown operation";
	if (check_fds(o->fds, nfds))
		return check_fds(o->fds, nfds);
	if (o->has_id ? !keeper_id_is_valid(r.id) : !all_zero(r.id, sizeof(r.id)))
		return "invalid id";
	/* cppcheck-suppress returnDanglingLifetime ; only constant texts are returned */
	return o->check(&r, nfds);
}
