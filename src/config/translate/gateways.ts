import type { Path } from "../../base/paths.ts";
import type { Listener, Route, TcpRoute } from "../../ir/ir.ts";
import { levelOf, recorded } from "../../ir/origins.ts";
import { mergeLevels } from "../../policies/merge.ts";
import { adviseOnRoutes } from "../../translation/advice.ts";
import { translatePolicies } from "../../translation/policies.ts";
import { reportDuplicates, reportUnknown } from "../../translation/references.ts";
import type { ConfigFile } from "../schema/config.ts";
import type { GatewayInput, GatewayListenerInput } from "../schema/listeners.ts";
import type { Context, ListenerPlace } from "./context.ts";
import { checkProtocol, translateTls } from "./listeners.ts";
import { inlineEntries } from "./route-backends.ts";
import { type Owner, translateRoute, translateTcpRoute } from "./routes.ts";

/** A listener of `gateways` with the routes that refer to it. */
interface ServedListener extends Owner {
  readonly listener: Omit<Listener, "routes" | "tcpRoutes">;
  readonly routes: Route[];
  readonly paths: Path[];
  readonly tcpRoutes: TcpRoute[];
  readonly tcpPaths: Path[];
}

/**
 * `gateways` with the top-level `routes` and `tcpRoutes` attached (docs/configuration.md#gateway,
 * docs/configuration.md#gatewayroute).
 */
export function translateGateways(
  config: ConfigFile,
  context: Context,
): { readonly port: number; readonly path: Path; readonly listeners: Listener[] }[] {
  const gateways = new Map(
    Object.entries(config.gateways).map(([name, gateway]) => [
      name,
      entries(name, gateway, ["gateways", name], context),
    ]),
  );
  for (const [i, route] of config.routes.entries()) {
    const path = ["routes", i];
    const label = route.name ?? `route${i}`;
    for (const entry of find(route.gateways, true, label, path, gateways, context)) {
      entry.routes.push(translateRoute(route, entry.routes.length, entry, path, context));
      entry.paths.push(path);
    }
  }
  for (const [i, route] of config.tcpRoutes.entries()) {
    const path = ["tcpRoutes", i];
    for (const entry of find(route.gateways, false, route.name ?? `tcproute${i}`, path, gateways, context)) {
      entry.tcpRoutes.push(translateTcpRoute(route, entry.tcpRoutes.length, entry, path, context));
      entry.tcpPaths.push(path);
    }
  }
  return [...gateways].map(([name, list]) => ({
    port: config.gateways[name]?.port ?? 0,
    path: ["gateways", name],
    listeners: list.map(({ listener, routes, paths, tcpRoutes, tcpPaths }) => {
      const named = routes.map(({ key, name }, i) => ({ key, name, path: paths[i] ?? [] }));
      const tcpNamed = tcpRoutes.map(({ key, name }, i) => ({ key, name, path: tcpPaths[i] ?? [] }));
      reportDuplicates("route", [...named, ...tcpNamed], context.report);
      adviseOnRoutes({ ...listener, routes, tcpRoutes }, [...paths, ...tcpPaths], context.report);
      return { ...listener, routes, tcpRoutes };
    }),
  }));
}

function entries(name: string, gateway: GatewayInput, path: Path, context: Context): ServedListener[] {
  const { port, listeners, ...ofListener } = gateway;
  if (listeners === undefined) return [makeEntry(name, port, { hostname: "*", ...ofListener }, path, context)];
  for (const [field, value] of Object.entries(ofListener))
    if (value !== undefined)
      context.report(
        path,
        { message: "with listeners, only port may be set here; move the field to the listeners" },
        field,
      );
  const made = listeners.map(({ name: given, ...listener }, i) =>
    makeEntry(`${name}/${given ?? `listener${i}`}`, port, listener, [...path, "listeners", i], context),
  );
  const named = made.map(({ listener: { key, name } }, i) => ({ key, name, path: [...path, "listeners", i] }));
  reportDuplicates("listener", named, context.report);
  return made;
}

/** A listener has the name by which routes refer to it, `<gateway>[/<listener>]`; all belong to one gateway, like those of `binds`. */
function makeEntry(
  name: string,
  port: number,
  input: Omit<GatewayListenerInput, "name">,
  path: Path,
  context: Context,
): ServedListener {
  const { hostname, tls, protocol = tls === undefined ? "HTTP" : "HTTPS", ...inline } = input;
  checkProtocol(protocol, tls !== undefined, path, context);
  const key = `gateway/${name}`;
  const place: ListenerPlace = { key, name, gatewayName: "default", gatewayNamespace: "default", port };
  const targeted = context.targeted.forListener(place);
  // The policies are fields of the gateway or listener itself.
  const own = levelOf(translatePolicies(inline, "gateway", path, context), (field) => ({ at: [field] }));
  context.inline.push(...inlineEntries(key, place, own.set, path));
  const merged = mergeLevels(targeted.gateway, own);
  const listener = {
    key,
    name,
    gatewayName: place.gatewayName,
    gatewayNamespace: place.gatewayNamespace,
    hostname: hostname.toLowerCase(),
    protocol,
    ...(tls !== undefined && { tls: translateTls(tls, hostname, [...path, "tls"], context) }),
    origin: { path },
    ...recorded(merged),
  };
  return { key, targeted, udp: protocol === "UDP", listener, routes: [], paths: [], tcpRoutes: [], tcpPaths: [] };
}

/** The listeners that a route's `gateways` mean; without one, those of the gateway called `default`. */
function find(
  refs: string | readonly string[] | undefined,
  http: boolean,
  label: string,
  path: Path,
  gateways: ReadonlyMap<string, readonly ServedListener[]>,
  context: Context,
): ServedListener[] {
  if (refs === undefined) {
    const usable = (gateways.get("default") ?? []).filter((entry) => isHttp(entry) === http);
    if (usable.length === 0 && !context.incomplete.has("gateways"))
      context.report(path, {
        message: `${http ? "routes" : "tcpRoutes"}.${label} must set gateways, because there is no gateway named default`,
      });
    return usable;
  }
  const list = typeof refs === "string" ? [refs] : refs;
  const found = list.flatMap((ref, i) => {
    const at = typeof refs === "string" ? [...path, "gateways"] : [...path, "gateways", i];
    const [gateway = ""] = ref.split("/");
    const meant = (gateways.get(gateway) ?? []).filter((entry) => ref === gateway || entry.listener.name === ref);
    if (meant.length === 0) {
      reportUnknown("gateway", "gateways", ref, names(gateways), at, context);
      return [];
    }
    const usable = meant.filter((entry) => isHttp(entry) === http);
    if (usable.length === 0)
      context.report(at, { message: `gateway reference ${ref} has no ${http ? "HTTP" : "TCP"} listeners` });
    return usable;
  });
  // `edge` and `edge/web` may mean the same listener.
  return [...new Set(found)];
}

function isHttp({ listener }: ServedListener): boolean {
  return listener.protocol === "HTTP" || listener.protocol === "HTTPS";
}

function names(gateways: ReadonlyMap<string, readonly ServedListener[]>): string[] {
  return [...new Set([...gateways].flatMap(([name, list]) => [name, ...list.map((entry) => entry.listener.name)]))];
}
