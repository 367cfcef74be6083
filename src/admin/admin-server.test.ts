import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { exchangeRaw, head, parseResponse } from "../../test/helpers/admin/raw-request.ts";
import { TestPlane } from "../../test/helpers/admin/test-plane.ts";
import { LOG_MODULES } from "../base/log-filter.ts";
import { startAdminServer } from "./admin-server.ts";
import type { RunningServer } from "./server/http-server.ts";

const plane = new TestPlane();
let server: RunningServer;
let address = "";

before(async () => {
  server = await startAdminServer(plane, { type: "socket", host: "127.0.0.1", port: 0 }, plane.log, ["admin.example"]);
  address = server.addresses[0] ?? "";
});
after(() => server.close());

async function ask(
  method: string,
  target: string,
  fields?: readonly string[],
): Promise<ReturnType<typeof parseResponse>> {
  return parseResponse(await exchangeRaw(address, head(method, target, fields)));
}

test("the index lists every endpoint", async () => {
  const { status, body } = await ask("GET", "/");
  assert.equal(status, 200);
  assert.match(body, /^tracegate 9\.9\.9 admin server\n/);
  for (const path of ["/config_dump", "/debug/trace", "/logging", "/memory", "/debug/pprof/heap", "/quitquitquit"])
    assert.ok(body.includes(path), path);
});

test("documents are JSON that is not kept or sniffed", async () => {
  const { status, head: fields, body } = await ask("GET", "/config_dump");
  assert.equal(status, 200);
  assert.match(fields, /content-type: application\/json/i);
  assert.match(fields, /x-content-type-options: nosniff/i);
  assert.match(fields, /cache-control: no-store/i);
  assert.deepEqual(JSON.parse(body), plane.dump);
  assert.match(body, /\n {2}"binds"/, "indented");
  assert.equal(JSON.parse((await ask("GET", "/config/status")).body).lastError.message, "1 problem");
  assert.equal(JSON.parse((await ask("GET", "/memory")).body).allocator.kind, "v8");
  assert.deepEqual(JSON.parse((await ask("GET", "/debug/tasks")).body), { admin: [], workload: [] });
});

test("a wrong method is answered with the right ones, a wrong path with where to look", async () => {
  const wrong = [
    ["POST", "/config_dump", "GET"],
    ["GET", "/quitquitquit", "POST"],
    ["PUT", "/logging", "GET, POST"],
    ["DELETE", "/debug/trace", "GET, POST"],
    ["HEAD", "/memory", "GET"],
    ["OPTIONS", "/memory", "GET"],
  ] as const;
  for (const [method, path, allow] of wrong) {
    const answer = await ask(method, path);
    assert.equal(answer.status, 405, `${method} ${path}`);
    assert.match(answer.head, new RegExp(`^allow: ${allow}$`, "im"));
  }
  assert.match((await ask("GET", "/quitquitquit")).body, /takes POST/);
  const missing = await ask("GET", "/config_dumps");
  assert.deepEqual([missing.status, missing.body], [404, "no such endpoint: /config_dumps; GET / lists all\n"]);
  assert.equal((await ask("GET", "http://evil.example/config_dump")).status, 404);
  assert.equal((await ask("GET", "//evil.example/config_dump")).status, 404);
});

test("an unknown query parameter is refused with the known ones, and nothing is done", async () => {
  const refused = [
    ["POST", "/logging?levl=debug", '"levl": /logging takes the query parameters level, reset'],
    [
      "POST",
      "/debug/trace?expr=true",
      '"expr": /debug/trace takes the query parameters expression, reveal, bodies, token',
    ],
    [
      "GET",
      "/debug/pprof/profile?seconds=1&hz=2",
      '"hz": /debug/pprof/profile takes the query parameters seconds, frequency',
    ],
    ["GET", "/config_dump?pretty", '"pretty": /config_dump takes no query parameters'],
    ["POST", "/quitquitquit?dry-run", '"dry-run": /quitquitquit takes no query parameters'],
  ] as const;
  for (const [method, target, text] of refused) {
    const { status, body } = await ask(method, target);
    assert.deepEqual([status, body], [400, `unknown query parameter ${text}\n`]);
  }
  assert.equal(plane.shutdowns, 0);
});

test("only names and addresses of this machine are served, against DNS rebinding", async () => {
  for (const host of ["localhost", "LOCALHOST:15000", "127.0.0.1:1", "127.1.2.3", "[::1]:15000", "admin.example:80"])
    assert.equal((await ask("GET", "/", [`host: ${host}`])).status, 200, host);
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
    const answer = await ask("GET", "/config_dump", [`host: ${host}`]);
    assert.equal(answer.status, 403, host);
    assert.match(answer.body, /is not served here: call the admin server by localhost/);
  }
  assert.equal((await ask("GET", "/", [])).status, 400);
  assert.equal((await ask("GET", "/", ["host: localhost", "host: evil.example"])).status, 400);
});

test("a server that is bound to the network is called by any IP address, not by any name", async () => {
  const open = await startAdminServer(plane, { type: "socket", host: "0.0.0.0", port: 0 }, plane.log);
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

test("pages of other sites may not call, those of this machine may", async () => {
  for (const origin of [
    "http://evil.example",
    "null",
    "http://localhost.evil.example",
    "file://",
    "http://127.0.0.1@evil.example",
  ]) {
    const answer = await ask("POST", "/logging", ["host: localhost", `origin: ${origin}`]);
    assert.equal(answer.status, 403, origin);
    assert.doesNotMatch(answer.head, /access-control/i);
  }
  for (const origin of ["http://localhost:8080", "http://127.0.0.1", "http://[::1]:99"]) {
    const answer = await ask("GET", "/", ["host: localhost", `origin: ${origin}`]);
    assert.equal(answer.status, 200, origin);
    assert.doesNotMatch(answer.head, /access-control/i);
  }
  const embedded = ["host: localhost", "sec-fetch-site: cross-site"];
  assert.equal((await ask("GET", "/debug/trace", [...embedded, "sec-fetch-mode: no-cors"])).status, 403);
  assert.equal((await ask("GET", "/", [...embedded, "sec-fetch-mode: navigate"])).status, 200);
});

test("the known user interfaces get CORS headers, also for a preflight and for errors", async () => {
  for (const origin of ["http://localhost:3000", "http://localhost:19000"]) {
    const fields = ["host: localhost", `origin: ${origin}`];
    const preflight = await ask("OPTIONS", "/logging", [...fields, "access-control-request-method: POST"]);
    assert.equal(preflight.status, 204);
    for (const answer of [preflight, await ask("GET", "/nothing", fields)]) {
      assert.match(answer.head, new RegExp(`^access-control-allow-origin: ${origin}$`, "im"));
      assert.match(answer.head, /^vary: origin$/im);
    }
  }
});

test("the log filter is shown, changed and reset", async () => {
  assert.equal((await ask("GET", "/logging")).body, "current log level is info\n");
  assert.equal((await ask("POST", "/logging?level=debug")).body, "current log level is debug\n");
  assert.equal(
    (await ask("POST", "/logging?level=proxy::match=trace,request=off")).body,
    "current log level is debug,proxy::match=trace,request=off\n",
  );
  assert.equal((await ask("POST", "/logging")).body, "current log level is debug,proxy::match=trace,request=off\n");
  assert.equal((await ask("POST", "/logging?reset&level=warn")).body, "current log level is warn\n");
  assert.equal(
    (await ask("POST", "/logging?reset&level=info,agentgateway=debug,proxy::nothing=off,proxy=debug")).body,
    `current log level is info,agentgateway=debug,proxy::nothing=off,proxy=debug\nunknown: agentgateway, proxy::nothing; known modules: ${LOG_MODULES.join(", ")}\n`,
  );
  assert.equal((await ask("POST", "/logging?reset&level=warn")).body, "current log level is warn\n");
  const wrong = await ask("POST", "/logging?level=loud");
  assert.equal(wrong.status, 400);
  assert.match(wrong.body, /^Invalid level provided: loud\nusage: /);
  const read = await ask("GET", "/logging?level=trace");
  assert.equal(read.status, 405);
  assert.match(read.head, /^allow: POST$/im);
  assert.equal((await ask("POST", "/logging?reset")).body, "current log level is info\n");
});

test("profiles take bounded parameters", async () => {
  const cpu = await ask("GET", "/debug/pprof/profile?seconds=300&frequency=1000");
  assert.deepEqual([cpu.status, cpu.body], [200, "cpu"]);
  assert.match(cpu.head, /content-disposition: attachment; filename="cpu.pb.gz"/i);
  await ask("GET", "/debug/pprof/profile");
  assert.deepEqual(
    plane.profiles.map(({ seconds, hz }) => [seconds, hz]),
    [
      [300, 1000],
      [10, 100],
    ],
  );
  for (const query of ["seconds=0", "seconds=301", "seconds=1.5", "seconds=", "seconds=-1", "seconds=1e2"]) {
    const { status, body } = await ask("GET", `/debug/pprof/profile?${query}`);
    assert.equal(status, 400, query);
    assert.match(body, /^invalid seconds "[^"]*": expected an integer from 1 to 300\n$/);
  }
  assert.match(
    (await ask("GET", "/debug/pprof/profile?frequency=1001")).body,
    /^invalid frequency "1001": .* 1 to 1000\n$/,
  );
  assert.equal((await ask("GET", "/debug/pprof/heap")).body, "heap");
});

test("a failure shows its message, never a stack or a cause", async () => {
  plane.failure = new Error("worker 2 is gone\n    at secret (file.ts:1)", { cause: new Error("password") });
  try {
    const { status, body } = await ask("GET", "/config_dump");
    assert.deepEqual([status, body], [500, "internal error: worker 2 is gone\n"]);
    assert.match(plane.lines.at(-1) ?? "", /error\tadmin request failed server=admin path=\/config_dump/);
  } finally {
    plane.failure = undefined;
  }
});

test("oversized heads and bodies and malformed requests are refused with a message", async () => {
  const large = await ask("GET", "/", ["host: localhost", `x: ${"y".repeat(9000)}`]);
  assert.equal(large.status, 431);
  assert.match(large.body, /exceed 8192 bytes/);
  const malformed = parseResponse(await exchangeRaw(address, "NONSENSE\r\n\r\n"));
  assert.deepEqual([malformed.status, malformed.body], [400, "the request is not valid HTTP/1.1\n"]);
  const body = "z".repeat(70_000);
  const fields = ["host: localhost", `content-length: ${body.length}`];
  const answer = parseResponse(await exchangeRaw(address, head("POST", "/logging", fields) + body));
  assert.deepEqual([answer.status, answer.body], [413, "no endpoint takes a body\n"]);
});

test("a head that does not arrive is given up", async () => {
  const answer = parseResponse(await exchangeRaw(address, "GET / HTTP/1.1\r\nhost: local"));
  assert.equal(answer.status, 408);
});

test("the shutdown begins after its answer", async () => {
  const { status, body } = await ask("POST", "/quitquitquit");
  assert.deepEqual([status, body], [200, "shutdown now\n"]);
  await plane.until(() => plane.shutdowns === 1);
});
