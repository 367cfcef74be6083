import assert from "node:assert/strict";
import { test } from "node:test";
import { ms } from "../../base/durations.ts";
import { Sweeper } from "../../base/sweeper.ts";
import { ANYWHERE } from "../../net/testing/egress.ts";
import { Pools } from "../pools/pools.ts";
import type { NameToFollow, OnAddresses } from "../resolve/followed-name.ts";
import type { NamedAddress } from "../resolve/named-addresses.ts";
import { Resolver } from "../resolve/resolver.ts";
import type { Endpoint } from "./endpoint.ts";
import { Endpoints } from "./endpoints.ts";
import type { NamesNotice } from "./named-endpoints.ts";

const NAME = { host: "a.test", port: 80 };
const CHECK = { settings: { tcp: {}, interval: ms(1), timeout: ms(1), unhealthyThreshold: 1, healthyThreshold: 1 } };

/** Endpoints whose names resolve to what the test says. */
function newEndpoints() {
  const sweeper = new Sweeper();
  const settings = { connectTimeout: 10_000, idleTimeout: 90_000, maxIdle: undefined, keepAliveDelay: 0 };
  const pools = new Pools(settings, new Resolver("All", ANYWHERE), { onConnected: () => {} }, sweeper);
  const followed: { readonly name: NameToFollow; readonly find: OnAddresses; closed: boolean }[] = [];
  const told: NamesNotice[] = [];
  const endpoints = new Endpoints(pools, undefined, undefined, undefined, {
    follow(name, find) {
      const each = { name, find, closed: false };
      followed.push(each);
      return {
        use() {},
        close() {
          each.closed = true;
        },
      };
    },
    onFound: (notice) => told.push(notice),
  });
  return { endpoints, followed, told, sweeper, [Symbol.dispose]: () => sweeper.close() };
}

function at(...addresses: readonly string[]): NamedAddress[] {
  return addresses.map((address) => ({ at: [address], rank: 0, share: 1 }));
}

function shown(ranks: readonly (readonly Endpoint[])[]): string {
  return ranks.map((rank) => rank.map(({ pool, capacity }) => `${pool.name} ${capacity}`).join(", ")).join(" | ");
}

test("a name is one endpoint until its addresses are known, which then share its weight", () => {
  using made = newEndpoints();
  const { endpoints, followed, sweeper } = made;
  const names = endpoints.acquireName(NAME, 6, "pool");
  assert.equal(endpoints.acquireName({ ...NAME }, 6, "pool"), names);
  const find = followed[0]?.find as OnAddresses;
  assert.equal(shown(names.ranks), "a.test:80 6");
  find(at("10.0.0.1", "10.0.0.2"));
  assert.equal(shown(names.ranks), "10.0.0.1:80 3, 10.0.0.2:80 3");
  const [[first] = []] = names.ranks;
  first?.begin();
  first?.end(false, 0);
  const { version } = names;
  find(at("10.0.0.1", "10.0.0.2"));
  assert.equal(names.version, version, "the same again changes nothing");
  find([...at("10.0.0.1", "10.0.0.3"), { at: ["fd00::1", "10.0.0.4"], rank: 2, share: 1 }]);
  assert.equal(shown(names.ranks), "10.0.0.1:80 3, 10.0.0.3:80 3 | [fd00::1]:80 6");
  assert.equal(names.ranks[0]?.[0], first, "an address that stays keeps its health");
  assert.equal(endpoints.stats().length, 3);
  find([]);
  assert.equal(shown(names.ranks), "a.test:80 6");
  assert.equal(endpoints.stats().length, 1);
  endpoints.release([names]);
  assert.equal(followed[0]?.closed, false, "another configuration holds it");
  endpoints.release([names]);
  assert.deepEqual([followed[0]?.closed, endpoints.stats(), sweeper.size], [true, [], 0]);
  find(at("10.0.0.9"));
  assert.deepEqual(endpoints.stats(), []);
});

test("names that share an address do not share its connections, which have the name", () => {
  using made = newEndpoints();
  const { endpoints, followed } = made;
  const both = [NAME, { ...NAME, host: "b.test" }].map((name) => endpoints.acquireName(name, 1));
  for (const { find } of followed) find(at("10.0.0.1"));
  const hostnames = both.map(({ ranks }) => ranks[0]?.[0]?.pool.hostname);
  assert.deepEqual(hostnames, ["a.test", "b.test"]);
});

test("the name as a whole stays while a call waits for it", () => {
  using made = newEndpoints();
  const { endpoints, followed } = made;
  const names = endpoints.acquireName(NAME, 1);
  const whole = names.ranks[0]?.[0];
  whole?.begin();
  followed[0]?.find(at("10.0.0.1"));
  assert.equal(shown(names.ranks), "10.0.0.1:80 1");
  assert.equal(endpoints.stats().length, 2);
  followed[0]?.find([]);
  assert.equal(names.ranks[0]?.[0], whole);
  followed[0]?.find(at("10.0.0.1"));
  whole?.end(true, 0);
  followed[0]?.find(at("10.0.0.1"));
  assert.equal(endpoints.stats().length, 1);
});

test("names with an active check are always followed; those that are looked up in another way are separate", () => {
  using made = newEndpoints();
  const { endpoints, followed } = made;
  const plain = endpoints.acquireName(NAME, 1);
  const checked = endpoints.acquireName(NAME, 1, "", { ...CHECK, identity: "tcp", prepare: undefined });
  const other = endpoints.acquireName({ ...NAME, dns: { family: "V4Only" } }, 1);
  assert.equal(new Set([plain, checked, other]).size, 3);
  const pools = [plain, checked, other].map(({ ranks }) => ranks[0]?.[0]?.pool);
  assert.equal(new Set(pools).size, 2, "what is looked up in another way has its own connections");
  assert.deepEqual(
    followed.map(({ name: { always, dns } }) => [always, dns?.family]),
    [
      [false, undefined],
      [true, undefined],
      [false, "V4Only"],
    ],
  );
});

test("the number of endpoints is limited, for a name and altogether, with a fair part for each", () => {
  using made = newEndpoints();
  const { endpoints, followed } = made;
  const many = (name: number): NamedAddress[] =>
    Array.from({ length: 1000 }, (_, i) => ({ at: [`10.${name}.${i >> 8}.${i & 255}`], rank: 0, share: 1 }));
  const acquire = (i: number) => {
    const names = endpoints.acquireName({ host: `${i}.test`, port: 80 }, 1);
    followed.at(-1)?.find(many(i));
    return names;
  };
  const all = Array.from({ length: 66 }, (_, i) => acquire(i));
  const sizes = all.map(({ ranks }) => ranks.flat().length);
  assert.deepEqual([...new Set(sizes.slice(0, 64)), ...sizes.slice(64)], [256, 8, 8]);
  const omitted = endpoints.stats().map(({ resolved }) => resolved?.omitted);
  assert.deepEqual([...new Set(omitted)], [744, 992]);
  followed[0]?.find(at("10.0.0.1"));
  followed[64]?.find(many(100));
  assert.equal(endpoints.stats().length, 16_384, "what one name frees is for others");
  endpoints.release(all.slice(1, 3));
  assert.equal(acquire(66).ranks.flat().length, 256, "as is what a name had that no configuration has any more");
});

test("threads tell each other what they find; who follows the name keeps its own answer", () => {
  using made = newEndpoints();
  const { endpoints, followed, told } = made;
  endpoints.learn({ key: "unknown", addresses: at("10.0.0.9") });
  const names = endpoints.acquireName(NAME, 1);
  const { key } = names;
  endpoints.learn({ key, addresses: at("10.0.0.1") });
  assert.equal(shown(names.ranks), "10.0.0.1:80 1");
  assert.deepEqual(told, [], "it has not found that itself");
  followed[0]?.find(at("10.0.0.2"));
  followed[0]?.find(at("10.0.0.2"));
  assert.deepEqual(told.splice(0), [{ key, addresses: at("10.0.0.2") }]);
  endpoints.learn({ key, addresses: at("10.0.0.1") });
  assert.equal(shown(names.ranks), "10.0.0.2:80 1");
  endpoints.learn({ key, addresses: [] });
  assert.deepEqual(told.splice(0), [{ key, addresses: at("10.0.0.2") }], "one that stops does not take it from others");
  followed[0]?.find([]);
  assert.deepEqual(told.splice(0), [{ key, addresses: [] }]);
  endpoints.release([names]);
  assert.deepEqual(told, [], "it has nothing to take back");
  endpoints.learn({ key, addresses: at("10.0.0.3") });
  const again = endpoints.acquireName(NAME, 1);
  assert.equal(shown(again.ranks), "10.0.0.3:80 1", "what was learned before");
  followed.at(-1)?.find(at("10.0.0.4"));
  endpoints.release([again]);
  assert.deepEqual(told.slice(1), [{ key, addresses: [] }], "it follows the name no more");
});
