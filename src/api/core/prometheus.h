/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the API, and their text. */
#ifndef LODGE_API_CORE_PROMETHEUS_H
#define LODGE_API_CORE_PROMETHEUS_H

#include <stdbool.h>
#include <stddef.h>

struct api;

void api_count_request(struct api *a, unsigned status); /* call once after each request */
/* Owned by the caller; NULL: out of memory. `admin`: with the space of the disk and a series for
 * each tenant, whose name only the administrator may see; else their sum. */
char *prometheus_text(struct api *a, bool admin, size_t *ret_len);

#endif
