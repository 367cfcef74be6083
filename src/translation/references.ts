/** Names that one part of a configuration defines and others refer to. */
import type { Origin } from "../base/origin.ts";
import type { Path } from "../base/paths.ts";
import { suggest } from "../base/suggest.ts";
import type { Problem, ProblemCause, Report } from "./problems/problem.ts";

/** An object whose key must be unique. */
interface Named {
  readonly key: string;
  /** Its name in messages. */
  readonly name: string;
  readonly origin?: Origin;
}

const NOWHERE: Origin = { path: [] };

/** Reports objects with the same key, because one would silently shadow the other. `field` is where the key is written. */
export function reportDuplicates(what: string, things: Iterable<Named>, report: Report, field = "name"): void {
  const seen = new Map<string, Path>();
  for (const { key, name, origin: { path } = NOWHERE } of things) {
    const first = seen.get(key);
    if (first === undefined) seen.set(key, path);
    else
      report([...path, field], {
        message: `duplicate ${what} ${name}`,
        related: [{ path: first, message: "the first" }],
      });
  }
}

/** Most names to list in a message. */
const MAX_NAMED = 10;

/** The problem with a reference to a port that a service does not have. */
export function noPort(service: string, port: number | string, known: Readonly<Record<string, number>>): Problem {
  return {
    message: `service ${service} has no port ${port}`,
    expected: `one of ${Object.keys(known).join(", ")}`,
    cause: { code: "invalidDestination" },
  };
}

/**
 * Reports an unknown name, unless its object was left out because it was invalid itself. `field` is where such objects are
 * defined, `key` the key of the value at `path` that holds the name.
 */
export function reportUnknown(
  what: string,
  field: string,
  name: string,
  known: Iterable<string>,
  path: Path,
  { report, incomplete }: { readonly report: Report; readonly incomplete: ReadonlySet<string> },
  key?: string,
): void {
  const candidates = [...known];
  const suggestion = suggest(name, candidates);
  if (suggestion === undefined && incomplete.has(field)) return;
  const hint =
    suggestion !== undefined
      ? { suggestion }
      : candidates.length === 0
        ? { expected: `an entry of ${field}; none are defined` }
        : candidates.length <= MAX_NAMED && { expected: `one of ${candidates.join(", ")}` };
  const isDestination = what === "service" || what === "backend";
  const cause: ProblemCause | undefined = isDestination ? { code: "unknownDestination", kind: what, name } : undefined;
  report(path, { message: `unknown ${what} reference ${name}`, ...hint, ...(cause && { cause }) }, key);
}
