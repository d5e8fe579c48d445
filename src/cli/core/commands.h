/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of lodge: argv[0] is the command's name; each returns the exit status. */
#ifndef LODGE_CLI_CORE_COMMANDS_H
#define LODGE_CLI_CORE_COMMANDS_H

int cmd_run(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_template(int argc, char **argv);
int cmd_policy(int argc, char **argv);
int cmd_login(int argc, char **argv);
int cmd_enter(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_logs(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_kill(int argc, char **argv);

/* of a lodged: sessions and administration */
int cmd_new(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_pause(int argc, char **argv);
int cmd_unpause(int argc, char **argv);
int cmd_hibernate(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_extend(int argc, char **argv);
int cmd_cp(int argc, char **argv);
int cmd_snapshot(int argc, char **argv);
int cmd_snapshots(int argc, char **argv);
int cmd_fork(int argc, char **argv);
int cmd_rollback(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_users(int argc, char **argv);
int cmd_cleanup(int argc, char **argv);
int cmd_projects(int argc, char **argv);
int cmd_switch(int argc, char **argv);
int cmd_teams(int argc, char **argv);
int cmd_templates(int argc, char **argv);
int cmd_keys(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_completion(int argc, char **argv);

/* All of them, for completion: the i-th name, or NULL behind the last. */
const char *cmd_name(unsigned i, const char **ret_summary);
/* Runs one, or returns -1: there is none of this name. */
int cmd_call(const char *name, int argc, char **argv);

#endif
