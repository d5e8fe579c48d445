/* SPDX-License-Identifier: Apache-2.0 */
/* Kept files, the layers they become, and sandboxes on these layers. */
#include "sandbox/layer_client.h"

#include <signal.h>

#include "layer_text.h"
#include "sandbox_calls.h"

enum { MANY = 5000 };

/* ---- kept files ------------------------------------------------------------------------------ */

static void kept_files_outlive_their_sandbox(void)
{
	bool found = true;

	KEEPER();
	CHECK(write_and_stop("a", "echo 1 >/tmp/one"));
	CHECK(becomes(KEEPER_IS_FILES, "a") && listed(KEEPER_IS_SANDBOX, "a") == 0);
	CHECK(!make("a", NULL, 0, false) && err.code == ERR_CONFLICT);
	CHECK(layer_stop(keeper, "a", &found, &err) == 0 && !found);
	CHECK(destroy("a") == 1);
	CHECK(listed(KEEPER_IS_FILES, "a") == 0 && destroy("a") == 0);
}

static void destroy_works_in_every_state(void)
{
	auto_call(sandbox_free) struct sandbox *sb = NULL;
	bool found;

	KEEPER();
	sb = make("b", NULL, 0, false);
	CHECK(sb && destroy("b") == 1 && destroy("b") == 0); /* while it runs */
	sandbox_free(sb);
	sb = make("b", NULL, 0, false);
	CHECK(sb && layer_stop(keeper, "b", &found, &err) == 0);
	CHECK(destroy("b") == 1); /* while its processes end, or with its files alone */
	sandbox_free(sb);
	sb = make("b", NULL, 0, false);
	CHECK(sb && kill(sandbox_pid(sb), SIGKILL) == 0);
	CHECK(destroy("b") == 1); /* after it died */
	sandbox_free(sb);
	sb = make("b", NULL, 0, false);
	CHECK(says(sb, "ls /tmp", ""));
	CHECK(destroy("b") == 1 && listed(KEEPER_IS_FILES, NULL) == 0);
}

static void sandboxes_are_sealed_only_when_stopped(void)
{
	auto_call(sandbox_free) struct sandbox *sb = NULL;

	KEEPER();
	sb = make("c", NULL, 0, false);
	CHECK(sb && layer_seal(keeper, "c", "c1", NULL, &err) == -1);
	CHECK(err.code == ERR_UNAVAILABLE && err.sys == EBUSY);
	CHECK(layer_seal(keeper, "nosuch", "c1", NULL, &err) == -1 && err.code == ERR_NOT_FOUND);
	CHECK(layer_stop(keeper, "c", NULL, &err) == 0 && seal("c", "c1"));
	CHECK(listed(KEEPER_IS_LAYER, "c1") == 1 && listed(KEEPER_IS_FILES, "c") == 0);
	CHECK(seal("c", "c1")); /* again */
	CHECK(write_and_stop("c", "true"));
	CHECK(becomes(KEEPER_IS_FILES, "c"));
	CHECK(layer_seal(keeper, "c", "c1", NULL, &err) == -1 && err.code == ERR_CONFLICT);
	CHECK(destroy("c") == 1 && layer_drop(keeper, "c1", &err) == 0);
	CHECK(listed(KEEPER_IS_LAYER, "c1") == 0 && layer_drop(keeper, "c1", &err) == 0);
}

/* ---- sandboxes on layers --------------------------------------------------------------------- */

static void a_layer_can_be_shared_and_does_not_change(void)
{
	auto_call(sandbox_free) struct sandbox *x = NULL, *y = NULL, *z = NULL;

	KEEPER();
	CHECK(write_and_stop("d", "mkdir /tmp/d; echo 1 >/tmp/d/one; echo 2 >/tmp/two; "
				  "ln -s nowhere /tmp/link"));
	CHECK(seal("d", "d1"));
	x = make("x", LAYER("d1"), 1, false);
	y = make("y", LAYER("d1"), 1, false);
	CHECK(says(x, "cat /tmp/d/one /tmp/two; readlink /tmp/link", "1\n2\nnowhere\n"));
	CHECK(says(x, "rm -r /tmp/d; echo more >>/tmp/two; mkdir /tmp/d; ls -A /tmp/d", ""));
	CHECK(says(y, "cat /tmp/d/one /tmp/two", "1\n2\n"));
	CHECK(destroy("x") == 1 && destroy("y") == 1);
	z = make("z", LAYER("d1"), 1, false);
	CHECK(says(z, "cat /tmp/d/one /tmp/two", "1\n2\n"));
	CHECK(destroy("z") == 1 && layer_drop(keeper, "d1", &err) == 0);
}

static void a_taken_layer_continues_as_files(void)
{
	auto_call(sandbox_free) struct sandbox *x = NULL, *y = NULL;

	KEEPER();
	CHECK(write_and_stop("e", "echo 1 >/tmp/one") && seal("e", "e1"));
	x = make("x", LAYER("e1"), 1, true);
	CHECK(says(x, "cat /tmp/one; echo 2 >/tmp/two", "1\n"));
	CHECK(listed(KEEPER_IS_LAYER, "e1") == 0);
	CHECK(!make("y", LAYER("e1"), 1, false) && err.code == ERR_NOT_FOUND);
	CHECK(layer_stop(keeper, "x", NULL, &err) == 0 && seal("x", "e2"));
	y = make("x", LAYER("e2"), 1, true);
	CHECK(says(y, "cat /tmp/one /tmp/two", "1\n2\n"));
	CHECK(destroy("x") == 1 && listed(KEEPER_IS_LAYER, NULL) == 0);
}

static void layers_can_be_stacked(void)
{
	static const char *const both[] = { "f2", "f1" };
	auto_call(sandbox_free) struct sandbox *x = NULL, *y = NULL;

	KEEPER();
	CHECK(write_and_stop("f", "echo 1 >/tmp/one; echo 2 >/tmp/two; mkdir /tmp/d; "
				  "echo 3 >/tmp/d/three"));
	CHECK(seal("f", "f1"));
	x = make("x", LAYER("f1"), 1, false);
	CHECK(says(x, "rm /tmp/one; echo 22 >/tmp/two; rm -r /tmp/d; mkdir /tmp/d", ""));
	CHECK(layer_stop(keeper, "x", NULL, &err) == 0 && seal("x", "f2"));
	y = on_volume ? make("y", LAYER("f2"), 1, false) : make("y", both, 2, false);
	CHECK(says(y, "cat /tmp/two; ls -A /tmp /tmp/d", "22\n/tmp:\nd\ntwo\n\n/tmp/d:\n"));
	if (on_volume)
		CHECK(!make("z", both, 2, false) && err.code == ERR_INVALID);
	CHECK(destroy("y") == 1);
	CHECK(layer_drop(keeper, "f1", &err) == 0 && layer_drop(keeper, "f2", &err) == 0);
}

/* The maximum number, with the topmost taken over. */
static void a_stack_of_the_maximum_height(void)
{
	char name[KEEPER_LAYERS_MAX][8];
	const char *layers[KEEPER_LAYERS_MAX];
	auto_call(sandbox_free) struct sandbox *x = NULL;

	KEEPER();
	if (on_volume)
		SKIP("layers of this store are whole");
	for (size_t i = 0; i < KEEPER_LAYERS_MAX; i++) {
		struct sandbox *sb =
			make("h", layers + KEEPER_LAYERS_MAX - i, i > 0 ? i : 0, false);
		bool good = says(sb, "echo >>/tmp/n", "");

		snprintf(name[i], sizeof(name[i]), "h%zu", i);
		layers[KEEPER_LAYERS_MAX - 1 - i] = name[i];
		sandbox_free(sb);
		CHECK(good && layer_stop(keeper, "h", NULL, &err) == 0 && seal("h", name[i]));
	}
	x = make("h", layers, KEEPER_LAYERS_MAX, true);
	CHECK(says(x, "wc -l </tmp/n", "32\n"));
	CHECK(destroy("h") == 1);
	for (size_t i = 0; i < KEEPER_LAYERS_MAX; i++)
		CHECK(layer_drop(keeper, name[i], &err) == 0);
}

static void a_failed_create_returns_the_layer(void)
{
	static const char *const layer = "g1";
	struct sandbox_bind bind = { .fd = open("/usr", O_PATH | O_CLOEXEC),
				     .path = "/usr/bin/env/x" };
	struct sandbox_spec spec = sandbox_spec_default();
	auto_call(sandbox_free) struct sandbox *x = NULL;

	KEEPER();
	CHECK(write_and_stop("g", "echo 1 >/tmp/one") && seal("g", "g1"));
	spec.id = "x";
	spec.store = KEEPER_STORE_DISK;
	spec.keep = true;
	spec.layers = &layer;
	spec.nlayers = 1;
	spec.binds = &bind;
	spec.nbinds = 1;
	for (int take = 0; take < 2; take++) {
		spec.take = take;
		CHECK(sandbox_new(keeper, &spec, &x, &err) == -1);
		CHECK(listed(KEEPER_IS_LAYER, "g1") == 1 && listed(KEEPER_IS_SANDBOX, "x") == 0);
	}
	spec.nbinds = 0;
	spec.template = "empty"; /* the layer is on top of `host` */
	CHECK(sandbox_new(keeper, &spec, &x, &err) == -1 && err.code == ERR_INVALID);
	close(bind.fd);
	x = make("x", LAYER("g1"), 1, true);
	CHECK(says(x, "cat /tmp/one", "1\n"));
	CHECK(destroy("x") == 1 && listed(KEEPER_IS_LAYER, NULL) == 0);
}

/* ---- templates, one-shot keepers, restarts --------------------------------------------------- */

static int drop_template(const char *name)
{
	struct keeper_request r = keeper_client_request(KEEPER_TEMPLATE_DROP, NULL);

	snprintf(r.template, sizeof(r.template), "%s", name);
	return keeper_client_call(keeper, &r, NULL, 0, NULL, NULL, &err);
}

static void templates_below_layers_cannot_be_removed(void)
{
	struct sandbox_spec spec = sandbox_spec_default();
	auto_call(sandbox_free) struct sandbox *t = NULL, *x = NULL;

	KEEPER();
	spec.store = KEEPER_STORE_DISK;
	CHECK(sandbox_new(keeper, &spec, &t, &err) == 0 && sandbox_seal(t, "low", &err) == 0);
	spec.keep = true;
	spec.id = "x";
	spec.template = "low";
	CHECK(sandbox_new(keeper, &spec, &x, &err) == 0);
	CHECK(sandbox_seal(x, "other", &err) == -1 && err.code == ERR_INVALID);
	CHECK(drop_template("low") == -1 && err.code == ERR_CONFLICT);
	CHECK(layer_stop(keeper, "x", NULL, &err) == 0 && becomes(KEEPER_IS_FILES, "x"));
	CHECK(drop_template("low") == -1 && err.code == ERR_CONFLICT);
	CHECK(seal("x", "q1") && drop_template("low") == -1);
	CHECK_STR(err.msg, "template 'low' is in use by 1 sealed layer");
	CHECK(layer_drop(keeper, "q1", &err) == 0 && drop_template("low") == 0);
}

static void a_one_shot_keeper_keeps_nothing(void)
{
	struct keeper_client *daemon = keeper;

	KEEPER();
	CHECK(start_keeper(true) == 0);
	CHECK(!make("x", NULL, 0, false) && err.code == ERR_INVALID);
	CHECK(layer_stop(keeper, "x", NULL, &err) == -1 && err.code == ERR_INVALID);
	CHECK(layer_seal(keeper, "x", "y", NULL, &err) == -1 && err.code == ERR_INVALID);
	CHECK(layer_drop(keeper, "y", &err) == -1 && err.code == ERR_INVALID);
	CHECK(layer_sync(keeper, "y", &err) == -1 && err.code == ERR_INVALID);
	CHECK(destroy("x") == 0);
	keeper_client_free(keeper);
	keeper = daemon;
}

static void everything_is_found_after_a_restart(void)
{
	auto_call(sandbox_free) struct sandbox *x = NULL, *y = NULL;

	KEEPER();
	CHECK(write_and_stop("r", "echo 1 >/tmp/one") && seal("r", "r1"));
	CHECK(write_and_stop("r", "true"));
	x = make("x", LAYER("r1"), 1, false);
	CHECK(says(x, "echo 2 >/tmp/two", ""));
	CHECK(restart_keeper());
	CHECK(becomes(KEEPER_IS_FILES, "r") && listed(KEEPER_IS_LAYER, "r1") == 1);
	CHECK(listed(KEEPER_IS_SANDBOX, "x") == 1);
	CHECK(sandbox_connect(keeper, "x", &y, &err) == 0);
	CHECK(says(y, "cat /tmp/one /tmp/two", "1\n2\n"));
	CHECK(layer_stop(keeper, "x", NULL, &err) == 0 && restart_keeper());
	CHECK(becomes(KEEPER_IS_FILES, "x"));
	CHECK(destroy("x") == 1 && destroy("r") == 1 && layer_drop(keeper, "r1", &err) == 0);
}

static void a_long_list_is_complete(void)
{
	char path[128];
	int made = 0;

	KEEPER();
	if (on_volume)
		SKIP("the test cannot see into the volume");
	for (int i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "%s/store/l-many%d", home, i);
		made += mkdir(path, 0700) == 0;
	}
	CHECK(made == MANY && listed(KEEPER_IS_LAYER, NULL) == MANY);
	for (int i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "%s/store/l-many%d", home, i);
		made -= rmdir(path) == 0;
	}
	CHECK(made == 0);
}

static void all(void)
{
	RUN_LAYERS(kept_files_outlive_their_sandbox);
	RUN_LAYERS(destroy_works_in_every_state);
	RUN_LAYERS(sandboxes_are_sealed_only_when_stopped);
	RUN_LAYERS(a_layer_can_be_shared_and_does_not_change);
	RUN_LAYERS(a_taken_layer_continues_as_files);
	RUN_LAYERS(layers_can_be_stacked);
	RUN_LAYERS(a_stack_of_the_maximum_height);
	RUN_LAYERS(a_failed_create_returns_the_layer);
	RUN_LAYERS(templates_below_layers_cannot_be_removed);
	RUN_LAYERS(a_one_shot_keeper_keeps_nothing);
	RUN_LAYERS(everything_is_found_after_a_restart);
	RUN_LAYERS(a_long_list_is_complete);
}

int main(void)
{
	in_store(false, all);
	in_store(true, all);
	return tap_done();
}
