import { isTrue } from "./conditions.ts";
import { covers } from "./hostnames.ts";
import type { ListenerModel } from "./model.ts";

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
