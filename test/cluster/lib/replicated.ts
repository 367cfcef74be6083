/** A Gateway whose proxies and backend run more than once, so that a test may take some of them away. */
import { get } from "./http.ts";
import { echoYaml, gatewayYaml, namespaceYaml, routeYaml } from "./objects.ts";
import { apply, eventually, gatewayAddress, kubectl } from "./tools.ts";

/**
 * Makes a namespace with Gateway `web` of three proxies, which sends all requests for `host` to Service `echo` of three pods.
 * Resolves with the Gateway's address, when all of them run.
 */
export async function applyReplicated(namespace: string, host: string): Promise<string> {
  await apply(
    namespaceYaml(namespace) +
      echoYaml(namespace, "echo", 3) +
      `
---
apiVersion: tracegate.dev/v1alpha1
kind: TracegateParameters
metadata: {name: three, namespace: ${namespace}}
spec:
  deployment: {spec: {replicas: 3}}
` +
      gatewayYaml(
        namespace,
        "web",
        "  infrastructure: {parametersRef: {group: tracegate.dev, kind: TracegateParameters, name: three}}",
      ) +
      routeYaml(namespace, "main", "web", host, "/", "echo"),
  );
  const address = await gatewayAddress(namespace, "web");
  for (const deployment of ["web", "echo"])
    await kubectl("-n", namespace, "rollout", "status", `deployment/${deployment}`, "--timeout=180s");
  await eventually("traffic", async () => (await get({ address, host })).status === 200);
  return address;
}
