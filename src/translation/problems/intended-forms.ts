/**
 * What to write instead of a value that has another form than the schema wants, such as `path: /api` where a path is an object: the
 * right form with the user's own values, to copy.
 */
import { type Fields, isObject } from "../../base/fields.ts";
import { type Path, valueAt } from "../../base/paths.ts";
import { SECRET_PARAMETERS } from "../../base/redaction.ts";
import { ALTERNATIVES } from "../../policies/satisfy/schema.ts";
import type { KnownFields } from "./known-fields.ts";
import { isSecret } from "./problem.ts";

/** A form is shown on one line with its path; a longer one would be harder to read than a description of it. */
const MAX_LENGTH = 160;

/** The fields of a match. */
const CONDITIONS: readonly string[] = ["path", "method", "headers", "query"];

/** The fields of its path. */
const PATHS: readonly string[] = ["exact", "pathPrefix", "regex"];

/** A value that has the wrong form, and the right one. */
export interface IntendedForm {
  /** Where the value is; problems inside of it have the same cause. */
  readonly path: Path;
  /** Such as `path: { pathPrefix: /api }`. */
  readonly text: string;
  /** The value may be a secret. */
  readonly secret: boolean;
  /** Both are lists: only what is in the list is wrong. */
  readonly ofItems: boolean;
}

interface Rule {
  /** Where the value is: its path with `[]` for indices. */
  readonly in: RegExp;
  /** The right value; undefined if the rule is not about this value. `owner`: the object or list that contains it. */
  readonly form: (value: unknown, owner: unknown) => unknown;
  /** The field that has to be written instead, if it is another one. */
  readonly field?: string;
}

const RULES: readonly Rule[] = [
  { in: /\.matches$/, form: (value) => (isPath(value) ? [{ path: pathMatch(value) }] : matches(value)) },
  { in: /\.matches\[\]$/, form: (value) => (isPath(value) ? { path: pathMatch(value) } : undefined) },
  { in: /\.matches\[\]\.path$/, form: pathMatch },
  {
    in: /\.matches\[\]\.method$/,
    form: (value, match) => (Array.isArray(value) ? matches(match) : undefined),
    field: "matches",
  },
  { in: /\.matches\[\]\.(?:headers|query)$/, form: conditions },
  { in: /\.matches\[\]\.(?:headers|query)\[\]$/, form: condition },
  { in: /\.matches\[\]\.(?:headers|query)\[\]\.value$/, form: valueMatch },
  { in: /(?:^|\.)(?:r|tcpR)outes\[\]\.backends$/, form: (value) => (isAddress(value) ? [{ host: value }] : undefined) },
  {
    in: /(?:^|\.)(?:r|tcpR)outes\[\]\.backends\[\]$/,
    form: (value) => (isAddress(value) ? { host: value } : undefined),
  },
  { in: /\.endpoints$/, form: endpoints },
  {
    in: /(?:^|\.)backends\[\]\.host$/,
    form: (value) => (Array.isArray(value) ? endpoints(value) : undefined),
    field: "endpoints",
  },
  { in: /^config\.logging\.output$/, form: (value) => (typeof value === "string" ? { file: value } : undefined) },
  { in: /\.policies\.timeout$/, form: (value) => (typeof value === "string" ? { requestTimeout: value } : undefined) },
  { in: /\.ipAccess\.(?:allow|deny)$/, form: networks },
  { in: /HeaderModifier\.(?:add|set)$/, form: headerMap },
  { in: /\.ipAccess$/, form: (value) => (isNetworks(value) ? { allow: [value].flat() } : undefined) },
  {
    in: /\.satisfy$/,
    form: (value, policies) => {
      if (value === "any") return alternatives(policies);
      return Array.isArray(value) && value.every(isObject) ? { any: value } : undefined;
    },
  },
  { in: /\.concurrencyLimit$/, form: requestsAtOnce },
  { in: /\.localRateLimit$/, form: (value) => rate(isObject(value) ? value.rate : value) },
  { in: /\.errorPages$/, form: errorPages },
];

/** The right form of the value at a path, or of the innermost wrong value around it; undefined = no form is known. */
export function intendedForm(root: unknown, path: Path): IntendedForm | undefined {
  for (let length = path.length; length > 0; length--) {
    const at = path.slice(0, length);
    const place = placeOf(at);
    const value = valueAt(root, at);
    for (const rule of RULES) {
      const owner = valueAt(root, at.slice(0, -1));
      const form = rule.in.test(place) ? rule.form(value, owner) : undefined;
      if (form !== undefined) return shown(at, form, owner, rule.field);
    }
  }
  return undefined;
}

/** The list to write where a list is wanted and the value is a single item of it. */
export function intendedList(root: unknown, path: Path, known: KnownFields): IntendedForm | undefined {
  const value = valueAt(root, path);
  const fields = known([...path, 0]);
  const isItem = isObject(value)
    ? fields.length > 0 && Object.keys(value).length > 0 && Object.keys(value).every((key) => fields.includes(key))
    : fields.length === 0 && (typeof value === "string" || typeof value === "number");
  return isItem ? shown(path, [value], valueAt(root, path.slice(0, -1)), undefined) : undefined;
}

/** The match for a condition that is written directly in a route, such as `path`; undefined for other fields. */
export function misplacedCondition(route: unknown, key: string): string | undefined {
  if (!isObject(route)) return undefined;
  return CONDITIONS.includes(key) ? textOf("matches", matches({ [key]: route[key] })) : undefined;
}

function isPath(value: unknown): value is string {
  return typeof value === "string" && value.startsWith("/");
}

function isAddress(value: unknown): value is string {
  return typeof value === "string" && /^(?:[\w.-]+|\[[\da-f:.]+\]):\d+$/i.test(value);
}

/** Of one address or several without their field. */
function endpoints(value: unknown): readonly Fields[] | undefined {
  const addresses: readonly unknown[] = [value].flat();
  return addresses.length > 0 && addresses.every(isAddress) ? addresses.map((host) => ({ host })) : undefined;
}

/** Of one network, or of the file of them, without the list. */
function networks(value: unknown): readonly unknown[] | undefined {
  if (typeof value !== "string") return undefined;
  return [/^[\da-f.:]+(?:\/\d+)?$/i.test(value) ? value : { file: value }];
}

function isNetworks(value: unknown): boolean {
  const written: readonly unknown[] = [value].flat();
  return written.length > 0 && written.every((each) => networks(each)?.[0] === each);
}

/** Of a number alone or as `max`; with anything beside it, such as `per: ip`, for each client. */
function requestsAtOnce(value: unknown): readonly Fields[] | undefined {
  const written = isObject(value) ? value : { max: value };
  if (typeof written.max !== "number") return undefined;
  return [
    { maxRequests: written.max, ...(Object.keys(written).length > 1 && { key: new Harmless("source.address") }) },
  ];
}

/** Of a rate such as `10/s`, `100r/m` or `5 per hour`. */
function rate(value: unknown): readonly Fields[] | undefined {
  const { count, unit } = /^(?<count>\d+) ?(?:r?\/|per) ?(?<unit>[smh])[a-z]*$/.exec(String(value))?.groups ?? {};
  if (count === undefined) return undefined;
  return [{ maxTokens: Number(count), tokensPerFill: new Harmless(Number(count)), fillInterval: `1${unit}` }];
}

/** Of a map from statuses, or classes such as `5xx`, to texts or files. */
function errorPages(value: unknown): readonly Fields[] | undefined {
  if (!isObject(value) || Object.keys(value).length === 0) return undefined;
  const pages = Object.entries(value).map(([status, page]) => {
    if (!/^[1-5](?:\d\d|xx)$/.test(status)) return undefined;
    const content = pageContent(page);
    return content && { statuses: [/^\d+$/.test(status) ? Number(status) : status], ...content };
  });
  return pages.includes(undefined) ? undefined : pages.filter((page) => page !== undefined);
}

function pageContent(page: unknown): Fields | undefined {
  if (isObject(page)) return typeof page.file === "string" ? { html: { file: page.file } } : undefined;
  if (typeof page !== "string") return undefined;
  return /^[\w./-]+\.html?$/.test(page) ? { html: { file: page } } : { text: page };
}

/** Of a text, or of the fields `type` and `value` of the Gateway API. */
function pathMatch(value: unknown): Fields | undefined {
  if (isObject(value) && typeof value.value === "string") {
    const { type = "PathPrefix", value: path } = value;
    return type === "Exact" ? { exact: path } : type === "PathPrefix" ? { pathPrefix: path } : { regex: path };
  }
  if (typeof value !== "string" || value === "invalid") return undefined;
  const prefix = value.replace(/(?<=.)\/?\*+$/, "");
  if (/[*()[\]|^$]/.test(prefix)) return { regex: value };
  return { pathPrefix: prefix.startsWith("/") ? prefix : `/${prefix}` };
}

/** A match, or one for each of its methods. */
function matches(match: unknown): readonly Fields[] | undefined {
  if (!isObject(match) || Object.keys(match).length === 0) return undefined;
  if (Object.keys(match).every((key) => PATHS.includes(key))) return [{ path: match }];
  if (!Object.keys(match).every((key) => CONDITIONS.includes(key))) return undefined;
  const { path, method, headers, query } = match;
  return [method].flat().map((each: unknown) => ({
    ...(path !== undefined && { path: pathMatch(path) ?? path }),
    ...(each !== undefined && { method: each }),
    ...(headers !== undefined && { headers: conditions(headers) ?? headers }),
    ...(query !== undefined && { query: conditions(query) ?? query }),
  }));
}

/** Conditions on headers or parameters as a map from names to values, or a single one. */
function conditions(value: unknown): readonly Fields[] | undefined {
  if (!isObject(value) || Object.keys(value).length === 0) return undefined;
  if (Object.hasOwn(value, "name")) return [condition(value) ?? value];
  return Object.entries(value).map(([name, each]) => ({ name, value: valueMatch(each) ?? each }));
}

/** `{ x-a: b }`, `{ name: x-a, exact: b }`, or the fields of the Gateway API. */
function condition(value: unknown): Fields | undefined {
  if (!isObject(value)) return undefined;
  const { name, value: text, type, exact = type === "RegularExpression" ? undefined : text, regex = text } = value;
  if (name === undefined) {
    const [[only, each] = [undefined, undefined], ...others] = Object.entries(value);
    const right = valueMatch(each);
    return only === undefined || others.length > 0 || right === undefined ? undefined : { name: only, value: right };
  }
  if (isObject(text)) return undefined;
  if (Object.keys(value).some((key) => !["name", "value", "type", "exact", "regex"].includes(key))) return undefined;
  const right = exact === undefined ? { regex } : { exact };
  return (exact ?? regex) === undefined ? undefined : { name, value: right };
}

function valueMatch(value: unknown): Fields | undefined {
  return ["string", "number", "boolean"].includes(typeof value) ? { exact: String(value) } : undefined;
}

/** A list of names and values, as the Gateway API has it, becomes a map. */
function headerMap(value: unknown): Fields | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const entries = value.map((each: unknown) => (isObject(each) ? [String(each.name), each.value] : undefined));
  return entries.includes(undefined) ? undefined : Object.fromEntries(entries.filter((each) => each !== undefined));
}

/** The policies beside `satisfy: any` as its alternatives. */
function alternatives(policies: unknown): Fields {
  const written = ALTERNATIVES.filter((kind) => isObject(policies) && Object.hasOwn(policies, kind));
  const named = written.length > 0 ? written : ["apiKey", "jwtAuth"];
  return { any: named.map((kind) => ({ [kind]: {} })) };
}

function shown(path: Path, form: unknown, owner: unknown, field: string | undefined): IntendedForm | undefined {
  const key = field ?? path.at(-1);
  const secret = isSecret(path) || (key === "value" && hasSecretName(owner));
  const text = typeof key === "string" ? textOf(key, form, secret) : `- ${flow(form, secret)}`;
  const ofItems = field === undefined && Array.isArray(form) && Array.isArray(valueAt(owner, path.slice(-1)));
  return text !== undefined && text.length <= MAX_LENGTH ? { path, text, secret, ofItems } : undefined;
}

/** `key: form`; undefined = it is too long. */
function textOf(key: string, form: unknown, secret = false): string | undefined {
  const text = `${key}: ${flow(form, secret)}`;
  return text.length <= MAX_LENGTH ? text : undefined;
}

/** A value that is no secret, although its field has a name like one. */
class Harmless {
  readonly value: string | number;

  constructor(value: string | number) {
    this.value = value;
  }
}

/** A value in the flow style of YAML; what may be a secret is left out. */
function flow(value: unknown, secret: boolean): string {
  if (value instanceof Harmless) return scalar(value.value);
  if (Array.isArray(value)) return `[${value.map((each) => flow(each, secret)).join(", ")}]`;
  if (isObject(value)) {
    const named = hasSecretName(value);
    const fields = Object.entries(value).map(([key, each]) => {
      const hidden = secret || (named && key !== "name") || mayNameSecret(key);
      return `${scalar(key)}: ${flow(each, hidden)}`;
    });
    return fields.length === 0 ? "{}" : `{ ${fields.join(", ")} }`;
  }
  return secret ? "…" : scalar(value);
}

/** Whether an object is a header or parameter, with its name in a field, whose value may be a secret. */
function hasSecretName(value: unknown): boolean {
  return isObject(value) && typeof value.name === "string" && mayNameSecret(value.name);
}

/** Whether the value of a field, header or parameter with this name may be a secret. */
function mayNameSecret(name: string): boolean {
  return isSecret([name]) || SECRET_PARAMETERS.has(name);
}

/** Plain where YAML reads it as the same text, otherwise in quotes. */
function scalar(value: unknown): string {
  if (typeof value !== "string") return String(value);
  const plain = /^[A-Za-z/][\w./-]*(?::\d+)?$/.test(value) && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(value);
  return plain ? value : JSON.stringify(value);
}

function placeOf(path: Path): string {
  return path.map((part, i) => (typeof part === "number" ? "[]" : `${i === 0 ? "" : "."}${String(part)}`)).join("");
}
