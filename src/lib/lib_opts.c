/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of the caller's options to those of the engine. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "lib/lib_opts.h"

/* A later version may use today's padding for a member, and would find garbage in it. */
#define ENDS_WITH(type, field)                                                                     \
	_Static_assert(offsetof(struct type, field) + sizeof(((struct type *)0)->field) ==         \
			       sizeof(struct type),                                                \
		       "no padding at the end")
ENDS_WITH(lodge_options, delete_after_ms);
ENDS_WITH(lodge_limits, open_files);
ENDS_WITH(lodge_want, delete_after_ms);
ENDS_WITH(lodge_filter, limit);
ENDS_WITH(lodge_patch, delete_after_ms);
ENDS_WITH(lodge_command, hold);
ENDS_WITH(lodge_thread, idle_minutes);
ENDS_WITH(lodge_quota, cpu_ms);

enum { STRUCT_MAX = 1 << 16 }; /* no struct of any version is larger, so `size` was not set */

int lib_get_struct(const char *what, const void *given, void *ret, size_t size)
{
	const char *bytes = given;
	size_t theirs = 0;

	memset(ret, 0, size);
	if (!given)
		return 0;
	memcpy(&theirs, given, sizeof(theirs));
	if (theirs < sizeof(theirs) || theirs > STRUCT_MAX)
		return err_set(&last, ERR_INVALID, "%s: size is not set", what);
	for (size_t i = size; i < theirs; i++)
		if (bytes[i])
			return err_set(&last, ERR_INVALID,
				       "%s: a member is set that liblodge %s does not know", what,
				       lodge_version());
	memcpy(ret, given, theirs < size ? theirs : size);
	return 0;
}

int lib_get_ref(const struct lodge_ref *ref, struct session_ref *ret)
{
	if (!ref || (!ref->id && !ref->key))
		return err_set(&last, ERR_INVALID, "ref: id or key is required");
	*ret = (struct session_ref){ .id = ref->id, .kind = ref->kind, .key = ref->key };
	return 0;
}

int lib_get_text(const char *field, const char *text, char *ret, size_t size)
{
	if (text && strlen(text) >= size)
		return err_set(&last, ERR_INVALID, "%s: longer than %zu bytes", field, size - 1);
	snprintf(ret, size, "%s", text ? text : "");
	return 0;
}

int lib_get_keys(const struct lodge_ref *keys, size_t n, struct store_binding **ret)
{
	auto_free struct store_binding *b = NULL;

	*ret = NULL;
	if (!n)
		return 0;
	if (!keys)
		return err_set(&last, ERR_INVALID, "keys: missing");
	b = calloc(n, sizeof(*b));
	if (!b)
		return err_sys(&last, ENOMEM, "keys");
	for (size_t i = 0; i < n; i++) {
		const char *kind = keys[i].kind ? keys[i].kind : "key";

		if (lib_get_text("kind", kind, b[i].kind, sizeof(b[i].kind)) < 0 ||
		    lib_get_text(kind, keys[i].key, b[i].key, sizeof(b[i].key)) < 0)
			return -1;
	}
	*ret = steal_ptr(&b);
	return 0;
}

int lib_get_limits(const struct lodge_limits *limits, struct template *ret)
{
	struct lodge_limits l;

	if (TAKE(lodge_limits, limits, &l) < 0)
		return -1;
	const struct {
		const char *name;
		uint64_t value;
	} said[] = {
		{ "memory_bytes", l.memory_bytes },
		{ "disk_bytes", l.disk_bytes },
		{ "inodes", l.inodes },
		{ "file_bytes", l.file_bytes },
		{ "output_bytes", l.output_bytes },
		{ "cpu_milli", l.cpu_milli },
		{ "cpu_weight", l.cpu_weight },
		{ "pids", l.pids },
		{ "open_files", l.open_files },
	};

	for (size_t i = 0; i < ARRAY_LEN(said); i++)
		if (said[i].value &&
		    template_set_limit(ret, said[i].name, said[i].value, &last) < 0)
			return -1;
	template_demand_limits(ret);
	return 0;
}

struct store_page lib_get_page(int64_t after, uint64_t limit)
{
	enum { USUAL = 100 };

	/* a value that is too large stays so, and the store rejects it */
	return (struct store_page){ .after = after,
				    .limit = !limit		  ? USUAL
					     : limit > UINT32_MAX ? UINT32_MAX
								  : (unsigned)limit };
}
