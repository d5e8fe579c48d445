/* SPDX-License-Identifier: Apache-2.0 */
/* Included before every file clang-tidy reads (but base/err.c): its analyzer looks at one file at
 * a time and cannot know that these always return -1. */
#ifndef LODGE_TOOLS_LINT_H
#define LODGE_TOOLS_LINT_H

#include "base/err.h"

#define err_set(...) ((void)err_set(__VA_ARGS__), -1)
#define err_sys(...) ((void)err_sys(__VA_ARGS__), -1)
#define err_ctx(...) ((void)err_ctx(__VA_ARGS__), -1)

#endif
