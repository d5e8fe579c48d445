/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"
#include "tap.h"

static struct engine *e;
static struct err err;

static bool take(const char *tenant, enum tenant_resource what, uint64_t n, struct tenant_share *s)
{
	return tenant_load_take(e, tenant, what, n, s, &err) == 0;
}

static bool is_empty(void)
{
	for (size_t i = 0; i < TENANT_LOAD_BUCKETS; i++)
		if (e->load.tenants[i])
			return false;
	return true;
}

static void a_tenant_has_at_most_its_part(void)
{
	struct tenant_share a[3] = { 0 }, b = { 0 };

	CHECK(take("a", TENANT_REQUESTS, 1, &a[0]) && take("a", TENANT_REQUESTS, 1, &a[1]));
	CHECK(!take("a", TENANT_REQUESTS, 1, &a[2]));
	CHECK(err.code == ERR_LIMIT && err.sys == EUSERS);
	CHECK_STR(err.msg, "more than 2 requests in flight for tenant a "
			   "(setting: tenant_concurrent)");
	CHECK(take("b", TENANT_REQUESTS, 1, &b));
	tenant_load_release(&a[0], TENANT_REQUESTS);
	CHECK(take("a", TENANT_REQUESTS, 1, &a[2]));
	for (int i = 0; i < 3; i++)
		tenant_load_release_all(&a[i]);
	tenant_load_release_all(&b);
	tenant_load_release_all(&b);
	CHECK(is_empty());
}

static void amounts_are_added_up(void)
{
	struct tenant_share a = { 0 }, more = { 0 };

	CHECK(take("a", TENANT_BODIES, 60, &a) && take("a", TENANT_BODIES, 30, &a));
	CHECK(!take("a", TENANT_BODIES, 11, &more) && strstr(err.msg, "tenant_body"));
	CHECK(take("a", TENANT_BODIES, 10, &more));
	/* what has no limit */
	CHECK(take("a", TENANT_STREAMS, 1000000, &more));
	tenant_load_release_all(&more);
	tenant_load_release_all(&a);
	CHECK(is_empty());
}

static void queues_are_for_the_tenant_of_the_thread(void)
{
	struct tenant_share s[3] = { 0 };

	for (int i = 0; i < 3; i++) /* the service itself */
		CHECK(tenant_load_queue(e, TENANT_QUEUE_KEEPER, &s[i], &err) == 0);
	CHECK(is_empty());
	CHECK(!tenant_load_set_caller("a"));
	for (int i = 0; i < 2; i++)
		CHECK(tenant_load_queue(e, TENANT_QUEUE_KEEPER, &s[i], &err) == 0);
	CHECK(tenant_load_queue(e, TENANT_QUEUE_KEEPER, &s[2], &err) < 0);
	CHECK(strstr(err.msg, "queue_max"));
	CHECK_STR(tenant_load_set_caller("b"), "a");
	CHECK(tenant_load_queue(e, TENANT_QUEUE_KEEPER, &s[2], &err) == 0);
	for (int i = 0; i < 3; i++)
		tenant_load_release_all(&s[i]);
	(void)tenant_load_set_caller(NULL);
	CHECK(is_empty());
}

int main(void)
{
	const struct engine_opts o = { .queue_max = 3,
				       .tenant_requests = 2,
				       .tenant_body_bytes = 100 };

	e = calloc(1, sizeof(*e));
	if (!e)
		return 1;
	tenant_load_init(&e->load, &o);
	RUN(a_tenant_has_at_most_its_part);
	RUN(amounts_are_added_up);
	RUN(queues_are_for_the_tenant_of_the_thread);
	tenant_load_fini(&e->load);
	free(e);
	return tap_done();
}
