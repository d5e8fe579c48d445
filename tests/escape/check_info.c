/* SPDX-License-Identifier: Apache-2.0 */
/* Information about the host that a sandbox must not read. */
#include "probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "judge.h"

extern char **environ;

static int kernel_log(const struct check *c)
{
	/* 10: size of the buffer; nothing is read */
	const struct call call = { "syslog", SYS_syslog, { 10, 0, 0 } };

	(void)c;
	if (syscall(SYS_syslog, 10, NULL, 0) >= 0)
		return broken("the kernel log can be read");
	return judge_all(&call, 1);
}

static int host_name(const struct check *c)
{
	const char *host = fact("HOSTNAME");
	struct utsname uts;

	(void)c;
	if (!host || uname(&uts) < 0)
		return unjudged("the runner did not give the host name");
	return strcmp(uts.nodename, host) == 0 ? broken("the host is called %s", host) : held();
}

static int set_host_name(const struct check *c)
{
	struct utsname uts;

	(void)c;
	/* too long for any kernel: only a permitted caller gets EINVAL */
	if (uname(&uts) < 0)
		return trouble("uname: %s", strerror(errno));
	if (syscall(SYS_sethostname, uts.nodename, 1000) == 0 || errno == EINVAL)
		return broken("the host name may be set");
	return held();
}

/* The runner's environment contains a secret that must not appear here. */
static int environment(const struct check *c)
{
	const char *secret = fact("SECRET");

	(void)c;
	if (!secret)
		return unjudged("the runner did not set a secret");
	for (char **e = environ; *e; e++)
		if (strstr(*e, secret) || strncmp(*e, "LODGE_", 6) == 0)
			return broken("the environment has %s", *e);
	return held();
}

static int machine_id(const struct check *c)
{
	const char *host = fact("MACHINE_ID");
	char text[64];

	(void)c;
	if (!host)
		return unjudged("the host has no machine id");
	if (read_text("/etc/machine-id", text, sizeof(text)) > 0 && strncmp(text, host, 32) == 0)
		return broken("the machine id is the host's");
	return held();
}

const struct check checks_info[] = {
	{ "info-kernel-log", "the kernel log is refused", kernel_log, BOTH, "seccomp" },
	{ "info-host-name", "the host name is not the host's", host_name, BOTH, "utsns" },
	{ "info-set-host-name", "the host name cannot be set", set_host_name, BOTH,
	  "seccomp,userns,caps,cgroup" },
	{ "info-environment", "nothing of the caller's environment is inside", environment, BOTH,
	  "env" },
	{ "info-machine-id", "the machine id is not the host's", machine_id, BOTH, "mountns" },
	{ 0 },
};
