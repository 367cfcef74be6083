import { readFileSync } from "node:fs";
import type { Ir } from "../ir/ir.ts";
import { UNAVAILABLE_POLICIES } from "../policies/schemas.ts";
import type { Diagnostic } from "./diagnostics.ts";
import { ConfigDocument } from "./document.ts";
import { knownFields } from "./known-fields.ts";
import { type ConfigFile, configFile } from "./schema/config.ts";
import { reportIssues } from "./schema-errors.ts";
import { resolveSettings, type Settings } from "./settings.ts";
import { translate } from "./translate/translate.ts";

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
    }
  | { readonly ok: false; readonly diagnostics: readonly Diagnostic[] };

const FIELDS = knownFields(configFile);

/** Fields of other systems' files, or of this one's future, with what to do about them. */
const ABSENT: Readonly<Record<string, string>> = {
  ui: "there is no web UI; remove it",
  llm: "LLM routing is not supported by tracegate; remove it",
  mcp: "MCP is not supported by tracegate; remove it",
  ai: "AI backends are not supported by tracegate; use host",
  aws: "AWS backends are not supported by tracegate; use host",
  internal: "internal backends are not available in this version; use host with the admin address",
  "config.listener": "was renamed to frontendPolicies",
  "config.tracing": "request tracing to collectors is not available in this version; remove it",
};

/**
 * Reads, expands, parses, checks and translates a configuration. All problems of the text are found in one run: what is
 * wrong is left out and the rest is checked further.
 */
export function loadConfig(source: ConfigSource, env: Readonly<Record<string, string | undefined>>): LoadResult {
  const file = source.kind === "file" ? source.path : (source.name ?? "configuration");
  let text: string;
  try {
    text = source.kind === "text" ? source.text : readFileSync(source.path === "-" ? 0 : source.path, "utf8");
  } catch (error) {
    return failure(file, `cannot read the file: ${explain(error as NodeJS.ErrnoException)}`);
  }
  const document = new ConfigDocument(file, text, env);
  if (!document.ok) return { ok: false, diagnostics: document.diagnostics };
  const value = document.value ?? {};
  const parsed = parse(value, document);
  if (parsed === undefined) return { ok: false, diagnostics: byPlace(document.diagnostics) };
  const settings = resolveSettings(parsed.config, parsed.adminAddr, env, document);
  const { ir, files } = translate(parsed, document, settings.enableIpv6);
  const diagnostics = byPlace(document.diagnostics);
  if (!document.ok) return { ok: false, diagnostics };
  return { ok: true, config: settings, ir, warnings: diagnostics, files };
}

/** The checked configuration; where the schema refuses parts, those are reported and the rest is returned if it can be. */
function parse(value: unknown, document: ConfigDocument): ConfigFile | undefined {
  const result = configFile.safeParse(value);
  if (result.success) return result.data;
  const issues = result.error.issues.filter((issue) => {
    if (issue.code !== "unrecognized_keys") return true;
    const unexplained = issue.keys.filter((key) => !explainAbsent(document, issue.path, key));
    issue.keys.splice(0, issue.keys.length, ...unexplained);
    return unexplained.length > 0;
  });
  const wrong = reportIssues(document, issues, FIELDS);
  for (const { path, key } of document.explained) wrong.push([...path, key]);
  const pruned = structuredClone(value);
  for (const path of wrong) remove(pruned, path);
  return configFile.safeParse(pruned).data;
}

/** Says more than "unknown field" about names that are known elsewhere. */
function explainAbsent(document: ConfigDocument, path: readonly PropertyKey[], key: string): boolean {
  const message = ABSENT[`${path.join(".")}.${key}`] ?? ABSENT[key] ?? unavailablePolicy(path, key);
  if (message === undefined) return false;
  document.report(path, { message }, key);
  document.explained.push({ path, key });
  return true;
}

function unavailablePolicy(path: readonly PropertyKey[], key: string): string | undefined {
  const place = path.at(-1);
  const holdsPolicies =
    place === "policies" || place === "policy" || path[0] === "gateways" || place === "frontendPolicies";
  if (!holdsPolicies || !UNAVAILABLE_POLICIES.includes(key)) return undefined;
  return `policy ${key} is not available in this version; remove it`;
}

/** Deletes the value at a path, so that the rest can be checked. */
function remove(value: unknown, path: readonly PropertyKey[]): void {
  let at: unknown = value;
  for (const part of path.slice(0, -1)) at = (at as Record<PropertyKey, unknown> | undefined)?.[part];
  const last = path.at(-1);
  if (last !== undefined && typeof at === "object" && at !== null && !Array.isArray(at))
    delete (at as Record<PropertyKey, unknown>)[last];
}

function byPlace(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  return [...diagnostics].sort((a, b) => a.line - b.line || a.column - b.column);
}

function failure(file: string, message: string): LoadResult {
  return { ok: false, diagnostics: [{ severity: "error", file, line: 0, column: 0, path: "", message }] };
}

function explain(error: NodeJS.ErrnoException): string {
  if (error.code === "ENOENT") return "it does not exist";
  if (error.code === "EACCES") return "not permitted";
  if (error.code === "EISDIR") return "it is a folder";
  return error.message;
}
