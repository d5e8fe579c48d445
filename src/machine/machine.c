/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox of an active session: one connection for execs, which the pump reads, and side
 * connections for files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "sandbox/agent_client.h"
#include "sandbox/sandbox.h"
#include "wire/enforcement.h"
#include "machine/exec_adopt.h"
#include "machine/exec_record.h"
#include "machine/machine.h"
#include "machine/machine_pump.h"

static void machine_free(struct machine *v)
{
	sandbox_free(v->conn);
	while (v->nidle_conns > 0)
		sandbox_free(v->idle_conns[--v->nidle_conns]);
	template_fini(&v->spec);
	pthread_cond_destroy(&v->changed);
	pthread_mutex_destroy(&v->files_mutex);
	pthread_mutex_destroy(&v->mutex);
	free(v);
}

static struct machine *machine_alloc(struct engine *e, const struct store_session *rec)
{
	struct machine *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->engine = e;
	v->refs = 1;
	v->incarnation = rec->incarnation;
	memcpy(v->session, rec->id, sizeof(v->session));
	memcpy(v->tenant, rec->tenant, sizeof(v->tenant));
	memcpy(v->sandbox, rec->sandbox, sizeof(v->sandbox));
	template_init(&v->spec);
	pthread_mutex_init(&v->mutex, NULL);
	pthread_mutex_init(&v->files_mutex, NULL);
	cond_init(&v->changed);
	return v;
}

/* Tells commands that start from now on, unless the host does not enforce it. */
static void set_disk_variable(struct machine *v, uint64_t bytes)
{
	char variable[LIMITS_VARIABLE];
	struct enforcement f;
	struct err ignored; /* too many variables: this is the one that goes without */

	keeper_conn_enforcement(v->engine, &f);
	if (!f.known || enforcement_problem(&f, KEEPER_STORE_DISK, "disk_bytes"))
		return;
	MUTEX_GUARD(&v->mutex);
	(void)template_set_env(&v->spec, limits_disk_variable(bytes, variable), &ignored);
	v->spare_shell = false; /* the one that waits has another environment */
}

/* With machine.mutex. */
static void send_limits(struct machine *v, const struct limits *l)
{
	struct agent_limits m = { .open_files = l->open_files,
				  .output_pages = (uint32_t)(limits_output_share(l->memory_bytes) /
							     AGENT_PAGE),
				  .file_bytes = l->file_bytes };
	struct err ignored; /* the connection ended: so does the sandbox */

	if (!v->conn || v->gone)
		return;
	(void)agent_send(sandbox_agent(v->conn), AGENT_LIMITS,
			 (struct agent_part[]){ { &m, sizeof(m) } }, 1, NULL, 0, NULL, NULL,
			 &ignored);
	machine_update_poll(v);
}

void machine_set_limits(struct machine *v, const struct limits *l, uint32_t limits_set)
{
	set_disk_variable(v, l->disk_bytes);
	MUTEX_GUARD(&v->mutex);
	v->spec.limits = *l;
	v->spec.limits_set = limits_set;
	send_limits(v, l);
}

/* A slot of the pool was bound with the default limits. */
static void tell_share(struct machine *v)
{
	MUTEX_GUARD(&v->mutex);
	if (v->spec.limits.memory_bytes != limits_default().memory_bytes)
		send_limits(v, &v->spec.limits);
}

int machine_new(struct engine *e, const struct store_session *rec, struct template *spec,
		struct sandbox *sb, bool adopted, struct machine **ret, struct err *err)
{
	auto_call(machine_unref) struct machine *v = machine_alloc(e, rec);

	if (!v) {
		template_fini(spec);
		sandbox_free(sb);
		return err_sys(err, ENOMEM, "session");
	}
	v->spec = *spec;
	template_init(spec);
	v->conn = sb;
	if (rec->disk_bytes > 0)
		set_disk_variable(v, (uint64_t)rec->disk_bytes);
	if (adopted && exec_adopt_all(v, err) < 0) {
		exec_detach_all(v);
		return -1;
	}
	agent_set_timeout(sandbox_agent(v->conn), -1);
	if (machine_pump_add(e, v, err) < 0) {
		exec_detach_all(v);
		return -1;
	}
	if (!adopted)
		tell_share(v);
	*ret = steal_ptr(&v);
	return 0;
}

struct machine *machine_ref(struct machine *v)
{
	MUTEX_GUARD(&v->mutex);
	v->refs++;
	return v;
}

void machine_unref(struct machine *v)
{
	bool last;

	if (!v)
		return;
	pthread_mutex_lock(&v->mutex);
	last = --v->refs == 0;
	pthread_mutex_unlock(&v->mutex);
	if (last)
		machine_free(v);
}

/* `end` is for its execs. Drops the caller's reference. */
static void disconnect(struct machine *v, void (*end)(struct machine *v))
{
	if (!v)
		return;
	machine_pump_remove(v->engine, v);
	pthread_mutex_lock(&v->mutex);
	v->gone = true;
	end(v);
	sandbox_free(v->conn);
	v->conn = NULL;
	while (v->nidle_conns > 0) {
		sandbox_free(v->idle_conns[--v->nidle_conns]);
		v->nopen_conns--;
	}
	pthread_cond_broadcast(&v->changed);
	pthread_mutex_unlock(&v->mutex);
	machine_unref(v);
}

void machine_close(struct machine *v)
{
	disconnect(v, exec_end_all);
}

void machine_detach(struct machine *v)
{
	disconnect(v, exec_detach_all);
}

bool machine_is_gone(struct machine *v)
{
	MUTEX_GUARD(&v->mutex);
	return v->gone;
}

bool machine_wait_idle(struct machine *v, int64_t wait_ms)
{
	int64_t until = clock_mono_ms() + wait_ms;

	MUTEX_GUARD(&v->mutex);
	while (v->nside_conns > 0 && !v->gone && cond_wait_until(&v->changed, &v->mutex, until))
		continue;
	return v->nside_conns == 0 || v->gone;
}

unsigned machine_count_users(struct machine *v)
{
	MUTEX_GUARD(&v->mutex);
	return v->nexecs + v->nside_conns - v->nreadonly_conns + v->nstreams;
}

void machine_update_poll(struct machine *v)
{
	short needed;

	if (!v->conn || v->gone)
		return;
	needed = agent_events(sandbox_agent(v->conn));
	if (needed == v->events)
		return;
	if (epoll_ctl(v->engine->pump.epoll_fd, EPOLL_CTL_MOD, agent_fd(sandbox_agent(v->conn)),
		      &(struct epoll_event){ .events = machine_pump_events(needed),
					     .data.ptr = v }) == 0)
		v->events = needed;
}

bool machine_dispatch(struct machine *v)
{
	struct err err;

	if (!v->conn || v->gone)
		return false;
	if (agent_dispatch(sandbox_agent(v->conn), &err) == 0) {
		machine_update_poll(v);
		return false;
	}
	(void)epoll_ctl(v->engine->pump.epoll_fd, EPOLL_CTL_DEL, agent_fd(sandbox_agent(v->conn)),
			NULL);
	v->gone = true;
	pthread_cond_broadcast(&v->changed);
	return true;
}
