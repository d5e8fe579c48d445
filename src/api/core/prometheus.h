/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_API_CORE_PROMETHEUS_H
#define LODGE_API_CORE_PROMETHEUS_H

#include <stddef.h>

struct api;

char *prometheus_text(struct api *a,
		      size_t *ret_len); /* owned by the caller; NULL: out of memory */

#endif
