/* SPDX-License-Identifier: Apache-2.0 */
/* What lodged costs without requests. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon.h"

enum {
	WARM = 300,
	CONNECTIONS = 1000,
	RECORDS = 1000,
	CROWD = 5000,
	ABREAST = 4,
	SETTLE_US = 1000000
};
enum { IDLE_S = 20 };

struct making {
	struct request r[ABREAST];
	int made, until;
};

static const struct request *next_key(void *arg, int i, struct client *c)
{
	struct making *m = arg;
	char body[64];

	if (c->status >= 300) {
		struct err err;

		err_set(&err, ERR_INTERNAL, "%d %.*s", c->status, (int)c->body_len, c->body);
		must(-1, &err, "enter");
	}
	free(m->r[i].text);
	m->r[i].text = NULL;
	if (m->made == m->until)
		return NULL;
	snprintf(body, sizeof(body), "{\"key\":\"idle%d\"}", m->made++);
	m->r[i] = request_new("POST", "/v1/sessions", NULL, body);
	return &m->r[i];
}

static void make(const struct daemon *d, struct client *c, int from, int until)
{
	struct making m = { .made = from, .until = until };

	for (int i = 0; i < ABREAST; i++)
		client_open(&c[i], d->port);
	client_drive(c, ABREAST, next_key, &m);
	for (int i = 0; i < ABREAST; i++)
		client_close(&c[i]);
}

static void hibernate_all(const struct daemon *d, struct client *c, int n)
{
	client_open(c, d->port);
	for (int i = 0; i < n; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/v1/sessions/key:idle%d/hibernate", i);
		client_ask(c, "POST", path, NULL);
	}
	client_close(c);
}

static double settled_kb(const struct daemon *d)
{
	pause_us(SETTLE_US);
	return daemon_kb(d);
}

/* Connections that made one request and stay open. */
static void connections(const struct daemon *d, struct client *c)
{
	int *fd = calloc(CONNECTIONS, sizeof(*fd));
	double before = settled_kb(d);

	must(fd ? 0 : -1, NULL, "memory");
	for (int i = 0; i < CONNECTIONS; i++) {
		client_open(c, d->port);
		client_ask(c, "GET", "/v1/sessions?limit=1", NULL);
		fd[i] = c->fd;
	}
	put_value("standing/connection_kb", (settled_kb(d) - before) / CONNECTIONS);
	for (int i = 0; i < CONNECTIONS; i++)
		close(fd[i]);
	free(fd);
}

static void records(const struct daemon *d, struct client *c)
{
	double before = settled_kb(d), live, asleep;

	make(d, c, WARM, WARM + RECORDS);
	live = settled_kb(d);
	put_value("standing/live_kb", (live - before) / RECORDS);
	hibernate_all(d, c, WARM + RECORDS);
	asleep = settled_kb(d);
	put_value("standing/record_kb", (asleep - before) / RECORDS);
}

static void crowd(const struct daemon *d, struct client *c)
{
	double t0, cpu;

	make(d, c, 0, CROWD); /* the existing ones are resumed */
	pause_us(5 * SETTLE_US);
	cpu = daemon_cpu_s(d);
	t0 = now_us();
	pause_us(IDLE_S * 1000000u);
	put_value("standing/crowd_cpu_percent",
		  (daemon_cpu_s(d) - cpu) * 100 / ((now_us() - t0) / 1e6));
	put_value("standing/crowd_kb", daemon_kb(d));
	put_value("standing/crowd", CROWD);
}

void standing_run(const struct bench *b)
{
	static const char *const settings[] = { "LODGE_MAX_ACTIVE=6000", NULL };
	struct client *c = calloc(ABREAST, sizeof(*c));
	struct rlimit files;
	struct daemon d;

	must(c ? 0 : -1, NULL, "memory");
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	daemon_start(b, &d, "standing", settings);
	put_value("standing/new_kb", settled_kb(&d));
	make(&d, c, 0, WARM);
	connections(&d, c);
	pause_us(6 * SETTLE_US); /* until cached threads have ended */
	put_value("standing/idle_kb", settled_kb(&d));
	records(&d, c);
	if (b->big)
		crowd(&d, c);
	daemon_stop(&d);
	free(c);
}
