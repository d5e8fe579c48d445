/* SPDX-License-Identifier: Apache-2.0 */
/* Whose files are in memory: of a fragment up to 64 MiB, and as much again while they are unpacked.
 * So few at once that it can be said how much memory that takes. */
#include <pthread.h>

#include "project/internal.h"
#include "project/mem_gate.h"

enum { HEAVY_MAX = 8 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static unsigned inside;

void mem_gate_enter(bool *is_in, uint64_t bytes)
{
	if (*is_in || bytes <= MEM_GATE_BYTES)
		return;
	pthread_mutex_lock(&mutex);
	while (inside == HEAVY_MAX)
		pthread_cond_wait(&left, &mutex);
	inside++;
	pthread_mutex_unlock(&mutex);
	*is_in = true;
}

void mem_gate_leave(bool *is_in)
{
	if (!*is_in)
		return;
	pthread_mutex_lock(&mutex);
	inside--;
	pthread_cond_signal(&left);
	pthread_mutex_unlock(&mutex);
	*is_in = false;
}
