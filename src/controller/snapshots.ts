/** The controller's state as the admin server shows it. Contents of Secrets, and settings that may hold some, are left out. */
import { REDACTED, SECRET_PARAMETERS } from "../base/redaction.ts";
import { SENSITIVE_HEADERS, SensitiveNames } from "../base/sensitive-names.ts";
import { keyOfObject } from "../kube/keys.ts";
import type { GatewayState } from "../xds/resources.ts";
import type { Graph } from "./graph/graph.ts";
import type { InputKind, Inputs } from "./graph/inputs.ts";
import { desiredStatuses } from "./status/statuses.ts";

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
const SECRETS = new SensitiveNames(SENSITIVE_HEADERS);

/** Objects by kind and key. */
export function objectSnapshot(graph: Graph): unknown {
  return Object.fromEntries(
    graph.kinds.map((kind) => {
      const objects = graph.list(kind).map((object) => [keyOfObject(object), redacted(object)]);
      return [kind, Object.fromEntries(objects)];
    }),
  );
}

/** Custom resources may have keys and passwords anywhere, ConfigMaps of others as well. */
function redacted(object: Inputs[InputKind]): unknown {
  switch (object.kind) {
    case "Secret":
      return { ...object, data: namesOf((object as Inputs["Secret"]).data) };
    case "ConfigMap": {
      const { data, binaryData } = object as Inputs["ConfigMap"];
      return { ...object, data: namesOf(data), binaryData: namesOf(binaryData) };
    }
    case "FormerCertificate":
      return { ...object, certificate: REDACTED };
    case "TracegatePolicy":
    case "TracegateBackend":
    case "TracegateParameters":
      return { ...object, spec: REDACTED };
    default:
      return withoutMatches(object);
  }
}

/** A value that a route compares a secret header or parameter with, or sets it to, is secret; the copy of the applied object contains it too. */
function withoutMatches(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutMatches);
  const { name } = value as { readonly name?: unknown };
  const secret = typeof name === "string" && (SECRETS.has(name) || SECRET_PARAMETERS.has(name));
  const entries = Object.entries(value).map(([key, each]) => {
    const hidden = key === LAST_APPLIED || (secret && key === "value");
    return [key, hidden ? REDACTED : withoutMatches(each)];
  });
  return Object.fromEntries(entries);
}

function namesOf(data: object = {}): unknown {
  return Object.fromEntries(Object.keys(data).map((name) => [name, REDACTED]));
}

/**
 * Names of the resources of each Gateway, or of a class whose Gateways share proxies, whose contents may hold keys and passwords; and the
 * statuses that objects should have.
 */
export function gatewaySnapshot(
  graph: Graph,
  published: ReadonlyMap<string, { readonly state: GatewayState }>,
): unknown {
  const gateways = Array.from(
    published,
    ([
      key,
      {
        state: { resources, addresses },
      },
    ]) => [key, { resources: [...resources.keys()].sort(), addresses: [...addresses.keys()].sort() }],
  );
  return { gateways: Object.fromEntries(gateways), statuses: graph.query(desiredStatuses, "") };
}
