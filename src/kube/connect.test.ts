import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { TestApiServer } from "../../test/helpers/kube/api-server.ts";
import { KubeError, kubeError, type Method } from "./client.ts";
import { connectCluster, findCluster, HttpKubeClient } from "./connect.ts";
import { inClusterAccess } from "./credentials.ts";

const namespace = (name: string) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } }) as const;

test("requests: an error of the server has status, reason and message", async () => {
  await using server = await TestApiServer.start();
  using client = server.client();
  server.set(namespace("apps"));
  const found = await client.request<{ metadata: { name: string } }>("GET", "/api/v1/namespaces/apps");
  assert.equal(found.metadata.name, "apps");
  await assert.rejects(client.request("GET", "/api/v1/namespaces/gone"), (error) => {
    assert.ok(error instanceof KubeError);
    assert.equal(error.status, 404);
    assert.equal(error.reason, "NotFound");
    assert.match(error.message, /"gone" not found/);
    return true;
  });
  await assert.rejects(client.request("GET", "/apis/unknown"), {
    status: 404,
    reason: "",
    message: "404 page not found",
  });
});

test("a token that is no longer valid is read again, once", async () => {
  await using server = await TestApiServer.start();
  const folder = mkdtempSync(join(tmpdir(), "tracegate-kube-"));
  try {
    server.bearer = "first";
    writeFileSync(join(folder, "ca.crt"), "");
    writeFileSync(join(folder, "token"), "first\n");
    writeFileSync(join(folder, "namespace"), "apps");
    const access = await inClusterAccess(
      { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "6443" },
      folder,
    );
    assert.equal(access.server.href, "https://[fd00::1]:6443/");
    assert.equal(access.namespace, "apps");
    using client = new HttpKubeClient({ ...access, server: new URL(server.url) });
    await client.request("GET", "/version");
    server.bearer = "second";
    writeFileSync(join(folder, "token"), "second\n");
    await client.request("GET", "/version");
    server.bearer = "third";
    await assert.rejects(client.request("GET", "/version"), { status: 401 });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a connection that the server has closed meanwhile is replaced", async () => {
  await using server = await TestApiServer.start();
  using client = server.client();
  await client.request("GET", "/version");
  await server.stop();
  await assert.rejects(client.request("GET", "/version"), { status: 0, reason: "Connection" });
  await server.listen();
  await client.request("GET", "/version");
});

test("requests that the server asks to retry are retried", async () => {
  await using server = await TestApiServer.start();
  using client = server.client();
  server.busy = 1;
  await client.request("GET", "/version");
  assert.equal(server.received.length, 2);
});

test("watches yield changes as they come, and end when they are aborted", async () => {
  await using server = await TestApiServer.start();
  using client = server.client();
  const stop = new AbortController();
  const events = client
    .watch<{ metadata: { name: string } }>("/api/v1/namespaces", {}, stop.signal)
    [Symbol.asyncIterator]();
  const first = events.next();
  server.set(namespace("one"));
  assert.deepEqual(pick(await first), ["ADDED", "one"]);
  server.set({ ...namespace("one"), metadata: { name: "one", labels: { long: "x".repeat(300_000) } } });
  assert.deepEqual(pick(await events.next()), ["MODIFIED", "one"]);
  server.delete("Namespace", "one");
  assert.deepEqual(pick(await events.next()), ["DELETED", "one"]);
  const last = events.next();
  stop.abort();
  assert.equal((await last).done, true);
});

function pick(result: IteratorResult<{ type: string; object: { metadata: { name: string } } }>): unknown {
  return [result.value?.type, result.value?.object.metadata.name];
}

test("requests that write are throttled, others are not", async () => {
  await using server = await TestApiServer.start();
  using client = new HttpKubeClient(server.access, { writesPerSecond: 0.001, writeBurst: 1 });
  await client.request("POST", "/api/v1/namespaces", { body: namespace("one") });
  const blocked = client.request("POST", "/api/v1/namespaces", {
    body: namespace("two"),
    signal: AbortSignal.timeout(50),
  });
  await client.request("GET", "/version");
  await assert.rejects(blocked, { name: "AbortError" });
  assert.equal(server.get("Namespace", "two"), undefined);
});

test("a kubeconfig names server, namespace and credentials; errors name the file", async () => {
  await using server = await TestApiServer.start();
  const folder = mkdtempSync(join(tmpdir(), "tracegate-kube-"));
  try {
    server.bearer = "secret";
    const file = join(folder, "config");
    writeFileSync(file, server.kubeconfig);
    using client = await connectCluster({ KUBECONFIG: file });
    assert.equal(client.access.namespace, "default");
    await client.request("GET", "/version");
    await assert.rejects(findCluster({}, { kubeconfig: file, context: "other" }), {
      reason: "Configuration",
      message: `kubeconfig ${file} has no context "other"; contexts: test`,
    });
    await assert.rejects(
      findCluster({}, { kubeconfig: join(folder, "none") }),
      /kubeconfig .*none cannot be used: it does not exist/,
    );
    await assert.rejects(findCluster({ HOME: folder }), /no cluster is configured: KUBECONFIG is not set/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("an error says what a Role must allow, with Kubernetes' verbs", () => {
  const pods = "/api/v1/namespaces/shop/pods";
  const cases = {
    [`GET ${pods}?limit=500`]: "list pods shop",
    [`GET ${pods}?watch=true`]: "watch pods shop",
    [`GET ${pods}/web-0`]: "get pods shop",
    [`POST ${pods}/web-0/eviction`]: "create pods/eviction shop",
    [`DELETE ${pods}`]: "deletecollection pods shop",
    [`DELETE ${pods}/web-0`]: "delete pods shop",
    "GET /api/v1/namespaces/shop": "get namespaces ",
    "PATCH /apis/gateway.networking.k8s.io/v1/gatewayclasses/tracegate/status": "patch gatewayclasses/status ",
    "PUT /apis/coordination.k8s.io/v1/namespaces/a%20b/leases/x": "update leases a b",
    "GET /version": "",
  };
  for (const [request, expected] of Object.entries(cases)) {
    const [method = "", path = ""] = request.split(" ");
    const { access } = kubeError(403, "no", method as Method, path);
    assert.equal(access === undefined ? "" : `${access.verb} ${access.resource} ${access.namespace ?? ""}`, expected);
  }
});
