/**
 * Which pods a command line names (docs/tgctl.md#which-proxy): `gateway/<name>`, another object with a pod selector, a pod by its
 * name, or nothing, which means the only Gateway of the namespace.
 */
import { deploymentName, GATEWAY_NAME, OWNING_CLASS } from "../../controller/base/manifest.ts";
import { type KubeClient, listObjects, resourcePath } from "../../kube/client.ts";
import type { Gateway, GatewayClass, LabelSelector, Pod } from "../../kube/objects.ts";
import { RESOURCES, type ResourceName } from "../../kube/resources.ts";
import { CliError } from "../runner/errors.ts";
import { isNotFound, kubeFailure } from "./errors.ts";
import { gatewayNamed, gatewaySuggestion, whyNoPods } from "./suggestions.ts";

/** Pods of the controller carry this label. */
const CONTROLLER_LABEL = "tracegate=tracegate";

const TYPES = ["gateway", "pod", "service", "deployment", "replicaset", "statefulset", "daemonset"] as const;
type ResourceType = (typeof TYPES)[number];

/** Other names of the types, as in kubectl. */
const ALIASES: ReadonlyMap<string, ResourceType> = new Map(
  Object.entries({
    gateways: "gateway",
    gtw: "gateway",
    pods: "pod",
    po: "pod",
    services: "service",
    svc: "service",
    deployments: "deployment",
    deploy: "deployment",
    replicasets: "replicaset",
    rs: "replicaset",
    statefulsets: "statefulset",
    sts: "statefulset",
    daemonsets: "daemonset",
    ds: "daemonset",
  } as const),
);

const apps = (plural: string): ResourceName => ({ group: "apps", version: "v1", plural, namespaced: true });
const NAMES: Readonly<Record<ResourceType, ResourceName>> = {
  gateway: RESOURCES.Gateway,
  pod: RESOURCES.Pod,
  service: RESOURCES.Service,
  deployment: RESOURCES.Deployment,
  replicaset: apps("replicasets"),
  statefulset: apps("statefulsets"),
  daemonset: RESOURCES.DaemonSet,
};

/** An object of the cluster that a command line names. */
export interface Resource {
  readonly type: ResourceType;
  readonly name: string;
  readonly namespace: string;
}

/** `gateway/web`, for messages; the same words that a user may write. */
export function resourceName({ type, name }: Pick<Resource, "type" | "name">): string {
  return `${type}/${name}`;
}

/** `<pod>.<namespace>`, as commands name a pod in their output. */
export function podName({ metadata }: Pod): string {
  return `${metadata.name}.${metadata.namespace}`;
}

/**
 * Reads `name`, `type/name`, each with an optional suffix `.<namespace>`, which takes precedence over the option. Without a type
 * it is a pod.
 * @throws CliError for a type without pods
 */
export function parseResource(text: string): Omit<Resource, "namespace"> & { readonly namespace: string | undefined } {
  const slash = text.indexOf("/");
  const word = slash === -1 ? "pod" : text.slice(0, slash).toLowerCase();
  const rest = text.slice(slash + 1);
  const type = TYPES.find((known) => known === word) ?? ALIASES.get(word);
  const dot = rest.lastIndexOf(".");
  const name = dot === -1 ? rest : rest.slice(0, dot);
  const suffix = dot === -1 ? undefined : rest.slice(dot + 1);
  if (type === undefined || name === "" || suffix === "" || name.includes("/")) {
    throw new CliError("usage", `"${text}" does not refer to a supported pod resource`, {
      hint: `gateway/<name>, or another of ${TYPES.slice(1).join(", ")}`,
    });
  }
  return { type, name, namespace: suffix };
}

/** The only Gateway of the namespace. @throws CliError unless the namespace has exactly one Gateway */
export async function onlyGateway(client: KubeClient, namespace: string, signal: AbortSignal): Promise<Resource> {
  const gateways = await listObjects<Gateway>(client, RESOURCES.Gateway, namespace, signal).catch((error: unknown) => {
    throw kubeFailure(`failed to list Gateways in namespace "${namespace}"`, error);
  });
  const [gateway] = gateways;
  if (gateway !== undefined && gateways.length === 1)
    return { type: "gateway", name: gateway.metadata.name, namespace };
  const names = gateways.map(({ metadata }) => `gateway/${metadata.name}`).sort();
  if (gateway === undefined) {
    const suggestion = await gatewaySuggestion(client, { namespace }, signal);
    throw new CliError("failure", `no Gateways found in namespace "${namespace}"; pass a resource explicitly`, {
      hint: suggestion ?? "-n <namespace> for another namespace, or --local for the proxy on this machine",
    });
  }
  throw new CliError(
    "failure",
    `found ${gateways.length} Gateways in namespace "${namespace}"; pass a resource explicitly`,
    { hint: names.length > 5 ? `${names.slice(0, 5).join(", ")}, …` : names.join(", ") },
  );
}

/** The pods of the resource, sorted by name. @throws CliError if it does not exist, has no selector or no pods */
export async function podsOf(client: KubeClient, resource: Resource, signal: AbortSignal): Promise<readonly Pod[]> {
  const { type, name, namespace } = resource;
  const object = await client
    .request<Selecting>("GET", resourcePath(NAMES[type], namespace, name), { signal })
    .catch(async (error: unknown) => {
      const suggest = !isNotFound(error) ? undefined : type === "gateway" ? gatewaySuggestion : gatewayNamed;
      const suggestion = await suggest?.(client, { name, namespace }, signal);
      throw kubeFailure(`failed retrieving ${resourceName(resource)} in namespace "${namespace}"`, error, suggestion);
    });
  // An object that is read alone is complete, with its namespace, and of the kind in its path.
  if (type === "pod") return [object as unknown as Pod];
  const gateway = type === "gateway" ? (object as unknown as Gateway) : undefined;
  const pods = await podsWith(client, namespace, selectorOf(type, name, object), signal);
  // After a move to shared proxies, those of its own finish their requests for a while.
  if (pods.some(({ metadata }) => metadata.deletionTimestamp === undefined)) return pods;
  const shared = gateway === undefined ? [] : await sharedPods(client, gateway, signal);
  if (shared.length > 0) return shared;
  if (pods.length > 0) return pods;
  const { why, hint } = gateway === undefined ? { hint: undefined } : whyNoPods(gateway);
  throw noPods(resource, why, hint);
}

/**
 * The pods that a Gateway shares with others of its class, in the namespace of the parameters of the class. None if the class has no
 * parameters, or may not be read.
 */
async function sharedPods(client: KubeClient, { spec }: Gateway, signal: AbortSignal): Promise<readonly Pod[]> {
  const { gatewayClassName } = spec;
  const found = await client
    .request<GatewayClass>("GET", resourcePath(RESOURCES.GatewayClass, undefined, gatewayClassName), { signal })
    .catch(() => undefined);
  const namespace = found?.spec.parametersRef?.namespace;
  if (namespace === undefined) return [];
  const selector = `${OWNING_CLASS}=${deploymentName(gatewayClassName)}`;
  return podsWith(client, namespace, selector, signal, `the pods of GatewayClass ${gatewayClassName}`);
}

/** The pods of the controller, sorted by name. @throws CliError if it finds no pods */
export async function controllerPods(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<readonly Pod[]> {
  const pods = await podsWith(client, namespace, CONTROLLER_LABEL, signal, "controller pods");
  if (pods.length > 0) return pods;
  throw new CliError("failure", `no controller pods found in namespace "${namespace}" (label ${CONTROLLER_LABEL})`, {
    hint: "-n <namespace> where the controller is installed",
  });
}

/** The pods of the namespace with these labels, sorted by name; errors call them `what`. @throws CliError */
async function podsWith(
  client: KubeClient,
  namespace: string,
  labelSelector: string,
  signal: AbortSignal,
  what = "pods",
): Promise<readonly Pod[]> {
  const pods = await listObjects<Pod>(client, RESOURCES.Pod, namespace, signal, labelSelector).catch(
    (error: unknown) => {
      throw kubeFailure(`failed to list ${what} in namespace "${namespace}"`, error);
    },
  );
  return pods.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

/** The selector of the pods of a Gateway, or of another object that has been read. */
function selectorOf(type: ResourceType, name: string, { spec }: Selecting): string {
  if (type === "gateway") return `${GATEWAY_NAME}=${deploymentName(name)}`;
  const selector = spec?.selector;
  if (selector === undefined || selector === null) throw new CliError("failure", "resource has no pod selector");
  const terms = type === "service" ? equals(selector as Labels) : labelTerms(selector as LabelSelector);
  if (terms.length === 0) throw new CliError("failure", "resource has empty pod selector");
  return terms.join(",");
}

type Labels = Readonly<Record<string, string>>;

type Expression = NonNullable<LabelSelector["matchExpressions"]>[number];

/** Any object with a selector: a map of labels in a Service, a LabelSelector in workloads. */
interface Selecting {
  readonly spec?: { readonly selector?: Labels | LabelSelector | null };
}

function equals(labels: Labels): string[] {
  return Object.entries(labels).map(([key, value]) => `${key}=${value}`);
}

function labelTerms({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string[] {
  return [...equals(matchLabels), ...matchExpressions.map(labelTerm)];
}

function labelTerm({ key, operator, values = [] }: Expression): string {
  switch (operator) {
    case "In":
      return `${key} in (${values.join(",")})`;
    case "NotIn":
      return `${key} notin (${values.join(",")})`;
    case "Exists":
      return key;
    case "DoesNotExist":
      return `!${key}`;
  }
}

export function noPods(resource: Resource, why?: string, hint = `kubectl get pods -n ${resource.namespace}`): CliError {
  return new CliError("failure", `no pods found for resource "${resourceName(resource)}"`, {
    ...(why !== undefined && { why }),
    hint,
  });
}
