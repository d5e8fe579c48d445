/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"

/* glibc's strerror() is not thread-safe. musl's is, and musl has no other. */
static const char *describe_errno(int errnum)
{
#ifdef __GLIBC__
	const char *s = strerrordesc_np(errnum);

	return s ? s : "unknown error";
#else
	return strerror(errnum);
#endif
}

static const struct {
	enum err_code code;
	unsigned char errnums[9]; /* the last is 0 */
} codes[] = {
	{ ERR_INVALID, { EINVAL, ENAMETOOLONG, ENOTDIR, EISDIR, ELOOP, EXDEV, ENXIO, ENODEV } },
	{ ERR_NOT_FOUND, { ENOENT, ESRCH } },
	{ ERR_CONFLICT, { EEXIST, EBUSY, ENOTEMPTY, ETXTBSY } },
	{ ERR_DENIED, { EPERM, EACCES, EROFS } },
	{ ERR_LIMIT, { ENOMEM, ENOSPC, EDQUOT, EMFILE, ENFILE, EAGAIN, EFBIG, EMLINK } },
	{ ERR_TIMEOUT, { ETIMEDOUT } },
};

static enum err_code code_of(int errnum)
{
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		for (const unsigned char *n = codes[i].errnums; *n; n++)
			if (*n == errnum)
				return codes[i].code;
	return ERR_INTERNAL;
}

static void add_reason(struct err *e, int n, const char *why)
{
	if (n >= 0 && (size_t)n < sizeof(e->msg))
		snprintf(e->msg + n, sizeof(e->msg) - (size_t)n, ": %s", why);
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	e->code = code;
	e->sys = 0;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return -1;
}

int err_sys(struct err *e, int errnum, const char *fmt, ...)
{
	va_list ap;

	e->code = code_of(errnum);
	e->sys = errnum;
	va_start(ap, fmt);
	add_reason(e, vsnprintf(e->msg, sizeof(e->msg), fmt, ap), describe_errno(errnum));
	va_end(ap);
	return -1;
}

int err_ctx(struct err *e, const char *fmt, ...)
{
	char was[sizeof(e->msg)];
	va_list ap;

	memcpy(was, e->msg, sizeof(was));
	va_start(ap, fmt);
	add_reason(e, vsnprintf(e->msg, sizeof(e->msg), fmt, ap), was);
	va_end(ap);
	return -1;
}
