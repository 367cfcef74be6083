import assert from "node:assert/strict";
import { test } from "node:test";
import { Networks } from "../../base/ip-address.ts";
import { Sweeper } from "../../base/sweeper.ts";
import { ANYWHERE } from "../../net/testing/egress.ts";
import { Endpoints } from "../endpoints/endpoints.ts";
import { Pools } from "../pools/pools.ts";
import { Resolver } from "../resolve/resolver.ts";
import { dynamicEndpoints } from "./dynamic.ts";

test("clients of a forward proxy cannot name an address of a denied network", () => {
  const sweeper = new Sweeper();
  const settings = { connectTimeout: 10_000, idleTimeout: 90_000, maxIdle: undefined, keepAliveDelay: 0 };
  const pools = new Pools(settings, new Resolver("All", ANYWHERE), { onConnected: () => {} }, sweeper);
  const find = dynamicEndpoints(new Endpoints(pools), new Networks(["10.96.0.0/12", "fd00:10::/64"]));
  for (const authority of [
    "10.96.0.1",
    "10.96.0.1:80",
    "[fd00:10::1]:80",
    "[::ffff:10.96.0.1]",
    "0x0a600001:80",
    "[64:ff9b::a60:1]",
  ])
    assert.equal(find(authority, 80, undefined), undefined, authority);
  for (const [authority, name] of [
    ["192.0.2.1", "192.0.2.1:80"],
    ["example.com:80", "example.com:80"],
    ["[2001:db8::1]", "[2001:db8::1]:80"],
  ] as const)
    assert.equal(find(authority, 80, undefined)?.pool.name, name);
});
