/* SPDX-License-Identifier: Apache-2.0 */
/* On plain directories. */
#include "snapshot_crash.h"

#include "layers/layers.h"

int main(int argc, char **argv)
{
	return run_crashes(argc, argv, true);
}
