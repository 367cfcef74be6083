/**
 * What can be assumed about facts that a rehearsal does not have: one table for command lines, the admin server, expectations and
 * docs/explain.md. Assumptions have two spellings: texts such as `extAuthz=deny`, and an object such as `{"extAuthz": "deny"}`, whose
 * values may be texts too.
 */
import { type Fields, isObject, jsonOf } from "../base/fields.ts";
import { suggest } from "../base/suggest.ts";
import type { Supply } from "../cel/index.ts";
import { isShadowable } from "../policies/contract/shadow.ts";
import { REQUEST_ORDER } from "../policies/order.ts";
import type { RequestPolicyKind } from "../policies/policy-set.ts";
import { certificatesIn } from "../tls/assumed-certificate.ts";
import { BadFacts, type Way } from "./facts.ts";

/** A response that a backend or service is assumed to send. */
export interface AssumedResponse {
  /** Default 200. */
  readonly status?: number;
  /** By lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Of the decision, for expressions as `extauthz`. */
  readonly metadata?: Fields;
}

/** A credential that is assumed to be valid, with what the gateway then knows about the client, or invalid; `missing` only where it is not known. */
type AssumedCredential = "valid" | "invalid" | "missing" | Fields;

/** How a backend can fail that does not respond. */
const FAILURES = ["refused", "reset", "timeout"] as const;

/** A response, or how the backend fails. */
export type AssumedAnswer = AssumedResponse | (typeof FAILURES)[number];

interface Entry<Value> {
  /** What is not known. */
  readonly about: string;
  /** What happens unless something is assumed. */
  readonly otherwise: string;
  /** What can be assumed, as a reader would write it. */
  readonly values: readonly string[];
  /** The places that can ask for it: phases of a policy, any route or any endpoint. Absent: there is only one. */
  readonly places?: readonly string[] | "routes" | "endpoints";
  /** undefined: this cannot be assumed. `value`: JSON, or a text. */
  read(value: unknown): Value | undefined;
}

export const ASSUMPTIONS = {
  response: entry({
    about:
      "the backend's response; `refused`: it refuses the connection; `reset`: it closes the connection instead; `timeout`: it does not respond in time",
    otherwise: "status 200, without a body; of gRPC calls, success",
    values: ["503", '{"status":503,"headers":{"retry-after":"1"},"body":"…"}', "refused", "reset", "timeout"],
    places: "endpoints",
    read: (value) => oneOf(...FAILURES)(value) ?? responseOf(value),
  }),
  endpoints: entry({
    about: "the endpoints of backends; `none` only those of services",
    otherwise: "as the gateway knows them; those of a file are healthy",
    values: ["healthy", "unhealthy", "none", '{"10.0.0.7:8080":"unhealthy"}'],
    read: (value) => oneOf("healthy", "unhealthy", "none")(value) ?? healthsOf(value),
  }),
  backend: entry({
    about: "the choice of a weighted backend",
    otherwise: "an outcome for each, with its share of requests",
    values: ["NAME"],
    places: "routes",
    read: (value) => (typeof value === "string" && value !== "" ? value : undefined),
  }),
  clientCertificate: entry({
    about:
      "the client's certificate, without its key; a listener that asks for certificates checks the issuer, validity and purpose",
    otherwise: "none, or that of `--cert` and `--key`",
    values: ["FILE.pem"],
    read: (value) => (isCertificate(value) ? certificatesIn(value).join("") : undefined),
  }),
  networkExtAuthz: entry({
    about: "`networkExtAuthz`",
    otherwise: "an outcome for each: it allows the connection, it denies it",
    values: ["allow", "deny"],
    read: oneOf("allow", "deny"),
  }),
  extAuthz: entry({
    about: "`extAuthz` over HTTP or gRPC, and what it adds to the request",
    otherwise: "an outcome for each: it allows, it denies",
    values: ["allow", "deny", '{"headers":{"x-user":"a"},"metadata":{…}}', "401"],
    places: placesOf("extAuthz"),
    read: (value) => oneOf("allow", "deny")(value) ?? responseOf(value),
  }),
  extProc: entry({
    about: "`extProc`, and what it changes",
    otherwise: "an outcome for each: it changes nothing, it fails",
    values: ["allow", "fail", '{"headers":{"x-user":"a"},"metadata":{…}}', "403"],
    places: placesOf("extProc"),
    read: (value) => oneOf("allow", "fail")(value) ?? responseOf(value),
  }),
  remoteRateLimit: entry({
    about: "`remoteRateLimit`",
    otherwise: "an outcome for each: under the limit, over it",
    values: ["under", "over"],
    places: placesOf("remoteRateLimit"),
    read: oneOf("under", "over"),
  }),
  jwt: entry({
    about: "the token of `jwtAuth`, if it is redacted",
    otherwise: "an outcome for each: valid, with unknown claims; invalid",
    values: ['{"sub":"a"}', "valid", "invalid"],
    places: placesOf("jwtAuth"),
    read: credentialOf,
  }),
  oidc: entry({
    about: "the session of `oidc`, if its cookie is redacted",
    otherwise: "an outcome for each: valid, with unknown claims; invalid",
    values: ['{"sub":"a"}', "valid", "invalid"],
    places: placesOf("oidc"),
    read: credentialOf,
  }),
  basicAuth: entry({
    about: "the credentials of `basicAuth`, if they are redacted",
    otherwise: "an outcome for each: valid, for an unknown user; invalid",
    values: ['{"username":"a"}', "valid", "invalid"],
    places: placesOf("basicAuth"),
    read: credentialOf,
  }),
  apiKey: entry({
    about: "the key of `apiKey`, if it is redacted",
    otherwise: "an outcome for each: valid, with unknown metadata; invalid",
    values: ['{"team":"a"}', "valid", "invalid"],
    places: placesOf("apiKey"),
    read: credentialOf,
  }),
  body: entry({
    about: "the body of a request that announces one, without `-d`",
    otherwise: "an outcome for each result of a condition that reads it",
    values: ["TEXT"],
    read: (value) => (typeof value === "string" ? value : value === undefined ? undefined : JSON.stringify(value)),
  }),
  time: entry({
    about: "the time of the request, where a condition reads it",
    otherwise: "an outcome for each result of the condition",
    values: ["2026-01-31T12:00:00Z"],
    read: (value) => (typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value) ? dateOf(value) : undefined),
  }),
  random: entry({
    about: "`random()` and `uuid()` in a condition",
    otherwise: "an outcome for each result of the condition",
    values: ["0.5"],
    read: (value) => (typeof value === "number" && value >= 0 && value < 1 ? value : undefined),
  }),
};

export type AssumptionName = keyof typeof ASSUMPTIONS;

/** The option of commands that takes assumptions. */
export const ASSUME_SUMMARY = `What the explanation cannot know, such as extAuthz=deny, response=503 or 'jwt={"sub":"a"}': ${Object.keys(ASSUMPTIONS).join(", ")}`;

/** What is assumed, by name. */
export type Assumptions = {
  readonly [Name in AssumptionName]?: NonNullable<ReturnType<(typeof ASSUMPTIONS)[Name]["read"]>>;
};

/** `NAME=VALUE`; without `=` the value is empty. */
export function splitAssumption(text: string): [name: string, value: string] {
  const mark = text.indexOf("=");
  return mark < 0 ? [text, ""] : [text.slice(0, mark), text.slice(mark + 1)];
}

/** Reads an object such as `{extAuthz: "deny"}`. Throws BadFacts for names and values that nothing can depend on. */
export function readAssumptions(values: Fields): Assumptions {
  const read = Object.entries(values).map(([written, value]) => {
    const name = withoutPlace(written);
    if (!isAssumption(name))
      throw new BadFacts(
        `nothing can be assumed about ${JSON.stringify(name)}`,
        `write ${suggest(name, Object.keys(ASSUMPTIONS)) ?? `one of ${Object.keys(ASSUMPTIONS).join(", ")}`}`,
        { assume: written },
      );
    if (written !== name) checkPlace(name, written);
    const assumed = readValue(name, value);
    if (assumed === undefined) {
      const text = typeof value === "string" ? value : JSON.stringify(value);
      const ways = waysOf(name);
      // It may have a private key.
      const shown = text.includes("-----BEGIN ") ? "this text" : JSON.stringify(text);
      throw new BadFacts(`${name} cannot be ${shown}`, `assume ${orOf(ways)}`, { assume: written, ways });
    }
    return [written, assumed] as const;
  });
  return Object.fromEntries(read);
}

/** How places are written that are not listed. */
const PLACES = { routes: "NAMESPACE/ROUTE", endpoints: "HOST:PORT" } as const;

/** Throws BadFacts for a place where nothing is asked about `name`. */
function checkPlace(name: AssumptionName, written: string): void {
  const { places } = ASSUMPTIONS[name];
  const place = written.slice(name.length + 1);
  if (typeof places === "string" ? place !== "" : places?.includes(place)) return;
  const known = typeof places === "string" ? [PLACES[places]] : (places ?? []);
  throw new BadFacts(
    `nothing can be assumed about ${JSON.stringify(written)}`,
    `write ${[name, ...known.map((each) => placed(name, each))].join(" or ")}`,
    { assume: written },
  );
}

/** The phases in which a policy can be, and `shadow` if one can be in shadow. */
function placesOf(kind: RequestPolicyKind): readonly string[] {
  const orders: [phase: string, kinds: readonly RequestPolicyKind[]][] = Object.entries(REQUEST_ORDER);
  const phases = orders.flatMap(([phase, kinds]) => (kinds.includes(kind) ? [phase] : []));
  return isShadowable(kind) ? [...phases, "shadow"] : phases;
}

/** What an outcome depends on. */
interface Decided {
  readonly given: Fields;
  /** Choices of backends, with the backends that were not chosen. */
  readonly splits: ReadonlyMap<string, { readonly others: readonly unknown[] }>;
}

/** Throws BadFacts for an assumption without effect: a mistake about its name, or about the route that the request gets. */
export function checkUse(assumed: Assumptions, outcomes: readonly Decided[]): void {
  const given = outcomes.flatMap((outcome) => [
    ...Object.entries(outcome.given),
    ...[...outcome.splits].flatMap(([name, { others }]) => others.map((other) => [name, other] as const)),
  ]);
  for (const [name, value] of Object.entries(assumed)) {
    if (given.some(([other, used]) => other === name && used === value)) continue;
    const text = `${name}=${textOf(value)}`;
    const own = given.filter(([other]) => other === name);
    const same =
      own.length > 0
        ? own
        : given.filter(([other]) => withoutPlace(other) === withoutPlace(name) && !(other in assumed));
    const ways = same.map(([other, used]) => [other, textOf(used)] as const);
    if (ways.length === 0)
      throw new BadFacts(
        `nothing depends on the assumption ${name}`,
        `leave out ${text}, or check which route the request gets`,
        { assume: name, value: textOf(value), ways },
      );
    const isRoute = withoutPlace(name) === "backend" && (name === "backend" || own.length > 0);
    const what = isRoute ? `the route has no backend ${textOf(value)}` : `nothing depends on ${text}`;
    const distinct = [...new Map(ways.map((way) => [way.join("="), way])).values()];
    throw new BadFacts(what, `assume ${orOf(distinct)}`, { assume: name, ways: distinct });
  }
}

/** The name of what is not known at one of several places. */
export function placed(name: AssumptionName, place: string): string {
  return `${name}@${place}`;
}

/** The name without its place. */
export function withoutPlace(name: string): string {
  return name.replace(/@.*$/, "");
}

/** A value as `NAME=VALUE` has it. */
export function textOf(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  if (isCertificate(value)) return certificatesIn(value)[0]?.subject.replaceAll("\n", ", ") ?? "";
  if (isObject(value) && typeof value.status === "number" && Object.keys(value).length === 1)
    return String(value.status);
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What can be assumed about something, as it is written. */
function waysOf(name: AssumptionName): Way[] {
  return ASSUMPTIONS[name].values.map((each) => [name, each]);
}

function orOf(ways: readonly Way[]): string {
  return alternatives(ways.map((way) => way.join("=")));
}

/** `extAuthz=allow, extAuthz=deny or …` */
export function alternatives(texts: readonly string[]): string {
  const last = texts.at(-1) ?? "";
  return texts.length < 2 ? last : `${texts.slice(0, -1).join(", ")} or ${last}`;
}

/** The supply that an assumption is. */
export function supplyOf(name: AssumptionName): Supply {
  return { kind: "assumption", name, examples: ASSUMPTIONS[name].values };
}

/** Whether a text is read as JSON: `backend` and `body` are texts, whatever they look like. */
const TEXTS: ReadonlySet<string> = new Set<AssumptionName>(["backend", "body", "clientCertificate", "time"]);

function readValue(name: AssumptionName, value: unknown): unknown {
  if (typeof value !== "string" || TEXTS.has(name)) return ASSUMPTIONS[name].read(value);
  const mayBeData = /^\s*[{\d]/.test(value);
  return ASSUMPTIONS[name].read((mayBeData ? jsonOf(value) : undefined) ?? value);
}

export function isAssumption(name: string): name is AssumptionName {
  return Object.hasOwn(ASSUMPTIONS, name);
}

// Infers the type of the values.
function entry<Value>(each: Entry<Value>): Entry<Value> {
  return each;
}

/** Whether a text is PEM with certificates. */
function isCertificate(value: unknown): value is string {
  if (typeof value !== "string" || !value.includes("-----BEGIN CERTIFICATE-----")) return false;
  try {
    return certificatesIn(value).length > 0;
  } catch {
    return false;
  }
}

function oneOf<Word extends string>(...words: readonly Word[]): (value: unknown) => Word | undefined {
  return (value) => words.find((word) => word === value);
}

function credentialOf(value: unknown): AssumedCredential | undefined {
  return oneOf("valid", "invalid")(value) ?? (isObject(value) ? value : undefined);
}

/** By the names of endpoints. */
function healthsOf(value: unknown): Readonly<Record<string, "healthy" | "unhealthy">> | undefined {
  if (!isObject(value)) return undefined;
  const read = Object.entries(value).map(([name, health]) => [name, oneOf("healthy", "unhealthy")(health)] as const);
  return read.length > 0 && read.every(([, health]) => health !== undefined)
    ? (Object.fromEntries(read) as Record<string, "healthy" | "unhealthy">)
    : undefined;
}

/** A status, or not more than `status`, `headers`, `body` and `metadata`, which HTTP can send. */
function responseOf(value: unknown): AssumedResponse | undefined {
  if (typeof value === "number") return responseOf({ status: value });
  if (!isObject(value)) return undefined;
  const { status = 200, headers = {}, body = "", metadata = {}, ...others } = value;
  if (typeof status !== "number" || !Number.isInteger(status) || status < 200 || status > 599) return undefined;
  if (!isObject(headers) || typeof body !== "string" || !isObject(metadata)) return undefined;
  if (Object.keys(others).length > 0 || !Object.entries(headers).every(isField)) return undefined;
  const fields = Object.entries(headers).map(([name, text]) => [name.toLowerCase(), text]);
  return { ...value, ...("headers" in value && { headers: Object.fromEntries(fields) }) };
}

/** Fields that frame a message follow from its body. */
const FRAMING = new Set(["content-length", "transfer-encoding", "connection", "keep-alive", "upgrade"]);

function isField([name, value]: readonly [string, unknown]): boolean {
  if (typeof value !== "string" || !/^[\x20-\x7e]*$/.test(value)) return false;
  return /^[!#$%&'*+.^_`|~\w-]+$/.test(name) && !FRAMING.has(name.toLowerCase());
}

function dateOf(text: string): Date | undefined {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? undefined : date;
}
