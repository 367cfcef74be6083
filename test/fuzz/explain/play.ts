/** Real requests and their rehearsals, over generated configurations: for a property test and for `npm run fuzz -- explain`. */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { requestOf } from "../../../src/rehearsal/curl.ts";
import { factsOfRequest } from "../../../src/rehearsal/facts.ts";
import { type Outcome, Rehearsal } from "../../../src/rehearsal/rehearsal.ts";
import { type AccessRecord, recordFields } from "../../../src/telemetry/access-record.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { fc } from "../../helpers/property.ts";
import { RawPeer, statusOf } from "../../helpers/raw-peer.ts";
import { irOf } from "../../helpers/supervisor.ts";

const SETTINGS = { sensitiveHeaders: [], perRequest: 1000, sessionKey: new Uint8Array(32) };
/** Stands for the address of the authorization service. */
const AUTHORIZER = "authorizer.test:1";

const path = fc.constantFrom("/", "/a", "/a/b", "/b", "/b/");
const header = fc.constantFrom("x-a", "x-b");
const value = fc.constantFrom("1", "2");
const pathMatch = fc.oneof(
  fc.constant({ pathPrefix: "/" }),
  fc.constant({ pathPrefix: "/" }),
  fc.constant({ pathPrefix: "/" }),
  fc.constant({ pathPrefix: "/" }),
  fc.constant({ pathPrefix: "/" }),
  fc.constant({ pathPrefix: "/" }),
  fc.constant({ pathPrefix: "/" }),
  path.map((pathPrefix) => ({ pathPrefix })),
  path.map((exact) => ({ exact })),
  fc.constantFrom("/[ab]", "/a/.*").map((regex) => ({ regex })),
);
const match = fc
  .record({
    path: pathMatch,
    method: fc.option(fc.constantFrom("GET", "POST"), { nil: undefined, freq: 1 }),
    headers: fc.oneof(
      fc.constant([]),
      fc.constant([]),
      fc.record({ name: header, value: value.map((exact) => ({ exact })) }).map((only) => [only]),
    ),
  })
  .map(({ method, ...rest }) => (method === undefined ? rest : { ...rest, method }));

const rule = fc.constantFrom(
  { deny: 'request.headers["x-a"] == "2"' },
  { require: 'request.method == "GET"' },
  { allow: 'request.path.startsWith("/a")' },
  { allow: 'request.headers["x-b"] == "1"' },
);
/** Each kind is there or not. */
const policies = fc
  .record({
    authorization: fc.array(rule, { minLength: 1, maxLength: 2 }).map((rules) => ({ rules })),
    requestHeaderModifier: fc.record({
      set: fc.constant({ "x-set": "set" }),
      remove: fc.constantFrom(["x-a"], ["x-b"], []),
    }),
    responseHeaderModifier: fc.constantFrom({ add: { "x-added": "1" } }, { set: { "x-set": "2" } }),
    urlRewrite: fc.constantFrom({ path: { full: "/new" } }, { authority: { full: "other.test" } }),
    directResponse: fc.constantFrom<object>(
      { status: 204 },
      { status: 503, body: "closed" },
      { conditional: [{ condition: 'request.headers["x-a"] == "1"', status: 207 }] },
      { conditional: [{ condition: 'request.method == "GET"', status: 207 }, { status: 410 }] },
    ),
    requestRedirect: fc.constantFrom({ path: { full: "/there" } }, { scheme: "https", status: 308 }),
    apiKey: fc.constant({ keys: [{ key: "abc", metadata: { team: "a" } }], mode: "strict" }),
    extAuthz: fc.constant({ host: AUTHORIZER, protocol: { http: {} } }),
    buffer: fc.constantFrom({ request: { maxBytes: 2 } }, { request: { maxBytes: 100 } }),
    cors: fc.constantFrom({ allowOrigins: ["http://o.test"], allowMethods: ["GET"] }),
    csrf: fc.constant({}),
    localRateLimit: fc.constantFrom(
      [{ maxTokens: 0, fillInterval: "1h" }],
      [{ maxTokens: 100_000, fillInterval: "1h" }],
    ),
    retry: fc.constantFrom({ attempts: 1, backoff: "1ms", codes: [503] }),
    transformations: fc.constantFrom(
      { request: { set: { "x-path": "request.path" } } },
      { response: { set: { "x-code": "string(response.code)" } } },
    ),
  })
  .chain((all) =>
    fc
      .subarray(Object.keys(all) as (keyof typeof all)[], { maxLength: 3 })
      .map((kinds) => Object.fromEntries(kinds.map((kind) => [kind, all[kind]]))),
  );

const route = fc.record({
  hosts: fc.constantFrom([], [], [], [], [], [], ["a.test"], ["*.test"]),
  matches: fc.array(match, { minLength: 1, maxLength: 2 }),
  policies,
  weights: fc.constantFrom([1], [1], [1, 3], [0, 1]),
  /** Its backend is the group. */
  delegates: fc.constantFrom(false, false, false, true),
});
export const configuration = fc.record({
  policies: fc.option(
    policies.map(({ authorization, transformations }) => ({ authorization, transformations })),
    {
      nil: {},
      freq: 2,
    },
  ),
  routes: fc.array(route, { minLength: 1, maxLength: 4 }),
  /** Of a second listener, for `a.test` only. */
  narrow: fc.option(fc.array(route, { minLength: 1, maxLength: 2 }), { nil: [], freq: 1 }),
  group: fc.array(route, { minLength: 1, maxLength: 2 }),
});
export const written = fc.record({
  method: fc.constantFrom("GET", "GET", "GET", "GET", "GET", "POST", "POST", "POST", "OPTIONS", "TRACE"),
  host: fc.constantFrom("a.test", "a.test", "a.test", "a.test", "a.test", "a.test", "b.test", "b.test", "c.other"),
  target: fc.constantFrom(
    "/",
    "/",
    "/",
    "/a",
    "/a",
    "/",
    "/",
    "/a",
    "/a",
    "/a",
    "/a/b?q=1",
    "/b",
    "/b",
    "/a//b",
    "/c",
    "/%2e%2e/a",
    "/a/../b",
  ),
  headers: fc.array(
    fc.constantFrom(
      "x-a: 1",
      "x-a: 2",
      "x-b: 1",
      "origin: http://o.test",
      "authorization: Bearer abc",
      "x-forwarded-for: 10.0.0.9",
      "x-c: 3",
    ),
    { maxLength: 3 },
  ),
  body: fc.constantFrom("", "", "k=v"),
});

interface ShapeRoute {
  readonly hosts: readonly string[];
  readonly matches: readonly object[];
  readonly policies: object;
  readonly weights: readonly number[];
  readonly delegates: boolean;
}

interface Shape {
  readonly policies: object;
  readonly routes: readonly ShapeRoute[];
  readonly narrow: readonly ShapeRoute[];
  /** Routes of the group. */
  readonly group: readonly ShapeRoute[];
}

type Written = typeof written extends fc.Arbitrary<infer Value> ? Value : never;

interface Sent {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly string[];
}

/** A real outcome that is none of those of the rehearsal. */
export interface Difference {
  readonly config: object;
  readonly request: Written;
  readonly real: object;
  readonly rehearsed: readonly object[];
}

/** A gateway and its backend; the authorization service denies paths below `/b`. */
export class ExplainedGateway {
  /** Requests so far, those that match a route, those without a service or split, and among them those with one outcome. */
  readonly counts = { all: 0, routed: 0, closed: 0, single: 0 };
  readonly #heads: Sent[];
  readonly #servers: readonly Server[];
  readonly #ports: readonly [backend: number, authorizer: number];
  readonly #gateway: LocalGateway;

  private constructor(
    heads: Sent[],
    servers: readonly Server[],
    ports: readonly [number, number],
    gateway: LocalGateway,
  ) {
    this.#heads = heads;
    this.#servers = servers;
    this.#ports = ports;
    this.#gateway = gateway;
  }

  static async start(): Promise<ExplainedGateway> {
    const heads: Sent[] = [];
    const backend = createServer((request: IncomingMessage, response) => {
      heads.push({ method: request.method ?? "", target: request.url ?? "", headers: request.rawHeaders });
      request.resume();
      response.sendDate = false;
      response.writeHead(200, { "content-length": 0 }).end();
    });
    const authorizer = createServer((request, response) => {
      request.resume();
      response.sendDate = false;
      response.writeHead(request.url?.startsWith("/b") === true ? 403 : 200, { "content-length": 0 }).end();
    });
    const servers = [backend, authorizer];
    await Promise.all(servers.map((server) => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))));
    const [one = 0, two = 0] = servers.map((server) => (server.address() as AddressInfo).port);
    const empty = userConfig({ policies: {}, routes: [], narrow: [], group: [] }, [one, two]);
    return new ExplainedGateway(heads, servers, [one, two], await LocalGateway.start(empty));
  }

  /** Sends the requests and rehearses them; the first difference, if there is one. */
  async compare(shape: Shape, requests: readonly Written[]): Promise<Difference | undefined> {
    const config = userConfig(shape, this.#ports);
    await this.#gateway.reconfigure(config);
    const rehearsal = new Rehearsal(irOf(config), SETTINGS);
    const isOpen = /"(extAuthz)"|"weight":3/.test(JSON.stringify(config));
    try {
      for (const request of requests) {
        const difference = await this.#compareOne(rehearsal, request, isOpen);
        if (difference !== undefined) return { config, request, ...difference };
      }
      return undefined;
    } finally {
      rehearsal.close();
    }
  }

  async #compareOne(
    rehearsal: Rehearsal,
    { method, host, target, headers, body }: Written,
    isOpen: boolean,
  ): Promise<Pick<Difference, "real" | "rehearsed"> | undefined> {
    const gateway = this.#gateway;
    const heads = this.#heads;
    const options = headers.flatMap((each) => ["-H", each]);
    const facts = factsOfRequest(
      requestOf([method, `http://${host}${target}`, ...options, ...(body === "" ? [] : ["-d", body])]),
    );
    const { outcomes } = await rehearsal.outcomes(facts, rehearsal.bindFor(new URL("http://any/")), {});
    heads.length = 0;
    const lines = gateway.lines.length;
    const client = await RawPeer.connect(gateway.port());
    client.send(`${facts.head}${facts.body}`);
    const response = await client.message();
    await gateway.until(() => gateway.lines.length > lines, "the line of the request");
    client.socket.destroy();
    const line = lineOf(gateway.lines.at(-1) ?? {});
    const real = {
      status: statusOf(response),
      headers: stable(response.fields.flatMap(partsOf)),
      body: response.body,
      line,
      sent: heads.map((each) => ({ ...each, headers: stable(each.headers) })),
    };
    this.counts.all++;
    if (line.route !== undefined) this.counts.routed++;
    if (!isOpen) this.counts.closed++;
    if (!isOpen && outcomes.length === 1) this.counts.single++;
    const rehearsed = outcomes.map(comparable);
    return rehearsed.some((each) => isDeepStrictEqual(each, real)) ? undefined : { real, rehearsed };
  }

  async close(): Promise<void> {
    for (const server of this.#servers) server.close().closeAllConnections();
    await this.#gateway[Symbol.asyncDispose]();
  }
}

function userConfig({ policies, routes, narrow, group }: Shape, [port, authorizer]: readonly [number, number]): object {
  const listOf = (list: readonly ShapeRoute[], prefix: string): object[] =>
    list.map(({ hosts, matches, policies, weights, delegates }, i) => ({
      name: `${prefix}${i}`,
      hostnames: hosts,
      matches,
      policies,
      backends:
        delegates && prefix !== "g"
          ? [{ routeGroup: "group" }]
          : // Two names of one address are two endpoints.
            weights.map((weight, at) => ({ host: `${at === 0 ? "127.0.0.1" : "localhost"}:${port}`, weight })),
    }));
  const listeners = [
    { hostname: "*.test", policies, routes: listOf(routes, "r") },
    ...(narrow.length === 0 ? [] : [{ hostname: "a.test", policies, routes: listOf(narrow, "n") }]),
  ];
  const config = {
    binds: [{ port: 0, listeners }],
    routeGroups: [{ name: "group", routes: listOf(group, "g") }],
  };
  return JSON.parse(JSON.stringify(config).replaceAll(AUTHORIZER, `127.0.0.1:${authorizer}`)) as object;
}

/** Fields whose values differ from run to run; tokens were taken before. */
const CHANGING = new Set(["date", "x-request-id", "cdn-loop", "x-ratelimit-remaining", "x-ratelimit-reset"]);
const OF_CONNECTION = new Set(["connection", "keep-alive"]);

/** The fields without what differs from run to run. */
function stable(headers: readonly string[]): string[] {
  const lines: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] ?? "").toLowerCase();
    if (OF_CONNECTION.has(name)) continue;
    const changes = CHANGING.has(name);
    lines.push(changes ? name : `${name}: ${headers[i + 1]}`);
  }
  return lines;
}

function comparable({ record, sent, received }: Outcome): object {
  const text = received.toString("latin1");
  const [head = "", ...rest] = text.split("\r\n\r\n");
  const [, ...fields] = head.split("\r\n");
  const headers = stable(fields.flatMap(partsOf));
  return {
    status: record?.status,
    headers,
    body: rest.join("\r\n\r\n"),
    line: lineOf(recordFields(record as AccessRecord)),
    sent: sent.map((each) => ({ ...each, headers: stable(each.headers) })),
  };
}

/** The line of the access log without what differs from run to run: listener, route, endpoint, status, error, lengths and more. */
function lineOf(line: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { time, level, scope, message, "request.id": _id, "src.addr": _client, duration, ...others } = line;
  return JSON.parse(JSON.stringify(others)) as Readonly<Record<string, unknown>>;
}

function partsOf(line: string): [name: string, value: string] {
  const colon = line.indexOf(":");
  return [line.slice(0, colon), line.slice(colon + 2)];
}

let gateway: ExplainedGateway | undefined;

/** One configuration with eight requests; for `npm run fuzz`. */
export async function playExplain(seed: number): Promise<object | undefined> {
  gateway ??= await ExplainedGateway.start();
  const cases = fc.tuple(configuration, fc.array(written, { minLength: 8, maxLength: 8 }));
  const [drawn] = fc.sample(cases, { seed, numRuns: 1 });
  return drawn && gateway.compare(...drawn);
}
