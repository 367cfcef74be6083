import type { Path } from "../../base/paths.ts";
import type { Listener, Route, TcpRoute } from "../../ir/ir.ts";
import { levelOf, recorded } from "../../ir/origins.ts";
import { mergeLevels } from "../../policies/merge.ts";
import { adviseOnRoutes } from "../../translation/advice.ts";
import { translatePolicies } from "../../translation/policies.ts";
import { reportDuplicates, reportUnknown } from "../../translation/references.ts";
import type { ConfigFile } from "../schema/config.ts";
import type { GatewayInput, GatewayListenerInput } from "../schema/listeners.ts";
import { listeningAt } from "./addresses.ts";
import type { Context, EntryName, ListenerPlace } from "./context.ts";
import { checkProtocol, isHttp, translateTls } from "./listeners.ts";
import { inlineEntries } from "./route-backends.ts";
import { type Owner, translateRoute, translateTcpRoute } from "./routes.ts";
import { reportUnusableAtListener } from "./unusable.ts";

/** A listener of `gateways` with the routes that refer to it. */
interface ServedListener extends Owner {
  readonly listener: Omit<Listener, "routes" | "tcpRoutes">;
  readonly routes: Route[];
  readonly tcpRoutes: TcpRoute[];
}

/** Listeners by what routes may write in `gateways`: the name of an entry, or `<entry>/<listener>`. */
type Named = ReadonlyMap<string, readonly ServedListener[]>;

/**
 * `gateways` with the top-level `routes` and `tcpRoutes` attached (docs/configuration.md#gateway,
 * docs/configuration.md#gatewayroute).
 */
export function translateGateways(
  config: ConfigFile,
  context: Context,
): {
  readonly input: GatewayInput;
  readonly at: ReturnType<typeof listeningAt>;
  readonly path: Path;
  readonly listeners: Listener[];
}[] {
  const gateways = new Map(
    Object.entries(config.gateways).map(([name, gateway]) => [
      name,
      entries(name, gateway, ["gateways", name], context),
    ]),
  );
  const named: Named = new Map(
    [...gateways].flatMap(([name, list]): [string, ServedListener[]][] => [
      [name, list],
      ...list.map((entry): [string, ServedListener[]] => [entry.listener.name, [entry]]),
    ]),
  );
  for (const [i, route] of config.routes.entries()) {
    const path = ["routes", i];
    const label = route.name ?? `route${i}`;
    for (const entry of find(route.gateways, true, label, path, named, context))
      entry.routes.push(translateRoute(route, entry.routes.length, entry, path, context));
  }
  for (const [i, route] of config.tcpRoutes.entries()) {
    const path = ["tcpRoutes", i];
    for (const entry of find(route.gateways, false, route.name ?? `tcproute${i}`, path, named, context))
      entry.tcpRoutes.push(translateTcpRoute(route, entry.tcpRoutes.length, entry, path, context));
  }
  return Object.entries(config.gateways).map(([name, input]) => ({
    input,
    at: listeningAt(input, ["gateways", name], context.report),
    path: ["gateways", name],
    listeners: (gateways.get(name) ?? []).map(({ listener, routes, tcpRoutes }) => {
      reportDuplicates("route", [...routes, ...tcpRoutes], context.report);
      const served = { ...listener, routes, tcpRoutes };
      adviseOnRoutes(served, context.report);
      return served;
    }),
  }));
}

function entries(name: string, gateway: GatewayInput, path: Path, context: Context): ServedListener[] {
  const { port = 0, address: _a, socketMode: _s, tunnelProtocol: _t, mode: _m, listeners, ...ofListener } = gateway;
  if (listeners === undefined)
    return [makeEntry({ gateway: name }, port, { ...ofListener, hostname: gateway.hostname ?? "*" }, path, context)];
  for (const [field, value] of Object.entries(ofListener))
    if (value !== undefined)
      context.report(
        path,
        {
          message:
            "with listeners, only port, address, socketMode, tunnelProtocol and mode may be set here; move the field to the listeners",
        },
        field,
      );
  const made = listeners.map(({ name: given, ...listener }, i) =>
    makeEntry({ gateway: name, listener: given ?? `listener${i}` }, port, listener, [...path, "listeners", i], context),
  );
  reportDuplicates(
    "listener",
    made.map(({ listener }) => listener),
    context.report,
  );
  return made;
}

/** A listener has the name by which routes refer to it, `<gateway>[/<listener>]`; all belong to one gateway, like those of `binds`. */
function makeEntry(
  entry: EntryName,
  port: number,
  input: Omit<GatewayListenerInput, "name">,
  path: Path,
  context: Context,
): ServedListener {
  const { hostname, tls, protocol = tls === undefined ? "HTTP" : "HTTPS", ...inline } = input;
  checkProtocol(protocol, tls !== undefined, path, context);
  const name = entry.listener === undefined ? entry.gateway : `${entry.gateway}/${entry.listener}`;
  const key = `gateway/${name}`;
  const place: ListenerPlace = {
    key,
    name,
    gatewayName: "default",
    gatewayNamespace: "default",
    protocol,
    port,
    entry,
  };
  context.listeners.set(key, place);
  const targeted = context.targeted.forListener(place);
  // The policies are fields of the gateway or listener itself.
  const own = levelOf(translatePolicies(inline, "gateway", path, context), (field) => ({ at: [field] }));
  if (!isHttp(place)) reportUnusableAtListener(inline, path, context.report);
  context.inline.push(...inlineEntries(key, place, own.set, path));
  const merged = mergeLevels(targeted.gateway, own);
  const listener = {
    key,
    name,
    gatewayName: place.gatewayName,
    gatewayNamespace: place.gatewayNamespace,
    hostname: hostname.toLowerCase(),
    protocol,
    ...(tls !== undefined && translateTls(tls, hostname, [...path, "tls"], context)),
    origin: { path },
    ...recorded(merged),
  };
  return { key, targeted, udp: protocol === "UDP", listener, routes: [], tcpRoutes: [] };
}

/** The listeners that a route's `gateways` mean; without one, those of the gateway called `default`. */
function find(
  refs: string | readonly string[] | undefined,
  http: boolean,
  label: string,
  path: Path,
  named: Named,
  context: Context,
): ServedListener[] {
  if (refs === undefined) {
    const usable = (named.get("default") ?? []).filter(({ listener }) => isHttp(listener) === http);
    if (usable.length === 0 && !context.incomplete.has("gateways"))
      context.report(path, {
        message: `${http ? "routes" : "tcpRoutes"}.${label} must set gateways, because there is no gateway named default`,
      });
    return usable;
  }
  const list = typeof refs === "string" ? [refs] : refs;
  const found = list.flatMap((ref, i) => {
    const at = typeof refs === "string" ? [...path, "gateways"] : [...path, "gateways", i];
    const meant = named.get(ref) ?? [];
    if (meant.length === 0) {
      reportUnknown("gateway", "gateways", ref, named.keys(), at, context);
      return [];
    }
    const usable = meant.filter(({ listener }) => isHttp(listener) === http);
    if (usable.length === 0)
      context.report(at, { message: `gateway reference ${ref} has no ${http ? "HTTP" : "TCP"} listeners` });
    return usable;
  });
  // `edge` and `edge/web` may mean the same listener.
  return [...new Set(found)];
}
