/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the machine, or of the cgroup that limits this process. In bytes; 0: unknown. */
#ifndef LODGE_BASE_HOST_MEMORY_H
#define LODGE_BASE_HOST_MEMORY_H

#include <stdint.h>

uint64_t host_memory_total(void);
uint64_t host_memory_available(void); /* without swapping; at most the total */

#endif
