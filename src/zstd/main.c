/* SPDX-License-Identifier: Apache-2.0 */
/* lodge-zstd [-d [RATIO]]: packs or unpacks standard input to standard output. With a RATIO, output
 * beyond the first 256 MiB is at most so many times the input. Archives come from untrusted
 * sources, so a bug in the library must not help an attacker: before reading the first byte, this
 * process allocates all its memory and limits itself to reading, writing and exiting.
 *
 * Exit status 1: invalid input. 2: no space for the output. 3: any other error. 4: more output than
 * RATIO allows. The error message is on standard error. */
#define ZSTD_STATIC_LINKING_ONLY /* for contexts in memory of this program */
#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { LEVEL = 3, WINDOW_LOG_MAX = 27, BUF = 1 << 17, BAD_INPUT = 1, NO_SPACE, FAILED, TOO_LARGE };
#define MEMORY_MAX (1ull << 30)
#define RATIO_FROM (256ull << 20) /* output that the ratio does not bound: it is small anyway */

static char in_buf[BUF], out_buf[BUF];

/* The seccomp filter allows exit, not exit_group. */
_Noreturn static void end(int status)
{
	for (;;)
		syscall(SYS_exit, status);
}

_Noreturn static void fail(int status, const char *what, const char *why)
{
	char text[256];
	int n = snprintf(text, sizeof(text), "%s%s%s\n", what, why ? ": " : "", why ? why : "");
	ssize_t ignored = write(STDERR_FILENO, text, (size_t)n);

	(void)ignored;
	end(status);
}

/* ---- confinement ----------------------------------------------------------------------------- */

static void *allocate_memory(size_t size)
{
	/* The largest window is rarely used, and untouched memory costs nothing. */
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		fail(FAILED, "memory", strerrordesc_np(errno));
	return p;
}

static void set_limit(int what, rlim_t max)
{
	struct rlimit l = { max, max };

	if (setrlimit(what, &l) < 0)
		fail(FAILED, "setrlimit", strerrordesc_np(errno));
}

static void confine_process(void)
{
	signal(SIGPIPE, SIG_IGN); /* a closed pipe is reported like a full disk */
	set_limit(RLIMIT_NOFILE, 0);
	set_limit(RLIMIT_CORE, 0);
	set_limit(RLIMIT_AS, MEMORY_MAX);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) < 0)
		fail(FAILED, "seccomp", strerrordesc_np(errno));
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static size_t read_input(void)
{
	ssize_t n = read(STDIN_FILENO, in_buf, sizeof(in_buf));

	if (n < 0)
		fail(FAILED, "reading", strerrordesc_np(errno));
	return (size_t)n;
}

static void write_output(size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = write(STDOUT_FILENO, out_buf + at, len - at);

		if (n < 0)
			fail(errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? NO_SPACE
										  : FAILED,
			     "writing", strerrordesc_np(errno));
		at += (size_t)n;
	}
}

static ZSTD_CCtx *make_packer(void)
{
	size_t size = ZSTD_estimateCStreamSize(LEVEL);
	ZSTD_CCtx *c = ZSTD_initStaticCStream(allocate_memory(size), size);

	if (!c || ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1)))
		fail(FAILED, "cannot set up packing", NULL);
	return c;
}

static void pack(ZSTD_CCtx *c)
{
	for (bool more = true; more;) {
		ZSTD_inBuffer in = { in_buf, read_input(), 0 };
		size_t left;

		more = in.size > 0;
		do {
			ZSTD_outBuffer out = { out_buf, sizeof(out_buf), 0 };

			left = ZSTD_compressStream2(c, &out, &in,
						    more ? ZSTD_e_continue : ZSTD_e_end);
			if (ZSTD_isError(left))
				fail(FAILED, "packing", ZSTD_getErrorName(left));
			write_output(out.pos);
		} while (more ? in.pos < in.size : left > 0);
	}
}

static ZSTD_DCtx *make_unpacker(void)
{
	size_t size = ZSTD_estimateDStreamSize((size_t)1 << WINDOW_LOG_MAX);
	ZSTD_DCtx *d = ZSTD_initStaticDStream(allocate_memory(size), size);

	if (!d || ZSTD_isError(ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
		fail(FAILED, "cannot set up unpacking", NULL);
	return d;
}

_Noreturn static void refuse(size_t code, bool first)
{
	if (ZSTD_getErrorCode(code) == ZSTD_error_prefix_unknown && first)
		fail(BAD_INPUT, "not a zstd archive", NULL);
	if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge)
		fail(BAD_INPUT, "the archive needs a window of more than 128 MB", NULL);
	fail(BAD_INPUT, "the archive is damaged", ZSTD_getErrorName(code));
}

/* ratio 0: unlimited */
static void check_ratio(uint64_t in, uint64_t out, unsigned ratio)
{
	char text[128];

	if (!ratio || out <= RATIO_FROM || (out - RATIO_FROM) / ratio <= in)
		return;
	snprintf(text, sizeof(text),
		 "the archive unpacks to more than %u times its size (setting: import_ratio)",
		 ratio);
	fail(TOO_LARGE, text, NULL);
}

/* Unpacks any number of consecutive frames. */
static void unpack(ZSTD_DCtx *d, unsigned ratio)
{
	size_t want = 1, n; /* 0: a frame has just ended */
	uint64_t in_bytes = 0, out_bytes = 0; /* in_bytes: before this buffer */
	bool first = true;

	while ((n = read_input()) > 0) {
		ZSTD_inBuffer in = { in_buf, n, 0 };
		ZSTD_outBuffer out;

		/* After the last input byte, repeat while the output buffer is filled completely.
		 */
		do {
			out = (ZSTD_outBuffer){ out_buf, sizeof(out_buf), 0 };
			want = ZSTD_decompressStream(d, &out, &in);
			if (ZSTD_isError(want))
				refuse(want, first);
			out_bytes += out.pos;
			check_ratio(in_bytes + in.pos, out_bytes, ratio);
			write_output(out.pos);
			first = first && want != 0;
		} while (in.pos < in.size || (want != 0 && out.pos == out.size));
		in_bytes += n;
	}
	if (want != 0)
		fail(BAD_INPUT, "the archive ends too early", NULL);
}

int main(int argc, char **argv)
{
	bool back = argc > 1 && argc <= 3 && strcmp(argv[1], "-d") == 0;
	unsigned ratio = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	ZSTD_DCtx *d = back ? make_unpacker() : NULL;
	ZSTD_CCtx *c = back ? NULL : make_packer();

	if (argc > 1 && !back)
		fail(FAILED, "usage: lodge-zstd [-d [RATIO]] <FILE >FILE", NULL);
	confine_process();
	if (back)
		unpack(d, ratio);
	else
		pack(c);
	end(0);
}
