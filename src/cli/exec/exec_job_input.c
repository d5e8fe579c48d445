/* SPDX-License-Identifier: Apache-2.0 */
/* Sends standard input and forwards signals to a command, each in a thread, because the main thread
 * reads its output. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/exec/exec_job.h"
#include "cli/core/options.h"
#include "cli/core/retry.h"

enum { PIECE = 64 << 10 };

static int start_thread(void *(*run)(void *), struct exec_job *j, struct err *err)
{
	pthread_t thread;
	int r = pthread_create(&thread, NULL, run, j);

	if (r)
		return err_sys(err, r, "thread");
	pthread_detach(thread);
	return 0;
}

/* ---- input ----------------------------------------------------------------------------------- */

/* Retries only if the service certainly received nothing: input must not be sent twice. */
static int send_piece(struct exec_job *j, const char *bytes, size_t len, struct err *err)
{
	char path[JOB_PATH];
	struct client_request rq = {
		.method = "POST", .path = path, .bytes = bytes, .nbytes = len
	};
	struct client_stream *s = NULL;
	struct retry again = { 0 };
	int ms;

	if (exec_job_path(j, len ? "/stdin" : "/stdin?eof=true", path, err) < 0)
		return -1;
	while (client_open(j->client, &rq, &s, err) < 0) {
		if ((err->sys != ECONNREFUSED && err->sys != EUSERS) ||
		    (ms = retry_pause(&again, err)) < 0)
			return -1;
		(void)poll(NULL, 0, ms);
	}
	client_close(s);
	return 0;
}

/* That the command closed its input, or ended, is no error. */
static void fail_input(struct exec_job *j, const struct err *err)
{
	if (err->code == ERR_CONFLICT || err->code == ERR_NOT_FOUND)
		return;
	fprintf(stderr,
		"lodge: input: %s; how much of it the command received is unknown\n"
		"lodge: detached; the command keeps running (reconnect: lodge attach %s %s)\n",
		err->msg, j->ref, j->id);
	_exit(CLI_EXIT_FAILED);
}

/* Works also if another process made the pipe non-blocking. */
static ssize_t read_input(char buf[PIECE])
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	ssize_t n;

	while ((n = read(STDIN_FILENO, buf, PIECE)) < 0 && (errno == EINTR || errno == EAGAIN))
		(void)poll(&p, 1, -1);
	return n;
}

static void *send_input(void *arg)
{
	struct exec_job *j = arg;
	auto_free char *buf = malloc(PIECE);
	struct err err = { 0 };
	ssize_t n = buf ? 1 : 0;

	while (n > 0) {
		n = read_input(buf);
		if (send_piece(j, n > 0 ? buf : "", n > 0 ? (size_t)n : 0, &err) < 0) {
			fail_input(j, &err);
			break;
		}
	}
	return NULL;
}

int exec_job_feed(struct exec_job *j, struct err *err)
{
	return start_thread(send_input, j, err);
}

/* ---- signals --------------------------------------------------------------------------------- */

static void fill_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGQUIT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

static void *forward_signals(void *arg)
{
	struct exec_job *j = arg;
	sigset_t set;
	struct err err;
	int signo = 0;

	fill_signals(&set);
	for (bool again = false;; again = true) {
		if (sigwait(&set, &signo) != 0)
			continue;
		if (again || signo == SIGHUP || exec_job_signal(j, sigabbrev_np(signo), &err) < 0) {
			fprintf(stderr,
				"lodge: detached; the command keeps running (reconnect: "
				"lodge attach %s %s)\n",
				j->ref, j->id);
			_exit(128 + signo);
		}
	}
	return NULL;
}

int exec_job_catch(struct exec_job *j, struct err *err)
{
	sigset_t set;

	fill_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return start_thread(forward_signals, j, err);
}
