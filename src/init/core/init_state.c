/* SPDX-License-Identifier: Apache-2.0 */
#include "init/core/init_state.h"

#include <time.h>

struct binding init_binding;
