/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_API_CHAT_CHAT_REPO_H
#define LODGE_API_CHAT_CHAT_REPO_H

#include <stdbool.h>

/* Whether a text is a repository URL: https, http, ssh, git, or user@host:path. */
bool chat_is_repository(const char *url);

#endif
