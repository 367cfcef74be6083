/** Gateways of two namespaces that share proxies on a real cluster: how they move there and back, and what they may not do. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sharedDeploymentName } from "../../src/controller/base/manifest.ts";
import { get, Load } from "./lib/http.ts";
import { namespaceYaml } from "./lib/objects.ts";
import { apply, eventually, gatewayAddress, getJson, kubectl, tgctl } from "./lib/tools.ts";

const INFRA = "e2e-edge";
const TEAMS = ["e2e-team-a", "e2e-team-b"] as const;
const CLASS = "e2e-shared";

const parametersYaml = (spec: string): string => `
---
apiVersion: tracegate.dev/v1alpha1
kind: TracegateParameters
metadata: {name: shared, namespace: ${INFRA}}
spec: ${spec}
`;
/** Server-side apply turns a spec that becomes empty into null, which its schema rejects. */
const OWN = "{shutdown: {min: 5}}";
const MERGING =
  "{shutdown: {min: 5}, mergeGateways: {namespaces: {from: Selector, selector: {matchLabels: {e2e: shared}}}}}";

function gatewayYaml(namespace: string, hosts: readonly string[]): string {
  const listeners = hosts.map((host, i) => `{name: http-${i}, port: 80, protocol: HTTP, hostname: "${host}"}`);
  return `
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: ${namespace}}
spec:
  gatewayClassName: ${CLASS}
  listeners: [${listeners.join(", ")}]
`;
}

/** Responds to all requests with the name of the namespace. */
function routeYaml(namespace: string): string {
  return `
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: all, namespace: ${namespace}}
spec:
  parentRefs: [{name: web}]
  rules: [{filters: [{type: ExtensionRef, extensionRef: {group: tracegate.dev, kind: TracegatePolicy, name: answer}}]}]
---
apiVersion: tracegate.dev/v1alpha1
kind: TracegatePolicy
metadata: {name: answer, namespace: ${namespace}}
spec:
  traffic: {directResponse: {status: 200, body: ${namespace}}}
`;
}

const hostOf = (namespace: string): string => `www.${namespace}.example.com`;

before(() =>
  apply(
    `${namespaceYaml(INFRA)}${parametersYaml(OWN)}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: ${CLASS}}
spec:
  controllerName: tracegate.dev/gateway-controller
  parametersRef: {group: tracegate.dev, kind: TracegateParameters, name: shared, namespace: ${INFRA}}
${TEAMS.map(
  (team) => `
---
apiVersion: v1
kind: Namespace
metadata: {name: ${team}, labels: {e2e: shared}}
${gatewayYaml(team, [`*.${team}.example.com`])}${routeYaml(team)}`,
).join("")}`,
  ),
);

after(async () => {
  await kubectl("delete", "namespace", ...TEAMS, INFRA, "--wait=false");
  await kubectl("delete", "gatewayclass", CLASS);
});

interface Status {
  readonly status?: {
    readonly addresses?: readonly { readonly value: string }[];
    readonly conditions?: readonly Condition[];
    readonly listeners?: readonly { readonly name: string; readonly conditions: readonly Condition[] }[];
  };
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
}

const statusOf = async (team: string) => (await getJson<Status>("-n", team, "gateway", "web")).status;

/** Names of the Deployments of a namespace. */
async function deployments(namespace: string): Promise<string> {
  const list = await getJson<{ items: { metadata: { name: string } }[] }>("-n", namespace, "deployments");
  return list.items.map(({ metadata }) => metadata.name).join();
}

test("Gateways move to shared proxies and back; each serves its hosts, takes none of the other's, and loses no request before its status has the new address", async () => {
  const [a, b] = TEAMS;
  const own = await gatewayAddress(a, "web");
  assert.notEqual(await gatewayAddress(b, "web"), own);
  await eventually("traffic", async () => (await get({ address: own, host: hostOf(a) })).body === a);

  const load = new Load({ address: own, host: hostOf(a) }, 4, 200);
  let failures: readonly string[] | undefined;
  await apply(parametersYaml(MERGING));
  const shared = await eventually("the shared address", async () => {
    const before = [...load.failures];
    const { addresses: [address] = [] } = (await statusOf(a)) ?? {};
    failures ??= address?.value === own ? undefined : before;
    return address !== undefined && address.value !== own && address.value;
  });
  await load.stop();
  assert.deepEqual(failures, []);
  assert.ok(load.requests > 0);
  await eventually("the same address", async () => (await statusOf(b))?.addresses?.[0]?.value === shared);
  for (const team of TEAMS) {
    assert.equal((await get({ address: shared, host: hostOf(team) })).body, team);
    await eventually("the end of its own proxies", async () => (await deployments(team)) === "");
  }
  assert.equal(await deployments(INFRA), sharedDeploymentName(CLASS));

  await apply(gatewayYaml(b, [`*.${b}.example.com`, hostOf(a)]));
  await eventually("the conflict", async () => {
    const listener = (await statusOf(b))?.listeners?.find(({ name }) => name === "http-1");
    return listener?.conditions.find(({ type }) => type === "Conflicted")?.reason === "HostnameConflict";
  });
  assert.equal((await get({ address: shared, host: hostOf(a) })).body, a);
  const listeners = await tgctl("config", "listeners", "gateway/web", "-n", b);
  for (const team of TEAMS) assert.match(listeners.stdout, new RegExp(`${team}/web`), listeners.stderr);
  const status = await tgctl("status", "gateway/web", "-n", b);
  assert.match(status.stdout, /synchronized/, status.stderr);

  await apply(parametersYaml(OWN));
  await eventually("the end of the shared proxies", async () => (await deployments(INFRA)) === "");
  const back = await gatewayAddress(a, "web");
  assert.notEqual(back, shared);
  await eventually("traffic", async () => (await get({ address: back, host: hostOf(a) })).body === a);

  await apply(parametersYaml(MERGING));
  await eventually("the shared proxies", async () => (await deployments(INFRA)) === sharedDeploymentName(CLASS));
  for (const team of TEAMS) await kubectl("delete", "-n", team, "gateway", "web");
  await eventually("the end", async () => (await deployments(INFRA)) === "");
});
