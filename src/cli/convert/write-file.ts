import { isSeq, type Node } from "yaml";
import type { Converted, ConvertedListener, ConvertedPort, ConvertedRoute, Place } from "./converted.ts";
import { Findings } from "./findings.ts";
import { compact, documentOf } from "./yaml.ts";

/** What was converted as a configuration file of tracegate. `findings`: more are added. */
export function writeFile(converted: Converted, findings = new Findings()): string {
  const { ports, routes, backends, frontendPolicies } = converted;
  const content = {
    gateways: Object.fromEntries(ports.map((each) => [each.name, gatewayOf(each, findings)])),
    ...(Object.keys(frontendPolicies).length > 0 && { frontendPolicies }),
    ...(backends.length > 0 && { backends }),
    routes: routes.map((each) => routeOf(each, findings)),
  };
  const document = documentOf(escaped(content));
  const written = document.get("routes");
  if (isSeq<Node>(written))
    written.items.forEach((item, i) => {
      const from = routes[i]?.from;
      // A line break would end the comment.
      if (from !== undefined) item.commentBefore = ` ${from.replace(/[\r\n]+/g, " ").slice(0, 120)}`;
    });
  compact(document.contents);
  return `# tracegate config\n${document.toString({ lineWidth: 0 })}`;
}

function gatewayOf({ port, addresses, listeners }: ConvertedPort, findings: Findings): object {
  return {
    port,
    ...(addresses !== undefined && { address: addresses.length === 1 ? addresses[0] : addresses }),
    listeners: listeners.map(({ name, hostname, tls, secret, at }: ConvertedListener) => {
      const pair = (key: string): string =>
        secret === undefined ? "" : fileOf(secret.namespace, secret.name, key, at, findings);
      return {
        name,
        hostname,
        ...(tls && { tls }),
        ...(secret && { tls: { cert: pair("tls.crt"), key: pair("tls.key") } }),
      };
    }),
  };
}

function routeOf(route: ConvertedRoute, findings: Findings): object {
  const { name, listeners, hostnames, matches } = route;
  const [policies, backends] = [route.policies, route.backends].map((each) =>
    withFiles(each, false, route, findings),
  ) as [object, readonly unknown[]];
  return {
    name,
    gateways: listeners,
    ...(hostnames !== undefined && { hostnames }),
    ...(matches.length > 0 && { matches }),
    ...(Object.keys(policies).length > 0 && { policies }),
    ...(backends.length > 0 && { backends }),
  };
}

/** Files in place of keys of Secrets. `isTls`: in `backendTLS`, whose fields are names of files. */
function withFiles(value: unknown, isTls: boolean, route: ConvertedRoute, findings: Findings): unknown {
  if (Array.isArray(value)) return value.map((each) => withFiles(each, isTls, route, findings));
  if (typeof value !== "object" || value === null) return value;
  if ("secretKeyRef" in value) {
    const { name, key } = value.secretKeyRef as { readonly name: string; readonly key: string };
    const file = fileOf(route.namespace ?? "", name, key, route.at, findings);
    return isTls ? file : { file };
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      withFiles(each, isTls || name === "backendTLS", route, findings),
    ]),
  );
}

/** Where a key of a Secret has to be written. */
function fileOf(namespace: string, name: string, key: string, at: Place, findings: Findings): string {
  const file = `secrets/${namespace}/${name}/${key}`;
  const escapedKey = key.replaceAll(".", "\\.");
  findings.find(
    "note",
    at,
    `key ${key} of Secret ${namespace}/${name} becomes the file ${file}`,
    `kubectl -n ${namespace} get secret ${name} -o jsonpath='{.data.${escapedKey}}' | base64 -d > ${file}`,
  );
  return file;
}

/** A dollar sign would name a variable of the environment. */
function escaped(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll("$", "$$$$");
  if (Array.isArray(value)) return value.map(escaped);
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, escaped(each)]));
  return value;
}
