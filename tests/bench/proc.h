/* SPDX-License-Identifier: Apache-2.0 */
/* Information from /proc about this machine and its processes; shared with tests/soak. */
#ifndef LODGE_TESTS_BENCH_PROC_H
#define LODGE_TESTS_BENCH_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* "MemAvailable:" of /proc/meminfo, in kB; 0 if there is none. */
uint64_t proc_meminfo(const char *key);
/* "Pss:" of /proc/PID/smaps_rollup, "VmRSS:" of status ..., in kB. */
uint64_t proc_kb(pid_t pid, const char *file, const char *key);
int proc_count_fds(pid_t pid);
/* Lines of /proc/PID/mountinfo; -1 if it cannot be read. */
int proc_count_mounts(pid_t pid);
/* The child of `parent` with this name, or any with NULL; 0: none. */
pid_t proc_child(pid_t parent, const char *comm);
/* Without zombies. */
int proc_count_children(pid_t parent);
/* Active objects of a slab; -1 if /proc/slabinfo is not readable. */
long proc_slab(const char *name);
/* Files and directories below path, without itself; 0 if it does not exist. */
long proc_count_files(const char *path);
long proc_count_dirs(const char *path);
/* Loop devices whose backing file's path contains this. */
int proc_count_loops(const char *part);
/* Bytes in the memory files a process holds open. */
uint64_t proc_memfd_bytes(pid_t pid);
/* /run/lodge/H of a keeper with this home, or <home>/run without root. */
bool proc_run_dir(const char *home, char *ret, size_t size);

/* The names of the sandboxes a keeper of this home has a directory for. */
typedef void proc_name_fn(void *arg, const char *name);
void proc_each_sandbox(const char *home, proc_name_fn *fn, void *arg);

#endif
