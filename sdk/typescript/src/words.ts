// SPDX-License-Identifier: Apache-2.0
// Words that users of other services type first, and what lodge calls the same; spec/sdk.json has them for both SDKs.

/** "=name" works as that name; everything else is what an error recommends. */
export const WORDS = {
  "Sandbox class": {
    connect: "=get",
    kill: "get(id), then delete()",
  },
  Sandbox: {
    kill: "=delete",
    sandboxId: "=id",
    setTimeout: "extend(), which postpones expiresAt",
    keepAlive: "extend(), which postpones expiresAt",
    getHost: "run() with a client inside the sandbox: its ports cannot be reached from outside",
    runCode: 'run(["python3", "-c", code])',
    getInfo: "refresh(), then state, name and expiresAt",
    getMetrics: "stats()",
    betaPause: "pause(), which keeps the processes, or hibernate(), which keeps the files",
    createSnapshot: "snapshot()",
    downloadUrl: "files.download()",
    uploadUrl: "files.upload()",
    process: "run()",
    exec: "run()",
    filesystem: "files",
    fs: "files",
    terminate: "delete()",
    destroy: "delete()",
    restore: "rollback(snapshot)",
    stream: "run() with onStdout",
    upload: "files.upload()",
    download: "files.download()",
  },
  "Sandbox.commands": {
    run: "run() of the sandbox itself: a command that fails is a result there, unless check is set",
    list: "commands()",
    connect: "command(id)",
    kill: "command(id).kill()",
    sendStdin: "command(id).write()",
  },
  "Sandbox.pty": {
    create: "pty(cmd)",
    connect: "command(id)",
    kill: "kill() of what pty() returned",
    resize: "resize() of what pty() returned",
    sendStdin: "write() of what pty() returned",
  },
  Files: {
    makeDir: "mkdir()",
    getInfo: "stat()",
    watchDir: "watch()",
    delete: "remove()",
    readBytes: "read()",
    writeText: "write()",
  },
  Command: {
    pid: "id",
    sendStdin: "write()",
    sendInput: "write()",
  },
} as const;

/** A word that is none of lodge, and what to use instead: what the compiler shows for a call of it. */
export interface Use<Instead extends string> {
  /** The call to use instead. */
  readonly use: Instead;
}

/** Those words of an object that only lead to an error. */
export type Hints<Where extends keyof typeof WORDS> = {
  readonly [Word in keyof (typeof WORDS)[Where] as (typeof WORDS)[Where][Word] extends `=${string}` ? never : Word]: Use<
    (typeof WORDS)[Where][Word] & string
  >;
};

/** Words of other services behind `commands`, which is a method here. */
export interface CommandsWords extends Hints<"Sandbox.commands"> {
  /** @deprecated Use `run()` of the sandbox itself; a command that fails is a result there, unless `check` is set. */
  readonly run: Hints<"Sandbox.commands">["run"];
  /** @deprecated Use `commands()`. */
  readonly list: Hints<"Sandbox.commands">["list"];
  /** @deprecated Use `command(id)` of the sandbox. */
  readonly connect: Hints<"Sandbox.commands">["connect"];
  /** @deprecated Use `command(id).kill()` of the sandbox. */
  readonly kill: Hints<"Sandbox.commands">["kill"];
  /** @deprecated Use `command(id).write()` of the sandbox. */
  readonly sendStdin: Hints<"Sandbox.commands">["sendStdin"];
}

/** Words of other services behind `pty`, which is a method here. */
export interface PtyWords extends Hints<"Sandbox.pty"> {
  /** @deprecated Use `pty(cmd)`. */
  readonly create: Hints<"Sandbox.pty">["create"];
  /** @deprecated Use `command(id)` of the sandbox. */
  readonly connect: Hints<"Sandbox.pty">["connect"];
  /** @deprecated Use `kill()` of what `pty()` returned. */
  readonly kill: Hints<"Sandbox.pty">["kill"];
  /** @deprecated Use `resize()` of what `pty()` returned. */
  readonly resize: Hints<"Sandbox.pty">["resize"];
  /** @deprecated Use `write()` of what `pty()` returned. */
  readonly sendStdin: Hints<"Sandbox.pty">["sendStdin"];
}

/** Options, and what else they are called, in letters only. */
const NAMES: [options: string, words: string][] = [
  ["url", "apiurl serverurl baseurl domain"],
  ["name", "key sessionid sandboxid"],
  ["cpus", "cpu cpucount vcpu vcpus"],
  ["env", "envs envvars environment"],
  ["memory", "mem memorymb memorybytes memorylimit"],
  ["disk", "diskbytes disksize disksizemb storage"],
  ["processes", "pids maxprocesses"],
  ["memory cpus disk processes", "limits resources"],
  ["template", "templateid image"],
  ["timeoutMs lifetimeMs", "timeout timeoutms"],
  ["idleTimeoutMs", "idletimeoutms"],
  ["lifetimeMs", "lifetimems ttl maxlifetime"],
  ["cwd", "workdir workingdir workingdirectory"],
  ["input", "stdin"],
  ["cmd", "command"],
  ["check", "throwonerror"],
];

export const OPTIONS: ReadonlyMap<string, string[]> = new Map(
  NAMES.flatMap(([options, words]) => words.split(" ").map((word) => [word, options.split(" ")])),
);

/** Gives an object members of these names: they work as others do, or throw an error with what to use. */
export function addWords<T extends object>(owner: T, where: keyof typeof WORDS, shown: string): T {
  for (const [name, use] of Object.entries<string>(WORDS[where]))
    Object.defineProperty(owner, name, {
      configurable: true,
      get(this: Record<string, unknown>): unknown {
        if (use.startsWith("=")) return this[use.slice(1)];
        throw new TypeError(`${shown} has no "${name}"; use ${use}`);
      },
      set(this: object, value: unknown) {
        Object.defineProperty(this, name, { value, configurable: true, writable: true, enumerable: true });
      },
    });
  return owner;
}
