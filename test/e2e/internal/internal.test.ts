import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { GatewayProcess } from "../../helpers/gateway.ts";
import { logged } from "../tls/support.ts";
import { call, traceOf } from "../trace/support.ts";

const route = (path: string, internal: string, policies: object = {}): object => ({
  name: path.slice(1).replace("/", "-"),
  matches: [{ path: { pathPrefix: path } }],
  backends: [{ internal }],
  policies,
});

/** The folder in which all gateways of a user have their sockets for a take-over. It stays. */
const TAKE_OVER = `tracegate-${process.getuid?.() ?? 0}`;

suite("internal backends", { concurrency: 1 }, () => {
  let gateway: GatewayProcess;
  let temp: string;
  const port = (): number => gateway.port();

  before(async () => {
    temp = await mkdtemp(join(tmpdir(), "tracegate-internal-"));
    const routes = [
      route("/state", "/config_dump"),
      route("/scrape", "/metrics"),
      route("/config/status", "forward"),
      route("/admin", "forward", { urlRewrite: { path: { prefix: "/" } } }),
      route("/quitquitquit", "forward"),
      {
        name: "named",
        matches: [{ path: { pathPrefix: "/named" } }],
        backends: [{ backend: "/own" }],
      },
    ];
    const listeners = [{ routes }];
    const backends = [{ name: "own", internal: "/config/status" }];
    // Only the trace below needs the admin server.
    gateway = await GatewayProcess.start(
      { config: { workerThreads: 2 }, binds: [{ port: 0, listeners }], backends },
      { env: { TMPDIR: temp } },
    );
  });
  after(async () => {
    await gateway.stop();
    await rm(temp, { recursive: true });
  });

  test("a configured path replaces that of the request", async () => {
    const dump = await call(port(), { path: "/state/anything" });
    assert.equal(dump.status, 200);
    assert.equal(dump.headers["content-type"], "application/json");
    const { backends } = JSON.parse(dump.body.toString()) as { backends: { backend: unknown }[] };
    assert.deepEqual(backends.at(-1)?.backend, { internal: { name: "own", namespace: "", path: "/config/status" } });
  });

  test("the metrics, under any host name", async () => {
    const metrics = await call(port(), { path: "/scrape", headers: { host: "gateway.example:80" } });
    assert.equal(metrics.status, 200);
    assert.match(metrics.body.toString(), /^tracegate_build_info/m);
    assert.match(metrics.body.toString(), /^tracegate_requests_total\{[^}]*route="default\/state"/m);
  });

  test("forward keeps the path, also one that a policy has rewritten, and the query string", async () => {
    const status = await call(port(), { path: "/config/status" });
    assert.equal((JSON.parse(status.body.toString()) as { generation: number }).generation, 1);
    const rewritten = await call(port(), { path: "/admin/config/status" });
    assert.equal(rewritten.status, 200);
    const absent = await call(port(), { path: "/admin/nothing" });
    assert.equal(absent.status, 404);
    const level = await call(port(), { method: "POST", path: "/admin/logging?level=nonsense" });
    assert.match(level.body.toString(), /^Invalid level provided: nonsense/);
  });

  test("a named backend, and consecutive POSTs", async () => {
    assert.equal((await call(port(), { path: "/named" })).status, 200);
    for (let i = 0; i < 3; i++)
      assert.equal((await call(port(), { method: "POST", path: "/admin/logging", body: "ignored" })).status, 200);
  });

  test("requests that a malicious page makes a browser send are rejected", async () => {
    const refused = [
      { path: "/quitquitquit", method: "POST", headers: { origin: "https://evil.example" } },
      { path: "/state", headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" } },
      { path: "/scrape", headers: { origin: "null" } },
    ];
    for (const each of refused) assert.equal((await call(port(), each)).status, 403, each.path);
    assert.equal((await call(port(), { path: "/named" })).status, 200);
  });

  test("a trace shows the backend as internal, without the path of its socket", async () => {
    const events = await traceOf(gateway, () => call(port(), { path: "/state" }));
    const text = JSON.stringify(events);
    assert.ok(!text.includes(temp), text);
    const messages = events.map(({ message }) => message);
    const final = messages.find((each) => each.type === "requestSnapshot" && each.stage === "final request");
    assert.ok(final?.type === "requestSnapshot");
    assert.equal(final.requestState.backend?.type, "internal");
    assert.equal(final.requestState.request?.path, "/config_dump");
    const start = messages.find((each) => each.type === "backendCallStart");
    assert.deepEqual(start, { type: "backendCallStart", target: "internal" });
    await logged(gateway, { scope: "request", route: "default/state", endpoint: "internal" });
  });

  test("only the gateway's user can enter the folders of its sockets, and a shutdown removes the sockets", async () => {
    const all = readdirSync(temp).filter((name) => !name.startsWith("tracegate-test-"));
    const [folder = "", ...others] = all.filter((name) => name !== TAKE_OVER);
    assert.deepEqual(others, []);
    for (const name of all) assert.equal(statSync(join(temp, name)).mode & 0o777, 0o700);
    assert.notEqual(folder, "");
    gateway.process.kill("SIGTERM");
    await gateway.exited();
    assert.deepEqual(readdirSync(temp, { recursive: true }), [TAKE_OVER]);
  });
});

test("a gateway without internal backends creates no socket until a reload adds one", async () => {
  const temp = await mkdtemp(join(tmpdir(), "tracegate-internal-"));
  const serving = (backend: object): object => ({
    config: { workerThreads: 1 },
    binds: [{ port: 0, listeners: [{ routes: [{ name: "r", backends: [backend] }] }] }],
  });
  try {
    await using gateway = await GatewayProcess.start(serving({ host: "127.0.0.1:1" }), { env: { TMPDIR: temp } });
    // Besides the folder for take-overs.
    const folders = () => readdirSync(temp).filter((name) => name !== TAKE_OVER);
    assert.deepEqual(folders(), []);
    assert.equal(await gateway.reconfigure(serving({ internal: "/config/status" })), "applied");
    assert.equal(folders().length, 1);
    assert.equal((await call(gateway.port(), {})).status, 200);
  } finally {
    await rm(temp, { recursive: true });
  }
});
