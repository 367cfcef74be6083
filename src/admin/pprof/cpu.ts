import type { Profiler } from "node:inspector";
import { ProfileBuilder } from "./builder.ts";

/** What `stop()` of a CPU profile returned in one thread. */
interface ThreadCpuProfile {
  /** Such as `main` or `worker-0`: the value of the label `thread`. */
  readonly thread: string;
  readonly profile: Profiler.Profile;
}

const SAMPLES = { type: "samples", unit: "count" } as const;
const CPU = { type: "cpu", unit: "nanoseconds" } as const;

/**
 * One gzipped pprof profile of several threads. Values per stack: samples, and CPU nanoseconds. Waiting for events is left
 * out; `(program)` is native code, `(garbage collector)` collections of that thread.
 * @param hz the sampling rate they were started with; the profiles have just ended
 */
export function mergeCpuProfiles(threads: readonly ThreadCpuProfile[], hz: number): Promise<Uint8Array> {
  const builder = new ProfileBuilder();
  let duration = 0;
  for (const { thread, profile } of threads) {
    duration = Math.max(duration, (profile.endTime - profile.startTime) / 1000);
    addThread(builder, thread, profile);
  }
  return builder.finish({
    kinds: [SAMPLES, CPU],
    main: CPU,
    period: { kind: CPU, value: 1e9 / hz },
    startedAt: Date.now() - duration,
    durationMs: duration,
  });
}

function addThread(builder: ProfileBuilder, thread: string, profile: Profiler.Profile): void {
  const times = selfTimes(profile);
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const root = profile.nodes[0];
  // Depth-first, with the ids of the callers at hand, the innermost first.
  const open = root === undefined ? [] : [{ id: root.id, callers: [] as readonly number[] }];
  for (let entry = open.pop(); entry !== undefined; entry = open.pop()) {
    const node = nodes.get(entry.id);
    if (node === undefined || node.callFrame.functionName === "(idle)") continue;
    const { callFrame, positionTicks = [], children = [] } = node;
    const time = times.get(node.id);
    if (time !== undefined) {
      const counted = positionTicks.reduce((sum, { ticks }) => sum + ticks, 0);
      // Where V8 knows the lines, the node's time is shared out to them by their ticks.
      const lines = counted > 0 ? positionTicks : [{ line: callFrame.lineNumber + 1, ticks: 1 }];
      for (const { line, ticks } of lines) {
        const share = ticks / Math.max(1, counted);
        const values = [time.samples * share, time.microseconds * share * 1000];
        builder.sample([builder.location(callFrame, line), ...entry.callers], values, thread);
      }
    }
    const callers = callFrame.functionName === "(root)" ? [] : [builder.location(callFrame), ...entry.callers];
    for (const id of children) open.push({ id, callers });
  }
}

interface SelfTime {
  samples: number;
  microseconds: number;
}

/** Samples and time per node: a sample stands for the time until the next one. */
function selfTimes({ samples = [], timeDeltas = [], startTime, endTime }: Profiler.Profile): Map<number, SelfTime> {
  const times = new Map<number, SelfTime>();
  let at = startTime;
  samples.forEach((id, i) => {
    at += timeDeltas[i] ?? 0;
    const until = timeDeltas[i + 1] ?? endTime - at;
    const known = times.get(id) ?? { samples: 0, microseconds: 0 };
    known.samples += 1;
    // Deltas may be negative: V8 notes a sample when it is processed, not always in order.
    known.microseconds += Math.max(0, until);
    times.set(id, known);
  });
  return times;
}
