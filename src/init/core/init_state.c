/* SPDX-License-Identifier: Apache-2.0 */
#include "init/core/init_state.h"

struct binding init_binding;
