/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_LODGED_SD_NOTIFY_H
#define LODGE_LODGED_SD_NOTIFY_H

/* Tells who started us, if it listens at $NOTIFY_SOCKET: "READY=1", "STOPPING=1". */
void notify(const char *state);

#endif
