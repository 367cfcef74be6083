import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { TestApiServer } from "../../../test/helpers/kube/api-server.ts";
import { Refused } from "../../../test/helpers/kube/store.ts";
import { until } from "../../../test/helpers/until.ts";
import { LogOutput } from "../../base/log.ts";
import { parseLogFilter } from "../../base/log-filter.ts";
import type { Gateway } from "../../kube/objects.ts";
import { type Manifest, SHARED_BY, sharedDeploymentName } from "../base/manifest.ts";
import { controllerSettings } from "../base/settings.ts";
import type { Parameters } from "../crd/parameters.ts";
import { ownFleet, sharedFleetIn } from "../translate/model/fleets.ts";
import { Deployer } from "./deployer.ts";
import type { FleetDeployment } from "./deployments.ts";
import { gatewayObjects, sessionSecret } from "./gateway-objects.ts";

const GATEWAY: Gateway = {
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "Gateway",
  metadata: { name: "web", namespace: "apps", uid: "uid-of-web" },
  spec: { gatewayClassName: "tracegate" },
};
const KEY = "apps/web";
/** Of everything that the Gateways of class `tracegate` share. */
const SHARED = sharedDeploymentName("tracegate");
const SETTINGS = controllerSettings({}, "1.2.3", "host");

function deployment(
  layers: readonly Parameters[] = [],
  ports = [80],
  gateway: Gateway | "shared" = GATEWAY,
): FleetDeployment {
  const input = inputOf(gateway, layers, ports);
  return { key: input.owner.fleet.key, action: "apply", objects: gatewayObjects(input), secret: sessionSecret(input) };
}

/** Of a Gateway, or of the Gateways of class `tracegate`, which share their proxies. */
function inputOf(gateway: Gateway | "shared", layers: readonly Parameters[] = [], ports: readonly number[] = []) {
  const className = "tracegate";
  return {
    owner:
      gateway === "shared"
        ? { className, fleet: sharedFleetIn("apps", className) }
        : { className, fleet: ownFleet(`apps/${gateway.metadata.name}`), gateway },
    ports: ports.map((port) => ({ port, protocol: "TCP" as const })),
    layers,
    settings: SETTINGS,
    version: "1.2.3",
    xdsCa: "PEM",
  };
}

/** A deployer that runs until the end of the test. */
async function start(t: TestContext, settings = SETTINGS) {
  const server = await TestApiServer.start();
  const reports: (string | undefined)[] = [];
  const lines: string[] = [];
  const log = new LogOutput(parseLogFilter("info"), "text", (line) => lines.push(line)).logger("deployer");
  const report = (gateway: string, error: string | undefined): void => {
    reports.push(gateway === KEY ? error : `${gateway}: ${error}`);
  };
  const deployer = new Deployer({ client: server.client(), settings, log, report });
  const stop = new AbortController();
  const running = deployer.run(stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
    await server.stop();
  });
  return { server, deployer, reports, lines };
}

const writes = (server: TestApiServer): readonly string[] =>
  server.received.filter(({ method }) => method !== "GET").map(({ method, path }) => `${method} ${path}`);

/** Waits until nothing has been written for a while, as long as the watches need to report what was. */
async function quiet(server: TestApiServer): Promise<number> {
  let count = -1;
  while (count !== writes(server).length) {
    count = writes(server).length;
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  return count;
}

const serviceOf = (server: TestApiServer) => server.get("Service", KEY);
const portOf = (server: TestApiServer): number | undefined => serviceOf(server)?.spec.ports?.[0]?.port;

test("everything that a Gateway needs is applied once, with the Gateway as its owner", async (t) => {
  const { server, deployer } = await start(t);
  deployer.update([deployment()]);
  await until(() => server.get("Deployment", KEY), "a Deployment");
  await quiet(server);
  for (const [kind, key] of [
    ["ServiceAccount", KEY],
    ["ConfigMap", KEY],
    ["ConfigMap", `${KEY}-xds-ca`],
    ["Secret", `${KEY}-session`],
    ["Service", KEY],
    ["Deployment", KEY],
  ] as const) {
    const object = server.get(kind, key);
    assert.ok(object !== undefined, `${kind} ${key}`);
    assert.deepEqual(
      object.metadata.ownerReferences?.map(({ kind, uid }) => `${kind} ${uid}`),
      ["Gateway uid-of-web"],
    );
  }
  assert.equal(writes(server).length, 6);
  // Again, the same: nothing to do.
  deployer.update([deployment()]);
  assert.equal(await quiet(server), 6);
});

test("only changed objects are applied", async (t) => {
  const { server, deployer } = await start(t);
  deployer.update([deployment()]);
  await until(() => server.get("Deployment", KEY), "a Deployment");
  const before = await quiet(server);
  deployer.update([deployment([], [8080])]);
  await until(() => portOf(server) === 8080, "another port");
  assert.equal(await quiet(server), before + 1);
});

test("objects that others change or delete are restored", async (t) => {
  const { server, deployer } = await start(t);
  deployer.update([deployment()]);
  await until(() => server.get("Deployment", KEY), "a Deployment");
  await quiet(server);
  const service = serviceOf(server);
  assert.ok(service !== undefined);
  server.set({ ...service, spec: { ...service.spec, type: "ClusterIP" } } as typeof service);
  await until(() => serviceOf(server)?.spec.type === "LoadBalancer", "the type is back");
  server.delete("Deployment", KEY);
  await until(() => server.get("Deployment", KEY), "the Deployment is back");
  const account = server.get("ServiceAccount", KEY);
  assert.ok(account !== undefined);
  const label = "app.kubernetes.io/name";
  const labels = { ...account.metadata.labels, [label]: "other" };
  server.set({ ...account, metadata: { ...account.metadata, labels } });
  await until(() => server.get("ServiceAccount", KEY)?.metadata.labels?.[label] === "web", "the label is back");
});

test("a change of the status causes no write", async (t) => {
  const { server, deployer } = await start(t);
  deployer.update([deployment()]);
  const live = await until(() => server.get("Deployment", KEY), "a Deployment");
  const before = await quiet(server);
  server.set({ ...live, status: { replicas: 1, availableReplicas: 1 } } as typeof live);
  assert.equal(await quiet(server), before);
});

test("the key of login cookies is made once and survives changes", async (t) => {
  const { server, deployer } = await start(t);
  deployer.update([deployment()]);
  const secret = await until(() => server.get("Secret", `${KEY}-session`), "a Secret");
  const { stringData } = secret as unknown as { readonly stringData: Record<string, string> };
  assert.match(stringData["oidc-cookie-secret"] ?? "", /^[0-9a-f]{64}$/);
  deployer.update([deployment([], [81])]);
  await until(() => portOf(server) === 81, "another port");
  await quiet(server);
  assert.deepEqual(server.get("Secret", `${KEY}-session`), secret);
});

test("objects that are no longer needed are deleted", async (t) => {
  const { server, deployer } = await start(t);
  deployer.update([deployment([{ podDisruptionBudget: { spec: { minAvailable: 1 } } }])]);
  await until(() => server.get("PodDisruptionBudget", KEY), "a PodDisruptionBudget");
  await quiet(server);
  deployer.update([deployment()]);
  await until(() => server.get("PodDisruptionBudget", KEY) === undefined, "the PodDisruptionBudget is gone");
  assert.ok(server.get("Deployment", KEY) !== undefined);
});

test("a Deployment serves until the DaemonSet that replaces it does", async (t) => {
  const { server, deployer } = await start(t);
  deployer.update([deployment()]);
  await until(() => server.get("Deployment", KEY), "a Deployment");
  await quiet(server);
  deployer.update([deployment([{ workload: { kind: "DaemonSet" } }])]);
  const made = await until(() => server.get("DaemonSet", KEY), "a DaemonSet");
  await quiet(server);
  assert.ok(server.get("Deployment", KEY) !== undefined);
  server.set({ ...made, status: { observedGeneration: 1, numberAvailable: 1 } } as typeof made);
  await until(() => server.get("Deployment", KEY) === undefined, "the Deployment is gone");
});

test("a Gateway that another controller takes over loses its objects; one that is broken keeps them", async (t) => {
  const { server, deployer } = await start(t);
  deployer.update([deployment()]);
  await until(() => server.get("Deployment", KEY), "a Deployment");
  const before = await quiet(server);
  deployer.update([{ ...deployment(), action: "keep", objects: [] }]);
  assert.equal(await quiet(server), before);
  deployer.update([{ ...deployment(), action: "remove", objects: [] }]);
  await until(() => server.get("Deployment", KEY) === undefined, "the Deployment is gone");
  await until(() => serviceOf(server) === undefined, "the Service is gone");
});

test("foreign objects with the same name are left alone, and a condition of the Gateway says so", async (t) => {
  const { server, deployer, reports } = await start(t);
  const theirs = server.set({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", namespace: "apps" },
    ...{ spec: { ports: [{ port: 9 }] } },
  });
  deployer.update([deployment()]);
  await until(() => reports.length > 0, "a report");
  assert.match(reports[0] ?? "", /^Service apps\/web: exists already and does not belong to the Gateway; delete it/);
  assert.deepEqual(serviceOf(server), theirs);
  server.delete("Service", KEY);
  deployer.update([deployment()]);
  await until(() => reports.at(-1) === undefined, "the report is withdrawn");
  assert.equal(portOf(server), 80);
});

test("objects of another tracegate are left alone, unless their Gateway moves here", async (t) => {
  const { server, deployer } = await start(t);
  const theirs = { ...SETTINGS, controllerName: "example.com/other" };
  const metadata = gatewayObjects({ ...inputOf(GATEWAY), settings: theirs })[0]?.metadata;
  assert.ok(metadata !== undefined);
  const service = server.set({ apiVersion: "v1", kind: "Service", metadata, ...{ spec: { ports: [] } } });
  deployer.update([{ ...deployment(), action: "remove", objects: [] }]);
  assert.equal(await quiet(server), 0);
  assert.deepEqual(serviceOf(server), service);
  deployer.update([deployment()]);
  await until(() => portOf(server) === 80, "the Service is taken over");
});

test("what belongs to something else than a Gateway is not taken over, whatever its annotations say", async (t) => {
  const { server, deployer, reports } = await start(t);
  const metadata = gatewayObjects(inputOf(GATEWAY))[0]?.metadata;
  assert.ok(metadata !== undefined);
  const ownerReferences = [{ apiVersion: "apps/v1", kind: "Other", name: "web", uid: "theirs", controller: true }];
  server.set({ apiVersion: "v1", kind: "Service", metadata: { ...metadata, ownerReferences }, ...{ spec: {} } });
  deployer.update([deployment()]);
  await until(() => reports[0], "a report");
  assert.match(reports[0] ?? "", /^Service apps\/web: exists already/);
});

test("rejections by the API server are reported at once, temporary failures are not; both are retried", async (t) => {
  const { server, deployer, reports } = await start(t);
  let [status, refusals] = [500, 1];
  server.intercept = ({ method, path }) => {
    if (method === "PATCH" && path.includes("/deployments/") && refusals-- > 0)
      throw new Refused(status, "Refused", "the webhook says no");
  };
  deployer.update([deployment()]);
  await until(() => server.get("Deployment", KEY), "a Deployment after a failure that passes");
  assert.deepEqual(reports, []);
  [status, refusals] = [422, 1];
  deployer.update([deployment([{ deployment: { spec: { replicas: 2 } } }])]);
  await until(() => reports.length === 2, "a report, and its end");
  assert.deepEqual(reports, ["Deployment apps/web: the webhook says no", undefined]);
  assert.equal(server.get("Deployment", KEY)?.spec?.replicas, 2);
});

test("after a restart objects are applied once more, without changing them", async (t) => {
  const { server, deployer } = await start(t);
  deployer.update([deployment()]);
  await until(() => server.get("Deployment", KEY), "a Deployment");
  const before = await quiet(server);
  const version = server.get("Deployment", KEY)?.metadata.resourceVersion;
  const log = new LogOutput(parseLogFilter("info"), "text", () => {}).logger("deployer");
  const second = new Deployer({ client: server.client(), settings: SETTINGS, log, report: () => {} });
  const stop = new AbortController();
  const running = second.run(stop.signal);
  second.update([deployment()]);
  await until(() => writes(server).length > before, "it applies");
  await quiet(server);
  stop.abort();
  await running;
  assert.equal(server.get("Deployment", KEY)?.metadata.resourceVersion, version);
  assert.ok(
    !writes(server)
      .slice(before)
      .some((each) => each.startsWith("DELETE") || each.startsWith("POST")),
  );
});

test("a Gateway does not take over an object of another Gateway with the same name", async (t) => {
  const { server, deployer, reports } = await start(t);
  const other: Gateway = { ...GATEWAY, metadata: { name: "web-xds-ca", namespace: "apps", uid: "uid-of-other" } };
  deployer.update([deployment()]);
  await until(() => server.get("Deployment", KEY), "a Deployment");
  const before = await quiet(server);
  deployer.update([deployment(), deployment([], [80], other)]);
  await until(() => reports[0], "a report");
  assert.match(
    reports[0] ?? "",
    /^apps\/web-xds-ca: ConfigMap apps\/web-xds-ca: exists already and does not belong to the Gateway/,
  );
  assert.ok(writes(server).length > before, "the rest of it is applied");
  assert.equal(server.get("ConfigMap", `${KEY}-xds-ca`)?.metadata.ownerReferences?.[0]?.uid, "uid-of-web");
});

test("shared proxies have no owner, are not mistaken for a Gateway's, and are deleted when their class is gone", async (t) => {
  const { server, deployer, reports } = await start(t);
  const gateway: Gateway = { ...GATEWAY, metadata: { name: "tracegate", namespace: "apps", uid: "uid" } };
  deployer.update([deployment([], [80], "shared")]);
  const shared = await until(() => server.get("Deployment", `apps/${SHARED}`), "the shared Deployment");
  assert.equal(shared?.metadata.ownerReferences, undefined);
  await quiet(server);
  deployer.update([deployment([], [80], "shared"), deployment([], [81], gateway)]);
  await until(
    () => server.get("Deployment", "apps/tracegate"),
    "the Deployment of a Gateway with the name of the class",
  );
  await quiet(server);
  assert.equal(server.get("Service", `apps/${SHARED}`)?.spec.ports?.[0]?.port, 80);
  assert.equal(server.get("Service", "apps/tracegate")?.spec.ports?.[0]?.port, 81);
  const named: Gateway = { ...gateway, metadata: { name: SHARED, namespace: "apps", uid: "uid-of-named" } };
  deployer.update([deployment([], [80], "shared"), deployment([], [81], gateway), deployment([], [82], named)]);
  await until(() => reports[0], "a report");
  assert.match(reports[0] ?? "", new RegExp(`^apps/${SHARED}: .* does not belong to the Gateway`));
  assert.equal(server.get("Service", `apps/${SHARED}`)?.spec.ports?.[0]?.port, 80);
  deployer.update([deployment([], [81], gateway)]);
  for (const [kind, key] of [
    ["Deployment", `apps/${SHARED}`],
    ["Service", `apps/${SHARED}`],
    ["Secret", `apps/${SHARED}-session`],
  ] as const)
    await until(() => server.get(kind, key) === undefined, `the end of ${kind} ${key}`);
  assert.ok(server.get("Deployment", "apps/tracegate") !== undefined);
  // The reverse: what a Gateway owns is not taken for the class, although it may have any annotations.
  const annotations = { [SHARED_BY]: "tracegate" };
  const owning = deployment([], [82], { ...named, spec: { ...gateway.spec, infrastructure: { annotations } } });
  deployer.update([owning]);
  await until(() => server.get("Deployment", `apps/${SHARED}`), "the Deployment of the Gateway");
  await quiet(server);
  deployer.update([owning, deployment([], [80], "shared")]);
  const ofClass = () => reports.find((each) => each?.startsWith("GatewayClass/tracegate: "));
  await until(ofClass, "another report");
  assert.match(ofClass() ?? "", / does not belong to the GatewayClass/);
});

test("shared proxies that move to another namespace serve there before the old ones are deleted", async (t) => {
  const { server, deployer } = await start(t);
  const before = deployment([], [80], "shared");
  deployer.update([before]);
  await until(() => server.get("Deployment", `apps/${SHARED}`), "the Deployment");
  await quiet(server);
  const moved = (object: Manifest): Manifest => ({ ...object, metadata: { ...object.metadata, namespace: "edge" } });
  const { secret } = before;
  deployer.update([{ ...before, objects: before.objects.map(moved), ...(secret && { secret: moved(secret) }) }]);
  const live = await until(() => server.get("Deployment", `edge/${SHARED}`), "the other Deployment");
  await quiet(server);
  for (const kind of ["Deployment", "Service", "ConfigMap"] as const)
    assert.ok(server.get(kind, `apps/${SHARED}`) !== undefined, kind);
  server.set({ ...live, status: { observedGeneration: 1_000, replicas: 1, availableReplicas: 1 } } as typeof live);
  for (const kind of ["Deployment", "Service", "ConfigMap"] as const)
    await until(() => server.get(kind, `apps/${SHARED}`) === undefined, `the end of the ${kind}`);
});

test("shared proxies whose class was deleted while no controller ran are deleted", async (t) => {
  const { server, deployer } = await start(t);
  const metadata = gatewayObjects(inputOf("shared"))[0]?.metadata;
  assert.ok(metadata !== undefined);
  server.set({ apiVersion: "v1", kind: "Service", metadata, ...{ spec: {} } });
  deployer.update([]);
  await until(() => server.get("Service", `apps/${SHARED}`) === undefined, "the end of the Service");
});

test("new pods reach as many Gateways at once as the settings say; Services do not wait", async (t) => {
  const { server, deployer } = await start(t, { ...SETTINGS, proxy: { ...SETTINGS.proxy, maxRollouts: 1 } });
  const names = ["a", "b", "c"];
  const gateways = names.map((name) => ({ ...GATEWAY, metadata: { name, namespace: "apps", uid: `uid-of-${name}` } }));
  const all = (layers: readonly Parameters[], port: number) => gateways.map((each) => deployment(layers, [port], each));
  // New Gateways have no pods to replace.
  deployer.update(all([], 80));
  const deploymentOf = (name: string) => server.get("Deployment", `apps/${name}`);
  await until(() => names.every((name) => deploymentOf(name)), "all Deployments");
  await quiet(server);
  deployer.update(all([{ image: { tag: "next" } }], 81));
  const imageOf = (name: string) => JSON.stringify(deploymentOf(name)?.spec).match(/"image":"[^"]*:([^"]*)"/)?.[1];
  const next = () => names.filter((name) => imageOf(name) === "next");
  const ports = () => names.map((name) => server.get("Service", `apps/${name}`)?.spec.ports?.[0]?.port);
  await until(() => ports().every((port) => port === 81), "the Services");
  for (let count = 1; count <= names.length; count++) {
    await until(() => next().length === count, `the Deployment of ${count} Gateways`);
    await quiet(server);
    assert.equal(next().length, count);
    rollOut(server, next().find((name) => deploymentOf(name)?.status === undefined) ?? "");
  }
});

test("late news of a Gateway's former pods do not end its turn", async (t) => {
  const { server, deployer } = await start(t, { ...SETTINGS, proxy: { ...SETTINGS.proxy, maxRollouts: 1 } });
  const gateways = ["a", "b"].map((name) => ({
    ...GATEWAY,
    metadata: { name, namespace: "apps", uid: `uid-of-${name}` },
  }));
  const update = (layers: readonly Parameters[]): void =>
    deployer.update(gateways.map((each) => deployment(layers, [80], each)));
  update([]);
  await until(() => ["a", "b"].every((name) => server.get("Deployment", `apps/${name}`)), "both Deployments");
  await quiet(server);
  const held = Promise.withResolvers<void>();
  const patched: string[] = [];
  server.intercept = ({ method, path }) => {
    if (method !== "PATCH" || !path.includes("/deployments/")) return;
    patched.push(path.slice(-1));
    return held.promise;
  };
  update([{ image: { tag: "next" } }]);
  await until(() => patched.length > 0, "the request for the new pods of one");
  const [first = ""] = patched;
  rollOut(server, first);
  await quiet(server);
  assert.deepEqual(patched, [first]);
  held.resolve();
  await quiet(server);
  assert.deepEqual(patched, [first]);
  rollOut(server, first);
  await until(() => patched.length === 2, "the turn of the other");
});

/** The Deployment of a Gateway has all of its pods. */
function rollOut(server: TestApiServer, gateway: string): void {
  const live = server.get("Deployment", `apps/${gateway}`);
  assert.ok(live !== undefined);
  const observedGeneration = live.metadata.generation ?? 0;
  const status = { observedGeneration, replicas: 1, updatedReplicas: 1, availableReplicas: 1 };
  server.set({ ...live, status } as typeof live);
}
