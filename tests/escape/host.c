/* SPDX-License-Identifier: Apache-2.0 */
/* What the runner creates on the host for the checks not to find, until its standard input closes.
 * Prints facts. */
#include "probe.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HIGH_NUMBER = 4000 };

static char mq_name[64], shm_path[64], tmp_path[64];
static long word; /* part of every name, so that leftovers of an earlier run are not mistaken for
		     ours */
static int shm_id = -1, sem_id = -1, msg_id = -1;

static void plant_file(const char *path, mode_t mode, const char *token)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	dprintf(fd, "%s\n", token);
	fchmod(fd, mode);
	close(fd);
}

static void plant_files(const char *dir)
{
	char token[64], path[512];

	snprintf(token, sizeof(token), "lodge-token-%d-%ld", (int)getpid(), word);
	snprintf(shm_path, sizeof(shm_path), "/dev/shm/lodge-escape.%lx", word);
	snprintf(tmp_path, sizeof(tmp_path), "/tmp/lodge-escape.%lx", word);
	plant_file(shm_path, 0644, token);
	plant_file(tmp_path, 0644, token);
	snprintf(path, sizeof(path), "%s/canary", dir);
	plant_file(path, 0644, token);
	printf("TOKEN=%s\nCANARY_DIR=%s\nCANARY=%s\nCANARY_SHM=%s\nCANARY_TMP=%s\n", token, dir,
	       path, shm_path, tmp_path);
	snprintf(path, sizeof(path), "%s/canary-rw", dir);
	plant_file(path, 0666, token);
	printf("CANARY_RW=%s\n", path);
}

static int listen_unix(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (len >= sizeof(addr.sun_path))
		return -1;
	memcpy(addr.sun_path, name, len);
	if (name[0] == '@')
		addr.sun_path[0] = '\0';
	if (bind(fd, (struct sockaddr *)&addr,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		return -1;
	if (name[0] != '@')
		chmod(name, 0777);
	return listen(fd, 64);
}

static int listen_port(bool six)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr *sa = six ? (struct sockaddr *)&a6 : (struct sockaddr *)&a;
	socklen_t len = six ? sizeof(a6) : sizeof(a);
	int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, sa, len) < 0 || listen(fd, 64) < 0 || getsockname(fd, sa, &len) < 0)
		return -1;
	return ntohs(six ? a6.sin6_port : a.sin_port);
}

static void plant_sockets(const char *dir)
{
	char name[100];
	int port;

	snprintf(name, sizeof(name), "@lodge-escape-%lx", word);
	if (listen_unix(name) == 0)
		printf("ABSTRACT=%s\n", name);
	snprintf(name, sizeof(name), "%s/socket", dir);
	if (listen_unix(name) == 0)
		printf("UNIX_PATH=%s\n", name);
	port = listen_port(false);
	if (port > 0)
		printf("PORT=%d\n", port);
	port = listen_port(true);
	if (port > 0)
		printf("PORT6=%d\n", port);
}

static void plant_ipc(void)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 16 };
	key_t key = 0x10d6e000 + (getpid() & 0xfff);

	shm_id = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0666);
	sem_id = semget(key, 1, IPC_CREAT | IPC_EXCL | 0666);
	msg_id = msgget(key, IPC_CREAT | IPC_EXCL | 0666);
	if (shm_id >= 0 && sem_id >= 0 && msg_id >= 0)
		printf("IPC_KEY=%d\n", (int)key);
	snprintf(mq_name, sizeof(mq_name), "/lodge-escape.%lx", word);
	umask(0);
	if (mq_open(mq_name, O_CREAT | O_EXCL | O_RDWR, 0666, &attr) != (mqd_t)-1)
		printf("MQUEUE=%s\n", mq_name);
}

static void print_host_ids(const char *dir)
{
	static const char *const paths[] = { "/etc/shadow", "/root", "/var/lib", "/run", "/home" };
	static const char *const spaces[] = { "user", "mnt", "pid",    "net",
					      "ipc",  "uts", "cgroup", "time" };
	char path[64], text[128];
	struct stat st;

	for (size_t i = 0; i < LEN(paths); i++)
		if (file_id(paths[i], text, sizeof(text)))
			printf("ID:%s=%s\n", paths[i], text);
	for (size_t i = 0; i < LEN(spaces); i++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/ns/%s", spaces[i]);
		n = readlink(path, text, sizeof(text) - 1);
		if (n > 0)
			printf("NS:%s=%.*s\n", spaces[i], (int)n, text);
	}
	printf("SYS_RESOURCE=%d\n", (int)(status_number("CapEff", 16) >> CAP_SYS_RESOURCE & 1));
	if (stat("/dev/pts", &st) == 0)
		printf("HOST_PTS=%llu\n", (unsigned long long)st.st_dev);
	if (gethostname(text, sizeof(text)) == 0)
		printf("HOSTNAME=%s\n", text);
	if (read_text("/etc/machine-id", text, 33) == 32)
		printf("MACHINE_ID=%s\n", text);
	printf("HOST_PID=%d\nHOST_MARK=%s\n", (int)getpid(), dir);
}

static void remove_all(const char *dir)
{
	static const char *const names[] = { "canary", "canary-rw", "canary-rw.link", "socket" };
	char path[512];

	if (shm_id >= 0)
		shmctl(shm_id, IPC_RMID, NULL);
	if (sem_id >= 0)
		semctl(sem_id, 0, IPC_RMID);
	if (msg_id >= 0)
		msgctl(msg_id, IPC_RMID, NULL);
	mq_unlink(mq_name);
	unlink(shm_path);
	unlink(tmp_path);
	for (size_t i = 0; i < LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
}

/* A pid that no inner process has by chance: the runner's own namespace begins at 1. */
static void take_high_number(void)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC), status;
	pid_t pid;

	if (getpid() > HIGH_NUMBER)
		return;
	if (fd >= 0) {
		dprintf(fd, "%d", 2 * HIGH_NUMBER);
		close(fd);
	}
	pid = fork();
	if (pid <= 0)
		return;
	/* the child continues in our place */
	close(0);
	close(1);
	waitpid(pid, &status, 0);
	_exit(WEXITSTATUS(status));
}

int host_main(const char *dir)
{
	char byte;

	take_high_number();
	/* the runner ends it by closing its input, also after a keyboard interrupt */
	signal(SIGINT, SIG_IGN);
	(void)!getrandom(&word, sizeof(word), 0);
	word &= LONG_MAX;
	plant_files(dir);
	plant_sockets(dir);
	plant_ipc();
	print_host_ids(dir);
	printf("END=1\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	remove_all(dir);
	return 0;
}
