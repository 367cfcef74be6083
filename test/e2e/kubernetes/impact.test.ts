/** What changed objects would do, through the API server, the controller and a proxy of it, with the requests that the proxy has got. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { LogOutput } from "../../../src/base/log.ts";
import { controllerSettings } from "../../../src/controller/base/settings.ts";
import { Controller } from "../../../src/controller/controller.ts";
import { componentFilter } from "../../../src/controller/log-levels.ts";
import { unguarded } from "../../../src/net/testing/egress.ts";
import { freePort } from "../../helpers/free-ports.ts";
import { GatewayProcess } from "../../helpers/gateway.ts";
import { Refused } from "../../helpers/kube/store.ts";
import { ofGateway, testCluster } from "../../helpers/kube/tgctl.ts";
import { ownAddress } from "../../helpers/own-address.ts";
import { until } from "../../helpers/until.ts";

const GATEWAY_API = "gateway.networking.k8s.io/v1";

/** A route with one rule for each path: its Service, and further fields of the rule. */
function route(rules: Readonly<Record<string, readonly [service: string, more?: object]>>): object {
  return {
    apiVersion: GATEWAY_API,
    kind: "HTTPRoute",
    metadata: { name: "shop", namespace: "shop" },
    spec: {
      parentRefs: [{ name: "web" }],
      rules: Object.entries(rules).map(([value, [name, more]]) => ({
        matches: [{ path: { type: "PathPrefix", value } }],
        backendRefs: [{ name, port: 80 }],
        ...more,
      })),
    },
  };
}

/** A cluster with a controller, the Gateway `shop/web`, its route and one proxy, which has got requests. */
async function cluster(t: TestContext) {
  const made = await testCluster(t);
  const { server } = made;
  const backend = createServer((_, response) => response.end("ok")).listen(0, ownAddress());
  await new Promise((resolve) => backend.once("listening", resolve));
  t.after(() => backend.close());
  const port = await freePort();
  for (const name of ["shop", "tracegate-system"])
    server.set({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
  server.set({
    apiVersion: GATEWAY_API,
    kind: "Gateway",
    metadata: { name: "web", namespace: "shop" },
    spec: { gatewayClassName: "tracegate", listeners: [{ name: "http", port, protocol: "HTTP" }] },
  } as never);
  for (const name of ["app", "app-v2"]) {
    server.set({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name, namespace: "shop" },
      spec: { clusterIP: "198.19.0.9", ports: [{ name: "web", port: 80 }] },
    } as never);
    server.set({
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name, namespace: "shop", labels: { "kubernetes.io/service-name": name } },
      addressType: "IPv4",
      ports: [{ name: "web", port: (backend.address() as AddressInfo).port }],
      endpoints: [{ addresses: [ownAddress()], conditions: { ready: true } }],
    } as never);
  }
  server.set(route({ "/": ["app"], "/admin": ["app"] }) as never);
  const env = { POD_NAME: "controller-1", POD_NAMESPACE: "tracegate-system", TRACEGATE_XDS_MODE: "plaintext" };
  const controller = await Controller.start({
    settings: {
      ...controllerSettings({ ...env, TRACEGATE_XDS_AUTH: "false" }, "0.0.0", "host"),
      ports: { admin: 0, metrics: 0, health: 0, xds: 0 },
    },
    access: server.access,
    version: "0.0.0",
    build: () => ({ version: "0.0.0" }),
    output: new LogOutput(componentFilter("error"), "json", () => {}, "component"),
    own: unguarded(),
  });
  t.after(() => controller.close());
  const gateway = await GatewayProcess.launch(
    {},
    {
      env: {
        XDS_ADDRESS: `http://127.0.0.1:${controller.ports.xds}`,
        NAMESPACE: "shop",
        GATEWAY: "web",
        POD_NAME: "web-1",
      },
    },
  );
  t.after(() => gateway.stop());
  await gateway.until(() => gateway.ready, "the proxy to serve");
  const get = async (path: string): Promise<number> => {
    const { status } = await fetch(`http://127.0.0.1:${port}${path}`);
    return status;
  };
  await until(async () => (await get("/")) === 200, "the route");
  for (let i = 0; i < 3; i++) assert.equal(await get("/admin"), 200);
  made.pod("web-1", { labels: ofGateway("web") });
  made.connect("web-1", 15000, Number(new URL(gateway.url("admin")).port));
  made.pod("controller-1", { namespace: "tracegate-system", labels: { tracegate: "tracegate" } });
  made.connect("controller-1", 9095, controller.ports.admin ?? 0, "tracegate-system");
  const file = join(made.folder, "objects.json");
  return {
    ...made,
    get,
    gateway,
    async impact(objects: readonly object[], ...words: readonly string[]) {
      await writeFile(file, objects.map((each) => JSON.stringify(each)).join("\n---\n"));
      return made.tgctl("impact", "gateway/web", "-n", "shop", "-f", file, ...words);
    },
  };
}

test("changed objects of a cluster", async (t) => {
  const { impact, folder, gateway, get, server, tgctl } = await cluster(t);

  await t.test("are judged by the requests of the proxies, and nothing is applied", async () => {
    const before = server.get("HTTPRoute", "shop/shop");
    const status = await statusOf(gateway);

    const moved = await impact([route({ "/": ["app"], "/admin": ["app-v2"] })]);
    assert.deepEqual([moved.code, moved.stderr], [0, ""]);
    assert.match(moved.stdout, /^ +3 go to shop\/app-v2:80 instead of shop\/app:80 .*3 samples\)$/m);

    // A policy that is new, with the object that it is about as it is.
    const policy = {
      apiVersion: "tracegate.dev/v1alpha1",
      kind: "TracegatePolicy",
      metadata: { name: "admins", namespace: "shop" },
      spec: {
        targetRefs: [{ group: "gateway.networking.k8s.io", kind: "HTTPRoute", name: "shop" }],
        traffic: { authorization: { rules: [{ deny: 'request.path.startsWith("/admin")' }] } },
      },
    };
    const refused = await impact([policy], "--fail-on", "refused");
    assert.deepEqual([refused.code, refused.stderr], [1, ""]);
    assert.match(
      refused.stdout,
      /^ +3 are refused with 403 by authorization at TracegatePolicy shop\/admins spec\.traffic\.authorization\.rules\[0\]/m,
    );

    assert.deepEqual(server.get("HTTPRoute", "shop/shop"), before);
    assert.equal(server.get("TracegatePolicy", "shop/admins"), undefined);
    assert.equal(await get("/admin"), 200);
    assert.deepEqual(await statusOf(gateway), status);
  });

  await t.test("what the controller would not accept, does not know or does not read is said", async () => {
    const deployment = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "app" }, spec: {} };
    const broken = await impact([route({ "/": ["app"], "/admin": ["gone"] }), deployment], "--fail-on", "moved");
    assert.equal(broken.code, 1);
    assert.match(broken.stdout, /^HTTPRoute shop\/shop: ResolvedRefs is not met, BackendNotFound: .*gone/m);
    assert.match(broken.stdout, /^Deployment shop\/app is ignored: the controller reads no such objects$/m);
    assert.match(broken.stdout, /^ +4 are refused with 500/m);

    const policy = {
      apiVersion: "tracegate.dev/v1alpha1",
      kind: "TracegatePolicy",
      metadata: { name: "keys" },
      spec: {
        targetRefs: [{ group: "gateway.networking.k8s.io", kind: "HTTPRoute", name: "shop" }],
        traffic: { apiKey: { mode: "strict", keys: [{ key: { secretKeyRef: { name: "keys", key: "acme" } } }] } },
      },
    };
    const { stdout, code } = await impact([policy], "-o", "json");
    assert.equal(code, 0);
    const { objects } = JSON.parse(stdout) as { objects: { missing: unknown } };
    assert.deepEqual(objects.missing, [{ kind: "Secret", key: "shop/keys" }]);

    const none = await impact([deployment]);
    assert.match(none.stderr, /no object that the controller reads/);
    const other = await tgctl("impact", "gateway/other", "-n", "shop", "-f", join(folder, "objects.json"));
    assert.equal(other.code, 1);
    await writeFile(join(folder, "objects.json"), "kind: HTTPRoute\nmetadata: {}\n");
    const wrong = await tgctl("impact", "gateway/web", "-n", "shop", "-f", folder);
    assert.match(wrong.stderr, /objects\.json:1: not an object of Kubernetes/);
  });

  await t.test("what the API server rejects is not judged", async () => {
    server.intercept = ({ method, query }) => {
      if (method === "PUT" && query.get("dryRun") === "All")
        throw new Refused(422, "Invalid", 'HTTPRoute "shop" is invalid: spec.rules: Too many', "shop");
    };
    const { code, stderr } = await impact([route({ "/": ["app"] })]);
    assert.equal(code, 1);
    assert.match(stderr, /the API server does not accept HTTPRoute shop\/shop: .*spec\.rules: Too many/);
  });
});

async function statusOf(gateway: GatewayProcess): Promise<unknown> {
  return (await fetch(`${gateway.url("admin")}/config/status`)).json();
}
