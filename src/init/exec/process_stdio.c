/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/process_stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "init/core/passwd.h"

static int open_null(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : fd;
}

/* Only our end is non-blocking: commands expect blocking pipes. */
static int make_pipe(int *ours, int *theirs, bool we_read)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	*ours = p[we_read ? 0 : 1];
	*theirs = p[we_read ? 1 : 0];
	return fcntl(*ours, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int open_tty(struct process_stdio *io, uint32_t rows, uint32_t cols)
{
	struct winsize w = { .ws_row = (uint16_t)rows, .ws_col = (uint16_t)cols };
	int unlock = 0, master, peer;

	master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (master < 0)
		return -errno;
	io->in = io->out[0] = master;
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -errno;
	/* From the master, not by a name in /dev/pts, which the guest may have replaced. */
	peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (peer < 0)
		return -errno;
	io->child[0] = io->child[1] = io->child[2] = peer;
	if (rows && cols && ioctl(master, TIOCSWINSZ, &w) < 0)
		return -errno;
	return 0;
}

static int open_streams(struct process_stdio *io, uint32_t flags, uint32_t rows, uint32_t cols)
{
	int r;

	if (flags & AGENT_PTY)
		return open_tty(io, rows, cols);
	r = flags & AGENT_STDIN_OPEN ? make_pipe(&io->in, &io->child[0], false)
				     : (io->child[0] = open_null());
	if (r < 0)
		return r;
	r = make_pipe(&io->out[0], &io->child[1], true);
	if (r < 0)
		return r;
	if (flags & AGENT_MERGE) {
		io->child[2] = io->child[1];
		return 0;
	}
	return make_pipe(&io->out[1], &io->child[2], true);
}

static void close_ours(struct process_stdio *io)
{
	if (io->in >= 0 && io->in != io->out[0])
		close(io->in);
	for (int i = 0; i < 2; i++) {
		if (io->out[i] >= 0)
			close(io->out[i]);
	}
}

int process_stdio_open(struct process_stdio *io, const struct cred *cred, uint32_t flags,
		       uint32_t rows, uint32_t cols, struct err *err)
{
	int r;

	*io = (struct process_stdio){ { -1, -1, -1 }, -1, { -1, -1 } };
	r = passwd_impersonate(cred);
	if (r == 0)
		r = open_streams(io, flags, rows, cols);
	passwd_revert();
	if (r >= 0)
		return 0;
	process_stdio_close_child(io);
	close_ours(io);
	return err_sys(err, -r, flags & AGENT_PTY ? "terminal" : "pipes");
}

void process_stdio_close_child(struct process_stdio *io)
{
	for (int i = 0; i < 3; i++) {
		bool again = i > 0 && io->child[i] == io->child[i - 1];

		if (io->child[i] >= 0 && !again)
			close(io->child[i]);
	}
}
