import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { proxyTo, TestGateway } from "../../helpers/gateway.ts";
import { UdpPeer } from "../../helpers/udp-peer.ts";
import { byRequest, type Followed, followed, noticesOf } from "./following.ts";
import { call, messageOf, rawClient, sequence, stateAt, traceOf, Upstream } from "./support.ts";

const SESSION = [
  "requestStarted",
  "requestSnapshot initial request",
  "routeSelection",
  "backendCallStart",
  "backendCallResult",
];
const protocols = (events: readonly Followed[]) =>
  events.flatMap(({ message }) => (message.type === "requestStarted" ? [message.protocol ?? "http"] : []));

test("a session of UDP is followed from its first datagram to its end; a trace waits for a request", async (t) => {
  await using server = await UdpPeer.open((text) => `a:${text}`);
  const upstream = await Upstream.start();
  t.after(() => upstream.close());
  const http = { port: 0, listeners: [{ routes: [{ backends: [{ host: upstream.address }] }] }] };
  const routes = [{ name: "r", backends: [{ host: server.address }] }];
  const udp = { port: 0, listeners: [{ name: "dns", protocol: "UDP", tcpRoutes: routes }] };
  const frontendPolicies = { udp: { idleTimeout: "300ms" } };
  await using gateway = await TestGateway.start({ binds: [http, udp], frontendPolicies });
  await using client = await UdpPeer.open();
  let traced: Awaited<ReturnType<typeof traceOf>> = [];
  const events = await followed(gateway, { count: 2 }, async () => {
    traced = await traceOf(gateway, async () => {
      assert.equal(await client.ask("one", gateway.port("bind/udp/0")), "a:one");
      await call(gateway.port("bind/0"), { path: "/after" });
    });
  });
  assert.equal(stateAt(traced, "initial request").request?.path, "/after");
  assert.deepEqual(protocols(events).sort(), ["http", "udp"]);
  const session = [...byRequest(events).values()].find(([first]) => first && "protocol" in first.message) ?? [];
  // A session that outlives a second on a slow machine reports its progress as well.
  const steps = sequence(session).filter((step) => step !== "streamProgress");
  assert.deepEqual(steps, [...SESSION, "requestFinished"]);
  assert.equal(stateAt(session, "initial request").source?.port, client.port);
  assert.equal(messageOf(session, "routeSelection").selectedRoute, "default/r");
  assert.equal(messageOf(session, "backendCallStart").target, server.address);
  assert.equal(messageOf(session, "backendCallResult").error, null);
  assert.equal(messageOf(session, "requestFinished").error, null);
});

test("a session of UDP without a usable backend ends with the reason", async () => {
  const listener = { protocol: "UDP", tcpRoutes: [{ name: "r", backends: [] }] };
  const frontendPolicies = { udp: { idleTimeout: "300ms" } };
  await using gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [listener] }], frontendPolicies });
  await using client = await UdpPeer.open();
  const events = await followed(gateway, { count: 1 }, () => client.send("one", gateway.port("bind/udp/0")));
  const session = byRequest(events).get(1) ?? [];
  assert.equal(messageOf(session, "routeSelection").selectedRoute, "default/r");
  assert.match(messageOf(session, "requestFinished").error ?? "", /backend/);
});

test("a shutdown ends the stream after the requests that it waits for, and those that it cuts", async (t) => {
  const upstream = await Upstream.start();
  t.after(() => upstream.close());
  const hung = upstream.hang("/hangs");
  const config = { connectionMinTerminationDeadline: "0s", connectionTerminationDeadline: "1s", workerThreads: 2 };
  await using gateway = await TestGateway.start({ ...proxyTo(upstream.address), config });
  const events = await followed(gateway, { count: 100 }, async () => {
    await call(gateway.port(), { path: "/before" });
    const client = await rawClient(gateway.port(), "GET /hangs HTTP/1.1\r\nHost: a.test\r\n\r\n");
    await hung;
    await Promise.all([gateway.drain(), once(client, "close")]);
  });
  const requests = [...byRequest(events).values()];
  assert.equal(requests.length, 2);
  for (const each of requests) assert.equal(sequence(each).at(-1), "requestFinished");
  assert.deepEqual(noticesOf(events), [{ type: "followEnded", reason: "shutdown", requests: 2, unfinished: 0 }]);
  assert.equal(events.at(-1)?.message.type, "followEnded");
});
