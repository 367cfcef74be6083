import { messageOf } from "../../base/errors.ts";
import type { Path } from "../../base/paths.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import type { PathMatch, Route, RouteMatch, TcpRoute, ValueMatch } from "../../ir/ir.ts";
import { levelOf, type PhaseLevels, type PolicySource, recorded } from "../../ir/origins.ts";
import { mergeLevels } from "../../policies/merge.ts";
import type { PolicyInputs } from "../../policies/policy-set.ts";
import { translatePolicies } from "../../translation/policies.ts";
import { withoutHttp } from "../../translation/route-policies.ts";
import { ROUTE_BACKEND_KINDS } from "../../translation/schema/policies.ts";
import { DynamicTarget } from "../../upstream/destinations/dynamic.ts";
import type { Target } from "../../upstream/settings/target.ts";
import type { RouteInput, TcpRouteInput } from "../schema/routes.ts";
import type { Context } from "./context.ts";
import { translateBackend } from "./route-backends.ts";

type MatchInput = RouteInput["matches"][number];
type NamedInput = NonNullable<MatchInput["headers"]>[number];

const ANY: RouteMatch = { path: { type: "pathPrefix", value: "/" }, headers: [], query: [] };

/** For policies that apply to the backends of the route. */
const AT_ROUTE = (field: string): PolicySource => ({ at: ["policies", field] });

/** The listener or route group of a route. */
export interface Owner {
  /** Of a listener, or `group/<name>`. */
  readonly key: string;
  /** Policies that target it. */
  readonly targeted: Pick<PhaseLevels, "route" | "backend">;
  /** A listener of datagrams. Absent: false. */
  readonly udp?: boolean;
}

/** One HTTP route. */
export function translateRoute(input: RouteInput, index: number, owner: Owner, path: Path, context: Context): Route {
  const name = input.name ?? `route${index}`;
  const key = `${owner.key}/${input.namespace}/${name}`;
  const at = [...path, "policies"];
  const written = split(input.policies);
  const own = levelOf(translatePolicies(written.route, "route", at, context));
  const ofBackends = levelOf(translatePolicies(written.backends, "backend", at, context), AT_ROUTE);
  reportDelegated(input, Object.keys(ofBackends.set), at, context);
  const { namespace, ruleName } = input;
  const targeted = context.targeted.forRoute({ kind: "HTTPRoute", name, namespace, ...(ruleName && { ruleName }) });
  const merged = mergeLevels(owner.targeted.route, targeted.route, own);
  const inherited = { listener: owner.targeted.backend, route: mergeLevels(targeted.backend, ofBackends) };
  return {
    key,
    name,
    namespace: input.namespace,
    ...(input.ruleName !== undefined && { ruleName: input.ruleName }),
    hostnames: input.hostnames.map((hostname) => hostname.toLowerCase()),
    matches: input.matches.length > 0 ? input.matches.flatMap(translateMatch) : [ANY],
    origin: { path },
    ...recorded(merged, mergeLevels(own, ofBackends).set),
    backends: input.backends.map((backend, i) =>
      translateBackend(backend, `/${key}/backend${i}`, inherited, [...path, "backends", i], context),
    ),
  };
}

interface Written {
  readonly route: PolicyInputs | undefined;
  readonly backends: PolicyInputs | undefined;
}

/** The policies of a route that apply to its backends. */
function split(policies: RouteInput["policies"]): Written {
  if (policies === undefined || ROUTE_BACKEND_KINDS.every((kind) => policies[kind] === undefined))
    return { route: policies, backends: undefined };
  const { backendAuth, backendTLS, backendTunnel, ...route } = policies;
  return { route, backends: { backendAuth, backendTLS, backendTunnel } };
}

/** A group's routes have backends and policies of their own, on which the policies here would be lost. */
function reportDelegated(
  { backends }: RouteInput,
  kinds: readonly string[],
  path: Path,
  { report }: Pick<Context, "report">,
): void {
  const group = backends.find(({ routeGroup }) => routeGroup !== undefined)?.routeGroup;
  if (group === undefined) return;
  for (const kind of kinds)
    report([...path, kind], { message: `does not reach the backends of the group ${group}; set it on its routes` });
}

export function translateTcpRoute(
  input: TcpRouteInput,
  index: number,
  owner: Owner,
  path: Path,
  context: Context,
): TcpRoute {
  const name = input.name ?? `tcproute${index}`;
  const key = `${owner.key}/${input.namespace}/${name}`;
  const { namespace, ruleName } = input;
  const targeted = context.targeted.forRoute({ kind: "TCPRoute", name, namespace, ...(ruleName && { ruleName }) });
  const common = levelOf(translatePolicies(input.policies, "backend", [...path, "policies"], context), AT_ROUTE);
  if (owner.udp === true) reportUnusableWithUdp(input, path, context);
  return {
    key,
    name,
    namespace: input.namespace,
    ...(ruleName !== undefined && { ruleName }),
    origin: { path },
    hostnames: input.hostnames.map((hostname) => hostname.toLowerCase()),
    backends: input.backends.map((backend, i) => {
      const at = [...path, "backends", i];
      const inherited = { listener: owner.targeted.backend, route: mergeLevels(targeted.backend, common) };
      const translated = translateBackend(backend, `/${key}/backend${i}`, inherited, at, context);
      const wrong =
        backend.backend === undefined ? undefined : unusable(translated.target, owner.udp === true, context.cel);
      if (wrong !== undefined) context.report([...at, "backend"], { message: wrong });
      return { ...translated, policies: withoutHttp(translated.policies) };
    }),
  };
}

/** Sessions have no TLS, no connections to tune and no proxies to go through; a named backend or target may have such settings. */
function reportUnusableWithUdp({ policies, backends }: TcpRouteInput, path: Path, { report }: Context): void {
  const parts = [{ policies, at: path }, ...backends.map((each, i) => ({ ...each, at: [...path, "backends", i] }))];
  for (const { policies: written, at } of parts)
    for (const kind of Object.keys(written ?? {}))
      if (kind !== "health")
        report([...at, "policies", kind], {
          message: "does not apply to UDP; routes of UDP listeners have health only",
        });
  for (const [i, { dynamic, host }] of backends.entries())
    if (dynamic !== undefined || host?.startsWith("unix:") === true)
      report([...path, "backends", i], { message: "a UDP listener needs backends with a host and port, or a service" });
}

/** Why a named backend cannot serve connections without HTTP. */
function unusable(target: Target, udp: boolean, cel: CelEnvironment): string | undefined {
  if (udp && (target.type === "dynamic" || target.type === "unix"))
    return "has no address that datagrams can be sent to; a UDP listener needs a host and port, or a service";
  if (target.type === "internal") return "is internal, and the admin API is HTTP; give it an HTTP route";
  if (target.type !== "dynamic" || target.expression === undefined) return undefined;
  try {
    new DynamicTarget(target.expression, "network", cel);
    return undefined;
  } catch (error) {
    return `its target needs a request: ${messageOf(error)}`;
  }
}

/** Empty for a match that no request can satisfy. */
function translateMatch(match: MatchInput): RouteMatch[] {
  if (match.path === "invalid") return [];
  const translated = {
    path: translatePath(match.path),
    ...(match.method !== undefined && { method: match.method }),
    headers: (match.headers ?? []).map((each) => translateValue(each, true)),
    query: (match.query ?? []).map((each) => translateValue(each, false)),
  };
  return [translated];
}

function translatePath(path: Exclude<MatchInput["path"], "invalid">): PathMatch {
  if (path?.exact !== undefined) return { type: "exact", value: path.exact };
  if (path?.regex !== undefined) return { type: "regex", value: path.regex };
  return { type: "pathPrefix", value: path?.pathPrefix ?? "/" };
}

function translateValue({ name, value }: NamedInput, lower: boolean): ValueMatch {
  const type = value.exact === undefined ? "regex" : "exact";
  return { name: lower ? name.toLowerCase() : name, type, value: value.exact ?? value.regex ?? "" };
}
