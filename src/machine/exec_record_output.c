/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/exec_record_output.h"

#include <errno.h>
#include <unistd.h>

#include "sandbox/guest_exec_log.h"

enum { READ_MAX = 256 * 1024 }; /* copied at once with machine.mutex */

void exec_record_output_range(const struct exec_record *c, enum guest_exec_stream s,
			      uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t size = c->output[s].size, total;

	if (c->exec) {
		*ret_start = guest_exec_start_offset(c->exec, s);
		*ret_end = guest_exec_end(c->exec, s);
		return;
	}
	total = (uint64_t)(s == GUEST_EXEC_OUT ? c->rec.stdout_bytes : c->rec.stderr_bytes);
	*ret_end = total > size ? total : size;
	*ret_start = *ret_end - size;
}

static int read_file(const struct exec_output_file *o, uint64_t at, void *buf, size_t size,
		     size_t *ret, struct err *err)
{
	ssize_t n;

	if (size > o->size - at)
		size = (size_t)(o->size - at);
	do
		n = pread(o->fd, buf, size, (off_t)at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, errno, "kept output");
	*ret = (size_t)n;
	return 0;
}

int exec_record_output_read(struct exec_record *c, enum guest_exec_stream s, uint64_t *offset,
			    void *buf, size_t size, size_t *ret, struct err *err)
{
	uint64_t start, end;
	bool in_file;
	ssize_t n = 0;

	exec_record_lock(c);
	exec_record_output_range(c, s, &start, &end);
	in_file = !c->exec;
	if (!in_file)
		n = guest_exec_read(c->exec, s, offset, buf, size < READ_MAX ? size : READ_MAX);
	exec_record_unlock(c);
	*ret = n > 0 ? (size_t)n : 0;
	if (n < 0)
		return err_sys(err, (int)-n, "output");
	if (!in_file)
		return 0;
	if (*offset < start)
		*offset = start;
	if (*offset >= end)
		return 0;
	/* the file never changes, so no lock is needed */
	if (read_file(&c->output[s], *offset - start, buf, size, ret, err) < 0)
		return -1;
	*offset += *ret;
	return 0;
}
