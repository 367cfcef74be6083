import { readConfigFiles } from "../config/parse/config-files.ts";
import { InputReader, isReadOnce } from "../config/parse/inputs.ts";
import { guessThreads } from "../config/worker-threads.ts";
import { WorkerThreads } from "../worker/worker-threads.ts";
import { defaultConfigPath } from "./default-config.ts";

/**
 * Starts as many worker threads as the configuration will probably need, before the engine is loaded, because both take about
 * the same time. The arguments are those of the command line; with neither `files` nor `config` it is the default configuration.
 */
export function startWorkersEarly(
  { files, config }: { readonly files: readonly string[]; readonly config: string | undefined },
  env: Readonly<Record<string, string | undefined>>,
): WorkerThreads {
  return new WorkerThreads(guessThreads(config ?? textOf(files.length > 0 ? files : [defaultConfigPath(env)]), env));
}

/** Without what cannot be read; the later load of the configuration reports that. */
function textOf(paths: readonly string[]): string {
  if (paths.some(isReadOnce)) return "";
  return readConfigFiles(paths, new InputReader())
    .texts.map(({ text }) => text)
    .join("\n");
}
