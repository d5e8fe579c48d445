/* SPDX-License-Identifier: Apache-2.0 */
/* On the store that root has by itself: a btrfs volume. */
#include "session_snapshot_contract.h"

#include "session/layers.h"

int main(void)
{
	return run_contract(false);
}
