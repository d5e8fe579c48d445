/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/process_table.h"

#include <string.h>
#include <sys/mman.h>

#include "init/exec/process.h"

/* In .bss and filled from the front, so that an idle sandbox uses few pages. */
static struct process records[AGENT_EXECS_MAX];
static char texts[AGENT_EXECS_MAX][INIT_TEXT_SIZE] __attribute__((aligned(4096)));
static uint32_t used_end, used_count;
static uint64_t last_id;

uint32_t process_table_index(const struct process *r)
{
	return (uint32_t)(r - records);
}

struct agent_hello process_table_summary(void)
{
	return (struct agent_hello){ AGENT_VERSION, used_count, last_id };
}

struct process *process_table_at(uint32_t n)
{
	return n < used_end && records[n].state != PROCESS_FREE ? &records[n] : NULL;
}

struct process *process_table_next(const struct process *r)
{
	for (uint32_t i = r ? process_table_index(r) + 1 : 0; i < used_end; i++) {
		if (records[i].state != PROCESS_FREE)
			return &records[i];
	}
	return NULL;
}

struct process *process_table_find(uint64_t id)
{
	struct process *r = NULL;

	while ((r = process_table_next(r)) && r->id != id)
		;
	return r;
}

struct process *process_table_find_pid(pid_t pid)
{
	for (struct process *r = NULL; (r = process_table_next(r));) {
		if ((r->has_subreaper && r->subreaper == pid) ||
		    (!r->has_subreaper && r->state == PROCESS_RUNNING && r->pid == pid))
			return r;
	}
	return NULL;
}

static struct process *find_oldest_done(void)
{
	struct process *best = NULL;

	for (struct process *r = NULL; (r = process_table_next(r));) {
		if (r->state == PROCESS_DONE && (!best || r->ended_us < best->ended_us))
			best = r;
	}
	return best;
}

static struct process *find_free(void)
{
	for (uint32_t i = 0; i < AGENT_EXECS_MAX; i++) {
		if (i >= used_end || records[i].state == PROCESS_FREE)
			return &records[i];
	}
	return NULL;
}

struct process *process_table_new(uint64_t id)
{
	struct process *r = find_free();

	if (!r) {
		r = find_oldest_done();
		if (!r)
			return NULL;
		process_release(r);
	}
	memset(r, 0, sizeof(*r));
	r->id = id;
	r->state = PROCESS_RUNNING;
	r->subreaper_fd = r->error_fd = r->in.fd = -1;
	for (int i = 0; i < 2; i++)
		r->out[i].pipe = r->out[i].log = -1;
	r->exit.exec = id;
	r->exit.code = -1;
	if (process_table_index(r) >= used_end)
		used_end = process_table_index(r) + 1;
	used_count++;
	if (id > last_id && id < AGENT_SIDE_EXEC)
		last_id = id;
	return r;
}

void process_table_free(struct process *r)
{
	r->state = PROCESS_FREE;
	used_count--;
	/* Return the page, so that memory does not grow with the number of past commands. */
	madvise(texts[process_table_index(r)], INIT_TEXT_SIZE, MADV_DONTNEED);
	while (used_end && records[used_end - 1].state == PROCESS_FREE)
		used_end--;
}

char *process_table_text(struct process *r)
{
	return texts[process_table_index(r)];
}

char *process_table_message(struct process *r)
{
	return texts[process_table_index(r)] + INIT_TEXT_SIZE - INIT_MESSAGE_SIZE;
}

char *process_table_cwd(struct process *r)
{
	return process_table_message(r) - INIT_CWD_SIZE;
}

/* Keeps as many strings as fit; the last one may be cut. */
void process_table_set_argv(struct process *r, const char *strings, uint32_t argc)
{
	const size_t capacity = INIT_TEXT_SIZE - INIT_MESSAGE_SIZE - INIT_CWD_SIZE;
	char *text = process_table_text(r);
	size_t at = 0;

	r->argc = 0;
	while (r->argc < argc && at + 1 < capacity) {
		size_t n = strlen(strings);
		size_t fit = n < capacity - at - 1 ? n : capacity - at - 1;

		memcpy(text + at, strings, fit);
		text[at + fit] = 0;
		at += fit + 1;
		strings += n + 1;
		r->argc++;
	}
	r->text_len = (uint32_t)at;
}
