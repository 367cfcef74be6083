import type { z } from "zod";
import { formatPath, isDeeperThan, valueAt } from "../../base/paths.ts";

type Path = readonly PropertyKey[];

/** A configuration without its invalid parts. */
export interface ValidParts<T> {
  readonly data: T;
  /** Converts a path in `data` to the path in the text, where list elements that were left out count too. */
  readonly original: (path: Path) => Path;
  /** Top-level fields from which something was left out. References to it are not reported again. */
  readonly incomplete: ReadonlySet<string>;
  /** Whether the object at a path (as written) has lost a field, so that a missing field is not reported again. */
  readonly damaged: (path: Path) => boolean;
  /** Whether the field at a path (as written) was left out. */
  readonly lost: (path: Path) => boolean;
}

/** Rounds; each removes the parts that the last one left incomplete. More than configurations have levels. */
const MAX_ROUNDS = 30;
/** No configuration is nested more deeply, and deeper nesting may exhaust the call stack. */
const MAX_DEPTH = 100;

/**
 * Leaves out what a schema rejects, as little as possible, so that the rest can be validated further: optional fields, else
 * the object or list element that requires them. Undefined when nothing useful is left.
 */
export function keepValidParts<T>(
  parse: (value: unknown) => z.ZodSafeParseResult<T>,
  value: unknown,
  found: readonly z.core.$ZodIssue[],
): ValidParts<T> | undefined {
  if (isDeeperThan(value, MAX_DEPTH)) return undefined;
  const rest = structuredClone(value);
  /** Indices as written of the elements that are left in a list. */
  const indices = new Map<unknown, number[]>();
  const incomplete = new Set<string>();
  const damaged = new Set<string>();
  const lost = new Set<string>();
  let issues = found;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const elements = new Map<unknown[], Set<number>>();
    for (const issue of issues)
      for (const path of wrongPaths(issue)) {
        if (path.length === 0) return undefined;
        incomplete.add(String(path[0]));
        if (issue.code !== "unrecognized_keys") damaged.add(formatPath(original(rest, indices, path).slice(0, -1)));
        lost.add(formatPath(original(rest, indices, takeAway(rest, path, elements))));
      }
    for (const [list, gone] of elements) {
      const before = indices.get(list) ?? list.map((_, i) => i);
      indices.set(
        list,
        before.filter((_, i) => !gone.has(i)),
      );
      list.splice(0, list.length, ...list.filter((_, i) => !gone.has(i)));
    }
    const result = parse(rest);
    if (result.success)
      return {
        data: result.data,
        original: (path) => original(rest, indices, path),
        incomplete,
        damaged: (path) => damaged.has(formatPath(path)),
        lost: (path) => lost.has(formatPath(path)),
      };
    issues = result.error.issues;
  }
  return undefined;
}

function wrongPaths(issue: z.core.$ZodIssue): Path[] {
  if (issue.code === "unrecognized_keys") return issue.keys.map((key) => [...issue.path, key]);
  if (issue.code === "invalid_union") {
    // The value has the form of one alternative, and only parts of it are wrong.
    const [meant, ...others] = issue.errors.filter((errors) => errors.every(({ path }) => path.length > 0));
    if (meant !== undefined && meant.length > 0 && others.length === 0)
      return meant.flatMap((inner) => wrongPaths({ ...inner, path: [...issue.path, ...inner.path] }));
  }
  return [issue.path];
}

/**
 * Deletes the value at the path. If the path is absent, a required value is missing, so the nearest existing ancestor is deleted. Returns the path
 * of what is gone.
 */
function takeAway(root: unknown, path: Path, elements: Map<unknown[], Set<number>>): Path {
  for (let end = path.length; end > 0; end--) {
    const holder = valueAt(root, path.slice(0, end - 1));
    const key = path[end - 1];
    if (typeof holder !== "object" || holder === null || key === undefined || !Object.hasOwn(holder, key)) continue;
    if (Array.isArray(holder) && typeof key === "number") {
      const gone = elements.get(holder) ?? new Set();
      elements.set(holder, gone.add(key));
    } else delete (holder as Record<PropertyKey, unknown>)[key];
    return path.slice(0, end);
  }
  return [];
}

function original(root: unknown, indices: ReadonlyMap<unknown, readonly number[]>, path: Path): Path {
  return path.map((part, i) => {
    const before = typeof part === "number" ? indices.get(valueAt(root, path.slice(0, i))) : undefined;
    return before === undefined ? part : (before[part as number] ?? part);
  });
}
