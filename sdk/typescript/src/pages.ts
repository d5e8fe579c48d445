// SPDX-License-Identifier: Apache-2.0
import type { Question, Wire } from "./http.js";
import type { Next } from "./types.js";

const PAGE = 200;

/** Everything of a list, page by page as it is read. */
export async function* listAll<T>(
  wire: Wire,
  member: string,
  question: Omit<Question, "method">,
): AsyncGenerator<T, void, undefined> {
  for (let after: Next = 0; after !== null; ) {
    const query = { ...question.query, limit: PAGE, after };
    const page: Record<string, unknown> = await wire.json<Record<string, unknown>>({
      method: "GET",
      ...question,
      query,
    });
    yield* page[member] as T[];
    after = page["next"] as Next;
  }
}
