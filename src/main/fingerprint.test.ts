import assert from "node:assert/strict";
import { test } from "node:test";
import { stringify } from "yaml";
import { loadConfig } from "../config/load.ts";
import type { SampledConfiguration } from "../recorder/sample-file.ts";
import { differenceBetween, fingerprintOf } from "./fingerprint.ts";

const HIDDEN: ReadonlySet<string> = new Set(["authorization"]);

function fingerprint(config: object): SampledConfiguration {
  const loaded = loadConfig({ kind: "text", text: stringify(config) }, {});
  assert.ok(loaded.ok, JSON.stringify(loaded));
  return fingerprintOf(loaded.ir, HIDDEN);
}

const route = { name: "shop", matches: [{ path: { pathPrefix: "/shop" } }], backends: [{ host: "127.0.0.1:9099" }] };

function site(changed: object = {}, others: { listener?: object; bind?: object; frontend?: object } = {}): object {
  const listener = { name: "web", routes: [{ ...route, ...changed }], ...others.listener };
  return { frontendPolicies: others.frontend ?? {}, binds: [{ port: 8080, listeners: [listener], ...others.bind }] };
}

test("whatever decides about requests changes the digest, and nothing else does", () => {
  const { digest, routes } = fingerprint(site());
  assert.deepEqual(routes, ["default/shop"]);
  assert.equal(fingerprint(site()).digest, digest);
  const changes: readonly (readonly [what: string, config: object])[] = [
    ["a match", site({ matches: [{ path: { exact: "/shop" } }] })],
    [
      "a header match",
      site({ matches: [{ path: { pathPrefix: "/shop" }, headers: [{ name: "x-a", value: { exact: "1" } }] }] }),
    ],
    ["a backend", site({ backends: [{ host: "127.0.0.1:9098" }] })],
    ["a weight", site({ backends: [{ host: "127.0.0.1:9099", weight: 3 }] })],
    [
      "a backend's policy",
      site({ backends: [{ host: "127.0.0.1:9099", policies: { requestHeaderModifier: { set: { a: "b" } } } }] }),
    ],
    ["a route's policy", site({ policies: { authorization: { rules: [{ deny: "true" }] } } })],
    ["a listener's policy", site({}, { listener: { policies: { authorization: { rules: [{ deny: "true" }] } } } })],
    ["a host", site({}, { listener: { hostname: "shop.example" } })],
    ["a port", site({}, { bind: { port: 8081 } })],
    [
      "who may connect",
      site({}, { frontend: { networkAuthorization: { rules: [{ deny: 'source.address == "192.0.2.7"' }] } } }),
    ],
    ["a limit of HTTP", site({}, { frontend: { http: { maxRequestBodySize: 10 } } })],
  ];
  for (const [what, config] of changes) assert.notEqual(fingerprint(config).digest, digest, what);
});

test("a secret does not change the digest: otherwise a reader could guess secrets by comparing digests", () => {
  const keyed = (key: string): object => site({ policies: { apiKey: { keys: [{ key }] } } });
  assert.equal(fingerprint(keyed("one")).digest, fingerprint(keyed("two")).digest);
});

test("a difference names a few routes", () => {
  const config = (...routes: readonly string[]): SampledConfiguration => ({ digest: routes.join(), routes });
  const shop = config("a/shop");
  assert.equal(differenceBetween(shop, shop), undefined);
  assert.equal(differenceBetween(shop, config()), "it lacks the routes a/shop");
  assert.equal(
    differenceBetween(config(), config("a/1", "a/2", "a/3", "a/4", "a/5")),
    "it has more routes: a/1, a/2, a/3 and 2 more",
  );
  assert.equal(
    differenceBetween(shop, { ...shop, digest: "other" }),
    "its routes have the same names, and something else differs",
  );
});
