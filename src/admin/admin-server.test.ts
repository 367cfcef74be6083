import assert from "node:assert/strict";
import { test } from "node:test";
import { TestAdmin } from "../../test/helpers/admin/test-admin.ts";

const admin = new TestAdmin(["admin.example"]);
const { plane } = admin;

test("the index lists every endpoint", async () => {
  const { status, body } = await admin.ask("GET", "/");
  assert.equal(status, 200);
  assert.match(body, /^tracegate 9\.9\.9 admin server\n/);
  for (const path of ["/config_dump", "/debug/trace", "/logging", "/memory", "/debug/pprof/heap", "/quitquitquit"])
    assert.ok(body.includes(path), path);
});

test("documents are JSON that browsers must not cache or sniff", async () => {
  const { status, head: fields, body } = await admin.ask("GET", "/config_dump");
  assert.equal(status, 200);
  assert.match(fields, /content-type: application\/json/i);
  assert.match(fields, /x-content-type-options: nosniff/i);
  assert.match(fields, /cache-control: no-store/i);
  assert.deepEqual(JSON.parse(body), plane.dump);
  assert.match(body, /\n {2}"binds"/, "indented");
  const short = await admin.ask("GET", "/config_dump", ["host: localhost", "accept: application/json"]);
  assert.equal(short.body, JSON.stringify(plane.dump), "as short as possible for programs, which ask for it");
  for (const accept of ["*/*", "text/html,application/json"])
    assert.match(
      (await admin.ask("GET", "/config_dump", ["host: localhost", `accept: ${accept}`])).body,
      /\n {2}"binds"/,
    );
  assert.equal(JSON.parse((await admin.ask("GET", "/config/status")).body).lastError.message, "1 problem");
  assert.equal(JSON.parse((await admin.ask("GET", "/memory")).body).allocator.kind, "v8");
  assert.deepEqual(JSON.parse((await admin.ask("GET", "/debug/tasks")).body), { admin: [], workload: [] });
});

test("the response to a wrong method lists the right ones, to a wrong path where to look", async () => {
  const wrong = [
    ["POST", "/config_dump", "GET"],
    ["GET", "/quitquitquit", "POST"],
    ["PUT", "/logging", "GET, POST"],
    ["DELETE", "/debug/trace", "GET, POST"],
    ["HEAD", "/memory", "GET"],
    ["OPTIONS", "/memory", "GET"],
  ] as const;
  for (const [method, path, allow] of wrong) {
    const answer = await admin.ask(method, path);
    assert.equal(answer.status, 405, `${method} ${path}`);
    assert.match(answer.head, new RegExp(`^allow: ${allow}$`, "im"));
  }
  assert.match((await admin.ask("GET", "/quitquitquit")).body, /takes POST/);
  const missing = await admin.ask("GET", "/config_dumps");
  assert.deepEqual([missing.status, missing.body], [404, "no such endpoint: /config_dumps; GET / lists all\n"]);
  assert.equal((await admin.ask("GET", "http://evil.example/config_dump")).status, 404);
  assert.equal((await admin.ask("GET", "//evil.example/config_dump")).status, 404);
});

test("an unknown query parameter is rejected with the known ones, and nothing changes", async () => {
  const refused = [
    ["POST", "/logging?levl=debug", '"levl": /logging takes the query parameters level, reset'],
    [
      "POST",
      "/debug/trace?expr=true",
      '"expr": /debug/trace takes the query parameters expression, route, reveal, bodies, token, duration',
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
    const { status, body } = await admin.ask(method, target);
    assert.deepEqual([status, body], [400, `unknown query parameter ${text}\n`]);
  }
  assert.equal(plane.shutdowns, 0);
});
