/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_INIT_EXEC_PROCESS_USAGE_H
#define LODGE_INIT_EXEC_PROCESS_USAGE_H

#include <stdint.h>
#include <sys/resource.h>

static inline uint64_t process_usage_cpu_us(const struct rusage *ru)
{
	return (uint64_t)(ru->ru_utime.tv_sec + ru->ru_stime.tv_sec) * 1000000u +
	       (uint64_t)(ru->ru_utime.tv_usec + ru->ru_stime.tv_usec);
}

static inline uint64_t process_usage_rss_bytes(const struct rusage *ru)
{
	return (uint64_t)ru->ru_maxrss * 1024u;
}

#endif
