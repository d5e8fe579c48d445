/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/agent_proto.h"

#include <string.h>

#include "base/array.h"

/* What follows the fixed struct of a message. */
enum tail {
	TAIL_NONE,
	TAIL_BYTES, /* any bytes; the check of the message knows the length */
	TAIL_STRINGS, /* `strings` NUL-terminated ones, or as many as the fixed part says */
	TAIL_MESSAGE, /* at most one NUL-terminated string */
};

/* One message whose length and descriptors fit its format. */
struct message {
	const char *body; /* the fixed part */
	size_t tail; /* bytes after it */
	size_t nfds;
};

struct format {
	uint32_t type;
	uint32_t fixed;
	uint8_t tail, strings, min_fds, max_fds;
	const char *(*check)(const struct message *msg);
};

/* Copies a fixed struct out, because the buffer may not be aligned for it. */
#define GET(name, body)                                                                            \
	struct name m;                                                                             \
	memcpy(&m, (body), sizeof(m))

static const uint32_t exec_flags = AGENT_BASH | AGENT_PTY | AGENT_STDIN_OPEN | AGENT_MERGE |
				   AGENT_ATTACHED | AGENT_LOGIN | AGENT_LANDLOCK |
				   AGENT_LANDLOCK_REQUIRED | AGENT_OR_SH;

static size_t count_logs(uint32_t flags)
{
	return flags & (AGENT_PTY | AGENT_MERGE) ? 1 : 2;
}

static bool is_log_size(uint64_t bytes, uint64_t max)
{
	return bytes && bytes <= max && bytes % AGENT_PAGE == 0;
}

static const char *check_command(const struct message *msg, bool spare_shell)
{
	GET(agent_exec, msg->body);

	if (m.flags & ~exec_flags)
		return "unknown command flag";
	if (m.argc > AGENT_MSG_MAX || m.envc > AGENT_MSG_MAX)
		return "more strings than fit into a message";
	if ((m.flags & AGENT_LANDLOCK_REQUIRED) && !(m.flags & AGENT_LANDLOCK))
		return "the list of programs is missing";
	if (spare_shell && (m.flags & AGENT_LANDLOCK))
		return "a spare shell cannot have a list of programs";
	if (spare_shell)
		return m.argc ? "a spare shell cannot have a command" : NULL;
	if (!m.exec)
		return "command id 0";
	if (!m.argc)
		return "the command is empty";
	if ((m.flags & AGENT_BASH) && m.argc != 1)
		return "bash text must be one string";
	if ((m.flags & AGENT_LOGIN) && !(m.flags & AGENT_BASH))
		return "a login shell needs bash text";
	if (msg->nfds != count_logs(m.flags))
		return "wrong number of logs";
	if (!is_log_size(m.log_bytes, AGENT_LOG_MAX))
		return "log size out of range";
	if (m.rows > UINT16_MAX || m.cols > UINT16_MAX)
		return "terminal size out of range";
	return NULL;
}

static const char *check_exec(const struct message *msg)
{
	return check_command(msg, false);
}

static const char *check_spare_shell(const struct message *msg)
{
	return check_command(msg, true);
}

static const char *check_job(const struct message *msg)
{
	GET(agent_job, msg->body);

	if (!m.exec)
		return "command id 0";
	if (m.op < AGENT_JOB_LIST || m.op > AGENT_JOB_WATCH)
		return "unknown file job";
	if (m.flags &
	    ~(uint32_t)(AGENT_JOB_RECURSIVE | AGENT_JOB_OCI | AGENT_JOB_OWNERS | AGENT_JOB_ROOTFS))
		return "unknown file job flag";
	if (!msg->nfds && m.op != AGENT_JOB_REMOVE)
		return "file job without a descriptor";
	return NULL;
}

static const char *check_file(const struct message *msg)
{
	const uint32_t known = (AGENT_NOREPLACE << 1) - 1;
	GET(agent_file, msg->body);

	if (m.flags & ~known)
		return "unknown file operation flag";
	return m.mode & ~07777u ? "mode out of range" : NULL;
}

static const char *check_signal(const struct message *msg)
{
	GET(agent_signal, msg->body);

	if (m.signo < 0 || m.signo > 64)
		return "unknown signal";
	return m.scope > AGENT_TO_TREE ? "unknown signal scope" : NULL;
}

static const char *check_stdin(const struct message *msg)
{
	GET(agent_stdin, msg->body);

	if (m.len != msg->tail || m.len > AGENT_DATA_MAX)
		return "wrong input length";
	return m.eof > 1 ? "invalid end-of-input flag" : NULL;
}

static const char *check_bind(const struct message *msg)
{
	GET(agent_bind, msg->body);

	if (m.version != AGENT_VERSION)
		return "unsupported protocol version";
	if (m.flags & ~(uint32_t)(AGENT_BIND_ROOT_CLASS | AGENT_BIND_ONE_ID))
		return "unknown bind flag";
	return m.uid > INT32_MAX || m.gid > INT32_MAX ? "user id out of range" : NULL;
}

static const char *check_resize(const struct message *msg)
{
	GET(agent_resize, msg->body);

	return m.rows > UINT16_MAX || m.cols > UINT16_MAX ? "terminal size out of range" : NULL;
}

static const char *check_statr(const struct message *msg)
{
	GET(agent_stat, msg->body);

	return m.target_len != msg->tail || msg->tail > AGENT_PATH_MAX
		       ? "wrong length of the link target"
		       : NULL;
}

static const char *check_hellor(const struct message *msg)
{
	GET(agent_hello, msg->body);

	return m.last_exec >= AGENT_SIDE_EXEC ? "command id out of range" : NULL;
}

static const char *check_proc(const struct message *msg)
{
	GET(agent_proc, msg->body);

	if (!m.exec || m.exit.exec != m.exec)
		return "wrong command id";
	if (m.flags & ~exec_flags)
		return "unknown command flag";
	if (m.state == AGENT_RUNNING)
		return NULL;
	if (m.state != AGENT_EXITED)
		return "unknown command state";
	if (m.exit.code < -1 || m.exit.code > 255 || m.exit.signal < 0 || m.exit.signal > 64 ||
	    (m.exit.code == -1) != (m.exit.signal != 0))
		return "invalid exit status";
	return NULL;
}

static bool is_range(uint64_t start, uint64_t end, uint64_t log_bytes)
{
	return start <= end && end <= INT64_MAX && end - start <= log_bytes;
}

static const char *check_logr(const struct message *msg)
{
	const char *bad = check_proc(msg);
	const struct agent_progress *at;
	GET(agent_logs, msg->body);

	if (bad)
		return bad;
	if (m.log_bytes && !is_log_size(m.log_bytes, AGENT_LOG_OLD_MAX))
		return "log size out of range";
	if (msg->nfds != (m.log_bytes ? count_logs(m.proc.flags) : 0))
		return "wrong number of logs";
	at = &m.proc.exit.at;
	if (!is_range(at->out_start, at->out_end, m.log_bytes) ||
	    !is_range(at->err_start, at->err_end, msg->nfds == 2 ? m.log_bytes : 0))
		return "output length exceeds the log";
	return NULL;
}

static const char *check_none(const struct message *msg)
{
	(void)msg;
	return NULL;
}

#define FORMAT(name, fn, number, fixed, tail, strings, min_fds, max_fds, check)                    \
	{ AGENT_##name, fixed, TAIL_##tail, strings, min_fds, max_fds, check_##check },

static const struct format requests[] = { AGENT_REQUESTS(FORMAT) };
static const struct format replies[] = { AGENT_REPLIES(FORMAT) };

static const struct format *find_format(uint32_t type, bool to_init)
{
	const struct format *table = to_init ? requests : replies;
	size_t n = to_init ? ARRAY_LEN(requests) : ARRAY_LEN(replies);

	for (size_t i = 0; i < n; i++) {
		if (table[i].type == type)
			return &table[i];
	}
	return NULL;
}

/* UINT64_MAX: any number. */
static uint64_t expected_strings(const struct format *s, const char *body)
{
	if (s->type == AGENT_EXEC || s->type == AGENT_SPARE_SHELL) {
		GET(agent_exec, body);
		return (uint64_t)m.argc + m.envc + (m.flags & AGENT_LANDLOCK ? 3 : 2);
	}
	return s->type == AGENT_PROC ? UINT64_MAX : s->strings;
}

static const char *check_strings(const struct format *s, const char *body, size_t tail)
{
	const char *at = body + s->fixed, *end = at + tail;
	uint64_t expected = expected_strings(s, body), n = 0;
	bool paths = s->strings > 0;

	while (at < end) {
		const char *nul = memchr(at, 0, (size_t)(end - at));

		if (!nul)
			return "unterminated string";
		if (paths && nul - at >= AGENT_PATH_MAX)
			return "path too long";
		at = nul + 1;
		n++;
	}
	return expected != UINT64_MAX && n != expected ? "wrong number of strings" : NULL;
}

const char *agent_msg_problem(const void *bytes, size_t len, size_t nfds, bool to_init)
{
	const char *body = (const char *)bytes + sizeof(struct agent_hdr), *bad;
	const struct format *s;
	struct agent_hdr h;
	size_t tail;

	if (len < sizeof(h) || len > AGENT_MSG_MAX)
		return "message length out of range";
	memcpy(&h, bytes, sizeof(h));
	s = find_format(h.type, to_init);
	if (!s)
		return "unknown message type";
	if (h.len != len - sizeof(h) || h.len < s->fixed)
		return "wrong length for the message type";
	if (nfds < s->min_fds || nfds > s->max_fds)
		return "wrong number of descriptors";
	tail = h.len - s->fixed;
	if (tail && s->tail == TAIL_NONE)
		return "trailing bytes";
	bad = s->check(&(struct message){ body, tail, nfds });
	if (bad)
		return bad;
	if (s->tail == TAIL_STRINGS)
		return check_strings(s, body, tail);
	if (s->tail == TAIL_MESSAGE && tail && memchr(body + s->fixed, 0, tail) != body + h.len - 1)
		return "unterminated error message";
	return NULL;
}

const char *agent_msg_string(const void *bytes, size_t len, size_t n)
{
	const char *at = bytes, *end = at + len;
	const struct format *s;
	struct agent_hdr h;

	memcpy(&h, bytes, sizeof(h));
	s = find_format(h.type, true);
	if (!s)
		s = find_format(h.type, false);
	if (!s || (s->tail != TAIL_STRINGS && s->tail != TAIL_MESSAGE))
		return NULL;
	at += sizeof(h) + s->fixed;
	while (n-- && at < end)
		at += strlen(at) + 1;
	return at < end ? at : NULL;
}
