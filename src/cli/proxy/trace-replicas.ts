/** One trace of several replicas: each waits for the next request, and the first that sees one wins. */
import { setTimeout as delay } from "node:timers/promises";
import { describe } from "../runner/errors.ts";
import type { TraceItem, TraceRecord } from "../trace/source.ts";
import type { ProxyAdmin } from "./admin.ts";

/** Milliseconds between two lookups of the replicas. */
const POLL_MS = 1000;
/** The result of the wait for the next lookup. */
const PAUSED = Symbol("paused");

interface Winner {
  readonly proxy: ProxyAdmin;
  readonly first: TraceRecord;
  readonly rest: AsyncGenerator<TraceRecord>;
}

interface ReplicaTrace {
  /** `gateway/web`, for the title. */
  readonly name: string;
  /** The replicas that serve requests now. */
  readonly serving: () => Promise<readonly ProxyAdmin[]>;
  /** Resolves when the replica waits for a request to trace. */
  readonly open: (proxy: ProxyAdmin, signal: AbortSignal) => Promise<AsyncGenerator<TraceRecord>>;
  readonly signal: AbortSignal;
}

/**
 * The events of the first replica that sees a request. Replicas that start meanwhile are watched too; a stream that ends
 * without an event, because its pod stops, is opened again if the pod still serves.
 * @throws CliError if no replica can be watched at the beginning; later failures are progress
 */
export async function* replicaItems({ name, serving, open, signal }: ReplicaTrace): AsyncGenerator<TraceItem> {
  const watches = new Map<string, AbortController>();
  const waiting = new Set<string>();
  const won = Promise.withResolvers<Winner>();
  let changed = Promise.withResolvers<undefined>();
  let watched = false;
  let failure: unknown;

  const watch = async (proxy: ProxyAdmin): Promise<void> => {
    const stop = new AbortController();
    watches.set(proxy.name, stop);
    try {
      const rest = await open(proxy, AbortSignal.any([signal, stop.signal]));
      watched = true;
      waiting.add(proxy.name);
      changed.resolve(undefined);
      const { value, done } = await rest.next();
      if (done !== true) won.resolve({ proxy, first: value, rest });
    } catch (error) {
      if (!stop.signal.aborted) failure = error;
    }
    watches.delete(proxy.name);
    waiting.delete(proxy.name);
    changed.resolve(undefined);
  };

  const over = new AbortController();
  try {
    yield { kind: "progress", text: `connecting to ${name}` };
    let shown = "";
    for (let proxies = await serving(); ; proxies = await serving().catch(keep)) {
      for (const proxy of proxies) if (!watches.has(proxy.name)) void watch(proxy);
      const pause = delay(POLL_MS, PAUSED, { signal: AbortSignal.any([signal, over.signal]) });
      for (let next: Winner | typeof PAUSED | undefined; next !== PAUSED; ) {
        next = await Promise.race([won.promise, changed.promise, pause]);
        if (next !== undefined && next !== PAUSED) {
          for (const [other, stop] of watches) if (other !== next.proxy.name) stop.abort();
          yield { kind: "source", text: `${name} · ${next.proxy.name}` };
          yield next.first;
          yield* next.rest;
          return;
        }
        changed = Promise.withResolvers();
        if (!watched && watches.size === 0 && failure !== undefined) throw failure;
        const text = progress(waiting, failure);
        if (text !== shown && (waiting.size > 0 || next === PAUSED)) {
          shown = text;
          yield { kind: "progress", text };
        }
      }
    }
  } finally {
    over.abort();
    for (const stop of watches.values()) stop.abort();
  }

  /** The lookup of the replicas failed: those that are being watched stay. */
  function keep(error: unknown): readonly ProxyAdmin[] {
    signal.throwIfAborted();
    failure = error;
    return [];
  }
}

function progress(waiting: ReadonlySet<string>, failure: unknown): string {
  if (waiting.size > 0) return `waiting for the next request at ${[...waiting].sort().join(", ")}`;
  return failure === undefined ? "waiting for a ready pod" : `waiting for a ready pod: ${describe(failure)}`;
}
