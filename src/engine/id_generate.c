/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/id_generate.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

int id_generate(const char *prefix, char ret[STORE_ID], struct err *err)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyz012345";
	unsigned char r[20];
	size_t n = strlen(prefix);

	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		return err_sys(err, errno, "getrandom");
	memcpy(ret, prefix, n);
	for (size_t i = 0; i < sizeof(r); i++)
		ret[n + i] = set[r[i] % 32];
	ret[n + sizeof(r)] = '\0';
	return 0;
}
