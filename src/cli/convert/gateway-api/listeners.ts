/** The Gateway, and ListenerSets for what does not fit into it or belongs to other namespaces. */
import { GATEWAY_GROUP } from "../../../kube/objects.ts";
import type { Converted, ConvertedListener, ConvertedPort, Json } from "../converted.ts";
import type { Output } from "./output.ts";

/** Of a Gateway or ListenerSet, by the Gateway API. */
const MAX_LISTENERS = 64;

interface WrittenListener {
  /** `<port>/<listener>` */
  readonly key: string;
  readonly port: ConvertedPort;
  readonly listener: ConvertedListener;
  readonly name: string;
}

/** By `<port>/<listener>`: the `parentRef` of routes. */
export type ParentRefs = ReadonlyMap<string, Json>;

const GATEWAY = "web";

/** Writes the Gateway. `namespace`: its own. */
export function writeGateway(converted: Converted, namespace: string | undefined, output: Output): ParentRefs {
  const { ports, routes, frontendPolicies } = converted;
  const all = ports.flatMap((port) => {
    const roots = new Set(port.listeners.map(({ tls }) => JSON.stringify([tls?.root, tls?.clientCertificates])));
    return port.listeners.flatMap((listener): WrittenListener | [] => {
      if (roots.size > 1 && listener.tls?.root !== undefined) {
        output.findings.find(
          "error",
          listener.at,
          `${listener.hostname} is left out: client certificates are required of a whole port, not of a host`,
          "give it a port of its own, and set spec.tls.frontend of the Gateway",
        );
        return [];
      }
      const name = port.listeners.length === 1 ? port.name : `${port.name}-${listener.name}`;
      return { key: `${port.name}/${listener.name}`, port, listener, name };
    });
  });
  for (const { port, addresses, listeners } of ports)
    if (addresses !== undefined && listeners[0] !== undefined)
      output.findings.find(
        "warning",
        listeners[0].at,
        `port ${port} is open on the addresses of the Gateway, not only on ${addresses.join(", ")}`,
        "restrict its Service by TracegateParameters",
      );
  const isOwn = ({ listener }: WrittenListener): boolean =>
    listener.secret === undefined || listener.secret.namespace === namespace;
  const own = all.filter(isOwn).slice(0, MAX_LISTENERS);
  const others = Map.groupBy(
    all.filter((each) => !own.includes(each)),
    ({ listener }) => listener.secret?.namespace ?? namespace,
  );
  const refs = new Map<string, Json>();
  const namespaces = [...new Set(routes.flatMap((each) => each.namespace ?? []))];
  const name = output.add("Gateway", namespace, GATEWAY, {
    gatewayClassName: "tracegate",
    ...(others.size > 0 && { allowedListeners: { namespaces: from([...others.keys()], namespace) } }),
    listeners: own.map((each) => {
      const isForAll = each.listener.secret === undefined;
      return written(each, namespace, isForAll ? from(namespaces, namespace) : undefined, output);
    }),
    ...clientCertificates(ports, namespace, output),
  });
  const gateway = { name, ...(namespace !== undefined && { namespace }) };
  for (const each of own) refs.set(each.key, { ...gateway, sectionName: each.name });
  for (const [owner, listeners] of others)
    for (let i = 0; i < listeners.length; i += MAX_LISTENERS) {
      const part = listeners.slice(i, i + MAX_LISTENERS);
      const set = output.add("ListenerSet", owner, GATEWAY, {
        parentRef: gateway,
        listeners: part.map((each) => written(each, owner, undefined, output)),
      });
      const parent = { group: GATEWAY_GROUP, kind: "ListenerSet", name: set };
      for (const each of part)
        refs.set(each.key, {
          ...parent,
          ...(owner !== undefined && { namespace: owner }),
          sectionName: each.name,
        });
    }
  if (Object.keys(frontendPolicies).length > 0)
    output.add("TracegatePolicy", namespace, GATEWAY, { targetRefs: [target(name)], frontend: frontendPolicies });
  for (const { listener, name: section } of own) {
    const { minTLSVersion, maxTLSVersion } = listener.tls ?? {};
    if (minTLSVersion !== undefined || maxTLSVersion !== undefined)
      output.add("TracegatePolicy", namespace, section, {
        targetRefs: [{ ...target(name), sectionName: section }],
        frontend: {
          tls: {
            ...(minTLSVersion !== undefined && { minVersion: minTLSVersion }),
            ...(maxTLSVersion !== undefined && { maxVersion: maxTLSVersion }),
          },
        },
      });
  }
  return refs;
}

function target(name: string): Json {
  return { group: GATEWAY_GROUP, kind: "Gateway", name };
}

/** Namespaces as `from` selects them; undefined: the own one, which is the default. */
function from(namespaces: readonly (string | undefined)[], own: string | undefined): Json | undefined {
  const named = namespaces.filter((each) => each !== undefined);
  if (named.every((each) => each === own)) return undefined;
  const values = [...new Set(named)].sort();
  return {
    from: "Selector",
    selector: { matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "In", values }] },
  };
}

function written(
  { port, listener, name }: WrittenListener,
  namespace: string | undefined,
  allowed: Json | undefined,
  output: Output,
): Json {
  const { hostname, tls, secret, at } = listener;
  const isTls = tls !== undefined || secret !== undefined;
  return {
    name,
    port: port.port,
    protocol: isTls ? "HTTPS" : "HTTP",
    ...(hostname !== "*" && { hostname }),
    ...(isTls && { tls: { certificateRefs: certificates(listener, namespace, output, at) } }),
    ...(allowed !== undefined && { allowedRoutes: { namespaces: allowed } }),
  };
}

function certificates(
  { hostname, tls = {}, secret }: ConvertedListener,
  namespace: string | undefined,
  output: Output,
  at: ConvertedListener["at"],
): readonly Json[] {
  if (secret !== undefined) return [{ name: secret.name }];
  const wanted = `${hostname === "*" ? "default" : hostname.replace(/^\*\./, "wildcard.").replaceAll(".", "-")}-tls`;
  const { cert, key, acme, mode, otherCertificates = [] } = tls;
  if (acme !== undefined || mode === "dynamicCa") {
    const name = output.tlsSecretOfOthers(namespace, wanted);
    const how = acme !== undefined ? "are not ordered by ACME on a cluster" : "are not made on demand on a cluster";
    output.findings.find(
      "error",
      at,
      `certificates ${how}: Secret ${name} has to be there`,
      "let cert-manager write it, by an annotation of the Gateway",
    );
    return [{ name }];
  }
  const pairs = [{ cert, key }, ...(otherCertificates as readonly Json[])];
  return pairs.map((pair) => ({
    name: output.tlsSecret(namespace, wanted, String(pair.cert), String(pair.key), at),
  }));
}

/** Client certificates of ports all of whose listeners require the same. */
function clientCertificates(ports: readonly ConvertedPort[], namespace: string | undefined, output: Output): Json {
  const perPort = ports.flatMap(({ port, listeners }): Json | [] => {
    const [first] = listeners;
    const { root, clientCertificates: mode } = first?.tls ?? {};
    const isSame = listeners.every(({ tls }) => tls?.root === root && tls?.clientCertificates === mode);
    if (first === undefined || typeof root !== "string" || !isSame) return [];
    const name = output.objectOfFile("ConfigMap", namespace, root, first.at, "ca.crt");
    const validation = {
      ...(mode === "optional" && { mode: "AllowInsecureFallback" }),
      caCertificateRefs: [{ group: "", kind: "ConfigMap", name }],
    };
    return { port, tls: { validation } };
  });
  // `default` is required.
  return perPort.length === 0 ? {} : { tls: { frontend: { default: {}, perPort } } };
}
