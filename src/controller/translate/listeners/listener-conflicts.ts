/**
 * Listeners that cannot share a port (Gateway API, Gateway `spec.listeners`, "Distinct Listeners"). Among the listeners of one
 * object all that conflict are rejected; between objects the one that comes first wins (ListenerSet, `spec.listeners`). Others
 * share a port and should not, because their hostnames overlap.
 */
import { covers } from "../../../base/hostnames.ts";
import { isTrue } from "../model/conditions.ts";
import type { ListenerModel, Problem } from "../model/model.ts";
import type { Declaration } from "./listeners.ts";
import { ownProblem, protocolOf } from "./listeners.ts";

/** `declarations` in order of precedence. Listeners with problems of their own conflict with none. */
export function findConflicts(declarations: readonly Declaration[]): ReadonlyMap<Declaration, Problem> {
  const conflicts = new Map<Declaration, Problem>();
  const winners = new Map<string, Declaration[]>();
  const owners = new Map<string, Declaration[]>();
  for (const each of declarations) {
    if (ownProblem(each.spec) !== undefined) continue;
    const owner = ownerOf(each);
    owners.set(owner, [...(owners.get(owner) ?? []), each]);
  }
  for (const own of owners.values()) {
    for (const each of own) note(conflicts, each, winners.get(portOf(each)) ?? []);
    // A listener that has lost to another object cannot conflict with its neighbours.
    const left = own.filter((each) => !conflicts.has(each));
    for (const each of left)
      note(
        conflicts,
        each,
        left.filter((other) => other !== each && portOf(other) === portOf(each)),
      );
    for (const each of left)
      if (!conflicts.has(each)) winners.set(portOf(each), [...(winners.get(portOf(each)) ?? []), each]);
  }
  return conflicts;
}

/** Notes the first conflict with one of `rivals`. */
function note(conflicts: Map<Declaration, Problem>, each: Declaration, rivals: readonly Declaration[]): void {
  const problem = rivals.map((rival) => conflictOf(each, rival)).find((found) => found !== undefined);
  if (problem !== undefined) conflicts.set(each, problem);
}

/** TCP and UDP listeners can share a port number. */
export function portOf({ spec }: Pick<Declaration, "spec">): string {
  return spec.protocol === "UDP" ? `udp/${spec.port}` : String(spec.port);
}

/** Why a listener cannot be beside that of another Gateway with the same proxies, which comes first. */
export function rivalry(each: Declaration, rival: Declaration): Problem {
  const [own = "", other = ""] = [each, rival].map(({ spec }) => (spec.hostname ?? "").toLowerCase() || "any hostname");
  return (
    conflictOf(each, rival) ?? {
      reason: "HostnameConflict",
      message: `${nameOf(rival, each)} has port ${each.spec.port} and ${other}, which overlaps with ${own}; Gateways that share proxies cannot overlap; change one of them, or declare the listener in a ListenerSet of that Gateway`,
    }
  );
}

function conflictOf(each: Declaration, rival: Declaration): Problem | undefined {
  const [own, other] = [each, rival].map(({ spec }) => transportOf(spec));
  if (own !== other)
    return {
      reason: "ProtocolConflict",
      message: `${nameOf(rival, each)} uses port ${each.spec.port} for ${rival.spec.protocol}, which cannot share a port with ${each.spec.protocol}; use another port`,
    };
  if (own === "TCP" || own === "UDP")
    return {
      reason: "ProtocolConflict",
      message: `${nameOf(rival, each)} has port ${each.spec.port} too; ${own} listeners cannot share a port`,
    };
  const hostname = (each.spec.hostname ?? "").toLowerCase();
  if (hostname !== (rival.spec.hostname ?? "").toLowerCase()) return undefined;
  const shown = hostname === "" ? "any hostname" : `hostname ${hostname}`;
  return {
    reason: "HostnameConflict",
    message: `${nameOf(rival, each)} has port ${each.spec.port} and ${shown} too; change one of them`,
  };
}

/** How connections begin; listeners that share a port must agree. HTTPS and TLS can share one: the server name selects the listener. */
export function transportOf(spec: Declaration["spec"]): string {
  const protocol = protocolOf(spec);
  return protocol === "HTTPS" ? "TLS" : protocol;
}

function nameOf(rival: Declaration, from: Declaration): string {
  const owner = ownerOf(rival);
  return owner === ownerOf(from) ? `Listener ${rival.spec.name}` : `Listener ${rival.spec.name} of ${owner}`;
}

/** `Gateway apps/web` */
function ownerOf({ listenerSet, ingress, gateway }: Declaration): string {
  if (listenerSet !== undefined) return `ListenerSet ${listenerSet}`;
  return ingress === undefined ? `Gateway ${gateway}` : `Ingress ${ingress}`;
}

/**
 * Adds the condition OverlappingTLSConfig to HTTPS listeners of a port of which one's hostname covers the other's: a client that
 * reuses a connection for another host can meet the TLS settings of the wrong one. Such requests get 421.
 */
export function overlappingTls(listeners: readonly ListenerModel[]): readonly ListenerModel[] {
  return listeners.map((listener) => {
    if (!isCandidate(listener)) return listener;
    const rivals = listeners.filter(
      (other) => other !== listener && isCandidate(other) && other.port === listener.port && overlap(other, listener),
    );
    if (rivals.length === 0) return listener;
    const names = rivals.map(({ name, hostname }) => `${name} (${hostname === "" ? "any hostname" : hostname})`);
    const message = `The hostname overlaps with that of ${names.join(", ")} on the same port`;
    return {
      ...listener,
      conditions: [...listener.conditions, isTrue("OverlappingTLSConfig", "OverlappingHostnames", message)],
    };
  });
}

function isCandidate({ protocol, programmed }: ListenerModel): boolean {
  return protocol === "HTTPS" && programmed;
}

function overlap(one: ListenerModel, other: ListenerModel): boolean {
  return covers(one.hostname, other.hostname) || covers(other.hostname, one.hostname);
}
