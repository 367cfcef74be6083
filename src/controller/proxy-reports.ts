import { isDeepStrictEqual } from "node:util";
import { classOfFleet } from "../xds/resources.ts";
import type { Graph } from "./graph/graph.ts";
import { type ProxyReport, proxyReport, type Rejection } from "./graph/inputs.ts";

/** What the stream reports about a connected proxy. */
interface ReportingProxy {
  /** Key of its fleet. */
  readonly gateway: string;
  readonly pod: string;
  /** Distinguishes proxies that name no pod, and several connections of one. */
  readonly peer: string;
  readonly rejection: (Omit<Rejection, "pod"> & { readonly version: string }) | null;
  /** Version of the state that it has applied; empty: none since it connected. */
  readonly acknowledged: string;
}

interface ProxyReportsOptions {
  readonly graph: Graph;
  /** Called when the graph has changed. */
  readonly changed: () => void;
  /** Called once for each version that a proxy rejects. */
  readonly rejected: (fleet: string, rejection: Rejection) => void;
}

/**
 * Milliseconds for which the rejection of a proxy that has left is kept. One that only connects again, because the network failed
 * or its token has expired, must not make statuses go back and forth.
 */
const KEPT_MS = 30_000;
/** Rejections of a fleet that statuses show. */
const MAX_SHOWN = 10;

interface ProxyRejection extends Rejection {
  readonly version: string;
  /** Address and port of the peer that sent it. */
  readonly peer: string;
  /** Runs when the proxy has left. */
  readonly end: NodeJS.Timeout | undefined;
}

/** Collects the rejections of connected proxies, and which Gateways shared ones serve, as input of queries. */
export class ProxyReports {
  readonly #options: ProxyReportsOptions;
  /** Fleet → pod, or peer if it names none → rejection. */
  readonly #rejections = new Map<string, Map<string, ProxyRejection>>();
  /** Shared fleet → peer → keys of the Gateways that it serves. */
  readonly #serving = new Map<string, Map<string, readonly string[]>>();

  constructor(options: ProxyReportsOptions) {
    this.#options = options;
  }

  /**
   * `connected`: false when the proxy has left. `gateways`: keys of those in the state that it runs; undefined: it has not acknowledged any
   * since it connected.
   */
  update(proxy: ReportingProxy, connected: boolean, gateways?: readonly string[]): void {
    this.#updateServing(proxy, connected ? gateways : undefined);
    this.#updateRejection(proxy, connected);
  }

  #updateServing({ gateway: fleet, peer }: ReportingProxy, gateways: readonly string[] | undefined): void {
    if (classOfFleet(fleet) === undefined) return;
    const known = this.#serving.get(fleet) ?? new Map<string, readonly string[]>();
    if (known.get(peer) === gateways) return;
    if (gateways === undefined) known.delete(peer);
    else known.set(peer, gateways);
    if (known.size === 0) this.#serving.delete(fleet);
    else this.#serving.set(fleet, known);
    this.#publish(fleet);
  }

  #updateRejection({ gateway, pod: name, peer, rejection, acknowledged }: ReportingProxy, connected: boolean): void {
    const known = this.#rejections.get(gateway) ?? new Map<string, ProxyRejection>();
    const pod = name === "" ? peer : name;
    const before = known.get(pod);
    if (!connected) {
      // The pod may have another connection by now.
      if (before?.peer !== peer || before.end !== undefined) return;
      known.set(pod, { ...before, end: setTimeout(() => this.#forget(gateway, pod), KEPT_MS).unref() });
      return;
    }
    if (rejection === null) {
      // It has only just connected: whether it can apply the state will show.
      if (acknowledged !== "") this.#forget(gateway, pod);
      return;
    }
    const { message, version, heldBack } = rejection;
    const isNew = before?.version !== version || before.message !== message;
    clearTimeout(before?.end);
    known.set(pod, { pod, message, heldBack, version, peer, end: undefined });
    this.#rejections.set(gateway, known);
    if (!isNew) return;
    this.#options.rejected(gateway, { pod, message, heldBack });
    this.#publish(gateway);
  }

  #forget(gateway: string, pod: string): void {
    const known = this.#rejections.get(gateway);
    const before = known?.get(pod);
    if (known === undefined || before === undefined) return;
    clearTimeout(before.end);
    known.delete(pod);
    if (known.size === 0) this.#rejections.delete(gateway);
    this.#publish(gateway);
  }

  #publish(gateway: string): void {
    const { graph, changed } = this.#options;
    const before = graph.get("ProxyReport", gateway);
    const after = this.#report(gateway);
    if (isDeepStrictEqual(before, after)) return;
    if (after === undefined) graph.delete("ProxyReport", gateway);
    else graph.set(after);
    changed();
  }

  #report(fleet: string): ProxyReport | undefined {
    const rejections = [...(this.#rejections.get(fleet)?.values() ?? [])]
      .map(({ pod, message, heldBack }) => ({ pod, message, heldBack }))
      .sort((a, b) => (a.pod < b.pod ? -1 : a.pod > b.pod ? 1 : 0))
      .slice(0, MAX_SHOWN);
    const serving = this.#serving.get(fleet);
    if (serving !== undefined) return proxyReport(fleet, rejections, servedByAll([...serving.values()]));
    return rejections.length === 0 ? undefined : proxyReport(fleet, rejections);
  }
}

function servedByAll([first = [], ...others]: readonly (readonly string[])[]): readonly string[] {
  const rest = others.filter((each) => each !== first).map((each) => new Set(each));
  return first.filter((gateway) => rest.every((each) => each.has(gateway)));
}
