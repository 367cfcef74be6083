/** The TracegatePolicies of a Gateway as its proxies show them in dumps; what they do is part of routes and listeners already. */
import { nameOfKey } from "../../base/object-key.ts";
import type { Path } from "../../base/paths.ts";
import type { TargetedPolicy } from "../../ir/ir.ts";
import type { PolicyLevel } from "../../ir/origins.ts";
import { refKey } from "../../kube/keys.ts";
import { kindsOf } from "../../policies/merge.ts";
import { dumpFrontend, translateCalling } from "../../translation/frontend.ts";
import { defineQuery, type Pair } from "../graph/graph.ts";
import { policiesOfGateway, policyAttachments } from "./attachments.ts";
import { keyOfImport, keyOfService } from "./cluster/discovery.ts";
import { callContext } from "./policy/calls.ts";
import { policyInput } from "./policy/input.ts";
import { policyModel } from "./policy/model.ts";
import { isAttachable, isUsable } from "./policy/parts.ts";
import type { ResolvedTarget } from "./policy/targets.ts";

/** Key: `<namespace>/<name>` of a Gateway. */
export const targetedPolicies = defineQuery<readonly TargetedPolicy[]>("targetedPolicies", (read, gateway) =>
  read.query(policiesOfGateway, gateway).flatMap((key) =>
    read
      .query(policyAttachments, key)
      .filter(({ gateways }) => gateways.includes(gateway))
      .flatMap(({ target }) => read.query(targetedAt, [key, refKey(target)])),
  ),
);

/** One entry for each kind that a policy configures at one of its targets (`refKey`). */
const targetedAt = defineQuery<readonly TargetedPolicy[], Pair>("targetedAt", (read, [key, at]) => {
  const input = read.query(policyInput, key);
  const model = read.query(policyModel, key);
  const target = read.query(policyAttachments, key).find((each) => nameOf(each.target) === at)?.target;
  if (input === undefined || model === undefined || target === undefined) return [];
  const { namespace, name } = nameOfKey(key);
  const object = { kind: "TracegatePolicy", name, namespace };
  const entry = (what: string, path: Path | undefined, policy: TargetedPolicy["policy"]): TargetedPolicy => ({
    key: `${key}/${at}/${what}`,
    name: object,
    target: dumpTarget(target),
    origin: { object, path: path ?? ["spec"] },
    ...(input.override && { inheritance: "override" }),
    policy,
  });
  const kinds = ({ set, sources }: PolicyLevel) =>
    kindsOf(set).flatMap((kind) =>
      isUsable(kind, target.kind) ? [{ kind, value: set[kind], path: sources[kind]?.[0]?.at }] : [],
    );
  const traffic = isAttachable("traffic", input, target.kind) ? kinds(model.levels[input.phase]) : [];
  const backend = isAttachable("backend", input, target.kind) ? kinds(model.levels.backend) : [];
  const context = callContext(read, input.namespace, input.callees, () => {}, []);
  const frontend = isAttachable("frontend", input, target.kind)
    ? dumpFrontend(model.frontend, translateCalling(model.frontend, context), { object, path: ["spec", "frontend"] })
    : [];
  return [
    ...frontend.map(({ key: what, origin, policy }) => entry(what, origin?.path, policy)),
    ...traffic.map(({ kind, value, path }) =>
      entry(`${input.phase}/${kind}`, path, { traffic: { phase: input.phase, [kind]: value } }),
    ),
    ...backend.map(({ kind, value, path }) => entry(`backend/${kind}`, path, { backend: { [kind]: value } })),
  ];
});

function nameOf({ kind, namespace, name, section }: ResolvedTarget): string {
  return refKey({ kind, namespace, name, section });
}

/** A target in the form of the configuration dump. */
function dumpTarget({ kind, namespace, name, section }: ResolvedTarget): TargetedPolicy["target"] {
  switch (kind) {
    case "Gateway":
      return { gateway: { gatewayName: name, gatewayNamespace: namespace, listenerName: section ?? null } };
    case "ListenerSet":
      return { listenerSet: { name, namespace, ...(section !== undefined && { section }) } };
    case "Service":
    case "ServiceImport": {
      const serviceKey = kind === "Service" ? keyOfService(namespace, name) : keyOfImport(namespace, name);
      const hostname = serviceKey.slice(namespace.length + 1);
      return { backend: { service: { hostname, namespace, ...(section !== undefined && { port: Number(section) }) } } };
    }
    case "TracegateBackend":
      return { backend: { backend: { name, namespace } } };
    default:
      return { route: { name, namespace, kind, ...(section !== undefined && { ruleName: section }) } };
  }
}
