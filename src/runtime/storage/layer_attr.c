/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/storage/layer_attr.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"

/* Tests the permission without a file on disk: the kernel checks the permission before it finds
 * that a pipe has no attributes. */
bool layer_attr_is_user(void)
{
	int p[2];
	bool refused;

	if (pipe2(p, O_CLOEXEC) < 0)
		return false;
	refused = fsetxattr(p[0], "trusted.lodge", "", 0, 0) < 0 && errno == EPERM;
	close(p[0]);
	close(p[1]);
	return refused;
}

const char *layer_attr_mark(bool user, const char *name)
{
	const char *prefix = LAYER_ATTR_NAME(user, "");
	size_t n = strlen(prefix);

	return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

static bool is_one_of(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(s, list[i]))
			return true;
	return false;
}

/* 1: copy it; 0: skip it; -errno: the layer cannot be merged. Skips marks that describe the former
 * lower layer, and those for opaque directories and whiteouts, which the walk determines itself.
 * Copies protattr, and overlay marks of the guest, which have a second "overlay." in their name. */
static int classify(bool user, const char *name)
{
	static const char *const stale[] = { "opaque", "whiteout", "whiteouts", "origin",
					     "impure", "nlink",	   "upper",	"uuid" };
	static const char *const foreign[] = { "redirect", "metacopy" };
	const char *mark = layer_attr_mark(user, name);

	if (!mark)
		return 1;
	if (is_one_of(mark, foreign, ARRAY_LEN(foreign)))
		return -EOPNOTSUPP;
	return !is_one_of(mark, stale, ARRAY_LEN(stale));
}

static ssize_t list_names(const struct layer_attr_of *of, char *list, size_t size)
{
	ssize_t n;

	if (of->name && fchdir(of->dir) < 0)
		return -errno;
	n = of->name ? llistxattr(of->name, list, size) : flistxattr(of->fd, list, size);
	if (n < 0 && errno == EOPNOTSUPP)
		return 0;
	return n < 0 ? -errno : n;
}

static ssize_t read_value(const struct layer_attr_of *of, const char *name, char *value,
			  size_t size)
{
	ssize_t n;

	if (of->name && fchdir(of->dir) < 0)
		return -errno;
	n = of->name ? lgetxattr(of->name, name, value, size)
		     : fgetxattr(of->fd, name, value, size);
	return n < 0 ? -errno : n;
}

int layer_attr_set(const struct layer_attr_of *of, const char *name, const void *value, size_t len)
{
	int r;

	if (of->name && fchdir(of->dir) < 0)
		return -errno;
	r = of->name ? lsetxattr(of->name, name, value, len, 0)
		     : fsetxattr(of->fd, name, value, len, 0);
	return r < 0 ? -errno : 0;
}

int layer_attr_each(struct layer_attrs *a, const struct layer_attr_of *of, layer_attr_fn *fn,
		    void *arg)
{
	ssize_t len = list_names(of, a->list, sizeof(a->list)), n;
	int r = len < 0 ? (int)len : 0;

	for (const char *at = a->list; r == 0 && at < a->list + len; at += strlen(at) + 1) {
		r = classify(a->user, at);
		if (r <= 0)
			continue;
		n = read_value(of, at, a->value, sizeof(a->value));
		r = n < 0 ? (int)n : fn(arg, at, a->value, (size_t)n);
	}
	return r;
}
