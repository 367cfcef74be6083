import { resourcePath } from "../../kube/client.ts";
import type { Gateway } from "../../kube/objects.ts";
import { RESOURCES } from "../../kube/resources.ts";
import type { ClusterOptions } from "../proxy/proxies.ts";
import type { Context } from "../runner/context.ts";
import { CliError } from "../runner/errors.ts";
import { Cluster } from "./cluster.ts";
import { kubeFailure } from "./errors.ts";

/** `gateway/<name>.<namespace>` of the Gateways of one namespace, or of all. @throws CliError if it finds no Gateway */
export async function allGateways(
  options: ClusterOptions & { readonly "all-namespaces": boolean },
  context: Context,
): Promise<readonly string[]> {
  await using cluster = await Cluster.connect(options, context);
  const namespace = options["all-namespaces"] ? undefined : cluster.namespace;
  const where = namespace === undefined ? "" : ` in namespace "${namespace}"`;
  const { items } = await cluster.client
    .request<{ readonly items: readonly Gateway[] }>("GET", resourcePath(RESOURCES.Gateway, namespace), {
      signal: context.signal,
    })
    .catch((error: unknown) => {
      throw kubeFailure(`failed to list Gateways${where}`, error);
    });
  if (items.length === 0)
    throw new CliError("failure", `no Gateways found${where}`, {
      hint: namespace === undefined ? "kubectl get gateways -A" : "-n <namespace> for another namespace, -A for all",
    });
  return items.map(({ metadata }) => `gateway/${metadata.name}.${metadata.namespace}`).sort();
}
