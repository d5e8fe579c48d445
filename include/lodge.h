/* SPDX-License-Identifier: Apache-2.0 */
/* liblodge: sandboxes from C, without a daemon. See liblodge(3).
 *
 *	struct lodge *l;
 *	struct lodge_sandbox *sb;
 *	struct lodge_result r;
 *	const char *argv[] = { "python3", "-c", "print(6 * 7)", NULL };
 *	struct lodge_command c = { .argv = argv, .timeout_ms = 5000 };
 *
 *	if (lodge_open(NULL, &l) < 0 ||
 *	    lodge_create(l, NULL, &sb) < 0 ||
 *	    lodge_exec(sb, &c, &r) < 0)
 *		errx(1, "%s", lodge_last_error());
 *
 *	fwrite(r.out, 1, r.out_len, stdout);
 *	lodge_result_fini(&r);
 *	lodge_destroy(sb);
 *	lodge_close(l);
 *
 * Every call blocks. Calls return 0, or -1 and then lodge_last_error() and lodge_last_code() of the
 * same thread tell why; results are untouched then. A struct lodge and all its sandboxes may be
 * used by one thread at a time; different ones by different threads at once. All sandboxes of a
 * struct lodge end with it, also when the process dies. The library starts a lodge-keeper by
 * posix_spawn and never forks, prints or exits. Structs may grow: zero them before filling them. */
#ifndef LODGE_H
#define LODGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lodge;
struct lodge_sandbox;

enum lodge_code {
	LODGE_OK,
	LODGE_INVALID,
	LODGE_NOT_FOUND,
	LODGE_CONFLICT,
	LODGE_DENIED,
	LODGE_LIMIT,
	LODGE_TIMEOUT,
	LODGE_UNAVAILABLE,
	LODGE_INTERNAL,
};

/* Of the last call in this thread that failed. */
const char *lodge_last_error(void);
enum lodge_code lodge_last_code(void);
const char *lodge_version(void);

/* home: where templates are kept, an absolute path; NULL: what lodge(1) uses. */
int lodge_open(const char *home, struct lodge **ret);
/* Ends all its sandboxes, which must not be used any more. NULL is allowed. */
void lodge_close(struct lodge *l);

/* Where a field is 0 or NULL the template decides, and then the default. */
struct lodge_spec {
	const char *template_name; /* NULL: "host" */
	uint64_t memory_bytes, disk_bytes;
	uint32_t cpu_milli; /* 1000 is one core */
	uint32_t pids;
	int root; /* not 0: a root inside */
	int on_disk; /* not 0: files on disk instead of in memory */
};

/* spec may be NULL: all defaults. */
int lodge_create(struct lodge *l, const struct lodge_spec *spec, struct lodge_sandbox **ret);
/* Ends it and frees the handle, whatever happens; -1 only tells that ending it went wrong. */
int lodge_destroy(struct lodge_sandbox *sb);
/* Good until lodge_destroy(). */
const char *lodge_id(const struct lodge_sandbox *sb);

struct lodge_command {
	const char *const *argv; /* NULL-terminated; or: */
	const char *text; /* bash text */
	const char *const *env; /* NULL-terminated "NAME=VALUE"; may be NULL */
	const char *cwd, *user; /* NULL: as the template says */
	const void *input; /* standard input; NULL: none */
	size_t input_len;
	uint32_t timeout_ms; /* 0: none; ends everything the command started */
	uint64_t output_bytes; /* kept of each stream, the newest; 0: 1 MiB */
};

enum lodge_hit {
	LODGE_HIT_TIME = 1 << 0,
	LODGE_HIT_MEMORY = 1 << 1,
	LODGE_HIT_PIDS = 1 << 2,
	LODGE_HIT_OUTPUT = 1 << 3,
	LODGE_HIT_DISK = 1 << 4,
	LODGE_HIT_FILE = 1 << 5,
};

struct lodge_result {
	int code; /* exit status, or -1 when killed by a signal */
	int signal; /* 0 when it exited */
	unsigned hits; /* enum lodge_hit: which limits it met */
	char *out, *err; /* NUL-terminated; any bytes */
	size_t out_len, err_len;
	uint64_t out_total, err_total; /* what the command wrote in all */
	uint64_t duration_us, cpu_us, max_rss_bytes;
};

/* A command that fails is a result; -1 only when there is none (it could not be started, ...). */
int lodge_exec(struct lodge_sandbox *sb, const struct lodge_command *cmd, struct lodge_result *ret);
void lodge_result_fini(struct lodge_result *r);

/* Paths are those inside; relative ones start at the user's home. *ret is the caller's: free(). */
int lodge_read_file(struct lodge_sandbox *sb, const char *path, size_t max, void **ret,
		    size_t *ret_len);
/* All or nothing; missing directories are made. mode 0: 0644. */
int lodge_write_file(struct lodge_sandbox *sb, const char *path, const void *data, size_t len,
		     mode_t mode);

#ifdef __cplusplus
}
#endif
#endif
