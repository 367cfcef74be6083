/** Whatever is wrong with one author's policy, the proxies accept the state of the Gateway, and everything that the policy protects stays protected. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "yaml";
import { TestPlane } from "../../../../test/helpers/data-plane.ts";
import { packState } from "../../../../test/helpers/kube/pack-state.ts";
import { fc } from "../../../../test/helpers/property.ts";
import { appRoot } from "../../../base/app-root.ts";
import { ALONE } from "../../../proxy/ports/sharing.ts";
import { BACKEND_KINDS, FRONTEND_FIELDS, PRE_ROUTING_KINDS, TRAFFIC_KINDS } from "../../crd/policy.ts";
import { type Anything, cluster } from "../fixtures/cluster.ts";
import { gatewayState } from "../gateway-state.ts";

const GATEWAY_API = "gateway.networking.k8s.io";
const metadata = (name: string) => ({ namespace: "apps", name });
const BASE = [
  {
    kind: "Gateway",
    metadata: metadata("web"),
    spec: { gatewayClassName: "tracegate", listeners: [{ name: "http", port: 80, protocol: "HTTP" }] },
  },
  { kind: "Service", metadata: metadata("shop"), spec: { clusterIP: "198.19.0.1", ports: [{ port: 80 }] } },
  { kind: "Service", metadata: metadata("authz"), spec: { clusterIP: "198.19.0.2", ports: [{ port: 80 }] } },
  {
    kind: "HTTPRoute",
    metadata: metadata("web"),
    spec: { parentRefs: [{ name: "web" }], rules: [{ backendRefs: [{ name: "shop", port: 80 }] }] },
  },
  {
    kind: "HTTPRoute",
    metadata: metadata("other"),
    spec: {
      parentRefs: [{ name: "web" }],
      rules: [
        {
          matches: [{ path: { value: "/other" } }],
          backendRefs: [{ group: "tracegate.dev", kind: "TracegateBackend", name: "b" }],
        },
      ],
    },
  },
] as unknown as readonly Anything[];

type Settings = Readonly<Record<string, unknown>>;

/** Every policy of the examples, by its kind. */
function examples(): ReadonlyMap<string, readonly unknown[]> {
  const found = new Map<string, unknown[]>();
  const known = new Set<string>([...TRAFFIC_KINDS, ...BACKEND_KINDS, ...Object.keys(FRONTEND_FIELDS)]);
  const walk = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, each] of Object.entries(value)) {
      if (known.has(key)) found.set(key, [...(found.get(key) ?? []), each]);
      walk(each);
    }
  };
  walk({
    networkExtAuthz: { host: "authz.example.com:80", protocol: { http: { addRequestHeaders: { "x-a": '"a"' } } } },
  });
  const folder = `${appRoot}examples/policies/`;
  for (const name of readdirSync(folder)) walk(parse(readFileSync(folder + name, "utf8")));
  return found;
}

const EXAMPLES = examples();
const REF = { name: "authz", port: 80 };

/** Calls as written in a cluster. */
function inCluster(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inCluster);
  if (typeof value !== "object" || value === null) return value;
  const { service, backend, host, ...others } = value as Settings;
  const rest = Object.fromEntries(Object.entries(others).map(([key, each]) => [key, inCluster(each)]));
  if (typeof service === "object" || typeof backend === "string") return { ...rest, backendRef: REF };
  return typeof host === "string" ? { ...rest, host } : rest;
}

/** Names and values that are wrong in most places, including words that decisions must not depend on. */
const NAMES = ["x backendRef", "backendTLS:", ":scheme", "backendRef", "content-length", "unknown backend reference /"];
const VALUES = [
  ...NAMES,
  "",
  "(",
  'fail("backendTLS")',
  "-1s",
  -1,
  true,
  null,
  [],
  {},
  { secretKeyRef: { name: "none", key: "backendTLS" } },
  { file: "backendRef" },
  { backendRef: { name: "none", port: 80 } },
  { host: "no port" },
];

interface Cut {
  readonly at: number;
  readonly how: "rename" | "add" | "replace" | "remove" | "headers";
  readonly name: string;
  readonly value: unknown;
}

/** Breaks the `cut.at`th field of a value, or one name in each group of texts, such as header fields. */
function broken(value: unknown, cut: Cut): unknown {
  let left = cut.at;
  const walk = (each: unknown): unknown => {
    if (typeof each !== "object" || each === null) return each;
    const isGroup = !Array.isArray(each) && Object.values(each).every((inner) => typeof inner === "string");
    if (cut.how === "headers" && isGroup) {
      const [first, ...others] = Object.entries(each);
      return first === undefined ? each : Object.fromEntries([[cut.name, first[1]], ...others]);
    }
    const entries = Object.entries(each).flatMap(([key, inner]): [string, unknown][] => {
      if (cut.how === "headers" || left-- !== 0) return [[key, walk(inner)]];
      if (cut.how === "rename") return [[cut.name, inner]];
      if (cut.how === "add")
        return [
          [key, inner],
          [cut.name, cut.value],
        ];
      return cut.how === "replace" ? [[key, cut.value]] : [];
    });
    return Array.isArray(each) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries);
  };
  return walk(value);
}

const cut: fc.Arbitrary<Cut> = fc.record({
  at: fc.nat(14),
  how: fc.constantFrom("rename", "add", "replace", "remove", "headers"),
  name: fc.constantFrom(...NAMES),
  value: fc.constantFrom(...VALUES),
});

function settingsOf(kinds: readonly string[]): fc.Arbitrary<Settings> {
  const one = fc
    .constantFrom(...kinds.filter((kind) => EXAMPLES.has(kind)))
    .chain((kind) =>
      fc
        .tuple(fc.constantFrom(...(EXAMPLES.get(kind) ?? [])), fc.boolean(), fc.array(cut, { maxLength: 2 }))
        .map(
          ([example, calls, cuts]): Settings => ({ [kind]: cuts.reduce(broken, calls ? inCluster(example) : example) }),
        ),
    );
  return fc.array(one, { minLength: 1, maxLength: 3 }).map((all) => Object.assign({}, ...all) as Settings);
}

function policyAt(group: string, kind: string, name: string, sections: object): Anything {
  const spec = { targetRefs: [{ group, kind, name }], ...sections };
  return {
    kind: "TracegatePolicy",
    metadata: metadata(`of-${kind.toLowerCase()}-${name}`),
    spec,
  } as unknown as Anything;
}

const objects = fc
  .record({
    gateway: settingsOf(PRE_ROUTING_KINDS),
    route: settingsOf(TRAFFIC_KINDS),
    shop: settingsOf(BACKEND_KINDS),
    called: settingsOf(BACKEND_KINDS),
    own: settingsOf(BACKEND_KINDS),
    frontend: settingsOf(Object.keys(FRONTEND_FIELDS)),
  })
  .map(({ gateway, route, shop, called, own, frontend }) => [
    ...BASE,
    policyAt(GATEWAY_API, "Gateway", "web", { frontend, traffic: { phase: "PreRouting", ...gateway } }),
    policyAt(GATEWAY_API, "HTTPRoute", "web", { traffic: { ...route, extAuthz: { backendRef: REF } } }),
    policyAt("", "Service", "shop", { backend: shop }),
    policyAt("", "Service", "authz", { backend: called }),
    {
      kind: "TracegateBackend",
      metadata: metadata("b"),
      spec: { static: { host: "b.example.com", port: 80 }, policies: own },
    } as unknown as Anything,
  ]);

test("proxies accept the state of a Gateway whose policies are broken in any way", async () => {
  await using plane = new TestPlane({ oidcCookieKey: new Uint8Array(32) });
  await fc.assert(
    fc.asyncProperty(objects, async (all) => {
      const state = cluster(...all).query(gatewayState, "apps/web");
      assert.ok(state);
      const packed = packState(state);
      const anyPort = Object.fromEntries(packed.frame.binds.map(({ key }) => [key, 0]));
      await plane.plane.prepare(1, packed, anyPort, ALONE);
      plane.plane.abort();
    }),
    { numRuns: 90 },
  );
});
