import { withFunctions } from "../cel/index.ts";
import type { Ir } from "../ir/ir.ts";
import { cookieSecretProblem } from "./cookie-secret.ts";
import { customFunctions } from "./custom-functions.ts";
import type { Diagnostic } from "./diagnostics.ts";
import { ConfigDocument } from "./document.ts";
import { formerTracing } from "./former-tracing.ts";
import { knownFields } from "./known-fields.ts";
import { otherProgram } from "./other-programs.ts";
import { readText } from "./read-file.ts";
import { NO_RESOURCES, type Resources } from "./resources/store.ts";
import { type Salvaged, salvage } from "./salvage.ts";
import { type ConfigFile, configFile } from "./schema/config.ts";
import { reportIssues } from "./schema-errors.ts";
import { resolveSettings, type Settings } from "./settings.ts";
import type { Path, Report } from "./translate/context.ts";
import { translate } from "./translate/translate.ts";
import { isReadOnce } from "./watch.ts";

/** Where a configuration comes from. `name` stands for the file in messages. */
export type ConfigSource =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "text"; readonly text: string; readonly name?: string };

export type LoadResult =
  | {
      readonly ok: true;
      readonly config: Settings;
      readonly ir: Ir;
      readonly warnings: readonly Diagnostic[];
      /** Other files that the configuration names; a change of them is a change of the configuration. */
      readonly files: readonly string[];
      /** URLs that it names; what is behind those that are not among the resources is missing from it. */
      readonly urls: readonly string[];
    }
  | {
      readonly ok: false;
      readonly diagnostics: readonly Diagnostic[];
      /** As above, as far as they are known: the mistake may be in one of them. */
      readonly files: readonly string[];
      readonly urls: readonly string[];
    };

/** What a configuration depends on besides its text; `file` is what messages call it. */
interface Around {
  readonly file: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly resources: Resources;
}

const FIELDS = knownFields(configFile);
const UNDAMAGED = { original: (path: Path) => path, incomplete: new Set<string>(), damaged: () => false };

/**
 * Reads, expands, parses, checks and translates a configuration. All problems of the text are found in one run: what is
 * wrong is left out and the rest is checked further. `resources` is what is behind the URLs that it names.
 */
export function loadConfig(
  source: ConfigSource,
  env: Readonly<Record<string, string | undefined>>,
  resources = NO_RESOURCES,
): LoadResult {
  const file = nameOf(source);
  let text: string;
  try {
    text = source.kind === "text" ? source.text : readText(source.path);
  } catch (error) {
    return failure(file, `cannot read the file: ${error instanceof Error ? error.message : String(error)}`);
  }
  const document = new ConfigDocument(file, text, env);
  const { value } = document;
  // What is wrong with each line of it would not help.
  const other = otherProgram(text, value);
  if (other !== undefined) return failure(file, other);
  if (!document.ok) return refuse(document);
  if (value === null || value === undefined)
    return failure(file, "is empty; write {} for a gateway that serves nothing");
  if (typeof value !== "object" || Array.isArray(value)) {
    document.report([], { message: "a configuration is an object with fields such as binds or gateways" });
    return refuse(document);
  }
  const functions = customFunctions(document);
  if (functions === undefined) return refuse(document);
  return withFunctions(functions, () => checkAndTranslate(value, document, { file, env, resources }));
}

/** The rest of `loadConfig`, for which the functions that expressions may call are known. */
function checkAndTranslate(value: object, document: ConfigDocument, { file, env, resources }: Around): LoadResult {
  const checked = check(value, document);
  if (checked === undefined) return refuse(document);
  const { data, original, incomplete, damaged } = checked;
  const settings = resolveSettings(data.config, data.adminAddr, env, document);
  const report: Report = (path, problem, key) => {
    const written = original(path);
    if (!damaged(written)) document.report(written, problem, key);
  };
  const surroundings = {
    file,
    home: env.HOME,
    enableIpv6: settings.enableIpv6,
    leafCaching: settings.leafCaching,
    resources,
    formerTracing: formerTracing(data.config.tracing, env, document),
  };
  const { ir, files, urls } = translate(data, surroundings, report, incomplete);
  const unsealed = cookieSecretProblem(ir, env);
  if (unsealed !== undefined) document.reportElsewhere(unsealed);
  if (!document.ok) return refuse(document, files, urls);
  return { ok: true, config: settings, ir, warnings: byPlace(document.diagnostics), files, urls };
}

/** The configuration, or what is left of it when the wrong parts, which are reported, are taken away. */
function check(value: object, document: ConfigDocument): Salvaged<ConfigFile> | undefined {
  const result = configFile.safeParse(value);
  if (result.success) return { ...UNDAMAGED, data: result.data };
  reportIssues(document, result.error.issues, FIELDS);
  return salvage(configFile, value, result.error.issues);
}

/** A source that can be read again: what can be read only once, such as standard input, as its text. */
export function rereadable(source: ConfigSource): ConfigSource {
  if (source.kind === "text" || !isReadOnce(source.path)) return source;
  try {
    return { kind: "text", text: readText(source.path), name: nameOf(source) };
  } catch {
    // Loading it tells why.
    return source;
  }
}

/** What messages call the source of a configuration. */
function nameOf(source: ConfigSource): string {
  if (source.kind === "text") return source.name ?? "configuration";
  return source.path === "-" ? "standard input" : source.path;
}

function refuse(document: ConfigDocument, files: readonly string[] = [], urls: readonly string[] = []): LoadResult {
  return { ok: false, diagnostics: byPlace(document.diagnostics), files, urls };
}

function byPlace(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  return [...diagnostics].sort((a, b) => a.line - b.line || a.column - b.column);
}

function failure(file: string, message: string): LoadResult {
  return {
    ok: false,
    diagnostics: [{ severity: "error", file, line: 0, column: 0, path: "", message }],
    files: [],
    urls: [],
  };
}
