import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { RawUpstream, reply } from "../../helpers/raw-peer.ts";

const CORS = { allowOrigins: ["https://*.shop.example"], allowMethods: ["PUT"], allowCredentials: true };
const ORIGIN = "https://a.shop.example";

let upstream: RawUpstream;
let gateway: TestGateway;

before(async () => {
  upstream = await RawUpstream.answering(() => reply("hello", ["Access-Control-Allow-Origin: https://own.example"]));
  const backends = [{ host: `127.0.0.1:${upstream.port}` }];
  const routes = [
    { matches: [{ path: { pathPrefix: "/gone" } }], policies: { directResponse: { status: 410 } } },
    { matches: [{ path: { pathPrefix: "/form" } }], policies: { csrf: {} }, backends },
    { matches: [{ path: { pathPrefix: "/down" } }], backends: [{ host: "127.0.0.1:9" }] },
    { matches: [{ path: { pathPrefix: "/api" } }], backends },
  ];
  gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ policies: { cors: CORS }, routes }] }] });
});
after(async () => {
  await gateway.stop();
  await upstream[Symbol.asyncDispose]();
});

function ask(path: string, init: RequestInit): Promise<Response> {
  return fetch(`http://127.0.0.1:${gateway.port()}${path}`, { ...init, keepalive: false });
}

test("cors: the gateway responds to a preflight before it selects a route", async () => {
  for (const path of ["/api", "/nobody"]) {
    const response = await ask(path, { method: "OPTIONS", headers: { origin: ORIGIN } });
    assert.equal(response.status, 200);
    assert.equal(await response.text(), "");
    assert.equal(response.headers.get("access-control-allow-origin"), ORIGIN);
    assert.equal(response.headers.get("access-control-allow-methods"), "PUT");
    assert.equal(response.headers.get("vary"), "Origin");
  }
});

test("cors: every response has the headers, also those of the gateway itself", async () => {
  for (const [path, status] of [
    ["/api", 200],
    ["/gone", 410],
    ["/down", 503],
    ["/nobody", 404],
  ] as const) {
    const response = await ask(path, { headers: { origin: ORIGIN } });
    assert.equal(response.status, status);
    assert.equal(response.headers.get("access-control-allow-origin"), ORIGIN, path);
    assert.equal(response.headers.get("access-control-allow-credentials"), "true");
    assert.equal(response.headers.get("vary"), "Origin");
  }
});

test("csrf: a form of another site is rejected, without the CORS headers that would let it read the response", async () => {
  const foreign = await ask("/form", { method: "POST", headers: { origin: "https://evil.example" } });
  assert.equal(foreign.status, 403);
  assert.equal(await foreign.text(), "CSRF validation failed");
  assert.equal(foreign.headers.get("access-control-allow-origin"), null);
  const own = await ask("/form", { method: "POST", headers: { origin: `http://127.0.0.1:${gateway.port()}` } });
  assert.equal(own.status, 200);
});
