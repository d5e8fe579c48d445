/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/output_pump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "init/exec/agent_conn.h"
#include "init/exec/event_loop.h"

enum {
	CHUNK_BYTES = 64 * 1024,
	ROUND_BYTES = 256 * 1024, /* per pipe, so that a busy command does not starve others */
};

static char scratch[CHUNK_BYTES]; /* used only for terminals and discarded output */

static void write_log_head(const struct process *r, const struct output_stream *s)
{
	struct agent_log head = { AGENT_LOG_MAGIC, r->log_bytes, s->start, s->end };

	/* For readers that come after this process is gone. Events carry the same offsets. */
	(void)!pwrite(s->log, &head, sizeof(head), 0);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The rings of commands that run, at their full size: they may fill at any time. */
static uint64_t count_rings(void)
{
	uint64_t bytes = 0;

	for (struct process *r = NULL; (r = process_table_next(r));)
		for (int i = 0; i < 2 && r->state != PROCESS_DONE; i++)
			bytes += r->out[i].log >= 0 ? r->log_bytes : 0;
	return bytes;
}

/* 0: not known. */
static uint64_t share_bytes(void)
{
	return (uint64_t)init_binding.b.output_pages * AGENT_PAGE;
}

/* Of a command whose logs are counted already. */
static int check_share(struct err *err)
{
	char max[SIZE_TEXT];

	if (!share_bytes() || count_rings() <= share_bytes() + AGENT_OUTPUT_SPARE)
		return 0;
	err_set(err, ERR_LIMIT,
		"no memory for the output of another command: all commands have %s (half of the "
		"limit memory_bytes); retry when some have ended",
		units_format(share_bytes(), max));
	err->sys = AGENT_NO_OUTPUT;
	return -1;
}

int output_pump_open(struct process *r, const int *logs, int nlogs, uint64_t log_bytes,
		     struct err *err)
{
	struct stat st;

	r->log_bytes = log_bytes;
	for (int i = 0; i < nlogs; i++)
		r->out[i].log = logs[i];
	if (check_share(err) < 0)
		return -1;
	for (int i = 0; i < nlogs; i++) {
		int mode = fcntl(logs[i], F_GETFL);

		if (fstat(logs[i], &st) < 0 || mode < 0)
			return err_sys(err, errno, "log");
		if (!S_ISREG(st.st_mode) || (mode & O_ACCMODE) == O_RDONLY || (mode & O_APPEND))
			return err_set(err, ERR_INVALID,
				       "log must be a regular file open for writing");
		if ((uint64_t)st.st_size < AGENT_LOG_HEAD + log_bytes)
			return err_set(err, ERR_INVALID, "log is shorter than log_bytes");
		write_log_head(r, &r->out[i]);
	}
	return 0;
}

static void set_polling(struct process *r, int i, bool on)
{
	struct output_stream *s = &r->out[i];

	if (s->pipe < 0 || s->polled == on)
		return;
	/* Remove it from the set: with an empty event mask epoll still reports hang-ups. */
	if (!on)
		event_loop_del(s->pipe);
	else if (event_loop_add(s->pipe, i ? EVENT_ERR : EVENT_OUT, process_table_index(r),
				EPOLLIN | (r->in.tty && r->in.polled ? EPOLLOUT : 0)) < 0)
		return;
	s->polled = on;
}

void output_pump_watch(struct process *r)
{
	set_polling(r, 0, true);
	set_polling(r, 1, true);
}

static void close_stream(struct process *r, int i)
{
	struct output_stream *s = &r->out[i];

	if (s->pipe < 0)
		return;
	set_polling(r, i, false);
	/* A terminal's master is also the command's input. */
	if (r->in.fd != s->pipe)
		close(s->pipe);
	s->pipe = -1;
}

/* After EXIT a reader holds back only the output that EXIT announced. */
static bool get_reader_offset(const struct process *r, int c, int i, uint64_t *ret)
{
	uint64_t final = i ? r->exit.at.err_end : r->exit.at.out_end;

	if (!(r->attached & (1u << c)))
		return false;
	*ret = r->consumed[c][i];
	return !(r->state == PROCESS_DONE && *ret >= final);
}

static bool has_reader(const struct process *r, int i)
{
	uint64_t seen;

	for (int c = 0; c < AGENT_CONNS_MAX; c++)
		if (get_reader_offset(r, c, i, &seen))
			return true;
	return false;
}

/* How much may be written now. Without readers the oldest output is overwritten. */
static uint64_t writable_bytes(const struct process *r, int i)
{
	const struct output_stream *s = &r->out[i];
	uint64_t most = r->log_bytes, seen;

	for (int c = 0; c < AGENT_CONNS_MAX; c++)
		if (get_reader_offset(r, c, i, &seen) && r->log_bytes - (s->end - seen) < most)
			most = r->log_bytes - (s->end - seen);
	return most;
}

/* Bytes moved, 0 at the end of the pipe, or -errno. */
static ssize_t discard_output(struct process *r, struct output_stream *s)
{
	ssize_t n = read(s->pipe, scratch, sizeof(scratch));

	if (n > 0)
		r->exit.hits |= AGENT_HIT_OUTPUT;
	return n < 0 ? -errno : n;
}

static ssize_t fail_log(struct process *r, struct output_stream *s)
{
	s->log_failed = true;
	r->exit.hits |= AGENT_HIT_OUTPUT;
	return discard_output(r, s);
}

static ssize_t move_from_tty(struct process *r, struct output_stream *s, size_t want, off_t at)
{
	ssize_t n = read(s->pipe, scratch, want < sizeof(scratch) ? want : sizeof(scratch));

	if (n <= 0)
		return n < 0 ? -errno : 0;
	return pwrite(s->log, scratch, (size_t)n, at) == n ? n : fail_log(r, s);
}

static ssize_t move_from_pipe(struct process *r, struct output_stream *s, size_t want, off_t at)
{
	ssize_t n = splice(s->pipe, NULL, s->log, &at, want, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

	if (n >= 0)
		return n;
	if (errno == EAGAIN || errno == EINTR)
		return -EAGAIN;
	return fail_log(r, s);
}

/* Bytes, 0 at end of file, or -errno. FIONREAD does not count what the terminal driver still
 * buffers: poll() delivers it, and nothing follows a hang-up. */
static int readable_bytes(const struct output_stream *s)
{
	struct pollfd p = { .fd = s->pipe, .events = POLLIN };
	int there = 0;

	for (int tries = 0; tries < 3; tries++) {
		if (ioctl(s->pipe, FIONREAD, &there) < 0)
			return -errno;
		if (there > 0)
			return there;
		if (poll(&p, 1, 0) <= 0)
			return -EAGAIN;
	}
	return p.revents & POLLHUP ? 0 : -EAGAIN;
}

/* Drops the oldest output before it is overwritten, so that the head never announces it, and only
 * as much as new output replaces. 1, or the result of move_chunk(). */
static int drop_oldest(struct process *r, int i, uint64_t *want)
{
	struct output_stream *s = &r->out[i];
	int there = readable_bytes(s);

	if (there <= 0)
		return there;
	if (*want > (uint64_t)there)
		*want = (uint64_t)there;
	if (s->end + *want <= s->start + r->log_bytes)
		return 1;
	s->start = s->end + *want - r->log_bytes;
	if (!has_reader(r, i))
		r->exit.hits |= AGENT_HIT_OUTPUT;
	write_log_head(r, s);
	return 1;
}

/* One chunk that does not wrap. Bytes moved or discarded, 0 at end of file, or -errno. */
static ssize_t move_chunk(struct process *r, int i, uint64_t allowed)
{
	struct output_stream *s = &r->out[i];
	uint64_t at = s->end % r->log_bytes, want = r->log_bytes - at;
	bool tty = (r->flags & AGENT_PTY) != 0;
	ssize_t n;

	if (s->log_failed)
		return discard_output(r, s);
	if (want > CHUNK_BYTES)
		want = CHUNK_BYTES;
	if (want > allowed)
		want = allowed;
	if (s->end + want - s->start > r->log_bytes) {
		n = drop_oldest(r, i, &want);
		if (n <= 0)
			return n;
	}
	n = tty ? move_from_tty(r, s, want, (off_t)(AGENT_LOG_HEAD + at))
		: move_from_pipe(r, s, want, (off_t)(AGENT_LOG_HEAD + at));
	if (n > 0 && !s->log_failed) {
		s->end += (uint64_t)n;
		r->unreported = 0xffff;
	}
	return n;
}

/* A terminal reports EIO when its session has no processes left. */
static bool is_eof(ssize_t n)
{
	return n == 0 || n == -EIO;
}

static void pump_stream(struct process *r, int i, uint64_t limit)
{
	struct output_stream *s = &r->out[i];
	uint64_t moved = 0, before = s->end, allowed;
	ssize_t n = 1;
	bool full = false;

	while (s->pipe >= 0 && moved < limit) {
		allowed = writable_bytes(r, i);
		if (!allowed && !s->log_failed) {
			full = true;
			break;
		}
		n = move_chunk(r, i, allowed);
		if (n <= 0)
			break;
		moved += (uint64_t)n;
	}
	if (s->end != before) {
		write_log_head(r, s);
		if (r->state != PROCESS_DONE)
			agent_conn_schedule_flush(r->attached & ~(uint32_t)r->notified);
	}
	if (s->pipe >= 0 && is_eof(n))
		close_stream(r, i);
	else
		set_polling(r, i, !full);
}

void output_pump_ready(struct process *r, int i)
{
	pump_stream(r, i, ROUND_BYTES);
}

/* Bounded, so that a guest that writes faster than this reads cannot delay the end: a pipe holds 64
 * kB, so the command's own output is in the first megabyte. */
void output_pump_drain(struct process *r)
{
	pump_stream(r, 0, 1 << 20);
	pump_stream(r, 1, 1 << 20);
}

void output_pump_readers_changed(struct process *r)
{
	for (int i = 0; i < 2; i++)
		if (!r->out[i].polled)
			pump_stream(r, i, ROUND_BYTES);
}

void output_pump_mark_end(struct process *r)
{
	for (int i = 0; i < 2; i++) {
		const int there = r->out[i].pipe < 0 ? 0 : readable_bytes(&r->out[i]);

		r->out[i].final_end = r->out[i].end + (uint64_t)(there > 0 ? there : 0);
	}
}

bool output_pump_is_drained(const struct process *r)
{
	for (int i = 0; i < 2; i++) {
		const struct output_stream *s = &r->out[i];

		if (s->pipe >= 0 && !s->log_failed && s->end < s->final_end)
			return false;
	}
	return true;
}

bool output_pump_at_end(const struct process *r)
{
	return r->out[0].pipe < 0 && r->out[1].pipe < 0;
}

void output_pump_close(struct process *r)
{
	for (int i = 0; i < 2; i++) {
		close_stream(r, i);
		if (r->out[i].log >= 0)
			close(r->out[i].log);
		r->out[i].log = -1;
	}
}

/* ---- logs of ended commands ------------------------------------------------------------- */

/* Not while a process can still write to them, or EXIT is still to be sent. */
static bool keeps_logs(const struct process *r)
{
	return r->state == PROCESS_DONE && output_pump_at_end(r) && !r->exit_due &&
	       (r->out[0].log >= 0 || r->out[1].log >= 0);
}

static void count_kept(const struct process *r, uint64_t *fds, uint64_t *bytes)
{
	for (int i = 0; i < 2; i++) {
		const struct output_stream *s = &r->out[i];

		if (s->log < 0)
			continue;
		++*fds;
		*bytes += AGENT_LOG_HEAD + (s->end < r->log_bytes ? s->end : r->log_bytes);
	}
}

static void drop_logs(struct process *r)
{
	for (int i = 0; i < 2; i++) {
		if (r->out[i].end > r->out[i].start)
			r->exit.hits |= AGENT_HIT_OUTPUT;
		r->out[i].start = r->out[i].end;
	}
	output_pump_close(r);
}

static struct process *oldest_with_logs(void)
{
	struct process *best = NULL;

	for (struct process *r = NULL; (r = process_table_next(r));)
		if (keeps_logs(r) && (!best || r->ended_us < best->ended_us))
			best = r;
	return best;
}

/* Called only when a command starts, so nothing is dropped while no engine is connected. A quarter
 * of the descriptors leaves enough for running commands. */
void output_pump_trim(void)
{
	uint64_t fds = 0, bytes = 0, share = share_bytes();
	uint64_t max = share && share < INIT_KEPT_BYTES ? share : INIT_KEPT_BYTES;
	struct rlimit l;

	for (struct process *r = NULL; (r = process_table_next(r));)
		if (keeps_logs(r))
			count_kept(r, &fds, &bytes);
	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return;
	while (fds > l.rlim_cur / 4 || bytes > max) {
		uint64_t less_fds = 0, less_bytes = 0;
		struct process *r = oldest_with_logs();

		if (!r)
			return;
		count_kept(r, &less_fds, &less_bytes);
		drop_logs(r);
		fds -= less_fds;
		bytes -= less_bytes;
	}
}

void output_pump_progress(const struct process *r, struct agent_progress *ret)
{
	*ret = (struct agent_progress){
		.exec = r->id,
		.out_start = r->out[0].start,
		.out_end = r->out[0].end,
		.err_start = r->out[1].start,
		.err_end = r->out[1].end,
	};
}
