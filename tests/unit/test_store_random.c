/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the same random calls to two databases, one of which is closed and reopened regularly. Both
 * must give the same answers, and those recorded here for each seed. */
#include "store/store.h"

#include <unistd.h>

#include "base/array.h"
#include "store_dir.h"

enum { STEPS = 3000, REOPEN_EVERY = 100 };

/* A digest of all answers per seed, recorded from an independent implementation of the store. An
 * intended change of behaviour changes these. */
static const struct {
	unsigned seed;
	uint64_t digest;
} recorded[] = {
	{ 1, 0xbeeb26ca259359e2 }, { 2, 0xb18fe8e19aacd366 }, { 3, 0x7fbd1bb4c3c10963 },
	{ 4, 0x550829b5115d9c17 }, { 5, 0x82459afb73560309 }, { 6, 0x342060981a08d4da },
	{ 7, 0x47c252cc74882c6 },  { 8, 0xdd9073fe52a7a500 },
};

static struct store *both[2];
static uint64_t digest;
static unsigned seed;

static unsigned below(unsigned n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 16) % n;
}

/* One of a few names, so that calls affect each other. */
static const char *name(char letter, unsigned of, char buf[STORE_ID])
{
	snprintf(buf, STORE_ID, "%c%u", letter, below(of));
	return buf;
}

struct answer {
	int rc;
	enum err_code code;
	int64_t number;
	char text[STORE_ID];
};

static struct answer answer(int rc, const struct err *err, int64_t number, const char *text)
{
	struct answer a = { .rc = rc, .code = rc < 0 ? err->code : ERR_NONE };

	if (rc == 0) {
		a.number = number;
		snprintf(a.text, sizeof(a.text), "%s", text);
	}
	return a;
}

static bool same(const struct answer a[2])
{
	return a[0].rc == a[1].rc && a[0].code == a[1].code && a[0].number == a[1].number &&
	       strcmp(a[0].text, a[1].text) == 0;
}

/* ---- calls; what they choose is chosen before, so that both get the same --------------------- */

struct choice {
	char id[STORE_ID], other[STORE_ID], layer[STORE_ID], parent[STORE_ID];
	struct store_binding keys[2];
	unsigned nkeys, stale, small;
	int64_t at;
};

static struct answer create(struct store *st, struct choice *c)
{
	struct store_session s = { .tenant = "t",
				   .due_at = c->at,
				   .bindings = c->keys,
				   .nbindings = c->nkeys,
				   .state = (uint8_t)c->small };
	struct store_event ev = { .kind = "created", .cause.at = c->at };
	struct err err;
	int rc;

	strcpy(s.id, c->id);
	strcpy(s.tenant, c->small ? "t" : "t2");
	if (c->small > 2)
		strcpy(s.layer, c->layer);
	rc = store_session_create(st, &s, &ev, &err);
	return answer(rc, &err, s.version, "");
}

static struct answer change(struct store *st, struct choice *c)
{
	struct store_session s = { 0 }, now = { 0 };
	struct store_event ev = { .kind = "moved", .cause.at = c->at };
	struct err err;
	struct answer a;
	int rc = store_session_get(st, c->id, &s, &err);

	if (rc < 0)
		return answer(rc, &err, 0, "");
	s.version -= c->stale == 0;
	s.due_at = c->at;
	s.state = (uint8_t)c->small;
	strcpy(s.layer, c->small % 2 ? c->layer : "");
	rc = (c->small == 4 ? store_session_mark_destroyed : store_session_update)(st, &s, &ev,
										   &now, &err);
	a = answer(rc, &err, s.version, "");
	if (rc < 0 && err.code == ERR_CONFLICT && c->stale == 0)
		a.number = now.version;
	store_session_fini(&s);
	store_session_fini(&now);
	return a;
}

static struct answer drop(struct store *st, struct choice *c)
{
	struct err err;

	return answer(store_session_remove(st, c->id, &err), &err, 0, "");
}

static struct answer rebind(struct store *st, struct choice *c)
{
	struct store_user u = { .tenant = "t", .id = "u", .created_at = c->at };
	struct err err;

	strcpy(u.project, c->id);
	return answer(store_session_rebind(st, "t", &c->keys[0], c->small % 3 ? c->id : NULL,
					   c->small % 2 ? c->other : NULL, c->stale ? &u : NULL,
					   &err),
		      &err, 0, "");
}

static struct answer find(struct store *st, struct choice *c)
{
	struct store_session s = { 0 };
	struct err err;
	int rc = store_session_find(st, "t", &c->keys[0], &s, &err);
	struct answer a = answer(rc, &err, s.version * 100 + (int64_t)s.nbindings, s.id);

	store_session_fini(&s);
	return a;
}

static struct answer find_tombstone(struct store *st, struct choice *c)
{
	struct store_tombstone t = { 0 };
	struct err err;
	int rc = store_tombstone_find(st, "t", &c->keys[0], &t, &err);

	return answer(rc, &err, 0, t.session);
}

static struct answer find_user(struct store *st, struct choice *c)
{
	struct store_user u = { 0 };
	struct err err;
	int rc = store_user_get(st, "t", "u", &u, &err);

	(void)c;
	return answer(rc, &err, u.created_at, u.project);
}

static struct answer due(struct store *st, struct choice *c)
{
	struct store_session_list l = { 0 };
	struct err err;
	int rc = store_session_find_due(st, c->at, 1 + c->small, &l, &err);
	struct answer a =
		answer(rc, &err, (int64_t)l.count, l.count ? l.items[l.count - 1].id : "");

	store_session_list_fini(&l);
	return a;
}

static struct answer add_layer(struct store *st, struct choice *c)
{
	struct store_layer l = { .template = "host", .created_at = c->at };
	struct err err;

	strcpy(l.id, c->layer);
	strcpy(l.parent, c->stale ? c->parent : "");
	return answer(store_layer_add(st, &l, &err), &err, 0, "");
}

static struct answer hold_layer(struct store *st, struct choice *c)
{
	struct err err;

	return answer((c->stale ? store_layer_ref : store_layer_unref)(st, c->layer, c->id, &err),
		      &err, 0, "");
}

static struct answer drop_layer(struct store *st, struct choice *c)
{
	struct store_layer_list l = { 0 };
	struct err err;
	struct answer a;
	int rc;

	if (c->stale)
		return answer(store_layer_remove(st, c->layer, &err), &err, 0, "");
	rc = store_layer_find_unreferenced(st, c->at, 5, &l, &err);
	a = answer(rc, &err, (int64_t)l.count, l.count ? l.items[0].id : "");
	store_layer_list_fini(&l);
	return a;
}

static struct answer snapshot(struct store *st, struct choice *c)
{
	struct store_snapshot s = { .tenant = "t" };
	struct err err;

	strcpy(s.id, c->id);
	strcpy(s.session, c->other);
	strcpy(s.name, c->parent);
	strcpy(s.layer, c->layer);
	if (c->small < 2)
		return answer(store_snapshot_remove(st, c->id, &err), &err, 0, "");
	return answer(store_snapshot_add(st, &s, &err), &err, 0, "");
}

static struct answer prune(struct store *st, struct choice *c)
{
	struct err err = { 0 };

	if (c->stale)
		return answer(0, &err, 0, "");
	return answer(store_tombstone_prune(st, c->at / 2, &err), &err, 0, "");
}

static struct answer last(struct store *st, struct choice *c)
{
	struct store_usage u = { 0 };
	struct err err;
	int64_t id = 0;
	int rc = store_event_last(st, &id, &err);

	(void)c;
	if (rc == 0)
		rc = store_quota_usage(st, "t", NULL, 6, &u, &err);
	return answer(rc, &err, id * 1000 + u.sessions * 100 + u.active, "");
}

static const struct {
	const char *name;
	struct answer (*call)(struct store *st, struct choice *c);
} calls[] = {
	{ "create", create },
	{ "change", change },
	{ "change", change },
	{ "drop", drop },
	{ "rebind", rebind },
	{ "find", find },
	{ "tombstone", find_tombstone },
	{ "user", find_user },
	{ "due", due },
	{ "add_layer", add_layer },
	{ "hold", hold_layer },
	{ "drop_layer", drop_layer },
	{ "snapshot", snapshot },
	{ "prune", prune },
	{ "last", last },
};

static void choose(struct choice *c)
{
	*c = (struct choice){ .nkeys = below(3), .stale = below(6), .small = below(6) };
	name('s', 8, c->id);
	name('s', 8, c->other);
	name('l', 6, c->layer);
	name('l', 6, c->parent);
	for (int i = 0; i < 2; i++) {
		strcpy(c->keys[i].kind, "key");
		snprintf(c->keys[i].key, sizeof(c->keys[i].key), "k%u", below(6));
	}
	c->at = below(100);
}

static void add_to_digest(const void *bytes, size_t len) /* FNV-1a */
{
	for (size_t i = 0; i < len; i++)
		digest = (digest ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3;
}

static void add_answer(unsigned which, const struct answer *a)
{
	int64_t numbers[] = { which, a->rc, a->code, a->number };

	add_to_digest(numbers, sizeof(numbers));
	add_to_digest(a->text, strlen(a->text) + 1);
}

static struct store *open_twin(void)
{
	struct store *st = NULL;
	char twin[192];
	struct err err;

	snprintf(twin, sizeof(twin), "%s/twin.db", dir);
	store_open_sqlite(twin, "/run/lodge.sock", &st, &err);
	return st;
}

static bool open_both(void)
{
	struct err err;

	forget();
	both[0] = reopen(&err);
	both[1] = open_twin();
	return both[0] && both[1];
}

static void close_both(void)
{
	for (int i = 0; i < 2; i++) {
		store_close(both[i]);
		both[i] = NULL;
	}
}

static bool step(int number, int done[ARRAY_LEN(calls)])
{
	unsigned which = below(ARRAY_LEN(calls));
	struct answer a[2];
	struct choice c;

	choose(&c);
	for (int i = 0; i < 2; i++)
		a[i] = calls[which].call(both[i], &c);
	done[which] += a[0].rc == 0;
	add_answer(which, &a[0]);
	if (same(a))
		return true;
	printf("# step %d %s: %d/%d %lld %s, %d/%d %lld %s\n", number, calls[which].name, a[0].rc,
	       a[0].code, (long long)a[0].number, a[0].text, a[1].rc, a[1].code,
	       (long long)a[1].number, a[1].text);
	return false;
}

static void answer_alike(unsigned first)
{
	int done[ARRAY_LEN(calls)] = { 0 };

	seed = first;
	digest = 0xcbf29ce484222325;
	CHECK(open_both());
	for (int i = 0; i < STEPS; i++) {
		if (i % REOPEN_EVERY == REOPEN_EVERY - 1) {
			store_close(both[1]);
			both[1] = open_twin();
			CHECK(both[1]);
		}
		CHECK(step(i, done));
	}
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		CHECK(done[i] >
		      0); /* each call must succeed sometimes, or the test proves nothing */
}

static void answers_are_the_recorded_ones_and_survive_reopening(void)
{
	for (size_t i = 0; i < ARRAY_LEN(recorded) && tap_ok; i++) {
		answer_alike(recorded[i].seed);
		close_both();
		if (digest != recorded[i].digest)
			printf("# seed %u: %#llx\n", recorded[i].seed, (unsigned long long)digest);
		CHECK(digest == recorded[i].digest);
	}
}

static void answers_to_a_given_seed_survive_reopening(void)
{
	answer_alike((unsigned)strtoul(getenv("LODGE_SEED"), NULL, 10));
	close_both();
}

int main(void)
{
	/* Every call syncs: without a disk the test takes seconds instead of a minute. */
	if (access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 0);
	if (!make_dir())
		return 99;
	RUN(answers_are_the_recorded_ones_and_survive_reopening);
	if (getenv("LODGE_SEED"))
		RUN(answers_to_a_given_seed_survive_reopening);
	remove_dir();
	return tap_done();
}
