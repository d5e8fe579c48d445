/* SPDX-License-Identifier: Apache-2.0 */
/* On a btrfs volume. */
#include "snapshot_crash.h"

#include "layers/layers.h"

int main(int argc, char **argv)
{
	return run_crashes(argc, argv, false);
}
