/**
 * CPU and heap profiles of the current thread by V8's own profilers, through an inspector session inside the process: no
 * debugging port is opened. Called in the main thread and, by command, in every worker; src/admin/pprof/ merges the results.
 */
import type { HeapProfiler, Profiler } from "node:inspector";
import { Session } from "node:inspector/promises";

/** V8's CPU profile of one thread, as plain data; times in microseconds. */
export type CpuProfile = Profiler.Profile;

/** A CPU profile in progress. */
export interface RunningCpuProfile {
  /** Ends the sampling and resolves with the profile. Call it once. */
  stop(): Promise<CpuProfile>;
}

/**
 * Starts to sample the stack of the current thread `hz` times a second (1–1000). Several profiles may run at once. Costs
 * nothing while none does.
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

/** V8's sampled live objects of one thread, as plain data. */
export type HeapProfile = HeapProfiler.SamplingHeapProfile;

/** Mean bytes between samples (V8 draws the distances at random). */
const SAMPLING_INTERVAL = 512 * 1024;

let sampling: Promise<Session> | undefined;

/**
 * Live objects of the current thread by the stack that allocated them. Sampling starts with the first call and stays on (about
 * 1 ns per allocation). Objects from before are missing, so a thread's first profile is nearly empty. Each call forces a full
 * garbage collection, so that only live objects count; it stops the thread for some milliseconds, more with a large heap.
 */
export async function heapProfile(): Promise<HeapProfile> {
  sampling ??= startSampling().catch((error: unknown) => {
    sampling = undefined;
    throw error;
  });
  const session = await sampling;
  return (await session.post("HeapProfiler.getSamplingProfile")).profile;
}

/** The session stays open, because V8 ends the sampling with it. */
async function startSampling(): Promise<Session> {
  const session = new Session();
  session.connect();
  await session.post("HeapProfiler.enable");
  await session.post("HeapProfiler.startSampling", { samplingInterval: SAMPLING_INTERVAL });
  return session;
}
