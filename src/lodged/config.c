/* SPDX-License-Identifier: Apache-2.0 */
#include "lodged/config.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/auth.h"
#include "base/array.h"
#include "base/file_io.h"
#include "base/units.h"
#include "http/listen.h"
#include "lodged/service_user.h"
#include "lodged/server_tls.h"
#include "sandbox/template/template.h"

enum { FILE_MAX = 64 << 10, LIST_MAX = 64, SECRET_MIN = 16 };

enum type {
	TEXT,
	SECRET,
	GUEST, /* user and workdir of struct thread_config */
	PLACE,
	NETWORK,
	NAME,
	USER, /* the types up to here are strings */
	LIST,
	ADDRESSES,
	COUNT,
	SWITCH, /* 0 or 1 */
	BYTES,
	MILLI,
	DURATION,
	LEVEL,
	FORMAT,
	MODE
};

#define SETTING(name, type)                                                                        \
	{                                                                                          \
#name, type, offsetof(struct config, name)                                         \
	}

static const struct setting {
	const char *name;
	enum type type;
	size_t offset;
} settings[] = {
	SETTING(data, TEXT),
	SETTING(user, USER),
	SETTING(api_key, SECRET),
	SETTING(tls_cert, TEXT),
	SETTING(tls_key, TEXT),
	SETTING(listen, ADDRESSES),
	SETTING(origins, LIST),
	SETTING(hosts, LIST),
	SETTING(log_level, LEVEL),
	SETTING(log_format, FORMAT),
	SETTING(socket_mode, MODE),
	SETTING(stop_sandboxes, COUNT),
	SETTING(max_active, COUNT),
	SETTING(queue_max, COUNT),
	SETTING(pool, COUNT),
	SETTING(environment_snapshots, COUNT),
	SETTING(probe_failures, COUNT),
	SETTING(idle_timeout, DURATION),
	SETTING(idle_timeout_max, DURATION),
	SETTING(lifetime, DURATION),
	SETTING(lifetime_max, DURATION),
	SETTING(extend, DURATION),
	SETTING(probe_timeout, DURATION),
	SETTING(keep_tombstones, DURATION),
	SETTING(keep_execs, DURATION),
	SETTING(keep_events, DURATION),
	SETTING(drain, DURATION),
	SETTING(template_size, BYTES),
	SETTING(template_time, DURATION),
	SETTING(max_connections, COUNT),
	SETTING(max_per_address, COUNT),
	SETTING(max_requests, COUNT),
	SETTING(max_head, BYTES),
	SETTING(connection_idle, DURATION),
	SETTING(connection_slow, DURATION),
	SETTING(rate, COUNT),
	SETTING(burst, COUNT),
	SETTING(concurrent, COUNT),
	SETTING(insecure_no_auth, SWITCH),
	SETTING(pool_min, COUNT),
	SETTING(threads_user, GUEST),
	SETTING(threads_workdir, PLACE),
	SETTING(threads_network, NETWORK),
	SETTING(threads_template, NAME),
	SETTING(threads_policy, NAME),
	SETTING(threads_memory, BYTES),
	SETTING(threads_cpus, MILLI),
	SETTING(threads_pids, COUNT),
	SETTING(threads_file_size, BYTES),
	SETTING(threads_files, COUNT),
	SETTING(threads_disk, BYTES),
	SETTING(threads_idle, DURATION),
};
_Static_assert(ARRAY_LEN(settings) <= CONF_SETTINGS, "struct config has a source for each");

static const char *const levels[] = {
	[LEVEL_ERROR] = "error",
	[LEVEL_WARN] = "warn",
	[LEVEL_INFO] = "info",
	[LEVEL_DEBUG] = "debug",
};

static const char *const formats[] = {
	[LOG_AUTO] = "auto",
	[LOG_TEXT] = "text",
	[LOG_JSON] = "json",
};

static void *field(struct config *c, const struct setting *s)
{
	return (char *)c + s->offset;
}

static bool is_list(const struct setting *s)
{
	return s->type == LIST || s->type == ADDRESSES;
}

void config_init(struct config *c)
{
	*c = (struct config){ .log_level = LEVEL_INFO,
			      .socket_mode = 0600,
			      .drain = 10000,
			      .concurrent = 512,
			      .environment_snapshots = 1 };
}

static void list_clear(char ***list)
{
	for (size_t i = 0; *list && (*list)[i]; i++)
		free((*list)[i]);
	free(*list);
	*list = NULL;
}

void config_fini(struct config *c)
{
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		if (settings[i].type <= USER)
			free(*(char **)field(c, &settings[i]));
		if (is_list(&settings[i]))
			list_clear(field(c, &settings[i]));
	}
	memset(c, 0, sizeof(*c));
}

/* ---- values ---------------------------------------------------------------------------------- */

static int set_text(char **to, const char *value, struct err *err)
{
	char *copy = *value ? strdup(value) : NULL;

	if (*value && !copy)
		return err_sys(err, ENOMEM, "settings");
	free(*to);
	*to = copy;
	return 0;
}

/* Errors must not repeat the value. */
static int set_secret(char **to, const char *name, const char *value, struct err *err)
{
	const char *same;

	if (strlen(value) < SECRET_MIN)
		return err_set(err, ERR_INVALID, "%s: must have at least %d characters", name,
			       SECRET_MIN);
	if (auth_pick(NULL, value, &same, err) < 0)
		return err_ctx(err, "%s", name);
	return set_text(to, value, err);
}

static int set_user(char **to, const char *value, struct err *err)
{
	struct service_user o;

	return *value && service_user_find(value, &o, err) < 0 ? -1 : set_text(to, value, err);
}

static int set_thread(char **to, enum type type, const char *value, struct err *err)
{
	struct thread_config t = { .user = type == GUEST && *value ? value : NULL,
				   .workdir = type == PLACE && *value ? value : NULL };

	return thread_config_check(&t, err) < 0 ? -1 : set_text(to, value, err);
}

static int set_name(char **to, const char *name, const char *value, struct err *err)
{
	if (*value && !template_name_is_valid(value))
		return err_set(err, ERR_INVALID, "%s: \"%.64s\" is not a valid name", name, value);
	return set_text(to, value, err);
}

static int set_network(char **to, const char *name, const char *value, struct err *err)
{
	if (strcmp(value, "none") != 0)
		return err_set(err, ERR_INVALID, "%s: must be \"none\" (sandboxes have no network)",
			       name);
	return set_text(to, value, err);
}

static int list_add(char ***list, const char *word, size_t len, struct err *err)
{
	size_t n = 0;
	char **more;

	while (*list && (*list)[n])
		n++;
	if (n == LIST_MAX)
		return err_set(err, ERR_INVALID, "a list may have at most %d entries", LIST_MAX);
	more = reallocarray(*list, n + 2, sizeof(*more));
	if (!more)
		return err_sys(err, ENOMEM, "settings");
	*list = more;
	more[n + 1] = NULL;
	more[n] = strndup(word, len);
	return more[n] ? 0 : err_sys(err, ENOMEM, "settings");
}

/* Separated by blanks or commas. */
static int add_list(char ***list, const char *value, struct err *err)
{
	static const char blank[] = " \t,";

	for (value += strspn(value, blank); *value; value += strspn(value, blank)) {
		size_t len = strcspn(value, blank);

		if (list_add(list, value, len, err) < 0)
			return -1;
		value += len;
	}
	return 0;
}

static int add_addresses(char ***list, const char *name, const char *value, struct err *err)
{
	if (add_list(list, value, err) < 0)
		return -1;
	for (size_t i = 0; *list && (*list)[i]; i++)
		if (http_address_check((*list)[i], err) < 0)
			return err_ctx(err, "%s", name);
	return 0;
}

static bool set_word(uint64_t *to, const char *const *words, size_t n, const char *value)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(words[i], value) == 0) {
			*to = i;
			return true;
		}
	return false;
}

static int set_level(uint64_t *to, const char *name, const char *value, struct err *err)
{
	if (set_word(to, levels, ARRAY_LEN(levels), value))
		return 0;
	return err_set(err, ERR_INVALID, "%s: must be error, warn, info or debug", name);
}

static int set_format(uint64_t *to, const char *name, const char *value, struct err *err)
{
	if (set_word(to, formats, ARRAY_LEN(formats), value))
		return 0;
	return err_set(err, ERR_INVALID, "%s: must be auto, text or json", name);
}

static int set_switch(uint64_t *to, const char *name, const char *value, struct err *err)
{
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return err_set(err, ERR_INVALID, "%s: \"%.32s\" is neither 0 nor 1", name, value);
	*to = *value == '1';
	return 0;
}

static int set_mode(uint64_t *to, const char *name, const char *value, struct err *err)
{
	char *end;
	unsigned long mode = strtoul(value, &end, 8);

	if (end == value || *end || mode > 0777)
		return err_set(err, ERR_INVALID, "%s: must be an octal mode such as 0660", name);
	*to = mode;
	return 0;
}

static int set_value(struct config *c, const struct setting *s, const char *value, struct err *err)
{
	void *to = field(c, s);

	switch (s->type) {
	case TEXT:
		return set_text(to, value, err);
	case USER:
		return set_user(to, value, err);
	case GUEST:
	case PLACE:
		return set_thread(to, s->type, value, err);
	case NAME:
		return set_name(to, s->name, value, err);
	case NETWORK:
		return set_network(to, s->name, value, err);
	case SECRET:
		return set_secret(to, s->name, value, err);
	case LIST:
		return add_list(to, value, err);
	case ADDRESSES:
		return add_addresses(to, s->name, value, err);
	case COUNT:
		return units_parse_count(s->name, value, 0, 1000000000, to, err);
	case SWITCH:
		return set_switch(to, s->name, value, err);
	case MILLI:
		return units_parse_milli(s->name, value, to, err);
	case BYTES:
		return units_parse_bytes(s->name, value, to, err);
	case DURATION:
		return units_parse_ms(s->name, value, to, err);
	case LEVEL:
		return set_level(to, s->name, value, err);
	case FORMAT:
		return set_format(to, s->name, value, err);
	case MODE:
		return set_mode(to, s->name, value, err);
	}
	return -1;
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
	if (is_list(s) && *source != from)
		list_clear(field(c, s));
	else if (!is_list(s) && *source == from && from == CONF_FILE)
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

void config_threads(const struct config *c, struct thread_config *ret)
{
	*ret = (struct thread_config){ .memory_bytes = c->threads_memory,
				       .cpu_milli = c->threads_cpus,
				       .pids = c->threads_pids,
				       .file_bytes = c->threads_file_size,
				       .disk_bytes = c->threads_disk,
				       .files = c->threads_files,
				       .idle_ms = (int64_t)c->threads_idle,
				       .user = c->threads_user,
				       .workdir = c->threads_workdir,
				       .template = c->threads_template,
				       .policy = c->threads_policy,
				       .pool_min = (unsigned)c->pool_min,
				       .pool = (unsigned)c->pool };
}

static int check_pool(const struct config *c, struct err *err)
{
	if (c->pool_min > c->pool)
		return err_set(err, ERR_INVALID, "pool_min: must not exceed pool");
	if (c->max_active && c->pool > c->max_active)
		return err_set(err, ERR_INVALID, "pool: must not exceed max_active");
	return 0;
}

static int check_threads(const struct config *c, struct err *err)
{
	struct thread_config t;

	config_threads(c, &t);
	if (c->idle_timeout_max && c->threads_idle > c->idle_timeout_max)
		return err_set(err, ERR_INVALID, "threads_idle: must not exceed idle_timeout_max");
	return thread_config_check(&t, err);
}

int config_check(const struct config *c, struct err *err)
{
	if (c->insecure_no_auth && !config_is_loopback(c))
		return err_set(err, ERR_INVALID,
			       "insecure_no_auth: every address must be a loopback address or a "
			       "unix socket; other hosts would have full access");
	for (char *const *o = c->origins; c->insecure_no_auth && o && *o; o++)
		if (strcmp(*o, "*") == 0)
			return err_set(err, ERR_INVALID,
				       "insecure_no_auth: not allowed with origins = *; any web "
				       "page would have full access");
	if (check_pool(c, err) < 0 || check_threads(c, err) < 0)
		return -1;
	if (!c->tls_cert != !c->tls_key)
		return err_set(err, ERR_INVALID, "tls_cert and tls_key: set both or neither");
	if (c->idle_timeout_max && c->idle_timeout > c->idle_timeout_max)
		return err_set(err, ERR_INVALID, "idle_timeout: must not exceed idle_timeout_max");
	if (c->lifetime_max && c->lifetime > c->lifetime_max)
		return err_set(err, ERR_INVALID, "lifetime: must not exceed lifetime_max");
	return c->tls_cert ? tls_check(c->tls_cert, c->tls_key, err) : 0;
}
