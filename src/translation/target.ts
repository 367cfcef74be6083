import { isIP, isIPv6 } from "node:net";
import type { Path } from "../base/paths.ts";
import type { PolicySet } from "../policies/policy-set.ts";
import type { DnsSettings } from "../upstream/discovery/dns.ts";
import { targetName } from "../upstream/settings/pool-target.ts";
import type { Target } from "../upstream/settings/target.ts";
import type { Problem, Report } from "./problems/problem.ts";
import { noPort, reportUnknown } from "./references.ts";

export type HostTarget = Extract<Target, { type: "static" | "unix" }>;

/** The ways to name a target, of which one is used. */
export interface TargetInput {
  readonly host?: string | undefined;
  /** For a `host` that is a name. */
  readonly dns?: DnsSettings | undefined;
  readonly service?: { readonly name: string; readonly port: number } | undefined;
  readonly backend?: string | undefined;
  readonly dynamic?: { readonly target?: string | undefined } | undefined;
  readonly internal?: string | undefined;
  readonly routeGroup?: string | undefined;
  readonly invalid?: unknown;
}

/** Why a host may not be called; undefined if it may. */
export type HostCheck = (host: string) => Problem | undefined;

/** What is wrong with the host of a URL; a text that is no URL is left to others. */
export function urlProblem(url: string, hosts: HostCheck | undefined): Problem | undefined {
  return URL.canParse(url) ? hosts?.(new URL(url).hostname.replace(/^\[|\]$/g, "")) : undefined;
}

/** The backends and services that a reference may name. */
export interface TargetContext {
  /** Absent: every host may be called. */
  readonly hosts?: HostCheck | undefined;
  readonly report: Report;
  /** Top-level fields from which invalid entries were left out; references to those are not reported again. */
  readonly incomplete: ReadonlySet<string>;
  readonly routeGroups: ReadonlySet<string>;
  /** Keys (`namespace/hostname`) of services with their ports. */
  readonly services: ReadonlyMap<string, Readonly<Record<string, number>>>;
}

/** The target of a backend. Problems are reported and give an invalid target. */
export function translateTarget(input: TargetInput, path: Path, context: TargetContext): Target {
  const { dns } = input;
  if (input.host !== undefined) {
    const target = translateHost(input.host, path, context) ?? { type: "invalid", reference: input.host };
    if (dns === undefined) return target;
    if (isName(target)) {
      reportFirst(target, dns, path, context.report);
      return { ...target, dns };
    }
    if (target.type !== "invalid") context.report([...path, "dns"], NOT_A_NAME);
    return target;
  }
  if (dns !== undefined) context.report([...path, "dns"], NOT_A_NAME);
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

/** The address of the field `host` of the object at `path`. undefined: it is invalid, and has been reported. */
export function translateHost(host: string, path: Path, { hosts, report }: TargetContext): HostTarget | undefined {
  const parsed = parseHost(host);
  const refused = parsed?.type === "static" ? hosts?.(parsed.host) : undefined;
  if (parsed !== undefined && refused === undefined) return parsed;
  report([...path, "host"], refused ?? invalidHost(host));
  return undefined;
}

/** For `dns`. */
const NOT_A_NAME: Problem = { message: "is for a host that is a name; leave it out" };

/** SRV records have no order in which one server could stand for all. */
export function reportFirst(
  { srv }: Pick<NamedTarget, "srv">,
  { mode }: DnsSettings,
  path: Path,
  report: Report,
): void {
  if (srv !== undefined && mode === "first")
    report([...path, "dns", "mode"], { message: `each server of srv:${srv} is an endpoint; leave it out` });
}

type NamedTarget = Extract<Target, { type: "static" }>;

/** Whether a target is looked up. */
export function isName(target: Target): target is NamedTarget {
  return target.type === "static" && isIP(target.host) === 0;
}

function invalidHost(text: string): Problem {
  // Never shows the user and password of a URL.
  const message = `invalid host:port: ${text.replace(/.*@/s, "<redacted>@")}`;
  const [, scheme, authority = ""] = /^(https?):\/\/([^/?#@]+)(?:[/?#].*)?$/i.exec(text) ?? [];
  const cause = { code: "invalidDestination" } as const;
  if (scheme === undefined)
    return { message, expected: "host:port, ip:port, [ipv6]:port, srv:name or unix:/path", cause };
  const secure = scheme.toLowerCase() === "https";
  const host = /:\d+$/.test(authority) ? authority : `${authority}:${secure ? 443 : 80}`;
  const further = secure ? ", with backendTLS: {} among the backend's policies" : "";
  return { message, expected: `${host}, not a URL${further}`, cause };
}

/** Labels of a service and protocol (RFC 2782), then the domain. */
const SRV = /^srv:(?=.{1,253}$)((?:_[A-Za-z0-9-]+\.)*((?:[A-Za-z0-9-]+\.)*[A-Za-z0-9-]+))\.?$/;

/** The target of a `host`; undefined if it is invalid. */
export function parseHost(text: string): HostTarget | undefined {
  const [, srv, domain] = SRV.exec(text) ?? [];
  if (srv !== undefined && domain !== undefined && isIP(domain) === 0)
    return { type: "static", host: domain, port: 0, srv };
  // A path that is not absolute would depend on the folder that the gateway was started in.
  if (text.startsWith("unix:")) return text[5] === "/" ? { type: "unix", path: text.slice(5) } : undefined;
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  const host = match?.[1] ?? match?.[2];
  if (host === undefined || port < 1 || port > 65535) return undefined;
  if (match?.[1] !== undefined && !isIPv6(match[1])) return undefined;
  return { type: "static", host, port };
}

/** Proxies connect to hosts. The endpoints of a pool are targets of their own. */
export function isTunnelled(target: Target): boolean {
  return (
    target.type !== "unix" && target.type !== "internal" && !(target.type === "static" && target.srv !== undefined)
  );
}

const UNREACHED: Readonly<Partial<Record<Target["type"], string>>> = {
  unix: "reach a Unix socket",
  internal: "reach the admin API",
  static: "look up SRV records",
};

/**
 * Reports a `backendTunnel` to a target that no proxy can reach, or to a pool with such an endpoint; `path` is that of the object with
 * `policies`.
 */
export function checkTunnel(
  target: Target,
  { backendTunnel }: PolicySet,
  path: Path,
  report: Report,
  endpoints: () => readonly HostTarget[] = () => [],
): void {
  if (backendTunnel === undefined) return;
  const endpoint = endpoints().find((each) => !isTunnelled(each));
  if (endpoint === undefined && isTunnelled(target)) return;
  const why = UNREACHED[(endpoint ?? target).type] ?? "reach it";
  const which = endpoint === undefined ? "" : ` (the endpoint ${targetName(endpoint)})`;
  report([...path, "policies", "backendTunnel"], { message: `no proxy can ${why}${which}; leave it out` });
}
