/** One trace of several replicas: each waits for the next request, and the first that sees one wins. */
import { setTimeout as delay } from "node:timers/promises";
import type { ProxyAdmin } from "../admin.ts";
import { describe } from "../errors.ts";
import type { TraceItem, TraceRecord } from "./source.ts";

/** Milliseconds between two looks at which replicas there are. */
const POLL_MS = 1000;

interface Winner {
  readonly proxy: ProxyAdmin;
  readonly first: TraceRecord;
  readonly rest: AsyncGenerator<TraceRecord>;
}

export interface ReplicaTrace {
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
  // The race below may be over, or not have begun, when it rejects.
  won.promise.catch(() => undefined);
  let changed = Promise.withResolvers<undefined>();
  let failure: unknown;

  const watch = async (proxy: ProxyAdmin): Promise<void> => {
    const stop = new AbortController();
    watches.set(proxy.name, stop);
    try {
      const rest = await open(proxy, AbortSignal.any([signal, stop.signal]));
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

  try {
    let shown = "";
    for (let proxies = await serving(); ; proxies = await serving().catch((error: unknown) => keep(error))) {
      for (const proxy of proxies) if (!watches.has(proxy.name)) void watch(proxy);
      const next = await Promise.race([won.promise, changed.promise, delay(POLL_MS, undefined, { signal })]);
      changed = Promise.withResolvers();
      if (next !== undefined) {
        for (const [other, stop] of watches) if (other !== next.proxy.name) stop.abort();
        yield { kind: "source", text: `${name} · ${next.proxy.name}` };
        yield next.first;
        yield* next.rest;
        return;
      }
      if (shown === "" && failure !== undefined && watches.size === 0) throw failure;
      const text = progress(waiting, failure);
      if (text !== shown) yield { kind: "progress", text };
      shown = text;
    }
  } finally {
    for (const stop of watches.values()) stop.abort();
  }

  /** The API server did not say which replicas there are: those that are watched stay. */
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
