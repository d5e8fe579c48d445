/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of threads: see thread/thread.h. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file_io.h"
#include "lib/lib_convert.h"
#include "lib/lib_exec.h"
#include "lib/lib_files.h"
#include "lib/lib_opts.h"
#include "exec/side_conn.h"

enum { PIECE = 64 << 10 };

PUBLIC const struct lodge_refusal *lodge_last_refusal(void)
{
	static const char *const names[] = { [THREAD_LIMIT_NONE] = "",
					     [THREAD_LIMIT_FILE_SIZE] = "file",
					     [THREAD_LIMIT_FILES] = "files",
					     [THREAD_LIMIT_DISK] = "workspace" };
	static _Thread_local struct lodge_refusal told;

	told = (struct lodge_refusal){ .what = *last_word.policy ? "program"
								 : names[last_full.limit],
				       .word = last_word.word,
				       .max = last_full.max,
				       .now = last_full.used,
				       .asked = last_full.requested };
	return &told;
}

PUBLIC int lodge_thread_enter(struct lodge *l, const struct lodge_thread *thread,
			      struct lodge_session **ret)
{
	struct session_enter_result how = { 0 };
	struct lodge_thread t;

	forget_last();
	if (TAKE(lodge_thread, thread, &t) < 0 ||
	    thread_enter(l->engine, &l->caller, &l->threads, t.user, t.thread, t.idle_minutes, &how,
			 &last) < 0)
		return -1;
	return lib_put_entered(&how, ret);
}

PUBLIC int lodge_thread_run(struct lodge *l, const struct lodge_ref *ref, const char *text,
			    double seconds, struct lodge_result **ret)
{
	struct exec_opts want = { .text = text, .refusal = &last_word };
	struct session_ref r;

	forget_last();
	if (lib_get_ref(ref, &r) < 0 || thread_timeout(seconds, &want.timeout_ms, &last) < 0)
		return -1;
	if (!text || !*text)
		return err_set(&last, ERR_INVALID, "command: missing");
	return lib_put_run(l, &r, &want, NULL, 0, ret);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Returns NULL with the error in `last`. */
static struct side_conn *open_side_conn(struct lodge *l, const struct lodge_ref *ref)
{
	struct side_conn *loan;
	struct session_ref r;

	forget_last();
	if (lib_get_ref(ref, &r) < 0 ||
	    side_conn_open(l->engine, &l->caller, &r, true, &loan, &last_outcome, &last) < 0)
		return NULL;
	return loan;
}

static int check_name(const char *name)
{
	return name && thread_name_is_valid(name) ? 0
						  : err_set(&last, ERR_INVALID, "Invalid filename");
}

PUBLIC int lodge_thread_put(struct lodge *l, const struct lodge_ref *ref, const char *name, int fd,
			    struct lodge_file **ret)
{
	auto_call(side_conn_close) struct side_conn *loan = NULL;
	struct agent_stat st = { 0 };
	struct lodge_file *file;
	struct thread_write_result p;

	if (check_name(name) < 0)
		return -1;
	loan = open_side_conn(l, ref);
	if (!loan)
		return -1;
	if (thread_file_write(loan, &l->threads, name, fd, &p, &last) < 0) {
		last_full = p.limit_hit;
		return -1;
	}
	st.size = p.size;
	st.mode = S_IFREG | 0644;
	file = lib_put_file(p.path, &st, NULL);
	if (!file)
		return -1;
	*ret = file;
	return 0;
}

static int copy_out(int from, int to, const char *name)
{
	auto_free char *buf = malloc(PIECE);
	ssize_t n = 1;
	int r = 0;

	if (!buf)
		return err_sys(&last, ENOMEM, "%.160s", name);
	while (r == 0 && n != 0) {
		n = read(from, buf, PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0 ? -errno : n > 0 ? file_write_all(to, buf, (size_t)n) : 0;
	}
	return r < 0 ? err_sys(&last, -r, "%.160s", name) : 0;
}

PUBLIC int lodge_thread_fetch(struct lodge *l, const struct lodge_ref *ref, const char *name,
			      int fd)
{
	auto_call(side_conn_close) struct side_conn *loan = NULL;
	auto_close int from = -1;
	struct stat st;

	if (check_name(name) < 0)
		return -1;
	loan = open_side_conn(l, ref);
	if (!loan || thread_file_open(loan, name, &from, &st, &last) < 0)
		return -1;
	return copy_out(from, fd, name);
}

PUBLIC int lodge_thread_files(struct lodge *l, const struct lodge_ref *ref,
			      struct lodge_files **ret)
{
	auto_call(side_conn_close) struct side_conn *loan = open_side_conn(l, ref);
	auto_fini(thread_files_fini) struct thread_files all = { 0 };
	struct lodge_files *f;

	if (!loan || thread_files_list(loan, NULL, NULL, &all, &last) < 0)
		return -1;
	f = lib_put_files(all.count);
	if (!f)
		return -1;
	for (; f->count < all.count; f->count++) {
		const struct thread_file *from = &all.items[f->count];
		struct agent_stat st = { .size = from->size,
					 .mode = from->mode,
					 .mtime_ns = from->mtime_ns };

		f->items[f->count] = lib_put_file(from->name, &st, NULL);
		if (!f->items[f->count]) {
			lodge_free(f);
			return -1;
		}
	}
	f->total = all.total.files;
	f->total_bytes = all.total.bytes;
	*ret = f;
	return 0;
}
