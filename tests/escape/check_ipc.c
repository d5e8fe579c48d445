/* SPDX-License-Identifier: Apache-2.0 */
/* System V IPC, message queues, named sockets: those the runner created on the host are not
 * reachable. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int no_facts(void)
{
	return unjudged("the runner made no IPC objects on the host");
}

static int sysv(const struct check *c)
{
	long key = fact_number("IPC_KEY");
	int id;

	if (key <= 0)
		return no_facts();
	if (strcmp(c->arg, "shm") == 0)
		id = shmget((key_t)key, 0, 0);
	else if (strcmp(c->arg, "sem") == 0)
		id = semget((key_t)key, 0, 0);
	else
		id = msgget((key_t)key, 0);
	return id >= 0 ? broken("the host's %s object was found", c->arg) : held();
}

static int sysv_table(const struct check *c)
{
	static const char *const files[] = { "/proc/sysvipc/shm", "/proc/sysvipc/sem",
					     "/proc/sysvipc/msg" };
	char text[8192], key[32];

	(void)c;
	if (fact_number("IPC_KEY") <= 0)
		return no_facts();
	snprintf(key, sizeof(key), " %ld ", fact_number("IPC_KEY"));
	for (size_t i = 0; i < LEN(files); i++)
		if (read_text(files[i], text, sizeof(text)) > 0 && strstr(text, key))
			return broken("%s lists an object of the host", files[i]);
	return held();
}

static int queue(const struct check *c)
{
	const char *name = fact("MQUEUE");
	mqd_t q;

	(void)c;
	if (!name)
		return no_facts();
	q = mq_open(name, O_RDONLY);
	if (q != (mqd_t)-1) {
		mq_close(q);
		return broken("the host's message queue was opened");
	}
	return held();
}

/* 0 if something accepts at this name; "@" stands for the abstract name space. */
static int reach(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0 || len >= sizeof(addr.sun_path))
		return -1;
	memcpy(addr.sun_path, name, len);
	if (name[0] == '@')
		addr.sun_path[0] = '\0';
	ret = connect(fd, (struct sockaddr *)&addr,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
	return ret;
}

static int unix_socket(const struct check *c)
{
	const char *name = fact(c->arg);

	if (!name)
		return no_facts();
	return reach(name) == 0 ? broken("%s of the host answered", name) : held();
}

static int abstract_table(const struct check *c)
{
	const char *name = fact("ABSTRACT");
	char text[65536];

	(void)c;
	if (!name)
		return no_facts();
	if (read_text("/proc/net/unix", text, sizeof(text)) > 0 && strstr(text, name))
		return broken("/proc/net/unix lists a socket of the host");
	return held();
}

const struct check checks_ipc[] = {
	{ "ipc-shm", "shared memory of the host is not there", sysv, BOTH, "ipcns", .arg = "shm" },
	{ "ipc-sem", "semaphores of the host are not there", sysv, BOTH, "ipcns", .arg = "sem" },
	{ "ipc-msg", "message queues of the host are not there", sysv, BOTH, "ipcns",
	  .arg = "msg" },
	{ "ipc-table", "objects of the host are not listed", sysv_table, BOTH, "ipcns" },
	{ "ipc-mqueue", "POSIX queues of the host are not there", queue, BOTH, "ipcns" },
	{ "ipc-abstract", "abstract sockets of the host do not answer", unix_socket, BOTH, "netns",
	  .arg = "ABSTRACT" },
	{ "ipc-abstract-table", "sockets of the host are not listed", abstract_table, BOTH,
	  "netns" },
	{ "ipc-unix-path", "sockets in the host's files do not answer", unix_socket, BOTH,
	  "mountns", .arg = "UNIX_PATH" },
	{ 0 },
};
