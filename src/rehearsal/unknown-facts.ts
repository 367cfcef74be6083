/**
 * What a request that is rehearsed does not have: a body that it announces, fields that are redacted, the time and chance; of one that is
 * known from its record, whatever that does not hold. Conditions that depend on these are choices; other expressions get what stands in
 * their place.
 */
import { REDACTED } from "../base/redaction.ts";
import type { Names } from "../base/sensitive-names.ts";
import {
  CelTimestamp,
  type CelValue,
  type Failure,
  type Need,
  SOURCE_FIELDS,
  type Unknowns,
  unknown,
} from "../cel/index.ts";
import { getHeader } from "../http/message/message.ts";
import type { ValueMatch } from "../ir/ir.ts";
import type { AssumeFields } from "../policies/contract/deps.ts";
import type { UnknownValues } from "../proxy/match/condition.ts";
import { ASSUMPTIONS, supplyOf } from "./assumptions.ts";
import type { Choices, CredentialKind } from "./choices.ts";
import type { PartlyKnown, RequestFacts } from "./facts.ts";
import type { SampledHead } from "./sampled-head.ts";

/** Longest body that is made up: gateways refuse longer ones before they read them. */
const MAX_BODY = 16 * 1024 * 1024;

interface UnknownFact {
  readonly path: readonly string[];
  readonly need: Need;
}

/** How secret values are compared that are not known. */
export interface Equality {
  /** What stands for the values that routes want of secret fields, numbered in the order of their comparison. */
  readonly numbers: Map<string, string>;
  /** The digest that a sample has of a field with this lower-case name and this value, latin1; absent: digests cannot be compared. */
  readonly digestOf?: (name: string, value: string) => string;
}

const NO_DIGESTS: SampledHead["digests"] = new Map();

export class UnknownFacts implements Unknowns, UnknownValues {
  readonly #choices: Choices;
  #facts: readonly UnknownFact[] = [];
  /** The request of this run, if it is a sampled one. */
  #sampled: SampledHead | undefined;
  #partly: PartlyKnown | undefined;
  /** The names of the fields and query parameters that a request has which is partly known. */
  readonly #known = { header: new Set<string>(), query: new Set<string>() };
  /** What is known about the client of a sampled request. */
  #client: KnownClient | undefined;
  #secret: Names = new Set();
  #digests: SampledHead["digests"] = NO_DIGESTS;
  #equality: Equality = { numbers: new Map() };
  /** The fields and parameters that are equal to a value in this run. */
  readonly #equal = new Map<string, string>();
  /** A value is being made from what stands in the place of what is not known. */
  #standsIn = false;

  constructor(choices: Choices) {
    this.#choices = choices;
  }

  /** Begins an explanation, in all of whose runs a number stands for the same secret. */
  restart(): void {
    this.#equality = { numbers: new Map() };
  }

  /**
   * Begins a run of a request, and returns it with a body, if it announces one that is not there: the assumed one, or blanks. `secret`:
   * headers for which the values that routes want are not shown.
   */
  begin(facts: RequestFacts, secret: Names): RequestFacts {
    this.#restart(redactedFields(facts.head).map(hiddenField), secret);
    if (facts.partly !== undefined) this.#learn(facts, facts.partly);
    if (facts.body.length > 0 || !announcesBody(facts.head)) return facts;
    const body = this.#choices.assumed("body");
    if (body !== undefined) return withBody(facts, Buffer.from(body));
    this.#facts = [...this.#facts, ...BODY];
    return withBlankBody(facts);
  }

  /** Begins a run of a sampled request, whose secret fields are known by their digests, and whose body and perhaps client are not known. */
  beginSampled(head: SampledHead, secret: Names, equality: Equality): void {
    this.#restart(NO_FACTS, secret);
    this.#sampled = head;
    this.#digests = head.digests;
    this.#equality = equality;
    this.#client = head.sample.source === undefined ? NO_ADDRESS : ADDRESS;
  }

  /** The listener of a sampled request asks clients for a certificate. */
  lacksCertificate(): void {
    if (this.#client !== undefined) this.#client = { ...this.#client, certificate: false };
  }

  #restart(facts: readonly UnknownFact[], secret: Names): void {
    this.#secret = secret;
    if (this.#equal.size > 0) this.#equal.clear();
    this.#digests = NO_DIGESTS;
    this.#partly = undefined;
    this.#client = undefined;
    this.#facts = facts;
    this.#sampled = undefined;
  }

  /** Remembers what a request has that is partly known. */
  #learn({ head, target }: RequestFacts, partly: PartlyKnown): void {
    this.#partly = partly;
    const [, ...lines] = head.split("\r\n");
    this.#known.header = new Set(lines.map((line) => line.slice(0, Math.max(0, line.indexOf(":"))).toLowerCase()));
    this.#known.query = new Set(new URLSearchParams(target.slice(target.indexOf("?") + 1 || target.length)).keys());
  }

  at(path: readonly string[], presence: boolean): CelValue | Failure | undefined {
    const [variable = "", field] = path;
    const isTime = variable === "request" && (field === "startTime" || field === "endTime");
    if (this.#partly !== undefined) {
      if (isTime) return CelTimestamp.fromDate(this.#partly.time);
      const need = this.#standsIn ? undefined : this.#missing(path, this.#partly);
      if (need !== undefined) return unknown([need]);
    }
    if (isTime) {
      const time = this.#choices.assumed("time");
      if (time !== undefined) return CelTimestamp.fromDate(time);
      return this.#standsIn ? undefined : unknown([TIME]);
    }
    const chance = variable === "random()" ? this.#choices.assumed("random") : undefined;
    if (chance !== undefined) return chance;
    if (this.#standsIn) return SOME_CHANCE.get(variable);
    if (SOME_CHANCE.has(variable)) return unknown([CHANCE]);
    if (variable === "source" && this.#client !== undefined) {
      const needs = needsOfSource(field, this.#client, presence);
      return needs.length === 0 ? undefined : unknown(needs);
    }
    const client = this.#choices.unknownClients.get(variable);
    if (client !== undefined) return unknown([aboutClient(client)]);
    // What is announced or redacted is there.
    if (presence) return undefined;
    if (this.#sampled !== undefined) {
      const needs = needsOfSample(path, this.#sampled);
      return needs.length === 0 ? undefined : unknown(needs);
    }
    if (this.#facts.length === 0) return undefined;
    const needs = this.#facts.filter((fact) => isPrefix(fact.path, path) || isPrefix(path, fact.path));
    return needs.length === 0 ? undefined : unknown(needs.map(({ need }) => need));
  }

  decide(text: string, needs: readonly Need[]): boolean {
    return this.#choices.condition(text, needs);
  }

  /** Of several values that routes want, a field has at most one. */
  fits(of: "header" | "query", { name, type, value }: ValueMatch): boolean {
    const field =
      of === "header"
        ? `request.headers[${JSON.stringify(name.toLowerCase())}]`
        : `request.uri.query(${JSON.stringify(name)})`;
    const isSecret = of === "query" || this.#secret.has(name.toLowerCase());
    const digests = this.#digests.get(name.toLowerCase());
    const { digestOf } = this.#equality;
    if (of === "header" && type === "exact" && digests !== undefined && digestOf !== undefined)
      return digests.includes(digestOf(name.toLowerCase(), Buffer.from(value, "utf8").toString("latin1")));
    const equal = this.#equal.get(field);
    if (type === "exact" && equal !== undefined) return equal === value;
    const wanted = JSON.stringify(isSecret ? this.#numbered(`${field} ${type} ${value}`) : value);
    const need = of === "header" ? aboutField(name.toLowerCase()) : aboutParameter(name);
    const fits = this.decide(type === "exact" ? `${field} == ${wanted}` : `${field}.matches(${wanted})`, [need]);
    if (fits && type === "exact") this.#equal.set(field, value);
    return fits;
  }

  /** Fields that the request has by now, or that it is known to have had, are tested. */
  readonly assumedFields: AssumeFields = (fields, condition, headers) => {
    const isKnown = fields.some((name) => getHeader(headers, name) !== undefined || !this.mayHave("header", name));
    return isKnown ? undefined : this.decide(condition, fields.map(aboutField));
  };

  /** Whether a client meets a condition on its address; undefined if the address is known. `reported`: by a trusted proxy, which is the peer. */
  readonly assumedAddress = (condition: string, reported: boolean): boolean | undefined => {
    if (this.#client?.address === false) return this.decide(condition, [SAMPLED_ADDRESS]);
    if (this.#partly === undefined) return undefined;
    if (!this.#partly.source) return this.decide(condition, [aboutSource()]);
    return reported && this.mayHave("header", FORWARDED_FOR)
      ? this.decide(condition, [aboutField(FORWARDED_FOR)])
      : undefined;
  };

  mayHave(of: "header" | "query", name: string): boolean {
    return this.#partly !== undefined && !this.#known[of].has(of === "header" ? name.toLowerCase() : name);
  }

  /** What a request lacks that is partly known, and stands at this path of the variables. */
  #missing([variable, field, name]: readonly string[], { source, certificate }: PartlyKnown): Need | undefined {
    if (variable === "source") {
      if (source && (field === "address" || field === "rawAddress")) return undefined;
      return KNOWN_FROM.get(field ?? "") === "certificate" && (certificate || this.#isCertificateAssumed())
        ? undefined
        : aboutSource(field);
    }
    if (variable !== "request") return undefined;
    switch (field) {
      case "headers":
        if (name === undefined) return FIELDS;
        return this.#known.header.has(name.toLowerCase()) ? undefined : aboutField(name.toLowerCase());
      case "uri":
      case "pathAndQuery":
        return this.#known.query.size > 0 ? undefined : QUERY;
      default:
        return undefined;
    }
  }

  #isCertificateAssumed(): boolean {
    return this.#choices.assumed("clientCertificate") !== undefined;
  }

  #numbered(secret: string): string {
    const { numbers } = this.#equality;
    const known = numbers.get(secret) ?? `${REDACTED.slice(0, -1)} ${numbers.size + 1}>`;
    numbers.set(secret, known);
    return known;
  }

  standIn<Value>(needs: readonly Need[], make: () => Value): Value {
    this.#choices.lacks(needs);
    this.#standsIn = true;
    try {
      return make();
    } finally {
      this.#standsIn = false;
    }
  }
}

const FORWARDED_FOR = "x-forwarded-for";
const NO_FACTS: readonly UnknownFact[] = [];

/** What is not known of a sampled request at this path of the variables; most expressions read what is known. */
function needsOfSample([variable, field, name]: readonly string[], head: SampledHead): readonly Need[] {
  if (variable !== "request") return NO_NEEDS;
  const { sample, digests, partlySecret, secretsIn } = head;
  switch (field) {
    case undefined:
      return ["headers", "uri", "body"].flatMap((each) => needsOfSample([variable, each], head));
    case "headers": {
      if (name === undefined) return [...digests.keys(), ...partlySecret].map(aboutField);
      const own = name.toLowerCase();
      return digests.has(own) || partlySecret.includes(own) ? [aboutField(own)] : NO_NEEDS;
    }
    case "path":
      return secretsIn.path ? [SECRETS] : NO_NEEDS;
    case "uri":
    case "pathAndQuery":
      return secretsIn.path || secretsIn.query ? [SECRETS] : NO_NEEDS;
    case "body":
    case "bodyPrefix":
      return sample.contentLength === undefined ? NO_NEEDS : [BODY_OF_REQUEST];
    default:
      return NO_NEEDS;
  }
}

/** The same for both configurations that are compared, so that values from chance do not differ. */
const SOME_CHANCE: ReadonlyMap<string, CelValue> = new Map<string, CelValue>([
  ["random()", 0.5],
  ["uuid()", "00000000-0000-4000-8000-000000000000"],
]);

const NO_NEEDS: readonly Need[] = [];
const BODY_OF_REQUEST: Need = { what: "the body of the request", supply: { kind: "body" } };
const BODY: readonly UnknownFact[] = ["body", "bodyPrefix"].map((name) => ({
  path: ["request", name],
  need: BODY_OF_REQUEST,
}));
/** What is known about a client; without certificates, a listener asks for none. */
interface KnownClient {
  readonly address: boolean;
  readonly certificate: boolean;
}

const ADDRESS: KnownClient = { address: true, certificate: true };
const NO_ADDRESS: KnownClient = { address: false, certificate: true };
const SAMPLED_ADDRESS: Need = {
  what: "the address of the client",
  supply: { kind: "setting", field: "config.recorder.clientAddress" },
};
const CERTIFICATE: Need = { what: "the client's certificate", supply: supplyOf("clientCertificate") };
const TUNNEL: Need = { what: "the tunnel in which the client speaks" };

/** What is not known of `source`, or of this field of it. Every client has an address, so its presence is known. */
const KNOWN_FROM: ReadonlyMap<string, string> = new Map(Object.entries(SOURCE_FIELDS));

function needsOfSource(field: string | undefined, { address, certificate }: KnownClient, presence: boolean): Need[] {
  const from = KNOWN_FROM.get(field ?? "");
  const isFrom = (...origins: readonly string[]): boolean => field === undefined || origins.includes(from ?? "");
  return [
    ...(!address && !presence && isFrom("address", "workload") ? [SAMPLED_ADDRESS] : []),
    ...(!certificate && isFrom("certificate") ? [CERTIFICATE] : []),
    ...(isFrom("tunnel") ? [TUNNEL] : []),
  ];
}

const FIELDS: Need = { what: "the fields of the request", supply: { kind: "field" } };
const QUERY: Need = { what: "the query", supply: { kind: "parameter" } };
const SECRETS: Need = { what: "secrets in the target", supply: { kind: "url" } };
const TIME: Need = { what: "the time of the request", supply: supplyOf("time") };
const CHANCE: Need = { what: "chance", supply: supplyOf("random") };

function hiddenField(name: string): UnknownFact {
  return { path: ["request", "headers", name], need: aboutField(name) };
}

function aboutField(name: string): Need {
  return { what: `the field ${name}`, supply: { kind: "field", name } };
}

function aboutParameter(name: string): Need {
  return { what: `the query parameter ${name}`, supply: { kind: "parameter", name } };
}

function aboutSource(field = "address"): Need {
  if (/^(raw)?(address|port)$/i.test(field)) return { what: "the client's address", supply: { kind: "source" } };
  return CERTIFICATE;
}

function aboutClient(kind: CredentialKind): Need {
  // That it is valid, which it is, says nothing about the client.
  const examples = ASSUMPTIONS[kind].values.slice(0, 1);
  return {
    what: `what the credential for ${kind} says about the client`,
    supply: { kind: "assumption", name: kind, examples },
  };
}

function isPrefix(short: readonly string[], long: readonly string[]): boolean {
  return short.length <= long.length && short.every((part, i) => part === long[i]);
}

/** The names of fields whose values are redacted, as those of a trace are. */
function redactedFields(head: string): string[] {
  const [, ...lines] = head.split("\r\n");
  return lines.filter((line) => line.includes(REDACTED)).map((line) => line.slice(0, line.indexOf(":")).toLowerCase());
}

const LENGTH = /^content-length: *(\d+) *\r\n/im;
const CODING = /^transfer-encoding:.*\r\n/im;

function announcesBody(head: string): boolean {
  return CODING.test(head) || Number(LENGTH.exec(head)?.[1] ?? 0) > 0;
}

function withBody(facts: RequestFacts, body: Buffer): RequestFacts {
  const head = facts.head.replace(LENGTH, "").replace(CODING, "");
  return { ...facts, head: `${head.slice(0, -2)}Content-Length: ${body.length}\r\n\r\n`, body };
}

function withBlankBody(facts: RequestFacts): RequestFacts {
  if (CODING.test(facts.head)) return { ...facts, body: Buffer.from(" ") };
  const length = Math.min(Number(LENGTH.exec(facts.head)?.[1]), MAX_BODY);
  return withBody(facts, Buffer.alloc(length, " "));
}
