/** Loads a configuration that a client of the admin server has sent. Only the rehearsal thread loads this module, when it is asked to. */

import type { Locate } from "../base/origin.ts";
import { loadConfig, locating } from "../config/load.ts";
import type { NamedText } from "../config/parse/config-files.ts";
import { InputReader } from "../config/parse/inputs.ts";
import { type PackedIr, packIr } from "../ir/packed-ir.ts";
import { COOKIE_SECRET } from "../policies/oidc/cookie-key.ts";
import { formatDiagnostics } from "../translation/problems/diagnostics.ts";
import type { Resources } from "../translation/resources/store.ts";
import { BadConfiguration } from "./question.ts";
import type { RehearsalSettings } from "./rehearsal.ts";

/** Whoever may ask for explanations must not learn what is in files and variables of the gateway. */
class NoFiles extends InputReader {
  override readBytes(): Buffer {
    throw new Error("a gateway reads no files for an explanation; use tracegate explain -f FILE");
  }

  override exists(): boolean {
    return true;
  }
}

/** A key for `oidc`, which must have one. */
const ENV = { [COOKIE_SECRET]: "0".repeat(64) };

/**
 * The configuration with its settings, and where its values are. `resources`: documents that the gateway
 * has fetched; no others are. Throws BadConfiguration with every problem.
 */
export function loadTexts(
  texts: readonly NamedText[],
  resources: Resources,
): {
  readonly configuration: PackedIr;
  readonly settings: Pick<RehearsalSettings, "sensitiveHeaders" | "perRequest">;
  readonly locate: Locate;
} {
  const source = { kind: "texts", texts } as const;
  const loaded = loadConfig(source, ENV, resources, new NoFiles());
  if (!loaded.ok) throw new BadConfiguration(formatDiagnostics(loaded.diagnostics).trimEnd());
  const { sensitiveHeaders, expressions } = loaded.config;
  return {
    configuration: packIr(loaded.ir),
    settings: { sensitiveHeaders, perRequest: expressions.perRequest * 1000 },
    locate: locating(source, ENV),
  };
}
