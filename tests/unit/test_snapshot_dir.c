/* SPDX-License-Identifier: Apache-2.0 */
/* On plain directories: layers are stacked, and copying a running session takes longer. */
#include "snapshot_contract.h"

#include "layers/layers.h"

int main(void)
{
	return run_contract(true);
}
