/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting on monotonic time. */
#ifndef LODGE_HTTP_HTTP_CLOCK_H
#define LODGE_HTTP_HTTP_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void http_cond_init(pthread_cond_t *cond);
/* False after ms. The condition may hold nevertheless. */
bool http_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ms);

#endif
