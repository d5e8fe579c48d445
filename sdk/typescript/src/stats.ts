// SPDX-License-Identifier: Apache-2.0
import type { Stats } from "./types.js";

/** What a sandbox uses; null where this kernel does not say. */
export interface SandboxStats {
  /** The memory of all its processes. */
  memoryBytes: number;
  /** The most memory that it used so far. */
  memoryPeakBytes: number | null;
  /** The memory of the output that lodge keeps of running commands; `memoryBytes` does not count it. */
  outputMemoryBytes: number;
  /** The number of processes that were killed because memory ran out. */
  oomKills: number;
  /** The processor time since it was started. */
  cpuMs: number;
  /** The number of its processes and threads. */
  processes: number;
  /** The most processes and threads that it had so far. */
  processesPeak: number | null;
  /** The number of new processes that were refused at the limit. */
  processesDenied: number;
  /** The bytes that it read from disks. */
  readBytes: number | null;
  /** The bytes that it wrote to disks. */
  writtenBytes: number | null;
  /** The space that its files take. */
  diskBytes: number | null;
  /** The space that its files may take, or null if this host does not enforce a limit. */
  diskLimitBytes: number | null;
  /** Whether its disk is full. */
  diskFull: boolean;
}

export function statsOf(stats: Stats["stats"]): SandboxStats {
  return {
    memoryBytes: stats.memory_bytes,
    memoryPeakBytes: stats.memory_peak_bytes,
    outputMemoryBytes: stats.output_memory_bytes,
    oomKills: stats.oom_kills,
    cpuMs: stats.cpu_us / 1000,
    processes: stats.pids,
    processesPeak: stats.pids_peak,
    processesDenied: stats.pids_denied,
    readBytes: stats.io_read_bytes,
    writtenBytes: stats.io_write_bytes,
    diskBytes: stats.disk_bytes,
    diskLimitBytes: stats.disk_limit_bytes,
    diskFull: stats.disk_full,
  };
}
