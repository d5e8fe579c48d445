/* SPDX-License-Identifier: Apache-2.0 */
/* On a btrfs volume, the default storage of root. */
#include "snapshot_contract.h"

#include "layers/layers.h"

int main(void)
{
	return run_contract(false);
}
