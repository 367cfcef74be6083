/** What a gateway really does with a request is an outcome of its rehearsal, with the same bytes to the backend and to the client. */
import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { LocalGateway } from "../../test/helpers/local-gateway.ts";
import { fc } from "../../test/helpers/property.ts";
import { RawPeer, statusOf } from "../../test/helpers/raw-peer.ts";
import { irOf } from "../../test/helpers/supervisor.ts";
import { requestOf } from "./curl.ts";
import { factsOfRequest } from "./facts.ts";
import { type Outcome, Rehearsal } from "./rehearsal.ts";

const SETTINGS = { sensitiveHeaders: [], perRequest: 1000, sessionKey: new Uint8Array(32) };
const CONFIGURATIONS = 250;
const REQUESTS = 8;

const path = fc.constantFrom("/", "/a", "/a/b", "/b", "/b/");
const header = fc.constantFrom("x-a", "x-b");
const value = fc.constantFrom("1", "2");
const pathMatch = fc.oneof(
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
    directResponse: fc.constantFrom({ status: 204 }, { status: 503, body: "closed" }),
    requestRedirect: fc.constantFrom({ path: { full: "/there" } }, { scheme: "https", status: 308 }),
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
  hosts: fc.constantFrom([], [], [], ["a.test"], ["*.test"]),
  matches: fc.array(match, { minLength: 1, maxLength: 2 }),
  policies,
  weights: fc.constantFrom([1], [1], [1, 3], [0, 1]),
});
const configuration = fc.record({
  policies: fc.option(
    policies.map(({ authorization, transformations }) => ({ authorization, transformations })),
    {
      nil: {},
      freq: 2,
    },
  ),
  routes: fc.array(route, { minLength: 1, maxLength: 4 }),
});
const words = fc.record({
  method: fc.constantFrom("GET", "GET", "GET", "GET", "GET", "POST", "POST", "POST", "OPTIONS", "TRACE"),
  host: fc.constantFrom("a.test", "a.test", "a.test", "a.test", "a.test", "a.test", "b.test", "b.test", "c.other"),
  target: fc.constantFrom(
    "/",
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

interface Shape {
  readonly policies: object;
  readonly routes: readonly {
    readonly hosts: readonly string[];
    readonly matches: readonly object[];
    readonly policies: object;
    readonly weights: readonly number[];
  }[];
}

function userConfig({ policies, routes }: Shape, port: number): object {
  const list = routes.map(({ hosts, matches, policies, weights }, i) => ({
    name: `r${i}`,
    hostnames: hosts,
    matches,
    policies,
    // Two names of one address are two endpoints.
    backends: weights.map((weight, at) => ({ host: `${at === 0 ? "127.0.0.1" : "localhost"}:${port}`, weight })),
  }));
  return { binds: [{ port: 0, listeners: [{ hostname: "*.test", policies, routes: list }] }] };
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

test("a rehearsal has the outcome of the real request", async () => {
  const heads: { method: string; target: string; headers: string[] }[] = [];
  const upstream = createServer((request: IncomingMessage, response) => {
    heads.push({ method: request.method ?? "", target: request.url ?? "", headers: request.rawHeaders });
    request.resume();
    response.sendDate = false;
    response.writeHead(200, { "content-length": 0 }).end();
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  using _ = { [Symbol.dispose]: () => upstream.close().closeAllConnections() };
  const { port } = upstream.address() as AddressInfo;
  await using gateway = await LocalGateway.start(userConfig({ policies: {}, routes: [] }, port));
  let [cases, routed, single] = [0, 0, 0];
  await fc.assert(
    fc.asyncProperty(
      configuration,
      fc.array(words, { minLength: REQUESTS, maxLength: REQUESTS }),
      async (shape, requests) => {
        const config = userConfig(shape, port);
        await gateway.reconfigure(config);
        const rehearsal = new Rehearsal(irOf(config), SETTINGS);
        try {
          const [bind] = rehearsal.binds;
          assert.ok(bind !== undefined);
          for (const { method, host, target, headers, body } of requests) {
            const options = headers.flatMap((each) => ["-H", each]);
            const facts = factsOfRequest(
              requestOf([method, `http://${host}${target}`, ...options, ...(body === "" ? [] : ["-d", body])]),
            );
            const { outcomes } = await rehearsal.outcomes(facts, bind, {});
            heads.length = 0;
            const lines = gateway.lines.length;
            const client = await RawPeer.connect(gateway.port());
            client.send(`${facts.head}${facts.body}`);
            const response = await client.message();
            await gateway.until(() => gateway.lines.length > lines, "the line of the request");
            client.socket.destroy();
            const { route, endpoint, error, reason } = gateway.lines.at(-1) ?? {};
            const real = {
              status: statusOf(response),
              headers: stable(response.fields.flatMap(partsOf)),
              body: response.body,
              route,
              endpoint,
              error,
              reason,
              sent: heads.map((each) => ({ ...each, headers: stable(each.headers) })),
            };
            cases++;
            if (route !== undefined) routed++;
            if (outcomes.length === 1) single++;
            const rehearsed = outcomes.map(comparable);
            if (!rehearsed.some((each) => isSame(each, real))) assert.deepEqual(rehearsed[0], real);
          }
        } finally {
          rehearsal.close();
        }
      },
    ),
    { numRuns: CONFIGURATIONS, endOnFailure: true },
  );
  assert.ok(cases >= CONFIGURATIONS * REQUESTS);
  assert.ok(routed > cases / 2, `only ${routed} of ${cases} requests match a route: the generator is too wide`);
  assert.ok(single > cases / 2, `only ${single} of ${cases} requests have one outcome`);
});

function comparable({ record, sent, received }: Outcome): object {
  const text = received.toString("latin1");
  const [head = "", ...rest] = text.split("\r\n\r\n");
  const [, ...fields] = head.split("\r\n");
  const headers = stable(fields.flatMap(partsOf));
  const { route, endpoint, error, reason, status } = record ?? {};
  return {
    status,
    headers,
    body: rest.join("\r\n\r\n"),
    route,
    endpoint,
    error,
    reason: reason === "Upstream" ? undefined : reason,
    sent: sent.map((each) => ({ ...each, headers: stable(each.headers) })),
  };
}

function partsOf(line: string): [name: string, value: string] {
  const colon = line.indexOf(":");
  return [line.slice(0, colon), line.slice(colon + 2)];
}

function isSame(one: unknown, other: unknown): boolean {
  try {
    assert.deepEqual(one, other);
    return true;
  } catch {
    return false;
  }
}
