import assert from "node:assert/strict";
import { test } from "node:test";
import { exchangeRaw, head, parseResponse } from "../../../test/helpers/admin/raw-request.ts";
import { TestAdmin } from "../../../test/helpers/admin/test-admin.ts";
import { TestPlane } from "../../../test/helpers/admin/test-plane.ts";
import { unguarded } from "../../net/testing/egress.ts";
import { startAdminServer } from "../admin-server.ts";

const admin = new TestAdmin(["admin.example"]);
const { plane } = admin;
const other = new TestAdmin();

test("only names and addresses of this machine are served, against DNS rebinding", async () => {
  for (const host of ["localhost", "LOCALHOST:15000", "127.0.0.1:1", "127.1.2.3", "[::1]:15000", "admin.example:80"])
    assert.equal((await admin.ask("GET", "/", [`host: ${host}`])).status, 200, host);
  const refused = [
    "evil.example",
    "localhost.evil.example",
    "10.0.0.1",
    "[::2]",
    "localhost:x",
    "127.0.0.1.evil",
    "a@localhost",
  ];
  for (const host of refused) {
    const answer = await admin.ask("GET", "/config_dump", [`host: ${host}`]);
    assert.equal(answer.status, 403, host);
    assert.match(answer.body, /is not served here: call the admin server by localhost/);
  }
  assert.equal((await admin.ask("GET", "/", [])).status, 400);
  assert.equal((await admin.ask("GET", "/", ["host: localhost", "host: evil.example"])).status, 400);
});

test("a server that listens on the network accepts any IP address as Host, but not any name", async () => {
  const open = await startAdminServer(plane, { type: "socket", host: "0.0.0.0", port: 0 }, plane.log, unguarded());
  try {
    const target = (open.addresses[0] ?? "").replace("0.0.0.0", "127.0.0.1");
    const status = async (host: string): Promise<number> =>
      parseResponse(await exchangeRaw(target, head("GET", "/", [`host: ${host}`]))).status;
    assert.deepEqual(
      [await status("10.1.2.3:80"), await status("[2001:db8::1]"), await status("evil.example")],
      [200, 200, 403],
    );
  } finally {
    await open.close();
  }
});

test("pages of other sites are rejected, those of this machine are not", async () => {
  for (const origin of [
    "http://evil.example",
    "null",
    "http://localhost.evil.example",
    "file://",
    "http://127.0.0.1@evil.example",
  ]) {
    const answer = await admin.ask("POST", "/logging", ["host: localhost", `origin: ${origin}`]);
    assert.equal(answer.status, 403, origin);
    assert.doesNotMatch(answer.head, /access-control/i);
  }
  for (const origin of ["http://localhost:8080", "http://127.0.0.1", "http://[::1]:99"]) {
    const answer = await admin.ask("GET", "/", ["host: localhost", `origin: ${origin}`]);
    assert.equal(answer.status, 200, origin);
    assert.doesNotMatch(answer.head, /access-control/i);
  }
  const embedded = ["host: localhost", "sec-fetch-site: cross-site"];
  assert.equal((await admin.ask("GET", "/debug/trace", [...embedded, "sec-fetch-mode: no-cors"])).status, 403);
  assert.equal((await admin.ask("GET", "/", [...embedded, "sec-fetch-mode: navigate"])).status, 200);
});

test("pages of admitted origins get CORS headers, also for preflights and errors", async () => {
  for (const origin of plane.permits.browserOrigins) {
    const fields = ["host: localhost", `origin: ${origin}`, "sec-fetch-site: cross-site", "sec-fetch-mode: cors"];
    const preflight = await admin.ask("OPTIONS", "/logging", [...fields, "access-control-request-method: POST"]);
    assert.equal(preflight.status, 204);
    for (const answer of [preflight, await admin.ask("GET", "/nothing", fields)]) {
      assert.match(answer.head, new RegExp(`^access-control-allow-origin: ${origin}$`, "im"));
      assert.match(answer.head, /^vary: origin$/im);
    }
  }
});

/** The token that a page with this Origin gets from the server at this Host. */
async function tokenFor(origin: string, host = "localhost:15000", asked = admin): Promise<string | undefined> {
  const answer = await asked.ask("POST", "/page-token", [`host: ${host}`, `origin: ${origin}`]);
  if (answer.status !== 200) return undefined;
  const { token } = JSON.parse(answer.body) as { token: string };
  return token;
}

test("without admitted origins no page of another origin can read an answer", async () => {
  const strict = await startAdminServer(
    Object.assign(new TestPlane(), { permits: { ...plane.permits, browserOrigins: [] } }),
    { type: "socket", host: "127.0.0.1", port: 0 },
    plane.log,
    unguarded(),
  );
  try {
    const send = async (method: string, origin: string): Promise<ReturnType<typeof parseResponse>> =>
      parseResponse(
        await exchangeRaw(
          strict.addresses[0] ?? "",
          head(method, "/requests", ["host: localhost", `origin: ${origin}`]),
        ),
      );
    for (const method of ["GET", "OPTIONS"])
      assert.doesNotMatch((await send(method, "http://localhost:3000")).head, /access-control/i);
    assert.equal((await send("GET", "https://console.example")).status, 403);
  } finally {
    await strict.close();
  }
});

test("the server's own page changes something with its token, and only with that", async () => {
  const own = "http://localhost:15000";
  const set = async (...fields: readonly string[]): Promise<number> =>
    (await admin.ask("POST", "/logging?level=debug", ["host: localhost:15000", ...fields])).status;
  const token = await tokenFor(own);
  assert.match(token ?? "", /^[\w-]{43}$/);
  assert.equal(await set(`origin: ${own}`, `x-tracegate-page-token: ${token}`), 200);
  assert.equal(await set(`origin: ${own}`), 403);
  for (const wrong of ["", "x", `${token}x`, String(token).replace(/^./, "_")])
    assert.equal(await set(`origin: ${own}`, `x-tracegate-page-token: ${wrong}`), 403, wrong);
  assert.equal((await admin.ask("POST", "/logging?reset", ["host: localhost"])).status, 200);
  // Those that may read, or only ask, get no token and cannot use the one of another page.
  for (const origin of [
    "http://localhost:3000",
    "https://console.example",
    "http://localhost:8080",
    "http://127.0.0.1:15000",
  ]) {
    assert.equal(await tokenFor(origin), undefined, origin);
    assert.equal(await set(`origin: ${origin}`, `x-tracegate-page-token: ${token}`), 403, origin);
  }
  assert.equal((await admin.ask("POST", "/page-token", ["host: localhost:15000"])).status, 403, "no page");
  // The same page by another name has another one, and so has another server.
  const named = await tokenFor("http://admin.example:15000", "admin.example:15000");
  assert.ok(named !== undefined && named !== token);
  assert.notEqual(await tokenFor(own, "localhost:15000", other), token);
  const preflight = ["host: localhost:15000", "origin: http://localhost:3000", "access-control-request-method: POST"];
  assert.doesNotMatch((await admin.ask("OPTIONS", "/probe/x", preflight)).head, /x-tracegate-page-token/i);
});

test("without a view there are no tokens", async () => {
  plane.permits = { ...plane.permits, ui: false };
  assert.equal(await tokenFor("http://localhost:15000"), undefined);
  plane.permits = { ...plane.permits, ui: true };
});

test("pages without a token read and change nothing, and get no secrets", async () => {
  const page = ["host: localhost:15000", "origin: http://localhost:8080"];
  for (const target of ["/logging?level=debug", "/quitquitquit"]) {
    const answer = await admin.ask("POST", target, page);
    assert.equal(answer.status, 403, target);
    assert.match(answer.body, /^pages of other origins may only read here; use tgctl/);
  }
  assert.equal((await admin.ask("GET", "/logging", page)).body, "current log level is info\n");
  assert.equal(plane.shutdowns, 0);
  assert.equal((await admin.ask("POST", "/debug/trace?reveal=true", page)).status, 403);
  // A question that is no JSON has passed the guard.
  assert.equal((await admin.ask("POST", "/explain", page)).status, 400);
});

test("a page of the server's own name may ask, the same name elsewhere may not", async () => {
  const status = async (origin: string): Promise<number> =>
    (await admin.ask("POST", "/explain", ["host: admin.example:8443", `origin: ${origin}`])).status;
  assert.deepEqual(
    [
      await status("https://admin.example:8443"),
      await status("https://admin.example"),
      await status("https://evil.example:8443"),
    ],
    [400, 403, 403],
  );
});
