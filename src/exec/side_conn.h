/* SPDX-License-Identifier: Apache-2.0 */
/* Additional connections to a session's sandbox, for files_*() of sandbox/files_client.h. */
#ifndef LODGE_EXEC_SIDE_CONN_H
#define LODGE_EXEC_SIDE_CONN_H

#include "engine/engine.h"
#include "sandbox/template/template.h"

struct side_conn;
/* The session counts as busy until side_conn_close(). With `resume` a hibernated session is
 * resumed, else the call fails with ERR_CONFLICT. *ret_outcome may be NULL. */
int side_conn_open(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		   bool resume, struct side_conn **ret, enum session_outcome *ret_outcome,
		   struct err *err);
/* Neither resumes the session (ERR_CONFLICT if it has no running sandbox) nor counts as use of it.
 */
int side_conn_open_readonly(struct engine *e, const struct caller *caller,
			    const struct session_ref *ref, struct side_conn **ret, struct err *err);
struct sandbox *side_conn_sandbox(const struct side_conn *conn);
/* The session's template merged with its own settings: user, workdir, environment. */
const struct template *side_conn_template(const struct side_conn *conn);
/* Excludes other connections of the same session, for a check of a file and the change that depends
 * on it. Hold it briefly. It does not stop the guest. */
void side_conn_lock(struct side_conn *conn);
void side_conn_unlock(struct side_conn *conn);
void side_conn_close(struct side_conn *conn); /* NULL is allowed */
DEFINE_AUTO(struct side_conn *, side_conn_close);

#endif
