/* SPDX-License-Identifier: Apache-2.0 */
/* lodge-keeper --home DIR [--oneshot | --closed ID]; the engine's socket is descriptor 3. */
#include "keeper/keeper.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "keeper/sandbox_adopt.h"
#include "keeper/serve.h"

#ifndef LODGE_VERSION
#define LODGE_VERSION "0.1.0"
#endif

enum {
	SEND_WAIT_S = 5,
};

static const char usage[] =
	"usage: lodge-keeper --home DIR [--oneshot | --closed ID]\n"
	"\n"
	"Create and end sandboxes for lodge. lodge, lodged and liblodge start this program and\n"
	"send it requests over descriptor 3; it is not meant to be run by hand.\n"
	"\n"
	"  --home DIR   directory of templates and sandboxes\n"
	"  --oneshot    end every sandbox and exit when the socket closes\n"
	"  --closed ID  require DIR to be this directory (device.inode, hexadecimal)\n"
	"               and refuse to mount other directories of the host\n"
	"  --help       print this help and exit\n"
	"  --version    print the version and exit\n";

static struct keeper keeper;

static const char *parse_options(int argc, char **argv, struct keeper *k)
{
	static const struct option options[] = {
		{ "home", required_argument, NULL, 'd' },   { "oneshot", no_argument, NULL, 'o' },
		{ "closed", required_argument, NULL, 'c' }, { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },	    { 0 }
	};
	const char *home = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			home = optarg;
			break;
		case 'o':
			k->oneshot = true;
			break;
		case 'c':
			k->closed = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		case 'v':
			puts("lodge-keeper " LODGE_VERSION);
			exit(0);
		default:
			exit(2);
		}
	}
	if (!home || optind < argc) {
		fputs(usage, stderr);
		exit(2);
	}
	return home;
}

/* Answers the first request with the error. False: no request came. */
static bool reply_error(int sock, const struct err *err)
{
	struct keeper_reply r = { .version = KEEPER_VERSION, .code = err->code, .sys = err->sys };
	struct keeper_request in;

	snprintf(r.msg, sizeof(r.msg), "%s", err->msg);
	if (recv(sock, &in, sizeof(in), 0) <= 0)
		return false;
	r.op = in.op;
	return send(sock, &r, sizeof(r), MSG_NOSIGNAL) == sizeof(r);
}

int main(int argc, char **argv)
{
	struct keeper *k = &keeper;
	const char *home = parse_options(argc, argv, k);
	char name[32] = "";
	struct err err = { 0 };
	int type = 0;
	socklen_t len = sizeof(type);

	if (getsockopt(KEEPER_FD, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET) {
		fputs("lodge-keeper: descriptor 3 must be a connected SOCK_SEQPACKET socket\n",
		      stderr);
		return 2;
	}
	(void)fcntl(KEEPER_FD, F_SETFD, FD_CLOEXEC);
	/* an engine that does not read its replies in time counts as disconnected */
	(void)setsockopt(KEEPER_FD, SOL_SOCKET, SO_SNDTIMEO,
			 &(struct timeval){ .tv_sec = SEND_WAIT_S }, sizeof(struct timeval));
	umask(022);
	if (keeper_open(k, home, name, &err) < 0) {
		if (!reply_error(KEEPER_FD, &err))
			fprintf(stderr, "lodge-keeper: %s\n", err.msg);
		return 1;
	}
	sandbox_adopt_sweep_oneshots(k, name);
	if (!k->oneshot && sandbox_adopt_all(k, &err) < 0)
		fprintf(stderr, "lodge-keeper: %s\n", err.msg);
	serve(k, KEEPER_FD);
	keeper_close(k, name);
	return 0;
}
