/** What statuses say about the objects of a Gateway: errors of them, and what is valid and most likely not intended. */
import { KubeError, listObjects, resourcePath } from "../../kube/client.ts";
import type { Condition, ObjectMeta, ParentReference } from "../../kube/objects.ts";
import { RESOURCES } from "../../kube/resources.ts";
import type { ClusterOptions } from "../proxy/proxies.ts";
import type { Context } from "../runner/context.ts";
import { CliError, usage } from "../runner/errors.ts";
import { Cluster } from "./cluster.ts";
import { kubeFailure } from "./errors.ts";
import { parseResource } from "./resource.ts";

/** One condition that says that something is not as it should be. */
interface ObjectFinding {
  readonly severity: "error" | "warning";
  /** `HTTPRoute shop/web`; of a listener `Gateway shop/web (http)`. */
  readonly object: string;
  readonly condition: string;
  readonly reason: string;
  readonly message: string;
}

/** Conditions that are True where nothing is wrong. */
const GOOD: ReadonlySet<string> = new Set(["Accepted", "Programmed", "ResolvedRefs", "Attached"]);
/** Conditions that are True where requests fail. */
const ERRORS: ReadonlySet<string> = new Set(["PartiallyInvalid", "Conflicted"]);
/** Conditions that are True where the effect is most likely not intended. Those of `tracegate.dev/` are, too. */
const WARNINGS: ReadonlySet<string> = new Set([
  "Overridden",
  "Replaceable",
  "OverlappingTLSConfig",
  "InsecureFrontendValidationMode",
]);
/** A reason of Accepted, which is True although a part of the object is invalid. */
const PARTIAL = "PartiallyValid";
/** The kinds whose statuses name Gateways. */
const KINDS = [
  "HTTPRoute",
  "GRPCRoute",
  "TLSRoute",
  "TCPRoute",
  "UDPRoute",
  "TracegatePolicy",
  "BackendTLSPolicy",
  "XBackendTrafficPolicy",
] as const;

/** The parts of objects that say something about a Gateway. */
interface Reporting {
  readonly metadata: ObjectMeta;
  /** Of a ListenerSet, the Gateway that it adds listeners to. */
  readonly spec?: { readonly parentRef?: ParentReference };
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly listeners?: readonly { readonly name: string; readonly conditions: readonly Condition[] }[];
    readonly parents?: readonly { readonly parentRef: ParentReference; readonly conditions: readonly Condition[] }[];
    readonly ancestors?: readonly {
      readonly ancestorRef: ParentReference;
      readonly conditions: readonly Condition[];
    }[];
  };
}

/**
 * Findings about `gateway/<name>`, then about its ListenerSets, routes, policies and TracegateBackends by their names; each once.
 * @throws CliError
 */
export async function gatewayFindings(
  resource: string,
  options: ClusterOptions,
  context: Context,
): Promise<readonly ObjectFinding[]> {
  await using cluster = await Cluster.connect(options, context);
  const { client } = cluster;
  const { type, name, namespace = cluster.namespace } = parseResource(resource);
  if (type !== "gateway") throw usage(`${resource} is not a Gateway`, "tgctl check gateway/NAME");
  const { signal } = context;
  const gateway = await client
    .request<Reporting>("GET", resourcePath(RESOURCES.Gateway, namespace, name), { signal })
    .catch((error: unknown) => {
      throw kubeFailure(`failed to get gateway ${namespace}/${name}`, error, "kubectl get gateways -A");
    });
  const own = `Gateway ${namespace}/${name}`;
  if ((gateway.status?.conditions ?? []).length === 0)
    throw new CliError("failure", `${own} has no status yet`, {
      hint: "is the controller running? tgctl controller log",
    });
  const list = (kind: "ListenerSet" | "TracegateBackend" | (typeof KINDS)[number]): Promise<readonly Reporting[]> =>
    listObjects<Reporting>(client, RESOURCES[kind], undefined, signal).catch((error: unknown) => {
      // The cluster does not have this kind.
      if (error instanceof KubeError && error.status === 404) return [];
      throw kubeFailure(`failed to list ${kind}s`, error);
    });
  const [listenerSets, backends, ...lists] = await Promise.all([
    list("ListenerSet"),
    list("TracegateBackend"),
    ...KINDS.map(list),
  ]);
  const isGateway = refersTo(new Set([own]));
  const sets = listenerSets.filter(({ spec, metadata }) => spec?.parentRef && isGateway(spec.parentRef, metadata));
  const isParent = refersTo(new Set([own, ...sets.map((set) => nameOf("ListenerSet", set))]));
  const attached = KINDS.flatMap((kind, i) =>
    (lists[i] ?? []).flatMap((item) => {
      const conditions = conditionsAt(item, isParent);
      return conditions.length === 0 ? [] : [{ object: nameOf(kind, item), item, conditions }];
    }),
  );
  const all = [
    ...sets.flatMap((set) => findingsWith(nameOf("ListenerSet", set), set)),
    ...attached.flatMap(({ object, conditions }) => conditions.flatMap((each) => findingOf(object, each))),
    ...calledBackends(
      attached.map(({ item }) => item),
      backends,
    ).flatMap((backend) => findingsWith(nameOf("TracegateBackend", backend), backend)),
  ].sort((a, b) => (a.object < b.object ? -1 : a.object > b.object ? 1 : 0));
  const texts = new Map([...findingsWith(own, gateway), ...all].map((each) => [JSON.stringify(each), each]));
  return [...texts.values()];
}

/** The backends that routes, policies and other called backends refer to. */
function calledBackends(callers: readonly Reporting[], backends: readonly Reporting[]): readonly Reporting[] {
  const byName = new Map(backends.map((backend) => [nameOf("TracegateBackend", backend), backend]));
  const found = new Set<Reporting>();
  const collect = (part: unknown, from: ObjectMeta): void => {
    if (typeof part !== "object" || part === null) return;
    const { kind, namespace = from.namespace, name } = part as Partial<ParentReference>;
    const backend = kind === "TracegateBackend" ? byName.get(`${kind} ${namespace}/${name}`) : undefined;
    if (backend !== undefined) collectFrom(backend);
    // A policy may also target backends of other Gateways.
    for (const [field, value] of Object.entries(part)) if (field !== "targetRefs") collect(value, from);
  };
  const collectFrom = (backend: Reporting): void => {
    if (found.has(backend)) return;
    found.add(backend);
    collect(backend.spec, backend.metadata);
  };
  for (const { spec, metadata } of callers) collect(spec, metadata);
  return [...found];
}

function nameOf(kind: string, { metadata }: Reporting): string {
  return `${kind} ${metadata.namespace}/${metadata.name}`;
}

/** Whether a reference in an object means one of these objects, such as `Gateway shop/web`. */
function refersTo(objects: ReadonlySet<string>): (ref: ParentReference, from: ObjectMeta) => boolean {
  return ({ kind = "Gateway", namespace, name }, from) => objects.has(`${kind} ${namespace ?? from.namespace}/${name}`);
}

/** What an object with listeners says about itself and them. */
function findingsWith(
  object: string,
  { status: { conditions = [], listeners = [] } = {} }: Reporting,
): ObjectFinding[] {
  return [
    ...conditions.flatMap((each) => findingOf(object, each)),
    ...listeners.flatMap((listener) =>
      listener.conditions.flatMap((each) => findingOf(`${object} (${listener.name})`, each)),
    ),
  ];
}

/** What a route or policy says about these parents. */
function conditionsAt({ metadata, status }: Reporting, isParent: ReturnType<typeof refersTo>): readonly Condition[] {
  return [
    ...(status?.parents ?? []).map(({ parentRef, conditions }) => ({ ref: parentRef, conditions })),
    ...(status?.ancestors ?? []).map(({ ancestorRef, conditions }) => ({ ref: ancestorRef, conditions })),
  ]
    .filter(({ ref }) => isParent(ref, metadata))
    .flatMap(({ conditions }) => conditions);
}

function findingOf(object: string, { type, status, reason, message }: Condition): ObjectFinding[] {
  const isError = status === "True" ? ERRORS.has(type) || reason === PARTIAL : GOOD.has(type) && status === "False";
  const isWarning = status === "True" && (WARNINGS.has(type) || type.startsWith("tracegate.dev/"));
  if (!isError && !isWarning) return [];
  return [{ severity: isError ? "error" : "warning", object, condition: type, reason, message }];
}
