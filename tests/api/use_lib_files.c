/* SPDX-License-Identifier: Apache-2.0 */
/* Files and snapshots, used by a program outside the source tree. The argument is the home. */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "use_lib.h"

/* ---- files ----------------------------------------------------------------------------------- */

static void files_are_written_and_read(void)
{
	struct lodge_session *s = NULL;
	struct lodge_bytes *b = NULL;
	struct lodge_files *list = NULL;
	struct lodge_file *f = NULL;

	CHECK(enter_me(&s) == 0);
	lodge_free(s);
	CHECK(lodge_file_write(lodge, &me, "a/b/f", "x\0y", 3, 0) == 0);
	CHECK(lodge_file_append(lodge, &me, "a/b/f", "z", 1, 0) == 0);
	CHECK(lodge_file_read(lodge, &me, "a/b/f", 100, &b) == 0);
	CHECK(b->len == 4 && !memcmp(b->data, "x\0yz", 5));
	lodge_free(b);
	CHECK(FAILS(lodge_file_read(lodge, &me, "a/b/f", 3, &b), LODGE_LIMIT));
	CHECK(FAILS(lodge_file_read(lodge, &me, "no", 100, &b), LODGE_NOT_FOUND));
	CHECK(FAILS(lodge_file_read(lodge, &me, NULL, 100, &b), LODGE_INVALID) && NAMES("path"));
	CHECK(lodge_file_mkdir(lodge, &me, "d/e", 1, 0700) == 0);
	CHECK(lodge_file_symlink(lodge, &me, "../a/b/f", "d/link") == 0);
	CHECK(lodge_file_stat(lodge, &me, "d/link", 0, &f) == 0 && S_ISLNK(f->mode));
	CHECK_STR(f->target, "../a/b/f");
	lodge_free(f);
	CHECK(lodge_file_chmod(lodge, &me, "a/b/f", 0640) == 0);
	CHECK(lodge_file_stat(lodge, &me, "d/link", 1, &f) == 0 && f->size == 4);
	CHECK((f->mode & 07777) == 0640 && S_ISREG(f->mode) && f->mtime_ns > 0 && !f->target[0]);
	lodge_free(f);
	CHECK(lodge_file_write(lodge, &me, "d/a b\nc", "", 0, 0) == 0);
	CHECK(lodge_file_list(lodge, &me, "d", 1, 10, &list) == 0 && list->count == 3);
	CHECK_STR(list->items[0]->path, "a b\nc");
	CHECK_STR(list->items[1]->path, "e");
	CHECK_STR(list->items[2]->target, "../a/b/f");
	lodge_free(list);
	CHECK(FAILS(lodge_file_list(lodge, &me, "d", 1, 2, &list), LODGE_LIMIT));
	CHECK(FAILS(lodge_file_rename(lodge, &me, "a/b/f", "d/link", 0), LODGE_CONFLICT));
	CHECK(lodge_file_rename(lodge, &me, "a/b/f", "d/link", 1) == 0);
	CHECK(FAILS(lodge_file_remove(lodge, &me, "d"), LODGE_CONFLICT));
	CHECK(lodge_file_remove(lodge, &me, "d/e") == 0);
	CHECK(lodge_file_remove_tree(lodge, &me, "d") == 0);
	CHECK(lodge_file_remove_tree(lodge, &me, "d") == 0);
	CHECK(FAILS(lodge_file_stat(lodge, &me, "d", 1, &f), LODGE_NOT_FOUND));
}

enum { PIECE = 64 << 10, PIECES = 160 };

static bool content_is_whole(const char *path)
{
	static char buf[PIECE + 1000]; /* does not fit the pieces */
	struct lodge_reader *r = NULL;
	uint64_t at = 0;
	size_t n = 1;
	bool good;

	if (lodge_reader_open(lodge, &me, path, &r) < 0)
		return false;
	for (good = true; good && n; at += n) {
		good = lodge_reader_read(r, at, buf, sizeof(buf), &n) == 0;
		for (size_t i = 0; good && i < n; i++)
			good = buf[i] == (char)((at + i) / PIECE);
	}
	good = good && at == (uint64_t)PIECE * PIECES;
	good = good && lodge_reader_read(r, PIECE * 7, buf, 1, &n) == 0 && n == 1 && buf[0] == 7;
	lodge_reader_close(r);
	return good;
}

static void large_files_are_written_and_read_in_pieces(void)
{
	static char piece[PIECE];
	struct lodge_session *s = NULL;
	struct lodge_writer *w = NULL;

	CHECK(enter_me(&s) == 0);
	lodge_free(s);
	CHECK(lodge_file_write(lodge, &me, "big/f", "old", 3, 0) == 0);
	CHECK(lodge_writer_open(lodge, &me, "big/f", 0600, &w) == 0);
	for (int i = 0; i < PIECES; i++) {
		memset(piece, i, sizeof(piece));
		CHECK(lodge_writer_write(w, piece, sizeof(piece)) == 0);
	}
	CHECK(says(&me, "cat big/f", "old")); /* until the commit */
	CHECK(lodge_writer_commit(w) == 0 && FAILS(lodge_writer_commit(w), LODGE_CONFLICT));
	CHECK(FAILS(lodge_writer_write(w, "x", 1), LODGE_CONFLICT));
	lodge_writer_close(w);
	CHECK(says(&me, "stat -c '%s %a' big/f", "10485760 600") && content_is_whole("big/f"));
	CHECK(lodge_writer_open(lodge, &me, "big/other", 0, &w) == 0);
	CHECK(lodge_writer_write(w, "x", 1) == 0);
	lodge_writer_close(w); /* without a commit */
	CHECK(says(&me, "ls -A big", "f"));
	lodge_writer_close(NULL);
	lodge_reader_close(NULL);
}

static void streams_say_what_is_wrong(void)
{
	struct lodge_limits small = { SIZED(lodge_limits), .file_bytes = 1 << 20 };
	struct lodge_want w = { SIZED(lodge_want), .limits = &small };
	struct lodge_session *s = NULL;
	struct lodge_reader *r = NULL;
	struct lodge_writer *to = NULL;
	struct lodge_ref ref = { 0 };
	static char data[600 << 10];
	size_t n;

	CHECK(start() == 0 && lodge_enter(lodge, &w, &s) == 0);
	ref.id = s->id;
	CHECK(FAILS(lodge_reader_open(lodge, &ref, "nosuch", &r), LODGE_NOT_FOUND) && !r);
	CHECK(FAILS(lodge_reader_open(lodge, &ref, "/tmp", &r), LODGE_INVALID) && NAMES("/tmp"));
	CHECK(FAILS(lodge_reader_open(lodge, &ref, NULL, &r), LODGE_INVALID) && NAMES("path"));
	CHECK(FAILS(lodge_writer_open(lodge, &ref, "/usr/x", 0, &to), LODGE_DENIED) && !to);
	CHECK(lodge_writer_open(lodge, &ref, "f", 0, &to) == 0);
	CHECK(lodge_writer_write(to, data, sizeof(data)) == 0);
	CHECK(FAILS(lodge_writer_write(to, data, sizeof(data)), LODGE_LIMIT) &&
	      NAMES("file_bytes"));
	CHECK(FAILS(lodge_writer_commit(to), LODGE_CONFLICT)); /* half a file is none */
	lodge_writer_close(to);
	CHECK(lodge_file_write(lodge, &ref, "f", "x", 1, 0) == 0);
	CHECK(lodge_reader_open(lodge, &ref, "f", &r) == 0);
	CHECK(FAILS(lodge_reader_read(r, UINT64_MAX, data, 1, &n), LODGE_INVALID));
	lodge_reader_close(r);
	CHECK(lodge_destroy(lodge, &ref, NULL, NULL) == 0);
	lodge_free(s);
}

static void archives_are_packed_and_unpacked(void)
{
	int fd = memfd_create("tar", MFD_CLOEXEC);
	struct lodge_session *s = NULL;

	CHECK(fd >= 0 && enter_me(&s) == 0);
	lodge_free(s);
	CHECK(lodge_file_write(lodge, &me, "out/deep/f", "content", 7, 0) == 0);
	CHECK(lodge_file_tar_out(lodge, &me, "out", fd) == 0 && lseek(fd, 0, SEEK_SET) == 0);
	CHECK(lodge_file_mkdir(lodge, &me, "in", 1, 0) == 0);
	CHECK(lodge_file_tar_in(lodge, &me, "in", fd) == 0);
	CHECK(says(&me, "cat in/deep/f", "content"));
	close(fd);
}

/* ---- snapshots ------------------------------------------------------------------------------- */

static void snapshots_are_taken(void)
{
	struct lodge_ref keys[2] = { { .key = "fork1" }, { .key = "fork2" } };
	struct lodge_snapshot *snap = NULL, *got = NULL;
	struct lodge_snapshots *list = NULL;
	struct lodge_sessions *forks = NULL;
	struct lodge_session *s = NULL;

	CHECK(enter_me(&s) == 0);
	lodge_free(s);
	CHECK(says(&me, "echo before > state; cat state", "before"));
	CHECK(lodge_snapshot_take(lodge, &me, "first", 0, &snap) == 0);
	CHECK_STR(snap->name, "first");
	CHECK(says(&me, "echo after > state; cat state", "after"));
	CHECK(lodge_snapshot_get(lodge, snap->id, &got) == 0 && got->created_at > 0);
	lodge_free(got);
	CHECK(FAILS(lodge_snapshot_get(lodge, "snap_no", &got), LODGE_NOT_FOUND));
	CHECK(FAILS(lodge_snapshot_get(lodge, NULL, &got), LODGE_INVALID));
	CHECK(lodge_snapshot_list(lodge, &me, 0, 0, &list) == 0 && list->count == 1);
	CHECK_STR(list->items[0]->id, snap->id);
	lodge_free(list);
	CHECK(lodge_fork(lodge, &me, snap->id, 2, keys, &forks) == 0 && forks->count == 2);
	CHECK(strcmp(forks->items[0]->id, forks->items[1]->id) != 0);
	lodge_free(forks);
	CHECK(FAILS(lodge_fork(lodge, &me, snap->id, 1, keys, &forks), LODGE_CONFLICT));
	CHECK_STR(lodge_last_error(), "key fork1: already exists");
	CHECK(says(&keys[0], "cat state", "before") && says(&keys[1], "cat state", "before"));
	CHECK(says(&me, "cat state", "after"));
	CHECK(lodge_rollback(lodge, &me, snap->id, 0, &s) == 0);
	lodge_free(s);
	CHECK(says(&me, "cat state", "before"));
	CHECK(lodge_destroy(lodge, &keys[0], NULL, NULL) == 0);
	CHECK(lodge_destroy(lodge, &keys[1], NULL, NULL) == 0);
	lodge_free(snap);
}

static void snapshots_are_exported_and_imported(void)
{
	int fd = memfd_create("snapshot", MFD_CLOEXEC);
	struct lodge_snapshot *snap = NULL, *back = NULL;
	struct lodge_snapshots *list = NULL;
	struct lodge_session *s = NULL;
	struct lodge_ref ref = { 0 };
	struct lodge_want w = { SIZED(lodge_want) };

	CHECK(fd >= 0 && enter_me(&s) == 0);
	lodge_free(s);
	CHECK(says(&me, "echo far > away; cat away", "far"));
	CHECK(lodge_snapshot_take(lodge, &me, NULL, 1, &snap) == 0);
	CHECK(lodge_snapshot_export(lodge, snap->id, fd) == 0 && lseek(fd, 0, SEEK_SET) == 0);
	CHECK(lodge_snapshot_import(lodge, NULL, "came-back", fd, &back) == 0);
	CHECK(strcmp(back->id, snap->id) != 0 && !back->session[0]);
	CHECK(FAILS(lodge_snapshot_export(lodge, snap->id, -1), LODGE_INVALID) && NAMES("fd"));
	CHECK(FAILS(lodge_snapshot_import(lodge, NULL, NULL, -1, &back), LODGE_INVALID) &&
	      NAMES("fd"));
	w.snapshot = back->id;
	CHECK(lodge_enter(lodge, &w, &s) == 0);
	ref.id = s->id;
	CHECK(says(&ref, "cat away", "far"));
	CHECK(lodge_destroy(lodge, &ref, NULL, NULL) == 0);
	lodge_free(s);
	CHECK(lodge_snapshot_remove(lodge, back->id) == 0);
	CHECK(FAILS(lodge_snapshot_remove(lodge, back->id), LODGE_NOT_FOUND));
	CHECK(lodge_snapshot_list(lodge, NULL, 0, 0, &list) == 0 && list->count >= 1);
	lodge_free(list);
	lodge_free(back);
	lodge_free(snap);
	close(fd);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2)
		return 2;
	home = argv[1];
	RUN(files_are_written_and_read);
	RUN(large_files_are_written_and_read_in_pieces);
	RUN(streams_say_what_is_wrong);
	RUN(archives_are_packed_and_unpacked);
	RUN(snapshots_are_taken);
	RUN(snapshots_are_exported_and_imported);
	return leave();
}
