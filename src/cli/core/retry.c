/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/retry.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"

enum { FIRST_MS = 50, LONGEST_MS = 2000, GIVE_UP_MS = 300000 };

bool retry_is_worth(const struct err *err)
{
	return err->code == ERR_UNAVAILABLE || (err->code == ERR_LIMIT && err->sys == EUSERS);
}

int retry_pause(struct retry *r, const struct err *err)
{
	int64_t now = clock_mono_ms();

	if (!r->since_ms) {
		r->since_ms = now;
		r->pause_ms = FIRST_MS;
		r->reported = err->code == ERR_UNAVAILABLE;
		if (r->reported)
			fprintf(stderr, "%slodge: %s; retrying (press ctrl-c to stop)%s\n",
				r->raw ? "\r\n" : "", err->msg, r->raw ? "\r" : "");
	} else if (now - r->since_ms > GIVE_UP_MS) {
		return -1;
	} else if (r->pause_ms < LONGEST_MS) {
		r->pause_ms *= 2;
	}
	return r->pause_ms;
}

void retry_over(struct retry *r)
{
	if (r->reported)
		fprintf(stderr, "lodge: reconnected%s\n", r->raw ? "\r" : "");
	*r = (struct retry){ .raw = r->raw };
}
