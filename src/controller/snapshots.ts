/** What the admin server shows of the controller. Contents of Secrets, and settings that may hold some, are left out. */
import { keyOfObject, type Secret } from "../kube/objects.ts";
import type { GatewayState } from "../xds/resources.ts";
import type { Graph } from "./graph.ts";
import { desiredStatuses } from "./status/statuses.ts";

const REDACTED = "<redacted>";

/** Objects by kind and key. */
export function objectSnapshot(graph: Graph): unknown {
  return Object.fromEntries(
    graph.kinds.map((kind) => {
      const objects = graph
        .list(kind)
        .map((object) => [keyOfObject(object), object.kind === "Secret" ? redacted(object) : object]);
      return [kind, Object.fromEntries(objects)];
    }),
  );
}

function redacted(secret: Secret): Secret {
  return { ...secret, data: Object.fromEntries(Object.keys(secret.data ?? {}).map((name) => [name, REDACTED])) };
}

/** Names of the resources of each Gateway, whose contents may hold keys and passwords; and the statuses that objects should have. */
export function gatewaySnapshot(graph: Graph, published: ReadonlyMap<string, GatewayState>): unknown {
  const gateways = Array.from(published, ([key, { resources, addresses }]) => [
    key,
    { resources: [...resources.keys()].sort(), addresses: [...addresses.keys()].sort() },
  ]);
  return { gateways: Object.fromEntries(gateways), statuses: graph.query(desiredStatuses, "") };
}
