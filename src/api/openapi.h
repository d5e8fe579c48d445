/* SPDX-License-Identifier: Apache-2.0 */
/* spec/openapi.json; made by tools/embed when lodge is built. */
#ifndef LODGE_API_OPENAPI_H
#define LODGE_API_OPENAPI_H

extern const char *const openapi_files[]; /* one; NULL ends them */

#endif
