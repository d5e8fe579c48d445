/* SPDX-License-Identifier: Apache-2.0 */
/* The only judge of what a keeper request may say. It runs in the privileged process on bytes from
 * an unprivileged one, so it reads nothing before it was checked and never guesses. */
#include "wire/keeper_proto.h"

#include <string.h>

#include "base/array.h"
#include "wire/boot_fds.h"

enum { POOL_MAX = 1024, IDS = 65536 };

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

/* These three are the keeper's own: a bind over them would undo what it masks there. */
static bool path_is_reserved(const char *path)
{
	static const char *const kept[] = { "/proc", "/sys", "/dev" };

	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		size_t n = strlen(kept[i]);

		if (!strncmp(path, kept[i], n) && (path[n] == '/' || path[n] == '\0'))
			return true;
	}
	return false;
}

static bool user_is_valid(uint32_t id)
{
	return id < IDS - 2 && id != BOOT_INIT_ID;
}

static const char *binds_problem(const struct keeper_create *c, size_t nfds)
{
	if (c->nbinds > KEEPER_BINDS_MAX)
		return "too many binds";
	if (c->nbinds != nfds)
		return "binds and descriptors differ in number";
	for (uint32_t i = 0; i < c->nbinds; i++) {
		if (c->binds[i].writable > 1)
			return "bind: writable is neither 0 nor 1";
		if (!keeper_path_is_valid(c->binds[i].path))
			return "bind: bad path";
		if (path_is_reserved(c->binds[i].path))
			return "bind: /proc, /sys and /dev cannot be replaced";
	}
	return NULL;
}

/* The names that are used are names, the rest is zero: two requests that mean the same are the same
 * bytes. */
static const char *names_problem(const char names[KEEPER_LAYERS_MAX][KEEPER_ID_SIZE], uint32_t n)
{
	if (n > KEEPER_LAYERS_MAX)
		return "too many layers";
	for (uint32_t i = 0; i < KEEPER_LAYERS_MAX; i++)
		if (i < n ? !keeper_id_is_valid(names[i]) : !all_zero(names[i], KEEPER_ID_SIZE))
			return "bad layer name";
	return NULL;
}

static const char *files_problem(const struct keeper_create *c)
{
	if (c->keep > 1 || c->take > 1)
		return "keep or take is neither 0 nor 1";
	if (c->keep && c->store != KEEPER_STORE_DISK)
		return "only files on disk can be kept";
	if (c->take && c->nlayers == 0)
		return "no layer to take";
	if (c->nlayers && !c->keep)
		return "layers need keep";
	return names_problem(c->layers, c->nlayers);
}

static const char *create_problem(const struct keeper_create *c, size_t nfds)
{
	if (!keeper_id_is_valid(c->template))
		return "bad template name";
	if (!keeper_id_is_valid(c->hostname) && !all_zero(c->hostname, sizeof(c->hostname)))
		return "bad hostname";
	if (limits_bad_field(&c->limits))
		return limits_bad_field(&c->limits);
	if (c->store != KEEPER_STORE_MEMORY && c->store != KEEPER_STORE_DISK)
		return "unknown store";
	if (c->class != KEEPER_CLASS_USER && c->class != KEEPER_CLASS_ROOT)
		return "unknown class";
	if (c->demand & ~(uint32_t)(KEEPER_DEMAND_CGROUP | KEEPER_DEMAND_DISK))
		return "unknown demand";
	if (!user_is_valid(c->uid) || !user_is_valid(c->gid))
		return "uid or gid out of range";
	if (c->class == KEEPER_CLASS_USER && (c->uid == 0 || c->gid == 0))
		return "uid 0 needs the root class";
	if (c->no_pool > 1)
		return "no_pool is neither 0 nor 1";
	if (files_problem(c))
		return files_problem(c);
	if (!keeper_path_is_valid(c->workdir) && !all_zero(c->workdir, sizeof(c->workdir)))
		return "bad working directory";
	return binds_problem(c, nfds);
}

static const char *pool_problem(const struct keeper_pool *p)
{
	if (p->max > POOL_MAX)
		return "pool too large";
	if (p->min > p->target || p->target > p->max)
		return "pool: not min <= target <= max";
	if (p->kept > 1)
		return "pool: kept is neither 0 nor 1";
	return NULL;
}

/* The built-in names stay what they are. */
static const char *template_problem(const char name[KEEPER_ID_SIZE])
{
	if (!keeper_id_is_valid(name))
		return "bad template name";
	if (!strcmp(name, "host") || !strcmp(name, "empty"))
		return "a built-in template cannot be changed";
	return NULL;
}

static const char *layer_problem(const struct keeper_layer *l, uint32_t op, size_t nfds)
{
	bool has_from = op == KEEPER_LAYER_MERGE || op == KEEPER_LAYER_EXPORT;

	if (!keeper_id_is_valid(l->name))
		return "bad layer name";
	if (has_from ? l->nfrom == 0 : l->nfrom != 0)
		return has_from ? "no layers to read" : "unexpected layers";
	if (op == KEEPER_LAYER_EXPORT && nfds != 1)
		return "no descriptor to write to";
	return names_problem(l->from, l->nfrom);
}

static const char *body_problem(const struct keeper_request *r, size_t nfds)
{
	switch ((enum keeper_op)r->op) {
	case KEEPER_CREATE:
		return create_problem(&r->create, nfds);
	case KEEPER_LIMITS:
		return limits_bad_field(&r->limits);
	case KEEPER_POOL:
		return pool_problem(&r->pool);
	case KEEPER_TEMPLATE_SEAL:
	case KEEPER_TEMPLATE_DROP:
		return template_problem(r->template);
	case KEEPER_SEAL:
	case KEEPER_SNAP:
	case KEEPER_LAYER_DROP:
	case KEEPER_LAYER_SYNC:
	case KEEPER_LAYER_MERGE:
	case KEEPER_LAYER_EXPORT:
	case KEEPER_JOB:
		return layer_problem(&r->layer, r->op, nfds);
	case KEEPER_HELLO:
	case KEEPER_CONNECT:
	case KEEPER_DESTROY:
	case KEEPER_FREEZE:
	case KEEPER_THAW:
	case KEEPER_STATS:
	case KEEPER_LIST:
	case KEEPER_STOP:
		return NULL;
	case KEEPER_OP_MAX:
		break;
	}
	return "unknown operation";
}

static bool op_has_id(uint32_t op)
{
	switch ((enum keeper_op)op) {
	case KEEPER_CREATE:
	case KEEPER_CONNECT:
	case KEEPER_DESTROY:
	case KEEPER_FREEZE:
	case KEEPER_THAW:
	case KEEPER_STATS:
	case KEEPER_LIMITS:
	case KEEPER_TEMPLATE_SEAL:
	case KEEPER_STOP:
	case KEEPER_SEAL:
	case KEEPER_SNAP:
		return true;
	case KEEPER_HELLO:
	case KEEPER_LIST:
	case KEEPER_POOL:
	case KEEPER_TEMPLATE_DROP:
	case KEEPER_LAYER_DROP:
	case KEEPER_LAYER_SYNC:
	case KEEPER_LAYER_MERGE:
	case KEEPER_LAYER_EXPORT:
	case KEEPER_JOB:
	case KEEPER_OP_MAX:
		break;
	}
	return false;
}

const char *keeper_request_problem(const void *bytes, size_t len, size_t nfds)
{
	struct keeper_request r;

	if (len != sizeof(r))
		return "wrong size";
	memcpy(&r, bytes, sizeof(r));
	if (r.version != KEEPER_VERSION)
		return "wrong version";
	if (r.op < KEEPER_HELLO || r.op >= KEEPER_OP_MAX)
		return "unknown operation";
	if (nfds && r.op != KEEPER_CREATE && r.op != KEEPER_LAYER_EXPORT)
		return "unexpected descriptor";
	if (op_has_id(r.op) ? !keeper_id_is_valid(r.id) : !all_zero(r.id, sizeof(r.id)))
		return "bad id";
	return body_problem(&r, nfds);
}
