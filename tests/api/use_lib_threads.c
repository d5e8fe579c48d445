/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of threads, used by an agent's tool in the same process. The first argument is the home.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "use_lib.h"

static char id[64]; /* the session used by most of these tests */
static struct lodge_ref it = { .id = id };

static int enter(const char *user, const char *thread, int64_t minutes, struct lodge_session **ret)
{
	struct lodge_thread t = { SIZED(lodge_thread), .user = user, .thread = thread,
				  .idle_minutes = minutes };

	return start() < 0 ? -1 : lodge_thread_enter(lodge, &t, ret);
}

static void a_thread_has_one_session(void)
{
	struct lodge_session *first = NULL, *again = NULL, *none = NULL;

	CHECK(enter("ada", "talk", 5, &first) == 0 && first->outcome == LODGE_CREATED);
	snprintf(id, sizeof(id), "%s", first->id);
	CHECK(first->idle_timeout_ms == 5 * 60000 && first->on_idle == LODGE_END_DESTROY);
	CHECK(first->memory_bytes == 256 << 20 && first->disk_bytes == 500 << 20);
	CHECK(enter("ada", "talk", 0, &again) == 0 && again->outcome == LODGE_REUSED);
	CHECK_STR(again->id, first->id);
	CHECK(FAILS(enter("bob", "talk", 0, &none), LODGE_DENIED) && !NAMES(first->id));
	CHECK(FAILS(enter("ada", "", 0, &none), LODGE_INVALID) && NAMES("thread_id"));
	CHECK(FAILS(enter(NULL, "talk", 0, &none), LODGE_INVALID) && NAMES("user_id"));
	CHECK(FAILS(enter("ada", "talk", -1, &none), LODGE_INVALID) && NAMES("timeout_minutes"));
	lodge_free(first);
	lodge_free(again);
}

static void results_are_like_those_of_a_shell(void)
{
	struct lodge_result *r = NULL;

	CHECK(lodge_thread_run(lodge, &it, "pwd; id -u; exit 3", 10, &r) == 0);
	CHECK(r->status == 3 && r->exit_code == 3);
	CHECK_STR(r->out, "/workspace\n1000\n");
	lodge_free(r);
	CHECK(lodge_thread_run(lodge, &it, "kill -9 $$", 10, &r) == 0 && r->status == 128 + 9);
	lodge_free(r);
	CHECK(lodge_thread_run(lodge, &it, "sleep 60", 0.2, &r) == 0);
	CHECK(r->limits_hit & LODGE_HIT_TIME && r->status > 128);
	lodge_free(r);
	CHECK(FAILS(lodge_thread_run(lodge, &it, "true", -1, &r), LODGE_INVALID) &&
	      NAMES("timeout"));
	CHECK(FAILS(lodge_thread_run(lodge, &it, "", 1, &r), LODGE_INVALID) && NAMES("command"));
}

static int bytes(const char *data, size_t len)
{
	int fd = memfd_create("bytes", MFD_CLOEXEC);

	if (fd >= 0 && (write(fd, data, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void files_are_uploaded_and_downloaded(void)
{
	int in = bytes("hello", 5), out = bytes("", 0);
	struct lodge_files *all = NULL;
	struct lodge_file *f = NULL;
	char got[8] = "";

	CHECK(in >= 0 && out >= 0);
	CHECK(lodge_thread_put(lodge, &it, "d/a b\n\xff", in, &f) == 0 && f->size == 5);
	CHECK_STR(f->path, "/workspace/d/a b\n\xff");
	lodge_free(f);
	CHECK(lodge_thread_fetch(lodge, &it, "d/a b\n\xff", out) == 0);
	CHECK(pread(out, got, sizeof(got), 0) == 5);
	CHECK_STR(got, "hello");
	CHECK(lodge_thread_files(lodge, &it, &all) == 0 && all->count == 1 && all->total == 1);
	CHECK(all->total_bytes == 5 && all->items[0]->size == 5);
	CHECK_STR(all->items[0]->path, "d/a b\n\xff");
	lodge_free(all);
	CHECK(FAILS(lodge_thread_fetch(lodge, &it, "nothing", out), LODGE_NOT_FOUND));
	CHECK(lodge_last_errno() == ENOENT);
	close(in);
	close(out);
}

static void escaping_names_are_refused(void)
{
	static const char *const bad[] = { "", "/etc/x", "../x", "a/../x", "a//b", "./x", "a\\b" };
	int in = bytes("x", 1);
	struct lodge_file *f = NULL;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK(FAILS(lodge_thread_put(lodge, &it, bad[i], in, &f), LODGE_INVALID));
		CHECK(FAILS(lodge_thread_fetch(lodge, &it, bad[i], in), LODGE_INVALID));
	}
	close(in);
}

static void limits_are_reported(void)
{
	const struct lodge_refusal *no;
	int in = bytes("", 0);
	struct lodge_file *f = NULL;

	CHECK(ftruncate(in, (100 << 20) + 1) == 0);
	CHECK(FAILS(lodge_thread_put(lodge, &it, "large", in, &f), LODGE_LIMIT));
	no = lodge_last_refusal();
	CHECK_STR(no->what, "file");
	CHECK(no->max == 100 << 20 && no->asked == (100 << 20) + 1);
	CHECK(says(&it, "touch $(seq 1000)", ""));
	close(in);
	in = bytes("x", 1);
	CHECK(FAILS(lodge_thread_put(lodge, &it, "one-more", in, &f), LODGE_LIMIT));
	no = lodge_last_refusal();
	CHECK_STR(no->what, "files");
	CHECK(no->max == 1000 && no->now >= 1000);
	CHECK(says(&it, "rm -r *", ""));
	CHECK_STR(lodge_last_refusal()->what, "");
	close(in);
}

static void expired_sessions_are_reported(void)
{
	struct lodge_session *s = NULL;
	struct lodge_result *r = NULL;

	CHECK(lodge_destroy(lodge, &it, NULL, NULL) == 0);
	CHECK(FAILS(lodge_thread_run(lodge, &it, "true", 1, &r), LODGE_NOT_FOUND));
	CHECK(lodge_last_errno() == ESTALE);
	CHECK(enter("ada", "talk", 0, &s) == 0 && s->outcome != LODGE_REUSED);
	lodge_free(s);
}

int main(int argc, char **argv)
{
	home = argc > 1 ? argv[1] : "/var/tmp/none";
	RUN(a_thread_has_one_session);
	RUN(results_are_like_those_of_a_shell);
	RUN(files_are_uploaded_and_downloaded);
	RUN(escaping_names_are_refused);
	RUN(limits_are_reported);
	RUN(expired_sessions_are_reported);
	return leave();
}
