/** What statuses say about the objects of a Gateway: errors of them, and what is valid and most likely not intended. */
import { KubeError, resourcePath } from "../../kube/client.ts";
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
const KINDS = ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute", "TracegatePolicy"] as const;

/** The parts of objects that say something about a Gateway. */
interface Reporting {
  readonly metadata: ObjectMeta;
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

/** Findings about `gateway/<name>`, then about its routes and policies by their names; each once. @throws CliError */
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
  const { conditions = [], listeners = [] } = gateway.status ?? {};
  if (conditions.length === 0)
    throw new CliError("failure", `${own} has no status yet`, {
      hint: "is the controller running? tgctl controller log",
    });
  const found = [
    ...conditions.flatMap((each) => findingOf(own, each)),
    ...listeners.flatMap((listener) =>
      listener.conditions.flatMap((each) => findingOf(`${own} (${listener.name})`, each)),
    ),
  ];
  const lists = await Promise.all(
    KINDS.map(async (kind) => {
      const { items } = await client
        .request<{ readonly items: readonly Reporting[] }>("GET", resourcePath(RESOURCES[kind]), { signal })
        .catch((error: unknown) => {
          // The cluster does not have this kind.
          if (error instanceof KubeError && error.status === 404) return { items: [] };
          throw kubeFailure(`failed to list ${kind}s`, error);
        });
      return items.flatMap((item) => findingsAt(kind, item, namespace, name));
    }),
  );
  const all = lists.flat().sort((a, b) => (a.object < b.object ? -1 : a.object > b.object ? 1 : 0));
  const texts = new Map([...found, ...all].map((each) => [JSON.stringify(each), each]));
  return [...texts.values()];
}

function findingsAt(kind: string, { metadata, status }: Reporting, namespace: string, name: string): ObjectFinding[] {
  const parents = [
    ...(status?.parents ?? []).map(({ parentRef, conditions }) => ({ ref: parentRef, conditions })),
    ...(status?.ancestors ?? []).map(({ ancestorRef, conditions }) => ({ ref: ancestorRef, conditions })),
  ];
  return parents
    .filter(({ ref }) => (ref.kind ?? "Gateway") === "Gateway" && ref.name === name)
    .filter(({ ref }) => (ref.namespace ?? metadata.namespace) === namespace)
    .flatMap(({ conditions }) =>
      conditions.flatMap((each) => findingOf(`${kind} ${metadata.namespace}/${metadata.name}`, each)),
    );
}

function findingOf(object: string, { type, status, reason, message }: Condition): ObjectFinding[] {
  const isError = (GOOD.has(type) && status === "False") || (ERRORS.has(type) && status === "True");
  const isWarning = status === "True" && (WARNINGS.has(type) || type.startsWith("tracegate.dev/"));
  if (!isError && !isWarning) return [];
  return [{ severity: isError ? "error" : "warning", object, condition: type, reason, message }];
}
