import { setImmediate as nextTurn } from "node:timers/promises";
import type { ConfigPart, ConfigPartsAnswer, ConfigPartsQuery } from "../admin/plane/config-parts.ts";
import type { Fields } from "../base/fields.ts";
import { formatOrigin, type Locate, type Origin, withPlace } from "../base/origin.ts";
import { redactAll } from "../base/redaction.ts";
import { backendName } from "../ir/backend-name.ts";
import type { Ir, Listener, Route, TcpRoute } from "../ir/ir.ts";
import { writtenKind } from "../policies/contract/shadow.ts";
import { kindsOf } from "../policies/merge.ts";
import type { PolicySet } from "../policies/policy-set.ts";
import { isPool } from "../upstream/discovery/discovery.ts";
import { backendsOf } from "./backend-uses.ts";
import {
  type DumpContext,
  dumpBindHead,
  dumpListenerHead,
  dumpRoute,
  dumpTargeted,
  dumpTcpRoute,
  dumpUsed,
  type Live,
} from "./config-dump.ts";
import { EndpointsDump } from "./endpoints-dump.ts";

/** Parts that are searched in one turn of the event loop: about 5 ms. */
const BATCH = 100;

/** A part, and how to show what is in it. */
interface Part extends ConfigPart {
  /** Policies in effect here, of its own and of its backends. */
  readonly policies?: readonly PolicySet[];
  readonly dump: () => Fields;
}

/** What the parts are taken from. */
interface PartsSource {
  readonly ir: Ir;
  readonly live: Live;
  readonly settings: Fields;
  readonly generation: number;
  readonly locate: Locate;
}

/**
 * The parts of a configuration in its order: binds with their listeners and routes, route groups with theirs, backends, policies, services,
 * workloads and the settings of the process. A search reads what is in them, without secrets.
 */
export async function configParts(
  source: PartsSource,
  { search = "", policy, at, page, limit }: ConfigPartsQuery & { readonly limit: number },
): Promise<ConfigPartsAnswer> {
  const all = [...partsOf(source)];
  const having = policy === undefined ? all : await filtered(all, (part) => hasPolicy(part, policy));
  const text = search.toLowerCase();
  const found = text === "" ? having : await filtered(having, (part) => hasText(part, text));
  const chosen = at === undefined ? undefined : partAt(all, at, source.locate);
  const index = chosen === undefined ? -1 : found.indexOf(chosen);
  const shown = page ?? (index === -1 ? 1 : Math.floor(index / limit) + 1);
  return {
    generation: source.generation,
    total: all.length,
    found: found.length,
    page: shown,
    parts: found.slice((shown - 1) * limit, shown * limit).map((part) => shownOf(part, source.locate)),
    ...(chosen && { chosen: { ...shownOf(chosen, source.locate), value: chosen.dump() } }),
  };
}

function shownOf({ dump: _dump, policies: _policies, ...part }: Part, locate: Locate): ConfigPart {
  return withPlace(part, locate);
}

function hasPolicy({ policies = [] }: Part, kind: string): boolean {
  return policies.some((set) => kindsOf(set).some((each) => writtenKind(each) === kind));
}

function hasText(part: Part, text: string): boolean {
  return `${part.kind} ${part.name} ${JSON.stringify(redactAll(part.dump()))}`.toLowerCase().includes(text);
}

async function filtered(parts: readonly Part[], fits: (part: Part) => boolean): Promise<Part[]> {
  const found: Part[] = [];
  for (const [index, part] of parts.entries()) {
    if (index % BATCH === BATCH - 1) await nextTurn();
    if (fits(part)) found.push(part);
  }
  return found;
}

/** The part with this key, or the innermost one that is written around this origin, or around this line of its file. */
function partAt(parts: readonly Part[], at: string, locate: Locate): Part | undefined {
  const named = parts.find(({ key }) => key === at);
  if (named !== undefined) return named;
  const [, file, line] = /^(.+):(\d+)$/.exec(at) ?? [];
  return file === undefined ? innermost(parts, at) : lastBefore(parts, file, Number(line), locate);
}

function innermost(parts: readonly Part[], at: string): Part | undefined {
  let best: { readonly part: Part; readonly length: number } | undefined;
  for (const part of parts) {
    if (part.origin === undefined) continue;
    const written = formatOrigin(part.origin);
    const isAround = at.startsWith(written) && /^$|^[. [\]]/.test(at.slice(written.length));
    if (isAround && written.length > (best?.length ?? 0)) best = { part, length: written.length };
  }
  return best?.part;
}

function lastBefore(parts: readonly Part[], file: string, line: number, locate: Locate): Part | undefined {
  let best: { readonly part: Part; readonly line: number } | undefined;
  for (const part of parts) {
    const place = part.origin?.object === undefined ? part.origin && locate(part.origin.path) : undefined;
    if (place?.file === file && place.line <= line && place.line > (best?.line ?? 0)) best = { part, line: place.line };
  }
  return best?.part;
}

function* partsOf({ ir, live, settings }: PartsSource): Generator<Part> {
  const endpoints = new EndpointsDump(ir, live);
  const context: DumpContext = { hidden: live.hidden, ports: live.ports, containers: ir };
  for (const bind of ir.binds) {
    yield { ...part("bind", bind.key, bind.key, 0), dump: () => dumpBindHead(bind, context) };
    for (const listener of bind.listeners) {
      const { gatewayNamespace, gatewayName, name } = listener;
      yield {
        ...part("listener", listener.key, `${gatewayNamespace}/${gatewayName} ${name}`, 1, listener.origin),
        policies: [listener.policies],
        dump: () => dumpListenerHead(listener),
      };
      yield* routesOf(listener, context);
    }
  }
  for (const group of ir.routeGroups) {
    const { name, origin } = group;
    yield { ...part("route group", name, name, 0, origin), dump: () => ({ name }) };
    for (const route of group.routes) yield routePart(`group/${name}`, route, () => dumpRoute(route, context), 1);
  }
  for (const used of backendsOf(ir))
    if (used.isNamed) {
      const { backend } = used;
      yield {
        ...part("backend", backend.key, backendName(backend), 0, backend.origin),
        policies: "policies" in backend ? [backend.policies] : [],
        dump: () => dumpUsed(used, context, endpoints),
      };
    }
  for (const policy of ir.targeted)
    yield {
      ...part("policy", policy.key, policy.key, 0, policy.origin),
      dump: () => dumpTargeted(policy, live.hidden),
    };
  for (const service of ir.services) {
    if (isPool(service)) continue;
    const name = `${service.namespace}/${service.hostname}`;
    yield { ...part("service", name, name, 0), dump: () => endpoints.service(service) };
  }
  for (const workload of ir.workloads) {
    if (isPool(workload)) continue;
    yield {
      ...part("workload", workload.uid, `${workload.namespace}/${workload.name}`, 0),
      dump: () => ({ ...workload }),
    };
  }
  yield { ...part("settings", "", "of the process", 0), dump: () => settings };
}

function* routesOf({ key, routes, tcpRoutes }: Listener, context: DumpContext): Generator<Part> {
  for (const route of routes) yield routePart(key, route, () => dumpRoute(route, context), 2);
  for (const route of tcpRoutes) yield routePart(key, route, () => dumpTcpRoute(route, context), 2);
}

function routePart(owner: string, route: Route | TcpRoute, dump: () => Fields, depth: number): Part {
  const { key, namespace, name, ruleName, origin } = route;
  const shown = `${namespace}/${name}${ruleName === undefined ? "" : ` ${ruleName}`}`;
  // A route of Kubernetes may be attached to several listeners.
  const policies = [
    ...("policies" in route ? [route.policies] : []),
    ...route.backends.map((backend): PolicySet => backend.policies),
  ];
  return { ...part("route", key.startsWith(owner) ? key : `${owner}/${key}`, shown, depth, origin), policies, dump };
}

function part(kind: ConfigPart["kind"], key: string, name: string, depth: number, origin?: Origin): ConfigPart {
  return { key: key === "" ? kind : `${kind} ${key}`, kind, name, depth, ...(origin && { origin }) };
}
