/* SPDX-License-Identifier: Apache-2.0 */
#include "lodged/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/api.h"
#include "api/core/prometheus.h"
#include "base/file_io.h"
#include "engine/keeper_conn.h"
#include "http/listen.h"
#include "http/server.h"
#include "lodged/address_file.h"
#include "lodged/config_check.h"
#include "lodged/first_key.h"
#include "lodged/daemon_log.h"
#include "lodged/service_user.h"
#include "lodged/keeper_starter.h"
#include "sandbox/home_dir.h"
#include "sandbox/keeper_spawn.h"
#include "service/service_admin.h"
#include "service/engine_open.h"
#include "service/startup.h"

enum { PEM_MAX = 256 << 10, ADDRESS_SIZE = 256, SLICE_MS = 100, EXIT_S = 15 };

static const char default_address[] = "127.0.0.1:7070";

struct daemon {
	const struct config *conf;
	char home[HOME_DIR_SIZE];
	char socket[HOME_DIR_SIZE + 32]; /* "unix:...": the last address */
	const char *listen[CONF_LIST_MAX + 2];
	struct engine *engine;
	struct api *api;
	struct http_server *http;
	char *addresses; /* one per line, printed when the service is ready */
	struct err failed; /* why the start failed for good; written before has_failed is set */
	atomic_bool has_failed;
	char *cert, *key;
	int starter; /* socket of the keeper starter; -1: this process starts the keeper */
	int packer; /* lodge-zstd, opened before root was dropped; -1: not used */
	char packer_path[64];
};

/* ---- settings to options --------------------------------------------------------------------- */

/* Whether an address is lodge.sock in the data directory, however it is spelled. */
static bool is_own_socket(const struct daemon *d, const char *address)
{
	const char *path = address + 5, *slash = strrchr(path, '/');
	auto_free char *dir = NULL;
	struct stat its, home;

	if (strncmp(address, "unix:", 5) != 0 ||
	    strcmp(slash ? slash + 1 : path, "lodge.sock") != 0)
		return false;
	dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	return dir && stat(dir, &its) == 0 && stat(d->home, &home) == 0 &&
	       its.st_dev == home.st_dev && its.st_ino == home.st_ino;
}

/* The socket in the data directory is always the last: the commands on this machine find it there.
 * If its path is too long for a socket, other addresses can replace it. */
static void set_addresses(struct daemon *d)
{
	char *const *given = d->conf->listen;
	bool has_socket = false;
	struct err ignored;
	size_t n = 0;

	snprintf(d->socket, sizeof(d->socket), "unix:%s/lodge.sock", d->home);
	for (; given && given[n]; n++) {
		d->listen[n] = given[n];
		has_socket |= is_own_socket(d, given[n]);
	}
	if (!n)
		d->listen[n++] = default_address;
	if (given && http_address_check(d->socket, &ignored) < 0)
		log_line(LEVEL_WARN, "not listening on %s: the path is too long", d->socket);
	else if (!has_socket)
		d->listen[n++] = d->socket;
	d->listen[n] = NULL;
}

static int open_engine(struct daemon *d, struct err *err)
{
	struct engine_opts o;

	config_engine(d->conf, &o);
	o.home = d->home;
	o.socket = d->listen[0];
	if (d->starter >= 0) {
		o.start_keeper = keeper_starter_ask;
		o.start_arg = &d->starter;
		o.zstd_program = d->packer_path;
	}
	return engine_open_store(&o, &d->engine, err);
}

static int open_api(struct daemon *d, struct err *err)
{
	const struct config *c = d->conf;
	struct api_opts o = {
		.engine = d->engine,
		.version = LODGE_VERSION,
		.origins = (const char *const *)c->origins,
		.hosts = (const char *const *)c->hosts,
		.loopback_only = config_is_loopback(c),
		.rate = (unsigned)c->rate,
		.burst = (unsigned)c->burst,
		.concurrent = (unsigned)c->concurrent,
		.no_auth = c->insecure_no_auth,
		.on_error = log_error,
		.chat_lifetime_ms = (int64_t)c->chat_lifetime,
	};

	config_threads(c, &o.threads);
	return api_new(&o, &d->api, err);
}

static void on_request(void *arg, const struct http_request *rq, unsigned status, uint64_t bytes,
		       uint64_t us)
{
	api_count_request(arg, status);
	log_request(rq, status, bytes, us);
}

static int read_pem(const char *path, char **ret, struct err *err)
{
	auto_free char *text = malloc(PEM_MAX);
	ssize_t n;

	if (!text)
		return err_sys(err, ENOMEM, "%s", path);
	n = file_read_at(AT_FDCWD, path, text, PEM_MAX);
	if (n < 0)
		return err_sys(err, (int)-n, "%s", path);
	*ret = steal_ptr(&text);
	return 0;
}

/* Connections and sandboxes need descriptors. */
static void raise_file_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur == l.rlim_max)
		return;
	l.rlim_cur = l.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &l);
}

/* Leaves half of the descriptors for the work of the connections. */
static unsigned get_max_connections(uint64_t configured)
{
	uint64_t max = configured ? configured : HTTP_CONNECTIONS;
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && max > l.rlim_cur / 2)
		max = l.rlim_cur / 2;
	return (unsigned)max;
}

static int open_http(struct daemon *d, struct err *err)
{
	const struct config *c = d->conf;
	struct http_opts o = {
		.handler = api_handle,
		.arg = d->api,
		.admit = api_admit,
		.log = on_request,
		.max_connections = get_max_connections(c->max_connections),
		.max_per_address = (unsigned)c->max_per_address,
		.max_requests = (unsigned)c->max_requests,
		.max_head = c->max_head,
		.idle_s = (unsigned)((c->connection_idle + 999) / 1000),
		.slow_s = (unsigned)((c->connection_slow + 999) / 1000),
		.trusted_proxies = (const char *const *)c->trusted_proxies,
		.tls_cert = d->cert,
		.tls_key = d->key,
	};

	return http_server_new(&o, &d->http, err);
}

static int listen_on(struct daemon *d, const char *address, FILE *lines, struct err *err)
{
	const char *scheme = d->cert ? "https://" : "http://";
	char bound[ADDRESS_SIZE] = "";
	bool is_unix = strncmp(address, "unix:", 5) == 0;

	if (http_server_listen(d->http, address, (mode_t)d->conf->socket_mode, bound, sizeof(bound),
			       err) < 0)
		return -1;
	fprintf(lines, "%s%s\n", is_unix ? "" : scheme, *bound ? bound : address);
	if (!d->cert && !config_address_is_loopback(address))
		log_line(LEVEL_WARN,
			 "listening on %s without TLS: API keys cross the network in clear text",
			 address);
	return 0;
}

/* Requests are served from here on, but most wait for the engine. */
static int listen_all(struct daemon *d, struct err *err)
{
	size_t len;
	FILE *lines = open_memstream(&d->addresses, &len);
	int r = 0;

	if (!lines)
		return err_sys(err, errno, "addresses");
	address_file_remove(d->home);
	for (const char *const *a = d->listen; r == 0 && *a; a++)
		r = listen_on(d, *a, lines, err);
	if (fclose(lines) != 0 && r == 0)
		r = err_sys(err, errno, "addresses");
	return r < 0 ? -1 : address_file_write(d->home, d->addresses, err);
}

/* ---- start of the engine --------------------------------------------------------------------- */

/* Tells systemd about a change of state. */
static void notify(const char *state)
{
	const char *path = secure_getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	auto_close int fd = -1;

	if (len < 2 || len >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

static void give_up(struct daemon *d, const struct err *why)
{
	d->failed = *why;
	d->has_failed = true;
	(void)kill(getpid(), SIGTERM); /* wakes run() */
}

/* Programs read the lines on standard output; on a terminal the log has them. */
static int print_addresses(struct daemon *d)
{
	bool log = log_is_text() && isatty(STDOUT_FILENO);
	char *rest = d->addresses, *line;

	while ((line = strsep(&rest, "\n")) && *line) {
		if (log)
			log_line(LEVEL_INFO, "listening on %s", line);
		else
			printf("lodged: listening on %s\n", line);
	}
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : -1;
}

/* Default limits of sessions; those that a request sets are enforced or refused. */
static void warn_unenforced(struct daemon *d)
{
	char text[ENFORCEMENT_TEXT];
	struct enforcement f;

	keeper_conn_enforcement(d->engine, &f);
	if (*enforcement_describe(&f, KEEPER_STORE_DISK, KEEPER_DEMAND_CGROUP | KEEPER_DEMAND_DISK,
				  text))
		log_line(LEVEL_WARN,
			 "not enforced on this host: %s; see `lodge doctor`, or set require_limits",
			 text);
}

static void on_started(void *arg, const struct err *why, int64_t again_ms)
{
	struct daemon *d = arg;
	struct err err;

	if (why && again_ms) {
		log_line(LEVEL_ERROR, "start failed: %s; retrying in %lld ms", why->msg,
			 (long long)again_ms);
		return;
	}
	if (why) {
		give_up(d, why);
		return;
	}
	warn_unenforced(d);
	if (print_addresses(d) < 0) {
		err_sys(&err, errno, "standard output");
		give_up(d, &err);
	} else {
		notify("READY=1");
	}
}

/* ---- running --------------------------------------------------------------------------------- */

static int hold_packer(struct daemon *d, struct err *err)
{
	char path[HOME_DIR_SIZE];

	if (keeper_spawn_find("lodge-zstd", path, sizeof(path), err) < 0)
		return -1;
	d->packer = open(path, O_PATH | O_CLOEXEC);
	if (d->packer < 0)
		return err_sys(err, errno, "%s", path);
	snprintf(d->packer_path, sizeof(d->packer_path), "/proc/%d/fd/%d", getpid(), d->packer);
	return 0;
}

/* Afterwards this process has only the permissions of an unprivileged user. */
static int drop_root(struct daemon *d, struct err *err)
{
	struct service_user o;

	if (geteuid() != 0)
		return d->conf->user ? err_set(err, ERR_DENIED,
					       "user: only root can switch to another user")
				     : 0;
	if (service_user_find(d->conf->user, &o, err) < 0 ||
	    service_user_data(d->home, &o, err) < 0 || hold_packer(d, err) < 0 ||
	    keeper_starter_fork(d->home, &d->starter, err) < 0)
		return -1;
	return service_user_become(&o, d->home, err);
}

static int start(struct daemon *d, struct err *err)
{
	const struct config *c = d->conf;
	bool created;

	if (c->tls_cert &&
	    (read_pem(c->tls_cert, &d->cert, err) < 0 || read_pem(c->tls_key, &d->key, err) < 0))
		return -1;
	raise_file_limit();
	if (home_dir_find(c->data, d->home, err) < 0 || drop_root(d, err) < 0)
		return -1;
	set_addresses(d);
	if (open_engine(d, err) < 0 || first_key(d->engine, c->api_key, &created, err) < 0 ||
	    open_api(d, err) < 0 || open_http(d, err) < 0)
		return -1;
	if (c->insecure_no_auth) /* an error, so that every log_level shows it */
		log_line(LEVEL_ERROR,
			 "INSECURE: authentication is off (insecure_no_auth): any local process "
			 "has full access to tenant \"default\"");
	if (created)
		log_line(LEVEL_WARN, "created admin key %s/admin.key", d->home);
	return listen_all(d, err) < 0 ? -1 : engine_start(d->engine, on_started, d, err);
}

/* Reloads the settings that need no restart. */
static void reload(struct daemon *d, serve_load_fn *load, void *arg)
{
	struct config c;
	struct err err;

	if (load(arg, &c, &err) < 0 || api_reload(d->api, (const char *const *)c.origins,
						  (const char *const *)c.hosts, &err) < 0)
		log_line(LEVEL_ERROR, "reload failed, keeping the previous settings: %s", err.msg);
	else {
		log_set_level((enum conf_level)c.log_level);
		log_line(LEVEL_INFO, "reloaded log_level, origins and hosts");
	}
	config_fini(&c);
}

/* A second signal ends the wait. */
static void drain(struct daemon *d, const sigset_t *signals)
{
	const struct timespec now = { 0 };
	struct http_metrics n;
	int signo;

	for (uint64_t ms = 0; ms < d->conf->drain; ms += SLICE_MS) {
		http_server_drain(d->http, SLICE_MS);
		http_server_metrics(d->http, &n);
		signo = sigtimedwait(signals, NULL, &now);
		if (!n.requests || signo == SIGTERM || signo == SIGINT)
			return;
	}
}

static int run(struct daemon *d, const sigset_t *signals, serve_load_fn *load, void *arg,
	       struct err *err)
{
	unsigned left = 0;
	int signo;

	while (sigwait(signals, &signo) != 0 || signo == SIGHUP)
		reload(d, load, arg);
	if (d->has_failed) {
		*err = d->failed;
		return -1;
	}
	log_line(LEVEL_INFO, "%s: shutting down, waiting for open requests", sigdescr_np(signo));
	notify("STOPPING=1");
	api_drain(d->api);
	drain(d, signals);
	if (d->conf->stop_sandboxes && engine_is_ready(d->engine))
		left = engine_hibernate_all(d->engine, "lodged");
	if (left)
		log_line(LEVEL_WARN, "could not hibernate %u sandboxes; they keep running", left);
	return 0;
}

/* Loses nothing: the next lodged continues everything, as after a crash. */
static void exit_now(int signo)
{
	(void)signo;
	_exit(0);
}

/* A sandbox that does not respond must not prevent the exit. */
static void limit_exit_time(void)
{
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	(void)sigaction(SIGALRM, &(struct sigaction){ .sa_handler = exit_now }, NULL);
	(void)pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	(void)alarm(EXIT_S);
}

/* In this order: each part uses those freed after it. */
static void stop(struct daemon *d)
{
	if (d->addresses)
		address_file_remove(d->home);
	http_server_free(d->http);
	api_free(d->api);
	engine_close(d->engine);
	free(d->addresses);
	free(d->cert);
	free(d->key);
	if (d->packer >= 0)
		close(d->packer);
	if (d->starter >= 0)
		close(d->starter);
}

/* The key was read. Neither child processes nor readers of our environment may see it. */
static void clear_key(void)
{
	char *key = secure_getenv("LODGE_API_KEY");

	if (key)
		explicit_bzero(key, strlen(key));
	(void)unsetenv("LODGE_API_KEY"); /* NOLINT(concurrency-mt-unsafe): no threads yet */
}

int serve(const struct config *c, serve_load_fn *load, void *arg, struct err *err)
{
	struct daemon d = { .conf = c, .starter = -1, .packer = -1 };
	sigset_t signals;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL); /* inherited by all threads */
	log_set_level((enum conf_level)c->log_level);
	log_set_format((enum log_format)c->log_format);
	clear_key();
	r = start(&d, err);
	if (r == 0)
		r = run(&d, &signals, load, arg, err);
	limit_exit_time();
	stop(&d);
	return r;
}
