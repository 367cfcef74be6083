/** The variables of expressions: their types, and where they come from. */
import type { Activation } from "../environment/activation.ts";
import type { Read, Variable } from "../environment/environment.ts";
import { BYTES, DURATION, DYN, INT, list, map, record, STRING, TIMESTAMP, type Type } from "../environment/types.ts";
import { fromData } from "../values/access.ts";
import { HeadersView } from "../values/headers.ts";
import { CelDuration, CelMapLike, CelTimestamp, type CelValue } from "../values/types.ts";
import type { Scope } from "./scopes.ts";

/** A value is text, a list when the field is repeated, or bytes when it is not UTF-8. */
const HEADERS = map(STRING, DYN);

const port = (number: number | undefined): bigint | undefined => (number === undefined ? undefined : BigInt(number));
const time = (date: Date | undefined): CelTimestamp | undefined =>
  date === undefined ? undefined : CelTimestamp.fromDate(date);

const REQUEST_FIELDS = {
  method: [STRING, (a) => a.request?.method],
  uri: [STRING, ({ request: r }) => r && `${r.scheme}://${r.authority}${r.path}${r.search}`],
  host: [STRING, (a) => a.request?.authority],
  scheme: [STRING, (a) => a.request?.scheme],
  path: [STRING, (a) => a.request?.path],
  pathAndQuery: [STRING, ({ request: r }) => r && r.path + r.search],
  version: [STRING, (a) => a.request?.version],
  headers: [HEADERS, (a) => a.request && new HeadersView(a.request)],
  body: [BYTES, (a) => a.request?.body],
  bodyPrefix: [BYTES, (a) => a.request?.bodyPrefix ?? a.request?.body],
  startTime: [TIMESTAMP, (a) => time(a.request?.startTime)],
  endTime: [TIMESTAMP, (a) => time(a.request?.endTime)],
} satisfies Readonly<Record<string, Field>>;

const RESPONSE_FIELDS = {
  code: [INT, (a) => port(a.response?.status)],
  grpcStatus: [INT, (a) => port(a.response?.grpcStatus)],
  headers: [HEADERS, ({ response: r }) => r && new HeadersView(r)],
  body: [BYTES, (a) => a.response?.body],
  bodyPrefix: [BYTES, (a) => a.response?.bodyPrefix ?? a.response?.body],
} satisfies Readonly<Record<string, Field>>;

const request = recordVariable("request", REQUEST_FIELDS);
const response = recordVariable("response", RESPONSE_FIELDS);

const open = (read: (a: Activation) => unknown): Field => [DYN, (a) => optional(read(a))];

const sourceFields = recordVariable("source", {
  address: [STRING, (a) => a.source?.address],
  port: [INT, (a) => port(a.source?.port)],
  rawAddress: [STRING, (a) => a.source?.rawAddress],
  rawPort: [INT, (a) => port(a.source?.rawPort)],
  identity: open((a) => a.source?.identity),
  spiffeId: [STRING, (a) => a.source?.spiffeId],
  subjectAltNames: [list(STRING), (a) => a.source?.subjectAltNames],
  issuer: [STRING, (a) => a.source?.issuer],
  subject: [STRING, (a) => a.source?.subject],
  subjectCn: [STRING, (a) => a.source?.subjectCn],
  certificate: open((a) => a.source?.certificate),
  unverifiedWorkload: open((a) => a.source?.unverifiedWorkload),
  connectHeaders: [HEADERS, (a) => a.source?.connectHeaders && new HeadersView(a.source.connectHeaders)],
});

/** An identity is a separate record, and null if absent, like the records of policies. */
const source: Variable = { ...sourceFields, nullable: new Set(["identity"]) };

const destination = recordVariable("destination", {
  address: [STRING, (a) => a.destination?.address],
  port: [INT, (a) => port(a.destination?.port)],
  hostname: [STRING, (a) => a.destination?.hostname],
});

function optional(value: unknown): CelValue | undefined {
  return value === undefined ? undefined : fromData(value);
}

type PlainName = Exclude<keyof Activation, "request" | "response" | "source" | "destination">;

/** Plain data whose fields are known by name; their values are what the proxy puts there. */
function plain(name: PlainName, fields: Readonly<Record<string, Type>>): Variable {
  return { type: record(name, fields), read: (activation) => optional(activation[name]) };
}

/** Plain data with unknown fields: claims, metadata. */
function unknown(name: PlainName): Variable {
  return { type: DYN, read: (activation) => optional(activation[name]) };
}

const NAMED = { namespace: DYN, name: DYN };

const proxy = plain("proxy", {
  bind: DYN,
  gateway: record("proxy.gateway", NAMED),
  listener: record("proxy.listener", { name: DYN }),
  route: record("proxy.route", { ...NAMED, kind: DYN, rule: DYN }),
  requestProcessingDuration: DURATION,
  upstreamDuration: DURATION,
  responseProcessingDuration: DURATION,
});

const UNRECORDED: ReadonlySet<string> = new Set(["headers", "body", "bodyPrefix"]);

/** What is recorded of requests and responses. A search for anything else would find nothing, whatever the requests had. */
const RECORD = {
  request: recordVariable("request", recorded(REQUEST_FIELDS)),
  response: recordVariable("response", recorded(RESPONSE_FIELDS)),
  backend: plain("backend", { name: DYN }),
  route: { type: STRING, read: (a) => a.record?.route },
  listener: { type: STRING, read: (a) => a.record?.listener },
  endpoint: { type: STRING, read: (a) => a.record?.endpoint },
  error: { type: STRING, read: (a) => a.record?.error },
  reason: { type: STRING, read: (a) => a.record?.reason },
  policy: { type: STRING, read: (a) => a.record?.policy },
  duration: { type: DURATION, read: (a) => a.record && CelDuration.fromMilliseconds(a.record.duration) },
  attempts: { type: INT, read: (a) => a.record && BigInt(a.record.attempts) },
} satisfies Readonly<Record<string, Variable>>;

const NETWORK = { source, destination, env: plain("env", { podName: DYN, namespace: DYN, gateway: DYN }) };
const REQUEST = {
  request,
  ...NETWORK,
  proxy,
  backend: plain("backend", { name: DYN, type: DYN, protocol: DYN }),
  jwt: unknown("jwt"),
  apiKey: unknown("apiKey"),
  basicAuth: unknown("basicAuth"),
  extauthz: unknown("extauthz"),
  extproc: unknown("extproc"),
  metadata: unknown("metadata"),
};

export const VARIABLES: Readonly<Record<Scope, ReadonlyMap<string, Variable>>> = {
  arrival: new Map(Object.entries({ request })),
  network: new Map<string, Variable>(Object.entries(NETWORK)),
  networkResponse: new Map<string, Variable>(Object.entries({ ...NETWORK, response })),
  request: new Map<string, Variable>(Object.entries(REQUEST)),
  response: new Map<string, Variable>(Object.entries({ ...REQUEST, response })),
  record: new Map<string, Variable>(Object.entries(RECORD)),
};

/** A field's type, and how to read it; undefined when it is absent. */
type Field = readonly [Type, Read];

function recorded(fields: Readonly<Record<string, Field>>): Readonly<Record<string, Field>> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !UNRECORDED.has(name)));
}

/** A variable with fields of its own, read one by one. */
function recordVariable(name: keyof Activation, fields: Readonly<Record<string, Field>>): Variable {
  const reads = new Map(Object.entries(fields).map(([field, [, read]]) => [field, read]));
  const types = Object.fromEntries(Object.entries(fields).map(([field, [type]]) => [field, type]));
  return {
    type: record(name, types),
    fields: reads,
    read: (activation) => (activation[name] === undefined ? undefined : new RecordView(activation, reads)),
  };
}

/** A whole variable as a map of the fields that it has now. */
class RecordView extends CelMapLike {
  readonly #activation: Activation;
  readonly #fields: ReadonlyMap<string, Read>;

  constructor(activation: Activation, fields: ReadonlyMap<string, Read>) {
    super();
    this.#activation = activation;
    this.#fields = fields;
  }

  get(key: CelValue): CelValue | undefined {
    return typeof key === "string" ? this.#fields.get(key)?.(this.#activation) : undefined;
  }

  keys(): readonly string[] {
    return [...this.#fields.keys()].filter((name) => this.get(name) !== undefined);
  }

  get size(): number {
    return this.keys().length;
  }
}
