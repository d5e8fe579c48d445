/* SPDX-License-Identifier: Apache-2.0 */
/* Projects, fragments, teams and users: see project/. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/lib_convert.h"
#include "lib/lib_opts.h"
#include "project/fragment.h"
#include "project/project_switch.h"
#include "project/team.h"
#include "project/user_kill.h"
#include "project/users.h"

/* ---- switching ------------------------------------------------------------------------------- */

struct switched_box {
	struct lodge_switched pub;
	struct switch_result rec;
	struct lodge_cause cause;
};

PUBLIC int lodge_switch_user_to_fragment(struct lodge *l, const char *user, const char *project,
					 const char *fragment, struct lodge_switched **ret)
{
	struct switch_opts opts = { .user = user, .project = project, .fragment = fragment };
	struct switched_box *b = box_new(sizeof(*b), NULL);
	const struct store_cause *c;

	if (!b)
		return -1;
	if (switch_user(l->engine, &l->caller, &opts, &b->rec, &last) < 0) {
		lodge_free(b);
		return -1;
	}
	c = &b->rec.cause;
	b->cause = (struct lodge_cause){ c->code, c->text, c->actor, c->at };
	b->pub = (struct lodge_switched){
		.session = b->rec.session,
		.sandbox = b->rec.sandbox,
		.project = b->rec.project,
		.fragment = b->rec.fragment,
		.previous = b->rec.previous,
		.restored_files = b->rec.restored_files,
		.has_restored_files = b->rec.has_restored_files,
		.state_lost = b->rec.state_lost,
		.outcome = (enum lodge_outcome)b->rec.outcome,
		.cause = *c->code ? &b->cause : NULL,
	};
	*ret = &b->pub;
	return 0;
}

PUBLIC int lodge_switch_user_to_project(struct lodge *l, const char *user, const char *project,
					struct lodge_switched **ret)
{
	return lodge_switch_user_to_fragment(l, user, project, NULL, ret);
}

struct active_box {
	struct lodge_active_fragment pub;
	char project[STORE_ID], fragment[STORE_ID];
};

PUBLIC int lodge_get_user_active_fragment(struct lodge *l, const char *user,
					  struct lodge_active_fragment **ret)
{
	auto_fini(user_info_fini) struct user_info i = { 0 };
	struct active_box *b;

	if (user_get(l->engine, &l->caller, user, &i, &last) < 0 && last.code != ERR_NOT_FOUND)
		return -1;
	if (!*i.user.project) {
		*ret = NULL;
		return 0;
	}
	b = box_new(sizeof(*b), NULL);
	if (!b)
		return -1;
	memcpy(b->project, i.user.project, sizeof(b->project));
	memcpy(b->fragment, i.user.fragment, sizeof(b->fragment));
	b->pub = (struct lodge_active_fragment){ b->project, b->fragment };
	*ret = &b->pub;
	return 0;
}

/* ---- killing --------------------------------------------------------------------------------- */

struct kills_box {
	struct lodge_kills pub;
	struct kill_result_list rec;
};

static void kills_fini(void *body)
{
	struct kills_box *b = body;

	free(b->pub.items);
	kill_result_list_fini(&b->rec);
}

/* Takes over *rec. */
static int put_kills(struct kill_result_list *rec, struct lodge_kills **ret)
{
	struct kills_box *b = box_new(sizeof(*b), kills_fini);

	if (!b) {
		kill_result_list_fini(rec);
		return -1;
	}
	b->rec = steal_struct(rec);
	b->pub.items = calloc(b->rec.count ? b->rec.count : 1, sizeof(*b->pub.items));
	if (!b->pub.items) {
		lodge_free(b);
		return err_sys(&last, ENOMEM, "killed sandboxes");
	}
	for (size_t i = 0; i < b->rec.count; i++) {
		const struct kill_result *r = &b->rec.items[i];

		b->pub.items[b->pub.count++] = (struct lodge_kill){ r->killed, r->user, r->session,
								    r->sandbox, r->project };
	}
	b->pub.killed = b->rec.killed;
	b->pub.failed = b->rec.failed;
	*ret = &b->pub;
	return 0;
}

PUBLIC int lodge_kill_user_active_sandbox(struct lodge *l, const char *user,
					  struct lodge_kills **ret)
{
	struct kill_result_list r = { 0 };

	if (user_kill_sandboxes(l->engine, &l->caller, user, &r, &last) < 0)
		return -1;
	return put_kills(&r, ret);
}

PUBLIC int lodge_kill_all_user_sandboxes(struct lodge *l, struct lodge_kills **ret)
{
	struct kill_result_list r = { 0 };

	if (user_kill_all_sandboxes(l->engine, &l->caller, &r, &last) < 0)
		return -1;
	return put_kills(&r, ret);
}

/* ---- projects and fragments ------------------------------------------------------------------ */

struct project_box {
	struct lodge_project pub;
	struct store_project rec;
};

static struct lodge_project project_of(const struct store_project *p)
{
	return (struct lodge_project){ p->id, p->name, p->owner, p->team, p->created_at };
}

static int put_project(const struct store_project *p, struct lodge_project **ret)
{
	struct project_box *b = box_new(sizeof(*b), NULL);

	if (!b)
		return -1;
	b->rec = *p; /* a record owns nothing */
	b->pub = project_of(&b->rec);
	*ret = &b->pub;
	return 0;
}

PUBLIC int lodge_project_add(struct lodge *l, const char *user, const char *id, const char *name,
			     const char *team, struct lodge_project **ret)
{
	struct project_opts opts = { .id = id, .name = name, .team = team };
	struct store_project p;

	if (project_add(l->engine, &l->caller, user, &opts, &p, &last) < 0)
		return -1;
	return put_project(&p, ret);
}

PUBLIC int lodge_get_user_id_for_project(struct lodge *l, const char *project,
					 struct lodge_project **ret)
{
	struct store_project p;

	if (project_get(l->engine, &l->caller, NULL, project, &p, &last) < 0)
		return -1;
	return put_project(&p, ret);
}

/* A list of records that own nothing, and its public form. */
#define LIST_BOX(name, names, convert)                                                             \
	struct names##_box {                                                                       \
		struct lodge_##names pub;                                                          \
		struct store_##name##_list rec;                                                    \
	};                                                                                         \
	static void names##_fini(void *body)                                                       \
	{                                                                                          \
		struct names##_box *b = body;                                                      \
                                                                                                   \
		free(b->pub.items);                                                                \
		store_##name##_list_fini(&b->rec);                                                 \
	}                                                                                          \
	static int put_##names(struct store_##name##_list *rec, struct lodge_##names **ret)        \
	{                                                                                          \
		struct names##_box *b = box_new(sizeof(*b), names##_fini);                         \
                                                                                                   \
		if (!b) {                                                                          \
			store_##name##_list_fini(rec);                                             \
			return -1;                                                                 \
		}                                                                                  \
		b->rec = steal_struct(rec);                                                        \
		b->pub.items = calloc(b->rec.count ? b->rec.count : 1, sizeof(*b->pub.items));     \
		if (!b->pub.items) {                                                               \
			lodge_free(b);                                                             \
			return err_sys(&last, ENOMEM, #names);                                     \
		}                                                                                  \
		for (size_t i = 0; i < b->rec.count; i++)                                          \
			b->pub.items[b->pub.count++] = convert(&b->rec.items[i]);                  \
		*ret = &b->pub;                                                                    \
		return 0;                                                                          \
	}

LIST_BOX(project, projects, project_of)

PUBLIC int lodge_project_list(struct lodge *l, const char *user, int64_t after, uint32_t limit,
			      struct lodge_projects **ret)
{
	struct store_project_list list = { 0 };
	int64_t next;

	if (project_list(l->engine, &l->caller, user, lib_get_page(after, limit), &list, &last) < 0)
		return -1;
	next = list.next;
	if (put_projects(&list, ret) < 0)
		return -1;
	(*ret)->next = next;
	return 0;
}

PUBLIC int lodge_project_remove(struct lodge *l, const char *user, const char *project)
{
	return project_remove(l->engine, &l->caller, user, project, &last);
}

struct fragment_box {
	struct lodge_fragment pub;
	struct store_fragment rec;
};

static struct lodge_fragment fragment_of(const struct store_fragment *f)
{
	return (struct lodge_fragment){ f->id,	  f->project, f->title,	    f->snapshot,
					f->files, f->bytes,   f->created_at };
}

PUBLIC int lodge_fragment_add(struct lodge *l, const char *user, const char *project,
			      const struct lodge_fragment_options *options,
			      struct lodge_fragment **ret)
{
	struct fragment_add_result added;
	struct lodge_fragment_options o;
	struct fragment_opts opts;
	struct fragment_box *b;

	if (TAKE(lodge_fragment_options, options, &o) < 0)
		return -1;
	opts = (struct fragment_opts){ .id = o.id,
				       .title = o.title,
				       .files = o.files,
				       .files_len = o.files ? strlen(o.files) : 0,
				       .snapshot = o.snapshot,
				       .from_sandbox = o.from_sandbox };
	if (fragment_add(l->engine, &l->caller, user, project, &opts, &added, &last) < 0)
		return -1;
	b = box_new(sizeof(*b), NULL);
	if (!b)
		return -1;
	b->rec = added.fragment; /* a record owns nothing */
	b->pub = fragment_of(&b->rec);
	*ret = &b->pub;
	return 0;
}

LIST_BOX(fragment, fragments, fragment_of)

PUBLIC int lodge_fragment_list(struct lodge *l, const char *user, const char *project,
			       int64_t after, uint32_t limit, struct lodge_fragments **ret)
{
	struct store_fragment_list list = { 0 };
	int64_t next;

	if (fragment_list(l->engine, &l->caller, user, project, lib_get_page(after, limit), &list,
			  &last) < 0)
		return -1;
	next = list.next;
	if (put_fragments(&list, ret) < 0)
		return -1;
	(*ret)->next = next;
	return 0;
}

PUBLIC int lodge_fragment_remove(struct lodge *l, const char *user, const char *project,
				 const char *fragment)
{
	return fragment_remove(l->engine, &l->caller, user, project, fragment, &last);
}

/* ---- teams and users ------------------------------------------------------------------------- */

PUBLIC int lodge_team_put(struct lodge *l, const char *by, const char *team, const char *user,
			  const char *role)
{
	enum team_role r = role ? team_role_find(role) : 0;

	if (!r)
		return err_set(&last, ERR_INVALID, "role: must be OWNER, ADMIN, MEMBER or VIEWER");
	return team_put(l->engine, &l->caller, by, team, user, r, &last);
}

PUBLIC int lodge_team_remove(struct lodge *l, const char *by, const char *team, const char *user)
{
	return team_remove(l->engine, &l->caller, by, team, user, NULL, &last);
}

static struct lodge_member member_of(const struct store_member *m)
{
	return (struct lodge_member){ m->user, team_role_name((enum team_role)m->role) };
}

LIST_BOX(member, members, member_of)

PUBLIC int lodge_team_list(struct lodge *l, const char *by, const char *team,
			   struct lodge_members **ret)
{
	struct store_member_list list = { 0 };

	if (team_list(l->engine, &l->caller, by, team, &list, &last) < 0)
		return -1;
	return put_members(&list, ret);
}

PUBLIC int lodge_user_set(struct lodge *l, const char *user, const char *name, const char *email)
{
	return user_set(l->engine, &l->caller, user, name, email, &last);
}
