/* SPDX-License-Identifier: Apache-2.0 */
/* An engine on a string: one command per line on stdin, one answer per line on stdout ("ok ..." or
 * "error SENTENCE"). It owns a keeper as a daemon does, and can be killed at any time.
 *
 *   keeper HOME PROGRAM          start a keeper; features
 *   pool MIN TARGET MAX KEPT AGE -> ready
 *   new ID memory|disk TEMPLATE  make a sandbox -> pid cold|pool
 *   connect ID                   connect again -> pid execs last_exec
 *   kept ID take|share LAYER|-   make one whose files are kept -> pid cold|pool
 *   list|files|layers            -> ids of running sandboxes, of kept files, of layers
 *   start ID EXEC LOG TEXT       bash text in the background, output to the file LOG as a ring
 *   attach ID EXEC OFFSET        read on from there -> ok
 *   status ID EXEC               -> running|exited code signal start end
 *   signal ID EXEC SIGNO         to the whole tree
 *   run ID TEXT                  to its end -> code signal hits cpu_us rss output(hex)
 *   stats ID                     -> memory peak oom cpu_us pids denied disk
 *   limits ID MEMORY PIDS        change a running sandbox
 *   freeze|thaw|destroy|stop ID
 *   seal ID NAME, drop NAME      templates
 *   sealed ID LAYER              as soon as nothing of it runs
 *   snap ID LAYER, sync LAYER, merge LAYER FROM, export FILE FROM   to their end
 *   lose LAYER */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/agent_client.h"
#include "sandbox/guest_exec.h"
#include "sandbox/keeper_client.h"
#include "sandbox/layer_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/agent_sync.h"
#include "sandbox/guest_exec_sync.h"
#include "../unit/sandbox_calls.h"

enum { BOXES = 64, WORDS = 6, LINE = 8192, RING = 64 * 1024, TRIES = 10000 };

static struct keeper_client *keeper;
static struct sandbox *boxes[BOXES];

static int box_index(const char *id)
{
	for (int i = 0; i < BOXES; i++)
		if (id ? boxes[i] && strcmp(sandbox_id(boxes[i]), id) == 0 : !boxes[i])
			return i;
	return -1;
}

static struct sandbox *box(const char *id, struct err *err)
{
	int i = box_index(id);

	if (i < 0)
		err_set(err, ERR_NOT_FOUND, "the driver holds no sandbox %s", id);
	return i < 0 ? NULL : boxes[i];
}

static int keep(struct sandbox *sb, struct err *err)
{
	int i = box_index(NULL);

	if (i < 0)
		return err_set(err, ERR_LIMIT, "the driver holds too many sandboxes");
	boxes[i] = sb;
	return 0;
}

static void let_go(const char *id)
{
	int i = box_index(id);

	if (i >= 0) {
		sandbox_free(boxes[i]);
		boxes[i] = NULL;
	}
}

static int do_keeper(char **w, struct err *err)
{
	struct keeper_client_opts o = { .home = w[1], .program = w[2] };
	unsigned features = 0;

	if (keeper_client_spawn(&o, &keeper, err) < 0 ||
	    keeper_client_features(keeper, &features, err) < 0)
		return -1;
	printf("ok %u\n", features);
	return 0;
}

static int do_pool(char **w, struct err *err)
{
	struct keeper_pool p = { (uint32_t)atoi(w[1]), (uint32_t)atoi(w[2]), (uint32_t)atoi(w[3]),
				 (uint32_t)atoi(w[4]), (uint32_t)atoi(w[5]) };
	struct keeper_pool_state st;

	if (keeper_client_pool(keeper, p, &st, err) < 0)
		return -1;
	printf("ok %u\n", st.ready);
	return 0;
}

static int make(const struct sandbox_spec *spec, struct err *err)
{
	struct sandbox *sb;

	if (sandbox_new(keeper, spec, &sb, err) < 0 || keep(sb, err) < 0)
		return -1;
	printf("ok %d %s\n", sandbox_pid(sb),
	       sandbox_source(sb) == KEEPER_SOURCE_POOL ? "pool" : "cold");
	return 0;
}

static int do_new(char **w, struct err *err)
{
	struct sandbox_spec spec = sandbox_spec_default();

	spec.id = w[1];
	spec.store = strcmp(w[2], "disk") == 0 ? KEEPER_STORE_DISK : KEEPER_STORE_MEMORY;
	spec.template = w[3];
	return make(&spec, err);
}

static int do_kept(char **w, struct err *err)
{
	struct sandbox_spec spec = sandbox_spec_default();
	const char *layer = w[3];

	spec.id = w[1];
	spec.store = KEEPER_STORE_DISK;
	spec.keep = true;
	spec.take = strcmp(w[2], "take") == 0;
	spec.layers = &layer;
	spec.nlayers = strcmp(layer, "-") != 0;
	return make(&spec, err);
}

static int do_connect(char **w, struct err *err)
{
	struct sandbox *sb;
	struct agent_hello h;

	let_go(w[1]);
	if (sandbox_connect(keeper, w[1], &sb, err) < 0 || keep(sb, err) < 0 ||
	    agent_hello(sandbox_agent(sb), &h, err) < 0)
		return -1;
	printf("ok %d %u %" PRIu64 "\n", sandbox_pid(sb), h.execs, h.last_exec);
	return 0;
}

struct listing {
	enum keeper_what what;
	char text[BOXES * KEEPER_ID_SIZE];
};

static int on_listed(void *arg, enum keeper_what what, const char *id, pid_t pid)
{
	struct listing *l = arg;
	size_t n = strlen(l->text);

	(void)pid;
	if (what == l->what)
		snprintf(l->text + n, sizeof(l->text) - n, " %s", id);
	return 0;
}

static int list(enum keeper_what what, struct err *err)
{
	struct listing l = { .what = what };

	if (keeper_client_list(keeper, on_listed, &l, err) < 0)
		return -1;
	printf("ok%s\n", l.text);
	return 0;
}

static int do_list(char **w, struct err *err)
{
	(void)w;
	return list(KEEPER_IS_SANDBOX, err);
}

static int do_files(char **w, struct err *err)
{
	(void)w;
	return list(KEEPER_IS_FILES, err);
}

static int do_layers(char **w, struct err *err)
{
	(void)w;
	return list(KEEPER_IS_LAYER, err);
}

/* Not by guest_exec_begin(), whose logs are memory of this process, which is about to die. */
static int do_start(char **w, struct err *err)
{
	struct sandbox *sb = box(w[1], err);
	struct agent_exec m = { .exec = strtoull(w[2], NULL, 10),
				.flags = AGENT_BASH | AGENT_MERGE,
				.argc = 1,
				.log_bytes = RING };
	char strings[LINE + 8];
	size_t n = (size_t)snprintf(strings, LINE, "%s", w[4]) + 1;
	auto_close int log = open(w[3], O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	strings[n] = strings[n + 1] = 0; /* cwd and user: the defaults */
	if (log < 0 || ftruncate(log, AGENT_LOG_HEAD + RING) < 0)
		return err_sys(err, errno, "%s", w[3]);
	if (!sb || agent_call(sandbox_agent(sb), AGENT_EXEC,
			      (struct agent_part[]){ { &m, sizeof(m) }, { strings, n + 2 } }, 2,
			      &log, 1, AGENT_STARTED, NULL, err) < 0)
		return -1;
	puts("ok");
	return 0;
}

static int do_attach(char **w, struct err *err)
{
	struct sandbox *sb = box(w[1], err);
	struct agent_offsets m = { strtoull(w[2], NULL, 10), strtoull(w[3], NULL, 10), 0 };

	if (!sb ||
	    agent_call(sandbox_agent(sb), AGENT_ATTACH, (struct agent_part[]){ { &m, sizeof(m) } },
		       1, NULL, 0, AGENT_OK, NULL, err) < 0)
		return -1;
	puts("ok");
	return 0;
}

static int do_status(char **w, struct err *err)
{
	struct sandbox *sb = box(w[1], err);
	struct agent_ref m = { strtoull(w[2], NULL, 10) };
	struct agent_reply ans = { .fd = -1 };
	struct agent_proc p;

	if (!sb ||
	    agent_call(sandbox_agent(sb), AGENT_STATUS, (struct agent_part[]){ { &m, sizeof(m) } },
		       1, NULL, 0, AGENT_PROC, &ans, err) < 0)
		return -1;
	memcpy(&p, (const char *)ans.msg + sizeof(struct agent_hdr), sizeof(p));
	printf("ok %s %d %d %" PRIu64 " %" PRIu64 "\n",
	       p.state == AGENT_RUNNING ? "running" : "exited", p.exit.code, p.exit.signal,
	       p.exit.at.out_start, p.exit.at.out_end);
	agent_reply_fini(&ans);
	return 0;
}

static int do_signal(char **w, struct err *err)
{
	struct sandbox *sb = box(w[1], err);
	struct agent_signal m = { strtoull(w[2], NULL, 10), atoi(w[3]), AGENT_TO_TREE };

	if (!sb ||
	    agent_call(sandbox_agent(sb), AGENT_SIGNAL, (struct agent_part[]){ { &m, sizeof(m) } },
		       1, NULL, 0, AGENT_OK, NULL, err) < 0)
		return -1;
	puts("ok");
	return 0;
}

static int do_run(char **w, struct err *err)
{
	struct sandbox *sb = box(w[1], err);
	struct guest_exec_spec spec = { .text = w[2], .timeout_ms = 60000 };
	struct guest_exec_output o;

	if (!sb || guest_exec_run(sb, &spec, NULL, 0, &o, err) < 0)
		return -1;
	printf("ok %d %d %u %" PRIu64 " %" PRIu64 " ", o.result.code, o.result.signal,
	       o.result.hits, o.result.cpu_us, o.result.max_rss_bytes);
	for (size_t i = 0; i < o.out_len; i++)
		printf("%02x", (unsigned char)o.out[i]);
	puts("");
	guest_exec_output_fini(&o);
	return 0;
}

static int do_stats(char **w, struct err *err)
{
	struct sandbox *sb = box(w[1], err);
	struct keeper_stats s;

	if (!sb || sandbox_stats(sb, &s, err) < 0)
		return -1;
	printf("ok %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
	       "\n",
	       s.memory_bytes, s.memory_peak_bytes, s.oom_kills, s.cpu_us, s.pids, s.pids_denied,
	       s.disk_bytes);
	return 0;
}

static int do_limits(char **w, struct err *err)
{
	struct sandbox *sb = box(w[1], err);
	struct limits l = limits_default();

	l.memory_bytes = strtoull(w[2], NULL, 10);
	l.pids = (uint32_t)atoi(w[3]);
	if (!sb || sandbox_set_limits(keeper, sb, &l, err) < 0)
		return -1;
	puts("ok");
	return 0;
}

static int simple(const char *id, enum keeper_op op, const char *template, struct err *err)
{
	struct keeper_request r = keeper_client_request(op, id);
	struct keeper_reply reply;

	if (template)
		snprintf(r.template, sizeof(r.template), "%s", template);
	if (keeper_client_call(keeper, &r, NULL, 0, &reply, NULL, err) < 0)
		return -1;
	printf("ok %u\n", reply.found);
	return 0;
}

static int do_destroy(char **w, struct err *err)
{
	if (simple(w[1], KEEPER_DESTROY, NULL, err) < 0)
		return -1;
	let_go(w[1]);
	return 0;
}

static int do_freeze(char **w, struct err *err)
{
	return simple(w[1], KEEPER_FREEZE, NULL, err);
}

static int do_thaw(char **w, struct err *err)
{
	return simple(w[1], KEEPER_THAW, NULL, err);
}

static int do_seal(char **w, struct err *err)
{
	if (simple(w[1], KEEPER_TEMPLATE_SEAL, w[2], err) < 0)
		return -1;
	let_go(w[1]);
	return 0;
}

static int do_drop(char **w, struct err *err)
{
	return simple(NULL, KEEPER_TEMPLATE_DROP, w[1], err);
}

static int do_stop(char **w, struct err *err)
{
	bool found;

	if (layer_stop(keeper, w[1], &found, err) < 0)
		return -1;
	let_go(w[1]);
	printf("ok %d\n", found);
	return 0;
}

static int do_sealed(char **w, struct err *err)
{
	for (int i = 0; i < TRIES; i++) {
		if (layer_seal(keeper, w[1], w[2], NULL, err) == 0) {
			puts("ok");
			return 0;
		}
		if (err->sys != EBUSY)
			break;
		usleep(1000);
	}
	return -1;
}

static int end_job(const char *name, uint32_t state, struct err *err)
{
	struct keeper_job job = { .state = state };

	for (int i = 0; i < TRIES && job.state == KEEPER_JOB_RUNNING; i++) {
		usleep(1000);
		if (layer_job(keeper, name, &job, err) < 0)
			return -1;
	}
	if (job.state != KEEPER_JOB_DONE)
		return err_set(err, ERR_TIMEOUT, "job %s does not end", name);
	printf("ok %" PRIu64 "\n", job.bytes);
	return 0;
}

static int do_snap(char **w, struct err *err)
{
	struct keeper_job job;

	if (layer_snap(keeper, w[1], w[2], NULL, &job, err) < 0)
		return -1;
	return end_job(w[2], job.state, err);
}

static int do_sync(char **w, struct err *err)
{
	if (layer_sync(keeper, w[1], err) < 0)
		return -1;
	return end_job(w[1], KEEPER_JOB_RUNNING, err);
}

static int do_merge(char **w, struct err *err)
{
	const char *from = w[2];
	struct keeper_job job;

	if (layer_merge(keeper, w[1], &from, 1, &job, err) < 0)
		return -1;
	return end_job(w[1], job.state, err);
}

static int do_export(char **w, struct err *err)
{
	const char *from = w[2];
	auto_close int fd = open(w[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, errno, "%s", w[1]);
	if (layer_export(keeper, "export", &from, 1, fd, err) < 0)
		return -1;
	return end_job("export", KEEPER_JOB_RUNNING, err);
}

static int do_lose(char **w, struct err *err)
{
	if (layer_drop(keeper, w[1], err) < 0)
		return -1;
	puts("ok");
	return 0;
}

static const struct exec_record {
	const char *name;
	int nwords; /* the last one is the rest of the line */
	int (*fn)(char **w, struct err *err);
} commands[] = {
	{ "keeper", 3, do_keeper },   { "pool", 6, do_pool },	  { "new", 4, do_new },
	{ "connect", 2, do_connect }, { "list", 1, do_list },	  { "start", 5, do_start },
	{ "attach", 4, do_attach },   { "status", 3, do_status }, { "signal", 4, do_signal },
	{ "run", 3, do_run },	      { "stats", 2, do_stats },	  { "limits", 4, do_limits },
	{ "destroy", 2, do_destroy }, { "freeze", 2, do_freeze }, { "thaw", 2, do_thaw },
	{ "seal", 3, do_seal },	      { "drop", 2, do_drop },	  { "kept", 4, do_kept },
	{ "files", 1, do_files },     { "layers", 1, do_layers }, { "stop", 2, do_stop },
	{ "sealed", 3, do_sealed },   { "snap", 3, do_snap },	  { "sync", 2, do_sync },
	{ "merge", 3, do_merge },     { "export", 3, do_export }, { "lose", 2, do_lose },
};

static int obey(char *line, struct err *err)
{
	char *w[WORDS] = { line };
	size_t len = strcspn(line, " ");
	int n = 1;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct exec_record *c = &commands[i];

		if (strlen(c->name) != len || strncmp(c->name, line, len) != 0)
			continue;
		while (n < c->nwords && (line = strchr(line, ' '))) {
			*line++ = 0;
			w[n++] = line;
		}
		if (n < c->nwords)
			break;
		if (c->fn != do_keeper && !keeper)
			return err_set(err, ERR_INVALID, "no keeper yet");
		return c->fn(w, err);
	}
	return err_set(err, ERR_INVALID, "what is \"%.60s\"?", w[0]);
}

int main(void)
{
	static char line[LINE];

	setvbuf(stdout, NULL, _IOLBF, LINE);
	while (fgets(line, sizeof(line), stdin)) {
		struct err err = { 0 };

		line[strcspn(line, "\n")] = 0;
		if (obey(line, &err) < 0)
			printf("error %s\n", err.msg);
		fflush(stdout);
	}
	for (int i = 0; i < BOXES; i++)
		sandbox_free(boxes[i]);
	keeper_client_free(keeper);
	return 0;
}
