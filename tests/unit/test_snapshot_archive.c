/* SPDX-License-Identifier: Apache-2.0 */
/* Export and import of snapshots. */
#include "snapshot_cases.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "layers/layers.h"
#include "snapshot/snapshot.h"
#include "snapshot/snapshot_archive.h"
#include "sandbox/guest_exec_sync.h"
#include "admit/quota.h"
#include "count_active.h"
#include "layers/snapshot_record.h"

/* Creates every kind of file that an ordinary user can, and deletes files of the template. */
static const char build_text[] =
	"cd ~; umask 022\n"
	"python3 - <<'END'\n"
	"import os, socket\n"
	"def put(name, data=b'x', mode=0o644):\n"
	"    with open(name, 'wb') as f: f.write(data)\n"
	"    os.chmod(name, mode)\n"
	"put('empty', b''); put('plain', os.urandom(70000)); put('none', b'secret', 0)\n"
	"put('run', b'#!/bin/sh\\n', 0o755); put('odd', b's', 0o1604)\n"
	"for name in ('with space', 'new\\nline', '-dash', 'caf\\u00e9', b'\\xff\\xfe', '*', "
	"'\\\\'):\n"
	"    put(name)\n"
	"put('n' * 255)\n"
	"deep = '/'.join(['d' * 200] * 6); os.makedirs(deep); put(deep + '/leaf')\n"
	"with open('holes', 'wb') as f: f.seek(5 << 20); f.write(b'end')\n"
	"os.mkdir('closed', 0o700); put('closed/in'); os.chmod('closed', 0o500)\n"
	"os.mkdir('sticky'); os.chmod('sticky', 0o1777); os.mkdir('vacant')\n"
	"os.symlink('plain', 'link'); os.symlink('/no/where', 'dangling'); os.symlink('t' * 300, "
	"'long')\n"
	"os.symlink('\\xe9'.encode('latin1'), 'latin')\n"
	"os.mkdir('other'); os.link('plain', 'hard'); os.link('plain', 'other/hard'); "
	"os.link('link', 'soft')\n"
	"os.mkfifo('fifo', 0o640); os.utime('fifo', ns=(1, 9))\n"
	"socket.socket(socket.AF_UNIX).bind('socket')\n" /* no process listens, so it is not
							    exported */
	"os.setxattr('plain', 'user.note', b'\\0\\1binary\\n'); os.setxattr('vacant', 'user.d', "
	"b'')\n"
	"os.utime('run', ns=(1, 1234567890123456789)); os.utime('link', ns=(1, 7), "
	"follow_symlinks=False)\n"
	"os.utime('vacant', ns=(1, 42)); os.utime('empty', ns=(1, 0))\n"
	"END\n"
	"rm -f ~/.profile; mkdir ~/made; echo gone > ~/made/x; rm -r ~/made\n";

/* Lists everything except inode numbers and times of access and change, which a copy cannot keep.
 */
static const char dump_text[] =
	"cd ~; python3 - <<'END'\n"
	"import hashlib, os\n"
	"names, groups = [], {}\n"
	"for top, dirs, files in os.walk(b'.'):\n"
	"    dirs.sort()\n"
	"    names += [os.path.join(top, n) for n in [b'.'] + dirs + sorted(files)]\n"
	"for n in names:\n"
	"    s = os.lstat(n)\n"
	"    if s.st_nlink > 1 and not os.path.isdir(n): groups.setdefault(s.st_ino, "
	"[]).append(n)\n"
	"for n in names:\n"
	"    s = os.lstat(n); kind = s.st_mode >> 12\n"
	"    if kind == 12: continue\n"
	"    print(n, oct(s.st_mode), s.st_uid, s.st_gid, s.st_mtime_ns, groups.get(s.st_ino, "
	"'-'),\n"
	"          s.st_size if kind != 4 else '')\n"
	"    if kind == 10: print(' ', os.readlink(n))\n"
	"    if kind == 8 and os.access(n, os.R_OK): print(' ', hashlib.sha256(open(n, "
	"'rb').read()).hexdigest())\n"
	"    if kind in (4, 8) and os.access(n, os.R_OK):\n"
	"        print(' ', [(x, os.getxattr(n, x)) for x in sorted(os.listxattr(n))])\n"
	"END\n";

static char *output_of(const char *name, const char *text)
{
	struct session_ref ref = key(name);
	struct exec_opts how = { .text = text, .timeout_ms = 120000 };
	struct guest_exec_output o;
	char *out;

	if (exec_run(engine, &me, &ref, &how, NULL, 0, &o, &err) < 0) {
		printf("# %s\n", err.msg);
		return NULL;
	}
	if (o.err_len)
		printf("# %s\n", o.err);
	out = o.result.code == 0 && !o.err_len ? steal_ptr(&o.out) : NULL;
	guest_exec_output_fini(&o);
	return out;
}

static int scratch(void)
{
	return open(home, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
}

static bool import_again(const char *snapshot, const char *name)
{
	struct session_opts want = { .user = "ann", .snapshot = snapshot };

	if (enter_as(name, want, NULL) == 0)
		return true;
	printf("# %s\n", err.msg);
	return false;
}

static int sessions(void)
{
	struct store_session_filter mine = { .tenant = "acme" };
	struct store_session_list l;
	int n;

	if (session_list(engine, &mine, (struct store_page){ .limit = 100 }, &l, &err) < 0)
		return -1;
	n = (int)l.count;
	store_session_list_fini(&l);
	return n;
}

static void first_difference(const char *a, const char *b)
{
	while (a && b && *a && *b) {
		size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");

		if (n != m || memcmp(a, b, n) != 0) {
			printf("# before: %.*s\n# after:  %.*s\n", (int)n, a, (int)m, b);
			return;
		}
		a += n + (a[n] == '\n');
		b += m + (b[m] == '\n');
	}
}

static void a_size_is_unknown_until_the_files_are_counted(void)
{
	CHECK(snapshot_size(&(struct store_layer){ 0 }) == SNAPSHOT_SIZE_UNKNOWN);
	CHECK(snapshot_size(&(struct store_layer){ .bytes = 5 }) == 5);
	CHECK(snapshot_size(&(struct store_layer){ .durable = true }) == 0); /* no files */
}

static void export_and_import_preserve_the_files(void)
{
	auto_free char *before = NULL, *after = NULL, *built = NULL;
	auto_close int fd = -1;
	struct store_snapshot s, back;
	unsigned char magic[4];

	FRESH();
	CHECK(enter("a") && (built = output_of("a", build_text)));
	CHECK((before = output_of("a", dump_text)) && strlen(before) > 3000);
	CHECK(take("a", NULL, &s) && (fd = scratch()) >= 0);
	CHECK(!snapshot_export(engine, &me, s.id, fd, &err));
	CHECK(pread(fd, magic, 4, 0) == 4 && memcmp(magic, "\x28\xb5\x2f\xfd", 4) == 0);
	CHECK(lseek(fd, 0, SEEK_END) < 3 << 20 && lseek(fd, 0, SEEK_SET) == 0);
	if (snapshot_import(engine, &me, NULL, "copy", fd, &back, &err) < 0)
		printf("# %s\n", err.msg);
	CHECK(destroy("a") && !snapshot_remove(engine, &me, s.id, &err));
	collect_all();
	CHECK(sessions() == 0 && on_disk() == 1 && has_layer(back.layer));
	CHECK(!snapshot_get(engine, &me, back.id, &s, &err) && s.bytes > 0);
	CHECK_STR(s.name, "copy");
	CHECK_STR(s.session, "");
	CHECK(import_again(back.id, "b") && (after = output_of("b", dump_text)));
	first_difference(before, after);
	CHECK(strcmp(before, after) == 0);
}

/* Several layers with deletions become one archive. */
static void a_stack_is_one_archive(void)
{
	auto_close int fd = -1;
	struct store_snapshot s[3], back;

	FRESH();
	CHECK(enter("a") && says("a", "mkdir d; echo 1 > d/a; echo 1 > b; echo 1 > c", ""));
	CHECK(hibernate("a") && take("a", NULL, &s[0]));
	CHECK(says("a", "rm -r d b; mkdir d; echo 2 > d/b", "") && hibernate("a"));
	CHECK(take("a", NULL, &s[1]) && says("a", "echo 3 > c", "") && take("a", NULL, &s[2]));
	CHECK((fd = scratch()) >= 0 && !snapshot_export(engine, &me, s[2].id, fd, &err));
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CHECK(!snapshot_import(engine, &me, "host", NULL, fd, &back, &err));
	CHECK(import_again(back.id, "b") &&
	      says("b", "find . -type f | sort | xargs cat", "3\n2\n"));
	CHECK(says("b", "ls; ls d", "c\nd\nb\n"));
}

/* Archives of other programs, in several frames, read in small pieces from a pipe. */
static void archives_of_other_programs(void)
{
	auto_close int from = -1;
	struct store_snapshot s;
	FILE *p;

	FRESH();
	p = popen("d=$(mktemp -d) && mkdir -p $d/home/user && echo hi > $d/home/user/f && "
		  "chown -R 1000:1000 $d/home/user && tar -C $d -cf $d.tar home && "
		  "{ head -c 1500 $d.tar | zstd -q; sleep 0.1; tail -c +1501 $d.tar | zstd -q -19; "
		  "}; "
		  "rm -r $d $d.tar",
		  "r");
	CHECK(p && (from = dup(fileno(p))) >= 0);
	if (snapshot_import(engine, &me, "host", "theirs", from, &s, &err) < 0)
		printf("# %s\n", err.msg);
	CHECK(pclose(p) == 0);
	CHECK(import_again(s.id, "b") && says("b", "cat f; stat -c %U f", "hi\nuser\n"));
}

static int import_of(const char *command, struct store_snapshot *ret)
{
	FILE *p = popen(command, "r");
	int r = p ? snapshot_import(engine, &me, NULL, NULL, fileno(p), ret, &err) : 0;

	if (p)
		pclose(p);
	return r;
}

static void invalid_archives_are_refused(void)
{
	static const struct {
		const char *command, *says;
	} bad[] = {
		{ "echo this is not packed at all", "not a zstd archive" },
		{ "tar -C / -cf - etc/hostname", "not a zstd archive" },
		{ "printf ''", "ends too early" },
		{ "head -c 100000 /dev/urandom | zstd -q", "" },
		{ "tar -C /etc -cf - passwd | zstd -q | head -c 200", "ends too early" },
		{ "(tar -C /etc -cf - passwd | zstd -q; echo junk)", "damaged" },
		{ "tar -C /etc -cf - ../etc/passwd -P | zstd -q", "\"..\" is not allowed" },
	};
	struct store_snapshot s;

	FRESH();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int r = import_of(bad[i].command, &s);

		if (r == 0 || err.code != ERR_INVALID || !strstr(err.msg, bad[i].says))
			printf("# %s: %d %s\n", bad[i].command, r ? (int)err.code : 0,
			       r ? err.msg : "no error");
		CHECK(r < 0 && err.code == ERR_INVALID && strstr(err.msg, bad[i].says));
		CHECK(sessions() == 0 && count_active(engine) == 0);
	}
	collect_all();
	CHECK(on_disk() == 0);
}

static void unsuitable_descriptors_are_refused(void)
{
	auto_close int full = open("/dev/full", O_WRONLY | O_CLOEXEC), loose = -1;
	struct store_snapshot s;

	FRESH();
	CHECK(enter("a") && says("a", "head -c 3000000 /dev/urandom > f", "") &&
	      take("a", NULL, &s));
	CHECK(snapshot_export(engine, &me, s.id, full, &err) < 0 && err.code == ERR_LIMIT);
	CHECK(strstr(err.msg, "No space left"));
	CHECK(snapshot_export(engine, &me, s.id, 9999, &err) < 0);
	loose = open(home, O_RDWR | O_TMPFILE | O_CLOEXEC | O_NONBLOCK, 0600);
	CHECK(snapshot_export(engine, &me, s.id, loose, &err) < 0 && err.code == ERR_INVALID);
	CHECK(snapshot_export(engine, &me, "snp_nosuch", full, &err) < 0);
	CHECK(err.code == ERR_NOT_FOUND);
	CHECK(!snapshot_remove(engine, &me, s.id, &err) && says("a", "wc -c < f", "3000000\n"));
	collect_all();
	CHECK(on_disk() == 0); /* a failed call leaves no hold */
}

static void a_quota_is_a_limit(void)
{
	struct store_quota q = { .tenant = "acme", .disk_bytes = 8 << 20 };
	struct store_snapshot s;
	struct err failed;
	int r;

	FRESH();
	CHECK(!quota_set(engine, &q, &err));
	r = import_of("(cd /tmp && t=$(mktemp) && head -c 20000000 /dev/urandom > $t && "
		      "tar -cf - ${t#/tmp/} | zstd -q; rm $t)",
		      &s);
	failed = err;
	q.disk_bytes = 0;
	CHECK(!quota_set(engine, &q, &err));
	CHECK(r < 0 && sessions() == 0);
	err = failed;
	CHECK(err.code == ERR_LIMIT && err.sys == EDQUOT);
	CHECK(strstr(err.msg, "disk quota of the tenant leaves 8M"));
}

/* They belong to no session, so only an import can count them. */
static void imported_snapshots_count_against_the_quota(void)
{
	static const char three_mb[] =
		"(cd /tmp && t=$(mktemp) && head -c 3000000 /dev/urandom > $t && "
		"tar -cf - ${t#/tmp/} | zstd -q; rm $t)";
	struct store_quota q = { .tenant = "acme" };
	struct store_snapshot s;

	FRESH();
	CHECK(import_of(three_mb, &s) == 0);
	collect_all(); /* counts its files */
	CHECK(!snapshot_get(engine, &me, s.id, &s, &err) && s.bytes >= 3000000);
	q.disk_bytes = s.bytes + (2 << 20);
	CHECK(!quota_set(engine, &q, &err));
	CHECK(import_of(three_mb, &s) < 0 && err.code == ERR_LIMIT && err.sys == EDQUOT);
	CHECK(strstr(err.msg, "leaves 2M"));
	q.disk_bytes = s.bytes + 1;
	CHECK(!quota_set(engine, &q, &err));
	CHECK(import_of(three_mb, &s) < 0 && err.code == ERR_LIMIT && err.sys == EDQUOT);
	CHECK(strstr(err.msg, "imported snapshots"));
	q.disk_bytes = 0;
	CHECK(!quota_set(engine, &q, &err));
	CHECK(import_of(three_mb, &s) == 0);
}

static void entries_and_ratio_are_bounded(void)
{
	struct store_snapshot s;

	FRESH();
	ENGINE(.import_entries = 3, .import_ratio = 1000);
	CHECK(import_of("cd /etc && tar --hard-dereference -cf - passwd passwd passwd passwd | "
			"zstd -q",
			&s) < 0);
	CHECK(err.code == ERR_LIMIT && err.sys == EFBIG);
	CHECK(strstr(err.msg, "more than 3 entries"));
	CHECK(import_of("cd /etc && tar --hard-dereference -cf - passwd passwd passwd | zstd -q",
			&s) == 0);
	CHECK(import_of("cd /tmp && t=$(mktemp) && truncate -s 300M $t && "
			"tar -cf - ${t#/tmp/} | zstd -q; rm $t",
			&s) < 0);
	CHECK(err.code == ERR_LIMIT && err.sys == EMSGSIZE && sessions() == 0);
	CHECK(strstr(err.msg, "more than 1000 times its size"));
}

int main(void)
{
	find_keeper();
	for (int dir = 0; dir < 2; dir++) {
		new_home(dir);
		RUN(a_size_is_unknown_until_the_files_are_counted);
		RUN(export_and_import_preserve_the_files);
		RUN(a_stack_is_one_archive);
		RUN(archives_of_other_programs);
		RUN(invalid_archives_are_refused);
		RUN(unsuitable_descriptors_are_refused);
		RUN(a_quota_is_a_limit);
		RUN(imported_snapshots_count_against_the_quota);
		RUN(entries_and_ratio_are_bounded);
		remove_home();
	}
	return tap_done();
}
