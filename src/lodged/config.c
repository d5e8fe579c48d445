/* SPDX-License-Identifier: Apache-2.0 */
#include "lodged/config.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/core/auth.h"
#include "base/array.h"
#include "base/file_io.h"
#include "base/units.h"
#include "http/listen.h"
#include "http/proxy_addr.h"
#include "lodged/service_user.h"
#include "sandbox/template/template.h"

enum {
	FILE_MAX = 64 << 10,
	SECRET_MIN = 16,
};

/* ---- values ---------------------------------------------------------------------------------- */

const char *const config_levels[] = { [LEVEL_ERROR] = "error",
				      [LEVEL_WARN] = "warn",
				      [LEVEL_INFO] = "info",
				      [LEVEL_DEBUG] = "debug",
				      [LEVEL_DEBUG + 1] = NULL };

static int set_text(const char *name, const char *value, char **to, struct err *err)
{
	char *copy = *value ? strdup(value) : NULL;

	if (*value && !copy)
		return err_sys(err, ENOMEM, "settings");
	(void)name;
	free(*to);
	*to = copy;
	return 0;
}

/* Errors must not repeat the value. */
static int set_secret(const char *name, const char *value, char **to, struct err *err)
{
	const char *same;

	if (strlen(value) < SECRET_MIN)
		return err_set(err, ERR_INVALID, "%s: must have at least %d characters", name,
			       SECRET_MIN);
	if (auth_pick(NULL, value, &same, err) < 0)
		return err_ctx(err, "%s", name);
	return set_text(name, value, to, err);
}

static int set_user(const char *name, const char *value, char **to, struct err *err)
{
	struct service_user o;

	return *value && service_user_find(value, &o, err) < 0 ? -1
							       : set_text(name, value, to, err);
}

static int set_thread(const char *name, const char *value, char **to, struct err *err)
{
	bool user = strcmp(name, "threads_user") == 0;
	struct thread_config t = { .user = user && *value ? value : NULL,
				   .workdir = !user && *value ? value : NULL };

	return thread_config_check(&t, err) < 0 ? -1 : set_text(name, value, to, err);
}

static int set_name(const char *name, const char *value, char **to, struct err *err)
{
	if (*value && !template_name_is_valid(value))
		return err_set(err, ERR_INVALID, "%s: \"%.64s\" is not a valid name", name, value);
	return set_text(name, value, to, err);
}

static int set_network(const char *name, const char *value, char **to, struct err *err)
{
	if (strcmp(value, "none") != 0)
		return err_set(err, ERR_INVALID, "%s: must be \"none\" (sandboxes have no network)",
			       name);
	return set_text(name, value, to, err);
}

static int set_size(const char *name, const char *value, uint64_t min, uint64_t max, uint64_t *to,
		    struct err *err)
{
	char least[SIZE_TEXT], most[SIZE_TEXT];
	uint64_t n;

	if (units_parse_bytes(name, value, &n, err) < 0)
		return -1;
	if (n < min || n > max)
		return err_set(err, ERR_INVALID, "%s: must be between %s and %s", name,
			       units_format(min, least), units_format(max, most));
	*to = n;
	return 0;
}

static int set_reserve(const char *name, const char *value, uint64_t *to, struct err *err)
{
	return set_size(name, value, LIMITS_RESERVE_MIN, LIMITS_RESERVE_MAX, to, err);
}

/* 0: no maximum. */
static bool is_zero(const char *value, uint64_t *to)
{
	if (strcmp(value, "0") != 0)
		return false;
	*to = 0;
	return true;
}

static int set_max_memory(const char *name, const char *value, uint64_t *to, struct err *err)
{
	return is_zero(value, to)
		       ? 0
		       : set_size(name, value, LIMITS_MEMORY_MIN, LIMITS_MEMORY_MAX, to, err);
}

static int set_max_disk(const char *name, const char *value, uint64_t *to, struct err *err)
{
	return is_zero(value, to)
		       ? 0
		       : set_size(name, value, LIMITS_DISK_MIN, LIMITS_DISK_MAX, to, err);
}

static int set_max_pids(const char *name, const char *value, uint64_t *to, struct err *err)
{
	if (is_zero(value, to))
		return 0;
	return units_parse_count(name, value, LIMITS_PIDS_MIN, LIMITS_PIDS_MAX, to, err);
}

static int set_max_cpus(const char *name, const char *value, uint64_t *to, struct err *err)
{
	uint64_t n;

	if (units_parse_milli(name, value, &n, err) < 0)
		return -1;
	if (n && (n < LIMITS_CPU_MILLI_MIN || n > LIMITS_CPU_MILLI_MAX))
		return err_set(err, ERR_INVALID, "%s: must be between 0.01 and 1024", name);
	*to = n;
	return 0;
}

static void list_clear(char ***list)
{
	for (size_t i = 0; *list && (*list)[i]; i++)
		free((*list)[i]);
	free(*list);
	*list = NULL;
}

/* Separated by blanks or commas. */
static int add_list(const char *name, const char *value, char ***list, struct err *err)
{
	static const char blank[] = " \t,";
	size_t n = 0, len;

	(void)name;
	while (*list && (*list)[n])
		n++;
	for (; *(value += strspn(value, blank)); value += len) {
		char **more = reallocarray(*list, n + 2, sizeof(*more));

		if (!more)
			return err_sys(err, ENOMEM, "settings");
		*list = more;
		more[n] = NULL;
		if (n == CONF_LIST_MAX)
			return err_set(err, ERR_INVALID, "a list may have at most %d entries",
				       CONF_LIST_MAX);
		len = strcspn(value, blank);
		more[n] = strndup(value, len);
		if (!more[n])
			return err_sys(err, ENOMEM, "settings");
		more[++n] = NULL;
	}
	return 0;
}

static int add_addresses(const char *name, const char *value, char ***list, struct err *err)
{
	if (add_list(name, value, list, err) < 0)
		return -1;
	for (size_t i = 0; *list && (*list)[i]; i++)
		if (http_address_check((*list)[i], err) < 0)
			return err_ctx(err, "%s", name);
	return 0;
}

static int add_proxies(const char *name, const char *value, char ***list, struct err *err)
{
	struct proxy_net ignored;

	if (add_list(name, value, list, err) < 0)
		return -1;
	for (size_t i = 0; *list && (*list)[i]; i++)
		if (proxy_net_parse((*list)[i], &ignored, err) < 0)
			return err_ctx(err, "%s", name);
	return 0;
}

/* The value is the position of the word. */
static int set_word(const char *const *words, const char *choices, const char *name,
		    const char *value, uint64_t *to, struct err *err)
{
	for (uint64_t i = 0; words[i]; i++)
		if (strcmp(words[i], value) == 0) {
			*to = i;
			return 0;
		}
	return err_set(err, ERR_INVALID, "%s: must be %s", name, choices);
}

static int set_level(const char *name, const char *value, uint64_t *to, struct err *err)
{
	return set_word(config_levels, "error, warn, info or debug", name, value, to, err);
}

static int set_format(const char *name, const char *value, uint64_t *to, struct err *err)
{
	static const char *const formats[] = {
		[LOG_AUTO] = "auto", [LOG_TEXT] = "text", [LOG_JSON] = "json", NULL
	};

	return set_word(formats, "auto, text or json", name, value, to, err);
}

static int set_count(const char *name, const char *value, uint64_t *to, struct err *err)
{
	return units_parse_count(name, value, 0, 1000000000, to, err);
}

/* At least the largest body of one request. */
static int set_body(const char *name, const char *value, uint64_t *to, struct err *err)
{
	uint64_t n;

	if (units_parse_bytes(name, value, &n, err) < 0)
		return -1;
	if (n && n < API_LARGE_BODY_MAX)
		return err_set(err, ERR_INVALID, "%s: must be at least 64M", name);
	*to = n;
	return 0;
}

static int set_auto(const char *name, const char *value, uint64_t *to, struct err *err)
{
	if (strcmp(value, "auto") != 0)
		return set_count(name, value, to, err);
	*to = CONF_AUTO;
	return 0;
}

static int set_switch(const char *name, const char *value, uint64_t *to, struct err *err)
{
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return err_set(err, ERR_INVALID, "%s: \"%.32s\" is neither 0 nor 1", name, value);
	*to = *value == '1';
	return 0;
}

/* Deadlines are sums of such times and the present, which must not overflow. */
static int set_time(const char *name, const char *value, uint64_t *to, struct err *err)
{
	const uint64_t most = UINT64_C(36500) * 24 * 3600 * 1000;
	uint64_t ms;

	if (units_parse_ms(name, value, &ms, err) < 0)
		return -1;
	if (ms > most)
		return err_set(err, ERR_INVALID, "%s: must be at most 36500d", name);
	*to = ms;
	return 0;
}

/* Less than a second is what a busy host needs, and a caller must not wait longer than an hour. */
static int set_keeper_timeout(const char *name, const char *value, uint64_t *to, struct err *err)
{
	uint64_t ms;

	if (units_parse_ms(name, value, &ms, err) < 0)
		return -1;
	if (ms < 1000 || ms > UINT64_C(3600) * 1000)
		return err_set(err, ERR_INVALID, "%s: must be between 1s and 1h", name);
	*to = ms;
	return 0;
}

static int set_retention(const char *name, const char *value, uint64_t *to, struct err *err)
{
	if (strcmp(value, "never") != 0)
		return set_time(name, value, to, err);
	*to = 0;
	return 0;
}

static int set_mode(const char *name, const char *value, uint64_t *to, struct err *err)
{
	char *end;
	unsigned long mode = strtoul(value, &end, 8);

	if (end == value || *end || mode > 0777)
		return err_set(err, ERR_INVALID, "%s: must be an octal mode such as 0660", name);
	*to = mode;
	return 0;
}

/* ---- settings -------------------------------------------------------------------------------- */

static const struct setting {
	const char *name;
	size_t offset;
	/* one of them parses the value, for a member of its type */
	int (*text)(const char *name, const char *value, char **to, struct err *err);
	int (*number)(const char *name, const char *value, uint64_t *to, struct err *err);
	int (*list)(const char *name, const char *value, char ***to, struct err *err);
} settings[] = {
#define SETTING(name, type, fn)                                                                    \
	{                                                                                          \
#name, offsetof(struct config, name), .type = fn                                   \
	}
	SETTING(data, text, set_text),
	SETTING(user, text, set_user),
	SETTING(api_key, text, set_secret),
	SETTING(tls_cert, text, set_text),
	SETTING(tls_key, text, set_text),
	SETTING(listen, list, add_addresses),
	SETTING(origins, list, add_list),
	SETTING(hosts, list, add_list),
	SETTING(trusted_proxies, list, add_proxies),
	SETTING(log_level, number, set_level),
	SETTING(log_format, number, set_format),
	SETTING(socket_mode, number, set_mode),
	SETTING(stop_sandboxes, number, set_count),
	SETTING(require_limits, number, set_switch),
	SETTING(max_active, number, set_auto),
	SETTING(queue_max, number, set_count),
	SETTING(pool, number, set_auto),
	SETTING(environment_snapshots, number, set_count),
	SETTING(probe_failures, number, set_count),
	SETTING(idle_timeout, number, set_time),
	SETTING(idle_timeout_max, number, set_time),
	SETTING(lifetime, number, set_time),
	SETTING(lifetime_max, number, set_time),
	SETTING(chat_lifetime, number, set_time),
	SETTING(projects_lifetime, number, set_time),
	SETTING(extend, number, set_time),
	SETTING(delete_after, number, set_retention),
	SETTING(probe_timeout, number, set_time),
	SETTING(keeper_timeout, number, set_keeper_timeout),
	SETTING(keep_tombstones, number, set_time),
	SETTING(keep_execs, number, set_time),
	SETTING(keep_events, number, set_time),
	SETTING(keep_execs_max, number, set_count),
	SETTING(keep_records_max, number, set_count),
	SETTING(drain, number, set_time),
	SETTING(template_size, number, units_parse_bytes),
	SETTING(template_time, number, set_time),
	SETTING(import_ratio, number, set_count),
	SETTING(max_connections, number, set_count),
	SETTING(max_per_address, number, set_count),
	SETTING(max_requests, number, set_count),
	SETTING(max_head, number, units_parse_bytes),
	SETTING(connection_idle, number, set_time),
	SETTING(connection_slow, number, set_time),
	SETTING(rate, number, set_count),
	SETTING(burst, number, set_count),
	SETTING(concurrent, number, set_count),
	SETTING(tenant_concurrent, number, set_count),
	SETTING(tenant_streams, number, set_count),
	SETTING(tenant_body, number, set_body),
	SETTING(insecure_no_auth, number, set_switch),
	SETTING(pool_min, number, set_auto),
	SETTING(disk_reserve, number, set_reserve),
	SETTING(limits_max_memory, number, set_max_memory),
	SETTING(limits_max_cpus, number, set_max_cpus),
	SETTING(limits_max_disk, number, set_max_disk),
	SETTING(limits_max_pids, number, set_max_pids),
	SETTING(threads_user, text, set_thread),
	SETTING(threads_workdir, text, set_thread),
	SETTING(threads_network, text, set_network),
	SETTING(threads_template, text, set_name),
	SETTING(threads_policy, text, set_name),
	SETTING(threads_memory, number, units_parse_bytes),
	SETTING(threads_cpus, number, units_parse_milli),
	SETTING(threads_pids, number, set_count),
	SETTING(threads_file_size, number, units_parse_bytes),
	SETTING(threads_files, number, set_count),
	SETTING(threads_disk, number, units_parse_bytes),
	SETTING(threads_idle, number, set_time),
#undef SETTING
};
_Static_assert(ARRAY_LEN(settings) <= CONF_SETTINGS, "struct config has a source for each");

static void *field(struct config *c, const struct setting *s)
{
	return (char *)c + s->offset;
}

void config_init(struct config *c)
{
	*c = (struct config){ .log_level = LEVEL_INFO,
			      .socket_mode = 0600,
			      .drain = 10000,
			      .rate = 2000,
			      .burst = 4000,
			      .concurrent = 512,
			      .import_ratio = 200,
			      .keep_execs_max = 10000,
			      .keep_records_max = 200000,
			      .max_active = CONF_AUTO,
			      .pool = CONF_AUTO,
			      .pool_min = CONF_AUTO,
			      .environment_snapshots = 1 };
}

void config_fini(struct config *c)
{
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		if (settings[i].text)
			free(*(char **)field(c, &settings[i]));
		if (settings[i].list)
			list_clear(field(c, &settings[i]));
	}
	memset(c, 0, sizeof(*c));
}

static int set_value(struct config *c, const struct setting *s, const char *value, struct err *err)
{
	void *to = field(c, s);

	if (s->text)
		return s->text(s->name, value, to, err);
	return s->list ? s->list(s->name, value, to, err) : s->number(s->name, value, to, err);
}

static const struct setting *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		if (strcmp(settings[i].name, name) == 0)
			return &settings[i];
	return NULL;
}

bool config_is_setting(const char *name)
{
	return find(name) != NULL;
}

int config_set(struct config *c, enum conf_source from, const char *name, const char *value,
	       struct err *err)
{
	const struct setting *s = find(name);
	uint8_t *source;

	if (!s)
		return err_set(err, ERR_INVALID, "unknown setting \"%.40s\" (see lodged.conf(5))",
			       name);
	source = &c->source[s - settings];
	if (*source > from)
		return 0; /* a source with higher precedence set it */
	if (s->list && *source != from)
		list_clear(field(c, s));
	else if (!s->list && *source == from && from == CONF_FILE)
		return err_set(err, ERR_INVALID, "%s: set twice", name);
	if (set_value(c, s, value, err) < 0)
		return -1;
	*source = (uint8_t)from;
	return 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

static char *trim(char *s)
{
	size_t len;

	s += strspn(s, " \t\r");
	len = strlen(s);
	while (len && strchr(" \t\r", s[len - 1]))
		s[--len] = '\0';
	return s;
}

static int parse_line(struct config *c, char *line, struct err *err)
{
	char *name = trim(line), *equals = strchr(name, '=');

	if (!*name || *name == '#')
		return 0;
	if (!equals)
		return err_set(err, ERR_INVALID, "expected \"name = value\"");
	*equals = '\0';
	return config_set(c, CONF_FILE, trim(name), trim(equals + 1), err);
}

int config_parse(struct config *c, const char *where, const char *text, struct err *err)
{
	auto_free char *copy = strdup(text);
	unsigned number = 0;
	char *rest = copy;

	if (!copy)
		return err_sys(err, ENOMEM, "%s", where);
	while (rest) {
		char *line = strsep(&rest, "\n");

		number++;
		if (parse_line(c, line, err) < 0)
			return err_ctx(err, "%s:%u", where, number);
	}
	return 0;
}

int config_read(struct config *c, const char *path, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	auto_free char *text = malloc(FILE_MAX);
	ssize_t n;

	if (fd < 0)
		return err_sys(err, errno, "%s", path);
	if (!text)
		return err_sys(err, ENOMEM, "%s", path);
	n = file_read_fd(fd, text, FILE_MAX);
	if (n < 0)
		return err_sys(err, (int)-n, "%s", path);
	if (n == FILE_MAX - 1 || strlen(text) != (size_t)n)
		return err_set(err, ERR_INVALID, "%s: longer than %d bytes, or not a text file",
			       path, FILE_MAX);
	return config_parse(c, path, text, err);
}

int config_environment(struct config *c, char *(*get)(const char *name), struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		char name[64];
		const char *value;
		int n = snprintf(name, sizeof(name), "LODGE_%s", settings[i].name);

		for (int k = 0; k < n; k++)
			name[k] = (char)toupper((unsigned char)name[k]);
		value = get(name);
		if (!value || !*value)
			continue;
		if (config_set(c, CONF_ENVIRONMENT, settings[i].name, value, err) < 0)
			return err_ctx(err, "%s", name);
	}
	return 0;
}

bool config_address_is_loopback(const char *address)
{
	char host[64];
	struct in_addr four;
	const char *port = strrchr(address, ':');

	if (strncmp(address, "unix:", 5) == 0 || strncmp(address, "[::1]:", 6) == 0)
		return true;
	if (!port || (size_t)(port - address) >= sizeof(host))
		return false;
	memcpy(host, address, (size_t)(port - address));
	host[port - address] = '\0';
	return inet_pton(AF_INET, host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127;
}

/* The default addresses are loopback ones. */
bool config_is_loopback(const struct config *c)
{
	for (size_t i = 0; c->listen && c->listen[i]; i++)
		if (!config_address_is_loopback(c->listen[i]))
			return false;
	return true;
}
