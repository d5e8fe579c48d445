/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the built lodge-init as a plain process and connects to it; for its tests. */
#ifndef LODGE_TESTS_INIT_CLIENT_H
#define LODGE_TESTS_INIT_CLIENT_H

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd_message.h"
#include "wire/agent_proto.h"
#include "wire/boot_fds.h"

#include "tmp_name.h"

enum { LOG_BYTES = 1 << 20, WAIT_MS = 120000 };

struct msg {
	struct agent_hdr h;
	int fd; /* -1 if there is none */
	uint32_t len;
	char body[AGENT_MSG_MAX];
};

struct client {
	pid_t pid;
	int listener; /* only the path keeps it bound */
	int sock;
	uint32_t req;
	uint64_t next_exec;
	char path[104];
	struct msg event; /* the last one received */
	struct msg kept[64]; /* events received before an answer */
	int nkept;
};

static struct client cl;
static char scratch[TMP_NAME_SIZE]; /* a directory for the test */

/* The result of a command. */
struct outcome {
	uint64_t exec;
	int logs[2];
	uint64_t log_bytes;
	int32_t pid;
	uint32_t used_spare_shell;
	struct agent_exit exit;
	char message[512];
	char out[65536], err[65536];
	size_t out_len, err_len;
};
static struct outcome oc;

static inline const char *init_binary(void)
{
	static char path[512];
	const char *own = getenv("LODGE_INIT"), *build = getenv("LODGE_BUILD");

	if (own)
		return own;
	snprintf(path, sizeof(path), "%s/lodge-init", build ? build : "build");
	return path;
}

/* As with the sandbox's filter, clone3 does not exist. */
static inline void hide_clone3(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = 4, .filter = code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

static inline void client_child(int listener, bool no_clone3)
{
	char *argv[] = { NULL, NULL }, *envp[] = { NULL };
	char name[] = "lodge-init";
	int null = open("/dev/null", O_RDWR);

	argv[0] = name;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(null, 0);
	dup2(null, 1);
	dup2(listener, 200);
	dup2(200, BOOT_FD_LISTEN);
	syscall(SYS_close_range, BOOT_FD_LISTEN + 1, ~0u, 0);
	if (no_clone3)
		hide_clone3();
	execve(init_binary(), argv, envp);
	_exit(127);
}

static inline int client_connect(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(sa.sun_path, cl.path, strlen(cl.path) + 1);
	if (connect(s, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		close(s);
		return -1;
	}
	return s;
}

static inline bool receive(int sock, struct msg *m, int timeout_ms)
{
	static char buf[AGENT_MSG_MAX];
	struct pollfd p = { .fd = sock, .events = POLLIN };
	size_t nfds;
	int fds[AGENT_FDS_MAX], n;

	if (poll(&p, 1, timeout_ms) <= 0)
		return false;
	n = fd_message_recv(sock, buf, sizeof(buf), fds, AGENT_FDS_MAX, &nfds);
	if (n < (int)sizeof(m->h) || agent_msg_problem(buf, (size_t)n, nfds, false))
		return false;
	memcpy(&m->h, buf, sizeof(m->h));
	m->len = (uint32_t)n - (uint32_t)sizeof(m->h);
	memcpy(m->body, buf + sizeof(m->h), m->len);
	m->fd = nfds ? fds[0] : -1;
	return true;
}

static inline uint32_t transmit(int sock, uint32_t type, const void *body, size_t len,
				const int *fds, size_t nfds)
{
	struct agent_hdr h = { .type = type, .req = ++cl.req, .len = (uint32_t)len };
	char *both = malloc(sizeof(h) + len);

	memcpy(both, &h, sizeof(h));
	if (len)
		memcpy(both + sizeof(h), body, len);
	fd_message_send(sock, both, sizeof(h) + len, fds, nfds);
	free(both);
	return h.req;
}

/* Sends a request and waits for the answer in *ret; earlier events are kept. */
static inline bool call_with(uint32_t type, const void *body, size_t len, const int *fds,
			     size_t nfds, struct msg *ret)
{
	uint32_t req = transmit(cl.sock, type, body, len, fds, nfds);

	while (receive(cl.sock, ret, WAIT_MS)) {
		if (ret->h.req == req)
			return true;
		if (cl.nkept < 64)
			cl.kept[cl.nkept++] = *ret;
	}
	return false;
}

static struct msg reply;

static inline uint32_t call(uint32_t type, const void *body, size_t len)
{
	return call_with(type, body, len, NULL, 0, &reply) ? reply.h.type : 0;
}

static inline uint32_t error_code(void)
{
	struct agent_error e;

	if (reply.h.type != AGENT_ERROR)
		return ERR_NONE;
	memcpy(&e, reply.body, sizeof(e));
	return e.code;
}

static inline const char *error_text(void)
{
	return reply.h.type == AGENT_ERROR ? reply.body + sizeof(struct agent_error) : "";
}

static inline uint32_t bind_client(uint32_t flags)
{
	struct agent_bind b = { .version = AGENT_VERSION,
				.flags = flags,
				.uid = getuid(),
				.gid = getgid(),
				.open_files = 256,
				.file_bytes = 64 << 20 };

	return call(AGENT_BIND, &b, sizeof(b));
}

static inline bool client_start(bool no_clone3)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int l = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (!mkdtemp(tmp_name(scratch, "lodge-test")))
		return false;
	snprintf(cl.path, sizeof(cl.path), "%s.sock", scratch);
	memcpy(sa.sun_path, cl.path, strlen(cl.path) + 1);
	if (bind(l, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(l, 16) < 0)
		return false;
	cl.pid = fork();
	if (cl.pid == 0)
		client_child(l, no_clone3);
	close(l);
	cl.sock = client_connect();
	cl.next_exec = 1;
	cl.nkept = 0;
	return cl.sock >= 0;
}

static inline void client_stop(void)
{
	char command[128];

	kill(cl.pid, SIGKILL);
	waitpid(cl.pid, NULL, 0);
	close(cl.sock);
	unlink(cl.path);
	snprintf(command, sizeof(command), "chmod -R u+rwx %s; rm -rf %s", scratch, scratch);
	if (system(command) != 0)
		printf("# %s stays\n", scratch);
}

static inline bool client_alive(void)
{
	return waitpid(cl.pid, NULL, WNOHANG) == 0 && call(AGENT_HELLO, NULL, 0) == AGENT_HELLOR;
}

/* ---- commands -------------------------------------------------------------------------------- */

struct want {
	uint32_t flags, timeout_ms;
	uint64_t log_bytes;
	const char *cwd, *user;
	const char *const *argv, *const *env; /* NULL-terminated */
	uint32_t rows, cols;
};

static inline int make_log(uint64_t bytes)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	if (ftruncate(fd, (off_t)(AGENT_LOG_HEAD + bytes)) < 0)
		return -1;
	return fd;
}

static inline size_t put_string(char *to, const char *text)
{
	size_t n = text ? strlen(text) : 0;

	if (n)
		memcpy(to, text, n);
	to[n] = 0;
	return n + 1;
}

static inline size_t put_strings(char *to, const char *const *list, uint32_t *ret_n)
{
	size_t at = 0;

	*ret_n = 0;
	for (; list && *list; list++, ++*ret_n) {
		size_t n = strlen(*list) + 1;

		memcpy(to + at, *list, n);
		at += n;
	}
	return at;
}

static inline size_t pack_exec(char *to, const struct want *w, uint64_t exec)
{
	struct agent_exec m = { .exec = exec,
				.flags = w->flags,
				.timeout_ms = w->timeout_ms,
				.rows = w->rows,
				.cols = w->cols,
				.log_bytes = w->log_bytes ? w->log_bytes : LOG_BYTES };
	size_t at = sizeof(m);

	at += put_strings(to + at, w->argv, &m.argc);
	at += put_strings(to + at, w->env, &m.envc);
	at += put_string(to + at, w->cwd);
	at += put_string(to + at, w->user);
	memcpy(to, &m, sizeof(m));
	return at;
}

static inline void outcome_close(void)
{
	for (int i = 0; i < 2; i++) {
		if (oc.logs[i] > 0)
			close(oc.logs[i]);
		oc.logs[i] = 0;
	}
}

/* AGENT_STARTED or AGENT_ERROR; `oc` then describes this command. */
static inline uint32_t begin(const struct want *w)
{
	static char body[AGENT_MSG_MAX];
	const int n = w->flags & (AGENT_PTY | AGENT_MERGE) ? 1 : 2;
	struct agent_started s;
	size_t len;

	outcome_close();
	memset(&oc.exit, 0, sizeof(oc.exit));
	oc.exec = cl.next_exec++;
	oc.log_bytes = w->log_bytes ? w->log_bytes : LOG_BYTES;
	for (int i = 0; i < n; i++)
		oc.logs[i] = make_log(oc.log_bytes);
	len = pack_exec(body, w, oc.exec);
	if (!call_with(AGENT_EXEC, body, len, oc.logs, (size_t)n, &reply))
		return 0;
	if (reply.h.type == AGENT_STARTED) {
		memcpy(&s, reply.body, sizeof(s));
		oc.pid = s.pid;
		oc.used_spare_shell = s.used_spare_shell;
	}
	return reply.h.type;
}

static inline size_t read_log(int log, uint64_t start, uint64_t end, char *to, size_t size)
{
	size_t n = 0;

	for (uint64_t o = start; o < end && n + 1 < size; o++, n++) {
		if (pread(log, to + n, 1, (off_t)(AGENT_LOG_HEAD + o % oc.log_bytes)) != 1)
			break;
	}
	to[n] = 0;
	return n;
}

static inline bool next_event(struct msg *m, int timeout_ms)
{
	if (cl.nkept) {
		*m = cl.kept[0];
		cl.nkept--;
		memmove(cl.kept, cl.kept + 1, (size_t)cl.nkept * sizeof(cl.kept[0]));
		return true;
	}
	return receive(cl.sock, m, timeout_ms);
}

static inline bool wait_end(int timeout_ms)
{
	struct agent_exit *e = &oc.exit;

	for (;;) {
		if (!next_event(&cl.event, timeout_ms))
			return false;
		if (cl.event.h.type != AGENT_EXIT)
			continue;
		memcpy(e, cl.event.body, sizeof(*e));
		if (e->exec != oc.exec)
			continue;
		snprintf(oc.message, sizeof(oc.message), "%s",
			 cl.event.len > sizeof(*e) ? cl.event.body + sizeof(*e) : "");
		break;
	}
	if (oc.logs[0] > 0)
		oc.out_len = read_log(oc.logs[0], e->at.out_start, e->at.out_end, oc.out,
				      sizeof(oc.out));
	oc.err_len = 0;
	if (oc.logs[1] > 0)
		oc.err_len = read_log(oc.logs[1], e->at.err_start, e->at.err_end, oc.err,
				      sizeof(oc.err));
	return true;
}

static inline bool run_want(const struct want *w)
{
	return begin(w) == AGENT_STARTED && wait_end(WAIT_MS);
}

static inline bool run_bash(const char *text)
{
	const char *argv[] = { text, NULL };

	return run_want(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED, .argv = argv });
}

static inline bool run_argv(const char *const *argv)
{
	return run_want(&(struct want){ .flags = AGENT_ATTACHED, .argv = argv });
}

static inline uint32_t call_ref(uint32_t type, uint64_t exec)
{
	struct agent_ref r = { exec };

	return call(type, &r, sizeof(r));
}

static inline uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static inline void pause_ms(int ms)
{
	poll(NULL, 0, ms);
}

/* ---- files ----------------------------------------------------------------------------------- */

static inline uint32_t file_op(uint32_t type, uint32_t flags, uint32_t mode, const char *a,
			       const char *b)
{
	char body[3 * AGENT_PATH_MAX];
	struct agent_file m = { .flags = flags, .mode = mode };
	size_t at = sizeof(m);

	memcpy(body, &m, sizeof(m));
	body[at++] = 0; /* the default user */
	memcpy(body + at, a, strlen(a) + 1);
	at += strlen(a) + 1;
	if (b) {
		memcpy(body + at, b, strlen(b) + 1);
		at += strlen(b) + 1;
	}
	return call(type, body, at);
}

/* `oc` then describes this job. */
static inline uint32_t begin_job(uint32_t op, uint32_t flags, uint32_t depth, const char *path,
				 int fd)
{
	char body[2 * AGENT_PATH_MAX];
	struct agent_job m = { .exec = cl.next_exec, .op = op, .flags = flags, .depth = depth };
	size_t at = sizeof(m);

	outcome_close();
	oc.exec = cl.next_exec++;
	memcpy(body, &m, sizeof(m));
	body[at++] = 0;
	memcpy(body + at, path, strlen(path) + 1);
	at += strlen(path) + 1;
	return call_with(AGENT_JOB, body, at, &fd, fd >= 0 ? 1 : 0, &reply) ? reply.h.type : 0;
}

/* A path in the test's directory; only a few are valid at a time. */
static inline const char *in_scratch(const char *name)
{
	static char paths[8][512];
	static int n;
	char *p = paths[n++ % 8];

	snprintf(p, sizeof(paths[0]), "%s/%s", scratch, name);
	return p;
}

static inline uint32_t send_signal(int signo, uint32_t scope)
{
	struct agent_signal s = { oc.exec, signo, scope };

	return call(AGENT_SIGNAL, &s, sizeof(s));
}
#endif
