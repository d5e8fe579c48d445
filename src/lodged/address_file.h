/* SPDX-License-Identifier: Apache-2.0 */
/* DATA/addresses: where this lodged listens, for clients on this machine that want to know whether
 * an address belongs to the owner of the data directory. The first line is the network namespace,
 * each other line an address. It exists while lodged listens on all of them. */
#ifndef LODGE_LODGED_ADDRESS_FILE_H
#define LODGE_LODGED_ADDRESS_FILE_H

#include "base/err.h"

/* Before an address is opened, and at the end. */
void address_file_remove(const char *home);
/* When all are open. lines: one address each. */
int address_file_write(const char *home, const char *lines, struct err *err);

#endif
