import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { Refused } from "../../../test/helpers/kube/store.ts";
import { ofGateway, testCluster } from "../../../test/helpers/kube/tgctl.ts";
import { closedPort, serve } from "../fixtures/admin.ts";
import { invoke } from "../fixtures/invoke.ts";
import { parseResource } from "./resource.ts";

test("a resource is a name, a type and a name, or both with a namespace", () => {
  const read = (text: string) => {
    const { type, name, namespace } = parseResource(text);
    return `${type} ${name} ${namespace ?? "default"}`;
  };
  assert.equal(read("web"), "pod web default");
  assert.equal(read("web.shop"), "pod web shop");
  assert.equal(read("gateway/web.shop"), "gateway web shop");
  assert.equal(read("gateway/my.web.shop"), "gateway my.web shop");
  for (const word of ["gateway", "gateways", "gtw", "Gateway"]) assert.equal(read(`${word}/a`), "gateway a default");
  for (const word of ["pod", "pods", "po"]) assert.equal(read(`${word}/a`), "pod a default");
  for (const word of ["service", "services", "svc"]) assert.equal(read(`${word}/a`), "service a default");
  for (const word of ["deployment", "deployments", "deploy"]) assert.equal(read(`${word}/a`), "deployment a default");
  for (const word of ["replicaset", "replicasets", "rs"]) assert.equal(read(`${word}/a`), "replicaset a default");
  for (const word of ["statefulset", "statefulsets", "sts"]) assert.equal(read(`${word}/a`), "statefulset a default");
  for (const word of ["daemonset", "daemonsets", "ds"]) assert.equal(read(`${word}/a`), "daemonset a default");
  for (const wrong of ["foo/bar", "gateway/", "/web", "gateway/a/b", "gateway/.shop", "gateway/web.", "constructor/a"])
    assert.throws(() => read(wrong), { message: `"${wrong}" does not refer to a supported pod resource` });
});

/** A cluster with Gateway `web` in `shop`, one pod, whose admin server answers as a proxy with this log level. */
async function shop(t: Parameters<typeof testCluster>[0]) {
  const cluster = await testCluster(t);
  const admin = await serve(t, (_request, response) => response.end("current log level is info\n"));
  cluster.gateway("web");
  cluster.pod("web-1", { labels: ofGateway("web") });
  cluster.connect("web-1", 15000, admin.port);
  return { ...cluster, admin };
}

test("a Gateway is found by name, namespace, suffix, as the only one, or by what selects its pods", async (t) => {
  const { tgctl, server } = await shop(t);
  const labels = { app: "web" };
  server.set({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", namespace: "shop" },
    spec: { selector: ofGateway("web") },
  } as never);
  for (const kind of ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"])
    server.store.put(`apps/v1/${kind.toLowerCase()}s`, "shop/web", {
      apiVersion: "apps/v1",
      kind,
      metadata: { name: "web", namespace: "shop", labels },
      spec: {
        selector: { matchLabels: ofGateway("web"), matchExpressions: [{ key: "gone", operator: "DoesNotExist" }] },
      },
    });
  for (const words of [
    "gateway/web -n shop",
    "gateway/web.shop",
    "gtw/web.shop -n other",
    "-n shop",
    "web-1.shop",
    "pod/web-1 -n shop",
    "svc/web -n shop",
    "deploy/web.shop",
    "rs/web.shop",
    "sts/web.shop",
    "ds/web.shop",
    "gateway/web -n shop --pod web-1",
    "gateway/web -n shop --context test",
  ]) {
    const { stdout, stderr } = await tgctl("proxy", "log", ...words.split(" "));
    assert.deepEqual([stdout, stderr], ["current log level is info\n", ""], words);
  }
  assert.ok(server.received.some(({ query }) => query.get("labelSelector")?.endsWith("=web,!gone") === true));
});

test("--kubeconfig, $KUBECONFIG and ~/.kube/config choose the cluster, also before the command", async (t) => {
  const { kubeconfig, admin } = await shop(t);
  const words = ["proxy", "log", "gateway/web", "-n", "shop"];
  assert.equal((await invoke([...words, "-k", kubeconfig])).code, 0);
  assert.equal((await invoke(["-k", kubeconfig, ...words])).code, 0);
  assert.equal((await invoke(words, "", { KUBECONFIG: kubeconfig })).code, 0);
  assert.equal(admin.requests.length, 3);
  const nowhere = await invoke(words, "", { HOME: "/nonexistent" });
  assert.equal(nowhere.code, 2);
  assert.match(nowhere.stderr, /^Error: failed to build Kubernetes client config: no cluster is configured/);
  const missing = await invoke([...words, "-k", "/nonexistent/config"]);
  assert.match(
    missing.stderr,
    /^Error: .* client config: kubeconfig \/nonexistent\/config cannot be used: it does not exist\n/,
  );
  const context = await invoke([...words, "-k", kubeconfig, "--context", "prod"]);
  assert.match(context.stderr, /^Error: failed to build .* has no context "prod"; contexts: test\nTry: --kubeconfig/);
});

test("without a resource: the cluster of the kubeconfig, but --local and TGCTL_ADMIN mean this machine", async (t) => {
  const { kubeconfig, server, admin } = await shop(t);
  const local = await serve(t, (_request, response) => response.end("current log level is warn\n"));
  const log = (env: Record<string, string>, ...more: string[]) => invoke(["log", ...more], "", env);
  const port = ["--proxy-admin-port", String(local.port)];
  assert.match((await log({ KUBECONFIG: kubeconfig })).stderr, /no Gateways found in namespace "default"/);
  assert.equal((await log({ KUBECONFIG: kubeconfig }, "--local", ...port)).stdout, "current log level is warn\n");
  const address = { KUBECONFIG: kubeconfig, TGCTL_ADMIN: `localhost:${local.port}` };
  assert.equal((await log(address)).stdout, "current log level is warn\n");
  assert.equal((await log({}, ...port)).stdout, "current log level is warn\n");
  assert.equal(admin.requests.length, 0);
  assert.equal((await log(address, "-n", "shop")).stdout, "current log level is info\n");
  assert.equal(server.received.filter(({ path }) => path.endsWith("/portforward")).length, 1);
});

const refused: readonly (readonly [words: string, message: RegExp])[] = [
  [
    "-n empty",
    /^no Gateways found in namespace "empty"; pass a resource explicitly\nTry: did you mean gateway\/a.many, gateway\/b.many, gateway\/bare.shop, gateway\/invalid.sick, gateway\/scaled-away.sick, … \(6 Gateways\)\?/,
  ],
  ["-n many", /^found 2 Gateways in namespace "many"; pass a resource explicitly\nTry: gateway\/a, gateway\/b/],
  [
    "gateway/x -n shop",
    /^failed retrieving gateway\/x in namespace "shop": .*not found\nTry: did you mean gateway\/bare.shop, gateway\/web.shop\?/,
  ],
  [
    "gateway/a -n shop",
    /^failed retrieving gateway\/a in namespace "shop": .*not found\nTry: did you mean gateway\/a.many\?/,
  ],
  ["web -n shop", /^failed retrieving pod\/web in namespace "shop": .*not found\nTry: did you mean gateway\/web\?/],
  ["pod/x -n shop", /^failed retrieving pod\/x in namespace "shop": .*not found/],
  [
    "gateway/scaled-away -n sick",
    /^no pods found for resource "gateway\/scaled-away"\nWhy: a controller has programmed it, but its pods are gone\nTry: kubectl describe deployment scaled-away -n sick; /,
  ],
  [
    "gateway/bare -n shop",
    /^no pods found for resource "gateway\/bare"\nWhy: no controller has taken it; its class is "tracegate"\nTry: kubectl get gatewayclass/,
  ],
  [
    "gateway/invalid -n sick",
    /^no pods found for resource "gateway\/invalid"\nWhy: Accepted is False, InvalidParameters: TracegateParameters large does not exist\nTry: kubectl describe gateway invalid -n sick/,
  ],
  ["svc/external -n shop", /^resource has no pod selector\n$/],
  ["svc/none -n shop", /^resource has empty pod selector\n$/],
  ["gateway/web -n shop --pod y", /^gateway\/web has no pod "y"\nTry: its pods are web-1\n/],
  ["foo/bar", /^"foo\/bar" does not refer to a supported pod resource\nTry: gateway\/<name>/],
  [
    "pod/pending -n shop",
    /^failed to execute command on pending.shop: pod is not running. Status=Pending\nWhy: pod pending.shop\nTry: kubectl describe/,
  ],
];

for (const [words, message] of refused) {
  test(`tgctl proxy log ${words}: ${message.source.slice(1, 60)}`, async (t) => {
    const { tgctl, gateway, pod, server } = await shop(t);
    gateway("bare");
    gateway("scaled-away", "sick", [
      { type: "Accepted", status: "True", reason: "Accepted", message: "" },
      { type: "Programmed", status: "True", reason: "Programmed", message: "" },
    ]);
    gateway("a", "many");
    gateway("b", "many");
    gateway("invalid", "sick", [
      {
        type: "Accepted",
        status: "False",
        reason: "InvalidParameters",
        message: "TracegateParameters large does not exist",
      },
    ]);
    pod("pending", { phase: "Pending" });
    server.set({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "external", namespace: "shop" },
      spec: {},
    } as never);
    server.set({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "none", namespace: "shop" },
      spec: { selector: {} },
    } as never);
    const { code, stdout, stderr } = await tgctl("proxy", "log", ...words.split(" "));
    assert.notEqual(code, 0);
    assert.equal(stdout, "");
    assert.match(stderr.replace(/^Error: /, ""), message);
  });
}

test("an error of the API server about permissions names the missing rule", async (t) => {
  const { tgctl, server } = await shop(t);
  const forbidden = (what: string, group = "") =>
    new Refused(
      403,
      "Forbidden",
      `x is forbidden: User "ann" cannot ${what} in API group "${group}" in the namespace "shop"`,
    );
  const denied = (deny: (path: string) => Refused | undefined) => {
    server.intercept = ({ path }) => {
      const refusal = deny(path);
      if (refusal !== undefined) throw refusal;
    };
    return tgctl("proxy", "config", "all", "gateway/web", "-n", "shop");
  };
  const gateways = await denied((path) =>
    path.endsWith("/gateways/web") ? forbidden('get resource "gateways"') : undefined,
  );
  assert.match(gateways.stderr, /failed retrieving gateway\/web in namespace "shop": .*User "ann" cannot get/);
  assert.match(gateways.stderr, /\nTry: a Role must allow get on gateways in namespace shop; docs\/kubernetes.md/);
  const forward = await denied((path) =>
    path.endsWith("/portforward") ? forbidden('create resource "pods/portforward"') : undefined,
  );
  assert.equal(forward.code, 1);
  assert.match(
    forward.stderr,
    /^Error: failure running port forward process: port 15000 of pod web-1.shop: .*"ann" cannot/,
  );
  assert.match(forward.stderr, /\nTry: a Role must allow create and get on pods\/portforward in namespace shop/);
  server.intercept = undefined;
  server.bearer = "another";
  const stranger = await tgctl("proxy", "config", "all", "gateway/web", "-n", "shop");
  assert.match(stranger.stderr, /Unauthorized\nTry: the credentials in the kubeconfig are invalid or have expired/);
});

test("without access to other namespaces, suggestions are about this one", async (t) => {
  const { tgctl, server, gateway } = await shop(t);
  gateway("x", "other");
  server.intercept = ({ path }) => {
    if (path === "/apis/gateway.networking.k8s.io/v1/gateways") throw new Refused(403, "Forbidden", "no");
  };
  const { stderr } = await tgctl("proxy", "log", "gateway/x", "-n", "shop");
  assert.match(stderr, /\nTry: did you mean gateway\/web.shop\?/);
  const none = await tgctl("proxy", "log", "gateway/x", "-n", "empty");
  assert.match(none.stderr, /\nTry: kubectl get gateways -A/);
});

test("a cluster that cannot be reached, and one without the Gateway API", async (t) => {
  const { tgctl, server, kubeconfig, folder } = await shop(t);
  server.missing.add("gateway.networking.k8s.io/v1/gateways");
  const without = await tgctl("proxy", "config", "all", "-n", "shop");
  assert.match(without.stderr, /failed to list Gateways in namespace "shop": .*\nTry: .*install the CRDs/);
  await server.stop();
  const gone = await tgctl("proxy", "config", "all", "gateway/web", "-n", "shop");
  assert.equal(gone.code, 3);
  assert.match(
    gone.stderr,
    /failed retrieving gateway\/web in namespace "shop": .*ECONNREFUSED.*\nTry: check that the cluster runs/,
  );
  await server.listen();
  assert.ok(join(folder, "config") === kubeconfig);
});

test("an admin port where nothing listens", async (t) => {
  const { tgctl, connect } = await shop(t);
  const at = (port: string) => tgctl("proxy", "config", "all", "gateway/web", "-n", "shop", "--proxy-admin-port", port);
  const closed = await at("15999");
  assert.equal(closed.code, 3);
  assert.match(
    closed.stderr,
    /^Error: failure running port forward process: port 15999 of pod web-1.shop: connection refused\nTry: /,
  );
  connect("web-1", 15998, await closedPort());
  assert.match((await at("15998")).stderr, /port 15998 of pod web-1.shop: connection refused/);
});

test("config backends says which of several pods it shows", async (t) => {
  const { tgctl, pod, admin, connect } = await shop(t);
  pod("web-2", { labels: ofGateway("web") });
  connect("web-2", 15000, admin.port);
  const { stderr } = await tgctl("proxy", "config", "backends", "gateway/web", "-n", "shop");
  assert.match(stderr, /^web-1\.shop, one of 2 pods of gateway\/web; --pod chooses another\n/);
});

test("log calls all pods, and reports those that fail after the others", async (t) => {
  const { tgctl, pod, connect, admin } = await shop(t);
  for (const name of ["web-0", "web-2"]) pod(name, { labels: ofGateway("web") });
  pod("web-old", { labels: ofGateway("web"), phase: "Failed" });
  connect("web-2", 15000, admin.port);
  const { code, stdout, stderr } = await tgctl("proxy", "log", "gateway/web", "-n", "shop", "--level", "info");
  assert.equal(stdout, "web-1.shop:\ncurrent log level is info\nweb-2.shop:\ncurrent log level is info\n");
  assert.equal(code, 3);
  assert.match(
    stderr,
    /^Error: failed to execute command on web-0.shop: failure running port forward process: .*refused\nTry/,
  );
  assert.deepEqual(admin.requests, ["POST /logging?level=info", "POST /logging?level=info"]);
  const json = await tgctl("proxy", "log", "gateway/web", "-n", "shop", "--json", "--pod", "web-2");
  assert.deepEqual(JSON.parse(json.stdout), [{ pod: "web-2", namespace: "shop", level: "info" }]);
});

test("a pod that cannot start says why", async (t) => {
  const { tgctl, pod } = await shop(t);
  pod("web-0", {
    phase: "Pending",
    containers: [{ image: "tracegate:9", restartCount: 0, state: { waiting: { reason: "ImagePullBackOff" } } }],
  });
  const pulling = await tgctl("proxy", "config", "all", "web-0", "-n", "shop");
  assert.match(
    pulling.stderr,
    /Status=Pending\nWhy: pod web-0.shop cannot pull the image tracegate:9\nTry: kubectl describe pod web-0 -n shop/,
  );
  pod("web-0", { ready: false, containers: [{ image: "tracegate:9", restartCount: 3 }] });
  const crashing = await tgctl("proxy", "config", "all", "web-0", "-n", "shop");
  assert.match(crashing.stderr, /connection refused\nTry: the pod crashes: kubectl logs web-0 -n shop --previous/);
});

test("a command for one proxy takes the first pod that runs", async (t) => {
  const { tgctl, pod, connect } = await shop(t);
  pod("web-0", { labels: ofGateway("web"), phase: "Pending" });
  pod("web-2", { labels: ofGateway("web") });
  const dump = await serve(t, (_request, response) => response.end('{"binds":[],"config":{"pod":"web-1"}}'));
  connect("web-1", 15000, dump.port);
  const all = await tgctl("proxy", "config", "all", "gateway/web", "-n", "shop", "-o", "json");
  assert.deepEqual(JSON.parse(all.stdout), { binds: [], config: { pod: "web-1" } });
});
