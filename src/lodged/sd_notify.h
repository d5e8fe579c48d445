/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_LODGED_SD_NOTIFY_H
#define LODGE_LODGED_SD_NOTIFY_H

/* Sends a state, such as "READY=1", to the service manager at $NOTIFY_SOCKET, if any. */
void notify(const char *state);

#endif
