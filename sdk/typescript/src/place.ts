// SPDX-License-Identifier: Apache-2.0
// Where lodged is, and the key for it.
import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

import { LodgeError, lodgeError } from "./errors.js";
import type { Environment } from "./node_types.js";

export interface Place {
  /** As it was given, for messages. */
  url: string;
  secure: boolean;
  /** Instead of host and port. */
  socketPath?: string;
  host: string;
  port?: number;
  /** Of a proxy, without a slash at its end. */
  prefix: string;
  /** What the Host header says. */
  name: string;
}

/** "unix:PATH", "http://HOST[:PORT][/PREFIX]" or "https://..." */
export function parsePlace(url: string): Place {
  if (url.startsWith("unix:")) {
    const socketPath = url.slice("unix:".length).replace(/^\/\/(?=\/)/, "");
    if (!socketPath) throw wrong(url);
    return { url, secure: false, socketPath, host: "localhost", prefix: "", name: "localhost" };
  }
  let u: URL;
  try {
    u = new URL(url);
  } catch {
    throw wrong(url);
  }
  if (u.protocol !== "http:" && u.protocol !== "https:") throw wrong(url);
  if (u.username || u.password || u.search || u.hash) throw wrong(url);
  return {
    url,
    secure: u.protocol === "https:",
    host: u.hostname.replace(/^\[(.*)\]$/, "$1"),
    ...(u.port ? { port: Number(u.port) } : {}),
    prefix: u.pathname.replace(/\/+$/, ""),
    name: u.host,
  };
}

/** Without what may be a password. */
function wrong(url: string): LodgeError {
  const shown = url.replace(/^.*@/s, "...@").replace(/[?#].*$/s, "");
  return lodgeError({
    code: "INVALID",
    message: `"${shown}" is no address of lodged: give unix:/path/lodge.sock, http://HOST:PORT or https://HOST`,
  });
}

/** Data directories that a lodged of this machine may have, the likeliest first. */
function homes(env: Environment): string[] {
  const given = env["LODGE_DATA"] || env["LODGE_HOME"];
  if (given) return [given];
  return ["/var/lib/lodge", join(env["XDG_DATA_HOME"] || join(homedir(), ".local", "share"), "lodge")];
}

/** Owned by the owner of the socket or by us, and not a link to another user's file. undefined: missing, or not readable. */
function keyBeside(socket: string): string | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(join(dirname(socket), "admin.key"), constants.O_RDONLY | constants.O_NOFOLLOW);
    if (![statSync(socket, { throwIfNoEntry: false })?.uid, process.geteuid?.()].includes(fstatSync(fd).uid)) return undefined;
    return readFileSync(fd, "utf8").trim() || undefined;
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Without the line break of the file it was read from. */
function checkKey(key: string | undefined): string | undefined {
  const word = typeof key === "string" ? key.trim() : key;
  if (word !== undefined && (typeof word !== "string" || !/^[!-~]+$/.test(word)))
    throw lodgeError({
      code: "INVALID",
      message: "apiKey (or LODGE_API_KEY): a key is one word of printable ASCII; null: none is sent",
    });
  return word;
}

/**
 * What is not given comes from LODGE_URL and LODGE_API_KEY, else from the local daemon: its socket, and the key
 * beside it. That key goes to no other address.
 */
export function findPlace(
  url: string | undefined,
  key: string | null | undefined,
  env: Environment = process.env,
): { place: Place; key: string | undefined } {
  const at = url ?? (env["LODGE_URL"] || undefined);
  const given = key === null ? undefined : checkKey(key ?? (env["LODGE_API_KEY"] || undefined));
  if (at !== undefined) {
    const place = parsePlace(at);
    const beside = key !== null && place.socketPath ? keyBeside(place.socketPath) : undefined;
    return { place, key: given ?? beside };
  }
  const all = homes(env);
  const home = all.find((h) => existsSync(join(h, "lodge.sock"))) ?? all[0]!;
  const socket = join(home, "lodge.sock");
  return { place: parsePlace("unix:" + socket), key: given ?? (key === null ? undefined : keyBeside(socket)) };
}
