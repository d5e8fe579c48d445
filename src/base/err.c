/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

static enum err_code code_of(int errnum)
{
	switch (errnum) {
	case EINVAL:
	case ENAMETOOLONG:
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case EXDEV:
	case ENXIO:
	case ENODEV:
		return ERR_INVALID;
	case ENOENT:
	case ESRCH:
		return ERR_NOT_FOUND;
	case EEXIST:
	case EBUSY:
	case ENOTEMPTY:
	case ETXTBSY:
		return ERR_CONFLICT;
	case EPERM:
	case EACCES:
	case EROFS:
		return ERR_DENIED;
	case ENOMEM:
	case ENOSPC:
	case EDQUOT:
	case EMFILE:
	case ENFILE:
	case EAGAIN:
	case EFBIG:
	case EMLINK:
		return ERR_LIMIT;
	case ETIMEDOUT:
		return ERR_TIMEOUT;
	default:
		return ERR_INTERNAL;
	}
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
	int n;

	e->code = code_of(errnum);
	e->sys = errnum;
	va_start(ap, fmt);
	n = vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(e->msg))
		snprintf(e->msg + n, sizeof(e->msg) - (size_t)n, ": %s", describe_errno(errnum));
	return -1;
}

int err_ctx(struct err *e, const char *fmt, ...)
{
	char was[sizeof(e->msg)];
	va_list ap;
	int n;

	memcpy(was, e->msg, sizeof(was));
	va_start(ap, fmt);
	n = vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(e->msg))
		snprintf(e->msg + n, sizeof(e->msg) - (size_t)n, ": %s", was);
	return -1;
}
