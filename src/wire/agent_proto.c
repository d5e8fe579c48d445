/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/agent_proto.h"

#include <string.h>

#include "base/array.h"

/* What follows the fixed struct of a message. */
enum tail {
	TAIL_NONE,
	TAIL_BYTES, /* anything; its length is checked by a rule of its own */
	TAIL_STRINGS, /* `strings` NUL-terminated ones, or as many as the struct says */
	TAIL_SENTENCE, /* at most one NUL-terminated string */
};

struct columns {
	uint32_t type;
	uint32_t fixed;
	uint8_t tail, strings, min_fds, max_fds;
};

static const struct columns to_init[] = {
	{ AGENT_BIND, sizeof(struct agent_bind), TAIL_NONE, 0, 0, 0 },
	{ AGENT_HELLO, 0, TAIL_NONE, 0, 0, 0 },
	{ AGENT_EXEC, sizeof(struct agent_exec), TAIL_STRINGS, 0, 1, 2 },
	{ AGENT_SPARE_SHELL, sizeof(struct agent_exec), TAIL_STRINGS, 0, 0, 0 },
	{ AGENT_STDIN, sizeof(struct agent_stdin), TAIL_BYTES, 0, 0, 0 },
	{ AGENT_SIGNAL, sizeof(struct agent_signal), TAIL_NONE, 0, 0, 0 },
	{ AGENT_RESIZE, sizeof(struct agent_resize), TAIL_NONE, 0, 0, 0 },
	{ AGENT_ATTACH, sizeof(struct agent_offsets), TAIL_NONE, 0, 0, 0 },
	{ AGENT_DETACH, sizeof(struct agent_ref), TAIL_NONE, 0, 0, 0 },
	{ AGENT_CONSUMED, sizeof(struct agent_offsets), TAIL_NONE, 0, 0, 0 },
	{ AGENT_LIST, 0, TAIL_NONE, 0, 0, 0 },
	{ AGENT_STATUS, sizeof(struct agent_ref), TAIL_NONE, 0, 0, 0 },
	{ AGENT_FORGET, sizeof(struct agent_ref), TAIL_NONE, 0, 0, 0 },
	{ AGENT_OPEN, sizeof(struct agent_file), TAIL_STRINGS, 2, 0, 0 },
	{ AGENT_TEMP, sizeof(struct agent_file), TAIL_STRINGS, 2, 0, 0 },
	{ AGENT_COMMIT, sizeof(struct agent_token), TAIL_NONE, 0, 0, 0 },
	{ AGENT_ABORT, sizeof(struct agent_token), TAIL_NONE, 0, 0, 0 },
	{ AGENT_STAT, sizeof(struct agent_file), TAIL_STRINGS, 2, 0, 0 },
	{ AGENT_MKDIR, sizeof(struct agent_file), TAIL_STRINGS, 2, 0, 0 },
	{ AGENT_RENAME, sizeof(struct agent_file), TAIL_STRINGS, 3, 0, 0 },
	{ AGENT_REMOVE, sizeof(struct agent_file), TAIL_STRINGS, 2, 0, 0 },
	{ AGENT_SYMLINK, sizeof(struct agent_file), TAIL_STRINGS, 3, 0, 0 },
	{ AGENT_CHMOD, sizeof(struct agent_file), TAIL_STRINGS, 2, 0, 0 },
	{ AGENT_JOB, sizeof(struct agent_job), TAIL_STRINGS, 2, 0, 1 },
	{ AGENT_LOGS, sizeof(struct agent_ref), TAIL_NONE, 0, 0, 0 },
};

static const struct columns from_init[] = {
	{ AGENT_OK, 0, TAIL_NONE, 0, 0, 0 },
	{ AGENT_ERROR, sizeof(struct agent_error), TAIL_SENTENCE, 0, 0, 0 },
	{ AGENT_STARTED, sizeof(struct agent_started), TAIL_NONE, 0, 0, 0 },
	{ AGENT_PROC, sizeof(struct agent_proc), TAIL_STRINGS, 0, 0, 0 },
	{ AGENT_FD, sizeof(struct agent_token), TAIL_NONE, 0, 1, 1 },
	{ AGENT_STATR, sizeof(struct agent_stat), TAIL_BYTES, 0, 0, 0 },
	{ AGENT_HELLOR, sizeof(struct agent_hello), TAIL_NONE, 0, 0, 0 },
	{ AGENT_OUTPUT, sizeof(struct agent_progress), TAIL_NONE, 0, 0, 0 },
	{ AGENT_EXIT, sizeof(struct agent_exit), TAIL_SENTENCE, 0, 0, 0 },
	{ AGENT_LOGR, sizeof(struct agent_logs), TAIL_SENTENCE, 0, 0, AGENT_REPLY_FDS },
};

static const struct columns *shape_of(uint32_t type, bool into_init)
{
	const struct columns *table = into_init ? to_init : from_init;
	size_t n = into_init ? ARRAY_LEN(to_init) : ARRAY_LEN(from_init);

	for (size_t i = 0; i < n; i++) {
		if (table[i].type == type)
			return &table[i];
	}
	return NULL;
}

/* Copies a fixed struct out: nothing promises that the buffer is aligned for it. */
#define GET(name, body)                                                                            \
	struct name m;                                                                             \
	memcpy(&m, (body), sizeof(m))

static const uint32_t exec_flags = AGENT_BASH | AGENT_PTY | AGENT_STDIN_OPEN | AGENT_MERGE |
				   AGENT_ATTACHED | AGENT_LOGIN | AGENT_LANDLOCK |
				   AGENT_LANDLOCK_REQUIRED | AGENT_OR_SH;

static size_t logs_of(uint32_t flags)
{
	return flags & (AGENT_PTY | AGENT_MERGE) ? 1 : 2;
}

static bool is_log_size(uint64_t bytes)
{
	return bytes && bytes <= AGENT_LOG_MAX && bytes % AGENT_PAGE == 0;
}

static const char *exec_problem(const char *body, size_t nfds, bool spare_shell)
{
	GET(agent_exec, body);

	if (m.flags & ~exec_flags)
		return "unknown flag of a command";
	if (m.argc > AGENT_MSG_MAX || m.envc > AGENT_MSG_MAX)
		return "more strings than a message can hold";
	if ((m.flags & AGENT_LANDLOCK_REQUIRED) && !(m.flags & AGENT_LANDLOCK))
		return "no list of what it may execute";
	if (spare_shell && (m.flags & AGENT_LANDLOCK))
		return "a spare shell cannot have a list of programs";
	if (spare_shell)
		return m.argc ? "a spare shell cannot have a command" : NULL;
	if (!m.exec)
		return "command id 0";
	if (!m.argc)
		return "no command";
	if ((m.flags & AGENT_BASH) && m.argc != 1)
		return "bash text is one string";
	if ((m.flags & AGENT_LOGIN) && !(m.flags & AGENT_BASH))
		return "a login shell without bash text";
	if (nfds != logs_of(m.flags))
		return "wrong number of logs";
	if (!is_log_size(m.log_bytes))
		return "size of the log out of range";
	if (m.rows > UINT16_MAX || m.cols > UINT16_MAX)
		return "size of the terminal out of range";
	return NULL;
}

static const char *job_problem(const char *body, size_t nfds)
{
	GET(agent_job, body);

	if (!m.exec)
		return "command id 0";
	if (m.op < AGENT_JOB_LIST || m.op > AGENT_JOB_WATCH)
		return "unknown job";
	if (m.flags &
	    ~(uint32_t)(AGENT_JOB_RECURSIVE | AGENT_JOB_OCI | AGENT_JOB_OWNERS | AGENT_JOB_ROOTFS))
		return "unknown flag of a job";
	if (!nfds && m.op != AGENT_JOB_REMOVE)
		return "a job without its descriptor";
	return NULL;
}

static const char *file_problem(const char *body)
{
	const uint32_t known = (AGENT_NOREPLACE << 1) - 1;
	GET(agent_file, body);

	if (m.flags & ~known)
		return "unknown flag of a file operation";
	return m.mode & ~07777u ? "mode out of range" : NULL;
}

static const char *signal_problem(const char *body)
{
	GET(agent_signal, body);

	if (m.signo < 0 || m.signo > 64)
		return "no such signal";
	return m.scope > AGENT_TO_TREE ? "unknown scope of a signal" : NULL;
}

static const char *stdin_problem(const char *body, size_t tail)
{
	GET(agent_stdin, body);

	if (m.len != tail || m.len > AGENT_DATA_MAX)
		return "length of the input is wrong";
	return m.eof > 1 ? "bad mark for the end of input" : NULL;
}

static const char *bind_problem(const char *body)
{
	GET(agent_bind, body);

	if (m.version != AGENT_VERSION)
		return "another version of the protocol";
	if (m.flags & ~(uint32_t)(AGENT_BIND_ROOT_CLASS | AGENT_BIND_ONE_ID))
		return "unknown flag of the binding";
	return m.uid > INT32_MAX || m.gid > INT32_MAX ? "user out of range" : NULL;
}

static const char *resize_problem(const char *body)
{
	GET(agent_resize, body);

	return m.rows > UINT16_MAX || m.cols > UINT16_MAX ? "size of the terminal out of range"
							  : NULL;
}

static const char *statr_problem(const char *body, size_t tail)
{
	GET(agent_stat, body);

	return m.target_len != tail || tail > AGENT_PATH_MAX ? "length of the link is wrong" : NULL;
}

static const char *hellor_problem(const char *body)
{
	GET(agent_hello, body);

	return m.last_exec >= AGENT_SIDE_EXEC ? "number of a command out of range" : NULL;
}

static const char *proc_problem(const char *body)
{
	GET(agent_proc, body);

	if (!m.exec || m.exit.exec != m.exec)
		return "command id is wrong";
	if (m.flags & ~exec_flags)
		return "unknown flag of a command";
	if (m.state == AGENT_RUNNING)
		return NULL;
	if (m.state != AGENT_EXITED)
		return "unknown state of a command";
	if (m.exit.code < -1 || m.exit.code > 255 || m.exit.signal < 0 || m.exit.signal > 64 ||
	    (m.exit.code == -1) != (m.exit.signal != 0))
		return "an impossible end of a command";
	return NULL;
}

static bool is_range(uint64_t start, uint64_t end, uint64_t log_bytes)
{
	return start <= end && end <= INT64_MAX && end - start <= log_bytes;
}

static const char *logr_problem(const char *body, size_t nfds)
{
	const char *bad = proc_problem(body);
	const struct agent_progress *at;
	GET(agent_logs, body);

	if (bad)
		return bad;
	if (m.log_bytes && !is_log_size(m.log_bytes))
		return "size of the log out of range";
	if (nfds != (m.log_bytes ? logs_of(m.proc.flags) : 0))
		return "wrong number of logs";
	at = &m.proc.exit.at;
	if (!is_range(at->out_start, at->out_end, m.log_bytes) ||
	    !is_range(at->err_start, at->err_end, nfds == 2 ? m.log_bytes : 0))
		return "more output than fits the log";
	return NULL;
}

static const char *body_problem(const struct columns *s, const char *body, size_t tail, size_t nfds)
{
	switch (s->type) {
	case AGENT_BIND:
		return bind_problem(body);
	case AGENT_EXEC:
	case AGENT_SPARE_SHELL:
		return exec_problem(body, nfds, s->type == AGENT_SPARE_SHELL);
	case AGENT_JOB:
		return job_problem(body, nfds);
	case AGENT_STDIN:
		return stdin_problem(body, tail);
	case AGENT_SIGNAL:
		return signal_problem(body);
	case AGENT_RESIZE:
		return resize_problem(body);
	case AGENT_STATR:
		return statr_problem(body, tail);
	case AGENT_HELLOR:
		return hellor_problem(body);
	case AGENT_PROC:
		return proc_problem(body);
	case AGENT_LOGR:
		return logr_problem(body, nfds);
	default:
		return s->strings ? file_problem(body) : NULL;
	}
}

/* How many strings have to follow; UINT64_MAX: any number. */
static uint64_t strings_wanted(const struct columns *s, const char *body)
{
	if (s->type == AGENT_EXEC || s->type == AGENT_SPARE_SHELL) {
		GET(agent_exec, body);
		return (uint64_t)m.argc + m.envc + (m.flags & AGENT_LANDLOCK ? 3 : 2);
	}
	return s->type == AGENT_PROC ? UINT64_MAX : s->strings;
}

static const char *strings_problem(const struct columns *s, const char *body, size_t tail)
{
	const char *at = body + s->fixed, *end = at + tail;
	uint64_t want = strings_wanted(s, body), n = 0;
	bool paths = s->strings > 0;

	while (at < end) {
		const char *nul = memchr(at, 0, (size_t)(end - at));

		if (!nul)
			return "a string without an end";
		if (paths && nul - at >= AGENT_PATH_MAX)
			return "a path that is too long";
		at = nul + 1;
		n++;
	}
	return want != UINT64_MAX && n != want ? "wrong number of strings" : NULL;
}

const char *agent_msg_problem(const void *bytes, size_t len, size_t nfds, bool into_init)
{
	const char *body = (const char *)bytes + sizeof(struct agent_hdr), *bad;
	const struct columns *s;
	struct agent_hdr h;
	size_t tail;

	if (len < sizeof(h) || len > AGENT_MSG_MAX)
		return "length out of range";
	memcpy(&h, bytes, sizeof(h));
	s = shape_of(h.type, into_init);
	if (!s)
		return "unknown type";
	if (h.len != len - sizeof(h) || h.len < s->fixed)
		return "length does not fit the type";
	if (nfds < s->min_fds || nfds > s->max_fds)
		return "wrong number of descriptors";
	tail = h.len - s->fixed;
	if (tail && s->tail == TAIL_NONE)
		return "bytes after the end";
	bad = body_problem(s, body, tail, nfds);
	if (bad)
		return bad;
	if (s->tail == TAIL_STRINGS)
		return strings_problem(s, body, tail);
	if (s->tail == TAIL_SENTENCE && tail &&
	    memchr(body + s->fixed, 0, tail) != body + h.len - 1)
		return "a sentence without an end";
	return NULL;
}

const char *agent_msg_string(const void *bytes, size_t len, size_t n)
{
	const char *at = bytes, *end = at + len;
	const struct columns *s;
	struct agent_hdr h;

	memcpy(&h, bytes, sizeof(h));
	s = shape_of(h.type, true);
	if (!s)
		s = shape_of(h.type, false);
	if (!s || (s->tail != TAIL_STRINGS && s->tail != TAIL_SENTENCE))
		return NULL;
	at += sizeof(h) + s->fixed;
	while (n-- && at < end)
		at += strlen(at) + 1;
	return at < end ? at : NULL;
}
