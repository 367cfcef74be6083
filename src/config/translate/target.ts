import { isIPv6 } from "node:net";
import { suggest } from "../../base/suggest.ts";
import type { Target } from "../../upstream/target.ts";
import type { Problem } from "../parse/document.ts";
import type { RouteBackendInput } from "../schema/routes.ts";
import type { Path, Report } from "./report.ts";

export type TargetInput = Pick<RouteBackendInput, "host" | "service" | "dynamic" | "backend"> & {
  readonly internal?: string | undefined;
  readonly routeGroup?: string | undefined;
  readonly invalid?: unknown;
};

/** What there is to send to. */
export interface TargetContext {
  readonly report: Report;
  /** Top-level fields of which something wrong was left out; what refers to that is not reported again. */
  readonly incomplete: ReadonlySet<string>;
  readonly routeGroups: ReadonlySet<string>;
  /** Keys (`namespace/hostname`) of services with their ports. */
  readonly services: ReadonlyMap<string, Readonly<Record<string, number>>>;
}

/** More names than this are no help. */
const MAX_NAMED = 10;

/** What a backend sends to. Problems are reported and give an invalid target. */
export function translateTarget(input: TargetInput, path: Path, context: TargetContext): Target {
  if (input.host !== undefined) {
    const parsed = parseHost(input.host);
    if (parsed !== undefined) return parsed;
    context.report([...path, "host"], invalidHost(input.host));
    return { type: "invalid", reference: input.host };
  }
  if (input.service !== undefined) {
    const { name, port } = input.service;
    const ports = context.services.get(name);
    if (ports === undefined)
      reportUnknown("service", "services", name, context.services.keys(), [...path, "service", "name"], context);
    else if (ports[port] === undefined) context.report([...path, "service", "port"], noPort(name, port, ports));
    return { type: "service", key: name, port };
  }
  if (input.routeGroup !== undefined) {
    if (!context.routeGroups.has(input.routeGroup))
      reportUnknown(
        "route group",
        "routeGroups",
        input.routeGroup,
        context.routeGroups,
        [...path, "routeGroup"],
        context,
      );
    return { type: "routeGroup", name: input.routeGroup };
  }
  if (input.invalid !== undefined) return { type: "invalid", reference: "invalid" };
  if (input.internal !== undefined) return { type: "internal", path: input.internal };
  const expression = input.dynamic?.target;
  return expression === undefined ? { type: "dynamic" } : { type: "dynamic", expression };
}

function invalidHost(text: string): Problem {
  const message = `invalid host:port: ${text}`;
  const [, scheme, authority = ""] = /^(https?):\/\/([^/?#@]+)(?:[/?#].*)?$/i.exec(text) ?? [];
  if (scheme === undefined) return { message, expected: "host:port, ip:port, [ipv6]:port or unix:/path" };
  const secure = scheme.toLowerCase() === "https";
  const host = /:\d+$/.test(authority) ? authority : `${authority}:${secure ? 443 : 80}`;
  const further = secure ? ", with backendTLS: {} among the backend's policies" : "";
  return { message, expected: `${host}, not a URL${further}` };
}

function parseHost(text: string): Target | undefined {
  if (text.startsWith("unix:")) return text.length > 5 ? { type: "unix", path: text.slice(5) } : undefined;
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  const host = match?.[1] ?? match?.[2];
  if (host === undefined || port < 1 || port > 65535) return undefined;
  if (match?.[1] !== undefined && !isIPv6(match[1])) return undefined;
  return { type: "static", host, port };
}

/** The problem with a reference to a port that a service does not have. */
export function noPort(service: string, port: number | string, known: Readonly<Record<string, number>>): Problem {
  return { message: `service ${service} has no port ${port}`, expected: `one of ${Object.keys(known).join(", ")}` };
}

/**
 * Tells that nothing has a name, unless it is gone because it was wrong itself; `field` is where such things are written,
 * `key` the key of the value at `path` that is the name.
 */
export function reportUnknown(
  what: string,
  field: string,
  name: string,
  known: Iterable<string>,
  path: Path,
  { report, incomplete }: Pick<TargetContext, "report" | "incomplete">,
  key?: string,
): void {
  const candidates = [...known];
  const suggestion = suggest(name, candidates);
  if (suggestion === undefined && incomplete.has(field)) return;
  const hint =
    suggestion !== undefined
      ? { suggestion }
      : candidates.length === 0
        ? { expected: `an entry of ${field}; there is none` }
        : candidates.length <= MAX_NAMED && { expected: `one of ${candidates.join(", ")}` };
  report(path, { message: `unknown ${what} reference ${name}`, ...hint }, key);
}
