/** Whether the proxies of a Gateway run and serve what they were sent, and at which addresses. */
import type { Pod } from "../../kube/objects.ts";
import { podProblem } from "../../kube/pod-problem.ts";
import { deploymentName, GATEWAY_NAME } from "../base/manifest.ts";
import { defineIndex, defineQuery } from "../graph/graph.ts";
import {
  type AssignedAddress,
  assignedAddresses,
  requestedAddresses,
} from "../translate/listeners/gateway-addresses.ts";
import { gatewayModel } from "../translate/listeners/gateways.ts";
import type { Problem } from "../translate/listeners/listeners.ts";
import { isFalse, isTrue, joined } from "../translate/model/conditions.ts";
import type { ConditionDraft } from "../translate/model/model.ts";

interface Programming {
  readonly addresses: readonly AssignedAddress[];
  /** Programmed of the Gateway. */
  readonly condition: ConditionDraft;
  /** A reason for which none of its listeners can be programmed. */
  readonly obstacle?: Problem;
}

/** Pods of proxies by `<namespace>/<name of the deployment>`. */
const PROXIES = defineIndex("Pod", ({ metadata: { namespace, labels } }) => {
  const name = labels?.[GATEWAY_NAME];
  return name === undefined ? [] : [`${namespace}/${name}`];
});

/** Whether a proxy of a Gateway is ready. A separate query: pods change often. */
const hasReadyProxy = defineQuery<boolean>("hasReadyProxy", (read, deployment) =>
  read
    .find(PROXIES, deployment)
    .some(({ status }) => status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True")),
);

/** Whether a Gateway has any proxies, ready or not. */
const hasProxy = defineQuery<boolean>("hasProxy", (read, deployment) => read.find(PROXIES, deployment).length > 0);

/** Why the first of the proxies that cannot start cannot; undefined if all are merely starting. */
const startProblem = defineQuery<string | undefined>("startProblem", (read, deployment) => {
  const problems = read.find(PROXIES, deployment).map(problemOf);
  return problems.filter((problem) => problem !== undefined).sort()[0];
});

/** Without what changes from one attempt to the next: a status that changes is written. */
function problemOf(pod: Pod): string | undefined {
  const problem = podProblem(pod);
  return problem === undefined ? undefined : `pod ${pod.metadata.name} ${problem.what}; see ${problem.command}`;
}

/** Of a Gateway of ours. */
export const gatewayProgramming = defineQuery<Programming>("gatewayProgramming", (read, key) => {
  const gateway = read.get("Gateway", key);
  const model = read.query(gatewayModel, key);
  if (gateway === undefined || model === undefined)
    return { addresses: [], condition: isFalse("Programmed", "Invalid", "The Gateway does not exist") };
  const deployment = `${gateway.metadata.namespace}/${deploymentName(gateway.metadata.name)}`;
  const assigned = assignedAddresses(read.get("Service", deployment));
  const { ips, unusable } = requestedAddresses(gateway);
  const addresses = ips.length === 0 ? assigned : assigned.filter(({ value }) => ips.includes(value));
  const missing = ips.filter((ip) => !addresses.some(({ value }) => value === ip));
  // A Gateway that was programmed once stays so while it has proxies: the status of the Deployment shows those that crash later. Without
  // proxies, as after scaling to 0 or when pods cannot be created, no traffic is served.
  const wasProgrammed = (gateway.status?.conditions ?? []).some(
    ({ type, status }) => type === "Programmed" && status === "True",
  );
  const deployed = read.query(hasProxy, deployment);
  const pending = !(wasProgrammed && deployed) && !read.query(hasReadyProxy, deployment);
  const waiting = deployed ? "No proxy of the Gateway is ready yet" : "The Gateway has no pods";
  const accepted = model.conditions.find(({ type }) => type === "Accepted");
  const obstacle =
    accepted?.status === "False"
      ? { reason: "Invalid", message: `The Gateway is not accepted: ${accepted.message}` }
      : pending
        ? { reason: "Pending", message: waiting }
        : undefined;
  const condition = ((): ConditionDraft => {
    const no = (reason: string, message: string): ConditionDraft => isFalse("Programmed", reason, message);
    if (obstacle?.reason === "Invalid") return no(obstacle.reason, obstacle.message);
    if (unusable !== undefined) return no(unusable.reason, unusable.message);
    const failure = read.get("DeploymentReport", key)?.error;
    if (failure !== undefined) return no("DeploymentFailed", failure);
    const rejections = read.get("ProxyReport", key)?.rejections ?? [];
    if (rejections.length > 0)
      return no(
        "Invalid",
        joined(rejections.map(({ pod, message }) => `Proxy ${pod} rejected its configuration: ${message}`)),
      );
    if (pending) {
      const problem = read.query(startProblem, deployment);
      return no("Pending", `${waiting}${problem === undefined ? "" : `: ${problem}`}`);
    }
    if (missing.length > 0)
      return no(
        "AddressNotUsable",
        `The load balancer has not assigned ${missing.join(", ")}; request addresses that it has`,
      );
    if (addresses.length === 0) return no("AddressNotAssigned", "The Service of the Gateway has no address yet");
    return isTrue("Programmed", "Programmed", "Successfully programmed Gateway");
  })();
  return { addresses, condition, ...(obstacle !== undefined && { obstacle }) };
});

/** A condition of a listener or ListenerSet: it is not programmed while its Gateway has an obstacle. */
export function unlessHindered(condition: ConditionDraft, obstacle: Problem | undefined): ConditionDraft {
  return obstacle !== undefined && condition.type === "Programmed" && condition.status === "True"
    ? isFalse("Programmed", obstacle.reason, obstacle.message)
    : condition;
}
