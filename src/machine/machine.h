/* SPDX-License-Identifier: Apache-2.0 */
/* A machine: the running sandbox of a session, and the engine's connections to it. */
#ifndef LODGE_MACHINE_MACHINE_H
#define LODGE_MACHINE_MACHINE_H

#include "engine/internal.h"
#include "sandbox/guest_exec.h"
#include "sandbox/template/template.h"

enum { SIDE_CONNS_MAX = 12 }; /* of one sandbox; lodge-init takes 16 connections in all */

struct machine {
	struct engine *engine;
	unsigned refs; /* machine.mutex */
	pthread_mutex_t mutex;
	pthread_mutex_t files_mutex; /* of side_conn_lock() */
	pthread_cond_t changed; /* an exec ended, a side connection was returned */
	char session[STORE_ID], tenant[STORE_NAME], sandbox[STORE_ID];
	int64_t incarnation;
	struct sandbox *conn; /* for execs; the pump dispatches it */
	bool gone; /* the connection ended: the sandbox is dead, or about to be */
	bool stalled; /* it has not responded for a while: nothing new is asked of it */
	struct {
		bool pinging, frozen, gave_up;
		unsigned rounds; /* without an answer to the ping... */
		int64_t silent_ms; /* ... and how much time that was */
		int64_t pinged_at, checked_at; /* clock_mono_ms() */
		int64_t idle_at, expires_at; /* the deadlines that lodge-init knows */
	} watch; /* of machine_watch.c */
	bool spare_shell; /* lodge-init was asked to keep a shell ready for the next exec */
	short events; /* what the pump polls for */
	struct exec_handle *execs; /* that have not ended */
	unsigned nexecs, nside_conns, nstreams; /* in use: with any of them it is not idle, */
	unsigned nreadonly_conns; /* except for these of the side connections */
	struct sandbox *idle_conns[SIDE_CONNS_MAX]; /* side connections kept for the next use */
	struct sandbox *busy_conns[SIDE_CONNS_MAX]; /* side connections in use */
	unsigned nbusy_conns;
	unsigned nidle_conns, nopen_conns; /* of side connections: kept; kept or in use */
	struct template spec; /* the template merged with the session's options */
	uint64_t output_reserved; /* sizes of the output rings, see output_share.h */
	uint64_t uncounted_bytes; /* of output saved since the files were last counted */
	struct machine *next_removed; /* engine.mutex */
};

/* The machine of the session in `rec`, with the merged template `spec`. Takes over `sb` and what
 * `spec` owns, also on failure. `adopted`: execs that an earlier engine started are adopted. */
int machine_new(struct engine *e, const struct store_session *rec, struct template *spec,
		struct sandbox *sb, bool adopted, struct machine **ret, struct err *err);
/* The sandbox is being ended: ends its execs and removes it from the pump. Drops the caller's
 * reference. */
void machine_close(struct machine *v);
/* Limits that the keeper does not enforce apply to commands and writes that start from now on. With
 * the session's lock. `limits_set` as in struct template. */
void machine_set_limits(struct machine *v, const struct limits *l, uint32_t limits_set);
struct machine *machine_ref(struct machine *v);
void machine_unref(struct machine *v);
DEFINE_AUTO(struct machine *, machine_unref);
/* The engine closes and the sandbox keeps running. Drops the caller's reference. */
void machine_detach(struct machine *v);
bool machine_is_gone(struct machine *v);
/* Waits until all side connections are returned; with the session's lock no new one is opened.
 * Whole seconds. */
bool machine_wait_idle(struct machine *v, int64_t wait_ms);
unsigned machine_count_users(struct machine *v); /* execs, side connections, open streams */
/* Handles what the sandbox sent. True: the connection ended. With machine.mutex. */
bool machine_dispatch(struct machine *v);
void machine_update_poll(struct machine *v); /* after anything was sent; with machine.mutex */

#endif
