import { type Fields, fieldsOf } from "../../base/fields.ts";
import { list, number, text, values } from "./dump.ts";

/** One line of `tgctl proxy config backends`. */
export interface EndpointRow {
  readonly type: "Backend" | "Service";
  readonly name: string;
  readonly namespace: string;
  readonly endpoint: string;
  /** `0.00` to `1.00`, or why the endpoint is not used: `Evict (3.3s)`, `evicted`, `unhealthy`. */
  readonly health: string;
  /** Gets no requests at present, unless none of the others does. */
  readonly rejected: boolean;
  /** Why the active health checks fail; empty if they do not. */
  readonly reason: string;
  readonly requests: number;
  /** Moving average in milliseconds; 0 before the first request. */
  readonly latencyMs: number;
}

/**
 * The endpoints of a configuration dump (reference 4.4) with their health: those of its services and of its backends, and of
 * backends that stand in routes, which other versions keep there. Sorted by type, namespace, name and endpoint. Unknown fields are ignored, absent ones empty.
 */
export function endpointRows(dump: unknown): EndpointRow[] {
  const { binds, services, backends } = fieldsOf(dump);
  const rows = [
    ...list(services)
      .map(fieldsOf)
      .flatMap((service) => rowsOf("Service", service, service)),
    ...list(backends)
      .map(fieldsOf)
      .flatMap((entry) => rowsOf("Backend", shortened(fieldsOf(Object.values(fieldsOf(entry.backend))[0])), entry)),
    ...routesOf(binds).flatMap((route) =>
      list(route.backends)
        .map(fieldsOf)
        .flatMap((backend) => rowsOf("Backend", route, backend)),
    ),
  ];
  return rows.sort(
    (a, b) =>
      compare(a.type, b.type) ||
      compare(a.namespace, b.namespace) ||
      compare(a.name, b.name) ||
      compare(a.endpoint, b.endpoint),
  );
}

/** The HTTP and TCP routes of all listeners. */
function routesOf(binds: unknown): Fields[] {
  return list(binds)
    .flatMap((bind) => values(fieldsOf(bind).listeners))
    .map(fieldsOf)
    .flatMap((listener) => [...values(listener.routes), ...values(listener.tcpRoutes)])
    .map(fieldsOf);
}

/** A backend of a route is named `<listener>/<namespace>/<route>/backend<n>`: the listener is left out. */
function shortened(backend: Fields): Fields {
  const [, namespace, name] = /([^/]+)\/([^/]+\/backend\d+)$/.exec(text(backend.name)) ?? [];
  return name === undefined ? backend : { name, namespace };
}

/** `owner` has the name; `holder` the endpoints: one element per locality bucket. */
function rowsOf(type: EndpointRow["type"], owner: Fields, holder: Fields): EndpointRow[] {
  const name = text(owner.name) || text(owner.hostname);
  const namespace = text(owner.namespace);
  const row = (key: string, entry: unknown, rejected: boolean): EndpointRow => {
    const info = fieldsOf(fieldsOf(entry).info);
    const seconds = number(info.requestLatency) ?? number(info.request_latency) ?? 0;
    return {
      type,
      name,
      namespace,
      endpoint: endpointName(key, namespace),
      rejected,
      reason: failing(info) ? text(fieldsOf(info.activeHealth).reason) : "",
      health: rejected ? evicted(info) : (number(info.health) ?? 1).toFixed(2),
      requests: number(info.totalRequests) ?? number(info.total_requests) ?? 0,
      latencyMs: Math.round(seconds * 1e5) / 100,
    };
  };
  return list(holder.endpoints)
    .map(fieldsOf)
    .flatMap(({ active, rejected }) => [
      ...Object.entries(fieldsOf(active)).map(([key, entry]) => row(key, entry, false)),
      ...Object.entries(fieldsOf(rejected)).map(([key, entry]) => row(key, entry, true)),
    ]);
}

/**
 * `cluster//Pod/ns/name` → `name` in the same namespace, else `ns/name`; any other key as it is. A key may end in its Service,
 * `:ns/hostname`, which the row has already.
 */
function endpointName(key: string, namespace: string): string {
  const [, pod = key] = /Pod\/([^:]+)(?::[^/]+\/[^/]+)?$/.exec(key) ?? [];
  return pod.startsWith(`${namespace}/`) ? pod.slice(namespace.length + 1) : pod;
}

function evicted(info: Fields): string {
  if (failing(info)) return "unhealthy";
  const until = text(info.evictedUntil) || text(info.evicted_until);
  const seconds = Number.parseFloat(until);
  return Number.isNaN(seconds) ? "evicted" : `Evict (${seconds.toFixed(1)}s)`;
}

function failing(info: Fields): boolean {
  return fieldsOf(info.activeHealth).state === "unhealthy";
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
