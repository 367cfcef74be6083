/**
 * What changed objects would make of a Gateway, before anybody applies them. The objects take the place of those in the cluster in a copy of
 * the graph, so the translation is that of the controller, and nothing that it does depends on them.
 */
import type { PreviewProblem, PreviewReport } from "../admin/client/controller-client.ts";
import { AdminBadRequest } from "../admin/plane/plane.ts";
import { messageOf } from "../base/errors.ts";
import { fieldsOf } from "../base/fields.ts";
import { keyOfObject } from "../kube/keys.ts";
import type { Kind, Secret } from "../kube/objects.ts";
import { RESOURCES } from "../kube/resources.ts";
import { type GatewayState, mergeStates } from "../xds/resources.ts";
import { isWritten, scopesOf, WATCHED } from "./base/watched.ts";
import { replacementBy } from "./certificates.ts";
import type { Graph } from "./graph/graph.ts";
import { formerCertificate, type InputKind, type Inputs } from "./graph/inputs.ts";
import type { DesiredStatus } from "./status/desired.ts";
import { desiredStatuses } from "./status/statuses.ts";
import { gatewayState } from "./translate/gateway-state.ts";
import { fleetOf, membersOfClass } from "./translate/model/fleets.ts";

/** Read one by one, when something refers to them. */
const REFERENCED = ["Secret", "ConfigMap", "FetchedDocument"] as const satisfies readonly InputKind[];
/** Conditions that are true where something is wrong. */
const BAD: ReadonlySet<string> = new Set(["PartiallyInvalid", "Conflicted"]);

/**
 * The state of the proxies that serve a Gateway (`<namespace>/<name>`), and the key of their fleet, with these objects in place of those in `graph`, which does not change. `namespaces`: those that
 * the controller watches; empty: all. Throws AdminBadRequest for other things than objects, and if there is no such Gateway.
 */
export function preview(
  graph: Graph,
  gateway: string,
  objects: readonly unknown[],
  namespaces: readonly string[],
): { readonly fleet: string; readonly state: GatewayState; readonly report: PreviewReport } {
  const changed = objects.map((each, index) => readObject(each, index, namespaces));
  const copy = graph.copy();
  for (const object of changed) {
    if (object.kind === "Secret") replaceCertificate(copy, object as Secret);
    copy.set(object);
  }
  // The proxies that are there: the objects may be what moves the Gateway to others.
  const { key: fleet } = graph.query(fleetOf, gateway);
  const { state, statuses } = translated(copy, gateway);
  if (state === undefined) throw new AdminBadRequest(`no Gateway ${gateway} of this controller`);
  const problems = changed.flatMap((object) =>
    statuses
      .filter(({ kind, key }) => kind === object.kind && key === keyOfObject(object))
      .flatMap((status) => problemsIn(status)),
  );
  const missing = REFERENCED.flatMap((kind) =>
    [...copy.askedFor(kind)]
      .filter((key) => copy.get(kind, key) === undefined && !graph.isAskedFor(kind, key))
      .map((key) => ({ kind, key })),
  );
  return { fleet, state, report: { problems, missing } };
}

function translated(
  graph: Graph,
  gateway: string,
): { readonly state: GatewayState | undefined; readonly statuses: readonly DesiredStatus[] } {
  try {
    const own = graph.query(gatewayState, gateway);
    const { key } = graph.query(fleetOf, gateway);
    const gateways = key === gateway ? [] : graph.query(membersOfClass, gatewayClassOf(graph, gateway));
    const states = gateways.flatMap((each) => graph.query(gatewayState, each) ?? []);
    const state = own === undefined || states.length === 0 ? own : mergeStates(states);
    return { state, statuses: graph.query(desiredStatuses, "") };
  } catch (error) {
    // Translation takes the shape of objects for granted.
    throw new AdminBadRequest(`the objects must be as the API server returns them: ${messageOf(error)}`);
  }
}

function gatewayClassOf(graph: Graph, gateway: string): string {
  return graph.get("Gateway", gateway)?.spec.gatewayClassName ?? "";
}

/** As when the Secret changes in the cluster. */
function replaceCertificate(graph: Graph, secret: Secret): void {
  const replacement = replacementBy(secret, graph);
  if (replacement === "used") graph.delete("FormerCertificate", keyOfObject(secret));
  else if (replacement !== undefined) graph.set(formerCertificate(secret, replacement.inUse));
}

/** As the controller keeps it. */
function readObject(value: unknown, index: number, namespaces: readonly string[]): Inputs[InputKind] {
  const { kind, metadata } = fieldsOf(value);
  const { name, namespace = "" } = fieldsOf(metadata);
  const what = typeof kind === "string" && typeof name === "string" ? `${kind} ${name}` : `object ${index + 1}`;
  if (typeof kind !== "string" || typeof name !== "string" || typeof namespace !== "string")
    throw new AdminBadRequest(`${what}: kind, metadata.name and metadata.namespace must be texts`);
  if (!isWritten(kind)) throw new AdminBadRequest(`${what}: the controller reads no such objects of people`);
  const { namespaced } = RESOURCES[kind];
  if (namespaced && namespace === "") throw new AdminBadRequest(`${what}: metadata.namespace is missing`);
  const scopes = scopesOf(kind, namespaces);
  if (scopes.every((scope) => scope !== undefined && scope !== namespace))
    throw new AdminBadRequest(`${what}: the controller does not watch the namespace ${namespace}`);
  const object = { ...(value as object), metadata: { ...(metadata as object), name, namespace } } as Inputs[Kind];
  const trim = WATCHED[kind]?.trim as ((object: Inputs[Kind]) => Inputs[Kind]) | undefined;
  return trim?.(object) ?? object;
}

function problemsIn({ kind, key, status }: DesiredStatus): PreviewProblem[] {
  const conditions = [
    ...("conditions" in status ? status.conditions : []),
    ...("listeners" in status ? status.listeners.flatMap((each) => each.conditions) : []),
    ...("parents" in status ? status.parents.flatMap((each) => each.conditions) : []),
    ...("ancestors" in status ? status.ancestors.flatMap((each) => each.conditions) : []),
  ];
  const wrong = conditions.filter(({ type, status }) => (BAD.has(type) ? status === "True" : status === "False"));
  return wrong.map(({ type, reason, message }) => ({ kind, key, condition: type, reason, message }));
}
