/** Statuses of Ingresses, and what Events say about them. */
import { keyOfObject } from "../../kube/keys.ts";
import { defineQuery, type Read } from "../graph/graph.ts";
import { gatewayModel } from "../translate/listeners/gateways.ts";
import { type IngressProblem, ingressModel } from "../translate/routes/ingress-rules.ts";
import type { DesiredStatus } from "./desired.ts";
import { gatewayProgramming } from "./gateway-programmed.ts";

export function ingressStatuses(read: Read): readonly DesiredStatus[] {
  return read
    .list("Ingress")
    .map((ingress) => read.query(ingressStatus, keyOfObject(ingress)))
    .filter((status) => status !== undefined);
}

/** The addresses of its Gateway. The first problem is at each port: an Ingress has no conditions, and Events end. */
const ingressStatus = defineQuery<DesiredStatus | undefined>("ingressStatus", (read, key) => {
  const model = read.query(ingressModel, key);
  if (model === undefined) return undefined;
  const { gateway, problems } = model;
  const addresses = gateway === undefined ? [] : read.query(gatewayProgramming, gateway).addresses;
  const [first] = problems;
  const error = first && { error: `tracegate.dev/${first.reason}` };
  const ports = first === undefined ? [] : portsOf(read, gateway).map((port) => ({ port, protocol: "TCP", ...error }));
  return {
    kind: "Ingress",
    key,
    generation: read.get("Ingress", key)?.metadata.generation ?? 0,
    status: {
      loadBalancer: {
        ingress: addresses.map(({ type, value }) => ({
          ...(type === "IPAddress" ? { ip: value } : { hostname: value }),
          ...(ports.length > 0 && { ports }),
        })),
      },
    },
  };
});

function portsOf(read: Read, gateway = ""): readonly number[] {
  const listeners = read.query(gatewayModel, gateway)?.listeners ?? [];
  const ports = listeners.flatMap(({ protocol, port }) => (protocol === "HTTP" || protocol === "HTTPS" ? port : []));
  return [...new Set(ports)].sort((a, b) => a - b);
}

/** By the keys of the Ingresses of ours that have any. */
export const allIngressProblems = defineQuery<ReadonlyMap<string, readonly IngressProblem[]>>(
  "allIngressProblems",
  (read) =>
    new Map(
      read.list("Ingress").flatMap((ingress) => {
        const key = keyOfObject(ingress);
        const { problems = [] } = read.query(ingressModel, key) ?? {};
        return problems.length === 0 ? [] : [[key, problems] as const];
      }),
    ),
);
