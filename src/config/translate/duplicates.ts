import { formatPath } from "../parse/diagnostics.ts";
import type { Context, Path } from "./context.ts";

/** A thing that has to be the only one of its key. */
export interface Named {
  readonly key: string;
  /** What people call it. */
  readonly name: string;
  readonly path: Path;
}

/** Of two things with one key, the one would shadow the other silently. `field` is where the key is written. */
export function reportDuplicates(
  what: string,
  things: Iterable<Named>,
  report: Context["report"],
  field = "name",
): void {
  const seen = new Map<string, Path>();
  for (const { key, name, path } of things) {
    const first = seen.get(key);
    if (first === undefined) seen.set(key, path);
    else report([...path, field], { message: `a second ${what} called ${name}; the first is ${formatPath(first)}` });
  }
}
