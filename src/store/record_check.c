/* SPDX-License-Identifier: Apache-2.0 */
#include "store/record_check.h"

#include <jansson.h>
#include <string.h>

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

static int check_owned(const struct column *c, const char *text, struct err *err)
{
	json_t *j;
	bool object;

	if (strlen(text) > c->max)
		return err_set(err, ERR_INVALID, "%s is longer than %u bytes", c->label, c->max);
	if (!c->is_object)
		return 0;
	j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	object = json_is_object(j);
	json_decref(j);
	return object ? 0 : err_set(err, ERR_INVALID, "%s is not a JSON object", c->label);
}

int check_record(const struct columns *s, const void *record, struct err *err)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct column *c = &s->fields[i];
		const char *member = (const char *)record + c->offset;

		if (c->kind == COLUMN_TEXT && *c->label && check_text(c->label, member, err) < 0)
			return -1;
		if (c->kind == COLUMN_OWNED && *(char *const *)member &&
		    check_owned(c, *(char *const *)member, err) < 0)
			return -1;
	}
	return 0;
}

int check_session(const struct store_session *s, struct err *err)
{
	if (check_record(&columns_session, s, err) < 0)
		return -1;
	if (s->nbindings > STORE_BINDINGS_MAX)
		return err_set(err, ERR_INVALID, "session %s: too many keys (maximum: %d)", s->id,
			       STORE_BINDINGS_MAX);
	for (size_t i = 0; i < s->nbindings; i++)
		if (check_record(&columns_binding, &s->bindings[i], err) < 0)
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

int check_row_query(const struct store_row_query *q, struct err *err)
{
	if (check_session_filter(&q->by, err) < 0 || check_filter("id", q->id, err) < 0 ||
	    check_filter("text", q->text, err) < 0)
		return -1;
	if (q->limit < 1 || q->limit > STORE_ROWS_MAX)
		return err_set(err, ERR_INVALID, "limit: must be between 1 and %d", STORE_ROWS_MAX);
	return 0;
}

int check_snapshot_filter(const struct store_snapshot_filter *f, struct err *err)
{
	if (check_text("tenant", f->tenant, err) < 0 ||
	    check_filter("session", f->session, err) < 0)
		return -1;
	return check_filter("user", f->user, err);
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
