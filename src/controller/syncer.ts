/**
 * Turns changes of the graph into what follows from them. In: objects, from reflectors, and reports. Out: the state of each fleet of proxies
 * to the stream, then a call of whatever writes to the cluster. A burst of changes becomes one run.
 */
import { asError } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import { keyOfObject } from "../kube/keys.ts";
import type { Kind, Objects } from "../kube/objects.ts";
import type { Sink } from "../kube/reflector.ts";
import { type GatewayState, mergeStates } from "../xds/resources.ts";
import type { Graph } from "./graph/graph.ts";
import type { InputKind, Inputs } from "./graph/inputs.ts";
import type { ReconcileMetrics } from "./metrics.ts";
import { gatewayState } from "./translate/gateway-state.ts";
import { fleetsOf } from "./translate/model/fleets.ts";

/** Milliseconds without a change after which a burst is over, and its longest duration. */
const QUIET_MS = 2;
const BURST_MS = 20;
/**
 * Each run costs the proxies time for which requests wait. While changes keep coming, as when hundreds of routes are replaced one by one, the
 * pause after a run therefore doubles from the first value to the longest. After so many milliseconds without a run there is none.
 */
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 50;
const CALM_MS = 250;
/**
 * Milliseconds between a run and the writes that follow from it. Statuses of thousands of routes take longer to compute than the
 * state of a Gateway, and traffic must not wait for them.
 */
const WRITE_MS = 50;
/** Results about objects that have gone are dropped after so many runs. */
const COLLECT_AFTER = 500;

interface SyncerOptions {
  readonly graph: Graph;
  /**
   * `gateways`: keys of those that the state contains. undefined: the Gateways of the fleet are gone, belong to another controller, or have
   * moved to other proxies.
   */
  readonly publish: (fleet: string, state: GatewayState | undefined, gateways: readonly string[]) => void;
  /**
   * Called when all states have been computed. False: some objects that they need are still being fetched; their arrival is a change, and the
   * run after it publishes the states.
   */
  readonly complete?: () => boolean;
  /** Called soon after runs: compares what is in the cluster with what should be there. */
  readonly write: () => void;
  readonly metrics: ReconcileMetrics;
  readonly log: Logger;
}

export class Syncer implements Sink {
  readonly #options: SyncerOptions;
  /** By key of the fleet. */
  readonly #published = new Map<string, Publication>();
  /** The last result of each Gateway that could be translated. */
  readonly #translations = new Map<string, Translation>();
  /** Gateways whose translation has failed, so that the log says so once. */
  readonly #failing = new Set<string>();
  #started = false;
  #timer: NodeJS.Timeout | undefined;
  #writeTimer: NodeJS.Timeout | undefined;
  /** When the burst has to end. */
  #deadline = 0;
  /** `performance.now()` ms of the last run. */
  #ranAt = Number.NEGATIVE_INFINITY;
  /** The minimum time in milliseconds from that run to the next. */
  #pause = 0;
  #runs = 0;

  constructor(options: SyncerOptions) {
    this.#options = options;
  }

  replace<K extends Kind>(kind: K, objects: readonly Objects[K][], namespace?: string): void {
    this.#change(kind, (graph) => graph.replace(kind, objects as unknown as readonly Inputs[K][], namespace));
  }

  set(object: Inputs[InputKind]): void {
    this.#change(object.kind, (graph) => graph.set(object));
  }

  delete(kind: InputKind, key: string): void {
    this.#change(kind, (graph) => graph.delete(kind, key));
  }

  /** Everything has been listed: runs now, and from now on after changes. Before, results would be those of half a cluster. */
  start(): void {
    this.#started = true;
    this.#run();
  }

  stop(): void {
    this.#started = false;
    clearTimeout(this.#timer);
    clearTimeout(this.#writeTimer);
    this.#timer = undefined;
    this.#writeTimer = undefined;
  }

  /** To be called when something outside of the graph has changed that writers depend on. */
  changed(): void {
    this.#schedule(true);
  }

  /** `canWait`: false ends the pause. */
  #schedule(canWait: boolean): void {
    if (!this.#started) return;
    const now = performance.now();
    if (this.#timer === undefined) this.#deadline = now + BURST_MS;
    else clearTimeout(this.#timer);
    if (!canWait) this.#pause = 0;
    const pause = this.#ranAt + this.#pause - now;
    this.#timer = setTimeout(() => this.#run(), Math.max(0, pause, Math.min(QUIET_MS, this.#deadline - now)));
  }

  /** Nodes and leases are written every few seconds without a relevant change. */
  #change(kind: InputKind, change: (graph: Graph) => void): void {
    const { graph } = this.#options;
    const { version } = graph;
    change(graph);
    // Until the proxies know that an endpoint has ended, they send requests there.
    if (graph.version !== version) this.#schedule(kind !== "EndpointSlice");
  }

  /** What the stream was given last, by key of the fleet. */
  get published(): ReadonlyMap<string, Publication> {
    return this.#published;
  }

  #run(): void {
    this.#timer = undefined;
    this.#nextPause();
    const { graph, publish } = this.#options;
    this.#runs++;
    const fleets = this.#translateAll();
    if (this.#options.complete?.() === false) return;
    for (const [fleet, gateways] of fleets) this.#publish(fleet, gateways);
    for (const fleet of this.#published.keys()) {
      if (fleets.has(fleet)) continue;
      this.#published.delete(fleet);
      publish(fleet, undefined, []);
    }
    this.#writeTimer ??= setTimeout(() => this.#write(), WRITE_MS);
    if (this.#runs < COLLECT_AFTER) return;
    this.#runs = 0;
    graph.collect();
  }

  #nextPause(): void {
    const now = performance.now();
    const isFirst = now - this.#ranAt >= CALM_MS;
    this.#pause = isFirst ? 0 : Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, this.#pause * 2));
    this.#ranAt = now;
  }

  #write(): void {
    this.#writeTimer = undefined;
    try {
      this.#options.write();
    } catch (error) {
      this.#options.log.error("statuses or deployments could not be computed", { error: asError(error) });
    }
  }

  /** Brings the states of all Gateways up to date. Returns the Gateways of ours by key of the fleets that are sent their states. */
  #translateAll(): ReadonlyMap<string, readonly string[]> {
    const fleets = new Map<string, string[]>();
    const gone = new Set(this.#translations.keys());
    for (const key of this.#options.graph.list("Gateway").map(keyOfObject)) {
      const translation = this.#translate(key);
      if (translation === undefined) continue;
      gone.delete(key);
      this.#translations.set(key, translation);
      for (const fleet of translation.fleets) {
        const gateways = fleets.get(fleet);
        if (gateways === undefined) fleets.set(fleet, [key]);
        else gateways.push(key);
      }
    }
    for (const key of gone) this.#translations.delete(key);
    return fleets;
  }

  /** Publishes the state of a fleet if that of one of its Gateways has changed, or if it has other Gateways than before. */
  #publish(fleet: string, gateways: readonly string[]): void {
    const parts = gateways.flatMap((key) => this.#translations.get(key)?.state ?? []);
    const before = this.#published.get(fleet);
    if (before !== undefined && isSame(before.parts, parts)) return;
    const [only, ...others] = parts;
    const state = only !== undefined && others.length === 0 ? only : mergeStates(parts);
    this.#published.set(fleet, { state, parts });
    this.#options.publish(fleet, state, gateways);
  }

  /** undefined: the Gateway is not ours. An error is ours and must not take other Gateways with it; this one keeps its last state. */
  #translate(key: string): Translation | undefined {
    const { graph, metrics, log } = this.#options;
    try {
      const state = metrics.run("gateway", () => graph.query(gatewayState, key));
      const fleets = graph.query(fleetsOf, key).map((fleet) => fleet.key);
      this.#failing.delete(key);
      return state && { state, fleets };
    } catch (error) {
      if (!this.#failing.has(key)) log.error("translation failed", { gateway: key, error: asError(error) });
      this.#failing.add(key);
      return this.#translations.get(key);
    }
  }
}

/** The state of a fleet. */
interface Publication {
  readonly state: GatewayState;
  /** Those of its Gateways, each of which is another object. */
  readonly parts: readonly GatewayState[];
}

interface Translation {
  readonly state: GatewayState;
  /** Keys of the fleets that are sent the state. */
  readonly fleets: readonly string[];
}

function isSame<T>(a: readonly T[], b: readonly T[]): boolean {
  return a.length === b.length && a.every((each, i) => each === b[i]);
}
