/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/auth.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/clock.h"
#include "admit/api_key.h"
#include "engine/audit.h"

enum {
	SETS = 64,
	WAYS = 8,
	FRESH_MS = 5000, /* cached records are valid this long */
	AUDIT_MS = 10000, /* minimum interval of audit entries about rejected keys */
	KEY_MIN = 8,
	KEY_MAX = 200,
	KEY_BYTES = 32,
};

struct slot { /* zero-initialized: empty */
	struct store_key key;
	int64_t checked_at; /* monotonic milliseconds; 0: must be loaded again */
	int64_t filled_at;
	double tokens; /* available tokens of the rate limit */
	unsigned active;
};

struct auth {
	struct api_opts opts;
	pthread_mutex_t mutex; /* protects the fields below; held briefly */
	struct slot slots[SETS * WAYS];
	uint64_t removals; /* counts removals: records loaded before the last one are not cached */
	int64_t told_at;
	unsigned refused; /* since then */
};

int auth_new(const struct api_opts *opts, struct auth **ret, struct err *err)
{
	struct auth *a = calloc(1, sizeof(*a));

	if (!a)
		return err_sys(err, ENOMEM, "auth");
	a->opts = *opts;
	if (a->opts.burst < a->opts.rate)
		a->opts.burst = a->opts.rate;
	pthread_mutex_init(&a->mutex, NULL);
	*ret = a;
	return 0;
}

void auth_free(struct auth *a)
{
	if (!a)
		return;
	pthread_mutex_destroy(&a->mutex);
	OPENSSL_cleanse(a, sizeof(*a));
	free(a);
}

/* ---- headers --------------------------------------------------------------------------------- */

int auth_pick(const char *authorization, const char *x_api_key, const char **ret, struct err *err)
{
	static const char scheme[] = "Bearer ";
	const char *key = x_api_key;

	if (authorization && x_api_key)
		return api_fail(err, ERR_INVALID, ENOTUNIQ,
				"send either Authorization or x-api-key, not both");
	if (!authorization && !x_api_key)
		return api_fail(
			err, ERR_DENIED, ENOKEY,
			"missing API key; send `x-api-key: KEY` or `Authorization: Bearer KEY`");
	if (authorization && strncasecmp(authorization, scheme, sizeof(scheme) - 1) != 0)
		return api_fail(err, ERR_DENIED, ENOKEY,
				"Authorization: must be \"Bearer KEY\"; or send `x-api-key: KEY`");
	if (authorization)
		key = authorization + sizeof(scheme) - 1;
	for (const char *p = key; *p; p++)
		if (*p <= ' ' || *p > '~' || *p == ',')
			return err_set(err, ERR_INVALID, "the API key contains invalid characters");
	if (strlen(key) < KEY_MIN || strlen(key) > KEY_MAX)
		return api_fail(err, ERR_DENIED, EKEYREJECTED, "unknown API key");
	*ret = key;
	return 0;
}

int auth_scope(const char *scopes, enum api_scope *ret, char ret_session[STORE_ID], struct err *err)
{
	static const char one[] = "session:";
	const char *id = strncmp(scopes, one, sizeof(one) - 1) ? "" : scopes + sizeof(one) - 1;

	if ((*id && strlen(id) < STORE_ID) || strcmp(scopes, "session") == 0)
		*ret = API_SESSION;
	else if (strcmp(scopes, "tenant") == 0)
		*ret = API_TENANT;
	else if (strcmp(scopes, "admin") == 0)
		*ret = API_ADMIN;
	else
		return err_set(
			err, ERR_INVALID,
			"scope: must be \"admin\", \"tenant\", \"session\" or \"session:ID\"");
	snprintf(ret_session, STORE_ID, "%s", id);
	return 0;
}

/* ---- cache; call with the mutex held --------------------------------------------------------- */

static struct slot *get_set(struct auth *a, const uint8_t hash[STORE_HASH])
{
	return &a->slots[(size_t)(hash[0] % SETS) * WAYS];
}

static struct slot *find_slot(struct auth *a, const uint8_t hash[STORE_HASH])
{
	struct slot *set = get_set(a, hash);

	for (size_t i = 0; i < WAYS; i++)
		if (*set[i].key.id && CRYPTO_memcmp(set[i].key.hash, hash, STORE_HASH) == 0)
			return &set[i];
	return NULL;
}

static bool is_fresh(const struct slot *s, int64_t now)
{
	return s->checked_at && now - s->checked_at < FRESH_MS;
}

/* The least recently checked slot; NULL if all are in use. */
static struct slot *fill_slot(struct auth *a, const struct store_key *k, int64_t now)
{
	struct slot *set = get_set(a, k->hash), *s = find_slot(a, k->hash);

	for (size_t i = 0; !s && i < WAYS; i++)
		if (!*set[i].key.id)
			s = &set[i];
	if (!s)
		for (size_t i = 0; i < WAYS; i++)
			if (!set[i].active && (!s || set[i].checked_at < s->checked_at))
				s = &set[i];
	if (!s)
		return NULL;
	if (strcmp(s->key.id, k->id) != 0)
		*s = (struct slot){ .tokens = a->opts.burst, .filled_at = now };
	s->key = *k;
	s->checked_at = now;
	return s;
}

/* Counts a request of this key, unless it exceeds a limit: ERR_LIMIT. */
static int take_token(struct auth *a, struct slot *s, int64_t now, struct err *err)
{
	if (a->opts.rate) {
		s->tokens += (double)(now - s->filled_at) * a->opts.rate / 1000;
		if (s->tokens > a->opts.burst)
			s->tokens = a->opts.burst;
		s->filled_at = now;
		if (s->tokens < 1)
			return api_fail(
				err, ERR_LIMIT, EUSERS,
				"more than %u requests per second with this key (setting: rate)",
				a->opts.rate);
		s->tokens -= 1;
	}
	if (a->opts.concurrent && s->active >= a->opts.concurrent)
		return api_fail(
			err, ERR_LIMIT, EUSERS,
			"more than %u requests in flight for this key (setting: concurrent)",
			a->opts.concurrent);
	s->active++;
	return 0;
}

void auth_forget(struct auth *a, const char *id)
{
	pthread_mutex_lock(&a->mutex);
	a->removals++;
	for (size_t i = 0; i < ARRAY_LEN(a->slots); i++)
		if (strcmp(a->slots[i].key.id, id) == 0)
			a->slots[i].checked_at = 0;
	pthread_mutex_unlock(&a->mutex);
}

/* ---- one request ----------------------------------------------------------------------------- */

/* Rate-limit audit entries: guessing keys must not fill the disk. */
static void audit_rejected(struct auth *a, const char *peer)
{
	int64_t now = clock_mono_ms();
	char text[STORE_TEXT];
	struct err ignored;
	unsigned n = 0;

	pthread_mutex_lock(&a->mutex);
	a->refused++;
	if (!a->told_at || now - a->told_at >= AUDIT_MS) {
		n = a->refused;
		a->refused = 0;
		a->told_at = now;
	}
	pthread_mutex_unlock(&a->mutex);
	if (!n)
		return;
	snprintf(text, sizeof(text),
		 "%u requests with unknown or expired keys, the last from %.60s", n, peer);
	(void)audit_write(a->opts.engine, "", "key_refused", "lodge", text, &ignored);
}

static int load_key(struct auth *a, const uint8_t hash[STORE_HASH], struct store_key *ret,
		    uint64_t *ret_removals, struct err *err)
{
	struct slot *s;
	bool known;

	pthread_mutex_lock(&a->mutex);
	s = find_slot(a, hash);
	known = s && is_fresh(s, clock_mono_ms());
	if (known)
		*ret = s->key;
	*ret_removals = a->removals;
	pthread_mutex_unlock(&a->mutex);
	return known ? 0 : api_key_find(a->opts.engine, hash, ret, err);
}

static int admit(struct auth *a, uint64_t removals, bool counts, struct auth_pass *p,
		 struct err *err)
{
	int64_t now = clock_mono_ms();
	struct slot *s;
	int r = 0;

	pthread_mutex_lock(&a->mutex);
	s = find_slot(a, p->key.hash);
	if (!s || !is_fresh(s, now))
		s = fill_slot(a, &p->key, now);
	if (s && a->removals != removals)
		s->checked_at = 0;
	if (s && counts)
		r = take_token(a, s, now, err);
	if (s && counts && r == 0)
		p->slot = (int)(s - a->slots);
	pthread_mutex_unlock(&a->mutex);
	return r;
}

static int enter(struct auth *a, const char *key, const char *peer, bool counts,
		 struct auth_pass *ret, struct err *err)
{
	struct auth_pass p = { .auth = a, .slot = -1 };
	uint8_t hash[STORE_HASH];
	uint64_t removals;

	if (auth_hash_key(key, hash, err) < 0)
		return -1;
	if (load_key(a, hash, &p.key, &removals, err) < 0) {
		if (err->code != ERR_NOT_FOUND)
			return -1;
		audit_rejected(a, peer);
		return api_fail(err, ERR_DENIED, EKEYREJECTED, "unknown API key");
	}
	if (api_key_is_expired(a->opts.engine, &p.key)) {
		audit_rejected(a, peer);
		return api_fail(err, ERR_DENIED, EKEYEXPIRED, "the API key has expired");
	}
	if (auth_scope(p.key.scopes, &p.scope, p.session, err) < 0)
		return err_set(err, ERR_DENIED, "the API key has an unknown scope");
	if (admit(a, removals, counts, &p, err) < 0)
		return -1;
	*ret = p;
	return 0;
}

int auth_enter(struct auth *a, const char *key, const char *peer, struct auth_pass *ret,
	       struct err *err)
{
	return enter(a, key, peer, true, ret, err);
}

int auth_identify(struct auth *a, const char *key, const char *peer, struct auth_pass *ret,
		  struct err *err)
{
	return enter(a, key, peer, false, ret, err);
}

void auth_leave(struct auth_pass *p)
{
	if (!p->auth || p->slot < 0)
		return;
	pthread_mutex_lock(&p->auth->mutex);
	p->auth->slots[p->slot].active--;
	pthread_mutex_unlock(&p->auth->mutex);
	p->slot = -1;
}

bool auth_holds(const struct auth_pass *p)
{
	struct store_key key;
	uint64_t ignored;
	struct err err;

	if (load_key(p->auth, p->key.hash, &key, &ignored, &err) < 0)
		return err.code != ERR_NOT_FOUND;
	return !api_key_is_expired(p->auth->opts.engine, &key);
}

/* ---- keys ------------------------------------------------------------------------------------ */

int auth_generate_key(char ret[KEY_TEXT], struct err *err)
{
	unsigned char random[KEY_BYTES];

	_Static_assert(3 + 2 * KEY_BYTES < KEY_TEXT, "a key has room");
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_sys(err, errno, "getrandom");
	memcpy(ret, "lk_", 4);
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(ret + 3 + 2 * i, 3, "%02x", random[i]);
	return 0;
}

int api_sha256(const char *bytes, size_t len, uint8_t ret[STORE_HASH], struct err *err)
{
	unsigned char hash[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	if (EVP_Digest(bytes, len, hash, &n, EVP_sha256(), NULL) != 1 || n != STORE_HASH)
		return err_set(err, ERR_UNAVAILABLE, "SHA-256 is not available");
	memcpy(ret, hash, STORE_HASH);
	return 0;
}

int auth_hash_key(const char *key, uint8_t ret[STORE_HASH], struct err *err)
{
	return api_sha256(key, strlen(key), ret, err);
}
