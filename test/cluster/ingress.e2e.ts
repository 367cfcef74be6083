/** Ingresses on a real cluster: traffic, certificates, what their status and Events say. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { connect } from "node:tls";
import { appRoot } from "../../src/base/app-root.ts";
import { get } from "./lib/http.ts";
import { echoYaml, namespaceYaml } from "./lib/objects.ts";
import { INGRESS_GATEWAY } from "./lib/setup.ts";
import { apply, eventually, gatewayAddress, getJson, kubectl } from "./lib/tools.ts";

const { namespace: NS, name: GATEWAY } = INGRESS_GATEWAY;
const HOST = "shop.example.com";
let address = "";

before(async () => {
  await apply(`${namespaceYaml(NS)}${echoYaml(NS, "shop")}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: ${GATEWAY}, namespace: ${NS}}
spec:
  gatewayClassName: tracegate
  allowedListeners: {namespaces: {from: Same}}
  listeners: [{name: http, port: 80, protocol: HTTP}]
`);
  address = await gatewayAddress(NS, GATEWAY);
});

after(() => kubectl("delete", "namespace", NS, "--wait=false"));

function ingressYaml(annotations = "{}"): string {
  const file = (name: string): string => readFileSync(`${appRoot}examples/recipes/certs/${name}`, "base64");
  return `
apiVersion: v1
kind: Secret
metadata: {name: tls, namespace: ${NS}}
type: kubernetes.io/tls
data: {tls.crt: ${file("server.pem")}, tls.key: ${file("server.key")}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: ${NS}, annotations: ${annotations}}
spec:
  ingressClassName: tracegate
  tls: [{hosts: [localhost], secretName: tls}]
  rules:
    - host: ${HOST}
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]}
`;
}

interface IngressStatus {
  readonly status: {
    readonly loadBalancer: {
      readonly ingress?: readonly { readonly ip: string; readonly ports?: readonly { readonly error?: string }[] }[];
    };
  };
}

async function statusOf(): Promise<IngressStatus["status"]["loadBalancer"]["ingress"]> {
  return (await getJson<IngressStatus>("-n", NS, "ingress", "shop")).status.loadBalancer.ingress;
}

test("an Ingress is served at the addresses of the Gateway, with its certificate", async () => {
  await apply(ingressYaml());
  await eventually("traffic", async () => (await get({ address, host: HOST })).status === 200);
  const addresses = await eventually("its status", statusOf);
  assert.deepEqual(addresses, [{ ip: address }]);
  await eventually("a handshake", async () => {
    const socket = connect({ host: address, port: 443, servername: "localhost", rejectUnauthorized: false });
    await once(socket, "secureConnect");
    socket.destroy();
    return true;
  });
});

test("annotations of other controllers stop its traffic, and its status and an Event say so", async () => {
  await apply(ingressYaml(`{nginx.ingress.kubernetes.io/whitelist-source-range: 192.0.2.0/24}`));
  await eventually("500", async () => (await get({ address, host: HOST })).status === 500);
  await eventually("its status", async () =>
    (await statusOf())?.some(({ ports = [] }) =>
      ports.some(({ error }) => error === "tracegate.dev/UnsupportedAnnotation"),
    ),
  );
  const events = await eventually("an Event", async () => {
    const text = await kubectl("-n", NS, "get", "events", "-o", "jsonpath={.items[*].message}");
    return text.includes("whitelist-source-range") && text;
  });
  assert.match(events, /traffic\.ipAccess\.allow of a TracegatePolicy/);
  await kubectl("-n", NS, "annotate", "ingress", "shop", "nginx.ingress.kubernetes.io/whitelist-source-range-");
  await eventually("traffic", async () => (await get({ address, host: HOST })).status === 200);
  await eventually("its status", async () => (await statusOf())?.every(({ ports = [] }) => ports.length === 0));
});
