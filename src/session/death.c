/* SPDX-License-Identifier: Apache-2.0 */
#include "session/death.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/json.h"
#include "machine/machine.h"
#include "session/session.h"

enum { DEATH_MAX = 2048 }; /* of its JSON */

static void explain_status(struct session_death *d, const struct keeper_exit *e)
{
	if (WIFSIGNALED(e->status))
		d->signal = WTERMSIG(e->status);
	if (d->signal == SIGKILL && e->oom) {
		d->code = SESSION_DEATH_OOM;
		snprintf(d->text, sizeof(d->text),
			 "the host ran out of memory: the kernel killed its init");
	} else if (d->signal) {
		d->code = SESSION_DEATH_KILLED;
		snprintf(d->text, sizeof(d->text),
			 "its init was killed by signal %d (not by lodge)", d->signal);
	} else {
		d->code = SESSION_DEATH_EXITED;
		snprintf(d->text, sizeof(d->text), "its init exited with status %d",
			 WEXITSTATUS(e->status));
	}
}

/* No keeper saw it end. */
static void explain_absence(const struct session *n, struct session_death *d)
{
	const char *now = n->engine->boot_id, *then = n->rec.boot_id;

	if (*now && *then && strcmp(now, then) != 0) {
		d->code = SESSION_DEATH_HOST_RESTARTED;
		snprintf(d->text, sizeof(d->text), "the host restarted");
		return;
	}
	snprintf(d->text, sizeof(d->text),
		 "it ended while lodged or lodge-keeper was not running; how is not known");
}

/* If no engine does, lodge-init ends a sandbox at its deadline. */
static void explain_deadline(const struct session *n, struct session_death *d,
			     struct session_cause_opts *why)
{
	int64_t now = engine_now(n->engine);

	if (d->code || !n->rec.due_at || n->rec.due_at > now)
		return;
	why->cause = session_is_active(&n->rec, now) ? SESSION_CAUSE_IDLE : SESSION_CAUSE_EXPIRED;
	why->actor = "lodge";
	snprintf(d->text, sizeof(d->text), "its deadline passed while no engine ran");
}

void death_explain(struct session *n, struct session_cause_opts *why)
{
	struct session_death *d = &n->death;
	struct keeper_exit e = { 0 };
	struct err err = { 0 };

	*d = (struct session_death){ 0 };
	if (keeper_conn_exit(n->engine, n->rec.sandbox, &e, &err) < 0) {
		if (err.code == ERR_NOT_FOUND)
			explain_absence(n, d);
		else
			snprintf(d->text, sizeof(d->text), "its sandbox ended; how is not known");
	} else if (e.state == KEEPER_EXIT_KNOWN) {
		explain_status(d, &e);
	} else if (e.state == KEEPER_EXIT_VOLUME) {
		d->code = SESSION_DEATH_DISK_FULL;
		snprintf(
			d->text, sizeof(d->text),
			"the server's disk was full and a write of its volume failed; what had not "
			"reached the disk was lost");
	} else if (e.state == KEEPER_EXIT_UNKNOWN) {
		snprintf(d->text, sizeof(d->text),
			 "its init ended; how is not known, because lodge-keeper was restarted");
	} else {
		snprintf(d->text, sizeof(d->text), "its init closed the connection to lodge");
	}
	if (err.code == ERR_NOT_FOUND || e.state == KEEPER_EXIT_UNKNOWN)
		explain_deadline(n, d, why);
	why->text = d->text;
}

void death_count_commands(struct session *n)
{
	struct err ignored;

	n->death.commands = 0;
	if (n->machine) {
		pthread_mutex_lock(&n->machine->mutex);
		n->death.commands = n->machine->nexecs;
		pthread_mutex_unlock(&n->machine->mutex);
		return;
	}
	(void)STORE_CALL(n->engine, store_exec_count_running, n->id, &n->death.commands, &ignored);
}

static const char *default_text(enum session_cause cause)
{
	if (cause == SESSION_CAUSE_REQUESTED)
		return "it was ended on request";
	if (cause == SESSION_CAUSE_INTERRUPTED)
		return "lodge stopped while it was being hibernated";
	return "";
}

void death_record(struct session *n, struct store_session *s, const struct session_cause_opts *why)
{
	const struct session_death *d = &n->death;
	struct json_out j;
	char *text;

	json_out_init(&j, DEATH_MAX);
	json_out_object(&j, NULL);
	json_out_i64(&j, "at", engine_now(n->engine));
	json_out_str(&j, "code", session_death_name(d->code ? d->code : why->cause));
	json_out_str(&j, "text", why->text && *why->text ? why->text : default_text(why->cause));
	json_out_str(&j, "actor", why->actor ? why->actor : "");
	json_out_i64_if(&j, "signal", d->signal, d->signal);
	json_out_object(&j, "lost");
	json_out_i64(&j, "commands", d->commands);
	json_out_end(&j);
	json_out_i64(&j, "incarnation", n->rec.incarnation);
	json_out_end(&j);
	text = json_out_take(&j, NULL);
	if (!text)
		return;
	free(s->last_death);
	s->last_death = text;
}

void death_count(struct session *n, const struct session_cause_opts *why)
{
	tenant_metrics_count_death(n->engine, n->rec.tenant,
				   n->death.code ? n->death.code : why->cause);
	n->death = (struct session_death){ 0 };
}

bool death_is_pending(const struct session *n)
{
	return n->death.code || *n->death.text || n->death.commands;
}
