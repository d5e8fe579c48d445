/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions as the surfaces use them: a caller's key leads to the same sandbox and files every time.
 *
 * `if_version` in all calls: 0, or the version the record must have, else ERR_CONFLICT. `ret`,
 * where it is not NULL, is the record afterwards. */
#ifndef LODGE_SESSION_SESSION_API_H
#define LODGE_SESSION_SESSION_API_H

#include "session/change.h"
#include "session/destroy.h"
#include "session/enter.h"
#include "session/hibernate.h"
#include "session/pause.h"
#include "session/probe.h"
#include "session/query.h"
#include "session/rows.h"
#include "session/session_spec.h"

#endif
