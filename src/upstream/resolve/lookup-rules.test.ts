import assert from "node:assert/strict";
import type { LookupAddress } from "node:dns";
import { test } from "node:test";
import { OwnSockets } from "../../base/own-sockets.ts";
import { Egress, type LookupRules } from "../../net/egress.ts";
import { Resolver, type System } from "./resolver.ts";

const RULES: LookupRules = { denyDomains: ["cluster.local"], denyNetworks: ["10.96.0.0/12", "fd00:10::/64"] };

/** Resolves names by a system that knows `names`, and notes what it was asked. */
function resolverOf(names: Readonly<Record<string, readonly string[]>>, rules = RULES) {
  const asked: string[] = [];
  const system: System = {
    lookup: (host, _options, callback) => {
      asked.push(host);
      const found = (names[host] ?? []).map((address): LookupAddress => ({ address, family: 4 }));
      process.nextTick(callback, found.length === 0 ? new Error("not found") : null, found);
    },
    now: () => 0,
    later: () => {},
    idly: () => () => {},
    ttl: () => {},
    srv: () => {},
    reaches: () => true,
  };
  const egress = new Egress({ provenance: "operator", lookupRules: rules }, new OwnSockets());
  const resolver = new Resolver("All", egress, undefined, system);
  const resolve = (host: string): Promise<readonly string[] | string> =>
    new Promise((done) => resolver.resolve(host, (addresses, error) => done(error ?? addresses)));
  return { asked, resolve };
}

test("names inside the cluster are not looked up, however they are spelled", async () => {
  const { asked, resolve } = resolverOf({});
  for (const host of [
    "shop.other.svc.cluster.local",
    "SHOP.other.svc.Cluster.LOCAL.",
    "cluster.local",
    "a.cluster.local..",
    "shop.other.svc.cluster\u3002local",
    "shop.other.svc.\uff43luster.local",
  ])
    assert.match(String(await resolve(host)), /is a name inside the cluster/);
  assert.deepEqual(asked, []);
});

test("no name is completed by search domains", async () => {
  const { asked, resolve } = resolverOf({ "api.example.com.": ["192.0.2.1"], "shop.other": ["10.96.0.1"] });
  assert.deepEqual(await resolve("api.example.com"), ["192.0.2.1"]);
  assert.match(String(await resolve("shop.other")), /not found/);
  assert.deepEqual(asked, ["api.example.com.", "shop.other."]);
});

test("addresses of denied networks are left out of what a name resolves to", async () => {
  const { resolve } = resolverOf({
    "mixed.example.": ["10.96.0.1", "192.0.2.1"],
    "inside.example.": ["10.100.0.1", "fd00:10::1", "::ffff:10.96.0.2", "64:ff9b::a60:2"],
  });
  assert.deepEqual(await resolve("mixed.example"), ["192.0.2.1"]);
  assert.match(String(await resolve("inside.example")), /may not connect to/);
});

test("without rules names are looked up as they are", async () => {
  const { asked, resolve } = resolverOf({ "shop.other": ["10.96.0.1"] }, { denyDomains: [], denyNetworks: [] });
  assert.deepEqual(await resolve("shop.other"), ["10.96.0.1"]);
  assert.deepEqual(asked, ["shop.other"]);
});
