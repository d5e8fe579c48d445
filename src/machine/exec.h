/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_MACHINE_EXEC_H
#define LODGE_MACHINE_EXEC_H

struct exec_handle; /* counted */

enum exec_state { /* numbers are in the store */
		  EXEC_RUNNING,
		  EXEC_EXITED,
		  EXEC_KILLED, /* by a signal, a timeout, or with its sandbox */
		  EXEC_LOST, /* its end is unknown */
};

#endif
