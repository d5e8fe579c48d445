/* SPDX-License-Identifier: Apache-2.0 */
/* lodge-init as a plain process: file operations, jobs, archives. */
#include <sys/xattr.h>

#include "base/auto.h"
#include "base/fd_message.h"
#include "init_client.h"
#include "tap.h"
#include "wire/agent_proto.h"

/* Every byte that a name can contain, in a few names. */
static const char *const odd_names[] = {
	"\n",  "-rf", " ", "*",	       "\\",   "\"'", "\xff\xfe", "\x01",     "a\tb\rc",  "$(id)",
	"..a", "...", "~", "\xc3\xa9", "\x7f", ";",   "%s%n",	  "\x1b[31m", ".lodge-x", "#?&=+",
};
enum { ODD = sizeof(odd_names) / sizeof(odd_names[0]) };

static bool put_file(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static const char *get_file(const char *path)
{
	static char text[4096];
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n < 0)
		return "(none)";
	text[n] = 0;
	return text;
}

static uint64_t token(void)
{
	struct agent_token t;

	memcpy(&t, reply.body, sizeof(t));
	return t.token;
}

static uint32_t end_write(uint32_t type, uint64_t t)
{
	struct agent_token m = { t };

	return call(type, &m, sizeof(m));
}

static bool write_atomic(const char *path, const char *text)
{
	uint64_t t;

	if (file_op(AGENT_TEMP, 0, 0, path, NULL) != AGENT_FD)
		return false;
	t = token();
	if (write(reply.fd, text, strlen(text)) != (ssize_t)strlen(text))
		return false;
	close(reply.fd);
	return end_write(AGENT_COMMIT, t) == AGENT_OK;
}

static void any_name_can_be_written_read_and_removed(void)
{
	for (int i = 0; i < ODD; i++) {
		const char *path = in_scratch(odd_names[i]), *other = in_scratch("moved");
		char text[16];

		CHECK(write_atomic(path, "content"));
		CHECK_STR(get_file(path), "content");
		CHECK(file_op(AGENT_OPEN, AGENT_READ, 0, path, NULL) == AGENT_FD);
		CHECK(read(reply.fd, text, sizeof(text)) == 7);
		CHECK(!(fcntl(reply.fd, F_GETFL) & O_NONBLOCK));
		close(reply.fd);
		CHECK(file_op(AGENT_STAT, 0, 0, path, NULL) == AGENT_STATR);
		CHECK(file_op(AGENT_RENAME, 0, 0, path, other) == AGENT_OK);
		CHECK(file_op(AGENT_RENAME, 0, 0, other, path) == AGENT_OK);
		CHECK(file_op(AGENT_CHMOD, 0, 0600, path, NULL) == AGENT_OK);
		CHECK(file_op(AGENT_REMOVE, 0, 0, path, NULL) == AGENT_OK);
		CHECK(access(path, F_OK) < 0);
	}
}

static void an_error_names_the_path(void)
{
	CHECK(file_op(AGENT_OPEN, AGENT_READ, 0, "/no/such/file", NULL) == AGENT_ERROR);
	CHECK(error_code() == ERR_NOT_FOUND);
	CHECK_STR(error_text(), "/no/such/file: No such file or directory");
}

static void only_files_and_directories_are_opened(void)
{
	const char *fifo = in_scratch("fifo"), *link = in_scratch("to-fifo");

	CHECK(mkfifo(fifo, 0666) == 0 && symlink(fifo, link) == 0);
	for (uint32_t how = AGENT_READ; how <= (AGENT_READ | AGENT_WRITE); how++) {
		CHECK(file_op(AGENT_OPEN, how, 0, fifo, NULL) == AGENT_ERROR);
		CHECK(error_code() == ERR_INVALID && strstr(error_text(), "is a FIFO"));
		CHECK(file_op(AGENT_OPEN, how, 0, link, NULL) == AGENT_ERROR);
	}
	CHECK(file_op(AGENT_TEMP, 0, 0, fifo, NULL) == AGENT_ERROR);
	CHECK(file_op(AGENT_OPEN, AGENT_READ, 0, "/dev/null", NULL) == AGENT_ERROR);
	CHECK(strstr(error_text(), "is a character device"));
	CHECK(file_op(AGENT_OPEN, AGENT_READ, 0, scratch, NULL) == AGENT_FD);
	close(reply.fd);
	CHECK(file_op(AGENT_OPEN, AGENT_READ | AGENT_DIR, 0, fifo, NULL) == AGENT_ERROR);
}

static void descriptors_and_memory_of_lodge_init_are_not_reachable(void)
{
	char own[64], line[64];

	snprintf(own, sizeof(own), "/proc/%d/fd/3", (int)cl.pid);
	CHECK(symlink(own, in_scratch("magic")) == 0);
	for (int fd = 0; fd < 16; fd++) {
		snprintf(line, sizeof(line), "/proc/self/fd/%d", fd);
		CHECK(file_op(AGENT_OPEN, AGENT_READ, 0, line, NULL) == AGENT_ERROR);
		CHECK(file_op(AGENT_STAT, 0, 0, line, NULL) == AGENT_ERROR);
	}
	CHECK(file_op(AGENT_OPEN, AGENT_READ, 0, in_scratch("magic"), NULL) == AGENT_ERROR);
	CHECK(file_op(AGENT_OPEN, AGENT_READ, 0, "/proc/self/root/etc/passwd", NULL) ==
	      AGENT_ERROR);
	CHECK(file_op(AGENT_OPEN, AGENT_READ, 0, "/proc/self/mem", NULL) == AGENT_ERROR);
	CHECK(file_op(AGENT_OPEN, AGENT_READ | AGENT_WRITE, 0, "/proc/self/mem", NULL) ==
	      AGENT_ERROR);
	CHECK(file_op(AGENT_OPEN, AGENT_READ, 0, "/proc/self/environ", NULL) == AGENT_ERROR);
	CHECK(file_op(AGENT_CHMOD, 0, 0666, "/proc/self/mem", NULL) == AGENT_ERROR);
	CHECK(begin(&(struct want){ .argv = (const char *const[]){ "true", NULL },
				    .cwd = "/proc/self/cwd" }) == AGENT_ERROR);
}

static void a_write_is_atomic(void)
{
	const char *path = in_scratch("atomic");
	uint64_t t;

	CHECK(put_file(path, "old") && chmod(path, 0640) == 0);
	CHECK(file_op(AGENT_TEMP, 0, 0, path, NULL) == AGENT_FD);
	t = token();
	CHECK(write(reply.fd, "new", 3) == 3);
	CHECK_STR(get_file(path), "old");
	CHECK(end_write(AGENT_COMMIT, t + 2) == AGENT_ERROR);
	CHECK(end_write(AGENT_COMMIT, t) == AGENT_OK);
	close(reply.fd);
	CHECK_STR(get_file(path), "new");
	CHECK(end_write(AGENT_COMMIT, t) == AGENT_ERROR);
	CHECK(file_op(AGENT_STAT, 0, 0, path, NULL) == AGENT_STATR);
	CHECK((((struct agent_stat *)(void *)reply.body)->mode & 07777) == 0640);
	CHECK(file_op(AGENT_TEMP, AGENT_NOREPLACE, 0, path, NULL) == AGENT_FD);
	t = token();
	close(reply.fd);
	CHECK(end_write(AGENT_COMMIT, t) == AGENT_ERROR && error_code() == ERR_CONFLICT);
	CHECK_STR(get_file(path), "new");
}

static int count_hidden(void)
{
	char command[128], text[16];
	FILE *f;

	snprintf(command, sizeof(command), "ls -A %s | grep -c '^[.]lodge-[0-9a-f]*$'", scratch);
	f = popen(command, "r");
	if (!f || !fgets(text, sizeof(text), f))
		return -1;
	pclose(f);
	return atoi(text);
}

static void an_unfinished_write_leaves_nothing(void)
{
	const char *path = in_scratch("unfinished");
	int before = cl.sock;

	CHECK(file_op(AGENT_TEMP, 0, 0, path, NULL) == AGENT_FD);
	close(reply.fd);
	CHECK(count_hidden() == 1);
	CHECK(end_write(AGENT_ABORT, token()) == AGENT_OK);
	CHECK(count_hidden() == 0);
	cl.sock = client_connect();
	CHECK(file_op(AGENT_TEMP, 0, 0, path, NULL) == AGENT_FD);
	close(reply.fd);
	close(cl.sock);
	cl.sock = before;
	for (int i = 0; i < 6000 && count_hidden() != 0; i++)
		pause_ms(20);
	CHECK(count_hidden() == 0);
	CHECK(access(path, F_OK) < 0);
}

static void a_link_is_followed_by_writes(void)
{
	struct stat st;

	CHECK(symlink("link-target", in_scratch("link")) == 0);
	CHECK(write_atomic(in_scratch("link"), "through"));
	CHECK_STR(get_file(in_scratch("link-target")), "through");
	CHECK(lstat(in_scratch("link"), &st) == 0 && S_ISLNK(st.st_mode));
	CHECK(symlink("loop", in_scratch("loop")) == 0);
	CHECK(file_op(AGENT_TEMP, 0, 0, in_scratch("loop"), NULL) == AGENT_ERROR);
	CHECK(file_op(AGENT_STAT, AGENT_NOFOLLOW, 0, in_scratch("link"), NULL) == AGENT_STATR);
	CHECK(!memcmp(reply.body + sizeof(struct agent_stat), "link-target", 11));
	CHECK(file_op(AGENT_OPEN, AGENT_READ | AGENT_NOFOLLOW, 0, in_scratch("link"), NULL) ==
	      AGENT_ERROR);
}

static void directories_are_created_moved_and_removed(void)
{
	CHECK(file_op(AGENT_MKDIR, 0, 0, in_scratch("d/e/f"), NULL) == AGENT_ERROR);
	CHECK(file_op(AGENT_MKDIR, AGENT_PARENTS, 0, in_scratch("d/e/f"), NULL) == AGENT_OK);
	CHECK(file_op(AGENT_MKDIR, AGENT_PARENTS, 0, in_scratch("d/e/f"), NULL) == AGENT_OK);
	CHECK(file_op(AGENT_MKDIR, 0, 0, in_scratch("d/e/f"), NULL) == AGENT_ERROR);
	CHECK(error_code() == ERR_CONFLICT);
	CHECK(put_file(in_scratch("d/x"), ""));
	CHECK(file_op(AGENT_MKDIR, AGENT_PARENTS, 0, in_scratch("d/x"), NULL) == AGENT_ERROR);
	CHECK(file_op(AGENT_RENAME, AGENT_PARENTS, 0, in_scratch("d/e"), in_scratch("g/h")) ==
	      AGENT_OK);
	CHECK(file_op(AGENT_REMOVE, 0, 0, in_scratch("g"), NULL) == AGENT_ERROR);
	CHECK(error_code() == ERR_CONFLICT);
	CHECK(file_op(AGENT_REMOVE, 0, 0, in_scratch("g/h/f/"), NULL) == AGENT_OK);
	CHECK(file_op(AGENT_REMOVE, 0, 0, in_scratch("g/h/.."), NULL) == AGENT_ERROR);
	CHECK(file_op(AGENT_REMOVE, 0, 0, "/", NULL) == AGENT_ERROR);
	CHECK(file_op(AGENT_SYMLINK, 0, 0, "any\nthing", in_scratch("g/l")) == AGENT_OK);
	CHECK(file_op(AGENT_RENAME, AGENT_NOREPLACE, 0, in_scratch("g/l"), in_scratch("d/x")) ==
	      AGENT_ERROR);
}

/* ---- jobs ---------------------------------------------------------------------------------- */

static char data[1 << 20];
static size_t data_len;

/* Runs a job that writes, and collects its output. */
static bool job_out(uint32_t op, uint32_t depth, const char *path)
{
	int p[2];
	ssize_t n;

	if (pipe2(p, O_CLOEXEC) < 0 || begin_job(op, 0, depth, path, p[1]) != AGENT_STARTED)
		return false;
	close(p[1]);
	data_len = 0;
	while ((n = read(p[0], data + data_len, sizeof(data) - data_len)) > 0)
		data_len += (size_t)n;
	close(p[0]);
	return wait_end(WAIT_MS);
}

static bool job_in(const char *path, uint32_t flags)
{
	int fd = memfd_create("tar", MFD_CLOEXEC);
	bool ok = write(fd, data, data_len) == (ssize_t)data_len && lseek(fd, 0, SEEK_SET) == 0 &&
		  begin_job(AGENT_JOB_TAR_IN, flags, 0, path, fd) == AGENT_STARTED;

	close(fd);
	return ok && wait_end(WAIT_MS);
}

static void make_tree(const char *root)
{
	char path[512], deep[300];

	mkdir(root, 0755);
	snprintf(path, sizeof(path), "%s/sub", root);
	mkdir(path, 0750);
	for (int i = 0; i < ODD; i++) {
		snprintf(path, sizeof(path), "%s/sub/%s", root, odd_names[i]);
		put_file(path, odd_names[i]);
	}
	snprintf(path, sizeof(path), "%s/hard", root);
	snprintf(deep, sizeof(deep), "%s/zhard", root);
	put_file(path, "hard");
	setxattr(path, "user.test", "v\0\n", 3, 0);
	(void)!link(path, deep);
	snprintf(path, sizeof(path), "%s/link", root);
	(void)!symlink("sub/nowhere", path);
	snprintf(path, sizeof(path), "%s/%0200d", root, 7);
	put_file(path, "long");
	snprintf(path, sizeof(path), "%s/closed", root);
	mkdir(path, 0555);
}

static void a_list_is_sorted_and_complete(void)
{
	char last[512] = "";
	size_t n = 0, at = 0;

	make_tree(in_scratch("tree"));
	CHECK(job_out(AGENT_JOB_LIST, 5, in_scratch("tree")) && oc.exit.code == 0);
	while (at < data_len) {
		struct agent_entry e;
		char path[512];

		memcpy(&e, data + at, sizeof(e));
		CHECK(e.len == sizeof(e) + e.path_len + e.st.target_len && e.path_len < 500);
		memcpy(path, data + at + sizeof(e), e.path_len);
		path[e.path_len] = 0;
		if (!strchr(path, '/') && !strchr(last, '/'))
			CHECK(strcmp(last, path) < 0);
		if (!strcmp(path, "link"))
			CHECK(!memcmp(data + at + sizeof(e) + e.path_len, "sub/nowhere", 11));
		memcpy(last, path, sizeof(last));
		at += e.len;
		n++;
	}
	CHECK(n == ODD + 6);
	CHECK(job_out(AGENT_JOB_LIST, 1, in_scratch("no-such")) && oc.exit.code == 1);
	CHECK(oc.exit.job_errno == ENOENT && strstr(oc.message, "no-such"));
	CHECK(job_out(AGENT_JOB_LIST, 1, in_scratch("tree/hard")));
	CHECK(oc.exit.job_errno == ENOTDIR);
}

static bool tar_packs(const char *dir, const char *format)
{
	char command[400];
	FILE *f;

	snprintf(command, sizeof(command), "tar -C %s/%s -c --format=%s .", scratch, dir, format);
	f = popen(command, "r");
	data_len = f ? fread(data, 1, sizeof(data), f) : 0;
	return f && pclose(f) == 0;
}

static bool in_shell(const char *text)
{
	char command[600];

	snprintf(command, sizeof(command), "cd %s && %s", scratch, text);
	return system(command) == 0;
}

static void an_archive_is_unpacked_exactly(void)
{
	char value[8];
	struct stat a, b;

	CHECK(job_out(AGENT_JOB_TAR_OUT, 0, in_scratch("tree")) && oc.exit.code == 0);
	CHECK(data_len % 512 == 0);
	CHECK(job_in(in_scratch("copy"), 0));
	CHECK_STR(oc.message, "");
	CHECK(oc.exit.code == 0);
	CHECK(in_shell("diff -r --no-dereference tree copy"));
	CHECK(stat(in_scratch("tree/hard"), &a) == 0 && stat(in_scratch("copy/hard"), &b) == 0);
	CHECK(a.st_mtim.tv_nsec == b.st_mtim.tv_nsec && b.st_nlink == 2);
	if (getxattr(in_scratch("tree/hard"), "user.test", value, 8) == 3)
		CHECK(getxattr(in_scratch("copy/hard"), "user.test", value, 8) == 3);
	CHECK(stat(in_scratch("copy/closed"), &b) == 0 && (b.st_mode & 07777) == 0555);
	CHECK(tar_packs("tree", "gnu"));
	CHECK(job_in(in_scratch("copy2"), 0) && oc.exit.code == 0);
	CHECK(in_shell("diff -r --no-dereference tree copy2"));
}

/* The truncated name in the header may end like the name of a directory. */
static void long_names_of_all_lengths(void)
{
	const char *const by[] = { "own", "gnu", "pax" };

	CHECK(in_shell("mkdir long && for n in 95 96 97 98 99 100 101; do "
		       "d=long/$(printf %0${n}d 0); mkdir $d; echo x >$d/full; : >$d/empty; done"));
	for (int i = 0; i < 3; i++) {
		CHECK(i ? tar_packs("long", by[i])
			: job_out(AGENT_JOB_TAR_OUT, 0, in_scratch("long")));
		CHECK(job_in(in_scratch(by[i]), 0));
		CHECK_STR(oc.message, "");
	}
	CHECK(in_shell("diff -r long own && diff -r long gnu && diff -r long pax"));
}

/* One header with its checksum; files have three bytes of content. */
static void add_entry(const char *name, char type, const char *link, unsigned mode)
{
	char *h = data + data_len;
	unsigned sum = 0;

	memset(h, 0, 1024);
	memcpy(h, name, strlen(name));
	sprintf(h + 100, "%07o", mode);
	sprintf(h + 108, "%07o", 0);
	sprintf(h + 116, "%07o", 0);
	sprintf(h + 124, "%011o", type == '0' ? 3 : 0);
	sprintf(h + 136, "%011o", 0);
	h[156] = type;
	memcpy(h + 157, link, strlen(link));
	memcpy(h + 257, "ustar", 6);
	memcpy(h + 263, "00", 2);
	memset(h + 148, ' ', 8);
	for (int i = 0; i < 512; i++)
		sum += (unsigned char)h[i];
	sprintf(h + 148, "%06o", sum);
	if (type == '0')
		memcpy(h + 512, "abc", 3);
	data_len += type == '0' ? 1024 : 512;
}

static bool unpack(uint32_t flags)
{
	memset(data + data_len, 0, 1024);
	data_len += 1024;
	return job_in(in_scratch("hostile"), flags);
}

static bool refused(const char *name, char type, const char *link)
{
	data_len = 0;
	add_entry(name, type, link, 0644);
	return unpack(0) && oc.exit.code == 1 && oc.message[0];
}

static void hostile_archives_are_refused(void)
{
	struct stat st;

	CHECK(refused("/abs", '0', "") && strstr(oc.message, "/abs"));
	CHECK(refused("../up", '0', "") && strstr(oc.message, "../up"));
	CHECK(refused("a/../../up", '0', ""));
	CHECK(refused("h", '1', "/etc/passwd"));
	CHECK(refused("h", '1', "../../etc/passwd"));
	CHECK(refused("h", '1', "not-there"));
	CHECK(refused("dev", '3', ""));
	CHECK(refused("blk", '4', ""));
	CHECK(refused("fifo", '6', ""));
	CHECK(refused("what", 'Z', ""));
	CHECK(refused("l", '2', ""));
	data_len = 0;
	add_entry("out", '2', "/tmp", 0777);
	add_entry("out/lodge-evil", '0', "", 0644);
	CHECK(unpack(0) && oc.exit.code == 1 && strstr(oc.message, "out/lodge-evil"));
	CHECK(access("/tmp/lodge-evil", F_OK) < 0);
	data_len = 0;
	add_entry("out", '0', "", 0644); /* replaces the link, not its target */
	add_entry("suid", '0', "", 06755);
	CHECK(unpack(0) && oc.exit.code == 0);
	CHECK(lstat(in_scratch("hostile/out"), &st) == 0 && S_ISREG(st.st_mode));
	CHECK(stat(in_scratch("hostile/suid"), &st) == 0 && (st.st_mode & 07777) == 0755);
}

static void damaged_archives_are_reported(void)
{
	data_len = 0;
	CHECK(job_in(in_scratch("hostile"), 0) && oc.exit.code == 1);
	CHECK_STR(oc.message, "invalid archive: unexpected end of file");
	add_entry("a", '0', "", 0644);
	data_len = 700;
	CHECK(job_in(in_scratch("hostile"), 0) && oc.exit.code == 1);
	data_len = 0;
	add_entry("a", '0', "", 0644);
	data[3] = 'x';
	CHECK(unpack(0) && oc.exit.code == 1 && strstr(oc.message, "invalid archive"));
	data_len = 0;
	add_entry("a", '0', "", 0644); /* no end marker */
	CHECK(job_in(in_scratch("hostile"), 0) && oc.exit.code == 1);
}

static void whiteouts_remove_files_of_lower_layers(void)
{
	CHECK(mkdir(in_scratch("hostile/dir"), 0755) == 0);
	CHECK(put_file(in_scratch("hostile/dir/below"), "x") &&
	      put_file(in_scratch("hostile/gone"), "x"));
	data_len = 0;
	add_entry("dir/.wh..wh..opq", '0', "", 0644);
	add_entry("dir/above", '0', "", 0644);
	add_entry(".wh.gone", '0', "", 0644);
	add_entry("dev", '3', "", 0644);
	CHECK(unpack(AGENT_JOB_OCI | AGENT_JOB_ROOTFS) && oc.exit.code == 0);
	CHECK(access(in_scratch("hostile/dir/below"), F_OK) < 0);
	CHECK(access(in_scratch("hostile/gone"), F_OK) < 0);
	CHECK(access(in_scratch("hostile/dir/above"), F_OK) == 0);
	CHECK(access(in_scratch("hostile/dir/.wh..wh..opq"), F_OK) < 0);
	data_len = 0;
	add_entry("x", '0', "", 0644);
	memset(data + data_len, 0, 1024);
	data_len += 1024;
	CHECK(begin_job(AGENT_JOB_TAR_IN, AGENT_JOB_OWNERS, 0, scratch, 0) == AGENT_ERROR);
	CHECK(error_code() == ERR_DENIED);
}

static void a_tree_is_removed_however_deep(void)
{
	int start = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(mkdir(in_scratch("deep"), 0755) == 0 && chdir(in_scratch("deep")) == 0);
	for (int i = 0; i < 700; i++)
		CHECK(mkdir("0123456789", 0755) == 0 && chdir("0123456789") == 0);
	CHECK(fchdir(start) == 0);
	close(start);
	CHECK(symlink(in_scratch("tree"), in_scratch("deep/link")) == 0);
	CHECK(begin_job(AGENT_JOB_REMOVE, 0, 0, in_scratch("deep"), -1) == AGENT_STARTED);
	CHECK(wait_end(WAIT_MS));
	CHECK_STR(oc.message, "");
	CHECK(access(in_scratch("deep"), F_OK) < 0 && access(in_scratch("tree/hard"), F_OK) == 0);
	CHECK(begin_job(AGENT_JOB_REMOVE, 0, 0, in_scratch("deep"), -1) == AGENT_STARTED);
	CHECK(wait_end(WAIT_MS) && oc.exit.code == 0);
}

static bool next_change(int fd, uint32_t *kind, char *path)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct agent_change c;

	if (poll(&p, 1, 120000) != 1 || read(fd, &c, sizeof(c)) != (ssize_t)sizeof(c))
		return false;
	*kind = c.kind;
	path[c.path_len] = 0;
	return !c.path_len || read(fd, path, c.path_len) == (ssize_t)c.path_len;
}

/* Skips others, because the content of a new directory may be reported twice. */
static bool wait_for_change(int fd, uint32_t kind, const char *want)
{
	char path[512];
	uint32_t k;

	while (next_change(fd, &k, path)) {
		if (k == kind && !strcmp(path, want))
			return true;
	}
	printf("# no change %u of %s\n", kind, want);
	return false;
}

static void a_watch_reports_everything_below(void)
{
	int p[2];

	CHECK(mkdir(in_scratch("w"), 0755) == 0 && pipe2(p, O_CLOEXEC) == 0);
	CHECK(begin_job(AGENT_JOB_WATCH, AGENT_JOB_RECURSIVE, 0, in_scratch("w"), p[1]) ==
	      AGENT_STARTED);
	close(p[1]);
	CHECK(wait_for_change(p[0], AGENT_CHANGE_READY, ""));
	CHECK(put_file(in_scratch("w/f"), "x"));
	CHECK(wait_for_change(p[0], AGENT_CHANGE_CREATE, "f") &&
	      wait_for_change(p[0], AGENT_CHANGE_WRITE, "f"));
	CHECK(mkdir(in_scratch("w/a"), 0755) == 0 && mkdir(in_scratch("w/a/b"), 0755) == 0);
	CHECK(wait_for_change(p[0], AGENT_CHANGE_CREATE, "a") &&
	      wait_for_change(p[0], AGENT_CHANGE_CREATE, "a/b"));
	pause_ms(50);
	CHECK(rename(in_scratch("w/f"), in_scratch("w/a/b/g")) == 0);
	CHECK(wait_for_change(p[0], AGENT_CHANGE_RENAME, "f") &&
	      wait_for_change(p[0], AGENT_CHANGE_CREATE, "a/b/g"));
	CHECK(chmod(in_scratch("w/a/b/g"), 0600) == 0);
	CHECK(wait_for_change(p[0], AGENT_CHANGE_CHMOD, "a/b/g"));
	CHECK(rename(in_scratch("w/a"), in_scratch("w/c")) == 0);
	CHECK(wait_for_change(p[0], AGENT_CHANGE_RENAME, "a") &&
	      wait_for_change(p[0], AGENT_CHANGE_CREATE, "c"));
	CHECK(wait_for_change(p[0], AGENT_CHANGE_CREATE, "c/b/g"));
	CHECK(unlink(in_scratch("w/c/b/g")) == 0);
	CHECK(wait_for_change(p[0], AGENT_CHANGE_REMOVE, "c/b/g"));
	close(p[0]);
	CHECK(wait_end(WAIT_MS) && oc.exit.code == 0);
}

static void a_job_can_be_killed_and_has_a_deadline(void)
{
	struct agent_signal s;
	int p[2];

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	CHECK(begin_job(AGENT_JOB_WATCH, 0, 0, scratch, p[1]) == AGENT_STARTED);
	s = (struct agent_signal){ oc.exec, SIGKILL, AGENT_TO_TREE };
	CHECK(call(AGENT_SIGNAL, &s, sizeof(s)) == AGENT_OK);
	CHECK(wait_end(WAIT_MS) && oc.exit.signal == SIGKILL);
	close(p[0]);
	close(p[1]);
}

static void still_alive(void)
{
	CHECK(client_alive());
}

int main(void)
{
	if (!client_start(false) || bind_client(AGENT_BIND_ONE_ID) != AGENT_OK) {
		printf("Bail out! %s does not start\n", init_binary());
		return 1;
	}
	RUN(any_name_can_be_written_read_and_removed);
	RUN(an_error_names_the_path);
	RUN(only_files_and_directories_are_opened);
	RUN(descriptors_and_memory_of_lodge_init_are_not_reachable);
	RUN(a_write_is_atomic);
	RUN(an_unfinished_write_leaves_nothing);
	RUN(a_link_is_followed_by_writes);
	RUN(directories_are_created_moved_and_removed);
	RUN(a_list_is_sorted_and_complete);
	RUN(an_archive_is_unpacked_exactly);
	RUN(long_names_of_all_lengths);
	RUN(hostile_archives_are_refused);
	RUN(damaged_archives_are_reported);
	RUN(whiteouts_remove_files_of_lower_layers);
	RUN(a_tree_is_removed_however_deep);
	RUN(a_watch_reports_everything_below);
	RUN(a_job_can_be_killed_and_has_a_deadline);
	RUN(still_alive);
	client_stop();
	outcome_close();
	return tap_done();
}
