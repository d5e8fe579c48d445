/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/guest_exec_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/test_hook.h"
#include "sandbox/agent_client.h"
#include "sandbox/guest_exec_internal.h"

enum { LOG_DEFAULT = 1 << 20, CHUNK = 32 * 1024 };

/* The size is sealed, so lodge-init can neither make reads fail nor grow the file. Its pages are
 * charged to lodge-init, which writes them: to the group `init` of the sandbox (cgroup v2), which
 * has a limit of its own, or to the group of all sandboxes (v1). */
int guest_exec_log_new(uint64_t log_bytes, struct err *err)
{
	auto_close int fd = memfd_create("lodge-log", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return err_sys(err, errno, "create the output log");
	if (ftruncate(fd, (off_t)(AGENT_LOG_HEAD + log_bytes)) < 0)
		return err_sys(err, errno, "create the output log");
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return err_sys(err, errno, "seal the output log");
	return steal_fd(&fd);
}

uint64_t guest_exec_log_size(uint64_t wanted)
{
	if (!wanted)
		return LOG_DEFAULT;
	if (wanted > AGENT_LOG_MAX)
		return AGENT_LOG_MAX;
	return (wanted + AGENT_PAGE - 1) / AGENT_PAGE * AGENT_PAGE;
}

uint64_t guest_exec_log_total(const struct guest_exec *x)
{
	uint64_t bytes = 0;

	for (int i = 0; i < GUEST_EXEC_STREAMS; i++)
		bytes += x->streams[i].fd >= 0 ? x->log_bytes : 0;
	return bytes;
}

uint64_t guest_exec_log_used(const struct guest_exec *x)
{
	uint64_t bytes = 0;
	struct stat st;

	for (int i = 0; i < GUEST_EXEC_STREAMS; i++)
		if (x->streams[i].fd >= 0 && fstat(x->streams[i].fd, &st) == 0)
			bytes += (uint64_t)st.st_blocks * 512;
	return bytes;
}

/* ---- reading --------------------------------------------------------------------------------- */

static ssize_t read_ring(const struct guest_exec *x, int fd, uint64_t offset, char *buf,
			 size_t size)
{
	size_t got = 0;

	while (got < size) {
		uint64_t at = (offset + got) % x->log_bytes;
		size_t want = size - got;
		ssize_t n;

		if (want > x->log_bytes - at)
			want = (size_t)(x->log_bytes - at);
		n = pread(fd, buf + got, want, (off_t)(AGENT_LOG_HEAD + at));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

/* The start of the retained output. lodge-init updates the head of the log before it overwrites
 * output, so this detects what was overwritten during a read. */
static uint64_t oldest_offset(const struct stream *s)
{
	struct agent_log head;

	if (pread(s->fd, &head, sizeof(head), 0) != sizeof(head) || head.magic != AGENT_LOG_MAGIC ||
	    head.start <= s->start)
		return s->start;
	return head.start < s->end ? head.start : s->end;
}

ssize_t guest_exec_read(struct guest_exec *x, enum guest_exec_stream which, uint64_t *offset,
			void *buf, size_t size)
{
	struct stream *s = &x->streams[which];
	uint64_t start = s->start;
	ssize_t n;

	for (;;) {
		if (s->fd < 0)
			return 0;
		if (*offset < start)
			*offset = start;
		if (*offset >= s->end || !size)
			return 0;
		if (size > s->end - *offset)
			size = (size_t)(s->end - *offset);
		n = read_ring(x, s->fd, *offset, buf, size);
		if (n < 0)
			return n;
		start = oldest_offset(s);
		if (!x->ended) /* x must not change after the end: see guest_exec_save() */
			s->start = start;
		if (start <= *offset)
			break;
	}
	*offset += (uint64_t)n;
	return n;
}

uint64_t guest_exec_start_offset(const struct guest_exec *x, enum guest_exec_stream s)
{
	return x->streams[s].start;
}

uint64_t guest_exec_end(const struct guest_exec *x, enum guest_exec_stream s)
{
	return x->streams[s].end;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static int write_at(int fd, const char *bytes, size_t len, uint64_t at)
{
	while (len) {
		ssize_t n = pwrite(fd, bytes, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

void guest_exec_put_line(struct guest_exec *x, const char *line)
{
	struct stream *s = &x->streams[GUEST_EXEC_ERR];
	char text[AGENT_PAGE]; /* every log has as much */
	int n = snprintf(text, sizeof(text), "%.*s\n", (int)sizeof(text) - 2, line);

	if (s->fd < 0)
		s = &x->streams[GUEST_EXEC_OUT];
	if (s->fd >= 0 && s->end == 0 && write_at(s->fd, text, (size_t)n, AGENT_LOG_HEAD) == 0)
		s->end = (uint64_t)n;
}

/* Returns the stream offset of the file's first byte, -errno in *ret_r. If a surviving child
 * overwrites output that is not copied yet, the copy restarts after it. */
static uint64_t copy_stream(const struct guest_exec *x, const struct stream *s, int fd, int *ret_r)
{
	uint64_t from = s->start, at = from, start;
	char buf[CHUNK];

	*ret_r = 0;
	while (at < s->end && *ret_r == 0) {
		size_t want = s->end - at < sizeof(buf) ? (size_t)(s->end - at) : sizeof(buf);
		ssize_t n = read_ring(x, s->fd, at, buf, want);

		start = oldest_offset(s);
		if (n < 0) {
			*ret_r = (int)n;
		} else if (start > at) {
			from = at = start;
		} else {
			*ret_r = write_at(fd, buf, (size_t)n, at - from);
			at += (uint64_t)n;
		}
	}
	return from;
}

/* lodge-init reports the length of an adopted log. Require allocated pages for it, or a false
 * length would fill the disk with zeros. */
static bool has_claimed_pages(const struct stream *s)
{
	struct stat st;

	return fstat(s->fd, &st) == 0 && s->end - s->start <= (uint64_t)st.st_blocks * 512;
}

int guest_exec_save(const struct guest_exec *x, enum guest_exec_stream which, int fd,
		    struct err *err)
{
	const struct stream *s = &x->streams[which];
	uint64_t from = s->end;
	struct stat st;
	int r = 0;

	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "save the output");
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "output can only be saved to a regular file");
	if (!x->ended)
		return err_set(err, ERR_CONFLICT, "command %llu is still running",
			       (unsigned long long)x->id);
	if (s->fd >= 0 && !has_claimed_pages(s))
		return agent_protocol_error(err, "output length exceeds the log");
	if (s->fd >= 0)
		from = copy_stream(x, s, fd, &r);
	hook_crash("exec:save");
	if (r == 0 && ftruncate(fd, (off_t)(s->end - from)) < 0)
		r = -errno;
	return r < 0 ? err_sys(err, -r, "save the output") : 0;
}
