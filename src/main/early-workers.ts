import { readFileSync } from "node:fs";
import { isReadOnce } from "../config/parse/inputs.ts";
import { guessThreads } from "../config/worker-threads.ts";
import { WorkerThreads } from "../worker/worker-threads.ts";
import { defaultConfigPath } from "./default-config.ts";

/**
 * Starts as many worker threads as the configuration will probably need, before the engine is loaded, because both take about
 * the same time. The arguments are those of the command line; with neither `file` nor `config` it is the default configuration.
 */
export function startWorkersEarly(
  { file, config }: { readonly file: string | undefined; readonly config: string | undefined },
  env: Readonly<Record<string, string | undefined>>,
): WorkerThreads {
  return new WorkerThreads(guessThreads(config ?? textOf(file ?? defaultConfigPath(env)), env));
}

/** Empty if it cannot be read; the later load of the configuration reports that. */
function textOf(path: string): string {
  try {
    return isReadOnce(path) ? "" : readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
