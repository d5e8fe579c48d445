/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SERVICE_STARTUP_ADOPT_H
#define LODGE_SERVICE_STARTUP_ADOPT_H

#include "engine/internal.h"

int startup_adopt(struct engine *e, struct err *err); /* at the start */

#endif
