/**
 * Configuration, from text to IR. In: a file or text, the environment, and the documents behind its URLs. Out: settings of
 * the process and the IR of the data plane, or diagnostics with file, line and column; nothing is started, and nothing throws.
 * The steps are folders: `parse/` reads and expands the text and knows where each value is, `schema/` (zod) validates it and is
 * the source of the documentation, `translate/` turns it into IR, `diagnose/` says what is wrong with the file as a whole. `migrate/`
 * rewrites settings that have moved. What objects of Kubernetes have as well is in the room `translation`.
 * Callers: `load-thread.ts` for the start and reloads, `check.ts` for `tracegate check`.
 */
import { isDeepStrictEqual } from "node:util";
import type { Locate } from "../base/origin.ts";
import type { Path } from "../base/paths.ts";
import { formatPath, valueAt } from "../base/paths.ts";
import { redactUrls } from "../base/redaction.ts";
import { CelEnvironment, type CustomFunctions, NO_FUNCTIONS, readFunctions } from "../cel/index.ts";
import type { Ir } from "../ir/ir.ts";
import { COOKIE_SECRET, parseCookieKey } from "../policies/oidc/cookie-key.ts";
import type { PolicySet } from "../policies/policy-set.ts";
import { parsingWith } from "../policies/schema/cel.ts";
import { adviseOnAdmin, adviseOnConditions } from "../translation/advice.ts";
import type { Diagnostic } from "../translation/problems/diagnostics.ts";
import { knownFields } from "../translation/problems/known-fields.ts";
import type { Problem, Report } from "../translation/problems/problem.ts";
import { reportIssues } from "../translation/problems/schema-errors.ts";
import { NO_RESOURCES, type Resources } from "../translation/resources/store.ts";
import { otherProgram } from "./diagnose/foreign-config.ts";
import { withoutIgnored } from "./diagnose/ignored-fields.ts";
import { keepValidParts, type ValidParts } from "./diagnose/keep-valid-parts.ts";
import { type FileProblem, type NamedText, nameOf, readConfigFiles, UNNAMED } from "./parse/config-files.ts";
import { ConfigSet } from "./parse/config-set.ts";
import { InputReader, type Inputs, isReadOnce, readText } from "./parse/inputs.ts";
import { type ConfigFile, configFile } from "./schema/config.ts";
import { ownServers, resolveSettings, type Settings, writtenStartOnly } from "./settings.ts";
import { formerTracing } from "./translate/former-tracing.ts";
import { reportOwnPorts } from "./translate/own-ports.ts";
import { translate } from "./translate/translate.ts";

/**
 * Where a configuration comes from: files, and folders of files; or texts. `name` takes the place of the file name in messages. Several
 * files or texts are merged (`ConfigSet`).
 */
export type ConfigSource =
  | { readonly kind: "files"; readonly paths: readonly string[] }
  | { readonly kind: "text"; readonly text: string; readonly name?: string }
  | { readonly kind: "texts"; readonly texts: readonly NamedText[] };

export type LoadResult =
  | {
      readonly ok: true;
      readonly config: Settings;
      readonly ir: Ir;
      readonly warnings: readonly Diagnostic[];
      /** Fields that the file sets and that only a restart changes, such as `config.adminAddr`. */
      readonly startOnly: readonly string[];
      /** The file and the files that it refers to. A change of any of them is a change of the configuration. */
      readonly inputs: Inputs;
      /** URLs that it refers to. The content of those that are not among the resources is missing from `ir`. */
      readonly urls: readonly string[];
    }
  | {
      readonly ok: false;
      readonly diagnostics: readonly Diagnostic[];
      /** As above, as far as they are known: the error may be in one of them. */
      readonly inputs: Inputs;
      readonly urls: readonly string[];
    };

/** What a configuration depends on besides its texts. */
interface LoadContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly resources: Resources;
  readonly reader: InputReader;
  /** The names that expressions may use. */
  readonly cel: CelEnvironment;
}

const FIELDS = knownFields(configFile);
const UNDAMAGED = {
  original: (path: Path) => path,
  incomplete: new Set<string>(),
  damaged: () => false,
  lost: () => false,
};

/**
 * Reads, expands, parses, validates and translates a configuration. One run finds all problems of the text: invalid parts are
 * left out, and the rest is validated further. `resources` has the documents behind the URLs that the configuration refers to.
 * Never throws for what is wrong with the configuration: that is in the result's diagnostics. `reader` reads the files that it names.
 */
export function loadConfig(
  source: ConfigSource,
  env: Readonly<Record<string, string | undefined>>,
  resources = NO_RESOURCES,
  reader = new InputReader(),
): LoadResult {
  const refused = (diagnostics: readonly Diagnostic[]): LoadResult => refuse(diagnostics, reader, []);
  const { texts, problems } = textsOf(source, reader);
  if (problems.length > 0) return refused(problems.flatMap(({ file, message }) => problem(file, message)));
  const document = new ConfigSet(texts, env);
  // Diagnostics about each line of a foreign format would not help.
  const foreign = texts.flatMap(({ name, text }, i) => {
    const other = otherProgram(text, document.documents[i]?.value);
    return other === undefined ? [] : problem(name, other);
  });
  if (foreign.length > 0) return refused(foreign);
  const { value } = document;
  if (value === undefined) return refused(document.diagnostics);
  const functions = customFunctions(document);
  if (functions === undefined) return refused(document.diagnostics);
  return checkAndTranslate(value, document, { env, resources, reader, cel: new CelEnvironment(functions) });
}

/** The rest of `loadConfig`, once the functions that expressions may call are known. */
function checkAndTranslate(value: object, document: ConfigSet, context: LoadContext): LoadResult {
  const { env, resources, reader, cel } = context;
  const checked = check(withoutIgnored(value, FIELDS, document), document, cel);
  if (checked === undefined) return refuse(document.diagnostics, reader, []);
  const { data, original, incomplete, damaged, lost } = checked;
  const settings = resolveSettings(data.config, data.adminAddr, env, document);
  if (settings.xds !== undefined) reportTraffic(value, document);
  const advice = new Map<string, () => void>();
  const report: Report = (path, found, key) => {
    const written = original(path);
    const related = found.related?.map((each) => ({ ...each, path: original(each.path) }));
    const problem = { ...found, ...(related && { related }) };
    const add = (): void => document.report(written, problem, key);
    // A route that is attached to several listeners is advised on once.
    if (problem.advice === true) advice.set(`${formatPath(written)} ${problem.message}`, add);
    else if (!damaged(written) && !(found.absent !== undefined && lost(original(found.absent)))) add();
  };
  const input = {
    fileOf: (path: Path) => document.fileOf(original(path)),
    home: env.HOME,
    enableIpv6: settings.enableIpv6,
    servers: ownServers(settings),
    cel,
    leafCaching: settings.leafCaching,
    locality: settings.locality,
    controlled: settings.xds !== undefined,
    resources,
    reader,
    formerTracing: formerTracing(data.config.tracing, env, document, cel),
  };
  const { ir, urls } = translate(data, input, report, incomplete);
  adviseOnAdmin(settings.adminAddr, report);
  const cookieProblem = cookieSecretProblem(ir, env);
  if (cookieProblem !== undefined) document.reportElsewhere(cookieProblem);
  reportOwnPorts(ir, { written: data, servers: input.servers }, document);
  if (!document.ok) return refuse(document.diagnostics, reader, urls);
  adviseOnConditions(configFile, value, [], report, cel);
  for (const add of advice.values()) add();
  return {
    ok: true,
    config: settings,
    ir,
    warnings: byPlace(document.diagnostics),
    startOnly: writtenStartOnly(value),
    inputs: reader.inputs,
    urls,
  };
}

/** With a controller, objects that this file defines would have no effect. */
function reportTraffic(value: object, document: ConfigSet): void {
  for (const field of Object.keys(value))
    if (field !== "config" && field !== "adminAddr")
      document.report([field], {
        message:
          "cannot be set here while a controller is set (XDS_ADDRESS or config.xdsAddress), because it sends the configuration; remove one of them",
      });
}

/** The configuration, or its valid parts; the invalid ones are reported. */
function check(value: object, document: ConfigSet, cel: CelEnvironment): ValidParts<ConfigFile> | undefined {
  const parse = (each: unknown) => configFile.safeParse(each, parsingWith(cel));
  const result = parse(value);
  if (result.success) return { ...UNDAMAGED, data: result.data };
  reportIssues(document, result.error.issues, FIELDS);
  return keepValidParts(parse, value, result.error.issues);
}

/** A source that can be read again: one that can be read only once, such as standard input, becomes its text. */
export function rereadable(source: ConfigSource): ConfigSource {
  if (source.kind !== "files") return source;
  const [path = "", ...others] = source.paths;
  if (!isReadOnce(path) || others.length > 0) return source;
  try {
    return { kind: "text", text: readText(path), name: nameOf(path) };
  } catch {
    // Loading it reports the reason.
    return source;
  }
}

/** The texts of a source, and why files of it cannot be used. */
export function textsOf(
  source: ConfigSource,
  reader: InputReader,
): { readonly texts: readonly NamedText[]; readonly problems: readonly FileProblem[] } {
  if (source.kind === "files") return readConfigFiles(source.paths, reader);
  const { name = UNNAMED } = source.kind === "text" ? source : {};
  const texts = source.kind === "texts" ? source.texts : [{ name, text: source.text }];
  for (const { text } of texts) reader.addText(text);
  return { texts, problems: [] };
}

/**
 * Finds values of a configuration as `file:line:column`: its texts are read and parsed again, because nothing keeps
 * positions. Undefined for a path that they no longer have.
 */
export function locating(source: ConfigSource, env: Readonly<Record<string, string | undefined>>): Locate {
  return locatingIn(textsOf(source, new InputReader()).texts, env);
}

/** As `locating`, in these texts. */
export function locatingIn(texts: readonly NamedText[], env: Readonly<Record<string, string | undefined>>): Locate {
  const document = new ConfigSet(texts, env);
  return (path) => (valueAt(document.value, path) === undefined ? undefined : document.placeOf(path));
}

function refuse(diagnostics: readonly Diagnostic[], reader: InputReader, urls: readonly string[]): LoadResult {
  return { ok: false, diagnostics: byPlace(diagnostics), inputs: reader.inputs, urls };
}

function byPlace(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  const files = [...new Set(diagnostics.map(({ file }) => file))];
  return diagnostics
    .toSorted((a, b) => files.indexOf(a.file) - files.indexOf(b.file) || a.line - b.line || a.column - b.column)
    .filter((each, i, all) => i === 0 || !isDeepStrictEqual(each, all[i - 1]));
}

/** A problem of the whole file. */
function problem(file: string, message: string): Diagnostic[] {
  return [{ severity: "error", file, line: 0, column: 0, path: "", message: redactUrls(message) }];
}

/** Why `oidc` cannot seal its cookies; undefined if there is a valid key, or no such policy. */
function cookieSecretProblem(ir: Ir, env: Readonly<Record<string, string | undefined>>): Problem | undefined {
  const secret = env[COOKIE_SECRET] ?? "";
  if (parseCookieKey(secret) !== undefined || !usesOidc(ir)) return undefined;
  const expected = "64 hexadecimal digits, such as openssl rand -hex 32 prints";
  if (secret === "")
    return {
      message: `${COOKIE_SECRET} is required when oidc is configured`,
      expected: `an environment variable of ${expected}`,
    };
  // Never the value: it is a secret, even if it is invalid.
  return { message: `environment variable ${COOKIE_SECRET} is not valid`, expected };
}

function usesOidc({ binds, routeGroups }: Ir): boolean {
  const listeners = binds.flatMap((bind) => bind.listeners);
  const routes = [...listeners, ...routeGroups].flatMap((owner) => owner.routes);
  const has = ({ policies }: { readonly policies: PolicySet }): boolean => policies.oidc !== undefined;
  return listeners.some(has) || routes.some(has);
}

const PATH = ["config", "customFunctions"];

/**
 * The functions that expressions of the document may call; every error in them is reported. Undefined when it is unclear
 * which functions there should be, so that the expressions cannot be checked.
 */
function customFunctions(document: ConfigSet): CustomFunctions | undefined {
  const text = valueAt(document.value, PATH);
  // The schema reports anything that is not a string.
  if (typeof text !== "string") return NO_FUNCTIONS;
  const { functions, problems, readable } = readFunctions(text);
  for (const { what, message, position } of problems)
    if (position === undefined || !document.reportInside(PATH, text, position, { message: what }))
      document.report(PATH, { message });
  return readable ? functions : undefined;
}
