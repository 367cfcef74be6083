/** Whether the proxies of a Gateway run and serve what they were sent, and at which addresses. */
import { objectKey } from "../../base/object-key.ts";
import type { Pod } from "../../kube/objects.ts";
import { podProblem } from "../../kube/pod-problem.ts";
import { defineQuery, type Read } from "../graph/graph.ts";
import type { Rejection } from "../graph/inputs.ts";
import {
  type AssignedAddress,
  assignedAddresses,
  requestedAddresses,
} from "../translate/listeners/gateway-addresses.ts";
import { gatewayModel } from "../translate/listeners/gateways.ts";
import { isFalse, isTrue, joined } from "../translate/model/conditions.ts";
import {
  type Fleet,
  fleetOf,
  hasAcknowledged,
  hasProxy,
  hasReadyProxy,
  isServedByShared,
  ownFleet,
  podsOf,
} from "../translate/model/fleets.ts";
import type { ConditionDraft, Problem } from "../translate/model/model.ts";

interface Programming {
  readonly addresses: readonly AssignedAddress[];
  /** Programmed of the Gateway. */
  readonly condition: ConditionDraft;
  /** A reason for which none of its listeners can be programmed. */
  readonly obstacle?: Problem;
}

/** Why the first of the proxies that cannot start cannot; undefined if all are merely starting. */
const startProblem = defineQuery<string | undefined>("startProblem", (read, gateway) => {
  const problems = podsOf(read, servingFleet(read, gateway)).map(problemOf);
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
  const fleet = servingFleet(read, key);
  const isShared = fleet.key !== key;
  const assigned = assignedAddresses(read.get("Service", objectKey(fleet)));
  const { ips, unusable } = requestedAddresses(gateway);
  const addresses = ips.length === 0 ? assigned : assigned.filter(({ value }) => ips.includes(value));
  const missing = ips.filter((ip) => !addresses.some(({ value }) => value === ip));
  // A Gateway that was programmed once stays so while it has proxies: the status of the Deployment shows those that crash later. Without
  // proxies, as after scaling to 0 or when pods cannot be created, no traffic is served.
  const wasProgrammed = (gateway.status?.conditions ?? []).some(
    ({ type, status }) => type === "Programmed" && status === "True",
  );
  const deployed = hasProxy(read, fleet);
  const ready = (wasProgrammed && deployed) || hasReadyProxy(read, fleet);
  const rejections = (read.get("ProxyReport", fleet.key)?.rejections ?? []).filter(
    ({ heldBack }) => heldBack.length === 0 || heldBack.some(({ gateway }) => gateway === key),
  );
  const rejected = joined(rejections.map((each) => rejectionText(each, key, isShared)));
  const isHeldBack = rejections.some(({ heldBack }) => heldBack.length > 0);
  const pending = !ready || !hasAcknowledged(read, fleet, key);
  const waiting = waitingFor(isShared, deployed, ready);
  const accepted = model.conditions.find(({ type }) => type === "Accepted");
  const obstacle =
    accepted?.status === "False"
      ? { reason: "Invalid", message: `The Gateway is not accepted: ${accepted.message}` }
      : isHeldBack
        ? { reason: "Invalid", message: rejected }
        : pending
          ? { reason: "Pending", message: waiting }
          : undefined;
  const condition = ((): ConditionDraft => {
    const no = (reason: string, message: string): ConditionDraft => isFalse("Programmed", reason, message);
    if (accepted?.status === "False" && obstacle !== undefined) return no(obstacle.reason, obstacle.message);
    if (unusable !== undefined) return no(unusable.reason, unusable.message);
    const failure = read.get("DeploymentReport", fleet.key)?.error;
    if (failure !== undefined) return no("DeploymentFailed", failure);
    if (rejections.length > 0) return no("Invalid", rejected);
    if (pending) {
      const problem = ready ? undefined : read.query(startProblem, key);
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

/** Until shared proxies serve a Gateway, those that it had for itself do. */
function servingFleet(read: Read, key: string): Fleet {
  const wanted = read.query(fleetOf, key);
  const own = ownFleet(key);
  return hasProxy(read, own) && !read.query(isServedByShared, key) ? own : wanted;
}

function waitingFor(isShared: boolean, deployed: boolean, ready: boolean): string {
  if (ready) return "The shared proxies do not serve the Gateway yet";
  if (isShared) return deployed ? "No shared proxy is ready yet" : "The shared proxies have no pods";
  return deployed ? "No proxy of the Gateway is ready yet" : "The Gateway has no pods";
}

/** What proxies say of a state that Gateways share may be about another one's objects, which are not everyone's to read. */
function rejectionText({ pod, message, heldBack }: Rejection, key: string, isShared: boolean): string {
  const own = heldBack.find(({ gateway }) => gateway === key);
  if (own !== undefined)
    return `Shared proxy ${pod} rejected the configuration of this Gateway and keeps its former one: ${own.reason}`;
  return isShared
    ? `Shared proxy ${pod} rejected its configuration; its log says why`
    : `Proxy ${pod} rejected its configuration: ${message}`;
}

/** A condition of a listener or ListenerSet: it is not programmed while its Gateway has an obstacle. */
export function unlessHindered(condition: ConditionDraft, obstacle: Problem | undefined): ConditionDraft {
  return obstacle !== undefined && condition.type === "Programmed" && condition.status === "True"
    ? isFalse("Programmed", obstacle.reason, obstacle.message)
    : condition;
}
