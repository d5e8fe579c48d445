// SPDX-License-Identifier: Apache-2.0
// Sandbox.map: one fresh sandbox for each item.
import { lodgeError } from "./errors.js";
import { CONNECTION, REQUEST, SETTINGS, checkOptions, type GetOrCreateOptions } from "./options.js";
import type { Sandbox } from "./sandbox.js";

/** Options of {@link Sandbox.map}: those of its sandboxes, and how to go through the items. */
export interface MapOptions extends GetOrCreateOptions {
  /** How many sandboxes run at once, 8 by default. */
  concurrency?: number | undefined;
  /** Gets the number of finished items and of all items after each item. */
  onProgress?: ((done: number, total: number) => void) | undefined;
}

/** The error of an item, with its index. */
function withIndex(error: unknown, index: number): unknown {
  if (error instanceof Error && Object.isExtensible(error)) return Object.assign(error, { index });
  return Object.assign(new Error(`item ${index} failed: ${String(error)}`, { cause: error }), { index });
}

async function inSandbox<R>(box: Sandbox, work: (box: Sandbox) => R | Promise<R>): Promise<R> {
  let result: R;
  try {
    result = await work(box);
  } catch (error) {
    await box.close().catch(() => {}); // the error of the item says more
    throw error;
  }
  await box.close();
  return result;
}

export async function mapItems<T, R>(
  fn: (box: Sandbox, item: T, index: number) => R | Promise<R>,
  items: Iterable<T>,
  options: MapOptions,
  create: (options: GetOrCreateOptions) => Promise<Sandbox>,
): Promise<R[]> {
  checkOptions("Sandbox.map", options, ["concurrency", "onProgress"], SETTINGS, CONNECTION, REQUEST);
  const { concurrency = 8, onProgress, ...settings } = options;
  if (!Number.isSafeInteger(concurrency) || concurrency < 1)
    throw lodgeError({ code: "INVALID", message: `concurrency ${String(concurrency)}: must be a whole number from 1 on` });
  const all = [...items];
  const results = new Array<R>(all.length);
  let next = 0;
  let done = 0;
  let failed: { error: unknown } | undefined;
  const worker = async () => {
    while (!failed && next < all.length) {
      const index = next++;
      try {
        results[index] = await inSandbox(await create(settings), (box) => fn(box, all[index]!, index));
        onProgress?.(++done, all.length);
      } catch (error) {
        failed ??= { error: withIndex(error, index) };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, all.length) }, worker));
  if (failed) throw failed.error;
  return results;
}
