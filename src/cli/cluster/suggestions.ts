/** Hints of errors, from further requests to the cluster. They never fail; without access they contain less. */
import { deploymentName, GATEWAY_NAME } from "../../controller/base/manifest.ts";
import { type KubeClient, listObjects } from "../../kube/client.ts";
import type { Gateway } from "../../kube/objects.ts";
import { RESOURCES } from "../../kube/resources.ts";

/** Most suggestions; more would hide the message. */
const SHOWN = 5;

type Named = Pick<Gateway, "metadata">;

/** The Gateways that a name or a namespace without any may have meant: those of that name anywhere, else those of the namespace, else all. */
export async function gatewaySuggestion(
  client: KubeClient,
  { name, namespace }: { readonly name?: string; readonly namespace: string },
  signal: AbortSignal,
): Promise<string | undefined> {
  const all = await gateways(client, undefined, signal);
  const near = all.filter(({ metadata }) => metadata.namespace === namespace);
  const known = [all.filter(({ metadata }) => metadata.name === name), near, all].find((some) => some.length > 0);
  // With a Role, the user may read only this namespace.
  return words(known ?? (await gateways(client, namespace, signal)));
}

/** `gateway/web`, if the namespace has a Gateway of this name. */
export async function gatewayNamed(
  client: KubeClient,
  { name, namespace }: { readonly name: string; readonly namespace: string },
  signal: AbortSignal,
): Promise<string | undefined> {
  const found = (await gateways(client, namespace, signal)).some(({ metadata }) => metadata.name === name);
  return found ? `did you mean gateway/${name}?` : undefined;
}

function gateways(client: KubeClient, namespace: string | undefined, signal: AbortSignal): Promise<readonly Named[]> {
  return listObjects<Named>(client, RESOURCES.Gateway, namespace, signal).catch(() => []);
}

/** `gateway/<name>.<namespace>` is what a command accepts. */
function words(found: readonly Named[]): string | undefined {
  if (found.length === 0) return undefined;
  const names = found.map(({ metadata: { name, namespace } }) => `gateway/${name}.${namespace}`).sort();
  const shown = names.slice(0, SHOWN).join(", ");
  return `did you mean ${shown}${names.length > SHOWN ? `, … (${names.length} Gateways)` : ""}?`;
}

/** Why a Gateway has no pods: its class, or the first of its conditions that is not True. */
export function whyNoPods({ metadata: { name, namespace }, spec, status }: Gateway): {
  readonly why?: string;
  readonly hint: string;
} {
  const conditions = ["Accepted", "Programmed"].map((wanted) =>
    status?.conditions?.find(({ type }) => type === wanted),
  );
  const condition = conditions.find((found) => found !== undefined && found.status !== "True");
  const pods = `its pods have the label ${GATEWAY_NAME}=${deploymentName(name)}`;
  // The API server's default is Unknown; a controller replaces it at once.
  if (conditions.every((found) => found === undefined) || condition?.status === "Unknown") {
    return {
      why: `no controller has taken it; its class is "${spec.gatewayClassName}"`,
      hint: `kubectl get gatewayclass lists the classes; is the controller running? kubectl get pods -A -l tracegate=tracegate`,
    };
  }
  if (condition === undefined)
    return {
      why: "a controller has programmed it, but its pods are gone",
      hint: `kubectl describe deployment ${deploymentName(name)} -n ${namespace}; ${pods}`,
    };
  return {
    why: `${condition.type} is ${condition.status}, ${condition.reason}: ${condition.message}`,
    hint: `kubectl describe gateway ${name} -n ${namespace}; ${pods}`,
  };
}
