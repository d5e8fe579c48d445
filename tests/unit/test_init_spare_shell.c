/* SPDX-License-Identifier: Apache-2.0 */
/* The spare shell compared with `bash -c`: a table of texts, run both ways, byte for byte. */
#include "base/fd_message.h"
#include "init_client.h"
#include "tap.h"
#include "wire/agent_proto.h"

#define ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })

static const char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin",
				   "HOME=/",
				   "USER=u",
				   "LOGNAME=u",
				   "SHELL=/bin/bash",
				   "LC_ALL=C.UTF-8",
				   NULL };

static const char *const same[] = {
	"echo hi",
	"exit 7",
	"false",
	"",
	"# nothing",
	"echo \"$0 $# $@ $-\"",
	"echo \"$_\"",
	"echo \"$BASH_EXECUTION_STRING\"",
	"env | sort",
	"printenv _ PWD SHLVL OLDPWD",
	"/usr/bin/printenv _",
	"no-such-command",
	"no-such-command x\necho $LINENO\nno-such-2",
	"kill -9 $$",
	"kill -TERM $$",
	"sh -c 'kill -9 $$'",
	"/bin/sh -c 'kill -SEGV $$'",
	"ls /proc/self/fd | wc -l",
	"return 3",
	"break",
	"echo \xff\x01\x02\x7f\xc3\xa9 '\x01' \"\x7f\"",
	"cat <<E\nhere $LINENO\nE\n",
	"echo $SECONDS $BASH_SUBSHELL $SHLVL",
	"trap 'echo bye' EXIT; exit 4",
	"set -e; false; echo no",
	"set -u; echo $nope; echo after",
	"echo ${x:?bad}; echo after",
	"readonly a=1; a=2; echo after",
	"exec ls /no-such",
	"ls /no-such",
	"cd /no-such; pwd",
	"(exit 3)",
	"f() { return 5; }; f",
	"echo $?",
	". /no-such",
	"a=(1 2 3); echo ${#a[@]}",
	"shopt; set -o",
	"exec 3>&1; echo hi >&3",
	"echo x >&9",
	"jobs; echo \"[$!]\"",
	"umask; ulimit -c",
	"caller; echo ${FUNCNAME[@]} ${BASH_SOURCE[@]} ${BASH_LINENO[@]}",
	"trap",
	"((1/0)); echo z",
	"command -v ls; type cd",
	"cat",
	"read x; echo $?",
	"{ echo a; exit 9; } | cat; exit 3",
	"\n\n  no-such\n",
	"echo a\\\nb",
	"\t echo tab  ",
	"echo trail\n\n",
	"exit",
	"exec no-such-x",
	"bash -c 'exit 300'",
	"set -v\necho v",
	"set -n; echo no",
	"logout",
	"history",
	"set -- a b; echo $1 $#",
	"eval 'exit 5'",
	"unset BASH_EXECUTION_STRING; echo ok",
	"trap 'echo err' ERR; false; true",
	"compgen -v | grep -v -e PIPESTATUS | sort",
	"printf '%s|' \"a  b\" 'c\nd'",
	"sleep 0.01 & wait; echo done",
	"python3 -c 'import os; os.kill(os.getpid(), 15)'",
};

/* Documented in src/init/exec/spare_shell.c; the status is the same, the messages are not. */
static const char *const status_only[] = { "if",	  "echo a; if )", "echo `",
					   "echo \"open", "for i in 1",	  "set -x; echo t" };

static struct outcome bare;

/* The same text in a new shell: not a login shell, with an environment in another order, so that
 * the spare does not match. */
static bool run_bare(const char *text)
{
	const char *const other[] = { env[1], env[0], env[2], env[3], env[4], env[5], NULL };

	if (!run_want(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED,
				      .argv = ARGV(text),
				      .env = other,
				      .cwd = scratch }) ||
	    oc.used_spare_shell)
		return false;
	bare = oc;
	return true;
}

static bool run_in_spare(const char *text)
{
	for (int tries = 0; tries < 2400; tries++) {
		if (!run_want(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED,
					      .argv = ARGV(text),
					      .env = env,
					      .cwd = scratch }))
			return false;
		call_ref(AGENT_FORGET, oc.exec);
		if (oc.used_spare_shell)
			return true;
		pause_ms(50);
	}
	return false;
}

static uint32_t set_spare_shell(const char *const *vars)
{
	static char body[8192];

	return call(AGENT_SPARE_SHELL, body,
		    pack_exec(body, &(struct want){ .env = vars, .cwd = scratch }, 0));
}

static bool is_same(const char *text, bool words)
{
	if (!run_bare(text) || !run_in_spare(text))
		return false;
	if (oc.exit.code != bare.exit.code || oc.exit.signal != bare.exit.signal) {
		printf("# status %d/%d, bare %d/%d: %s\n", oc.exit.code, oc.exit.signal,
		       bare.exit.code, bare.exit.signal, text);
		return false;
	}
	if (!words)
		return true;
	if (oc.out_len != bare.out_len || memcmp(oc.out, bare.out, oc.out_len) != 0)
		printf("# out '%s', bare '%s': %s\n", oc.out, bare.out, text);
	else if (oc.err_len != bare.err_len || memcmp(oc.err, bare.err, oc.err_len) != 0)
		printf("# err '%s', bare '%s': %s\n", oc.err, bare.err, text);
	else
		return true;
	return false;
}

static void it_behaves_like_bash(void)
{
	bool good = true;

	CHECK(set_spare_shell(env) == AGENT_OK);
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		good &= is_same(same[i], true);
	for (size_t i = 0; i < sizeof(status_only) / sizeof(status_only[0]); i++)
		good &= is_same(status_only[i], false);
	CHECK(good);
}

static void a_spare_is_used_once(void)
{
	CHECK(run_in_spare("leak=1; cd /; export X=2; set -f; echo $$"));
	CHECK(run_in_spare("echo \"[$leak$X]$(pwd)\" $-"));
	CHECK(!strncmp(oc.out, "[]", 2) && strrchr(oc.out, ' '));
	CHECK(!strchr(strrchr(oc.out, ' '), 'f')); /* its options; the path may contain one */
}

static void other_settings_get_a_new_shell(void)
{
	static char big[5000];

	CHECK(run_in_spare("true"));
	pause_ms(100);
	memset(big, ' ', sizeof(big) - 1);
	CHECK(run_want(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED | AGENT_LOGIN,
				       .argv = ARGV("true"),
				       .env = env,
				       .cwd = scratch }));
	CHECK(!oc.used_spare_shell);
	CHECK(run_want(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED | AGENT_MERGE,
				       .argv = ARGV("true"),
				       .env = env,
				       .cwd = scratch }));
	CHECK(!oc.used_spare_shell);
	CHECK(run_want(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED,
				       .argv = ARGV(big),
				       .env = env,
				       .cwd = scratch }));
	CHECK(!oc.used_spare_shell);
	CHECK(run_want(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED,
				       .argv = ARGV("true"),
				       .env = env,
				       .cwd = "/" }));
	CHECK(!oc.used_spare_shell);
	CHECK(run_want(&(struct want){
		.flags = AGENT_ATTACHED, .argv = ARGV("true"), .env = env, .cwd = scratch }));
	CHECK(!oc.used_spare_shell);
}

static void a_directory_that_was_replaced_is_noticed(void)
{
	char other[80];

	CHECK(run_in_spare("true"));
	pause_ms(100);
	snprintf(other, sizeof(other), "%s.old", scratch);
	CHECK(rename(scratch, other) == 0 && mkdir(scratch, 0755) == 0);
	CHECK(run_want(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED,
				       .argv = ARGV("echo x >here; ls"),
				       .env = env,
				       .cwd = scratch }));
	CHECK(!oc.used_spare_shell);
	CHECK_STR(oc.out, "here\n");
	CHECK(rmdir(other) == 0);
	CHECK(set_spare_shell(env) == AGENT_OK);
}

static const char *scratch_var(void)
{
	static char var[80];

	snprintf(var, sizeof(var), "D=%s", scratch);
	return var;
}

static void a_spare_that_died_is_replaced(void)
{
	CHECK(run_in_spare("true"));
	/* Found from inside by its working directory, which only the spare of this lodge-init has.
	 */
	for (int i = 0; i < 2400 && (i == 0 || !oc.out_len); i++, pause_ms(50))
		CHECK(run_want(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED,
					       .argv = ARGV("for p in /proc/[0-9]*; do "
							    "[ $p/cwd -ef \"$D\" ] && "
							    "grep -q 'IFS= read' $p/cmdline && "
							    "kill -9 ${p#/proc/} && echo killed && "
							    "while kill -0 ${p#/proc/} 2>&-; do "
							    ":; done; done"),
					       .env = ARGV("PATH=/usr/bin:/bin", scratch_var()),
					       .cwd = "/" }));
	CHECK_STR(oc.out, "killed\n");
	CHECK(run_want(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED,
				       .argv = ARGV("echo fine"),
				       .env = env,
				       .cwd = scratch }));
	CHECK_STR(oc.out, "fine\n");
	pause_ms(1300);
	CHECK(run_in_spare("echo again"));
	CHECK_STR(oc.out, "again\n");
}

static void timeouts_and_signals_work(void)
{
	char text[80], find[80];
	uint32_t ms = 200;

	snprintf(text, sizeof(text), "echo x; setsid sleep 72.1%d; echo y", (int)getpid());
	snprintf(find, sizeof(find), "pgrep -f '[s]leep 72.1%d' >/dev/null", (int)getpid());
	CHECK(run_in_spare("true"));
	for (int i = 0; i < 200; i++) {
		CHECK(run_want(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED,
					       .timeout_ms = ms,
					       .argv = ARGV(text),
					       .env = env,
					       .cwd = scratch }));
		CHECK((oc.exit.hits & AGENT_HIT_TIME) && oc.exit.signal == SIGKILL);
		if (oc.used_spare_shell && oc.out_len)
			break;
		if (ms < 10000) /* the machine was too busy to run the command */
			ms *= 2;
	}
	CHECK(oc.used_spare_shell);
	CHECK_STR(oc.out, "x\n");
	for (int i = 0; i < 6000 && system(find) == 0; i++)
		pause_ms(20);
	CHECK(system(find) != 0);
}

static void variables_that_change_bash_prevent_a_spare_shell(void)
{
	const char *const bad[] = { "PATH=/bin", "BASH_ENV=/etc/profile", NULL };

	CHECK(set_spare_shell(bad) == AGENT_OK);
	pause_ms(100);
	CHECK(run_want(&(struct want){ .flags = AGENT_BASH | AGENT_ATTACHED,
				       .argv = ARGV("true"),
				       .env = bad,
				       .cwd = scratch }));
	CHECK(!oc.used_spare_shell);
	CHECK(client_alive());
}

int main(void)
{
	if (access("/bin/bash", X_OK) < 0) {
		printf("1..0 # SKIP needs bash\n");
		return 0;
	}
	if (!client_start(false) || bind_client(AGENT_BIND_ONE_ID) != AGENT_OK) {
		printf("Bail out! %s does not start\n", init_binary());
		return 1;
	}
	RUN(it_behaves_like_bash);
	RUN(a_spare_is_used_once);
	RUN(other_settings_get_a_new_shell);
	RUN(a_directory_that_was_replaced_is_noticed);
	RUN(a_spare_that_died_is_replaced);
	RUN(timeouts_and_signals_work);
	RUN(variables_that_change_bash_prevent_a_spare_shell);
	client_stop();
	outcome_close();
	return tap_done();
}
