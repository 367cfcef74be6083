import { isDeepStrictEqual } from "node:util";
import type { Graph } from "./graph.ts";
import { type ProxyReport, proxyReport, type Rejection } from "./inputs.ts";

/** What is read of a connected proxy. */
export interface ReportingProxy {
  /** `<namespace>/<name>` of its Gateway. */
  readonly gateway: string;
  readonly pod: string;
  /** Tells apart proxies that name no pod, and the connections of one. */
  readonly peer: string;
  readonly rejection: { readonly message: string; readonly version: string } | null;
}

export interface ProxyReportsOptions {
  readonly graph: Graph;
  /** Called when the graph has changed. */
  readonly changed: () => void;
  /** Called once for each version that a proxy rejects. */
  readonly rejected: (gateway: string, rejection: Rejection) => void;
}

/** Collects what the proxies that are connected here have rejected, as input of queries. */
export class ProxyReports {
  readonly #options: ProxyReportsOptions;
  /** Gateway → peer → rejection. */
  readonly #rejections = new Map<string, Map<string, Rejection & { readonly version: string }>>();

  constructor(options: ProxyReportsOptions) {
    this.#options = options;
  }

  /** `connected`: false when the proxy has left, and its rejection with it. */
  update({ gateway, pod, peer, rejection }: ReportingProxy, connected: boolean): void {
    const known = this.#rejections.get(gateway);
    const before = known?.get(peer);
    if (!connected || rejection === null) {
      if (before === undefined) return;
      known?.delete(peer);
      if (known?.size === 0) this.#rejections.delete(gateway);
    } else {
      const { message, version } = rejection;
      if (before?.version === version && before.message === message) return;
      const now = { pod: pod === "" ? peer : pod, message, version };
      if (known === undefined) this.#rejections.set(gateway, new Map([[peer, now]]));
      else known.set(peer, now);
      this.#options.rejected(gateway, now);
    }
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

  #report(gateway: string): ProxyReport | undefined {
    const rejections = [...(this.#rejections.get(gateway)?.values() ?? [])]
      .map(({ pod, message }) => ({ pod, message }))
      .sort((a, b) => (a.pod < b.pod ? -1 : a.pod > b.pod ? 1 : 0));
    const [namespace = "", name = ""] = gateway.split("/");
    return rejections.length === 0 ? undefined : proxyReport(namespace, name, rejections);
  }
}
