/* SPDX-License-Identifier: Apache-2.0 */
/* Lists all sessions, ends the processes of one and removes it. cc remove.c -llodge */
#include <err.h>
#include <lodge.h>
#include <stdio.h>

int main(void)
{
	struct lodge_ref me = { .key = "demo" };
	struct lodge_filter all = { .size = sizeof(all) };
	struct lodge_sessions *list;
	struct lodge_session *session;
	struct lodge_tombstone *gone;
	struct lodge *lodge;

	if (lodge_open(NULL, &lodge) < 0 || lodge_list(lodge, &all, &list) < 0)
		errx(1, "%s", lodge_last_error());
	for (size_t i = 0; i < list->count; i++)
		printf("%s %s\n", list->items[i]->id, lodge_state_name(list->items[i]->state));
	lodge_free(list);

	/* Ends its processes; the next lodge_enter() or lodge_run() starts it with its files. */
	if (lodge_hibernate(lodge, &me, 0, &session) < 0)
		errx(1, "%s", lodge_last_error());
	printf("%s\n", lodge_state_name(session->state));
	lodge_free(session);

	/* Removes it with its files. lodge_cleanup() does that for all sessions of a user. */
	if (lodge_destroy(lodge, &me, "no longer needed", &gone) < 0)
		errx(1, "%s", lodge_last_error());
	printf("removed %s: %s\n", gone->id, gone->cause->text);
	lodge_free(gone);
	lodge_close(lodge);
	return 0;
}
