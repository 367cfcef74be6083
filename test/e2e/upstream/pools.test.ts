/** Pools: the endpoints that are written at a backend (docs/load-balancing.md). */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { AdminClient } from "../../../src/admin/client/client.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { closedPort, RawPeer, RawUpstream, reply, statusOf } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const NEVER = "1h";

const answering = (text: string): Promise<RawUpstream> => RawUpstream.answering(() => reply(text));
const at = (port: number, more: object = {}): object => ({ host: `127.0.0.1:${port}`, ...more });
const listening = (listener: object): object => ({ binds: [{ port: 0, listeners: [listener] }] });
const routed = (backend: object): object => listening({ routes: [{ backends: [backend] }] });

async function bodies(gateway: LocalGateway, count: number): Promise<string[]> {
  const found: string[] = [];
  for (let i = 0; i < count; i++) found.push((await RawPeer.ask(gateway.port(), GET)).body);
  return found;
}

test("with one of two servers dead, every request succeeds; a process shows which endpoint fails", async () => {
  await using alive = await answering("alive");
  const dead = await closedPort();
  const health = { eviction: { consecutiveFailures: 1, duration: NEVER }, active: { tcp: {}, interval: NEVER } };
  await using gateway = await TestGateway.start(
    routed({ name: "app", endpoints: [at(dead), at(alive.port)], policies: { health } }),
  );
  for (let i = 0; i < 40; i++) assert.equal(statusOf(await RawPeer.ask(gateway.port(), GET)), 200, `request ${i}`);
  const client = new AdminClient(gateway.url("admin"));
  const [pool, ...others] = (await client.backends({})).backends.shown;
  assert.deepEqual([pool?.name, pool?.kind, others.length], ["app", "pool", 0]);
  assert.equal(pool?.endpoints.shown.find(({ addresses }) => addresses[0] === `127.0.0.1:${alive.port}`)?.requests, 40);
});

test("weights are shares, and an endpoint of weight 0 gets nothing", async () => {
  await using a = await answering("a");
  await using b = await answering("b");
  await using c = await answering("c");
  const endpoints = [at(a.port), at(b.port, { weight: 3 }), at(c.port, { weight: 0 })];
  await using gateway = await LocalGateway.start(routed({ endpoints, loadBalancer: { algorithm: "RoundRobin" } }));
  const found = (await bodies(gateway, 8)).sort().join("");
  assert.equal(found, "aabbbbbb");
});

test("a backup gets requests only while no other endpoint takes any", async () => {
  await using first = await answering("first");
  await using spare = await answering("spare");
  const dead = await closedPort();
  const health = { eviction: { consecutiveFailures: 1, duration: NEVER } };
  const backup = at(spare.port, { backup: true });
  const config = (endpoints: readonly object[]): object => routed({ endpoints, policies: { health } });
  await using gateway = await LocalGateway.start(config([backup, at(first.port), at(dead)]));
  assert.deepEqual(new Set(await bodies(gateway, 20)), new Set(["first"]));
  await gateway.reconfigure(config([backup, at(dead)]));
  assert.deepEqual(new Set(await bodies(gateway, 5)), new Set(["spare"]));
});

test("endpoints in a file: a change is picked up, and while the file is wrong, the former ones stay in use", async (t) => {
  await using a = await answering("a");
  await using b = await answering("b");
  const folder = mkdtempSync(join(tmpdir(), "tracegate-endpoints-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "servers.json");
  const write = (text: string): void => writeFileSync(file, text);
  write(JSON.stringify([at(a.port)]));
  await using gateway = await TestGateway.start(routed({ name: "app", endpoints: { file } }));
  const admin = new AdminClient(gateway.url("admin"));
  const body = async (): Promise<string> => (await RawPeer.ask(gateway.port(), GET)).body;
  const problem = async (): Promise<string> => (await admin.configStatus()).lastError?.message ?? "";
  assert.equal(await body(), "a");
  write(`- host: 127.0.0.1:${b.port}\n  wait: 3\n`);
  await until(async () => /servers\.json:2:3: \[0\]\.wait: unknown field/.test(await problem()));
  assert.equal(await body(), "a");
  write("[]");
  await until(async () => /servers\.json:1:1: must not be empty/.test(await problem()));
  write(`- host: 127.0.0.1:${a.port}\n- host: 127.0.0.1:${a.port}\n`);
  await until(async () => /servers\.json:2:9: \[1\]\.host: duplicate endpoint/.test(await problem()));
  assert.equal(await body(), "a");
  write(`- host: 127.0.0.1:${b.port}\n  weight: 3\n`);
  await until(async () => (await body()) === "b");
  assert.equal(await problem(), "");
});

test("endpoints with the locality of the gateway get the requests, others while they take none", async (t) => {
  await using near = await answering("near");
  await using far = await answering("far");
  const folder = mkdtempSync(join(tmpdir(), "tracegate-locality-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "servers.json");
  const [eu, us] = [{ region: "eu" }, { region: "us" }];
  writeFileSync(file, JSON.stringify([at(far.port, { locality: us }), at(near.port, { locality: eu })]));
  const health = { eviction: { consecutiveFailures: 1, duration: NEVER } };
  await using gateway = await TestGateway.start({
    config: { locality: { ...eu, zone: "eu-1" } },
    ...routed({ name: "app", endpoints: { file }, policies: { health } }),
  });
  const ask = async (): Promise<string> => (await RawPeer.ask(gateway.port(), GET)).body;
  for (let i = 0; i < 10; i++) assert.equal(await ask(), "near");
  const [pool] = (await new AdminClient(gateway.url("admin")).backends({})).backends.shown;
  assert.deepEqual(
    pool?.endpoints.shown.map(({ requests, behind }) => [requests, behind]),
    [
      [10, undefined],
      [0, "its region is us, that of the gateway eu"],
    ],
  );
  await near[Symbol.asyncDispose]();
  assert.equal(await ask(), "far");
});

test("a reload changes the endpoints of a named pool under the routes that use it, and callouts use it too", async () => {
  await using old = await answering("old");
  await using renewed = await answering("new");
  await using asked = await RawUpstream.answering(() => reply("", [], "403 Forbidden"));
  const config = (port: number, policies: object = {}): object => ({
    ...(listening({ routes: [{ policies, backends: [{ backend: "/app" }] }] }) as object),
    backends: [
      { name: "app", endpoints: [at(port)] },
      { name: "authz", endpoints: [at(asked.port)] },
    ],
  });
  await using gateway = await LocalGateway.start(config(old.port));
  assert.deepEqual(await bodies(gateway, 2), ["old", "old"]);
  await gateway.reconfigure(config(renewed.port));
  assert.deepEqual(await bodies(gateway, 2), ["new", "new"]);
  await gateway.reconfigure(config(renewed.port, { extAuthz: { backend: "/authz", protocol: { http: {} } } }));
  assert.equal(statusOf(await RawPeer.ask(gateway.port(), GET)), 403);
});

test("connections without HTTP go to the endpoints of a pool, of which one may be a Unix socket", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-pools-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "app.sock");
  await using _ = await RawUpstream.answering(() => reply("alive"), path);
  const dead = await closedPort();
  const tcp = { protocol: "TCP", tcpRoutes: [{ backends: [{ endpoints: [at(dead), { host: `unix:${path}` }] }] }] };
  await using gateway = await LocalGateway.start(listening(tcp));
  for (let i = 0; i < 4; i++) assert.equal((await RawPeer.ask(gateway.port(), GET)).body, "alive");
});
