import { printExplanation } from "../cli/explain/print.ts";
import { asUsage, questionOf } from "../cli/explain/words.ts";
import type { Context } from "../cli/runner/context.ts";
import { CliError } from "../cli/runner/errors.ts";
import { type ConfigSource, type LoadResult, loadConfig, locating, rereadable } from "../config/load.ts";
import { loadWithResources } from "../config/load-thread.ts";
import type { Settings } from "../config/settings.ts";
import type { Ir } from "../ir/ir.ts";
import { packIr } from "../ir/packed-ir.ts";
import { explain } from "../rehearsal/explain.ts";
import { inFile } from "../rehearsal/explanation.ts";
import { Rehearsal } from "../rehearsal/rehearsal.ts";
import { formatDiagnostics } from "../translation/problems/diagnostics.ts";
import { ResourceStore } from "../translation/resources/store.ts";
import { rehearsalSettings } from "./worker-settings.ts";

interface ExplainOptions {
  readonly files: readonly string[];
  readonly assume: readonly string[];
  readonly source: string | undefined;
  /** Prints JSON, not a tree. */
  readonly json: boolean;
  /** Words after `--`. */
  readonly request: readonly string[];
}

/** Explains what files do with one request. Resolves with the exit code: 0 if an outcome lets the request pass, else 1. */
export async function explainFiles(options: ExplainOptions, context: Context): Promise<number> {
  const question = questionOf(options.request, options);
  const file = rereadable({ kind: "files", paths: options.files });
  const rehearsal = await rehearsalOf(file, context.env);
  try {
    const explained = await explain(rehearsal, question).catch((error: unknown) => {
      throw asUsage(error);
    });
    const placed = inFile(explained, locating(file, context.env));
    return await printExplanation({ generation: null, ...placed }, question.request, options.json, context);
  } finally {
    rehearsal.close();
  }
}

/** A rehearsal of the configuration, which the caller closes. */
async function rehearsalOf(source: ConfigSource, env: Context["env"]): Promise<Rehearsal> {
  return rehearse(await validConfiguration(source, env, "the configuration"), env);
}

/** A valid configuration with the documents behind its URLs. `name`: of one that is not valid. */
export async function validConfiguration(
  source: ConfigSource,
  env: Context["env"],
  name: string,
): Promise<ValidConfiguration> {
  const store = ResourceStore.ofFile();
  const found = await loadWithResources((known) => store.obeying(loadConfig(source, env, known)), store);
  if (found.ok) return found;
  throw new CliError("failure", `${name} is not valid\n${formatDiagnostics(found.diagnostics).trimEnd()}`);
}

export type ValidConfiguration = Extract<LoadResult, { readonly ok: true }>;

/** A rehearsal of a configuration, which the caller closes. */
export function rehearse(
  { config, ir }: { readonly config: Settings; readonly ir: Ir },
  env: Context["env"],
): Rehearsal {
  return new Rehearsal(packIr(ir), rehearsalSettings(config, env));
}
