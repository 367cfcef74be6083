import assert from "node:assert/strict";
import { test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { RawPeer, statusOf } from "../../helpers/raw-peer.ts";

/** An hour: no bucket is refilled while a test runs. */
const LIMIT = { maxTokens: 30, tokensPerFill: 1, fillInterval: "1h" };

function config(status: number, limit: object = LIMIT): object {
  const routes = [{ name: "r", policies: { localRateLimit: [limit], directResponse: { status } } }];
  return { config: { workerThreads: 2 }, binds: [{ port: 0, listeners: [{ routes }] }] };
}

async function ask(gateway: TestGateway, headers: Record<string, string> = {}): Promise<Response> {
  // A connection for each request, so that they reach both threads.
  const response = await fetch(`http://127.0.0.1:${gateway.port()}/`, { headers: { connection: "close", ...headers } });
  await response.arrayBuffer();
  return response;
}

async function admitted(gateway: TestGateway, count: number, status: number): Promise<number> {
  const statuses = await Promise.all(Array.from({ length: count }, async () => (await ask(gateway)).status));
  assert.ok(statuses.every((each) => each === status || each === 429));
  return statuses.filter((each) => each === status).length;
}

test("all threads together admit as many requests as the bucket holds; a reload does not refill it", async () => {
  await using gateway = await TestGateway.start(config(201));
  assert.equal(await admitted(gateway, 20, 201), 20);
  assert.equal(await gateway.reconfigure(config(202)), "applied");
  assert.equal(await admitted(gateway, 20, 202), 10);

  const refused = await ask(gateway);
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get("x-ratelimit-limit"), "30");
  assert.equal(refused.headers.get("x-ratelimit-remaining"), "0");
  assert.ok(Number(refused.headers.get("retry-after")) > 3000);
  await gateway.until(() => gateway.lines.some((line) => line.reason === "RateLimit"), "the reason in the log");
});

test("each key has its own bucket", async () => {
  await using gateway = await TestGateway.start(
    config(204, { ...LIMIT, maxTokens: 1, key: 'request.headers["x-user"]' }),
  );
  for (const [user, status] of [
    ["a", 204],
    ["a", 429],
    ["b", 204],
    ["b", 429],
  ] as const)
    assert.equal((await ask(gateway, { "x-user": user })).status, status);
});

test("a limit counts the requests of all routes that it applies to; with the route as its key, those of each", async () => {
  const once = (key?: string): object => ({ localRateLimit: [{ maxTokens: 1, fillInterval: "1h", key }] });
  const on = (path: string, policies: object = {}): object => ({
    name: path.slice(1).replace("/", "."),
    matches: [{ path: { pathPrefix: path } }],
    policies,
  });
  const served = { directResponse: { status: 204 } };
  const routes = [
    on("/a", served),
    on("/b", served),
    on("/own", { ...served, ...once() }),
    { ...on("/group", once()), backends: [{ routeGroup: "shop" }] },
  ];
  const target = (listenerName: string): object => ({ gateway: { gatewayName: "default", listenerName } });
  await using gateway = await TestGateway.start({
    binds: [
      {
        port: 0,
        listeners: [
          { name: "one", hostname: "one.test", routes },
          { name: "each", hostname: "each.test", routes },
        ],
      },
    ],
    routeGroups: [{ name: "shop", routes: [on("/group/c", served), on("/group/d", served)] }],
    policies: [
      { name: { name: "all" }, target: target("one"), policy: once() },
      { name: { name: "each" }, target: target("each"), policy: once("proxy.route.name") },
    ],
  });
  const statuses = async (host: string): Promise<string> => {
    const found: number[] = [];
    for (const path of ["/a", "/a", "/b", "/own", "/own", "/group/c", "/group/d"])
      found.push(statusOf(await RawPeer.ask(gateway.port(), `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)));
    return found.join(" ");
  };
  assert.equal(await statuses("one.test"), "204 429 429 204 429 204 429");
  assert.equal(await statuses("each.test"), "204 429 204 204 429 204 429");
});
