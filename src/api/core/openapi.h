/* SPDX-License-Identifier: Apache-2.0 */
/* spec/openapi.json and web/docs.html, embedded by tools/embed at build time. */
#ifndef LODGE_API_CORE_OPENAPI_H
#define LODGE_API_CORE_OPENAPI_H

enum openapi_file { OPENAPI_JSON, OPENAPI_DOCS };
extern const char *const openapi_files[]; /* indexed by enum openapi_file; ends with NULL */

#endif
