/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/sandbox_table.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/file_io.h"

enum { RECORD_VERSION = 2 };

static struct sandbox_record **bucket(struct sandbox_table *t, const char *id)
{
	uint32_t h = 2166136261u;

	for (const char *p = id; *p; p++)
		h = (h ^ (unsigned char)*p) * 16777619u;
	return &t->buckets[h % ARRAY_LEN(t->buckets)];
}

struct sandbox_record *sandbox_table_find(struct sandbox_table *t, const char *id)
{
	struct sandbox_record *sb = *bucket(t, id);

	while (sb && strcmp(sb->id, id) != 0)
		sb = sb->next;
	return sb;
}

struct sandbox_record *sandbox_table_add(struct sandbox_table *t, const struct sandbox_record *sb)
{
	struct sandbox_record **at = bucket(t, sb->id), *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *sb;
	copy->next = *at;
	*at = copy;
	t->count++;
	return copy;
}

void sandbox_table_remove(struct sandbox_table *t, const char *id)
{
	struct sandbox_record **at = bucket(t, id), *gone;

	while (*at && strcmp((*at)->id, id) != 0)
		at = &(*at)->next;
	gone = *at;
	if (!gone)
		return;
	*at = gone->next;
	t->count--;
	free(gone);
}

void sandbox_table_each(struct sandbox_table *t, sandbox_table_each_fn *fn, void *arg)
{
	for (size_t i = 0; i < ARRAY_LEN(t->buckets); i++)
		for (struct sandbox_record *sb = t->buckets[i], *next; sb; sb = next) {
			next = sb->next;
			fn(sb, arg);
		}
}

struct exit_note {
	pid_t pid;
	uint64_t start;
	int status;
};

static void note_exit(struct sandbox_record *sb, void *arg)
{
	const struct exit_note *e = arg;

	if (sb->pid != e->pid || sb->start != e->start || sb->exited)
		return;
	sb->exited = true;
	sb->status = e->status;
}

void sandbox_table_note_exit(struct sandbox_table *t, pid_t pid, uint64_t start, int status)
{
	struct exit_note e = { pid, start, status };

	sandbox_table_each(t, note_exit, &e);
}

struct storage_entry sandbox_table_entry(const struct sandbox_record *sb)
{
	return storage_entry(sb->files == SANDBOX_FILES_GO ? 's' : 'k', sb->id);
}

int sandbox_table_record_write(int dir, const struct sandbox_record *sb)
{
	char text[512];
	int n = snprintf(text, sizeof(text),
			 "version %d\npid %d\nstart %" PRIu64
			 "\nbase %u\nstore %u\nclass %u\nfiles %u\npaused %u\ngroup %s\n"
			 "template %s\nlayer %s\n",
			 RECORD_VERSION, sb->pid, sb->start, sb->base, sb->store, sb->class,
			 sb->files, sb->paused, sb->group, sb->template[0] ? sb->template : "none",
			 sb->layer[0] ? sb->layer : "none");

	return file_replace_at(dir, "record", text, (size_t)n);
}

int sandbox_table_record_write_at(int sandboxes, const struct sandbox_record *sb)
{
	auto_close int dir =
		openat(sandboxes, sb->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return dir < 0 ? -errno : sandbox_table_record_write(dir, sb);
}

/* Reads the name after `key`, up to the end of the line. */
static int read_name(const char *text, const char *key, char ret[KEEPER_ID_SIZE])
{
	const char *p = strstr(text, key);
	size_t n;

	if (!p)
		return -EBADMSG;
	p += strlen(key);
	n = strcspn(p, "\n");
	if (n >= KEEPER_ID_SIZE)
		return -EBADMSG;
	memset(ret, 0, KEEPER_ID_SIZE);
	memcpy(ret, p, n);
	return keeper_id_is_valid(ret) ? 0 : -EBADMSG;
}

int sandbox_table_record_read(int dir, struct sandbox_record *ret)
{
	enum { VERSION, PID, START, BASE, STORE, CLASS, FILES, PAUSED, NUMBERS };
	static const struct {
		const char *key;
		uint64_t max;
	} numbers[NUMBERS] = {
		[VERSION] = { "version", RECORD_VERSION },
		[PID] = { "pid", INT32_MAX },
		[START] = { "start", UINT64_MAX },
		[BASE] = { "base", UINT32_MAX },
		[STORE] = { "store", 16 },
		[CLASS] = { "class", 1 },
		[FILES] = { "files", SANDBOX_FILES_END - 1 },
		[PAUSED] = { "paused", 1 },
	};
	char text[512];
	uint64_t v[NUMBERS] = { 0 };
	ssize_t n = file_read_at(dir, "record", text, sizeof(text));
	struct sandbox_record sb = { 0 };

	if (n < 0)
		return (int)n;
	for (size_t i = 0; i < NUMBERS; i++)
		if (file_number_in(text, numbers[i].key, &v[i]) < 0 || v[i] > numbers[i].max)
			return -EBADMSG;
	if (v[VERSION] != RECORD_VERSION || read_name(text, "\ngroup ", sb.group) < 0 ||
	    read_name(text, "\ntemplate ", sb.template) < 0 ||
	    read_name(text, "\nlayer ", sb.layer) < 0)
		return -EBADMSG;
	sb.pid = (pid_t)v[PID];
	sb.start = v[START];
	sb.base = (uid_t)v[BASE];
	sb.store = (uint32_t)v[STORE];
	sb.class = (uint32_t)v[CLASS];
	sb.files = (enum sandbox_files)v[FILES];
	sb.paused = v[PAUSED];
	*ret = sb;
	return 0;
}

/* Field 22 of /proc/PID/stat. The name in field 2 may contain spaces and parentheses. */
static uint64_t read_start_time(pid_t pid, bool of_zombie)
{
	char path[32], text[1024], *p;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (file_read_at(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return 0;
	p = strrchr(text, ')');
	if (!p || p[1] != ' ' || (!of_zombie && (p[2] == 'Z' || p[2] == 'X')))
		return 0;
	for (int i = 0; p && i < 20; i++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p, NULL, 10) : 0;
}

uint64_t sandbox_table_start_time(pid_t pid)
{
	return read_start_time(pid, false);
}

uint64_t sandbox_table_zombie_start_time(pid_t pid)
{
	return read_start_time(pid, true);
}

bool sandbox_table_is_alive(const struct sandbox_record *sb)
{
	return sb->pid > 0 && sb->start && sandbox_table_start_time(sb->pid) == sb->start;
}
