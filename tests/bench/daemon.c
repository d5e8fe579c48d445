/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc.h"
#include "engine/engine.h"
#include "session/session_api.h"
#include "service/engine_open.h"

enum { SETTINGS_MAX = 16 };

static void die(const char *what)
{
	struct err err;

	err_set(&err, ERR_INTERNAL, "%s", what);
	must(-1, &err, "server");
}

/* ---- processes ------------------------------------------------------------------------------- */

struct plan {
	const char *const *argv, *const *env;
	const char *log;
	int out;
};

static _Noreturn void become(const struct plan *p)
{
	int log = open(p->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (log < 0 || null < 0 || dup2(null, 0) < 0 || dup2(p->out, 1) < 0 || dup2(log, 2) < 0)
		_exit(126);
	execve(p->argv[0], (char *const *)(uintptr_t)p->argv, (char *const *)(uintptr_t)p->env);
	_exit(127);
}

static pid_t launch(const struct plan *p)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		become(p);
	must(pid, NULL, "fork");
	return pid;
}

static void end(struct daemon *d, int signo)
{
	int status;

	kill(d->pid, signo);
	if (waitpid(d->pid, &status, 0) != d->pid)
		die("it is no child of ours");
	d->pid = 0;
}

/* ---- lodged ---------------------------------------------------------------------------------- */

static void read_port(struct daemon *d, int from)
{
	FILE *f = fdopen(from, "re");
	char line[256] = "";
	const char *at;

	if (!f || !fgets(line, sizeof(line), f))
		die("lodged did not start");
	at = strstr(line, "127.0.0.1:");
	if (!at)
		die(line);
	d->port = atoi(at + 10);
	fclose(f);
}

static void place(const struct bench *b, const char *name, char ret[256])
{
	snprintf(ret, 256, "%s.%s", b->home, name);
	(void)mkdir(ret, 0700);
}

void daemon_start(const struct bench *b, struct daemon *d, const char *name,
		  const char *const *settings)
{
	const char *argv[] = { b->lodged, "--data", d->home, "--listen", "127.0.0.1:0", NULL };
	const char *env[SETTINGS_MAX] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/",
					  "LODGE_API_KEY=" CLIENT_KEY, "LODGE_MAX_ACTIVE=0",
					  "LODGE_RATE=0" };
	char log[300];
	struct plan plan = { argv, env, log, -1 };
	size_t n = 5;
	int p[2];

	place(b, name, d->home);
	snprintf(log, sizeof(log), "%s/lodged.log", d->home);
	while (settings && *settings && n < SETTINGS_MAX - 1)
		env[n++] = *settings++;
	must(pipe2(p, O_CLOEXEC), NULL, "pipe");
	plan.out = p[1];
	d->pid = launch(&plan);
	close(p[1]);
	read_port(d, p[0]);
}

static void destroy_all(struct daemon *d)
{
	struct client *c = malloc(sizeof(*c));
	char id[64], path[128];

	if (!c)
		die("out of memory");
	client_open(c, d->port);
	for (;;) {
		client_ask(c, "GET", "/v1/sessions?limit=1", NULL);
		client_member(c, "id", id, sizeof(id));
		if (!*id)
			break;
		snprintf(path, sizeof(path), "/v1/sessions/%s", id);
		client_ask(c, "DELETE", path, NULL);
	}
	client_close(c);
	free(c);
}

void daemon_stop(struct daemon *d)
{
	destroy_all(d);
	end(d, SIGTERM);
}

void daemon_sweep(const struct bench *b, const char *name)
{
	static const struct caller caller = { "default", "bench" };
	struct engine_opts o = { .keeper_program = getenv("LODGE_KEEPER") };
	struct session_cleanup c;
	struct engine *e;
	struct err err;
	char home[256];

	snprintf(home, sizeof(home), "%s.%s", b->home, name);
	o.home = home;
	if (access(home, F_OK) < 0)
		return;
	must(engine_open(&o, &e, &err), &err, "engine_open");
	must(session_cleanup(e, &caller, NULL, &c, &err), &err, "session_cleanup");
	session_cleanup_fini(&c);
	engine_close(e);
}

/* ---- resources ------------------------------------------------------------------------------- */

double daemon_kb(const struct daemon *d)
{
	return (double)proc_kb(d->pid, "status", "VmRSS:");
}

double daemon_memfd_kb(const struct daemon *d)
{
	return (double)proc_memfd_bytes(d->pid) / 1024;
}

double daemon_cpu_s(const struct daemon *d)
{
	unsigned long user = 0, kernel = 0;
	char path[64], line[1024] = "";
	const char *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", d->pid);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f))
		die(path);
	fclose(f);
	at = strrchr(line, ')');
	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
			  &kernel) != 2)
		die(path);
	return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}
