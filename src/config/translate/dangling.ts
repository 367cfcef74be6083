import type { Path } from "../../base/paths.ts";
import type { Ir } from "../../ir/ir.ts";
import { lint } from "../../translation/problems/lint.ts";
import { noPort, reportUnknown } from "../../translation/references.ts";
import { CONNECTION_KINDS, TCP_KINDS } from "../../translation/schema/policies.ts";
import type { ConfigFile, TargetedPolicyInput } from "../schema/config.ts";
import type { Context, ListenerPlace, RoutePlace } from "./context.ts";
import { isHttp } from "./listeners.ts";
import { listenerKeys, phaseOf, routeKeys, targetKey } from "./targeted.ts";
import { reportUnusable, WITHOUT_HTTP } from "./unusable.ts";

type Target = TargetedPolicyInput["target"];
type GatewayTarget = NonNullable<Target["gateway"]>;
type RouteTarget = NonNullable<Target["route"]>;
type BackendTarget = NonNullable<NonNullable<Target["backend"]>["backend"]>;
type ServiceTarget = NonNullable<NonNullable<Target["backend"]>["service"]>;

/** Everything that policies can be attached to. */
interface Attachable {
  readonly listeners: readonly ListenerPlace[];
  readonly routes: readonly RoutePlace[];
  /** Keys of all targets, and of those that serve HTTP. */
  readonly keys: ReadonlySet<string>;
  readonly http: ReadonlySet<string>;
}

/** The fields that define what a target can refer to. References to entries that were invalid are not reported again. */
const FIELDS = {
  gateway: ["gateways", "binds"],
  route: ["routes", "tcpRoutes", "binds", "routeGroups", "gateways"],
} as const;

/** Reports each policy whose target does not exist or cannot use it: the policy would silently never apply. */
export function reportDangling(config: ConfigFile, ir: Ir, context: Context): void {
  if (config.policies.length === 0) return;
  const known = knownTargets(ir, [...context.listeners.values()]);
  for (const [i, input] of config.policies.entries()) {
    const { gateway, route, backend } = input.target;
    const at: Path = ["policies", i];
    if (gateway !== undefined) checkGateway(gateway, input, known, at, context);
    if (route !== undefined) checkRoute(route, input, known, at, context);
    if (backend?.service !== undefined) checkService(backend.service, [...at, "target", "backend", "service"], context);
    if (backend?.backend !== undefined) checkBackend(backend.backend, [...at, "target", "backend"], context);
  }
}

function knownTargets(ir: Ir, listeners: readonly ListenerPlace[]): Attachable {
  const all = ir.binds.flatMap((bind) => bind.listeners);
  const http = [...all, ...ir.routeGroups].flatMap(({ routes }) => routes);
  const tcp = all.flatMap(({ tcpRoutes }) => tcpRoutes);
  const routes = [
    ...http.map((route): RoutePlace => ({ ...route, kind: "HTTPRoute" })),
    ...tcp.map((route): RoutePlace => ({ ...route, kind: "TCPRoute" })),
  ];
  return {
    listeners,
    routes,
    keys: new Set([...listeners.flatMap(listenerKeys), ...routes.flatMap(routeKeys)]),
    http: new Set([
      ...listeners.filter(isHttp).flatMap(listenerKeys),
      ...routes.filter(({ kind }) => kind === "HTTPRoute").flatMap(routeKeys),
    ]),
  };
}

function checkGateway(
  target: GatewayTarget,
  input: TargetedPolicyInput,
  known: Attachable,
  at: Path,
  context: Context,
): void {
  const path = [...at, "target", "gateway"];
  const { gatewayName, gatewayNamespace, listenerName, port } = target;
  const key = targetKey(input);
  if (known.keys.has(key)) {
    if (!known.http.has(key)) {
      const usable = phaseOf(input) === "gateway" ? CONNECTION_KINDS : TCP_KINDS;
      reportUnusable(WITHOUT_HTTP, usable, input.policy, [...at, "policy"], context.report);
    }
    return;
  }
  const own = known.listeners.filter(
    (each) =>
      each.gatewayNamespace === gatewayNamespace && [each.gatewayName, each.entry?.gateway].includes(gatewayName),
  );
  if (port !== undefined && own.length > 0) {
    const ports = new Set(own.map((each) => each.port));
    const message = `gateway ${gatewayName} has no port ${port}`;
    context.report([...path, "port"], { message, expected: `one of ${[...ports].join(", ")}` });
    return;
  }
  const names = known.listeners.flatMap((each) => {
    const { entry, name } = each;
    return [gatewayText(each), ...(entry === undefined ? [gatewayText(each, name)] : [entry.gateway, name])];
  });
  reportUnknown(
    "gateway",
    incomplete("gateway", context),
    gatewayText(target, listenerName),
    new Set(names),
    path,
    context,
  );
}

function checkRoute(
  target: RouteTarget,
  input: TargetedPolicyInput,
  known: Attachable,
  at: Path,
  context: Context,
): void {
  const path = [...at, "target", "route"];
  const { name, namespace, ruleName, kind } = target;
  const key = targetKey(input);
  if (known.keys.has(key)) {
    if (!known.http.has(key))
      reportUnusable("TCP routes have", TCP_KINDS, input.policy, [...at, "policy"], context.report);
    return;
  }
  const same = known.routes.find(
    (each) => each.name === name && each.namespace === namespace && (ruleName ?? each.ruleName) === each.ruleName,
  );
  if (same !== undefined && kind !== undefined) {
    context.report([...path, "kind"], { message: `the kind of the route ${name} is ${same.kind}` });
    return;
  }
  const names = known.routes.flatMap((each) => [routeText(each), routeText(each, each.ruleName)]);
  reportUnknown("route", incomplete("route", context), routeText(target, ruleName), new Set(names), path, context);
}

function checkBackend({ name, namespace, section }: BackendTarget, path: Path, context: Context): void {
  const { backends, report } = context;
  if (section !== undefined && backends.has(name))
    lint(report, [...path, "backend", "section"], "unattached-policy", "backends have no sections");
  if (!backends.has(name)) reportUnknown("backend", "backends", name, backends.keys(), path, context);
  else if (namespace !== "")
    report([...path, "backend", "namespace"], { message: "backends of a file have no namespace; leave it out" });
}

function checkService({ namespace, hostname, port }: ServiceTarget, path: Path, context: Context): void {
  const service = `${namespace}/${hostname}`;
  const ports = context.services.get(service);
  if (ports === undefined) reportUnknown("service", "services", service, context.services.keys(), path, context);
  else if (port !== undefined && ports[port] === undefined)
    context.report([...path, "port"], noPort(service, port, ports));
}

/** The field that has lost an invalid entry, else the one that usually defines such things. */
function incomplete(kind: keyof typeof FIELDS, context: Context): string {
  return FIELDS[kind].find((each) => context.incomplete.has(each)) ?? FIELDS[kind][0];
}

function gatewayText({ gatewayNamespace, gatewayName }: GatewayTarget | ListenerPlace, listener?: string): string {
  return text(gatewayNamespace, gatewayName, listener);
}

function routeText({ namespace, name }: RouteTarget | RoutePlace, rule?: string): string {
  return text(namespace, name, rule);
}

/** `[<namespace>/]<name>[/<part>]`, without the default namespace. */
function text(namespace: string, name: string, part: string | undefined): string {
  return [...(namespace === "default" ? [] : [namespace]), name, ...(part === undefined ? [] : [part])].join("/");
}
