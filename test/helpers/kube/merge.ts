/** How the API server changes an object: RFC 7386 merge patches, and server-side apply as far as tests need it. */
import { isDeepStrictEqual } from "node:util";

export type Json = { readonly [name: string]: unknown };

export function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** RFC 7386: null removes a field, lists are replaced. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isJson(patch)) return patch;
  const result: Record<string, unknown> = { ...(isJson(target) ? target : {}) };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = mergePatch(result[name], value);
  }
  return result;
}

/**
 * Server-side apply of one field manager: `before` is what it applied last. Fields that it applied then and not now are removed.
 * Lists of objects are merged by `type` (conditions) or `name`, others are replaced.
 */
export function applied(target: unknown, before: unknown, now: unknown): unknown {
  if (isJson(now)) {
    const result: Record<string, unknown> = { ...(isJson(target) ? target : {}) };
    if (isJson(before)) for (const name of Object.keys(before)) if (!(name in now)) delete result[name];
    for (const [name, value] of Object.entries(now))
      result[name] = applied(result[name], isJson(before) ? before[name] : undefined, value);
    return result;
  }
  const key = listKey(now);
  if (key === undefined || !Array.isArray(now) || !Array.isArray(target)) return now;
  const own = (list: unknown): Map<unknown, unknown> =>
    new Map(Array.isArray(list) ? list.map((item) => [isJson(item) ? item[key] : item, item]) : []);
  const [current, former, wanted] = [own(target), own(before), own(now)];
  for (const name of former.keys()) if (!wanted.has(name)) current.delete(name);
  for (const [name, item] of wanted) current.set(name, applied(current.get(name), former.get(name), item));
  return [...current.values()];
}

/** The field that identifies the items of a list; undefined: the list is one value. */
function listKey(list: unknown): string | undefined {
  if (!Array.isArray(list) || list.length === 0) return undefined;
  return ["type", "name"].find((key) => {
    const keys = list.map((item: unknown) => (isJson(item) ? item[key] : undefined));
    return keys.every((value) => typeof value === "string") && new Set(keys).size === keys.length;
  });
}

/** Whether two objects differ in more than what the server counts itself. */
export function isSame(a: Json, b: Json): boolean {
  return isDeepStrictEqual(withoutCounters(a), withoutCounters(b));
}

function withoutCounters({ metadata, ...rest }: Json): Json {
  const { resourceVersion: _version, generation: _generation, ...kept } = isJson(metadata) ? metadata : {};
  return { ...rest, metadata: kept };
}
