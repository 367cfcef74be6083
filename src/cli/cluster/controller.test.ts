import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ofGateway, testCluster } from "../../../test/helpers/kube/tgctl.ts";
import type { ConfigStatus } from "../../admin/client/client.ts";
import type { ProxyStatus } from "../../xds/server/proxies.ts";
import { serve } from "../fixtures/admin.ts";

const SYSTEM = "tracegate-system";
const LABELS = { tracegate: "tracegate" };
const LEVELS = "current log levels:\n---\ntracegate/syncer: info\ndefault: warn\n";

/** A controller with one replica, whose admin server has these proxies. */
async function controller(t: TestContext, proxies: () => readonly ProxyStatus[] = () => []) {
  const cluster = await testCluster(t);
  const admin = await serve(t, (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
    if (pathname === "/snapshots/proxies") response.end(JSON.stringify(proxies()));
    else if (pathname.startsWith("/debug/pprof")) response.end(Buffer.from([31, 139]));
    else if (searchParams.has("nonsense")) response.writeHead(400).end("logger not found for component: nonsense\n");
    else if (searchParams.has("level")) response.end("all logger levels updated to level: debug\n");
    else response.end(LEVELS);
  });
  cluster.pod("tracegate-a", { labels: LABELS, namespace: SYSTEM });
  cluster.connect("tracegate-a", 9095, admin.port, SYSTEM);
  return { ...cluster, admin };
}

test("controller log prints the levels as the controller writes them, and sets them", async (t) => {
  const { tgctl, admin } = await controller(t);
  assert.deepEqual(await tgctl("controller", "log"), { code: 0, stdout: LEVELS, stderr: "" });
  assert.match((await tgctl("controller", "log", "--level", "debug")).stdout, /^all logger levels updated/);
  await tgctl("controller", "log", "--set", "tracegate/syncer=debug,default=info");
  const json = await tgctl("controller", "log", "--json");
  assert.deepEqual(JSON.parse(json.stdout), [
    { pod: "tracegate-a", namespace: SYSTEM, levels: { "tracegate/syncer": "info", default: "warn" } },
  ]);
  assert.deepEqual(admin.requests, [
    "POST /logging",
    "POST /logging?level=debug",
    "POST /logging?tracegate%2Fsyncer=debug&default=info",
    "POST /logging",
  ]);
  const unknown = await tgctl("controller", "log", "--set", "nonsense=debug");
  assert.equal(unknown.code, 1);
  assert.match(
    unknown.stderr,
    /^Error: failed to execute command on tracegate-a.tracegate-system: .*400\nWhy: logger not found for component: nonsense\nTry: one of .*deployer/,
  );
  for (const [words, message] of [
    ["--level off", 'unknown level "off"'],
    ["--set a", 'invalid --set value "a": expected component=level'],
    ["--level info --set a=info", "--level and --set are mutually exclusive"],
  ] as const)
    assert.equal((await tgctl("controller", "log", ...words.split(" "))).stderr.split("\n")[0], `Error: ${message}`);
});

test("controller log reaches all replicas; without a replica it fails", async (t) => {
  const { tgctl, pod, connect, admin } = await controller(t);
  pod("tracegate-b", { labels: LABELS, namespace: SYSTEM });
  connect("tracegate-b", 9095, admin.port, SYSTEM);
  const both = await tgctl("controller", "log");
  assert.equal(both.stdout, `tracegate-a.${SYSTEM}:\n${LEVELS}tracegate-b.${SYSTEM}:\n${LEVELS}`);
  const nowhere = await tgctl("controller", "log", "-n", "shop");
  assert.equal(nowhere.code, 1);
  assert.match(
    nowhere.stderr,
    /^Error: no controller pods found in namespace "shop" \(label tracegate=tracegate\)\nTry: -n/,
  );
  const port = await tgctl("controller", "log", "--controller-admin-port", "9");
  assert.match(port.stderr, /port 9 of pod tracegate-a.tracegate-system: connection refused/);
});

test("controller profile and snapshot", async (t) => {
  const { tgctl, folder } = await controller(t);
  const file = join(folder, "heap.pb.gz");
  assert.equal((await tgctl("controller", "profile", "heap", "-o", file)).stdout, `Wrote heap profile to ${file}\n`);
  assert.deepEqual([...readFileSync(file)], [31, 139]);
  assert.deepEqual(JSON.parse((await tgctl("controller", "snapshot", "proxies")).stdout), []);
  assert.equal((await tgctl("controller", "snapshot", "proxies", "-o", "yaml")).stdout, "[]\n");
  assert.match(
    (await tgctl("controller", "snapshot", "x")).stderr,
    /^Error: unknown snapshot "x"\nTry: one of objects/,
  );
  assert.equal(existsSync(join(folder, "x")), false);
});

const VERSION = "0123456789abcdef";

function sentTo(pod: string, more: Partial<ProxyStatus> = {}): ProxyStatus {
  return {
    gateway: "shop/web",
    namespace: "shop",
    pod,
    peer: "10.0.0.1:1",
    connectedAt: "2026-02-03T04:05:06.000Z",
    sent: VERSION,
    acknowledged: VERSION,
    acknowledgedTypes: {
      "type.googleapis.com/tracegate.dev.config.v1.Resource": "1",
      "type.googleapis.com/tracegate.dev.config.v1.Address": "1",
    },
    rejection: null,
    synchronized: true,
    ...more,
  };
}

function running(more: Partial<ConfigStatus> = {}): ConfigStatus {
  return {
    generation: 4,
    appliedAt: "2026-02-03T04:05:06.000Z",
    loadedAt: "2026-02-03T04:05:06.000Z",
    hash: VERSION,
    diskDiffers: false,
    lastError: null,
    nextRetryAt: null,
    synchronized: true,
    restartRequired: [],
    source: "tracegate.tracegate-system:9978",
    stream: { connected: true, problem: null, version: VERSION },
    ...more,
  };
}

/** Gateway `web` with two pods, and what its proxies and the controller say. */
async function twoPods(t: TestContext) {
  const says = { sent: [sentTo("web-1"), sentTo("web-2")], "web-1": running(), "web-2": running() };
  const cluster = await controller(t, () => says.sent);
  cluster.gateway("web");
  for (const name of ["web-1", "web-2"] as const) {
    const admin = await serve(t, (_request, response) => response.end(JSON.stringify(says[name])));
    cluster.pod(name, { labels: ofGateway("web") });
    cluster.connect(name, 15000, admin.port);
  }
  const status = (...more: string[]) => cluster.tgctl("status", "gateway/web", "-n", "shop", ...more);
  return { ...cluster, says, status };
}

test("status of a Gateway: what the controller sent to each pod, and what the pod runs", async (t) => {
  const { status } = await twoPods(t);
  const { code, stdout, stderr } = await status();
  assert.deepEqual([code, stderr], [0, ""]);
  assert.deepEqual(stdout.split("\n"), [
    "POD    STATE         CONTROLLER   SENT          RUNS          GENERATION  APPLIED",
    "web-1  synchronized  tracegate-a  0123456789ab  0123456789ab  4           2026-02-03T04:05:06.000Z",
    "web-2  synchronized  tracegate-a  0123456789ab  0123456789ab  4           2026-02-03T04:05:06.000Z",
    "",
  ]);
  const json = JSON.parse((await status("--json", "--pod", "web-2")).stdout);
  assert.deepEqual(json, [
    {
      pod: "web-2",
      namespace: "shop",
      controller: "tracegate-a",
      sent: VERSION,
      state: "synchronized",
      problem: null,
      running: VERSION,
      generation: 4,
      appliedAt: "2026-02-03T04:05:06.000Z",
    },
  ]);
});

test("status without a resource: every Gateway of the namespace, or of all", async (t) => {
  const { tgctl, gateway } = await twoPods(t);
  gateway("idle", "shop");
  gateway("other", "elsewhere");
  const one = await tgctl("status", "-n", "shop");
  assert.equal(one.code, 1);
  assert.deepEqual(
    one.stdout.split("\n").map((line) => line.split(" ")[0]),
    ["gateway/idle.shop", "no", "", "gateway/web.shop", "POD", "web-1", "web-2", ""],
  );
  assert.match(one.stderr, /no pods found for resource "gateway\/idle"/);
  const all = await tgctl("status", "-A", "--json");
  const names = (JSON.parse(all.stdout) as { gateway: string }[]).map((each) => each.gateway);
  assert.deepEqual(names, ["gateway/idle.shop", "gateway/other.elsewhere", "gateway/web.shop"]);
  assert.match(all.stderr, /2 of 3 Gateways/);
  assert.equal((await tgctl("status", "-A", "gateway/web")).code, 2);
  assert.match((await tgctl("status", "-n", "empty")).stderr, /no Gateways found in namespace "empty"/);
});

test("status fails, with the reason, for each way to be out of sync", async (t) => {
  const { status, says, server, pod } = await twoPods(t);
  const expect = async (state: string, why: string) => {
    const { code, stdout, stderr } = await status();
    assert.equal(code, 1, state);
    assert.match(stdout, new RegExp(`^web-2 +${state} `, "m"));
    assert.equal(
      stderr,
      `Error: 1 of 2 proxies of gateway/web does not run the newest state\nWhy: web-2 is ${state}: ${why}\n`,
    );
  };
  const at = "2026-02-03T04:05:07.000Z";
  says.sent = [
    sentTo("web-1"),
    sentTo("web-2", { rejection: { at, version: "2", message: "bad route", heldBack: [] } }),
  ];
  await expect("rejected", "bad route");
  says.sent = [sentTo("web-1"), sentTo("web-2")];
  says["web-2"] = running({ lastError: { at, message: "cannot listen on port 80", diagnostics: [] } });
  await expect("rejected", "cannot listen on port 80");
  const message = "Gateway shop/web: no such cipher";
  const stream = { connected: true, problem: null, version: VERSION };
  const held = (gateway: string) => ({
    lastError: { at, message, diagnostics: [] },
    synchronized: false,
    stream: { ...stream, heldBack: [{ gateway, reason: "no such cipher" }] },
  });
  says["web-2"] = running(held("shop/web"));
  await expect("heldBack", "Gateway shop/web keeps its former configuration: no such cipher");
  says["web-2"] = running(held("shop/other"));
  const heldBack = [{ gateway: "shop/other", reason: "no such cipher" }];
  says.sent = [
    sentTo("web-1"),
    sentTo("web-2", { rejection: { at, version: "2", message, heldBack }, synchronized: false }),
  ];
  assert.equal((await status()).code, 0, "another Gateway is held back");
  says.sent = [sentTo("web-1"), sentTo("web-2")];
  says["web-2"] = running({ hash: "older" });
  await expect("pending", "it has not applied the newest state yet");
  says["web-2"] = running();
  says.sent = [sentTo("web-1"), sentTo("web-2", { synchronized: false })];
  await expect("pending", "it has not applied the newest state yet");
  says.sent = [sentTo("web-1")];
  await expect("disconnected", "no replica of the controller has a stream from it");
  says["web-2"] = running({ stream: { connected: false, problem: "connection refused", version: VERSION } });
  await expect("disconnected", "no connection to the controller: connection refused");
  server.delete("Pod", "shop/web-2");
  pod("web-2", { labels: ofGateway("web"), phase: "Pending" });
  await expect(
    "unreachable",
    "pod is not running. Status=Pending (pod web-2.shop); kubectl describe pod web-2 -n shop",
  );
});

test("replicas of the controller that have sent different states are out of sync", async (t) => {
  const { status, says } = await twoPods(t);
  says.sent = [sentTo("web-1"), sentTo("web-2", { sent: "other" })];
  says["web-2"] = running({ hash: "other" });
  const { code, stderr } = await status();
  assert.equal(code, 1);
  assert.match(stderr, /^Error: the proxies of gateway\/web run 2 different states\n/);
});

test("status without access to the controller shows what the proxies report", async (t) => {
  const { status, says, server } = await twoPods(t);
  server.delete("Pod", `${SYSTEM}/tracegate-a`);
  const { code, stdout, stderr } = await status();
  assert.equal(code, 0);
  assert.match(stdout, /^web-1 +synchronized +- +- +0123456789ab/m);
  assert.match(
    stderr,
    /^Warning: showing only what the proxies report, because the controller cannot be reached: no controller pods found in namespace "tracegate-system"/,
  );
  says["web-1"] = running({ synchronized: false });
  assert.equal((await status()).code, 1);
});
