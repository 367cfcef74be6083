import type { HeapProfiler } from "node:inspector";
import { ProfileBuilder } from "./builder.ts";

/** What V8's heap sampling returned in one thread. */
interface ThreadHeapProfile {
  /** The value of the label `thread`. */
  readonly thread: string;
  readonly profile: HeapProfiler.SamplingHeapProfile;
}

const SPACE = { type: "inuse_space", unit: "bytes" } as const;

/**
 * One gzipped pprof profile of the live objects of several threads, by the stack that allocated them, in bytes as estimated
 * from the samples. The number of objects is not in it: V8 does not report how many a sample stands for.
 */
export function mergeHeapProfiles(threads: readonly ThreadHeapProfile[]): Promise<Uint8Array> {
  const builder = new ProfileBuilder();
  for (const { thread, profile } of threads) addThread(builder, thread, profile);
  return builder.finish({
    kinds: [SPACE],
    main: SPACE,
    // V8 has scaled the samples to all bytes already.
    period: { kind: SPACE, value: 1 },
    startedAt: Date.now(),
    durationMs: 0,
  });
}

function addThread(builder: ProfileBuilder, thread: string, { head }: HeapProfiler.SamplingHeapProfile): void {
  const open = [{ node: head, callers: [] as readonly number[] }];
  for (let entry = open.pop(); entry !== undefined; entry = open.pop()) {
    const { callFrame, selfSize, children } = entry.node;
    const stack = callFrame.functionName === "(root)" ? [] : [builder.location(callFrame), ...entry.callers];
    if (selfSize > 0) builder.sample(stack, [selfSize], thread);
    for (const node of children) open.push({ node, callers: stack });
  }
}
