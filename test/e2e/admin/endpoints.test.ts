import assert from "node:assert/strict";
import { test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { closedPort, RawPeer, RawUpstream, reply } from "../../helpers/raw-peer.ts";

/** A backend in the dump. */
interface Backend {
  readonly endpoints: readonly { readonly active: Readonly<Record<string, { readonly info: Info }>> }[];
}

interface Info {
  readonly totalRequests: number;
}

const GET = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;

async function metric(gateway: TestGateway, series: string): Promise<number | undefined> {
  const text = await (await fetch(`${gateway.url("stats")}/metrics`)).text();
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

function config(...backends: readonly object[]): object {
  const routes = backends.map((backend, i) => ({
    name: `r${i}`,
    matches: [{ path: { pathPrefix: `/${i}` } }],
    backends: [backend],
  }));
  return { binds: [{ port: 0, listeners: [{ routes }] }] };
}

test("metrics show the connections, the queue and the health of each endpoint", async () => {
  await using upstream = await RawUpstream.listen();
  const dead = await closedPort();
  const http = { maxConnections: 1, maxPendingRequests: 1 };
  await using gateway = await TestGateway.start(
    config({ host: `127.0.0.1:${upstream.port}`, policies: { http } }, { host: `127.0.0.1:${dead}` }, { dynamic: {} }),
  );
  const endpoint = `endpoint="127.0.0.1:${upstream.port}"`;
  const of = async (): Promise<unknown> => ({
    active: await metric(gateway, `tracegate_upstream_connections{${endpoint},state="active"}`),
    idle: await metric(gateway, `tracegate_upstream_connections{${endpoint},state="idle"}`),
    pending: await metric(gateway, `tracegate_upstream_pending_requests{${endpoint}}`),
    overflow: await metric(gateway, `tracegate_upstream_pending_overflow_total{${endpoint}}`),
  });
  assert.deepEqual(await of(), { active: 0, idle: 0, pending: 0, overflow: 0 });
  const clients = await Promise.all(Array.from({ length: 3 }, () => RawPeer.connect(gateway.port())));
  for (const client of clients) client.send(GET("/0"));
  // One of the three is rejected: the first connection and the queue have room for one each.
  const refused = await Promise.race(clients.map((client) => client.take("503").then(() => client)));
  const peer = await upstream.connection();
  await peer.message();
  assert.deepEqual(await of(), { active: 1, idle: 0, pending: 1, overflow: 1 });
  for (let i = 0; i < 2; i++) {
    peer.send(reply("answered"));
    if (i === 0) await peer.message();
  }
  for (const client of clients) if (client !== refused) await client.take("answered");
  assert.deepEqual(await of(), { active: 0, idle: 1, pending: 0, overflow: 1 });

  assert.equal(await metric(gateway, `tracegate_endpoint_health{endpoint="127.0.0.1:${dead}"}`), 1);
  const last = await RawPeer.connect(gateway.port());
  last.send(GET("/1"));
  await last.take("503");
  assert.equal(await metric(gateway, `tracegate_endpoint_health{endpoint="127.0.0.1:${dead}"}`), 0.7);
  assert.equal(await metric(gateway, `tracegate_endpoint_health{${endpoint}}`), 1);
  assert.equal(await metric(gateway, `tracegate_endpoint_evicted{${endpoint}}`), 0);

  // Clients choose the targets of dynamic backends, so these add no series.
  last.send(`GET /2 HTTP/1.1\r\nHost: localhost:${dead}\r\n\r\n`);
  await last.take("503");
  assert.ok(((await metric(gateway, 'tracegate_endpoint_health{endpoint="dynamic"}')) ?? 1) < 1);
  assert.equal(await metric(gateway, `tracegate_endpoint_health{endpoint="localhost:${dead}"}`), undefined);
  for (const client of [...clients, last]) client.socket.destroy();
});

test("backends that share an endpoint are counted separately, also after a reload", async () => {
  await using upstream = await RawUpstream.answering(() => reply("answered"));
  const host = `127.0.0.1:${upstream.port}`;
  const both = config({ host }, { host });
  await using gateway = await TestGateway.start(both);
  const counts = async (): Promise<number[]> => {
    const dump = (await (await fetch(`${gateway.url("admin")}/config_dump`)).json()) as { backends: Backend[] };
    return dump.backends.map(({ endpoints }) => endpoints[0]?.active[host]?.info.totalRequests ?? -1);
  };
  const client = await RawPeer.connect(gateway.port());
  for (const path of ["/0", "/0", "/0", "/1"]) {
    client.send(GET(path));
    assert.equal((await client.message()).body, "answered");
  }
  assert.deepEqual(await counts(), [3, 1]);
  assert.equal(await gateway.reconfigure(config({ host }, { host }, { host })), "applied");
  client.send(GET("/2"));
  await client.message();
  assert.deepEqual(await counts(), [3, 1, 1]);
  client.socket.destroy();
});
