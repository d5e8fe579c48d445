/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of the daemon: the file, the environment, and their precedence. */
#include "lodged/config.h"
#include "lodged/config_check.h"
#include "session/capacity.h"
#include "thread/thread.h"

#include "tap.h"

static struct config c;
static struct err err;

static int parse(const char *text)
{
	config_fini(&c);
	config_init(&c);
	return config_parse(&c, "f", text, &err);
}

static void a_file_is_read(void)
{
	CHECK(parse("# a comment\n\n  data=/d \r\n\tmax_active =  12\nidle_timeout = 1.5m\n"
		    "max_head = 64k\nlog_level = warn\nsocket_mode = 0660\n"
		    "listen = 127.0.0.1:1\nlisten = unix:/s, [::1]:2\norigins =\n") == 0);
	CHECK_STR(c.data, "/d");
	CHECK(c.max_active == 12 && c.idle_timeout == 90000 && c.max_head == 65536);
	CHECK(c.log_level == LEVEL_WARN && c.socket_mode == 0660 && !c.origins);
	CHECK_STR(c.listen[0], "127.0.0.1:1");
	CHECK_STR(c.listen[1], "unix:/s");
	CHECK_STR(c.listen[2], "[::1]:2");
	CHECK(!c.listen[3] && config_check(&c, &err) == 0);
}

static void errors_name_the_line(void)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "data = /d\nnothing = 1\n",
		  "f:2: unknown setting \"nothing\" (see lodged.conf(5))" },
		{ "\n\ndata\n", "f:3: expected \"name = value\"" },
		{ "data = /a\ndata = /b\n", "f:2: data: set twice" },
		{ "log_level = loud\n", "f:1: log_level: must be error, warn, info or debug" },
		{ "socket_mode = 999\n", "f:1: socket_mode: must be an octal mode such as 0660" },
		{ "= 1\n", "f:1: unknown setting \"\" (see lodged.conf(5))" },
		{ "api_key = tooshort\n", "f:1: api_key: must have at least 16 characters" },
		{ "\nlisten = 7070\n",
		  "f:2: listen: '7070' is not ADDRESS:PORT, such as 127.0.0.1:7070" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(parse(bad[i].text) == -1 && err.code == ERR_INVALID);
		CHECK_STR(err.msg, bad[i].says);
	}
	CHECK(parse("max_active = many\n") == -1 && strstr(err.msg, "max_active"));
	CHECK(parse("max_active = -1\n") == -1);
	CHECK(parse("idle_timeout = 5 parsecs\n") == -1 && strstr(err.msg, "f:1"));
}

static char *environment(const char *name)
{
	static char data[] = "/env", listen[] = "unix:/e", nothing[] = "";

	if (!strcmp(name, "LODGE_DATA"))
		return data;
	if (!strcmp(name, "LODGE_LISTEN"))
		return listen;
	return !strcmp(name, "LODGE_POOL") ? nothing : NULL;
}

static void the_command_line_comes_first(void)
{
	config_fini(&c);
	config_init(&c);
	CHECK(config_set(&c, CONF_COMMAND, "listen", "unix:/c", &err) == 0);
	CHECK(config_set(&c, CONF_COMMAND, "listen", "unix:/d", &err) == 0);
	CHECK(config_environment(&c, environment, &err) == 0);
	CHECK(config_parse(&c, "f", "data = /file\nlisten = unix:/f\npool = 3\n", &err) == 0);
	CHECK_STR(c.data, "/env");
	CHECK_STR(c.listen[0], "unix:/c");
	CHECK_STR(c.listen[1], "unix:/d");
	CHECK(!c.listen[2] && c.pool == 3);
}

static void conflicting_settings_are_refused(void)
{
	CHECK(parse("tls_cert = /c\n") == 0 && config_check(&c, &err) == -1);
	CHECK(parse("") == 0 && config_check(&c, &err) == 0);
}

static void a_time_above_its_maximum_is_refused(void)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "idle_timeout = 2h\nidle_timeout_max = 1h\n",
		  "idle_timeout: 2h is more than idle_timeout_max (1h): raise idle_timeout_max or "
		  "lower idle_timeout" },
		{ "idle_timeout = 2d\n",
		  "idle_timeout: 2d is more than idle_timeout_max (1d): raise idle_timeout_max or "
		  "lower idle_timeout" },
		{ "lifetime = 10d\n",
		  "lifetime: 10d is more than lifetime_max (5h): raise lifetime_max or lower "
		  "lifetime" },
		{ "chat_lifetime = 6h\n",
		  "chat_lifetime: 6h is more than lifetime_max (5h): raise lifetime_max or lower "
		  "chat_lifetime" },
		{ "projects_lifetime = 2h\nlifetime_max = 1h\n",
		  "projects_lifetime: 2h is more than lifetime_max (1h): raise lifetime_max or "
		  "lower projects_lifetime" },
		{ "threads_idle = 2h\nidle_timeout_max = 1h\n",
		  "threads_idle: 2h is more than idle_timeout_max (1h): raise idle_timeout_max or "
		  "lower threads_idle" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(parse(bad[i].text) == 0 && config_check(&c, &err) == -1);
		CHECK_STR(err.msg, bad[i].says);
	}
	CHECK(parse("lifetime = 10d\nlifetime_max = 10d\n") == 0 && config_check(&c, &err) == 0);
	/* defaults follow their maximum */
	CHECK(parse("lifetime_max = 10m\nidle_timeout_max = 5m\n") == 0);
	CHECK(config_check(&c, &err) == 0);
}

static void maximum_limits_have_bounds_and_lower_those_of_threads(void)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "limits_max_memory = 1M\n",
		  "f:1: limits_max_memory: must be between 4M and 16T" },
		{ "limits_max_disk = 1k\n", "f:1: limits_max_disk: must be between 1M and 64T" },
		{ "limits_max_cpus = 2000\n",
		  "f:1: limits_max_cpus: must be between 0.01 and 1024" },
	};
	struct engine_opts o;
	struct thread_config t;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(parse(bad[i].text) == -1 && err.code == ERR_INVALID);
		CHECK_STR(err.msg, bad[i].says);
	}
	CHECK(parse("limits_max_pids = 1\n") == -1 && strstr(err.msg, "limits_max_pids"));
	CHECK(parse("limits_max_memory = 64M\nlimits_max_disk = 80M\nlimits_max_cpus = 0.1\n"
		    "limits_max_pids = 50\nthreads_memory = 1G\n") == 0);
	CHECK(config_check(&c, &err) == 0);
	config_engine(&c, &o);
	CHECK(o.limits_max.memory_bytes == 64 << 20 && o.limits_max.cpu_milli == 100);
	config_threads(&c, &t);
	CHECK(thread_config_check(&t, &err) == 0);
	CHECK(t.memory_bytes == 64 << 20 && t.cpu_milli == 100 && t.pids == 50);
	CHECK(t.disk_bytes == 80 << 20 && t.file_bytes == 80 << 20);
	CHECK(parse("limits_max_memory = 0\nlimits_max_disk = 0\nlimits_max_cpus = 0\n"
		    "limits_max_pids = 0\n") == 0);
	config_engine(&c, &o);
	CHECK(!o.limits_max.memory_bytes && !o.limits_max.disk_bytes && !o.limits_max.pids);
}

static void capacity_follows_from_the_memory(void)
{
	CHECK(parse("") == 0 && config_check(&c, &err) == 0);
	CHECK(c.max_active == capacity_default() && c.max_active >= 4);
	CHECK(c.pool <= 10 && c.pool_min <= 3 && c.pool_min <= c.pool);
	CHECK(parse("max_active = auto\npool = 1024\n") == 0 && config_check(&c, &err) == 0);
	CHECK(c.max_active >= 1024 && c.pool == 1024 && c.pool_min == 3);
	CHECK(parse("max_active = 1\npool = auto\n") == 0 && config_check(&c, &err) == 0);
	CHECK(c.max_active == 1 && c.pool <= 1);
	CHECK(parse("max_active = 0\npool = 0\npool_min = auto\n") == 0);
	CHECK(config_check(&c, &err) == 0 && !c.max_active && !c.pool && !c.pool_min);
}

static void settings_of_threads_are_checked_together(void)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "pool_min = 4\npool = 3\n", "pool_min: must not exceed pool" },
		{ "pool = 11\nmax_active = 10\n", "pool: must not exceed max_active" },
		{ "threads_file_size = 2M\nthreads_disk = 1M\n",
		  "threads_file_size: must not exceed threads_disk" },
		{ "threads_memory = 1k\n", "threads: memory_bytes: must be between 4M and 16T" },
		{ "threads_cpus = 9000\n",
		  "threads: cpu_milli: must be between 0.01 and 1024 cpus" },
		{ "pool = 1025\n", "pool: must be at most 1024" },
		{ "pool = 1025\nmax_active = 0\n", "pool: must be at most 1024" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(parse(bad[i].text) == 0 && config_check(&c, &err) == -1);
		CHECK_STR(err.msg, bad[i].says);
	}
	CHECK(parse("pool_min = 3\npool = 10\nmax_active = 80\nthreads_cpus = 0.25\n"
		    "threads_user = 2000\nthreads_workdir = /w\nthreads_network = none\n") == 0);
	CHECK(config_check(&c, &err) == 0 && c.threads_cpus == 250);
	CHECK(parse("\nthreads_user = root\n") == -1 && strstr(err.msg, "f:2: threads_user"));
	CHECK(parse("threads_user = 0\n") == -1);
	CHECK(parse("threads_workdir = w\n") == -1 && strstr(err.msg, "f:1: threads_workdir"));
	CHECK(parse("threads_network = full\n") == -1 && strstr(err.msg, "f:1: threads_network"));
}

static void without_keys_only_loopback_is_allowed(void)
{
	CHECK(parse("insecure_no_auth = 1\n") == 0 && config_check(&c, &err) == 0);
	CHECK(parse("insecure_no_auth = 1\nlisten = 127.0.0.9:1, [::1]:2, unix:/s\n") == 0);
	CHECK(config_check(&c, &err) == 0);
	CHECK(parse("insecure_no_auth = 1\nlisten = 127.0.0.1:1, 0.0.0.0:2\n") == 0);
	CHECK(config_check(&c, &err) == -1 && strstr(err.msg, "loopback"));
	CHECK(parse("insecure_no_auth = 1\nlisten = [::]:2\n") == 0 &&
	      config_check(&c, &err) == -1);
	CHECK(parse("insecure_no_auth = 2\n") == -1);
}

static void an_unreadable_file_is_refused(void)
{
	config_fini(&c);
	config_init(&c);
	CHECK(config_read(&c, "/nonexistent/lodged.conf", &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(config_read(&c, "/dev/zero", &err) == -1 && err.code == ERR_INVALID);
	CHECK(config_read(&c, "/dev/null", &err) == 0);
}

int main(void)
{
	RUN(a_file_is_read);
	RUN(errors_name_the_line);
	RUN(the_command_line_comes_first);
	RUN(conflicting_settings_are_refused);
	RUN(a_time_above_its_maximum_is_refused);
	RUN(capacity_follows_from_the_memory);
	RUN(maximum_limits_have_bounds_and_lower_those_of_threads);
	RUN(settings_of_threads_are_checked_together);
	RUN(without_keys_only_loopback_is_allowed);
	RUN(an_unreadable_file_is_refused);
	config_fini(&c);
	return tap_done();
}
