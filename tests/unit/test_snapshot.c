/* SPDX-License-Identifier: Apache-2.0 */
/* On the store that root has by itself: a btrfs volume. */
#include "snapshot_contract.h"

#include "layers/layers.h"

int main(void)
{
	return run_contract(false);
}
