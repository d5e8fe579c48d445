/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of lodge: argv[0] is the command's name; each returns the exit status. */
#ifndef LODGE_CLI_CMD_H
#define LODGE_CLI_CMD_H

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

#endif
