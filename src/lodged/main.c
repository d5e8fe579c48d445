/* SPDX-License-Identifier: Apache-2.0 */
/* lodged: serves sessions over HTTP. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/routes.h"
#include "base/array.h"
#include "lodged/config.h"
#include "lodged/config_check.h"
#include "lodged/daemon.h"
#include "sandbox/guest_exec.h"
#include "sandbox/home_dir.h"
#include "sandbox/keeper_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/guest_exec_sync.h"

enum { EXIT_NO = 1, EXIT_USAGE = 2, CHECK_MS = 10000 };

static const char usage[] =
	"Serve sandboxes over HTTP.\n"
	"\n"
	"Usage: lodged [OPTION...]\n"
	"       lodged --check | --print-routes | --version | --help\n"
	"\n"
	"Options\n"
	"  --config FILE       read settings from FILE, see lodged.conf(5)\n"
	"  --data DIR          data directory (also --home)\n"
	"  --listen ADDRESS    ADDRESS:PORT or unix:PATH, repeatable (127.0.0.1:7070);\n"
	"                      unix:DATA/lodge.sock is always open\n"
	"  --user NAME         user to run as when started as root (lodge, or 60777)\n"
	"  --log-format FORMAT auto, text or json (auto: text on a terminal)\n"
	"  --stop-sandboxes    hibernate all sandboxes on exit\n"
	"  --require-limits    do not start if limits cannot be enforced on this host\n"
	"  --insecure-no-auth  accept requests without a key, on loopback and unix\n"
	"                      sockets only\n"
	"  --SETTING VALUE     any setting of lodged.conf(5) except api_key:\n"
	"                      --max-active 80\n"
	"\n"
	"Other actions\n"
	"  --check             check the settings and run a command in a sandbox\n"
	"  --print-routes      list the HTTP routes and the scopes they require\n"
	"  --version           print the version\n"
	"  -h, --help          show this help\n"
	"\n"
	"Examples\n"
	"  lodged --data /srv/lodge --listen 127.0.0.1:8080\n"
	"  lodged --config /etc/lodge/lodged.conf --check\n";

static int run_test_command(const char *home, double *ret_ms, struct err *err)
{
	auto_call(keeper_client_free) struct keeper_client *k = NULL;
	auto_call(sandbox_free) struct sandbox *sb = NULL;
	struct keeper_client_opts how = { .home = home, .oneshot = true };
	struct sandbox_spec spec = sandbox_spec_default();
	struct guest_exec_spec x = { .text = "echo lodge", .timeout_ms = CHECK_MS };
	struct guest_exec_output o;
	bool right;

	if (keeper_client_spawn(&how, &k, err) < 0 || sandbox_new(k, &spec, &sb, err) < 0 ||
	    guest_exec_run(sb, &x, NULL, 0, &o, err) < 0)
		return -1;
	right = o.result.code == 0 && !strcmp(o.out, "lodge\n");
	guest_exec_output_fini(&o);
	*ret_ms = (double)sandbox_ready_us(sb) / 1000;
	return right ? 0 : err_set(err, ERR_INTERNAL, "the test command failed in the sandbox");
}

static int check(const struct config *c, struct err *err)
{
	char home[HOME_DIR_SIZE];
	double ms;

	if (home_dir_find(c->data, home, err) < 0 || run_test_command(home, &ms, err) < 0)
		return -1;
	printf("sandboxes work (started in %.1f ms, data directory %s)\n", ms, home);
	return 0;
}

static void print_route(const struct api_route *r)
{
	static const char *const scopes[] = { "-", "session", "tenant", "admin" };

	printf("%-7s %-45s %s\n", r->method, r->path, scopes[r->scope]);
}

/* ---- settings -------------------------------------------------------------------------------- */

enum action { SERVE, CHECK, PRINT_ROUTES, VERSION, HELP };

struct invocation {
	int argc;
	char **argv;
	enum action action;
	const char *config;
};

/* --max-active 80 is max_active = 80. api_key is not an option: other users can see arguments. */
static int take_setting(struct config *c, const char *option, const char *value, struct err *err)
{
	char name[64];
	size_t n = strlen(option);

	if (n <= 2 || n >= sizeof(name) || strncmp(option, "--", 2) != 0 || strchr(option, '_'))
		return err_set(err, ERR_INVALID, "unknown option \"%.40s\" (try --help)", option);
	for (size_t i = 2; i <= n; i++)
		name[i - 2] = (char)(option[i] == '-' ? '_' : option[i]);
	if (!config_is_setting(name) || !strcmp(name, "api_key"))
		return err_set(err, ERR_INVALID, "unknown option \"%.40s\" (try --help)", option);
	if (!value)
		return err_set(err, ERR_INVALID, "%s: missing value", option);
	return config_set(c, CONF_COMMAND, name, value, err) < 0 ? -1 : 1;
}

/* Returns 1 if the option used the next argument. */
static int take_option(struct invocation *m, struct config *c, const char *option,
		       const char *value, struct err *err)
{
	static const struct {
		const char *option;
		enum action action;
	} actions[] = {
		{ "--check", CHECK },	  { "--print-routes", PRINT_ROUTES },
		{ "--version", VERSION }, { "--help", HELP },
		{ "-h", HELP },
	};

	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (!strcmp(option, actions[i].option)) {
			m->action = actions[i].action;
			return 0;
		}
	if (!strcmp(option, "--stop-sandboxes") || !strcmp(option, "--insecure-no-auth") ||
	    !strcmp(option, "--require-limits"))
		return take_setting(c, option, "1", err) < 0 ? -1 : 0;
	if (!strcmp(option, "--config")) {
		if (!value)
			return err_set(err, ERR_INVALID, "%s: missing value", option);
		m->config = value;
		return 1;
	}
	return take_setting(c, !strcmp(option, "--home") ? "--data" : option, value, err);
}

/* Call config_fini() on *ret, also after a failure. */
static int load(void *arg, struct config *ret, struct err *err)
{
	struct invocation *m = arg;

	config_init(ret);
	m->config = secure_getenv("LODGE_CONFIG");
	for (int i = 1; i < m->argc; i++) {
		const char *value = i + 1 < m->argc ? m->argv[i + 1] : NULL;
		int n = take_option(m, ret, m->argv[i], value, err);

		if (n < 0)
			return -1;
		i += n;
	}
	if (m->action >= PRINT_ROUTES)
		return 0;
	if (config_environment(ret, secure_getenv, err) < 0 ||
	    (m->config && *m->config && config_read(ret, m->config, err) < 0))
		return -1;
	return config_check(ret, err);
}

static int act(struct invocation *m, struct config *c, struct err *err)
{
	switch (m->action) {
	case CHECK:
		return check(c, err);
	case PRINT_ROUTES:
		api_each_route(print_route);
		return 0;
	case VERSION:
		puts("lodged " LODGE_VERSION);
		return 0;
	case HELP:
		fputs(usage, stdout);
		return 0;
	case SERVE:
		break;
	}
	return serve(c, load, m, err);
}

int main(int argc, char **argv)
{
	struct invocation m = { .argc = argc, .argv = argv };
	struct config c;
	struct err err;
	int r;

	signal(SIGPIPE, SIG_IGN);
	r = load(&m, &c, &err) < 0 ? EXIT_USAGE : act(&m, &c, &err) < 0 ? EXIT_NO : 0;
	if (r)
		fprintf(stderr, "lodged: %s\n", err.msg);
	config_fini(&c);
	return r;
}
