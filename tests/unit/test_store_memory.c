/* SPDX-License-Identifier: Apache-2.0 */
#include "store/memory/memory.h"
#include "store/store.h"

#include "store_contract.h"

static struct store *open_empty(void)
{
	struct store *st = NULL;
	struct err err;

	store_open_memory(&st, &err);
	return st;
}

int main(void)
{
	run_contract();
	return tap_done();
}
