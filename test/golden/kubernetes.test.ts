/**
 * Pairs of files: `NAME.in.yaml` are objects of Kubernetes, one document each; `NAME.out.yaml` what the controller makes of
 * them: for every Gateway what its proxies are sent, the status of every object, and the Events of Ingresses. What an output leaves out is as `DEFAULTS`
 * say. UPDATE_GOLDEN=1 writes the outputs.
 *
 * `clusterOf` says what may be left out. `$CA` is a CA made for the test, `$CERT` and `$KEY` a certificate by it, `$CERT2` and `$KEY2`
 * another one, `$EXPIRED` and `$EXPIRED_KEY` one that has expired (at `$EXPIRY`), `$STAPLE` the OCSP response about `$CERT`, `$SERIAL2` the number of `$CERT2`; outputs name them.
 */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { stringify } from "yaml";
import { objectKey } from "../../src/base/object-key.ts";
import { formatOrigin, type Origin } from "../../src/base/origin.ts";
import { formatPath, valueAt } from "../../src/base/paths.ts";
import type { Graph } from "../../src/controller/graph/graph.ts";
import type { Inputs } from "../../src/controller/graph/inputs.ts";
import type { DesiredStatus } from "../../src/controller/status/desired.ts";
import { allIngressProblems } from "../../src/controller/status/ingress-statuses.ts";
import { desiredStatuses } from "../../src/controller/status/statuses.ts";
import { gatewayState } from "../../src/controller/translate/gateway-state.ts";
import { fleetsOf } from "../../src/controller/translate/model/fleets.ts";
import { ROUTE_KINDS } from "../../src/controller/translate/model/model.ts";
import type { FrontendOrigins, Listener, Route, RouteBackend } from "../../src/ir/ir.ts";
import { originOfBackend, originsOf, type PolicySource, type PolicySources } from "../../src/ir/origins.ts";
import { packIr, unpackIr } from "../../src/ir/packed-ir.ts";
import { keyOfObject } from "../../src/kube/keys.ts";
import { kindsOf } from "../../src/policies/merge.ts";
import { ALONE } from "../../src/proxy/ports/sharing.ts";
import { translateFrontend } from "../../src/translation/frontend.ts";
import { classOfFleet, type GatewayState, mergeStates, type Resource } from "../../src/xds/resources.ts";
import { noOpenssl, TestCa } from "../helpers/certificates.ts";
import { TestPlane } from "../helpers/data-plane.ts";
import { CLASS, clusterOf } from "../helpers/kube/cluster-of.ts";
import { packState } from "../helpers/kube/pack-state.ts";

/** The order of statuses in outputs. */
const KINDS: readonly DesiredStatus["kind"][] = [
  "GatewayClass",
  "Gateway",
  "ListenerSet",
  ...ROUTE_KINDS,
  "Ingress",
  "BackendTLSPolicy",
  "XBackendTrafficPolicy",
  "TracegatePolicy",
  "TracegateBackend",
];

const FOLDER = new URL("kubernetes/", import.meta.url);

/** PEM and what else differs between runs, by the name that stands for it in the files. */
const pems = new Map<string, string>();

before(() => {
  if (noOpenssl !== false) return;
  using ca = new TestCa();
  pems.set("$CA", ca.cert);
  for (const number of ["", "2"]) {
    const { cert, key, certFile } = ca.issue(`${number}a.example.com`);
    pems.set(`$CERT${number}`, cert).set(`$KEY${number}`, key);
    pems.set(`$SERIAL${number}`, new X509Certificate(cert).serialNumber);
    if (number === "") pems.set("$STAPLE", readFileSync(ca.staple({ certFile }), "base64"));
  }
  const expired = ca.issueExpired("old.example.com");
  pems.set("$EXPIRED", expired.cert).set("$EXPIRED_KEY", expired.key);
  pems.set("$EXPIRY", new X509Certificate(expired.cert).validToDate.toISOString());
});

for (const file of readdirSync(FOLDER).filter((each) => each.endsWith(".in.yaml"))) {
  const name = file.slice(0, -".in.yaml".length);
  const input = readFileSync(new URL(file, FOLDER), "utf8");
  test(name, { skip: /\$(CA|CERT|KEY)/.test(input) && noOpenssl }, async () => {
    const { text, states, graph } = outcome(input);
    await assertServed(states);
    for (const state of states) assertOrigins(state, graph);
    const path = new URL(`${name}.out.yaml`, FOLDER);
    if (process.env.UPDATE_GOLDEN !== undefined) {
      writeFileSync(path, text);
      return;
    }
    assert.ok(existsSync(path), `${name}.out.yaml is missing; run with UPDATE_GOLDEN=1 and read what it wrote`);
    assert.equal(text, readFileSync(path, "utf8"));
  });
}

test("every output belongs to an input", () => {
  const files = readdirSync(FOLDER);
  const lonely = files.filter((each) => !files.includes(each.replace(/\.out\.yaml$/, ".in.yaml")));
  assert.deepEqual(lonely, []);
});

type Anything = Inputs[keyof Inputs];

interface Outcome {
  readonly text: string;
  readonly states: readonly GatewayState[];
  readonly graph: Graph;
}

function outcome(text: string): Outcome {
  const graph = clusterOf(text, withPems);
  const states = graph.list("Gateway").map((gateway) => {
    const key = keyOfObject(gateway);
    return [key, graph.query(gatewayState, key)] as const;
  });
  const gateways = states.map(([key, state]) => [key, shownState(state)]);
  const fleets = fleetsOfStates(graph, states);
  const shared = [...fleets].filter(([fleet]) => classOfFleet(fleet) !== undefined);
  const statuses = [...graph.query(desiredStatuses, "")]
    .sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) || (a.key < b.key ? -1 : 1))
    .filter(({ kind, generation }) => kind !== "GatewayClass" || generation !== CLASS.metadata.generation)
    .map(shownStatus);
  const problems = Array.from(graph.query(allIngressProblems, ""), ([key, list]) => {
    return [key, list.map(({ reason, message }) => `${reason}: ${message}`)];
  });
  const shown = {
    gateways: Object.fromEntries(gateways),
    ...(shared.length > 0 && {
      fleets: Object.fromEntries(shared.map(([fleet, { names }]) => [fleet, names.join(", ")])),
    }),
    statuses: Object.fromEntries(statuses),
    ...(problems.length > 0 && { events: Object.fromEntries(problems) }),
  };
  return {
    text: stringify(withoutPems(shown), asText, { aliasDuplicateObjects: false, lineWidth: 0 }),
    states: [...fleets.values()].map(({ parts }) => mergeStates(parts)),
    graph,
  };
}

/** The Gateways whose states each fleet is sent. */
function fleetsOfStates(graph: Graph, states: readonly (readonly [string, GatewayState | undefined])[]) {
  const fleets = new Map<string, { readonly names: string[]; readonly parts: GatewayState[] }>();
  for (const [key, state] of states) {
    if (state === undefined) continue;
    for (const { key: fleet } of graph.query(fleetsOf, key)) {
      const { names, parts } = fleets.get(fleet) ?? { names: [], parts: [] };
      fleets.set(fleet, { names: [...names, key], parts: [...parts, state] });
    }
  }
  return fleets;
}

function asText(key: unknown, value: unknown): unknown {
  if (key === "sources") return textOfSources(value as PolicySources);
  if (key === "origins") return mapped(value as FrontendOrigins, (each) => each.map(formatOrigin).join(", "));
  return key === "origin" ? formatOrigin(value as Origin) : value;
}

function textOfSources(sources: PolicySources): unknown {
  return mapped(sources, (list = []) => list.map(textOfSource).join(", "));
}

function mapped<T>(fields: Readonly<Record<string, T>>, text: (value: T) => string): unknown {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, text(value)]));
}

function textOfSource({ in: container, at = [] }: PolicySource): string {
  if (container === undefined) return formatPath(at);
  assert.ok("kind" in container);
  return formatOrigin({ object: container, path: at });
}

/** Proxies can serve what they are sent: it goes through the messages of the stream into a data plane, which opens its ports. */
async function assertServed(states: readonly GatewayState[]): Promise<void> {
  await using plane = new TestPlane({ oidcCookieKey: new Uint8Array(32) });
  for (const state of states) {
    const packed = packState(state);
    const anyPort = Object.fromEntries(packed.frame.binds.map(({ key }) => [key, 0]));
    await plane.plane.prepare(1, packed, anyPort, ALONE);
    plane.plane.abort();
  }
}

/** Each listener, route, backend and policy says where it was written, also after it was packed again: in an object that is there, and a field that it has. */
function assertOrigins(state: GatewayState, graph: Graph): void {
  const ir = unpackIr(packState(state));
  assert.deepEqual(unpackIr(packIr(ir)), ir);
  for (const listener of ir.binds.flatMap(({ listeners }) => listeners)) {
    const { key, origin, routes, tcpRoutes } = listener;
    assertWritten(origin, key, graph);
    assertPolicies(listener, origin, key, graph);
    for (const route of routes) assertPolicies(route, route.origin, route.key, graph);
    for (const { key, origin, backends } of [...routes, ...tcpRoutes]) {
      assertWritten(origin, key, graph);
      for (const [i, backend] of backends.entries()) {
        assertWritten(originOfBackend(origin, i, backend.at), backend.key, graph);
        assertPolicies(backend, origin, backend.key, graph);
      }
    }
  }
  for (const { key, origin } of ir.targeted) assertWritten(origin, key, graph);
  for (const { key, frontend } of ir.binds) {
    const { origins = {}, networkAuthorization, networkExtAuthz } = frontend;
    for (const [field, each] of Object.entries(origins))
      for (const origin of each) assertWritten(origin, `${field} of ${key}`, graph);
    assert.equal(origins.networkAuthorization?.length, networkAuthorization?.length, `rules of ${key}`);
    assert.equal(origins.networkExtAuthz === undefined, networkExtAuthz === undefined, `service of ${key}`);
  }
}

/** The same for each policy of a listener, route or backend, and each rule of `authorization`. */
function assertPolicies(
  holder: Listener | Route | RouteBackend,
  around: Origin | undefined,
  what: string,
  graph: Graph,
): void {
  const origins = originsOf(holder, around, ["policies"], { backends: [], targeted: [] });
  for (const kind of kindsOf(holder.policies)) {
    const { [kind]: found = [undefined] } = origins;
    for (const origin of found) assertWritten(origin, `${kind} of ${what}`, graph);
  }
  const { authorization } = holder.policies;
  assert.equal(origins.authorization?.length, authorization?.rules.length, `rules of ${what}`);
}

function assertWritten(origin: Origin | undefined, what: string, graph: Graph): void {
  assert.ok(origin?.object !== undefined, `${what} has no origin`);
  const { kind, ...name } = origin.object;
  const object = graph.get(kind as Anything["kind"], objectKey(name));
  assert.ok(valueAt(object, origin.path) !== undefined, `${what}: nothing is written at ${formatOrigin(origin)}`);
}

/** `$CERT` and the others replaced by what they stand for. */
function withPems(value: unknown): unknown {
  if (typeof value === "string") return pems.get(value) ?? value;
  if (Array.isArray(value)) return value.map(withPems);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withPems(each)]));
}

/** The reverse; a bundle is the names of its parts. */
function withoutPems(value: unknown): unknown {
  if (typeof value === "string") {
    let shown = value;
    for (const [name, pem] of pems) shown = shown.replaceAll(pem, pem.endsWith("\n") ? `${name} ` : name);
    return shown.trim();
  }
  if (Array.isArray(value)) return value.map(withoutPems);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withoutPems(each)]));
}

/** Of binds, listeners and routes. */
const DEFAULTS: Readonly<Record<string, unknown>> = {
  host: "::",
  tunnelProtocol: "direct",
  mode: "standard",
  policies: {},
};
const FRONTEND: Readonly<Record<string, unknown>> = { ...translateFrontend({}, {}, {}) };

function shownState(state: GatewayState | undefined): unknown {
  if (state === undefined) return "not ours";
  return {
    resources: Object.fromEntries(byName(state.resources).map(([name, resource]) => [name, shownResource(resource)])),
    ...(state.addresses.size > 0 && { addresses: Object.fromEntries(byName(state.addresses)) }),
  };
}

function byName<T>(map: ReadonlyMap<string, T>): readonly (readonly [string, T])[] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Without what the name says already, and without defaults. */
function shownResource(resource: Resource): unknown {
  const { kind: _kind, ...rest } = resource;
  return Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, withoutDefaults(value, DEFAULTS)]));
}

function withoutDefaults(value: unknown, defaults: typeof DEFAULTS): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const others = Object.entries(value).flatMap(([name, each]) => {
    if (name === "key" || isDeepStrictEqual(each, defaults[name])) return [];
    if (name !== "frontend") return [[name, each]];
    const frontend = withoutDefaults(each, FRONTEND);
    return isDeepStrictEqual(frontend, {}) ? [] : [[name, frontend]];
  });
  return Object.fromEntries(others);
}

function shownStatus({ kind, key, generation: _, status }: DesiredStatus): readonly [string, unknown] {
  return [`${kind}/${key}`, shortened(status)];
}

/** Conditions as `Accepted: "True Accepted: message"`; kinds of the Gateway API as their names. */
function shortened(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shortened);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => {
      if (name === "conditions") return [name, shortConditions(each)];
      if (name === "supportedKinds") return [name, each.map(({ kind }: { kind: string }) => kind).join(", ")];
      return [name, shortened(each)];
    }),
  );
}

interface Draft {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

const LISTENER_CONDITIONS = "Accepted,Conflicted,ResolvedRefs,Programmed";

/** Those of a listener that serves traffic are `ok`. */
function shortConditions(drafts: readonly Draft[]): unknown {
  const isGood = ({ type, status }: Draft): boolean => status === (type === "Conflicted" ? "False" : "True");
  if (drafts.map(({ type }) => type).join() === LISTENER_CONDITIONS && drafts.every(isGood)) return "ok";
  return Object.fromEntries(
    drafts.map(({ type, status, reason, message }) => [type, `${status} ${reason}: ${message}`]),
  );
}
