import assert from "node:assert/strict";
import { Resolver } from "node:dns";
import { test } from "node:test";
import { DnsServer } from "../../../test/helpers/dns-server.ts";
import { recordTtl } from "./records.ts";

test("the least TTL of the records, if they are what the system found", async () => {
  await using server = await DnsServer.start();
  server.records = {
    "a.test": [
      { type: "A", ttl: 30, address: "10.0.0.1" },
      { type: "A", ttl: 20, address: "10.0.0.2" },
      { type: "AAAA", ttl: 10, address: "fd00::1" },
    ],
  };
  const ttl = (host: string, ...addresses: string[]): Promise<number | undefined> =>
    new Promise((resolve) => {
      const resolver = new Resolver({ timeout: 10_000, tries: 1 });
      resolver.setServers([server.address]);
      recordTtl(host, addresses, resolve, resolver);
    });
  assert.equal(await ttl("a.test", "10.0.0.2", "10.0.0.1"), 20_000);
  assert.deepEqual(server.asked.splice(0), ["a.test A"]);
  assert.equal(await ttl("a.test", "10.0.0.1", "fd00::1"), 10_000);
  assert.deepEqual(server.asked.splice(0).sort(), ["a.test A", "a.test AAAA"]);
  // Not all addresses come from DNS, or none does.
  assert.equal(await ttl("a.test", "10.0.0.1", "10.0.0.9"), undefined);
  assert.equal(await ttl("a.test", "10.0.0.1", "fd00::9"), undefined);
  assert.equal(await ttl("hosts-file.test", "10.0.0.1"), undefined);
});
