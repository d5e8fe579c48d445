/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/output_share.h"

#include "base/clock.h"
#include "base/units.h"
#include "sandbox/guest_exec_log.h"

enum {
	RING_DEFAULT = 1 << 20,
	RING_MIN = 64 << 10, /* a ring that may shrink does not become smaller */
	PART = 8, /* a command that asks for nothing gets this part of what is left at most */
	WAIT_MS = 5000, /* for the output of ended commands to be saved */
};

static uint64_t share_of(const struct machine *v)
{
	return limits_output_share(v->spec.limits.memory_bytes);
}

static uint64_t left_of(const struct machine *v, uint64_t used)
{
	return used < share_of(v) ? share_of(v) - used : 0;
}

static uint64_t count_running(const struct machine *v)
{
	uint64_t bytes = 0;

	for (const struct exec_handle *x = v->execs; x; x = x->next)
		bytes += x->record->ended ? 0 : x->record->reserved;
	return bytes;
}

/* Of each ring, if the rings of ended commands were gone. One that may shrink leaves as much to the
 * commands after it as it takes, or more. */
static uint64_t wanted_bytes(const struct output_demand *d, uint64_t left)
{
	uint64_t part = left / (d->bytes ? 2 : PART) / d->streams;
	uint64_t max = d->bytes ? d->bytes : RING_DEFAULT;

	if (part < RING_MIN)
		part = RING_MIN;
	return guest_exec_log_size(d->exact || part > max ? max : part);
}

static int fail_reserve(const struct machine *v, const struct output_demand *d, struct err *err)
{
	char used[SIZE_TEXT], share[SIZE_TEXT];

	err_set(err, ERR_LIMIT,
		"no memory for the output of another command: %s of %s are reserved (half of "
		"limits.memory_bytes); retry when commands have ended%s",
		units_format(v->output_reserved, used), units_format(share_of(v), share),
		d->exact ? ", or with a smaller max_output_bytes" : "");
	err->sys = GUEST_EXEC_NO_OUTPUT;
	return -1;
}

int output_share_reserve(struct exec_record *c, const struct output_demand *d, struct err *err)
{
	struct machine *v = c->machine;
	int64_t until = clock_mono_ms() + WAIT_MS;
	uint64_t size, fits, least;

	do {
		uint64_t left = left_of(v, count_running(v));

		size = wanted_bytes(d, left);
		if (size * d->streams > left || size * d->streams <= left_of(v, v->output_reserved))
			break;
	} while (!v->gone && cond_wait_until(&v->changed, &v->mutex, until));
	fits = left_of(v, v->output_reserved) / d->streams / AGENT_PAGE * AGENT_PAGE;
	least = d->exact || size < RING_MIN ? size : RING_MIN;
	if (fits < least)
		return fail_reserve(v, d, err);
	c->log_bytes = size < fits ? size : fits;
	c->reserved = c->log_bytes * d->streams;
	v->output_reserved += c->reserved;
	return 0;
}

void output_share_adopt(struct exec_record *c)
{
	c->reserved = guest_exec_log_total(c->exec);
	c->machine->output_reserved += c->reserved;
}

void output_share_free(struct exec_record *c)
{
	guest_exec_free_keep(c->exec);
	c->exec = NULL;
	if (!c->reserved)
		return;
	c->machine->output_reserved -= c->reserved;
	c->reserved = 0;
	pthread_cond_broadcast(&c->machine->changed);
}

static uint64_t count_used(const struct machine *v, const struct exec_handle *list)
{
	uint64_t bytes = 0;

	for (const struct exec_handle *x = list; x; x = x->next)
		if (x->record->machine == v && x->record->exec)
			bytes += guest_exec_log_used(x->record->exec);
	return bytes;
}

uint64_t output_share_used(struct machine *v)
{
	struct engine *e = v->engine;
	uint64_t bytes;

	MUTEX_GUARD(&v->mutex);
	bytes = count_used(v, v->execs);
	pthread_mutex_lock(&e->workers.mutex);
	bytes += count_used(v, e->exec_writes.unwritten);
	pthread_mutex_unlock(&e->workers.mutex);
	return bytes;
}
