/* SPDX-License-Identifier: Apache-2.0 */
#include "store/record_check.h"

#include <jansson.h>
#include <string.h>

#include "base/array.h"

int check_text(const char *what, const char *text, struct err *err)
{
	if (!text || !text[0])
		return err_set(err, ERR_INVALID, "%s is missing", what);
	return 0;
}

int check_filter(const char *what, const char *text, struct err *err)
{
	return text ? check_text(what, text, err) : 0;
}

static int check_json(const char *what, const char *json, struct err *err)
{
	json_t *j;
	bool object;

	if (!json)
		return 0;
	if (strlen(json) > STORE_JSON_MAX)
		return err_set(err, ERR_INVALID, "%s is longer than %d bytes", what,
			       STORE_JSON_MAX);
	j = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
	object = json_is_object(j);
	json_decref(j);
	return object ? 0 : err_set(err, ERR_INVALID, "%s is not a JSON object", what);
}

struct named {
	const char *what, *text;
};

/* Every text must be present. */
static int check_texts(const struct named *t, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (check_text(t[i].what, t[i].text, err) < 0)
			return -1;
	return 0;
}

/* Expands to the first two arguments of check_texts(). */
#define TEXTS(...)                                                                                 \
	(const struct named[]){ __VA_ARGS__ }, ARRAY_LEN(((const struct named[]){ __VA_ARGS__ }))

int check_binding(const struct store_binding *b, struct err *err)
{
	return check_texts(TEXTS({ "kind of a key", b->kind }, { "key", b->key }), err);
}

int check_session(const struct store_session *s, struct err *err)
{
	if (check_text("session id", s->id, err) < 0 || check_text("tenant", s->tenant, err) < 0)
		return -1;
	if (s->nbindings > STORE_BINDINGS_MAX)
		return err_set(err, ERR_INVALID, "session %s: too many keys (maximum: %d)", s->id,
			       STORE_BINDINGS_MAX);
	for (size_t i = 0; i < s->nbindings; i++)
		if (check_binding(&s->bindings[i], err) < 0)
			return -1;
	if (check_json("spec", s->spec, err) < 0 || check_json("metadata", s->metadata, err) < 0)
		return -1;
	return 0;
}

int check_session_filter(const struct store_session_filter *f, struct err *err)
{
	if (check_filter("tenant", f->tenant, err) < 0 || check_filter("user", f->user, err) < 0 ||
	    check_filter("project", f->project, err) < 0 ||
	    check_filter("template", f->template, err) < 0 ||
	    check_filter("policy", f->policy, err) < 0)
		return -1;
	return 0;
}

int check_snapshot_filter(const struct store_snapshot_filter *f, struct err *err)
{
	if (check_text("tenant", f->tenant, err) < 0)
		return -1;
	return check_filter("session", f->session, err) < 0 ? -1
							    : check_filter("user", f->user, err);
}

int check_event(const struct store_event *e, struct err *err)
{
	if (check_text("kind of an event", e->kind, err) < 0)
		return -1;
	return check_json("data of an event", e->data, err);
}

int check_layer(const struct store_layer *l, struct err *err)
{
	if (check_texts(TEXTS({ "layer id", l->id }, { "template", l->template }), err) < 0)
		return -1;
	if (strcmp(l->id, l->parent) == 0) /* It would keep itself referenced forever. */
		return err_set(err, ERR_INVALID, "layer %s is its own parent", l->id);
	return 0;
}

int check_snapshot(const struct store_snapshot *s, struct err *err)
{
	return check_texts(
		TEXTS({ "snapshot id", s->id }, { "tenant", s->tenant }, { "layer", s->layer }),
		err);
}

int check_exec(const struct store_exec *e, struct err *err)
{
	if (check_texts(
		    TEXTS({ "exec id", e->id }, { "tenant", e->tenant }, { "session", e->session }),
		    err) < 0)
		return -1;
	if (e->command && strlen(e->command) > STORE_COMMAND_MAX)
		return err_set(err, ERR_INVALID, "the command is longer than %d bytes",
			       STORE_COMMAND_MAX);
	return 0;
}

int check_once(const struct store_once *o, struct err *err)
{
	return check_texts(TEXTS({ "tenant", o->tenant }, { "scope", o->scope }, { "key", o->key },
				 { "target", o->target }),
			   err);
}

int check_project(const struct store_project *p, struct err *err)
{
	return check_texts(
		TEXTS({ "tenant", p->tenant }, { "project id", p->id }, { "owner", p->owner }),
		err);
}

int check_fragment(const struct store_fragment *f, struct err *err)
{
	return check_texts(
		TEXTS({ "tenant", f->tenant }, { "fragment id", f->id }, { "project", f->project }),
		err);
}

int check_user(const struct store_user *u, struct err *err)
{
	return check_texts(TEXTS({ "tenant", u->tenant }, { "user id", u->id }), err);
}

int check_member(const struct store_member *m, struct err *err)
{
	return check_texts(TEXTS({ "tenant", m->tenant }, { "team", m->team }, { "user", m->user }),
			   err);
}

int check_key(const struct store_key *k, struct err *err)
{
	return check_texts(TEXTS({ "key id", k->id }, { "tenant", k->tenant }), err);
}

int check_policy(const struct store_policy *p, struct err *err)
{
	if (check_texts(TEXTS({ "tenant", p->tenant }, { "policy", p->name }), err) < 0)
		return -1;
	if (check_json("limits", p->limits, err) < 0)
		return -1;
	return check_json("commands", p->commands, err);
}

int check_environment(const struct store_environment *v, struct err *err)
{
	if (check_texts(TEXTS({ "template", v->template }, { "version", v->version },
			      { "data", v->data ? v->data : "" }),
			err) < 0)
		return -1;
	return check_json("data", v->data, err);
}

int check_files(const struct store_file *files, size_t n, struct err *err)
{
	if (n > STORE_FILES_MAX)
		return err_set(err, ERR_INVALID, "too many files (%zu): the maximum is %d", n,
			       STORE_FILES_MAX);
	for (size_t i = 0; i < n; i++)
		if (check_text("path of a file", files[i].path, err) < 0)
			return -1;
	return 0;
}

int check_page(struct store_page page, struct err *err)
{
	if (page.limit < 1 || page.limit > STORE_PAGE_MAX)
		return err_set(err, ERR_INVALID, "limit must be between 1 and %d, not %u",
			       STORE_PAGE_MAX, page.limit);
	return 0;
}
