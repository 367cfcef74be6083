import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { type RawMessage, RawUpstream, reply } from "../../helpers/raw-peer.ts";

let upstream: RawUpstream;
let gateway: TestGateway;
let asked: RawMessage | undefined;

const echoed = {
  request: { body: "'<' + string(request.body) + '>'" },
  response: { body: "'[' + string(response.body) + ']'" },
};

before(async () => {
  upstream = await RawUpstream.answering((request) => {
    asked = request;
    return reply(request.body);
  });
  const host = `127.0.0.1:${upstream.port}`;
  const mark = (name: string) => ({
    request: { set: { "x-last": `default(request.headers['x-last'], '') + '${name} '` } },
    response: { set: { "x-last": `default(response.headers['x-last'], '') + '${name} '` } },
  });
  const routes = [
    { matches: [{ path: { pathPrefix: "/body" } }], policies: { transformations: echoed }, backends: [{ host }] },
    {
      matches: [{ path: { pathPrefix: "/target" } }],
      policies: {
        transformations: {
          request: { set: { ":path": "'/new?q=1'", ":authority": "'other:81'", ":method": "'PUT'" } },
        },
      },
      backends: [{ host }],
    },
    {
      matches: [{ path: { pathPrefix: "/order" } }],
      policies: { transformations: mark("route") },
      backends: [{ host, policies: { transformations: mark("backend") } }],
    },
    {
      matches: [{ path: { pathPrefix: "/error" } }],
      policies: {
        transformations: { response: { set: { "x-was": "response.code", ":status": "520" }, body: "'sorry'" } },
      },
      backends: [{ host: "127.0.0.1:9" }],
    },
  ];
  const listener = { policies: { transformations: mark("gateway") }, routes };
  gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [listener] }] });
});
after(async () => {
  await gateway.stop();
  await upstream[Symbol.asyncDispose]();
});

function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`http://127.0.0.1:${gateway.port()}${path}`, init);
}

test("bodies are read, replaced and framed again in both directions", async () => {
  for (const length of [0, 5, 100_000]) {
    const body = "x".repeat(length);
    const response = await ask("/body", { method: "POST", body });
    assert.equal(await response.text(), `[<${body}>]`);
    assert.equal(response.headers.get("content-length"), String(length + 4));
  }
});

test("a body beyond the limit that an expression reads is rejected, and reaches no backend", async () => {
  asked = undefined;
  const response = await ask("/body", { method: "POST", body: "x".repeat(2 * 1024 * 1024 + 1) });
  assert.equal(response.status, 413);
  assert.equal(asked, undefined);
  assert.equal(await response.text(), "[content too large]", "expressions for responses also apply to this one");
});

test("HEAD gets the fields without a body", async () => {
  const response = await ask("/body", { method: "HEAD" });
  assert.equal(response.status, 200);
  assert.equal(await response.text(), "");
});

test("the target of the request", async () => {
  assert.equal((await ask("/target")).status, 200);
  assert.equal(asked?.start, "PUT /new?q=1 HTTP/1.1");
  assert.ok(asked?.fields.some((line) => line.toLowerCase() === "host: other:81"));
});

test("requests: gateway, route, backend; responses: route, backend, gateway", async () => {
  const response = await ask("/order");
  assert.equal(response.headers.get("x-last"), "route backend gateway ");
  assert.ok(
    asked?.fields.some((line) => line === "x-last: gateway route backend "),
    String(asked?.fields),
  );
});

test("errors of the gateway are responses too", async () => {
  const response = await ask("/error");
  assert.equal(response.status, 520);
  assert.equal(response.headers.get("x-was"), "503");
  assert.equal(await response.text(), "sorry");
});
