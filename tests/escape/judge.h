/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out what the sandbox's system call filter does with a call, without executing the call. A
 * child stacks its own filter that returns TRACE for this one call. Any refusal of an older filter
 * takes precedence over TRACE, so either the child sees the refusal, or its tracer is stopped at
 * the call and kills the child before the kernel continues. Unlike errno this distinguishes the
 * filter's EPERM from the kernel's own, so a missing filter cannot hide behind missing
 * capabilities. */
#ifndef LODGE_ESCAPE_JUDGE_H
#define LODGE_ESCAPE_JUDGE_H

enum judged { JUDGED_ALLOWED, JUDGED_REFUSED, JUDGED_KILLED, JUDGED_UNKNOWN };

struct judgement {
	enum judged how;
	int code; /* errno of a refusal, signal of a kill, or the reason if unknown */
};

struct call {
	const char *name;
	long nr;
	long args[6];
};

struct judgement judge(const struct call *c);
/* The same for one harmless call (getpid) through int 0x80. */
struct judgement judge_i386(void);

/* HELD if the filter refuses or kills every one of them, otherwise names those it allows. */
int judge_all(const struct call *calls, size_t count);
/* The reverse: HELD if it allows every one of them. */
int judge_none(const struct call *calls, size_t count);

#endif
