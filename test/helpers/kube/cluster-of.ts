/** A cluster as tests write it: objects of Kubernetes, one document each. */
import assert from "node:assert/strict";
import { parseAllDocuments } from "yaml";
import { Graph } from "../../../src/controller/graph/graph.ts";
import { clock, type Inputs } from "../../../src/controller/graph/inputs.ts";
import { keyOfObject } from "../../../src/kube/keys.ts";
import type { Gateway } from "../../../src/kube/objects.ts";

type Anything = Inputs[keyof Inputs];

export const CLASS = {
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "GatewayClass",
  metadata: { name: "tracegate", namespace: "", generation: 1 },
  spec: { controllerName: "tracegate.dev/gateway-controller" },
} as const;

const CLUSTER_SCOPED = ["Namespace", "Node", "GatewayClass", "IngressClass", "ControllerIdentity"];

/**
 * What the controller has read. Objects may leave out `apiVersion` and the namespace `default`; Secrets may have `stringData`. The
 * GatewayClass `tracegate` is always there, and each Gateway has a Service with an address and a ready proxy, unless a comment says
 * `# no proxies`. `replaced` changes what is written.
 */
export function clusterOf(text: string, replaced: (written: unknown) => unknown = (written) => written): Graph {
  const graph = new Graph();
  graph.set(CLASS);
  graph.set(clock(Date.now()));
  for (const document of parseAllDocuments(text)) {
    assert.deepEqual(document.errors, []);
    graph.set(completed(replaced(document.toJS() as unknown)));
  }
  if (!text.includes("# no proxies"))
    for (const gateway of graph.list("Gateway")) for (const each of deployed(gateway)) setNew(graph, each);
  return graph;
}

/** What runs the proxies of a Gateway, as far as it matters. */
function deployed({ metadata: { namespace, name } }: Gateway): readonly Anything[] {
  const labels = { "gateway.networking.k8s.io/gateway-name": name };
  const metadata = { namespace, name, labels };
  return [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: { clusterIP: "198.19.0.1" },
      status: { loadBalancer: { ingress: [{ ip: "203.0.113.1" }] } },
    },
    { apiVersion: "v1", kind: "Pod", metadata, status: { conditions: [{ type: "Ready", status: "True" }] } },
  ];
}

function setNew(graph: Graph, object: Anything): void {
  if (graph.get(object.kind, keyOfObject(object)) === undefined) graph.set(object);
}

/** The object as an API server would have sent it. */
function completed(written: unknown): Anything {
  const { metadata, data, stringData, ...rest } = written as {
    readonly kind: string;
    readonly data?: object;
    readonly metadata: object;
    readonly stringData?: Readonly<Record<string, string>>;
  };
  const namespace = CLUSTER_SCOPED.includes(rest.kind) ? "" : "default";
  const encoded = Object.entries(stringData ?? {}).map(([name, value]) => [
    name,
    Buffer.from(value).toString("base64"),
  ]);
  const all = { ...data, ...Object.fromEntries(encoded) };
  return {
    apiVersion: "",
    ...rest,
    ...((data ?? stringData) && { data: all }),
    metadata: { namespace, generation: 2, ...metadata },
  } as Anything;
}
