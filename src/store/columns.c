/* SPDX-License-Identifier: Apache-2.0 */
#include "store/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/auto.h"

#define FIELD(kind, type, member)                                                                  \
	{                                                                                          \
		kind, offsetof(struct type, member), sizeof(((struct type *)0)->member)            \
	}
#define NUM(type, member) FIELD(COLUMN_NUM, type, member)
#define TEXT(type, member) FIELD(COLUMN_TEXT, type, member)
#define OWNED(type, member) FIELD(COLUMN_OWNED, type, member)
#define CAUSE(type)                                                                                \
	TEXT(type, cause.code), TEXT(type, cause.text), TEXT(type, cause.actor), NUM(type, cause.at)
#define SHAPE(name)                                                                                \
	const struct columns shape_##name = { sizeof(struct store_##name), name##_fields,          \
					      ARRAY_LEN(name##_fields) }

static const struct columns_field session_fields[] = {
	NUM(store_session, seq),
	TEXT(store_session, id),
	NUM(store_session, version),
	TEXT(store_session, tenant),
	TEXT(store_session, user),
	NUM(store_session, created_at),
	TEXT(store_session, template),
	TEXT(store_session, sandbox),
	TEXT(store_session, layer),
	TEXT(store_session, snapshot),
	TEXT(store_session, project),
	TEXT(store_session, fragment),
	NUM(store_session, state),
	NUM(store_session, runtime),
	NUM(store_session, on_idle),
	NUM(store_session, on_expire),
	NUM(store_session, paused),
	NUM(store_session, generation),
	NUM(store_session, incarnation),
	NUM(store_session, started_at),
	NUM(store_session, last_activity_at),
	NUM(store_session, idle_timeout_ms),
	NUM(store_session, max_lifetime_ms),
	NUM(store_session, hibernate_at),
	NUM(store_session, expires_at),
	NUM(store_session, due_at),
	NUM(store_session, memory_bytes),
	NUM(store_session, disk_bytes),
	CAUSE(store_session),
	OWNED(store_session, spec),
	OWNED(store_session, metadata),
	TEXT(store_session, policy),
};
SHAPE(session);

static const struct columns_field binding_fields[] = {
	TEXT(store_binding, kind),
	TEXT(store_binding, key),
};
SHAPE(binding);

static const struct columns_field tombstone_fields[] = {
	TEXT(store_tombstone, session), TEXT(store_tombstone, tenant),
	TEXT(store_tombstone, user),	NUM(store_tombstone, created_at),
	CAUSE(store_tombstone),
};
SHAPE(tombstone);

static const struct columns_field layer_fields[] = {
	TEXT(store_layer, id),	 TEXT(store_layer, parent),    TEXT(store_layer, template),
	NUM(store_layer, bytes), NUM(store_layer, created_at), NUM(store_layer, durable),
};
SHAPE(layer);

static const struct columns_field snapshot_fields[] = {
	NUM(store_snapshot, seq),	 TEXT(store_snapshot, id),
	TEXT(store_snapshot, tenant),	 TEXT(store_snapshot, session),
	TEXT(store_snapshot, name),	 TEXT(store_snapshot, layer),
	NUM(store_snapshot, generation), NUM(store_snapshot, bytes),
	NUM(store_snapshot, created_at),
};
SHAPE(snapshot);

static const struct columns_field exec_fields[] = {
	NUM(store_exec, seq),		TEXT(store_exec, id),	       TEXT(store_exec, tenant),
	TEXT(store_exec, session),	NUM(store_exec, incarnation),  NUM(store_exec, number),
	NUM(store_exec, state),		NUM(store_exec, background),   NUM(store_exec, timed_out),
	NUM(store_exec, oom_killed),	NUM(store_exec, truncated),    NUM(store_exec, exit_code),
	NUM(store_exec, signal),	NUM(store_exec, started_at),   NUM(store_exec, ended_at),
	NUM(store_exec, stdout_bytes),	NUM(store_exec, stderr_bytes), NUM(store_exec, cpu_ms),
	NUM(store_exec, max_rss_bytes), NUM(store_exec, hits),	       OWNED(store_exec, command),
};
SHAPE(exec);

static const struct columns_field once_fields[] = {
	TEXT(store_once, tenant), TEXT(store_once, scope),     TEXT(store_once, key),
	TEXT(store_once, target), NUM(store_once, created_at),
};
SHAPE(once);

static const struct columns_field event_fields[] = {
	NUM(store_event, id),	  TEXT(store_event, tenant), TEXT(store_event, session),
	TEXT(store_event, kind),  NUM(store_event, version), CAUSE(store_event),
	OWNED(store_event, data),
};
SHAPE(event);

static const struct columns_field project_fields[] = {
	NUM(store_project, seq),	TEXT(store_project, tenant), TEXT(store_project, id),
	TEXT(store_project, name),	TEXT(store_project, owner),  TEXT(store_project, team),
	NUM(store_project, created_at),
};
SHAPE(project);

static const struct columns_field fragment_fields[] = {
	NUM(store_fragment, seq),	 TEXT(store_fragment, tenant),
	TEXT(store_fragment, id),	 TEXT(store_fragment, project),
	TEXT(store_fragment, title),	 TEXT(store_fragment, snapshot),
	NUM(store_fragment, files),	 NUM(store_fragment, bytes),
	NUM(store_fragment, created_at),
};
SHAPE(fragment);

static const struct columns_field user_fields[] = {
	NUM(store_user, seq),	    TEXT(store_user, tenant),	 TEXT(store_user, id),
	TEXT(store_user, name),	    TEXT(store_user, email),	 TEXT(store_user, project),
	TEXT(store_user, fragment), NUM(store_user, created_at),
};
SHAPE(user);

static const struct columns_field member_fields[] = {
	TEXT(store_member, tenant),
	TEXT(store_member, team),
	TEXT(store_member, user),
	NUM(store_member, role),
};
SHAPE(member);

static const struct columns_field key_fields[] = {
	NUM(store_key, seq),	 TEXT(store_key, id),	     FIELD(COLUMN_BYTES, store_key, hash),
	TEXT(store_key, tenant), TEXT(store_key, user),	     TEXT(store_key, name),
	TEXT(store_key, scopes), NUM(store_key, created_at), NUM(store_key, expires_at),
};
SHAPE(key);

static const struct columns_field policy_fields[] = {
	NUM(store_policy, seq),
	TEXT(store_policy, tenant),
	TEXT(store_policy, name),
	NUM(store_policy, max_active_per_user),
	NUM(store_policy, on_exceed),
	NUM(store_policy, idle_timeout_ms),
	NUM(store_policy, max_lifetime_ms),
	TEXT(store_policy, network),
	OWNED(store_policy, limits),
	NUM(store_policy, created_at),
	OWNED(store_policy, commands),
};
SHAPE(policy);

static const struct columns_field quota_fields[] = {
	TEXT(store_quota, tenant),	TEXT(store_quota, user),      NUM(store_quota, sandboxes),
	NUM(store_quota, memory_bytes), NUM(store_quota, disk_bytes), NUM(store_quota, cpu_ms),
};
SHAPE(quota);

static const struct columns_field environment_fields[] = {
	TEXT(store_environment, template),
	TEXT(store_environment, version),
	NUM(store_environment, captured_at),
	OWNED(store_environment, data),
};
SHAPE(environment);

int64_t columns_get_num(const struct columns_field *f, const void *record)
{
	const char *at = (const char *)record + f->offset;
	int64_t value;

	if (f->size == 1)
		return *(const uint8_t *)at;
	memcpy(&value, at, sizeof(value));
	return value;
}

void columns_set_num(const struct columns_field *f, void *record, int64_t value)
{
	char *at = (char *)record + f->offset;

	if (f->size == 1)
		*(uint8_t *)at = (uint8_t)value;
	else
		memcpy(at, &value, sizeof(value));
}

char **columns_owned(const struct columns_field *f, void *record)
{
	return (char **)((char *)record + f->offset);
}

void columns_fini(const struct columns *s, void *record)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->fields[i].kind == COLUMN_OWNED) {
			free(*columns_owned(&s->fields[i], record));
			*columns_owned(&s->fields[i], record) = NULL;
		}
}

int columns_copy(const struct columns *s, const void *record, void *ret, struct err *err)
{
	auto_free char *copy = malloc(s->size);

	if (!copy)
		return err_sys(err, ENOMEM, "copy of a record");
	memcpy(copy, record, s->size);
	for (size_t i = 0; i < s->count; i++) /* from here on `copy` owns what it points to */
		if (s->fields[i].kind == COLUMN_OWNED)
			*columns_owned(&s->fields[i], copy) = NULL;
	for (size_t i = 0; i < s->count; i++) {
		const struct columns_field *f = &s->fields[i];
		const char *text;

		if (f->kind != COLUMN_OWNED)
			continue;
		text = *(char *const *)((const char *)record + f->offset);
		if (text && !(*columns_owned(f, copy) = strdup(text))) {
			columns_fini(s, copy);
			return err_sys(err, ENOMEM, "copy of a record");
		}
	}
	memcpy(ret, copy, s->size);
	return 0;
}

void *columns_grow(void *items, size_t count, size_t size)
{
	/* the array doubles whenever it is full, which is when its count is a power of two */
	if ((count & (count - 1)) == 0) {
		size_t room = count ? 2 * count : 1;
		char *grown = reallocarray(items, room, size);

		if (!grown)
			return NULL;
		items = grown;
	}
	memset((char *)items + count * size, 0, size);
	return items;
}
