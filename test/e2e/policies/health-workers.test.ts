import assert from "node:assert/strict";
import { test } from "node:test";
import { endpointRows } from "../../../src/cli/dump/endpoints.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { RawPeer, RawUpstream, reply } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";

interface Dump {
  readonly backends: readonly {
    readonly endpoints: readonly {
      readonly rejected: Readonly<Record<string, { readonly info: { readonly activeHealth: ActiveHealth } }>>;
    }[];
  }[];
}

interface ActiveHealth {
  readonly state: string;
  readonly reason: string;
  readonly probes: number;
  readonly failedProbes: number;
}

/** A request on its own connection, which any worker may get. */
async function ask(port: number): Promise<string> {
  const client = await RawPeer.connect(port);
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const { body } = await client.message();
  client.socket.destroy();
  return body;
}

test("an endpoint that one worker evicts gets no calls of any worker; the dump and tgctl show for how long", async () => {
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
  // All workers have replied to the first scrape after the notice was sent, and to the second after all have received it.
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

test("metrics, dump and tgctl show active health checks", async () => {
  await using bad = await RawUpstream.answering(() => reply("", [], "503 Service Unavailable"));
  const policies = { health: { active: { http: {}, interval: "100ms", unhealthyThreshold: 1 } } };
  const endpoint = `127.0.0.1:${bad.port}`;
  await using gateway = await TestGateway.start({
    config: { workerThreads: 2 },
    binds: [{ port: 0, listeners: [{ routes: [{ backends: [{ host: endpoint, policies }] }] }] }],
  });
  const shown = await until(async () => {
    const dump = (await (await fetch(`${gateway.url("admin")}/config_dump`)).json()) as Dump;
    const { rejected } = dump.backends[0]?.endpoints[0] ?? {};
    return rejected?.[endpoint] === undefined
      ? undefined
      : { dump, activeHealth: rejected[endpoint].info.activeHealth };
  }, "the endpoint to be rejected");
  const { state, reason, probes, failedProbes } = shown.activeHealth;
  assert.deepEqual([state, reason], ["unhealthy", "status 503"]);
  assert.ok(probes >= 1 && failedProbes === probes);
  assert.equal(endpointRows(shown.dump)[0]?.health, "unhealthy");
  const metrics = await (await fetch(`${gateway.url("stats")}/metrics`)).text();
  assert.ok(metrics.includes(`tracegate_endpoint_healthy{endpoint="${endpoint}"} 0\n`));
  assert.match(metrics, new RegExp(`tracegate_health_checks_total{endpoint="${endpoint}",result="failure"} [1-9]`));
  assert.ok(metrics.includes(`tracegate_health_checks_total{endpoint="${endpoint}",result="success"} 0\n`));
  assert.ok(metrics.includes(`tracegate_endpoint_evicted{endpoint="${endpoint}"} 0\n`));
});
