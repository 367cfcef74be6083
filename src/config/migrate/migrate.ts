import { type Document, isAlias, isMap, isScalar, type Node, Pair, parseDocument, Scalar } from "yaml";
import { formatPath } from "../../base/paths.ts";
import type { Diagnostic } from "../../translation/problems/diagnostics.ts";
import { Lines } from "../parse/positions.ts";
import { syntaxProblems } from "../parse/yaml-errors.ts";
import { drop, ensureMap, entryOf, formatLike, type Holder, mapAt, nameOf, put, take } from "./nodes.ts";

type Migration =
  | { readonly ok: true; readonly text: string; readonly changed: boolean }
  | { readonly ok: false; readonly diagnostics: readonly Diagnostic[] };

type Report = (node: Node | null | undefined, path: readonly string[], message: string) => void;

/**
 * Names of `config.tracing` (docs/configuration.md#configtracing) and what they are called in `frontendPolicies.tracing`
 * (docs/configuration.md#tracing).
 */
const TRACING: Readonly<Record<string, string>> = {
  path: "path",
  otlpProtocol: "protocol",
  randomSampling: "randomSampling",
  clientSampling: "clientSampling",
};
const TRACING_FIELDS: Readonly<Record<string, string>> = { add: "attributes", remove: "remove" };
const LOGGING_FIELDS: Readonly<Record<string, string>> = { add: "add", remove: "remove" };
/** `http://collector:4317/path`, in parts; variables may stand in any of them. */
const ENDPOINT =
  /^(?:(https?):\/\/)?(\[[^\]\s]+\]|(?:\$\{[^}]*\}|[^/\s:])+)(?::(\d+|\$\w+|\$\{[^}]*\}))?(?:\/|(\/\S+?)\/?)?$/;
const PORTS: Readonly<Record<string, number>> = { http: 80, https: 443 };

/**
 * Moves settings to their present places: `config.logging.filter` and `fields` to `frontendPolicies.accessLog`, `config.tracing`
 * to `frontendPolicies.tracing`. Comments and variables are kept. If a setting cannot be moved, it is reported with its place and
 * nothing is moved. `file` is its name in messages.
 */
export function migrateConfig(file: string, text: string): Migration {
  const lines = new Lines(text);
  const diagnostics: Diagnostic[] = [];
  const add = (offset: number, path: string, message: string): void => {
    const { line, column } = lines.place(offset);
    diagnostics.push({ severity: "error", file, line, column, path, message });
  };
  const document: Document.Parsed = parseDocument(text, { prettyErrors: false, merge: true });
  for (const { offset, message } of syntaxProblems(document, text)) add(offset, "", message);
  const root = document.contents;
  if (diagnostics.length === 0 && !isMap<Node, Node | null>(root))
    add(0, "", "is not a configuration; nothing was changed");
  if (diagnostics.length > 0 || !isMap<Node, Node | null>(root)) return { ok: false, diagnostics };
  const report: Report = (node, path, message) => add(node?.range?.[0] ?? 0, formatPath(path), message);
  checkObjects(root, report);
  const changed = diagnostics.length === 0 && moveAll(root, report);
  if (diagnostics.length > 0) return { ok: false, diagnostics };
  if (!changed) return { ok: true, text, changed };
  try {
    return { ok: true, text: formatLike(text, document), changed };
  } catch {
    add(0, "", "the anchor would come after its alias; replace the alias with its value");
    return { ok: false, diagnostics };
  }
}

/** The maps that fields are moved out of or into must not be aliases, whose values belong to another place too. */
const OBJECTS = [
  ["config"],
  ["config", "logging"],
  ["config", "tracing"],
  ["frontendPolicies"],
  ["frontendPolicies", "accessLog"],
  ["frontendPolicies", "logging"],
];

function checkObjects(root: Holder, report: Report): void {
  for (const path of OBJECTS) {
    const holder = path.slice(0, -1).reduce<Holder | undefined>((map, key) => map && mapAt(map, key), root);
    const value = holder && entryOf(holder, path.at(-1) ?? "")?.value;
    if (value == null || isMap(value) || (isScalar(value) && value.value === null)) continue;
    report(
      value,
      path,
      isAlias(value) ? "is an alias; replace it with its value" : "is not an object; correct it first",
    );
  }
}

function moveAll(root: Holder, report: Report): boolean {
  const config = mapAt(root, "config");
  if (config === undefined) return false;
  const logging = mapAt(config, "logging");
  const logs = logging !== undefined && ["filter", "fields"].some((key) => logging.has(key));
  const tracing = mapAt(config, "tracing");
  if (!logs && tracing === undefined) return false;
  const frontend = ensureMap(root, "frontendPolicies", "config");
  if (logs) moveLogging(config, logging, frontend, report);
  if (tracing !== undefined) moveTracing(config, tracing, frontend, report);
  drop(root, "config", entryOf(root, "frontendPolicies"));
  return true;
}

function moveLogging(config: Holder, logging: Holder, frontend: Holder, report: Report): void {
  const name = frontend.has("logging") ? "logging" : "accessLog";
  const target = ensureMap(frontend, name);
  const heir = entryOf(frontend, name);
  const move = (from: Holder, key: string, to: string, path: readonly string[]): void => {
    const entry = take(from, key);
    if (entry === undefined) return;
    if (target.has(to)) report(entry.key, path, `frontendPolicies.${name}.${to} is set too; keep one of the two`);
    else put(target, entry, to);
  };
  move(logging, "filter", "filter", ["config", "logging", "filter"]);
  moveFields(logging, ["config", "logging", "fields"], LOGGING_FIELDS, move, report);
  drop(logging, "fields", heir);
  drop(config, "logging", heir);
}

function moveTracing(config: Holder, tracing: Holder, frontend: Holder, report: Report): void {
  const at = ["config", "tracing"];
  if (frontend.has("tracing")) {
    report(entryOf(config, "tracing")?.key, at, "frontendPolicies.tracing is set too; keep one of the two");
    return;
  }
  const target = ensureMap(frontend, "tracing");
  const heir = entryOf(frontend, "tracing");
  const move = (from: Holder, key: string, to: string): void => {
    const entry = take(from, key);
    if (entry !== undefined) put(target, entry, to);
  };
  moveEndpoint(entryOf(config, "tracing")?.key, tracing, target, report);
  const headers = take(tracing, "headers");
  if (headers !== undefined) {
    const policies = ensureMap(target, "policies");
    put(ensureMap(policies, "requestHeaderModifier"), headers, "set");
  }
  for (const [from, to] of Object.entries(TRACING)) move(tracing, from, to);
  moveFields(tracing, [...at, "fields"], TRACING_FIELDS, move, report);
  drop(tracing, "fields", heir);
  for (const { key } of tracing.items)
    report(key, [...at, nameOf(key) ?? ""], "has no place in frontendPolicies.tracing; remove it");
  drop(config, "tracing", heir);
}

/** `otlpEndpoint: https://host:port/path` becomes `host`, `path` and, for HTTPS, TLS. */
function moveEndpoint(place: Node | undefined, tracing: Holder, target: Holder, report: Report): void {
  const path = ["config", "tracing", "otlpEndpoint"];
  const entry = take(tracing, "otlpEndpoint");
  const value = entry?.value;
  if (entry === undefined || !isScalar(value)) {
    report(place, path, "is required: where traces are sent, such as http://collector:4317");
    return;
  }
  const [, scheme = "", host = "$", written, rest] = ENDPOINT.exec(String(value.value)) ?? [];
  // A variable may hold the port too.
  const port = written ?? (host.includes("$") ? undefined : PORTS[scheme]);
  if (port === undefined) {
    report(value, path, "is not an address with a port, such as http://collector:4317; correct it first");
    return;
  }
  value.value = `${host}:${port}`;
  put(target, entry, "host");
  // The field wins.
  if (rest !== undefined && !tracing.has("path"))
    target.items.push(new Pair<Node, Node | null>(new Scalar("path"), new Scalar(rest)));
  if (scheme === "https") ensureMap(ensureMap(target, "policies"), "backendTLS").flow = true;
}

/** Moves the entries of `fields`, each of which has a new name. */
function moveFields(
  holder: Holder,
  path: readonly string[],
  names: Readonly<Record<string, string>>,
  move: (from: Holder, key: string, to: string, path: readonly string[]) => void,
  report: Report,
): void {
  const fields = mapAt(holder, "fields");
  if (fields === undefined) {
    const other = entryOf(holder, "fields");
    if (other !== undefined)
      report(other.value ?? other.key, path, "is not an object with add and remove; correct it first");
    return;
  }
  for (const [from, to] of Object.entries(names)) move(fields, from, to, [...path, from]);
  for (const { key } of fields.items)
    report(key, [...path, nameOf(key) ?? ""], "is neither add nor remove; correct it first");
}
