/* SPDX-License-Identifier: Apache-2.0 */
/* lodge key: the API keys of the service. */
#include <string.h>

#include "cli/core/api_cmd.h"

struct key_opts {
	struct api_cmd a;
	const char *tenant, *scope, *user, *name, *expires;
};

static const char *expiry(const json_t *k, const char *path, char buf[FIELD_TEXT])
{
	const char *when = field_when(k, path, buf);

	return *when ? when : "never";
}

static const struct field fields[] = {
	{ "KEY", 0, "id" },
	{ "TENANT", TABLE_SHRINK, "tenant" },
	{ "SCOPE", TABLE_SHRINK, "scope" },
	{ "USER", TABLE_SHRINK, "user" },
	{ "NAME", TABLE_SHRINK, "name" },
	{ "AGE", TABLE_RIGHT, "created_at", field_age },
	{ "EXPIRES", 0, "expires_at", expiry },
	{ NULL },
};

static const struct cli_option ls_options[] = {
	{ "tenant", 0, "TENANT", CLI_TEXT, offsetof(struct key_opts, tenant), "only this tenant",
	  "tenant" },
	API_OPTIONS,
	{ NULL },
};

/* The secret alone on standard output, so that it can be redirected. */
static void print_added(struct api_cmd *a, const json_t *answer)
{
	(void)a;
	api_cmd_note("%s for tenant %s, scope %s; the secret is shown only once:",
		     member_text(answer, "key.id"), member_text(answer, "key.tenant"),
		     member_text(answer, "key.scope"));
	api_cmd_print("%s", member_text(answer, "secret"));
}

static const struct cli_option add_options[] = {
	{ "tenant", 0, "TENANT", CLI_TEXT, offsetof(struct key_opts, tenant),
	  "tenant it belongs to (that of your key)", "tenant" },
	{ "scope", 0, "SCOPE", CLI_TEXT, offsetof(struct key_opts, scope),
	  "session (default), session:ID, tenant or admin", "scope" },
	{ "user", 0, "USER", CLI_TEXT, offsetof(struct key_opts, user),
	  "make it a token for this user only", "user", .old_letter = 'u' },
	{ "name", 'n', "NAME", CLI_TEXT, offsetof(struct key_opts, name), "label for people",
	  "name" },
	{ "expires", 0, "TIME", CLI_MS, offsetof(struct key_opts, expires),
	  "expire after TIME, as 30m or 7d (never)", "expires_in_ms" },
	API_OPTIONS,
	{ NULL },
};

/* A path is logged on the way, so a secret must not become a part of one. */
static int check_rm(struct api_cmd *a, struct err *err)
{
	if (strncmp(a->argv[0], "lk_", 3) != 0)
		return 0;
	return api_cmd_misuse(a, err, "key rm: that is a secret, not an id; see `lodge key ls`");
}

static const struct command *const subs[] = {
	COMMAND("key ls", "[--tenant TENANT]", "list API keys", ls_options, sizeof(struct key_opts),
		.prompt = true, .method = "GET", .path = "/v1/keys", .rows = "keys", .paged = true,
		.fields = fields, .empty = "no keys (create one: lodge key create)",
		.more = "Secrets are not listed: the service does not store them.\n"),
	COMMAND("key create", "[OPTION...]", "create an API key and print its secret", add_options,
		sizeof(struct key_opts), .alias = "add", .prompt = true, .method = "POST",
		.path = "/v1/keys", .print = print_added),
	COMMAND("key rm", "[--yes] KEY", "revoke an API key, by its id", yes_options,
		.alias = "revoke", .check = check_rm, .prompt = true, .method = "DELETE",
		.path = "/v1/keys/%s", .done = "revoked {0}",
		.confirm = "Revoke key {0}? Clients using it will lose access.",
		.cancelled = "no key was revoked"),
	NULL,
};

const struct command cmd_key = { "key", NULL, "create, list and revoke API keys", .subs = subs };
