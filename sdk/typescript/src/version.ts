// SPDX-License-Identifier: Apache-2.0

/** The version of this package. */
export const VERSION = "0.1.0";

/** The versions of both sides, as {@link LodgeClient.version} returns them. */
export interface Versions {
  /** The version of this package. */
  client: string;
  /** The version of lodged. */
  server: string;
  /** Whether this package was made for that version: the first number is the same, and before 1.0 also the second. */
  compatible: boolean;
}

export function versionsWith(server: string): Versions {
  const series = (version: string) => version.split(".").slice(0, version.startsWith("0.") ? 2 : 1).join(".");
  return { client: VERSION, server, compatible: series(server) === series(VERSION) };
}

/** What a User-Agent header says: the caller's word, this package, and what runs it. */
export function userAgentOf(own: string | undefined): string {
  const { bun, deno, node } = process.versions as Record<string, string | undefined>;
  const runtime = bun ? `bun/${bun}` : deno ? `deno/${deno}` : `node/${node ?? ""}`;
  return `${own ? own + " " : ""}lodge-sandbox/${VERSION} ${runtime}`;
}
