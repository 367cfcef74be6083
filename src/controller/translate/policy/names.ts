/** What policies may refer to in a cluster: texts in Secrets and ConfigMaps, Services and TracegateBackends. */
import type { Path } from "../../../base/paths.ts";
import type { Report } from "../../../translation/problems/problem.ts";
import type { BackendRef, ClusterNames, TextPlace } from "../../crd/references.ts";
import type { Read } from "../../graph/graph.ts";
import { keyOfService } from "../cluster/discovery.ts";
import { isGranted } from "../model/grants.ts";

/** The object whose spec refers to others. */
export interface Referrer {
  readonly kind: "TracegatePolicy" | "TracegateBackend";
  readonly namespace: string;
}

/** A Service or TracegateBackend that is called. */
export type Callee =
  | { readonly kind: "Service"; readonly namespace: string; readonly name: string; readonly port: number }
  | { readonly kind: "TracegateBackend"; readonly namespace: string; readonly name: string };

/** Resolves references; `unreadable` is called for texts that a field needs and that are not there. */
export function clusterNames(
  read: Read,
  from: Referrer,
  callees: Callee[],
  report: Report,
  unreadable: () => void,
): ClusterNames {
  return {
    namespace: from.namespace,
    text: (place, path) => {
      const found = readText(read, place);
      if ("text" in found) return found.text;
      report(path, { message: found.problem });
      unreadable();
      return undefined;
    },
    backend: (ref, path) => {
      const callee = findCallee(read, from, ref, path, report);
      if (callee === undefined) return undefined;
      callees.push(callee);
      return callee.kind === "Service"
        ? { service: { name: keyOfService(callee.namespace, callee.name), port: callee.port } }
        : { backend: nameOfBackend(callee) };
    },
  };
}

/** How the file syntax names a TracegateBackend. */
export function nameOfBackend({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `/${namespace}/${name}`;
}

/** The text at a place, or the reason why it is missing. Never shows other content of the object. */
export function readText(
  read: Read,
  { kind, namespace, name, key }: TextPlace,
): { readonly text: string } | { readonly problem: string } {
  const what = `${kind} ${namespace}/${name}`;
  if (kind === "Secret") {
    const secret = read.get("Secret", `${namespace}/${name}`);
    if (secret === undefined) return { problem: `${what} not found` };
    const data = valueAt(secret.data, key);
    return data === undefined ? noKey(what, key) : { text: Buffer.from(data, "base64").toString("utf8") };
  }
  const map = read.get("ConfigMap", `${namespace}/${name}`);
  if (map === undefined) return { problem: `${what} not found` };
  const text = valueAt(map.data, key);
  if (text !== undefined) return { text };
  const data = valueAt(map.binaryData, key);
  return data === undefined ? noKey(what, key) : { text: Buffer.from(data, "base64").toString("utf8") };
}

/** Keys are as users write them, `constructor` among them. */
function valueAt(data: Readonly<Record<string, string>> | undefined, key: string): string | undefined {
  return data !== undefined && Object.hasOwn(data, key) ? data[key] : undefined;
}

function noKey(what: string, key: string): { readonly problem: string } {
  return { problem: `${what} has no key ${key}` };
}

function findCallee(
  read: Read,
  from: Referrer,
  { group, kind, name, namespace = from.namespace, port }: BackendRef,
  path: Path,
  report: Report,
): Callee | undefined {
  const actual = kind === "Service" ? "" : "tracegate.dev";
  if (group !== undefined && group !== actual) {
    report(path, { message: `${kind} is not a kind of the group ${JSON.stringify(group)}` });
    return undefined;
  }
  const what = `${kind} ${namespace}/${name}`;
  const source = { group: "tracegate.dev", kind: from.kind, namespace: from.namespace };
  if (!isGranted(read, source, { group: actual, kind, namespace, name })) {
    const wanted = `a ReferenceGrant in ${namespace} for ${from.kind} of ${from.namespace}`;
    report(path, {
      message: `${what} is in another namespace, and no ReferenceGrant permits the reference`,
      expected: wanted,
    });
    return undefined;
  }
  if (kind === "TracegateBackend") {
    if (read.get("TracegateBackend", `${namespace}/${name}`) !== undefined) return { kind, namespace, name };
    report(path, { message: `${what} not found` });
    return undefined;
  }
  const service = read.get("Service", `${namespace}/${name}`);
  if (service === undefined) {
    report(path, { message: `${what} not found` });
    return undefined;
  }
  const ports = (service.spec.ports ?? []).map((each) => each.port);
  if (port !== undefined && ports.includes(port)) return { kind, namespace, name, port };
  const message = port === undefined ? "port is required for a Service" : `${what} has no port ${port}`;
  report(path, { message, ...(ports.length > 0 && { expected: `one of ${ports.join(", ")}` }) });
  return undefined;
}
