/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/record_check.h"
#include "store/memory/memory.h"

/* ---- projects ------------------------------------------------------------------------------ */

static void *project_by_id(struct mem *m, const char *tenant, const char *id)
{
	return mem_first(&m->project, MEM_MATCH(MEM_IS(store_project, tenant, tenant),
						MEM_IS(store_project, id, id)));
}

static int project_add(struct store *st, struct store_project *p, struct err *err)
{
	struct mem *m = mem_of(st);

	if (check_project(p, err) < 0)
		return -1;
	if (project_by_id(m, p->tenant, p->id))
		return err_set(err, ERR_CONFLICT, "project %s is there already", p->id);
	return mem_add_numbered(m, &m->project, p, &p->seq, err) ? 0 : -1;
}

static int project_get(struct store *st, const char *tenant, const char *id,
		       struct store_project *ret, struct err *err)
{
	return mem_give(&mem_of(st)->project, project_by_id(mem_of(st), tenant, id), ret, "project",
			id, err);
}

static bool may_see(struct mem *m, const void *row, const void *arg)
{
	const struct store_project *p = row;
	const char *user = arg;

	if (!user || strcmp(p->owner, user) == 0)
		return true;
	return p->team[0] &&
	       mem_first(&m->member, MEM_MATCH(MEM_IS(store_member, tenant, p->tenant),
					       MEM_IS(store_member, team, p->team),
					       MEM_IS(store_member, user, user)));
}

static int project_list(struct store *st, const char *tenant, const char *user,
			struct store_page page, struct store_project_list *ret, struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_project_list l = { 0 };
	void *items;

	if (check_filter("user", user, err) < 0 ||
	    mem_page(m, &m->project, page, MEM_MATCH(MEM_IS(store_project, tenant, tenant)),
		     may_see, user, &items, &l.count, &l.next, err) < 0)
		return -1;
	l.items = items;
	*ret = l;
	return 0;
}

/* ---- fragments ----------------------------------------------------------------------------- */

static struct store_fragment *fragment_by_id(struct mem *m, const char *tenant, const char *id)
{
	return mem_first(&m->fragment, MEM_MATCH(MEM_IS(store_fragment, tenant, tenant),
						 MEM_IS(store_fragment, id, id)));
}

static int copy_files(const struct store_file *files, size_t n, struct store_file_list *ret,
		      struct err *err)
{
	struct store_file_list l = { 0 };

	l.items = calloc(n + 1, sizeof(*l.items));
	if (!l.items)
		return err_sys(err, ENOMEM, "files");
	for (; l.count < n; l.count++) {
		const struct store_file *from = &files[l.count];
		struct store_file *to = &l.items[l.count];

		to->path = strdup(from->path);
		to->data = from->size > 0 ? malloc(from->size) : NULL;
		if (!to->path || (from->size > 0 && !to->data)) {
			l.count++;
			store_file_list_fini(&l);
			return err_sys(err, ENOMEM, "files");
		}
		to->size = from->size;
		if (to->size > 0)
			memcpy(to->data, from->data, to->size);
	}
	*ret = l;
	return 0;
}

static int compare_files(const void *a, const void *b)
{
	const struct store_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* A sorted copy without two of one path. */
static int take_files(const struct store_file *files, size_t n, struct store_file_list *ret,
		      struct err *err)
{
	struct store_file_list l;

	if (copy_files(files, n, &l, err) < 0)
		return -1;
	qsort(l.items, l.count, sizeof(*l.items), compare_files);
	for (size_t i = 1; i < n; i++)
		if (compare_files(&l.items[i - 1], &l.items[i]) == 0) {
			err_set(err, ERR_CONFLICT, "%s is there twice", l.items[i].path);
			store_file_list_fini(&l);
			return -1;
		}
	*ret = l;
	return 0;
}

static int check_links(struct mem *m, const struct store_fragment *f, struct err *err)
{
	if (fragment_by_id(m, f->tenant, f->id))
		return err_set(err, ERR_CONFLICT, "fragment %s is there already", f->id);
	if (!project_by_id(m, f->tenant, f->project))
		return err_set(err, ERR_CONFLICT, "there is no project %s", f->project);
	if (f->snapshot[0] &&
	    !mem_first(&m->snapshot, MEM_MATCH(MEM_IS(store_snapshot, id, f->snapshot))))
		return err_set(err, ERR_CONFLICT, "there is no snapshot %s", f->snapshot);
	return 0;
}

static int fragment_add(struct store *st, struct store_fragment *f, const struct store_file *files,
			size_t nfiles, struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_fragment new = *f;
	struct mem_files row;

	if (check_fragment(f, err) < 0 || check_files(files, nfiles, err) < 0 ||
	    check_links(m, f, err) < 0 || take_files(files, nfiles, &row.list, err) < 0)
		return -1;
	new.files = (int64_t)nfiles;
	new.bytes = 0;
	for (size_t i = 0; i < nfiles; i++)
		new.bytes += (int64_t)files[i].size;
	row.fragment = m->fragment.seq + 1;
	if (!mem_add(m, &m->files, &row, err)) {
		store_file_list_fini(&row.list);
		return -1;
	}
	if (!mem_add_numbered(m, &m->fragment, &new, &new.seq, err)) {
		mem_cut(&m->files, m->files.count - 1);
		store_file_list_fini(&row.list);
		return -1;
	}
	*f = new;
	return 0;
}

static int fragment_get(struct store *st, const char *tenant, const char *id,
			struct store_fragment *ret, struct err *err)
{
	return mem_give(&mem_of(st)->fragment, fragment_by_id(mem_of(st), tenant, id), ret,
			"fragment", id, err);
}

static size_t files_of(struct mem *m, int64_t fragment)
{
	const struct mem_files *rows = (const struct mem_files *)m->files.rows;
	size_t i = 0;

	while (rows[i].fragment != fragment)
		i++;
	return i;
}

static int fragment_files(struct store *st, const char *tenant, const char *id,
			  struct store_file_list *ret, struct err *err)
{
	struct mem *m = mem_of(st);
	const struct store_fragment *f = fragment_by_id(m, tenant, id);
	const struct store_file_list *l;

	if (!f)
		return err_set(err, ERR_NOT_FOUND, "there is no fragment %s", id);
	l = &((struct mem_files *)m->files.rows)[files_of(m, f->seq)].list;
	return copy_files(l->items, l->count, ret, err);
}

static int fragment_list(struct store *st, const char *tenant, const char *project,
			 struct store_page page, struct store_fragment_list *ret, struct err *err)
{
	struct mem *m = mem_of(st);
	const struct store_fragment *rows = (const struct store_fragment *)m->fragment.rows;
	struct store_fragment_list l = { 0 };

	if (check_page(page, err) < 0)
		return -1;
	l.items = calloc(page.limit, sizeof(*l.items));
	if (!l.items)
		return err_sys(err, ENOMEM, "fragments");
	for (size_t i = m->fragment.count; i-- > 0 && !l.next;) {
		if ((page.after && rows[i].seq >= page.after) ||
		    strcmp(rows[i].tenant, tenant) != 0 || strcmp(rows[i].project, project) != 0)
			continue;
		if (l.count == page.limit)
			l.next = l.items[l.count - 1].seq;
		else
			l.items[l.count++] = rows[i];
	}
	*ret = l;
	return 0;
}

static void drop_fragment(struct mem *m, size_t at)
{
	int64_t seq = ((struct store_fragment *)m->fragment.rows)[at].seq;
	size_t files = files_of(m, seq);

	store_file_list_fini(&((struct mem_files *)m->files.rows)[files].list);
	mem_drop(m, &m->files, files);
	mem_drop(m, &m->fragment, at);
}

static int fragment_remove(struct store *st, const char *tenant, const char *id, struct err *err)
{
	struct mem *m = mem_of(st);
	size_t at = 0;

	if (!mem_find(&m->fragment, &at,
		      MEM_MATCH(MEM_IS(store_fragment, tenant, tenant),
				MEM_IS(store_fragment, id, id))))
		return err_set(err, ERR_NOT_FOUND, "there is no fragment %s", id);
	drop_fragment(m, at);
	return 0;
}

static int project_remove(struct store *st, const char *tenant, const char *id, struct err *err)
{
	struct mem *m = mem_of(st);

	if (!mem_drop_all(m, &m->project,
			  MEM_MATCH(MEM_IS(store_project, tenant, tenant),
				    MEM_IS(store_project, id, id))))
		return err_set(err, ERR_NOT_FOUND, "there is no project %s", id);
	for (size_t at = 0; mem_find(&m->fragment, &at,
				     MEM_MATCH(MEM_IS(store_fragment, tenant, tenant),
					       MEM_IS(store_fragment, project, id)));)
		drop_fragment(m, at);
	return 0;
}

const struct store_project_ops memory_project_ops = {
	.add = project_add,
	.get = project_get,
	.list = project_list,
	.remove = project_remove,
};

const struct store_fragment_ops memory_fragment_ops = {
	.add = fragment_add,
	.get = fragment_get,
	.files = fragment_files,
	.list = fragment_list,
	.remove = fragment_remove,
};
