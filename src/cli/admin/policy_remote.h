/* SPDX-License-Identifier: Apache-2.0 */
/* The policies of the service: lodge policy ls, show, set, rm. */
#ifndef LODGE_CLI_ADMIN_POLICY_REMOTE_H
#define LODGE_CLI_ADMIN_POLICY_REMOTE_H

/* argv[1] is the name of one of them, without a name it is ls; -1: it is none. */
int policy_remote_main(int argc, char **argv);

#endif
