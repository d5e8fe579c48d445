/* SPDX-License-Identifier: Apache-2.0 */
/* Enters a session, runs a command in it, reads a file of it, leaves. cc session.c -llodge */
#include <err.h>
#include <lodge.h>
#include <stdio.h>

int main(void)
{
	struct lodge_ref me = { .key = "demo" };
	struct lodge_want want = { .size = sizeof(want), .keys = &me, .nkeys = 1 };
	struct lodge_command visit = { .size = sizeof(visit),
				       .text = "date >> visits; wc -l < visits" };
	struct lodge_session *session;
	struct lodge_result *result;
	struct lodge_bytes *file;
	struct lodge *lodge;

	if (lodge_open(NULL, &lodge) < 0 || lodge_enter(lodge, &want, &session) < 0 ||
	    lodge_run(lodge, &me, &visit, &result) < 0 ||
	    lodge_file_read(lodge, &me, "visits", 1 << 20, &file) < 0)
		errx(1, "%s", lodge_last_error());
	printf("%s, visit number %s", session->id, result->out);
	printf("%s", file->data);
	lodge_free(session);
	lodge_free(result);
	lodge_free(file);
	lodge_close(lodge); /* the session stays: the next visit finds its files */
	return 0;
}
