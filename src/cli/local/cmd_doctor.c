/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/json.h"
#include "cli/core/api_cmd.h"
#include "cli/core/human.h"
#include "cli/local/doctor.h"
#include "sandbox/guest_exec.h"
#include "sandbox/home_dir.h"
#include "sandbox/keeper_client.h"
#include "sandbox/keeper_spawn.h"
#include "sandbox/sandbox.h"
#include "sandbox/guest_exec_sync.h"
#include "sandbox/template/template_json.h"

enum { PROBE_SECONDS = 10 };

struct doctor {
	struct api_cmd a;
	const char *home;
	struct json_out out;
	bool failed; /* something needed is missing */
	struct enforcement enforcement; /* not known if no sandbox could be tried */
};

/* ---- output ---------------------------------------------------------------------------------- */

static void report(struct doctor *d, const char *name, bool found, bool needed, const char *detail,
		   const char *advice)
{
	d->failed |= !found && needed;
	if (!d->a.json) {
		printf("%-8s %s%s%s%s\n",
		       found	? "ok"
		       : needed ? "MISSING"
				: "missing",
		       name, *detail ? ": " : "", detail, found || needed ? "" : " (optional)");
		if (!found && advice)
			printf("%8s -> %s\n", "", advice);
		fflush(stdout);
		return;
	}
	json_out_object(&d->out, NULL);
	json_out_str(&d->out, "name", name);
	json_out_bool(&d->out, "found", found);
	json_out_bool(&d->out, "needed", needed);
	json_out_str(&d->out, "detail", detail);
	json_out_str(&d->out, "advice", found ? NULL : advice);
	json_out_end(&d->out);
}

/* ---- probes ---------------------------------------------------------------------------------- */

struct answer {
	int result;
	char detail[DOCTOR_TEXT];
};

static void probe_in_child(const struct doctor_check *c, int out)
{
	struct answer a = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(PROBE_SECONDS);
	a.result = doctor_probe(c, a.detail);
	_exit(write(out, &a, sizeof(a)) == sizeof(a) ? 0 : 1);
}

/* The execveat probe becomes /bin/true: it writes nothing and exits with 0. */
static void run_check(struct doctor *d, const struct doctor_check *c)
{
	struct answer a = { .result = -1 };
	int p[2], status = 0;
	ssize_t n = -1;
	pid_t pid = -1;

	if (pipe2(p, O_CLOEXEC) == 0) {
		pid = fork();
		if (pid == 0)
			probe_in_child(c, p[1]);
		close(p[1]);
		n = pid < 0 ? -1 : read(p[0], &a, sizeof(a));
		close(p[0]);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		snprintf(a.detail, sizeof(a.detail), "%s", strerrordesc_np(EAGAIN));
	else if (n != sizeof(a) && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		a.result = 0;
	else if (n != sizeof(a))
		snprintf(a.detail, sizeof(a.detail), "%s", strerrordesc_np(EINTR));
	a.detail[DOCTOR_TEXT - 1] = '\0';
	report(d, c->name, a.result == 0, c->need == NEEDED, a.detail, c->advice);
}

static void check_program(struct doctor *d, const char *name)
{
	char path[HOME_DIR_SIZE];
	struct err err;
	bool found = keeper_spawn_find(name, path, sizeof(path), &err) == 0;

	report(d, name, found, true, found ? path : err.msg,
	       "install all of lodge, or run it from its build directory");
}

/* ---- a sandbox ------------------------------------------------------------------------------- */

/* Of the file system below the home, where sandboxes on disk and the service keep their files. */
static void report_disk(struct doctor *d, struct keeper_client *k)
{
	char free[HUMAN_TEXT], reserve[HUMAN_TEXT], text[160];
	struct keeper_disk disk;
	struct err err;

	if (keeper_client_disk(k, 0, &disk, &err) < 0)
		return;
	snprintf(text, sizeof(text), "%s free, new sessions need %s%s",
		 human_bytes(disk.free_bytes, free), human_bytes(disk.reserve_bytes, reserve),
		 disk.failed ? "; the volume cannot be written to" : "");
	report(d, "free disk space", !disk.failed && disk.free_bytes >= disk.reserve_bytes, false,
	       text, "free space on the file system of the data directory");
}

static void report_features(struct doctor *d, struct keeper_client *k)
{
	auto_call(sandbox_free) struct sandbox *sb = NULL;
	struct sandbox_spec spec = sandbox_spec_default();
	unsigned f;
	struct err err;

	/* the keeper probes its disk store when it is first used */
	spec.store = KEEPER_STORE_DISK;
	if (sandbox_new(k, &spec, &sb, &err) == 0)
		sandbox_destroy(sb, &err);
	if (keeper_client_enforcement(k, &d->enforcement, &err) < 0)
		return;
	f = d->enforcement.features;
	report(d, "limits on memory, cpu, processes", f & KEEPER_HAS_CGROUP, false,
	       f & KEEPER_HAS_CGROUP_V2 ? "cgroup version 2"
	       : f & KEEPER_HAS_CGROUP	? "cgroup version 1"
					: "not enforced",
	       "see \"cgroup controllers\" above");
	report(d, "limit on disk space", f & KEEPER_HAS_DISK_LIMIT, false,
	       d->enforcement.disk_problem, "see \"btrfs volume\" above");
	report_disk(d, k);
}

static int try_sandbox(struct doctor *d, char detail[DOCTOR_TEXT], struct err *err)
{
	auto_call(keeper_client_free) struct keeper_client *k = NULL;
	auto_call(sandbox_free) struct sandbox *sb = NULL;
	struct sandbox_spec spec = sandbox_spec_default();
	struct guest_exec_spec x = { .text = "echo lodge", .timeout_ms = PROBE_SECONDS * 1000 };
	struct guest_exec_output o;
	char home[HOME_DIR_SIZE];
	struct keeper_client_opts how = { .home = home, .oneshot = true };
	bool right;

	if (home_dir_find(d->home, home, err) < 0 || keeper_client_spawn(&how, &k, err) < 0)
		return -1;
	report_features(d, k);
	if (sandbox_new(k, &spec, &sb, err) < 0 || guest_exec_run(sb, &x, NULL, 0, &o, err) < 0)
		return -1;
	right = o.result.code == 0 && !strcmp(o.out, "lodge\n");
	guest_exec_output_fini(&o);
	if (!right)
		return err_set(err, ERR_INTERNAL, "its first command failed");
	snprintf(detail, DOCTOR_TEXT, "created in %.1f ms", (double)sandbox_ready_us(sb) / 1000);
	return 0;
}

static void check_sandbox(struct doctor *d)
{
	char detail[DOCTOR_TEXT] = "";
	struct err err;
	int r = try_sandbox(d, detail, &err);

	report(d, "a sandbox", r == 0, true, r < 0 ? err.msg : detail,
	       "fix the checks marked MISSING above, then run lodge doctor again");
}

/* The last sentence. */
static void conclude(const struct doctor *d)
{
	char text[ENFORCEMENT_TEXT];

	if (d->failed)
		puts("sandboxes do not work; fix the checks marked MISSING");
	else if (*enforcement_describe(&d->enforcement, KEEPER_STORE_DISK,
				       KEEPER_DEMAND_CGROUP | KEEPER_DEMAND_DISK, text))
		printf("sandboxes work; NOT enforced: %s\n", text);
	else
		puts("sandboxes work; all limits are enforced, except the number of files on disk "
		     "(inodes)");
}

static int run(struct api_cmd *a, struct err *err)
{
	struct doctor *d = (struct doctor *)a;
	auto_free char *text = NULL;

	(void)err;
	json_out_init(&d->out, 1 << 20);
	json_out_object(&d->out, NULL);
	json_out_array(&d->out, "checks");
	for (const struct doctor_check *c = doctor_checks; c->name; c++)
		run_check(d, c);
	check_program(d, "lodge-keeper");
	check_program(d, "lodge-init");
	check_sandbox(d);
	json_out_end(&d->out);
	json_out_bool(&d->out, "ok", !d->failed);
	template_put_not_enforced(&d->out, LIMITS_NOT_ENFORCED, &d->enforcement, KEEPER_STORE_DISK,
				  NULL);
	json_out_end(&d->out);
	text = json_out_take(&d->out, NULL);
	if (a->json)
		puts(text ? text : "{}");
	else
		conclude(d);
	return d->failed ? CLI_EXIT_REFUSED : 0;
}

static const struct cli_option options[] = {
	OPTION_JSON("print JSON"),
	OPTION_DATA(struct doctor, home),
	{ NULL },
};

const struct command cmd_doctor = {
	.name = "doctor",
	.usage = "[--json]",
	.summary = "check what this machine can enforce",
	.options = options,
	.more = "Tries everything that lodge needs, and says how to fix what is missing.\n\n"
		"Exit status\n"
		"  0  sandboxes work\n"
		"  1  something required is missing\n",
	.size = sizeof(struct doctor),
	.local = true,
	.run = run,
};
