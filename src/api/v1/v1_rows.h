/* SPDX-License-Identifier: Apache-2.0 */
/* The list of sessions as rows with usage, for view=row. */
#ifndef LODGE_API_V1_V1_ROWS_H
#define LODGE_API_V1_V1_ROWS_H

#include "api/core/api_call.h"
#include "session/session_api.h"

/* `by` has the filters of the query. */
int v1_list_rows(struct api_call *c, const struct store_session_filter *by, struct err *err);
/* Whether this parameter of the query belongs to v1_list_rows(). */
bool v1_is_row_option(const char *name);

#endif
