/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "tap.h"

struct item {
	int64_t number;
	char text[40];
};

static void items_are_zeroed_and_keep_their_order(void)
{
	struct item *items = NULL, *new;
	size_t n = 0;

	for (int i = 0; i < 1000; i++) {
		new = vec_push(&items, &n, SIZE_MAX);
		CHECK(new &&new == &items[i] && n == (size_t)i + 1);
		CHECK(new->number == 0 && new->text[0] == 0 && new->text[39] == 0);
		*new = (struct item){ .number = i, .text = "x" };
	}
	for (int i = 0; i < 1000; i++)
		CHECK(items[i].number == i);
	free(items);
}

static void a_full_array_is_unchanged(void)
{
	int *items = NULL;
	size_t n = 0;

	for (int i = 0; i < 3; i++)
		*vec_push(&items, &n, 3) = i;
	errno = 0;
	CHECK(!vec_push(&items, &n, 3) && errno == E2BIG);
	CHECK(n == 3 && items[2] == 2);
	free(items);
}

static void items_can_be_removed_from_the_end(void)
{
	int *items = NULL;
	size_t n = 0;

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 7; i++) {
			int *new = vec_push(&items, &n, SIZE_MAX);

			CHECK(new &&*new == 0);
			*new = (int)n;
		}
		n -= 3;
	}
	CHECK(n == 200);
	for (size_t i = 0; i < n; i++)
		CHECK(items[i] == (int)i + 1);
	free(items);
}

static void a_buffer_doubles_until_it_fits(void)
{
	size_t capacity = 0;
	char *bytes = NULL;

	CHECK(!vec_reserve(&bytes, &capacity, 0) && !bytes && capacity == 0);
	CHECK(!vec_reserve(&bytes, &capacity, 5) && bytes && capacity >= 5);
	memcpy(bytes, "hello", 5);
	CHECK(!vec_reserve(&bytes, &capacity, 100000) && capacity >= 100000);
	CHECK(!memcmp(bytes, "hello", 5));
	free(bytes);
}

int main(void)
{
	RUN(items_are_zeroed_and_keep_their_order);
	RUN(a_full_array_is_unchanged);
	RUN(items_can_be_removed_from_the_end);
	RUN(a_buffer_doubles_until_it_fits);
	return tap_done();
}
