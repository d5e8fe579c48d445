/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of switching: user ann with two projects. */
#ifndef LODGE_TESTS_SWITCH_WORLD_H
#define LODGE_TESTS_SWITCH_WORLD_H

#include "session_engine.h"

#include "project/project.h"
#include "project/project_switch.h"

static const char *const both[] = { "{\"a.txt\":\"alpha\\n\"}", "{\"b.txt\":\"beta\\n\"}" };

static inline bool make_project(const char *user, const char *id)
{
	struct project_opts want = { .id = id, .name = id };
	struct store_project p;

	return project_add(engine, &me, user, &want, &p, &err) == 0;
}

static inline bool save(const char *user, const char *project, const char *id, const char *files)
{
	struct fragment_opts want = { .id = id, .files = files, .files_len = strlen(files) };
	struct fragment_add_result f;

	if (fragment_add(engine, &me, user, project, &want, &f, &err) == 0)
		return true;
	printf("# %s\n", err.msg);
	return false;
}

/* Projects a and b of ann, with one fragment each: fa, fb. */
static inline bool two_projects(void)
{
	return make_project("ann", "a") && make_project("ann", "b") &&
	       save("ann", "a", "fa", both[0]) && save("ann", "b", "fb", both[1]);
}

static inline int switch_to(const char *user, const char *project, const char *fragment,
			    struct switch_result *ret, struct err *e)
{
	struct switch_opts opts = { .user = user, .project = project, .fragment = fragment };

	return switch_user(engine, &me, &opts, ret, e);
}

static inline bool go(const char *project, const char *fragment, struct switch_result *ret)
{
	if (switch_to("ann", project, fragment, ret, &err) == 0)
		return true;
	printf("# %s\n", err.msg);
	return false;
}

/* Runs the text in ann's active sandbox. */
static inline bool here(const char *text, const char *want)
{
	return runs((struct session_ref){ .kind = "user", .key = "ann" }, text, want);
}

static inline int state_of(const char *session)
{
	struct session_ref ref = { .id = session };
	struct store_session s;

	if (session_get(engine, &me, &ref, &s, &err) < 0)
		return -1;
	store_session_fini(&s);
	return s.state;
}

static inline size_t count_sessions(void)
{
	struct store_session_filter f = { .tenant = me.tenant };
	struct store_session_list l;
	size_t n = 0;

	if (session_list(engine, &f, (struct store_page){ .limit = 100 }, &l, &err) < 0)
		return 999;
	for (size_t i = 0; i < l.count; i++)
		n += l.items[i].state != SESSION_DESTROYING;
	store_session_list_fini(&l);
	return n;
}

static inline bool refers_to(const char *kind, const char *name, const char *session)
{
	struct session_ref ref = { .kind = kind, .key = name };
	struct store_session s;
	bool same;

	if (session_get(engine, &me, &ref, &s, &err) < 0)
		return *session == '\0';
	same = strcmp(s.id, session) == 0;
	if (!same)
		printf("# %s %s refers to %s\n", kind, name, s.id);
	store_session_fini(&s);
	return same;
}

static inline bool ann_is_at(const char *project, const char *fragment)
{
	struct user_info i;
	bool there;

	if (user_get(engine, &me, "ann", &i, &err) < 0)
		return false;
	there = strcmp(i.user.project, project) == 0 && strcmp(i.user.fragment, fragment) == 0;
	if (!there)
		printf("# ann is at %s %s\n", i.user.project, i.user.fragment);
	user_info_fini(&i);
	return there;
}

#define FILES "find . -type f | sort"

/* Nothing of ann has changed. */
static inline bool untouched(const struct switch_result *before, size_t sessions)
{
	struct session_ref ref = { .kind = "user", .key = "ann" };
	struct store_session s;
	bool same;

	if (session_get(engine, &me, &ref, &s, &err) < 0)
		return false;
	same = strcmp(s.sandbox, before->sandbox) == 0 && s.state == SESSION_ACTIVE;
	store_session_fini(&s);
	return same && here("pgrep -c sleep; cat unsaved", "1\nu\n") &&
	       count_sessions() == sessions;
}

#endif
