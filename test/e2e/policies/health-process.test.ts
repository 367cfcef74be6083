import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, suite, test } from "node:test";
import { promisify } from "node:util";
import { TestGateway } from "../../helpers/gateway.ts";
import { TGCTL } from "../../helpers/programs.ts";

const run = promisify(execFile);

interface Dumped {
  readonly info: { readonly timesEjected: number; readonly evictedUntil: string | null };
}

interface DumpedBucket {
  readonly active: Readonly<Record<string, Dumped>>;
  readonly rejected: Readonly<Record<string, Dumped>>;
}

async function serve(status: number): Promise<Server> {
  const server = createServer((_request, response) => response.writeHead(status).end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

function workload(uid: string, server: Server, region: string): object {
  const { port } = server.address() as AddressInfo;
  const services = { "shop/cart": { "80": port } };
  return { uid, name: uid, namespace: "shop", workloadIps: ["127.0.0.1"], locality: { region }, services };
}

suite("a running gateway with an endpoint that fails", () => {
  let near: Server;
  let far: Server;
  let gateway: TestGateway;

  before(async () => {
    near = await serve(500);
    far = await serve(200);
    const policies = { health: { eviction: { duration: "1h", consecutiveFailures: 2 } } };
    const backends = [{ service: { name: "shop/cart", port: 80 }, policies }];
    gateway = await TestGateway.start(
      {
        config: { adminAddr: "127.0.0.1:0", statsAddr: "off", readinessAddr: "off", workerThreads: 1 },
        binds: [{ port: 0, listeners: [{ routes: [{ backends }] }] }],
        services: [
          {
            ...{ name: "cart", namespace: "shop", hostname: "cart", ports: { "80": 80 } },
            loadBalancer: { mode: "Failover", routingPreferences: ["region", "zone"] },
          },
        ],
        workloads: [workload("far", far, "us"), workload("near", near, "eu")],
      },
      { env: { LOCALITY: "eu/eu-1" } },
    );
  });
  after(async () => {
    await gateway.stop();
    for (const server of [near, far]) await new Promise((resolve) => server.close(resolve));
  });

  test("requests go to near endpoints until those have failed as often as configured, then to far ones", async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) statuses.push((await fetch(`http://127.0.0.1:${gateway.port()}/`)).status);
    assert.deepEqual(statuses, [500, 500, 200, 200]);
  });

  test("the dump has a bucket for each degree of nearness, and shows how long endpoints are evicted", async () => {
    const dump = await (await fetch(`${gateway.url("admin")}/config_dump`)).json();
    const [first, second] = (dump as { services: { endpoints: DumpedBucket[] }[] }).services[0]?.endpoints ?? [];
    assert.deepEqual(Object.keys(first?.active ?? {}), []);
    assert.deepEqual(Object.keys(second?.active ?? {}), ["far:shop/cart"]);
    const info = first?.rejected["near:shop/cart"]?.info;
    assert.equal(info?.timesEjected, 1);
    assert.match(info?.evictedUntil ?? "", /^3[56]\d\d\.\d\ds$/);
  });

  test("tgctl shows the eviction in place of the health", async () => {
    const port = new URL(gateway.url("admin")).port;
    const args = ["proxy", "config", "backends", "--local", "--proxy-admin-port", port];
    const { stdout } = await run(TGCTL, args);
    assert.match(stdout, /^Service +cart +shop +near:shop\/cart +Evict \(3[56]\d\d\.\ds\) +2 /m);
    assert.match(stdout, /^Service +cart +shop +far:shop\/cart +1\.00 +2 /m);
  });
});
