/** Commands that ask all pods of a Gateway and print one answer. */
import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type TestContext, test } from "node:test";
import { ofGateway, testCluster } from "../../../test/helpers/kube/tgctl.ts";
import type { BackendView, EndpointView } from "../../admin/plane/backends.ts";
import type { ConfigStatus } from "../../admin/plane/config-status.ts";
import { serve } from "../fixtures/admin.ts";

const SINCE = "2026-11-28T12:00:00.000Z";

/** What a pod responds with, by path; other paths have status 404. */
type Answers = Readonly<Record<string, unknown>>;

function status(hash: string, generation: number): ConfigStatus {
  return {
    generation,
    hash,
    appliedAt: SINCE,
    loadedAt: SINCE,
    diskDiffers: false,
    lastError: null,
    nextRetryAt: null,
    synchronized: true,
    restartRequired: [],
    source: "controller",
  };
}

/** The Gateway `shop/web` with these pods; `undefined`: its admin server responds with 503. */
async function cluster(t: TestContext, pods: Readonly<Record<string, Answers | undefined>>) {
  const made = await testCluster(t);
  made.gateway("web");
  const asked: string[] = [];
  for (const [name, answers] of Object.entries(pods)) {
    const admin = await serve(t, (request, response) => {
      const [path = ""] = request.url?.split("?") ?? [];
      if (path !== "/config/status") asked.push(`${name} ${request.method} ${request.url}`);
      request.resume().on("end", () => respond(response, answers?.[path], answers === undefined ? 503 : 404));
    });
    made.pod(name, { labels: ofGateway("web") });
    made.connect(name, 15000, admin.port);
  }
  const tgctl = async (...words: readonly string[]) => {
    const { code, stdout, stderr } = await made.tgctl(...words);
    return { code, stderr, stdout, lines: stdout.split("\n").map((line) => line.replaceAll(/ +/g, " ").trimEnd()) };
  };
  return { tgctl, asked: () => asked.splice(0).sort() };
}

function respond(response: ServerResponse<IncomingMessage>, answer: unknown, otherwise: number): void {
  if (answer === undefined) response.writeHead(otherwise).end("not now\n");
  else response.end(JSON.stringify(answer));
}

function routes(...rows: readonly (readonly [key: string, requests: number])[]) {
  const place = { bind: "bind/80", listener: "web", position: 1, hostnames: [], matches: ["path /"], backends: [] };
  const all = rows.map(([key, requests]) => ({ key, name: `shop/${key}`, ...place, requests, errors: 1 }));
  return { generation: 1, since: SINCE, total: all.length, found: all.length, routes: all };
}

test("the traffic of routes is that of all pods, sorted by the sum", async (t) => {
  const { tgctl, asked } = await cluster(t, {
    "web-a": { "/config/status": status("x", 4), "/routes": routes(["a", 5], ["b", 4]) },
    "web-b": { "/config/status": status("x", 1), "/routes": routes(["b", 3], ["a", 1]) },
  });
  const { code, lines, stderr } = await tgctl("routes", "gateway/web", "-n", "shop", "--sort", "requests", "--limit=1");
  assert.deepEqual([code, stderr], [0, ""]);
  assert.deepEqual(lines.slice(1), ["shop/b bind/80 web path / 7 2", "1 more route", ""]);
  assert.deepEqual(asked(), [
    "web-a GET /routes?sort=requests&limit=1000&page=1",
    "web-b GET /routes?sort=requests&limit=1000&page=1",
  ]);
});

test("who has another configuration, and who does not answer, is said beside what the others know", async (t) => {
  const { tgctl } = await cluster(t, {
    "web-a": { "/config/status": status("x", 4), "/routes": routes(["a", 5]) },
    "web-b": { "/config/status": status("y", 1), "/routes": routes(["a", 1]) },
    "web-c": undefined,
  });
  const { code, lines, stderr } = await tgctl("routes", "gateway/web", "-n", "shop");
  assert.equal(code, 1);
  assert.equal(lines[1], "shop/a bind/80 web path / 6 2");
  assert.match(stderr, /^Not all replicas have the same configuration: web-a has 4; web-b has 1$/m);
  assert.match(stderr, /failed to execute command on web-c\.shop: .*503\nWhy: not now/);

  const { stdout } = await tgctl("routes", "gateway/web", "-n", "shop", "-o", "json");
  const { replicas } = JSON.parse(stdout);
  assert.deepEqual(
    replicas.map(({ name, problem, configuration }: Record<string, unknown>) => [name, problem, configuration]),
    [
      ["web-a", undefined, { generation: 4, hash: "x", synchronized: true }],
      ["web-b", undefined, { generation: 1, hash: "y", synchronized: true }],
      ["web-c", "unexpected status code: 503", undefined],
    ],
  );
});

function endpoint(state: EndpointView["state"], requests: number): EndpointView {
  const rest = { latency: 0, active: 1, consecutiveFailures: 0, weight: 1, changes: [] };
  return { addresses: ["10.0.0.7:80"], state, requests, health: 1, ...rest };
}

function backends(state: EndpointView["state"], requests: number) {
  const endpoints = { total: 1, shown: [endpoint(state, requests)] };
  const one: BackendView = {
    key: "/cart",
    name: "cart",
    kind: "static",
    requests,
    failing: 0,
    endpoints,
    routes: { total: 0, shown: [] },
  };
  return { generation: 1, backends: { total: 1, shown: [one] } };
}

function probes(healthy: boolean) {
  const probe = { address: "10.0.0.7:80", sent: { type: "tcp" }, healthy, duration: 1 };
  return { key: "/cart", endpoints: 2, probes: [{ ...probe, ...(!healthy && { reason: "connection refused" }) }] };
}

test("an endpoint has the worst state that a pod sees, with its name, and each pod probes", async (t) => {
  const { tgctl, asked } = await cluster(t, {
    "web-a": {
      "/config/status": status("x", 1),
      "/backends": backends("healthy", 5),
      "/probe/%2Fcart": probes(true),
    },
    "web-b": {
      "/config/status": status("x", 1),
      "/backends": backends("evicted", 2),
      "/probe/%2Fcart": probes(false),
    },
  });
  const { lines } = await tgctl("backends", "gateway/web", "-n", "shop");
  assert.equal(lines[1], "cart 10.0.0.7:80 evicted at web-b 1.00 2 7");
  asked();
  const probed = await tgctl("backends", "gateway/web", "-n", "shop", "--probe", "/cart");
  assert.deepEqual(asked(), ["web-a POST /probe/%2Fcart", "web-b POST /probe/%2Fcart"]);
  assert.deepEqual(probed.lines, [
    "POD ENDPOINT STATE TIME SENT RESULT",
    "web-a 10.0.0.7:80 healthy 1.00ms a connection connected",
    "web-b 10.0.0.7:80 unhealthy 1.00ms a connection connection refused",
    "not probed: 1 more endpoint",
    "",
  ]);
});

test("an expression has a value as long as one pod answers", async (t) => {
  const evaluation = { type: "bool", parts: [], value: true };
  const { tgctl } = await cluster(t, {
    "web-a": undefined,
    "web-b": { "/config/status": status("x", 1), "/expression": evaluation },
  });
  const { code, stdout, stderr } = await tgctl(
    "eval",
    "true",
    "gateway/web",
    "-n",
    "shop",
    "--",
    "http://shop.example/",
  );
  assert.match(stderr, /web-a\.shop/);
  assert.deepEqual([code, stdout], [0, "true → true\n"]);
});
