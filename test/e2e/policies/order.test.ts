import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";

const ORIGIN = "https://page.example";
const LIMIT = { maxTokens: 1, tokensPerFill: 1, fillInterval: "1h" };
const ALLOWED = { rules: ['request.headers["x-user"] == "zoe"'] };

let gateway: TestGateway;

before(async () => {
  const policies = {
    directResponse: { status: 204 },
    csrf: {},
    transformations: { request: { set: { "sec-fetch-site": "'same-origin'" } } },
    localRateLimit: [LIMIT],
    authorization: ALLOWED,
    cors: { allowOrigins: [ORIGIN] },
  };
  const redirected = {
    directResponse: { status: 204 },
    delay: { duration: "1h" },
    requestRedirect: { path: { full: "/there" } },
  };
  const routes = [
    { name: "all", matches: [{ path: { pathPrefix: "/all" } }], policies },
    { name: "redirected", matches: [{ path: { pathPrefix: "/redirected" } }], policies: redirected },
  ];
  gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
});
after(() => gateway.stop());

function ask(path: string, method: string, headers: Record<string, string>): Promise<Response> {
  return fetch(`http://127.0.0.1:${gateway.port()}${path}`, { method, headers, redirect: "manual" });
}

test("preflights come before authorization, denials before limits, limits before direct responses", async () => {
  // A preflight carries no credentials.
  assert.equal((await ask("/all", "OPTIONS", { origin: ORIGIN })).status, 200);
  // A denied request takes no token, and the page may read why.
  for (let i = 0; i < 3; i++) {
    const refused = await ask("/all", "GET", { origin: ORIGIN });
    assert.equal(refused.status, 403);
    assert.equal(refused.headers.get("access-control-allow-origin"), ORIGIN);
  }
  // csrf reads the headers that transformations have set.
  const own = await ask("/all", "POST", { "x-user": "zoe", origin: "https://evil.example" });
  assert.equal(own.status, 204);
  assert.equal(own.headers.get("x-ratelimit-remaining"), "0");
  assert.equal((await ask("/all", "GET", { "x-user": "zoe" })).status, 429);
});

test("a redirected request is not delayed, and gets no direct response", async () => {
  const response = await ask("/redirected", "GET", {});
  assert.equal(response.status, 302);
});
