/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of commands, and their parts. Included by api_cmd.h. */
#ifndef LODGE_CLI_CORE_API_REQUEST_H
#define LODGE_CLI_CORE_API_REQUEST_H

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "client/client.h"

enum { API_PATH = 8192 };

struct api_cmd;

/* The request that a->cmd declares. */
int api_cmd_request(struct api_cmd *a, struct err *err);
/* Options that were given into a body, by their fields. */
int api_cmd_fill(struct api_cmd *a, json_t *body, struct err *err);
/* The service names fields in its errors: names the option that filled the field instead. */
void api_cmd_name_option(struct api_cmd *a, struct err *err);

/* client_call() of a path with parts, as client_path() makes it. */
#define api_cmd_call(a, method, body, ret, err, ...)                                               \
	({                                                                                         \
		char path_[API_PATH];                                                              \
		client_path(path_, sizeof(path_), (err), __VA_ARGS__) < 0                          \
			? -1                                                                       \
			: client_call((a)->client, (method), path_, (body), (ret), (err));         \
	})
/* Every page of a list, as {"member": [...]}. */
int api_cmd_list(struct api_cmd *a, const char *path, const char *member, json_t **ret,
		 struct err *err);
/* A member of a request, unless value is NULL. `what` names the value in errors. */
int api_cmd_put(struct api_cmd *a, json_t *body, const char *name, const char *what,
		const char *value, struct err *err);
/* Fails if SESSION would not lead to this key, because it reads as an id or as key:... */
int api_cmd_check_key(struct api_cmd *a, const char *what, const char *key, struct err *err);
/* A number within bounds; without a value *ret stays. */
int api_cmd_count_of(struct api_cmd *a, const char *option, const char *value, uint64_t least,
		     uint64_t most, uint64_t *ret, struct err *err);
/* Adds `name=value` to the query of a path, encoded; a NULL value adds nothing. */
int api_cmd_query(char *path, size_t size, const char *name, const char *value, struct err *err);
/* The record of a snapshot of a session, by id or name; which NULL: the newest. */
int api_cmd_find_snapshot(struct api_cmd *a, const char *ref, const char *which, json_t **ret,
			  struct err *err);

/* Before one request for each session: fails if the last of several operands is no session, but
 * what belongs to an option, as the name of a snapshot. */
int api_cmd_check_last(struct api_cmd *a, const char *option, struct err *err);

#endif
