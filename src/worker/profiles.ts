import type { HeapProfiler, Profiler } from "node:inspector";
import { Session } from "node:inspector/promises";

/** V8's profile of one thread as plain data that crosses threads; times in microseconds. */
export type CpuProfile = Profiler.Profile;

/** A profile that is being taken. */
export interface RunningCpuProfile {
  /** Ends the sampling and returns what it saw; call it once. */
  stop(): Promise<CpuProfile>;
}

/**
 * Begins to sample the stack of the current thread `hz` times a second (1–1000). Works in the main thread and in worker
 * threads, several times at once. Costs nothing while no profile runs.
 */
export async function startCpuProfile(hz: number): Promise<RunningCpuProfile> {
  // A session per profile: the sampling interval is a property of the session and cannot change while it samples.
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.setSamplingInterval", { interval: Math.round(1_000_000 / hz) });
    await session.post("Profiler.start");
  } catch (error) {
    session.disconnect();
    throw error;
  }
  return {
    async stop() {
      try {
        return (await session.post("Profiler.stop")).profile;
      } finally {
        session.disconnect();
      }
    },
  };
}

/** V8's sampled live objects of one thread as plain data that crosses threads. */
export type HeapProfile = HeapProfiler.SamplingHeapProfile;

/** Mean bytes between samples (V8 draws the distances at random). */
const SAMPLING_INTERVAL = 512 * 1024;

let sampling: Promise<Session> | undefined;

/**
 * The objects of the current thread that are alive, by the place that allocated them. Sampling begins with the first call
 * and stays on (it costs about 1 ns per allocation): what was allocated before that is not seen, so the first profile of a
 * thread is nearly empty. Each call forces a full collection of the thread, so that only live objects are in it; that
 * stops the thread for some milliseconds, more with a large heap.
 */
export async function heapProfile(): Promise<HeapProfile> {
  sampling ??= startSampling().catch((error: unknown) => {
    sampling = undefined;
    throw error;
  });
  const session = await sampling;
  return (await session.post("HeapProfiler.getSamplingProfile")).profile;
}

/** The session is kept: V8 ends the sampling with it. */
async function startSampling(): Promise<Session> {
  const session = new Session();
  session.connect();
  await session.post("HeapProfiler.enable");
  await session.post("HeapProfiler.startSampling", { samplingInterval: SAMPLING_INTERVAL });
  return session;
}
