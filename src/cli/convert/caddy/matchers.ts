/** Matchers of Caddy, as conditions of routes. */
import type { Json } from "../converted.ts";
import { type PathShape, quoted, wholePath } from "../paths.ts";
import { isUsablePattern } from "../patterns.ts";
import type { Directive } from "./parse.ts";

/** What requests have to meet: all of the fields, of each list of them one entry. */
export interface Condition {
  /** Absent: every path. */
  readonly paths?: readonly PathShape[];
  readonly methods?: readonly string[];
  readonly hosts?: readonly string[];
  readonly headers?: readonly Json[];
  readonly query?: readonly Json[];
  /** Addresses of clients, or of all others. */
  readonly clients?: { readonly networks: readonly string[]; readonly isNot: boolean };
}

export interface Matcher {
  readonly condition: Condition;
  /** A part of it that is no condition of a route, so `condition` has more requests. */
  readonly lost?: string;
  /** Requests that meet one of these do not meet the matcher; present if nothing else is lost. */
  readonly except?: readonly Condition[];
}

/**
 * The matchers of addresses that `ipAccess` stands for: behind proxies that are trusted, it has the address that they report, as `client_ip`.
 */
export type Clients = ReadonlySet<"remote_ip" | "client_ip">;

/** Addresses that `private_ranges` stands for. */
const PRIVATE = ["192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8", "127.0.0.1/8", "fd00::/8", "::1"];

/** The matcher before the other arguments of a directive, if there is one, and those. */
export function matcherOf(
  { args, block = [] }: Directive,
  named: ReadonlyMap<string, Directive>,
  clients: Clients,
): { readonly matcher: Matcher; readonly args: readonly string[]; readonly block: readonly Directive[] } {
  const [first, ...others] = args;
  if (first === "*") return { matcher: { condition: {} }, args: others, block };
  if (first?.startsWith("/")) return { matcher: { condition: { paths: [pathOf(first)] } }, args: others, block };
  if (!first?.startsWith("@")) return { matcher: { condition: {} }, args, block };
  const definition = named.get(first);
  const matcher: Matcher = definition === undefined ? { condition: {}, lost: first } : setOf(definition, clients);
  return { matcher, args: others, block };
}

/** A named matcher: `@name { … }`, or `@name kind …` on one line. */
function setOf({ args: [kind, ...args], block, ...place }: Directive, clients: Clients): Matcher {
  const entries = kind === undefined ? (block ?? []) : [{ ...place, name: kind, args, ...(block && { block }) }];
  let condition: Condition = {};
  let lost: string | undefined;
  let except: readonly Condition[] | undefined = [];
  for (const each of entries) {
    const one = conditionOf(each, clients);
    const both = one === undefined ? undefined : and(condition, one);
    if (both !== undefined) {
      condition = both;
      continue;
    }
    lost = each.name;
    const not = one === undefined && each.name === "not" ? negated(each, clients) : undefined;
    except = not === undefined || except === undefined ? undefined : [...except, not];
  }
  if (lost === undefined) return { condition };
  return { condition, lost, ...(except !== undefined && { except }) };
}

/** What `not` excludes; undefined: a route cannot have that condition either. */
function negated({ args: [kind, ...args], block, ...place }: Directive, clients: Clients): Condition | undefined {
  const { condition, lost } = setOf(
    { ...place, args: kind === undefined ? [] : [kind, ...args], ...(block && { block }) },
    clients,
  );
  return lost === undefined && condition.clients === undefined && Object.keys(condition).length > 0
    ? condition
    : undefined;
}

/** Undefined: a route cannot have the condition. */
function conditionOf({ name, args, block }: Directive, clients: Clients): Condition | undefined {
  const [first = "", ...others] = args;
  switch (name) {
    case "path":
      return args.some((each) => !each.startsWith("/") && !each.startsWith("*"))
        ? undefined
        : { paths: args.map(pathOf) };
    case "path_regexp": {
      const pattern = wholePath(args.at(-1) ?? "");
      return isUsablePattern(pattern) ? { paths: [{ type: "regex", path: pattern }] } : undefined;
    }
    case "method":
      return { methods: args.map((each) => each.toUpperCase()) };
    case "host":
      return args.some((each) => /[{}]|(?!^)\*/.test(each))
        ? undefined
        : { hosts: args.map((each) => each.toLowerCase()) };
    case "header":
      // Without a value, the field has to be there.
      if (first.startsWith("!") || others.length > 1) return undefined;
      return { headers: [{ name: first, value: others[0] === undefined ? { regex: ".*" } : wildcard(others[0]) }] };
    case "header_regexp": {
      const [pattern = "", field = ""] = args.toReversed();
      const whole = wholePath(pattern);
      return isUsablePattern(whole) ? { headers: [{ name: field, value: { regex: whole } }] } : undefined;
    }
    case "query": {
      const pairs = args.map((each) => each.split("="));
      if (pairs.some(([key, value]) => key === undefined || value === undefined || /[*{]/.test(key))) return undefined;
      if (pairs.length > 1) return undefined;
      return {
        query: pairs.map(([key, value = ""]) => ({
          name: key,
          value: value === "*" ? { regex: ".*" } : { exact: value },
        })),
      };
    }
    case "remote_ip":
    case "client_ip":
      if (!clients.has(name)) return undefined;
      return { clients: { networks: networksOf(args.filter((each) => each !== "forwarded")), isNot: false } };
    case "not": {
      const inner = block?.length === 1 && block[0] !== undefined ? block[0] : undefined;
      const of = inner ?? (args.length > 1 ? { name: first, args: others } : undefined);
      if ((of?.name !== "remote_ip" && of?.name !== "client_ip") || !clients.has(of.name)) return undefined;
      return { clients: { networks: networksOf(of.args.filter((each) => each !== "forwarded")), isNot: true } };
    }
    default:
      return undefined;
  }
}

export function networksOf(args: readonly string[]): readonly string[] {
  return args.flatMap((each) => (each === "private_ranges" ? PRIVATE : [each]));
}

/** `*` at the ends of a value. */
function wildcard(text: string): Json {
  if (!text.includes("*")) return { exact: text };
  return { regex: text.split("*").map(quoted).join(".*") };
}

/** A path with `*` at its end is a prefix, at its beginning a suffix; elsewhere it stands for a part of a segment. */
export function pathOf(text: string): PathShape {
  const [, prefix] = /^([^*]*)\*$/.exec(text) ?? [];
  if (text === "/*" || text === "*") return { type: "segments", path: "/" };
  if (prefix !== undefined) return { type: "below", path: prefix };
  if (!text.includes("*")) return { type: "exact", path: text };
  const inner = text
    .replace(/^\*|\*$/g, "")
    .split("*")
    .map(quoted)
    .join("[^/]*");
  return { type: "regex", path: `${text.startsWith("*") ? ".*" : ""}${inner}${text.endsWith("*") ? ".*" : ""}` };
}

/** Both conditions; undefined if a route cannot have them. `paths` is empty if no request meets both. */
export function and(a: Condition, b: Condition): Condition | undefined {
  const paths = both(a.paths, b.paths);
  if (paths === undefined) return undefined;
  const common = <T>(one: readonly T[] | undefined, other: readonly T[] | undefined): readonly T[] | undefined =>
    one === undefined || other === undefined ? (one ?? other) : one.filter((each) => other.includes(each));
  const methods = common(a.methods, b.methods);
  const hosts = common(a.hosts, b.hosts);
  const isWild = [...(a.hosts ?? []), ...(b.hosts ?? [])].some((each) => each.includes("*"));
  if (a.hosts !== undefined && b.hosts !== undefined && isWild && String(a.hosts) !== String(b.hosts)) return undefined;
  const headers = [...(a.headers ?? []), ...(b.headers ?? [])];
  const query = [...(a.query ?? []), ...(b.query ?? [])];
  // Of two conditions for one field, only the first would count.
  for (const list of [headers, query])
    if (new Set(list.map(({ name }) => String(name).toLowerCase())).size < list.length) return undefined;
  if (a.clients !== undefined && b.clients !== undefined) return undefined;
  const clients = a.clients ?? b.clients;
  return {
    ...(paths !== null && { paths }),
    ...(methods && { methods }),
    ...(hosts && { hosts }),
    ...(headers.length > 0 && { headers }),
    ...(query.length > 0 && { query }),
    ...(clients && { clients }),
  };
}

/** Null: every path. */
function both(
  a: readonly PathShape[] | undefined,
  b: readonly PathShape[] | undefined,
): readonly PathShape[] | null | undefined {
  if (a === undefined || b === undefined) return a ?? b ?? null;
  const result: PathShape[] = [];
  for (const one of a)
    for (const other of b) {
      const shape = meet(one, other);
      if (shape === undefined) return undefined;
      if (shape !== null) result.push(shape);
    }
  return result;
}

/** Null: nothing is in both. */
function meet(a: PathShape, b: PathShape): PathShape | null | undefined {
  if (a.type === b.type && a.path === b.path) return a;
  const isAll = ({ type, path }: PathShape): boolean => type === "segments" && path === "/";
  if (isAll(a)) return b;
  if (isAll(b)) return a;
  if (a.type === "regex" || b.type === "regex") {
    const [pattern, other] = a.type === "regex" ? [a, b] : [b, a];
    if (other.type === "exact") return new RegExp(`^(?:${pattern.path})$`).test(other.path) ? other : null;
    return other.type === "below" && /^\.\*[^|]*$/.test(pattern.path)
      ? { type: "regex", path: `${quoted(other.path)}${pattern.path}` }
      : undefined;
  }
  const [long, short] = a.path.length >= b.path.length ? [a, b] : [b, a];
  // Caddy compares paths without case.
  if (!long.path.toLowerCase().startsWith(short.path.toLowerCase())) return null;
  if (short.type === "exact") return long.type === "exact" && long.path.length === short.path.length ? long : null;
  return long;
}

/** Whether some request might meet both. */
export function mayMeet(a: Condition, b: Condition): boolean {
  const result = and(a, b);
  return result === undefined || !isEmpty(result);
}

export function isEmpty({ paths, methods, hosts }: Condition): boolean {
  return paths?.length === 0 || methods?.length === 0 || hosts?.length === 0;
}

/** Whether every request meets it. */
export function isAlways(condition: Condition): boolean {
  const { paths, ...others } = condition;
  const everyPath = paths === undefined || paths.some(({ type, path }) => type === "segments" && path === "/");
  return everyPath && Object.keys(others).length === 0;
}
