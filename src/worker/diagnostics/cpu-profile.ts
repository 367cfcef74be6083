import type { Profiler } from "node:inspector";
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
