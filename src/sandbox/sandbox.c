/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "sandbox/agent_client.h"
#include "sandbox/keeper_client.h"
#include "sandbox/agent_sync.h"

struct sandbox {
	struct keeper_client *keeper; /* borrowed */
	struct agent *agent;
	char id[KEEPER_ID_SIZE];
	pid_t pid;
	enum keeper_source source;
	uint64_t ready_us;
};

struct sandbox_spec sandbox_spec_default(void)
{
	return (struct sandbox_spec){ .template = "host",
				      .limits = limits_default(),
				      .store = KEEPER_STORE_MEMORY,
				      .class = KEEPER_CLASS_USER,
				      .uid = 1000,
				      .gid = 1000 };
}

/* 80 random bits, so that two engines never choose the same id. */
static int random_id(char id[KEEPER_ID_SIZE], struct err *err)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyz012345";
	unsigned char r[16];

	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		return err_sys(err, errno, "getrandom");
	memset(id, 0, KEEPER_ID_SIZE);
	for (size_t i = 0; i < sizeof(r); i++)
		id[i] = set[r[i] % 32];
	return 0;
}

static int fill_binds(struct keeper_create *c, const struct sandbox_spec *spec, int *fds,
		      struct err *err)
{
	if (spec->nbinds > KEEPER_BINDS_MAX)
		return err_set(err, ERR_INVALID, "at most %d host directories can be mounted",
			       KEEPER_BINDS_MAX);
	for (size_t i = 0; i < spec->nbinds; i++) {
		const struct sandbox_bind *b = &spec->binds[i];

		if (keeper_client_set_name(c->binds[i].path, sizeof(c->binds[i].path), "mount path",
					   b->path, err) < 0)
			return -1;
		c->binds[i].writable = b->writable;
		fds[i] = b->fd;
	}
	c->nbinds = (uint32_t)spec->nbinds;
	return 0;
}

static int fill_request(struct keeper_request *r, const struct sandbox_spec *spec, int *fds,
			struct err *err)
{
	struct keeper_create *c = &r->create;

	if (spec->id ? keeper_client_set_name(r->id, sizeof(r->id), "id", spec->id, err)
		     : random_id(r->id, err))
		return -1;
	if (keeper_client_set_name(c->template, sizeof(c->template), "template", spec->template,
				   err) < 0 ||
	    keeper_client_set_name(c->hostname, sizeof(c->hostname), "hostname",
				   spec->hostname ? spec->hostname : "lodge", err) < 0)
		return -1;
	if (spec->workdir && keeper_client_set_name(c->workdir, sizeof(c->workdir), "workdir",
						    spec->workdir, err) < 0)
		return -1;
	c->limits = spec->limits;
	c->store = spec->store;
	c->class = spec->class;
	c->demand = spec->demand;
	c->uid = spec->uid;
	c->gid = spec->gid;
	c->no_pool = spec->no_pool;
	c->keep = spec->keep;
	c->take = spec->take;
	if (keeper_client_set_layers(c->layers, &c->nlayers, spec->layers, spec->nlayers, err) < 0)
		return -1;
	return fill_binds(c, spec, fds, err);
}

/* Takes ownership of fd. */
static int connect_sandbox(struct keeper_client *k, const char *id,
			   const struct keeper_reply *reply, int fd, struct sandbox **ret,
			   struct err *err)
{
	auto_close int own = fd;
	auto_free struct sandbox *sb = calloc(1, sizeof(*sb));

	if (!sb)
		return err_sys(err, ENOMEM, "sandbox");
	if (agent_new(steal_fd(&own), &sb->agent, err) < 0)
		return -1;
	sb->keeper = k;
	snprintf(sb->id, sizeof(sb->id), "%s", id);
	sb->pid = reply->pid;
	sb->source = reply->source == KEEPER_SOURCE_POOL ? KEEPER_SOURCE_POOL : KEEPER_SOURCE_COLD;
	*ret = steal_ptr(&sb);
	return 0;
}

static int call_keeper(struct keeper_client *k, enum keeper_op op, const char *id,
		       struct keeper_reply *ret, struct err *err)
{
	struct keeper_request r = keeper_client_request(op, id);

	return keeper_client_call(k, &r, NULL, 0, ret, NULL, err);
}

int sandbox_new(struct keeper_client *k, const struct sandbox_spec *spec, struct sandbox **ret,
		struct err *err)
{
	struct keeper_request r = keeper_client_request(KEEPER_CREATE, NULL);
	uint64_t start = clock_mono_us();
	struct keeper_reply reply;
	int fds[KEEPER_BINDS_MAX], fd;
	struct err ignored;

	if (fill_request(&r, spec, fds, err) < 0)
		return -1;
	if (keeper_client_call(k, &r, fds, spec->nbinds, &reply, &fd, err) < 0)
		return -1;
	if (connect_sandbox(k, r.id, &reply, fd, ret, err) < 0) {
		/* with `take` the files were a layer: keep them */
		call_keeper(k, spec->take ? KEEPER_STOP : KEEPER_DESTROY, r.id, NULL, &ignored);
		return -1;
	}
	(*ret)->ready_us = clock_mono_us() - start;
	return 0;
}

int sandbox_attach(struct keeper_client *k, const char *id, struct sandbox **ret, struct err *err)
{
	struct keeper_request r = keeper_client_request(KEEPER_CONNECT, id);
	struct keeper_reply reply;
	int fd;

	if (keeper_client_call(k, &r, NULL, 0, &reply, &fd, err) < 0)
		return -1;
	return connect_sandbox(k, id, &reply, fd, ret, err);
}

int sandbox_destroy(struct sandbox *sb, struct err *err)
{
	return call_keeper(sb->keeper, KEEPER_DESTROY, sb->id, NULL, err);
}

void sandbox_free(struct sandbox *sb)
{
	if (!sb)
		return;
	agent_free(sb->agent);
	free(sb);
}

const char *sandbox_id(const struct sandbox *sb)
{
	return sb->id;
}

struct agent *sandbox_agent(struct sandbox *sb)
{
	return sb->agent;
}

pid_t sandbox_pid(const struct sandbox *sb)
{
	return sb->pid;
}

enum keeper_source sandbox_source(const struct sandbox *sb)
{
	return sb->source;
}

uint64_t sandbox_ready_us(const struct sandbox *sb)
{
	return sb->ready_us;
}

int sandbox_stats(struct sandbox *sb, struct keeper_stats *ret, struct err *err)
{
	struct keeper_reply reply;

	if (call_keeper(sb->keeper, KEEPER_STATS, sb->id, &reply, err) < 0)
		return -1;
	*ret = reply.stats;
	return 0;
}

int sandbox_seal(struct sandbox *sb, const char *name, struct err *err)
{
	struct keeper_request r = keeper_client_request(KEEPER_TEMPLATE_SEAL, sb->id);

	if (keeper_client_set_name(r.template, sizeof(r.template), "template", name, err) < 0)
		return -1;
	return keeper_client_call(sb->keeper, &r, NULL, 0, NULL, NULL, err);
}
