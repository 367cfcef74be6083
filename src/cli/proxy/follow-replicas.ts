/** What all replicas of a Gateway stream, also those that start later. */
import { setTimeout as delay } from "node:timers/promises";
import { fieldsOf } from "../../base/fields.ts";
import { describe } from "../runner/errors.ts";
import type { FollowedItem, FollowedOutput } from "../trace/followed.ts";
import type { ProxyAdmin } from "./admin.ts";

/** Milliseconds between two lookups of the replicas. */
const POLL_MS = 1000;

interface Replicas {
  /** Those that are followed from the beginning, at least one. */
  readonly first: readonly ProxyAdmin[];
  /** Those that serve requests now. */
  readonly serving: () => Promise<readonly ProxyAdmin[]>;
  /** Resolves when the replica has begun to follow, for at most so many milliseconds. */
  readonly open: (proxy: ProxyAdmin, forMs: number) => Promise<AsyncGenerator<FollowedItem>>;
  /** How long to follow, in milliseconds. */
  readonly forMs: number;
}

/**
 * The items of all replicas until the time is over. Replicas that join later are followed for the rest of the time, also those that have left
 * and come back. Later failures are items.
 * @throws what `open` throws for one of the first
 */
export async function followReplicas({
  first,
  serving,
  open,
  forMs,
}: Replicas): Promise<AsyncIterable<FollowedOutput>> {
  const endsAt = performance.now() + forMs;
  const opened = await Promise.all(first.map(async (proxy) => ({ proxy, events: await open(proxy, forMs) })));
  const { readable, writable } = new TransformStream<FollowedOutput, FollowedOutput>();
  const output = writable.getWriter();
  const over = new AbortController();
  // The consumer has seen enough.
  output.closed.catch(() => undefined).then(() => over.abort());
  const followed = new Set<string>();
  /** What was said last of each replica that failed: not again with each attempt. */
  const failures = new Map<string, string>();

  const pump = async ({ pod }: ProxyAdmin, events: AsyncGenerator<FollowedItem>): Promise<void> => {
    for await (const record of events) {
      await output.write({ pod: pod?.name, record });
      // Its time, or the number of requests, is that of the others too.
      if (endedAsAsked(record)) over.abort();
    }
  };
  const join = async (proxy: ProxyAdmin): Promise<void> => {
    const left = Math.floor(endsAt - performance.now());
    if (left < 1) return;
    const events = await open(proxy, left);
    failures.delete(proxy.name);
    await output.write({ pod: proxy.pod?.name, record: { kind: "progress", text: "is followed too from now on" } });
    await pump(proxy, events);
  };
  const run = async (proxy: ProxyAdmin, work: Promise<void>): Promise<void> => {
    followed.add(proxy.name);
    try {
      await work;
    } catch (error) {
      const text = describe(error);
      if (failures.get(proxy.name) !== text) await output.write({ pod: proxy.pod?.name, error }).catch(() => undefined);
      failures.set(proxy.name, text);
    }
    followed.delete(proxy.name);
  };

  const runs = opened.map(({ proxy, events }) => run(proxy, pump(proxy, events)));
  const watch = async (): Promise<void> => {
    const { signal } = over;
    while (!signal.aborted && performance.now() < endsAt) {
      await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
      const proxies = signal.aborted ? [] : await serving().catch(() => []);
      for (const proxy of proxies) if (!followed.has(proxy.name)) runs.push(run(proxy, join(proxy)));
    }
    await Promise.all(runs);
    await output.close();
  };
  watch().catch(() => undefined);
  return readable;
}

function endedAsAsked(record: FollowedItem): boolean {
  if (record.kind !== "event") return false;
  const { type, reason } = fieldsOf(record.event.message);
  return type === "followEnded" && reason !== "shutdown";
}
