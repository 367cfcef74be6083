import { GATEWAY_GROUP, TRACEGATE_GROUP } from "../../../kube/objects.ts";
import type { Output, Owner } from "./output.ts";

interface ServiceReference {
  readonly name: string;
  readonly namespace?: string;
  readonly port: number;
}

/** The Service that a host names: `name.namespace.svc:port`, or `name:port` of the own namespace. */
export function serviceOf(host: string): ServiceReference | undefined {
  const [, name = "", namespace, port = ""] =
    /^([a-z](?:[a-z0-9-]*[a-z0-9])?)(?:\.([a-z0-9-]+)\.svc(?:\.[a-z0-9.-]+)?)?:(\d+)$/.exec(host) ?? [];
  if (name === "" || name === "localhost") return undefined;
  return { name, ...(namespace !== undefined && { namespace }), port: Number(port) };
}

/** Allows a reference into another namespace. */
export function grant(
  kind: "HTTPRoute" | "TracegatePolicy",
  { name, namespace }: ServiceReference,
  owner: Owner,
  output: Output,
): void {
  if (namespace === undefined || namespace === owner.namespace) return;
  if (owner.namespace === undefined) {
    output.findings.find(
      "warning",
      owner.at,
      `Service ${namespace}/${name} is in a namespace of its own`,
      "apply the objects there, or add a ReferenceGrant to it",
    );
    return;
  }
  const group = kind === "HTTPRoute" ? GATEWAY_GROUP : TRACEGATE_GROUP;
  output.share("ReferenceGrant", namespace, `${owner.namespace}-${name}`, {
    from: [{ group, kind, namespace: owner.namespace }],
    to: [{ group: "", kind: "Service", name }],
  });
}
