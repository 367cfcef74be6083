import { availableParallelism } from "node:os";

type Env = Readonly<Record<string, string | undefined>>;

/** A number, a share of the processors (at least 1), or one for each processor. `limit`: processors that may be used. */
export function countThreads(threads: string | number | undefined, limit: string | undefined): number {
  const processors = Math.max(1, Math.floor(Number(limit)) || availableParallelism());
  if (threads === undefined) return processors;
  const text = String(threads);
  const share = text.endsWith("%") ? (processors * Number(text.slice(0, -1))) / 100 : Number(text);
  return Number.isFinite(share) ? Math.max(1, Math.min(1024, Math.floor(share))) : processors;
}

/**
 * The number of workers that a configuration probably asks for, without parsing it, so that their threads can start before the
 * parser is loaded. A wrong guess costs only time.
 */
export function guessThreads(configuration: string, env: Env): number {
  const written = /^\s*(?:config:\s*\{.*)?["']?workerThreads["']?:\s*["']?(\d+%?)/m.exec(configuration)?.[1];
  return countThreads(env.WORKER_THREADS ?? written, env.CPU_LIMIT);
}
