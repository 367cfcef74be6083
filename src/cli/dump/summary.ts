import { type Fields, fieldsOf } from "../../base/fields.ts";
import { list, table, tagged, text, values } from "./dump.ts";

/** One table of a dump: its objects, and their rows for people. */
interface Section {
  readonly header: readonly string[];
  readonly items: (dump: Fields) => readonly Fields[];
  readonly row: (item: Fields, targets: Targets) => readonly string[];
}

/** Where the backends that stand in routes send to, by their keys. */
type Targets = ReadonlyMap<string, string>;

/** The tables of a configuration dump in the order of `tgctl proxy config all` (docs/tgctl.md#tgctl-proxy-config-all). */
const SECTIONS = {
  binds: { header: ["ADDRESS", "PROTOCOL", "TUNNEL", "LISTENERS"], items: bindsOf, row: bindRow },
  listeners: {
    header: ["LISTENER", "GATEWAY", "PROTOCOL", "HOSTNAME", "ROUTES"],
    items: listenersOf,
    row: listenerRow,
  },
  routes: {
    header: ["ROUTE", "HOSTNAMES", "MATCHES", "BACKENDS", "POLICIES"],
    items: routesOf,
    row: routeRow,
  },
  backends: {
    header: ["NAME", "NAMESPACE", "TYPE", "TARGET", "POLICIES"],
    items: (dump) => list(dump.backends).map(fieldsOf),
    row: backendRow,
  },
  services: {
    header: ["NAME", "NAMESPACE", "HOSTNAME", "PORTS", "ENDPOINTS"],
    items: (dump) => list(dump.services).map(fieldsOf),
    row: serviceRow,
  },
  policies: {
    header: ["POLICY", "TARGET", "PHASE", "KIND"],
    items: (dump) => list(dump.policies).map(fieldsOf),
    row: policyRow,
  },
} as const satisfies Readonly<Record<string, Section>>;

export type SectionName = keyof typeof SECTIONS;

/** A configuration dump for people: every table that has rows. */
export function summarize(dump: unknown): string {
  const targets = targetsOf(fieldsOf(dump));
  const parts = Object.entries(SECTIONS).flatMap(([name, { header, items, row }]) => {
    const found = items(fieldsOf(dump));
    return found.length === 0
      ? []
      : [`${name.toUpperCase()} (${found.length})\n${table(header, toRows(found, row, targets))}`];
  });
  return parts.length === 0 ? "The proxy has no configuration.\n" : parts.join("\n");
}

/** What one table of a dump lists, as objects of the dump. */
export function sectionItems(dump: unknown, name: SectionName): readonly Fields[] {
  return SECTIONS[name].items(fieldsOf(dump));
}

/** One table of a dump; only its header when nothing is listed. */
export function sectionTable(dump: unknown, name: SectionName): string {
  const { header, row } = SECTIONS[name];
  return table(header, toRows(sectionItems(dump, name), row, targetsOf(fieldsOf(dump))));
}

function toRows(items: readonly Fields[], row: Section["row"], targets: Targets): (readonly string[])[] {
  return items.map((item) => row(item, targets));
}

/** Of named backends routes show the names, which have a slash only in front. */
function targetsOf(dump: Fields): Targets {
  const backends = list(dump.backends).map((entry) => fieldsOf(tagged(fieldsOf(entry).backend)?.[1]));
  return new Map(
    backends.flatMap(({ name, target }) =>
      text(name).includes("/") && text(target) !== "" ? [[`/${text(name)}`, text(target)] as const] : [],
    ),
  );
}

function bindsOf(dump: Fields): Fields[] {
  return list(dump.binds).map(fieldsOf);
}

/** The listeners with the key of their bind; of their routes, which have a table of their own, the keys. */
function listenersOf(dump: Fields): Fields[] {
  return bindsOf(dump).flatMap((bind) =>
    values(bind.listeners)
      .map(fieldsOf)
      .map(({ routes, tcpRoutes, ...listener }) => ({
        bind: text(bind.key),
        ...listener,
        routes: [...values(routes), ...values(tcpRoutes)].map((route) => text(fieldsOf(route).key)),
      })),
  );
}

/** The routes of all listeners, and those of services and of route groups. */
function routesOf(dump: Fields): Fields[] {
  const inListeners = bindsOf(dump)
    .flatMap((bind) => values(bind.listeners).map(fieldsOf))
    .flatMap((listener) => [...values(listener.routes), ...values(listener.tcpRoutes)]);
  return [...inListeners, ...routeGroups(dump.routes)].map(fieldsOf);
}

function bindRow(bind: Fields): string[] {
  return [text(bind.address), text(bind.protocol), text(bind.tunnelProtocol), String(values(bind.listeners).length)];
}

function listenerRow(listener: Fields): string[] {
  const name = text(listener.listenerName) || text(listener.name);
  const gateway = [text(listener.gatewayNamespace), text(listener.gatewayName)].filter(Boolean).join("/");
  return [
    `${text(listener.bind)}/${name}`,
    gateway,
    tagged(listener.protocol)?.[0] ?? "",
    text(listener.hostname) || "*",
    String(list(listener.routes).length),
  ];
}

/** Routes outside of listeners. */
function routeGroups(routes: unknown): unknown[] {
  const { httpMesh, tcpMesh, routeGroups: groups } = fieldsOf(routes);
  const nested = values(groups).flatMap((group) => values(fieldsOf(group).routes ?? group));
  return [...values(httpMesh), ...values(tcpMesh), ...nested].filter((route) => text(fieldsOf(route).key) !== "");
}

function routeRow(route: Fields, targets: Targets): string[] {
  return [
    text(route.key),
    list(route.hostnames).map(text).join(",") || "*",
    list(route.matches).map(fieldsOf).map(describeMatch).join(" or ") || "any",
    list(route.backends)
      .map(fieldsOf)
      .map((backend) => describeBackend(backend, targets))
      .join(", ") || "none",
    kinds(route.inlinePolicies),
  ];
}

const PATH_SIGN: Readonly<Record<string, string>> = { exact: "=", pathPrefix: "", regex: "~" };

/** `GET /api* [x-tenant=a ?debug=1]`: a prefix ends in `*`, an exact path begins with `=`, an expression with `~`. */
function describeMatch(match: Fields): string {
  const [kind, path] = tagged(match.path) ?? ["pathPrefix", "/"];
  const shown = `${PATH_SIGN[kind] ?? `${kind}:`}${text(path)}${kind === "pathPrefix" ? "*" : ""}`;
  const conditions = [
    ...list(match.headers).map((header) => describeValue(fieldsOf(header), "")),
    ...list(match.query).map((query) => describeValue(fieldsOf(query), "?")),
  ];
  const method = text(match.method) || text(fieldsOf(match.method).method);
  return [method, shown, conditions.length > 0 ? `[${conditions.join(" ")}]` : ""].filter(Boolean).join(" ");
}

function describeValue(condition: Fields, prefix: string): string {
  const [kind, value] = tagged(condition.value) ?? ["", ""];
  return `${prefix}${text(condition.name)}${kind === "regex" ? "~" : "="}${text(value)}`;
}

const NO_TARGET = new Set(["weight", "inlinePolicies", "policyOrigins"]);

function describeBackend(backend: Fields, targets: Targets): string {
  // TCP routes wrap the reference once more.
  const holder = Object.keys(fieldsOf(backend.backend)).length > 0 ? fieldsOf(backend.backend) : backend;
  const [kind, target] = Object.entries(holder).find(([key]) => !NO_TARGET.has(key)) ?? ["invalid", null];
  const service = fieldsOf(target);
  const name =
    kind === "service"
      ? `${serviceName(service.name)}:${text(service.port)}`
      : (targets.get(text(target)) ?? (text(target) || kind));
  const weight = backend.weight;
  return weight === undefined || weight === 1 ? name : `${name} (weight ${text(weight)})`;
}

function serviceName(name: unknown): string {
  const { namespace, hostname } = fieldsOf(name);
  return text(name) || [text(namespace), text(hostname)].filter(Boolean).join("/");
}

function backendRow(entry: Fields): string[] {
  const [kind, value] = tagged(entry.backend) ?? ["", {}];
  const backend = fieldsOf(value);
  const target = backend.target;
  return [
    text(backend.name),
    text(backend.namespace),
    kind,
    text(target) || (target === undefined || target === null ? "" : JSON.stringify(target)),
    kinds(entry.inlinePolicies),
  ];
}

function serviceRow(service: Fields): string[] {
  const buckets = list(service.endpoints).map(fieldsOf);
  const count = (key: "active" | "rejected") =>
    buckets.reduce((sum, bucket) => sum + Object.keys(fieldsOf(bucket[key])).length, 0);
  const rejected = count("rejected");
  return [
    text(service.name),
    text(service.namespace),
    text(service.hostname),
    Object.entries(fieldsOf(service.ports))
      .map(([from, to]) => `${from}→${text(to)}`)
      .join(","),
    rejected === 0 ? String(count("active")) : `${count("active")} (${rejected} evicted)`,
  ];
}

function policyRow(policy: Fields): string[] {
  const { kind, namespace, name } = fieldsOf(policy.name);
  const named = [text(kind), text(namespace), text(name)].filter(Boolean).join("/");
  const [level, body] = tagged(policy.policy) ?? ["", {}];
  const phase = text(fieldsOf(body).phase) || level;
  const policyKinds = Object.keys(fieldsOf(body)).filter((key) => key !== "phase");
  return [named || text(policy.key), describeTarget(policy.target), phase, policyKinds.join(",")];
}

/** `gateway default/default`, `route ns/name`, `backend service ns/host:80`. */
function describeTarget(target: unknown): string {
  const [kind, value] = tagged(target) ?? ["", {}];
  const nested = fieldsOf(value);
  if (kind === "backend") return `backend ${describeTarget(value)}`;
  const name = [
    text(nested.gatewayNamespace) || text(nested.namespace),
    text(nested.gatewayName) || text(nested.name) || text(nested.hostname),
    text(nested.listenerName) || text(nested.ruleName) || text(nested.section),
  ].filter(Boolean);
  const port = text(nested.port);
  return `${kind} ${name.join("/")}${port === "" ? "" : `:${port}`}`.trim();
}

function kinds(policies: unknown): string {
  return list(policies)
    .map((policy) => tagged(policy)?.[0] ?? "")
    .filter(Boolean)
    .join(",");
}
