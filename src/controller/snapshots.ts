/** The controller's state as the admin server shows it. Contents of Secrets, and settings that may hold some, are left out. */
import { keyOfObject } from "../kube/objects.ts";
import type { GatewayState } from "../xds/resources.ts";
import type { Graph } from "./graph.ts";
import type { InputKind, Inputs } from "./inputs.ts";
import { desiredStatuses } from "./status/statuses.ts";

const REDACTED = "<redacted>";

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
      return object;
  }
}

function namesOf(data: object = {}): unknown {
  return Object.fromEntries(Object.keys(data).map((name) => [name, REDACTED]));
}

/** Names of the resources of each Gateway, whose contents may hold keys and passwords; and the statuses that objects should have. */
export function gatewaySnapshot(graph: Graph, published: ReadonlyMap<string, GatewayState>): unknown {
  const gateways = Array.from(published, ([key, { resources, addresses }]) => [
    key,
    { resources: [...resources.keys()].sort(), addresses: [...addresses.keys()].sort() },
  ]);
  return { gateways: Object.fromEntries(gateways), statuses: graph.query(desiredStatuses, "") };
}
