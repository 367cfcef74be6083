import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import { formatOrigin, type Origin } from "../../base/origin.ts";
import { type Path, valueAt } from "../../base/paths.ts";
import type { Ir } from "../../ir/ir.ts";
import { originsOf, type PolicyOrigins } from "../../ir/origins.ts";
import type { PolicySet } from "../../policies/policy-set.ts";
import { loadConfig } from "../load.ts";

const GATEWAY = { gatewayName: "edge" };
const ROUTE = { name: "shop" };
const SERVICE = { namespace: "shop", hostname: "cart" };

/** Where a policy may stand, the widest first: targets, then the place itself. */
const OF_LISTENER = {
  gateway: { gateway: GATEWAY },
  port: { gateway: { ...GATEWAY, port: 80 } },
  listener: { gateway: { ...GATEWAY, listenerName: "web" } },
};
const OF_ROUTE = {
  route: { route: ROUTE },
  "route of the kind": { route: { ...ROUTE, kind: "HTTPRoute" } },
  rule: { route: { ...ROUTE, ruleName: "first" } },
};
const IN_GATEWAY_PHASE = { ...OF_LISTENER, inline: undefined };
const IN_ROUTE_PHASE = { ...OF_LISTENER, ...OF_ROUTE, inline: undefined };
const OF_SERVICE = {
  ...OF_LISTENER,
  service: { backend: { service: SERVICE } },
  "service's port": { backend: { service: { ...SERVICE, port: 80 } } },
  ...OF_ROUTE,
  reference: undefined,
};
const OF_NAMED = {
  ...OF_LISTENER,
  named: { backend: { backend: { name: "cart" } } },
  ...OF_ROUTE,
  inline: undefined,
  reference: undefined,
};

/** A policy whose `tag` distinguishes it from those of the same kind at other places. */
const MAKE = {
  timeout: (tag: number) => ({ requestTimeout: `${tag}ms` }),
  http: (tag: number) => ({ requestTimeout: `${tag}ms` }),
  buffer: (tag: number) => ({ request: { maxBytes: tag } }),
  cors: (tag: number) => ({ allowOrigins: ["*"], maxAge: `${tag}ms` }),
  authorization: (tag: number) => ({ rules: [`request.path != '/${tag}'`] }),
};
type Kind = keyof typeof MAKE;

/** The tags that are in effect. */
function tagsOf(kind: Kind, set: PolicySet): (number | undefined)[] {
  switch (kind) {
    case "authorization":
      return (set.authorization?.rules ?? []).map(({ expression }) => Number(/\d+/.exec(expression)?.[0]));
    case "buffer":
      return set.buffer === undefined ? [] : [set.buffer.request?.maxBytes];
    case "cors":
      return set.cors === undefined ? [] : [set.cors.maxAge];
    default:
      return set[kind] === undefined ? [] : [set[kind].requestTimeout];
  }
}

/** What the rules of merging say, of the tags in order of places: the widest, all, or the narrowest. */
function expected(kind: Kind, tags: readonly number[]): readonly number[] {
  if (kind === "authorization") return tags;
  return kind === "buffer" ? tags.slice(0, 1) : tags.slice(-1);
}

interface Placed {
  readonly kind: Kind;
  readonly place: string;
  readonly tag: number;
}

interface Scene {
  readonly phase: "route" | "gateway";
  readonly places: Readonly<Record<string, object | undefined>>;
  readonly kinds: readonly Kind[];
  /** What the policies of a place without target are written into. */
  readonly write: (inline: Readonly<Record<string, object>>) => object;
  readonly read: (ir: Ir) => Read | undefined;
}

interface Read {
  readonly policies: PolicySet;
  readonly origins: PolicyOrigins;
}

/** The policies of a part of the IR, with the places where they are written. */
function partOf(ir: Ir, part: Parameters<typeof originsOf>[0] | undefined, around: Origin | undefined, own: Path) {
  return part && { policies: part.policies, origins: originsOf(part, around, own, ir) };
}

const listener = (ir: Ir) => ir.binds[0]?.listeners[0];
const routeOf = (ir: Ir) => listener(ir)?.routes[0];
const base = {
  gateways: { edge: { port: 80, listeners: [{ name: "web" }] } },
  services: [{ ...SERVICE, name: "cart", ports: { 80: 8080 } }],
  backends: [{ name: "cart", host: "cart.example:80" }],
};
const route = { ...ROUTE, ruleName: "first", gateways: "edge" };

const SCENES: Readonly<Record<string, Scene>> = {
  "gateway phase": {
    phase: "gateway",
    places: IN_GATEWAY_PHASE,
    kinds: ["cors", "authorization"],
    write: ({ inline }) => ({
      gateways: { edge: { port: 80, listeners: [{ name: "web", ...inline }] } },
      routes: [route],
    }),
    read: (ir) => partOf(ir, listener(ir), listener(ir)?.origin, ["policies"]),
  },
  "route phase": {
    phase: "route",
    places: IN_ROUTE_PHASE,
    kinds: ["timeout", "buffer", "cors", "authorization"],
    write: ({ inline }) => ({ routes: [{ ...route, policies: inline }] }),
    read: (ir) => partOf(ir, routeOf(ir), routeOf(ir)?.origin, ["policies"]),
  },
  "backends that are services": {
    phase: "route",
    places: OF_SERVICE,
    kinds: ["http"],
    write: ({ reference }) => ({
      routes: [{ ...route, backends: [{ service: { name: "shop/cart", port: 80 }, policies: reference }] }],
    }),
    read: (ir) => partOf(ir, routeOf(ir)?.backends[0], routeOf(ir)?.origin, ["backends", 0, "policies"]),
  },
  "named backends": {
    phase: "route",
    places: OF_NAMED,
    kinds: ["http"],
    write: ({ inline, reference }) => ({
      backends: [{ name: "cart", host: "cart.example:80", policies: inline }],
      routes: [{ ...route, backends: [{ backend: "/cart", policies: reference }] }],
    }),
    read: (ir) => partOf(ir, routeOf(ir)?.backends[0], routeOf(ir)?.origin, ["backends", 0, "policies"]),
  },
};

function load(
  { phase, places, write }: Scene,
  placed: readonly Placed[],
): { readonly ir: Ir; readonly written: object } {
  const inline: Record<string, Record<string, object>> = { inline: {}, reference: {} };
  const policies: object[] = [];
  for (const { kind, place, tag } of placed) {
    const policy = { [kind]: MAKE[kind](tag) };
    const target = places[place];
    if (target === undefined) Object.assign(inline[place] ?? {}, policy);
    else policies.push({ name: { name: `p${tag}`, namespace: tag % 2 === 0 ? "" : "shop" }, target, phase, policy });
  }
  const written = { ...base, ...write(inline), policies };
  const result = loadConfig({ kind: "text", text: JSON.stringify(written) }, {});
  assert.ok(result.ok, JSON.stringify(result.ok || result.diagnostics));
  return { ir: result.ir, written };
}

for (const [name, scene] of Object.entries(SCENES)) {
  const all = scene.kinds.flatMap((kind) => Object.keys(scene.places).map((place) => ({ kind, place })));
  const everything = all.map((each, i): Placed => ({ ...each, tag: i + 1 }));

  test(`${name}: the narrowest place wins, rules add up, the widest buffer stays, in whatever order they are written, and each knows its place`, () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(everything), (placed) => {
        const { ir, written } = load(scene, placed);
        const read = scene.read(ir);
        assert.ok(read !== undefined);
        for (const kind of scene.kinds) {
          const tags = everything.filter((each) => each.kind === kind && placed.includes(each)).map(({ tag }) => tag);
          assert.deepEqual(tagsOf(kind, read.policies), expected(kind, tags), kind);
          const places: readonly Origin[] = read.origins[kind] ?? [];
          const found = places.map(({ path }) => Number(/\d+/.exec(JSON.stringify(valueAt(written, path)))?.[0]));
          assert.deepEqual(found, expected(kind, tags), `${kind}: ${places.map(formatOrigin).join(", ")}`);
        }
      }),
      { numRuns: 100 },
    );
  });
}
