import assert from "node:assert/strict";
import { type LookupAddress, Resolver as NodeResolver } from "node:dns";
import { test } from "node:test";
import { DnsServer } from "../../../test/helpers/dns-server.ts";
import { OwnSockets } from "../../base/own-sockets.ts";
import { Egress } from "../../net/egress.ts";
import { findSrv } from "./records.ts";
import { Resolver } from "./resolver.ts";

const SERVICE = "_http._tcp.a.test";

/** A resolver that asks this server for SRV records, and knows these hosts. */
function resolverOf(server: DnsServer, hosts: Readonly<Record<string, readonly string[]>>, denyDomains: string[] = []) {
  const clock = { now: 1000 };
  const egress = new Egress(
    { provenance: "operator", lookupRules: { denyDomains, denyNetworks: [] } },
    new OwnSockets(),
  );
  const resolver = new Resolver("Auto", egress, undefined, {
    lookup(host, _options, callback) {
      const found = (hosts[host.replace(/\.$/, "")] ?? []).map((address): LookupAddress => ({ address, family: 4 }));
      process.nextTick(callback, found.length === 0 ? new Error(`not found: ${host}`) : null, found);
    },
    now: () => clock.now,
    later: () => {},
    idly: () => () => {},
    ttl: () => {},
    srv(name, callback) {
      const node = new NodeResolver({ timeout: 10_000, tries: 1 });
      node.setServers([server.address]);
      findSrv(name, callback, node);
    },
    reaches: () => true,
  });
  const lookUp = (service = SERVICE): Promise<readonly (readonly unknown[])[] | string | undefined> =>
    new Promise((resolve) => {
      resolver.services.lookUp(service, undefined, ({ servers, error }) =>
        resolve(error ?? servers.map(({ at, port, rank, share }) => [at.join("|"), port, rank, share])),
      );
    });
  return { resolver, lookUp, clock };
}

const srv = (target: string, port: number, priority: number, weight: number) =>
  ({ type: "SRV", ttl: 10, target, port, priority, weight }) as const;

test("servers have the ports of their records, the priorities are ranks, and the addresses of a host share its weight", async () => {
  await using server = await DnsServer.start();
  server.records = {
    [SERVICE]: [
      srv("spare.a.test", 9000, 20, 1),
      srv("one.a.test", 8001, 10, 3),
      srv("two.a.test", 8002, 10, 0),
      srv("gone.a.test", 8003, 10, 1),
    ],
  };
  const { resolver, lookUp, clock } = resolverOf(server, {
    "one.a.test": ["10.0.0.1", "10.0.0.2"],
    "two.a.test": ["10.0.0.3", "fd00::3"],
    "spare.a.test": ["10.0.0.9"],
    "mixed.a.test": ["10.0.0.4", "10.0.0.5", "fd00::5"],
    "six.a.test": ["fd00::5"],
    "alias.a.test": ["10.0.0.1"],
    "other.a.test": ["10.0.0.7", "10.0.0.7"],
  });
  assert.equal(resolver.services.known(SERVICE, undefined), undefined);
  const expected = [
    ["10.0.0.1", 8001, 0, 1.5],
    ["10.0.0.2", 8001, 0, 1.5],
    ["10.0.0.3|fd00::3", 8002, 0, 0.1],
    ["10.0.0.9", 9000, 2, 1],
  ];
  assert.deepEqual(await Promise.all([lookUp(), lookUp()]), [expected, expected]);
  await lookUp();
  assert.equal(server.asked.length, 1, "they share a lookup");
  const { promise, resolve } = Promise.withResolvers<readonly (string | number)[]>();
  resolver.locate({ host: "a.test", port: 0, srv: SERVICE }, "tcp", (found) =>
    resolve(found.flatMap(({ address: { options } }) => ("host" in options ? [options.host, options.port] : []))),
  );
  assert.deepEqual(await promise, [
    "10.0.0.1",
    8001,
    "10.0.0.2",
    8001,
    "10.0.0.3",
    8002,
    "fd00::3",
    8002,
    "10.0.0.9",
    9000,
  ]);
  clock.now += 1000;
  server.records = {
    [SERVICE]: [
      srv("one.a.test", 80, 2, 9),
      ...["one", "alias", "other"].map((host) => srv(`${host}.a.test`, 80, 1, 2)),
    ],
  };
  assert.deepEqual(
    await lookUp(),
    [
      ["10.0.0.1", 80, 0, 3],
      ["10.0.0.2", 80, 0, 1],
      ["10.0.0.7", 80, 0, 2],
    ],
    "a server that several records lead to is one endpoint",
  );
  clock.now += 1000;
  server.records = { [SERVICE]: [srv("mixed.a.test", 80, 1, 2), srv("six.a.test", 80, 1, 4)] };
  assert.deepEqual(
    (await lookUp())?.slice(-1),
    [["fd00::5", 80, 0, 4]],
    "a backup of one host is no backup if another one has it in front",
  );
  await lookUp("_other._tcp.a.test");
  assert.equal(resolver.services.known(SERVICE, undefined)?.addresses.length, 3);
  clock.now += 1000;
  server.records = { [SERVICE]: [srv(".", 80, 0, 0), srv("one.a.test", 0, 0, 0)] };
  assert.equal(await lookUp(), `no server found for ${SERVICE}`);
  assert.deepEqual(resolver.services.known(SERVICE, undefined)?.error, `no server found for ${SERVICE}`);
  clock.now += 1000;
  server.records = {};
  assert.match(String(await lookUp()), /ENOTFOUND/);
  clock.now += 1000;
  server.records = { [SERVICE]: [srv("gone.a.test", 1, 0, 0)] };
  assert.equal(await lookUp(), "not found: gone.a.test");
});

test("of many records, 64 are used: those with the lowest priorities", async () => {
  await using server = await DnsServer.start();
  const hosts = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`h${i}.test`, [`10.0.1.${i}`]]));
  server.records = { [SERVICE]: Object.keys(hosts).map((target, i) => srv(target, 80, 100 - i, 1)) };
  const found = await resolverOf(server, hosts).lookUp();
  assert.equal(found?.length, 64);
  assert.equal(found[0]?.[0], "10.0.1.99");
});

test("rules for names apply to the service and to the hosts of its records", async () => {
  await using server = await DnsServer.start();
  server.records = { [SERVICE]: [srv("db.other.svc.cluster.local", 5432, 0, 1)] };
  const { lookUp } = resolverOf(server, { "db.other.svc.cluster.local": ["10.96.0.1"] }, ["cluster.local"]);
  assert.match(String(await lookUp("_sql._tcp.db.other.svc.Cluster.local")), /is a name inside the cluster/);
  assert.deepEqual(server.asked, []);
  assert.match(String(await lookUp()), /db\.other\.svc\.cluster\.local is a name inside the cluster/);
});
