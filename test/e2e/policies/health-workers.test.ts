import assert from "node:assert/strict";
import { test } from "node:test";
import { endpointRows } from "../../../src/cli/dump/endpoints.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { RawPeer, RawUpstream, reply } from "../../helpers/raw-peer.ts";

/** Asks on a connection of its own: any worker may get it. */
async function ask(port: number): Promise<string> {
  const client = await RawPeer.connect(port);
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const { body } = await client.message();
  client.socket.destroy();
  return body;
}

test("what one worker evicts, no worker calls; the dump and tgctl tell for how long", async () => {
  let failures = 0;
  await using good = await RawUpstream.answering(() => reply("good"));
  await using bad = await RawUpstream.answering(() => {
    failures++;
    return reply("bad", [], "500 Internal Server Error");
  });
  const workload = (uid: string, port: number): object => ({
    uid,
    name: uid,
    namespace: "a",
    workloadIps: ["127.0.0.1"],
    services: { "a/shop": { 80: port } },
  });
  const policies = { health: { eviction: { duration: "1h" } } };
  const backends = [{ service: { name: "a/shop", port: 80 }, policies }];
  await using gateway = await TestGateway.start({
    config: { workerThreads: 2 },
    binds: [{ port: 0, listeners: [{ routes: [{ backends }] }] }],
    services: [{ name: "shop", namespace: "a", hostname: "shop", ports: { 80: 80 } }],
    workloads: [workload("good", good.port), workload("bad", bad.port)],
  });
  const dump = async (): Promise<unknown> => (await fetch(`${gateway.url("admin")}/config_dump`)).json();
  for (let i = 0; i < 200 && failures === 0; i++) await ask(gateway.port());
  assert.equal(failures, 1);
  // The first answer of all workers comes after the notice of the one, that to the second after all have heard of it.
  await dump();
  const shown = await dump();
  for (let i = 0; i < 30; i++) assert.equal(await ask(gateway.port()), "good");
  assert.equal(failures, 1);

  const [service] = (shown as { services: { endpoints: { active: object; rejected: object }[] }[] }).services;
  const [bucket] = service?.endpoints ?? [];
  assert.deepEqual(Object.keys(bucket?.active ?? {}), ["good:a/shop"]);
  assert.deepEqual(Object.keys(bucket?.rejected ?? {}), ["bad:a/shop"]);
  const rows = endpointRows(shown).map(({ endpoint, health, requests }) => ({ endpoint, health, requests }));
  const evicted = rows.find(({ endpoint }) => endpoint.startsWith("bad"));
  assert.match(evicted?.health ?? "", /^Evict \(3[56]\d\d\.\ds\)$/);
  assert.equal(evicted?.requests, 1);
});
