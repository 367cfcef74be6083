import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { connect } from "node:tls";
import type { RecordAnswer, RequestRecord } from "../../../src/recorder/records.ts";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { TestGateway } from "../../helpers/gateway.ts";

const SECRET = "hunter2-secret";

const backend = createServer((request, response) => {
  response.statusCode = request.url?.startsWith("/broken") ? 500 : 200;
  request.resume();
  response.end("hello");
});
let gateway: TestGateway;

function config(backendPort: number, name: string): object {
  const backends = [{ host: `127.0.0.1:${backendPort}` }];
  const routes = [
    {
      name: "admin",
      matches: [{ path: { pathPrefix: "/admin" } }],
      policies: { authorization: { rules: [{ deny: "false" }, { deny: 'request.path != "/admin/ok"' }] } },
      backends,
    },
    { name: "gone", matches: [{ path: { pathPrefix: "/gone" } }], backends: [{ host: "127.0.0.1:1" }] },
    { name, matches: [{ path: { pathPrefix: "/" } }], backends },
  ];
  return { binds: [{ port: 0, listeners: [{ name: "web", routes }] }] };
}

before(async () => {
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
  gateway = await TestGateway.start(config((backend.address() as AddressInfo).port, "shop"));
});
after(async () => {
  await gateway.stop();
  backend.close();
});

/** Sends a request and returns its record, once there is one. */
async function send(path: string, id: string): Promise<RequestRecord> {
  const headers = { "x-request-id": id, authorization: `Bearer ${SECRET}` };
  await fetch(`http://127.0.0.1:${gateway.port()}${path}`, { headers }).then((response) => response.text());
  for (;;) {
    const { status, body } = await admin(`/requests/${id}`);
    if (status === 200) return (JSON.parse(body) as RecordAnswer).records[0] as RequestRecord;
  }
}

async function admin(path: string): Promise<{ status: number; body: string }> {
  const response = await fetch(`${gateway.url("admin")}${path}`);
  return { status: response.status, body: await response.text() };
}

async function ids(query: string): Promise<(string | undefined)[]> {
  const { status, body } = await admin(`/requests?${query}`);
  assert.equal(status, 200, body);
  return (JSON.parse(body) as RecordAnswer).records.map(({ id }) => id);
}

const where = (expression: string): string => `where=${encodeURIComponent(expression)}`;

test("a request is found by its id after it is over, with route, status, backend and what decided", async () => {
  const served = await send("/cart/7", "served-1");
  const { method, path, status, route, listener, attempts, reason, error } = served;
  assert.deepEqual(
    { method, path, status, route, listener, attempts, reason, error },
    {
      method: "GET",
      path: "/cart/7",
      status: 200,
      route: "default/shop",
      listener: "web",
      attempts: 1,
      reason: "Upstream",
      error: undefined,
    },
  );
  assert.equal(served.host, "127.0.0.1");
  assert.equal(served.endpoint, `127.0.0.1:${(backend.address() as AddressInfo).port}`);
  assert.equal(served.sent, 5);
  assert.ok(served.duration > 0 && Date.parse(served.time) <= Date.now());

  const denied = await send("/admin/users", "denied-1");
  assert.equal(denied.status, 403);
  assert.equal(denied.error, "TG_AUTHORIZATION");
  assert.equal(denied.kept, true);
  assert.equal(denied.decider?.policy, "authorization");
  assert.equal(denied.decider?.rule, 1);
  assert.deepEqual(denied.decider?.origin?.path.slice(-2), ["rules", 1]);
});

test("expressions, time, route and outcome choose records, the newest first", async () => {
  for (const [path, id] of [
    ["/a", "chosen-1"],
    ["/b?x=1", "chosen-2"],
    ["/broken", "chosen-3"],
    ["/gone", "chosen-4"],
  ] as const)
    await send(path, id);
  const chosen = (await ids("limit=1000")).filter((id) => id?.startsWith("chosen"));
  assert.deepEqual(chosen, ["chosen-4", "chosen-3", "chosen-2", "chosen-1"]);
  const found = async (query: string) => (await ids(query)).filter((id) => id?.startsWith("chosen"));
  assert.deepEqual(await found("errors=true"), ["chosen-4", "chosen-3"]);
  assert.deepEqual(await found(`errors=true&${where('reason == "UpstreamFailure" && response.code == 503')}`), [
    "chosen-4",
  ]);
  assert.deepEqual(await found("route=gone"), ["chosen-4"]);
  assert.deepEqual(await found(where('request.path == "/b" && route == "default/shop"')), ["chosen-2"]);
  assert.deepEqual(
    await found(where('error == "" && duration < duration("1h") && attempts == 1 && response.code == 500')),
    ["chosen-3"],
  );
  assert.deepEqual(await found("last=0s"), []);
  assert.deepEqual((await found("last=1h")).length, 4);
  assert.equal((await ids("limit=1")).length, 1);
});

test("asking since the previous answer misses no request", async () => {
  const seen: (string | undefined)[] = [];
  let since = new Date(Date.now() - 60_000).toISOString();
  for (let i = 0; i < 20; i++) {
    await send("/a", `since-${i}`);
    const { body } = await admin(`/requests?limit=1000&since=${since}`);
    const { records, until } = JSON.parse(body) as RecordAnswer;
    seen.push(...records.map(({ id }) => id));
    assert.ok(until < new Date().toISOString() && until >= since, "it goes on");
    since = until;
  }
  for (let i = 0; i < 20; i++) assert.ok(seen.includes(`since-${i}`), `since-${i}`);
  const last = await send("/a", "since-last");
  const ended = Date.parse(last.time) + last.duration;
  const afterIt = await ids(`since=${new Date(Math.ceil(ended) + 1).toISOString()}`);
  assert.ok(!afterIt.includes("since-last"), "it ended before");
});

test("a request that is over can be saved as a page or as a HAR", async () => {
  const { number, worker, route } = await send("/admin/users", "saved-1");
  const file = async (body: object, format: string) => {
    const response = await fetch(`${gateway.url("admin")}/export?format=${format}`, {
      method: "POST",
      body: JSON.stringify(body),
    });
    return { status: response.status, answer: JSON.parse(await response.text()) };
  };
  const page = await file({ id: "saved-1" }, "html");
  assert.equal(page.answer.name, "request.html");
  assert.match(page.answer.text, /<h1 class="error">GET 127\.0\.0\.1\/admin\/users <span>→ 403<\/span>/);
  assert.ok(page.answer.text.includes(`<dt>route</dt><dd>${route}</dd>`), page.answer.text);
  assert.match(page.answer.text, /<b>✗<\/b> policy authorization.*<small>/, "what decided, and where it is written");
  const { log } = JSON.parse((await file({ id: `${worker}-${number}` }, "har")).answer.text);
  assert.equal(log.entries.length, 1);
  const [{ request, response, comment, time }] = log.entries;
  assert.deepEqual([request.method, response.status], ["GET", 403]);
  assert.equal(request.url, "http://127.0.0.1/admin/users");
  assert.match(comment, /^as recorded, without fields, query and bodies; /);
  assert.ok(time > 0);
  const gone = await file({ id: "9-9" }, "har");
  assert.deepEqual([gone.status, gone.answer.error.code], [400, "record"]);
  for (const [events, message] of [
    [[{ message: { type: "nothing" } }], "there is no request that har could show"],
    [[{ message: { type: "nothing" } }, 7], "invalid events: expected a list"],
    ["", "invalid events: expected a list"],
  ] as const) {
    const refused = await fetch(`${gateway.url("admin")}/export?format=har`, {
      method: "POST",
      body: JSON.stringify({ events }),
    });
    assert.equal(refused.status, 400);
    assert.ok((await refused.text()).startsWith(message), message);
  }
});

test("a record has no query, no field, and no user name or parameter of a path that may be secret", async () => {
  await send(`/a;jsessionid=${SECRET}/b?token=${SECRET}`, "secret-1");
  await send(`/go/http:%2F%2Fuser:${SECRET}@shop.example/`, "secret-2");
  const { body } = await admin("/requests?limit=1000");
  assert.ok(body.includes("secret-1") && body.includes("secret-2"));
  assert.ok(!body.includes(SECRET));
});

test("mistakes are explained: an expression with its position, an unknown id, other values", async () => {
  const wrong = await admin(`/requests?${where("response.code == 403 && rout == 'x'")}`);
  assert.equal(wrong.status, 400);
  assert.match(wrong.body, /rout/);
  assert.match(wrong.body, /\^ line 1, column 25/);
  for (const [expression, problem] of [
    ['request.headers["x-role"] == "a"', "request has no field headers"],
    ['response.body == b"a"', "response has no field body"],
    ['backend.type == "static"', "backend has no field type"],
  ] as const) {
    const unrecorded = await admin(`/requests?${where(expression)}`);
    assert.equal(unrecorded.status, 400, "it would find nothing, whatever requests had");
    assert.ok(unrecorded.body.includes(problem), unrecorded.body);
  }
  const unknown = await admin("/requests/nowhere");
  assert.equal(unknown.status, 404);
  assert.match(unknown.body, /"records": \[\],[\s\S]*"keptSince": "\d{4}-/);
  assert.equal((await admin("/requests?last=soon")).status, 400);
  assert.equal((await admin("/requests?limit=0")).status, 400);
  assert.equal((await admin("/requests?errors=perhaps")).status, 400);
  assert.equal((await admin("/requests?since=1")).status, 400);
});

test("records and their names outlive a reload that removes the route", async () => {
  const before = await send("/before", "before-1");
  assert.equal(await gateway.reconfigure(config((backend.address() as AddressInfo).port, "store")), "applied");
  const later = await send("/later", "later-1");
  assert.equal(later.route, "default/store");
  assert.ok(later.generation > before.generation);
  const { body } = await admin("/requests/before-1");
  assert.deepEqual((JSON.parse(body) as RecordAnswer).records, [before]);
});

test("the record of a request over TLS says so", { skip: noOpenssl }, async () => {
  using ca = new TestCa();
  const { certFile: cert, keyFile: key } = ca.issue("shop.example");
  const listeners = [{ protocol: "HTTPS", tls: { cert, key }, routes: [{ backends: [{ host: "127.0.0.1:1" }] }] }];
  await using secured = await TestGateway.start({ binds: [{ port: 0, listeners }] });
  const socket = connect({ port: secured.port(), host: "127.0.0.1", servername: "shop.example", ca: ca.cert });
  socket.write("GET / HTTP/1.1\r\nhost: shop.example\r\nconnection: close\r\n\r\n");
  for await (const _ of socket);
  const { records } = (await (await fetch(`${secured.url("admin")}/requests`)).json()) as RecordAnswer;
  assert.deepEqual(
    records.map(({ host, status, tls }) => ({ host, status, tls })),
    [{ host: "shop.example", status: 503, tls: true }],
  );
});
