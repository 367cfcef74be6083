import assert from "node:assert/strict";
import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { AdminClient } from "../../../src/admin/client/client.ts";
import type { Overview } from "../../../src/admin/plane/answers.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { until } from "../../helpers/until.ts";

const SECRET = "hunter2-secret";

const backend = createServer((request, response) => {
  response.statusCode = request.url?.startsWith("/broken") ? 500 : 200;
  request.resume();
  response.end("hello");
});
let gateway: TestGateway;

function config(backendPort: number): object {
  const backends = [{ host: `127.0.0.1:${backendPort}` }];
  const routes = [
    {
      name: "admin",
      matches: [{ path: { pathPrefix: "/admin" } }],
      policies: { authorization: { rules: [{ deny: "true" }] } },
      backends,
    },
    { name: "shop", backends },
  ];
  return {
    config: { workerThreads: 2 },
    binds: [
      {
        port: 0,
        listeners: [
          { name: "web", hostname: "*.shop.example", routes },
          { name: "other", routes: [] },
        ],
      },
    ],
  };
}

before(async () => {
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
  gateway = await TestGateway.start(config((backend.address() as AddressInfo).port));
});
after(async () => {
  await gateway.stop();
  backend.close();
});

/** Sends a request for a host; resolves with its status. */
function send(path: string, host = "www.shop.example"): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get({ port: gateway.port(), path, headers: { host, authorization: SECRET } }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode));
    }).on("error", reject);
  });
}

/** The overview once it satisfies `enough`: requests are counted after their response. */
function overview(enough: (overview: Overview) => boolean = () => true): Promise<Overview> {
  const client = new AdminClient(gateway.url("admin"));
  return until(async () => {
    const found = await client.overview();
    return enough(found) && found;
  });
}

test("workers, listeners with the ports that they serve, and the configuration in effect", async () => {
  const { workers, listeners, status, pending, draining } = await overview();
  assert.deepEqual(
    workers,
    ["worker-0", "worker-1"].map((name) => ({ name, state: "serving", generation: 1, deaths: 0 })),
  );
  assert.deepEqual(
    listeners.map(({ name, hostname, protocol, routes }) => [name, hostname, protocol, routes]),
    [
      ["web", "*.shop.example", "HTTP", 2],
      ["other", "*", "HTTP", 0],
    ],
  );
  const [web] = listeners;
  assert.equal(web?.address, `[::]:${gateway.port()}`);
  assert.ok((web?.origin?.place?.line ?? 0) > 1);
  assert.deepEqual([status.generation, status.synchronized, pending, draining], [1, true, [], false]);
});

test("traffic has every request at once, and failures are counted by route, status and what decided", async () => {
  const sent = ["/ok", "/ok", "/broken", "/admin/users", "/admin/keys"];
  for (const path of sent) await send(path);
  assert.equal(await send("/ok", "elsewhere.example"), 404);
  const counted = ({ traffic }: Overview): number => traffic.points.reduce((sum, { requests }) => sum + requests, 0);
  const found = await overview((each) => counted(each) >= 6 && (each.failures?.found ?? 0) >= 4);
  assert.equal(counted(found), 6);
  assert.equal(
    found.traffic.points.reduce((sum, { errors }) => sum + errors, 0),
    4,
  );
  assert.ok(found.traffic.points.some(({ p50 = 0, p99 = 0 }) => p50 > 0 && p99 >= p50));
  assert.equal(found.failures?.requests, 6);
  const [first, ...others] = found.failures?.groups ?? [];
  assert.deepEqual([first?.count, first?.status, first?.route, first?.share], [2, 403, "default/admin", 1 / 3]);
  assert.match(first?.decidedBy ?? "", /^authorization failed, at .*\.yaml:\d+$/);
  assert.equal(first?.example.path, "/admin/keys");
  assert.deepEqual(others.map(({ status, route }) => `${status} ${route}`).sort(), ["404 null", "500 default/shop"]);
  assert.ok(!JSON.stringify(found).includes(SECRET));
});

test("the positions of problems of a configuration that was rejected", async () => {
  assert.equal(await gateway.reconfigure({ ...config(1), binds: [{ port: "x" }] }), "rejected");
  const { status, workers } = await overview();
  assert.match(JSON.stringify(status.lastError?.diagnostics), /"line":\d+,"column":\d+,"path":"binds\[0\]\.port"/);
  assert.deepEqual([status.synchronized, workers[0]?.generation], [false, 1]);
});
