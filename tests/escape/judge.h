/* SPDX-License-Identifier: Apache-2.0 */
/* Tells what the sandbox's system call filter does with a call, without the call being carried
 * out. A child stacks a filter of its own that answers TRACE for this one call. Any refusal of an
 * older filter takes precedence over TRACE, so either the child sees the refusal, or its tracer is
 * stopped at the call and kills the child before the kernel goes on. Unlike looking at errno this
 * distinguishes the filter's EPERM from the kernel's own, so a missing filter cannot hide behind
 * missing capabilities. */
#ifndef LODGE_ESCAPE_JUDGE_H
#define LODGE_ESCAPE_JUDGE_H

enum judged { JUDGED_ALLOWED, JUDGED_REFUSED, JUDGED_KILLED, JUDGED_UNKNOWN };

struct judgement {
	enum judged how;
	int code; /* errno of a refusal, signal of a kill, what went wrong if unknown */
};

struct call {
	const char *name;
	long nr;
	long args[6];
};

struct judgement judge(const struct call *c);
/* The same for one harmless call (getpid) through int 0x80. */
struct judgement judge_i386(void);

/* HELD if the filter refuses or kills every one of them, else names those it lets through. */
int judge_all(const struct call *calls, size_t count);
/* The reverse: HELD if it lets every one of them through. */
int judge_none(const struct call *calls, size_t count);

#endif
