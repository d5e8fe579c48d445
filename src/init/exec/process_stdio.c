/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/process_stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "init/core/passwd.h"

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

static int open_tty(struct process *r, struct spawn *s, const struct agent_exec *m)
{
	struct winsize w = { .ws_row = (uint16_t)m->rows, .ws_col = (uint16_t)m->cols };
	int unlock = 0, master, peer;

	master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (master < 0)
		return -errno;
	r->in.fd = r->out[0].pipe = master;
	r->in.tty = true;
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -errno;
	/* From the master, not by a name in /dev/pts, which the guest may have replaced. */
	peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (peer < 0)
		return -errno;
	s->stdio[0] = s->stdio[1] = s->stdio[2] = peer;
	if (m->rows && m->cols && ioctl(master, TIOCSWINSZ, &w) < 0)
		return -errno;
	return 0;
}

static int open_streams(struct process *r, struct spawn *s, const struct agent_exec *m)
{
	int n = 0;

	if (m->flags & AGENT_PTY)
		return open_tty(r, s, m);
	if (m->flags & AGENT_STDIN_OPEN)
		n = make_pipe(&r->in.fd, &s->stdio[0], false);
	else if ((s->stdio[0] = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY)) < 0)
		n = -errno;
	if (n < 0 || (n = make_pipe(&r->out[0].pipe, &s->stdio[1], true)) < 0)
		return n;
	if (m->flags & AGENT_MERGE)
		return s->stdio[2] = s->stdio[1], 0;
	return make_pipe(&r->out[1].pipe, &s->stdio[2], true);
}

int process_stdio_open(struct process *r, struct spawn *s, const struct agent_exec *m,
		       struct err *err)
{
	int n = passwd_impersonate(s->cred);

	s->stdio[0] = s->stdio[1] = s->stdio[2] = -1;
	if (n == 0)
		n = open_streams(r, s, m);
	passwd_revert();
	if (n >= 0)
		return 0;
	process_stdio_close_child(s);
	return err_sys(err, -n, m->flags & AGENT_PTY ? "terminal" : "pipes");
}

void process_stdio_close_child(struct spawn *s)
{
	for (int i = 0; i < 3; i++) {
		bool again = i > 0 && s->stdio[i] == s->stdio[i - 1];

		if (s->stdio[i] >= 0 && !again)
			close(s->stdio[i]);
	}
}
