/** What breaks in a cluster must not reach clients: rolling updates, dying pods, a lost controller, a lost API server. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { connect } from "node:tls";
import { appRoot } from "../../src/base/app-root.ts";
import { get, Load } from "./lib/http.ts";
import { routeYaml } from "./lib/objects.ts";
import { applyReplicated } from "./lib/replicated.ts";
import { clusterProcesses } from "./lib/setup.ts";
import { apply, CONTROLLER_NAMESPACE, eventually, gatewayAddress, getJson, kubectl } from "./lib/tools.ts";

const NS = "e2e-resilience";
const HOST = "www.example.com";
const SELECTOR = "gateway.networking.k8s.io/gateway-name=web";
let address = "";

before(async () => {
  address = await applyReplicated(NS, HOST);
});

after(() => kubectl("delete", "namespace", NS, "--wait=false"));

interface Pods {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
    readonly status: {
      readonly podIP?: string;
      readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    };
  }[];
}

async function readyPods(namespace: string, selector: string): Promise<string[]> {
  const { items } = await getJson<Pods>("-n", namespace, "pods", "-l", selector);
  return items
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .filter(({ status }) => status.conditions?.some(({ type, status }) => type === "Ready" && status === "True"))
    .map(({ metadata }) => metadata.name);
}

async function podAddress(selector: string): Promise<string> {
  const { items } = await getJson<Pods>("-n", NS, "pods", "-l", selector);
  return items[0]?.status.podIP ?? "";
}

interface Slices {
  readonly items: readonly { readonly endpoints?: readonly { readonly conditions?: { readonly ready?: boolean } }[] }[];
}

async function readyEndpoints(service: string): Promise<number> {
  const { items } = await getJson<Slices>("-n", NS, "endpointslices", "-l", `kubernetes.io/service-name=${service}`);
  return items.flatMap(({ endpoints = [] }) => endpoints).filter(({ conditions }) => conditions?.ready === true).length;
}

/** Runs `work` while clients send requests, none of which may fail. */
async function underLoad(work: () => Promise<void>): Promise<void> {
  const load = new Load({ address, host: HOST, path: "/load" }, 8, 50);
  await work().finally(() => load.stop());
  const { requests, failures } = load;
  assert.ok(requests > 0);
  assert.deepEqual(failures.slice(0, 5), [], `${failures.length} of ${requests} requests failed`);
}

test("rolling the Deployment loses no request", { timeout: 400_000 }, () =>
  underLoad(async () => {
    await kubectl("-n", NS, "rollout", "restart", "deployment/web");
    await kubectl("-n", NS, "rollout", "status", "deployment/web", "--timeout=300s");
    await eventually(
      "the old pods to be gone",
      async () => {
        const { items } = await getJson<Pods>("-n", NS, "pods", "-l", SELECTOR);
        return items.length === 3;
      },
      180,
    );
  }),
);

test("deleting one pod after the other loses no request", { timeout: 400_000 }, () =>
  underLoad(async () => {
    for (const pod of await readyPods(NS, SELECTOR)) {
      await kubectl("-n", NS, "delete", "pod", pod, "--wait=true");
      await eventually("three ready pods", async () => (await readyPods(NS, SELECTOR)).length === 3, 120);
    }
  }),
);

// Before a controller is killed: the process of a pod that was deleted by force runs on for a while, and no object shows it.
test("without a controller a proxy keeps its configuration, and catches up later", { timeout: 300_000 }, async () => {
  await underLoad(async () => {
    await kubectl("-n", CONTROLLER_NAMESPACE, "scale", "deployment/tracegate", "--replicas=0");
    await eventually(
      "no controller",
      // Not even one that is about to stop, which would apply the route below.
      async () =>
        (await getJson<Pods>("-n", CONTROLLER_NAMESPACE, "pods", "-l", "tracegate=tracegate")).items.length === 0,
    );
    try {
      await apply(routeYaml(NS, "third", "web", "third.example.com", "/", "echo"));
      assert.equal((await get({ address, host: "third.example.com" })).status, 404);
    } finally {
      await kubectl("-n", CONTROLLER_NAMESPACE, "scale", "deployment/tracegate", "--replicas=1");
    }
    await eventually(
      "the new route",
      async () => (await get({ address, host: "third.example.com" })).status === 200,
      120,
    );
  });
});

test("killing the controller loses no request, and its successor applies changes", { timeout: 300_000 }, () =>
  underLoad(async () => {
    const controllers = await readyPods(CONTROLLER_NAMESPACE, "tracegate=tracegate");
    for (const pod of controllers)
      await kubectl("-n", CONTROLLER_NAMESPACE, "delete", "pod", pod, "--grace-period=0", "--force");
    await apply(routeYaml(NS, "second", "web", "second.example.com", "/", "echo"));
    await eventually(
      "the new route",
      async () => (await get({ address, host: "second.example.com" })).status === 200,
      120,
    );
  }),
);

test("an unusable certificate does not replace the former one, even if the controller is replaced", {
  timeout: 300_000,
}, async () => {
  const file = (name: string): string => readFileSync(`${appRoot}examples/recipes/certs/${name}`, "base64");
  const secret = (key: string) => `
---
apiVersion: v1
kind: Secret
metadata: {name: tls, namespace: ${NS}}
type: kubernetes.io/tls
data: {tls.crt: ${file("server.pem")}, tls.key: ${key}}
`;
  await apply(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: secure, namespace: ${NS}}
spec:
  gatewayClassName: tracegate
  listeners: [{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: tls}]}}]
${secret(file("server.key"))}`);
  const secure = await gatewayAddress(NS, "secure");
  const presented = async (): Promise<boolean> => {
    const socket = connect({ host: secure, port: 443, servername: "localhost", rejectUnauthorized: false });
    await once(socket, "secureConnect");
    socket.destroy();
    return true;
  };
  await eventually("a handshake", presented);
  const copies = async (): Promise<string> =>
    kubectl("-n", NS, "get", "secrets", "-l", "tracegate.dev/former-certificate", "-o", "name");
  await apply(secret("aGVsbG8="));
  await eventually("the copy of the former certificate", async () => (await copies()) !== "");
  await kubectl("-n", CONTROLLER_NAMESPACE, "rollout", "restart", "deployment/tracegate");
  await kubectl("-n", CONTROLLER_NAMESPACE, "rollout", "status", "deployment/tracegate", "--timeout=120s");
  // A new proxy has only what the new controller sends.
  await kubectl("-n", NS, "rollout", "restart", "deployment/secure");
  await kubectl("-n", NS, "rollout", "status", "deployment/secure", "--timeout=120s");
  await eventually("a handshake with the new proxy", presented);
  await kubectl("-n", NS, "delete", "secret", "tls");
  await eventually("the copy to go with its Secret", async () => (await copies()) === "");
});

const processes = clusterProcesses();

test(
  "a minute without the API server loses no request, and neither does a cluster that then takes its pods for lost",
  { timeout: 400_000, skip: processes === undefined ? "the processes of this cluster cannot be stopped" : false },
  () =>
    underLoad(async () => {
      const restart = processes?.killApiServer();
      const resumeReports = processes?.pause("kubelet");
      await new Promise((resolve) => setTimeout(resolve, 60_000));
      const restarted = restart?.();
      let resumeManager: (() => void) | undefined;
      try {
        await eventually("no ready endpoint", async () => (await readyEndpoints("echo")) === 0, 120);
        // Endpoints follow their pods late, because the controllers of the cluster reconnect after pauses.
        resumeManager = processes?.pause("kcm");
        resumeReports?.();
        await eventually("ready pods", async () => (await readyPods(NS, "app=echo")).length === 3, 60);
        await apply(routeYaml(NS, "fourth", "web", "fourth.example.com", "/", "echo"));
        // The Service of the proxies has no ready endpoint either, so nodes refuse new connections to its address.
        const proxy = await podAddress(SELECTOR);
        await eventually(
          "the new route",
          async () => (await get({ address: proxy, host: "fourth.example.com" })).status === 200,
          120,
        );
      } finally {
        resumeReports?.();
        resumeManager?.();
        await restarted;
      }
      // When a new pod is ready beside the others, the cluster has caught up.
      await kubectl("-n", NS, "scale", "deployment/echo", "--replicas=4");
      await eventually("four ready endpoints", async () => (await readyEndpoints("echo")) === 4, 180);
    }),
);
