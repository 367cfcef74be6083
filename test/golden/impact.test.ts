/**
 * `impact.txt`: changes of a configuration, each with what it would do to the same sampled requests. What each does is known, and for the last ones
 * that it cannot be known. UPDATE_GOLDEN=1 writes the file.
 */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { ChangeClass } from "../../src/impact/difference.ts";
import { type Impact, impactOf } from "../../src/impact/impact.ts";
import { impactText } from "../../src/impact/impact-text.ts";
import type { SampledRequest } from "../../src/recorder/sample.ts";
import { Rehearsal } from "../../src/rehearsal/rehearsal.ts";
import { irOf } from "../helpers/supervisor.ts";

const FILE = fileURLToPath(new URL("impact.txt", import.meta.url));
const SETTINGS = { sensitiveHeaders: [], perRequest: 1_000_000, sessionKey: new Uint8Array(32) };

const BASE = {
  time: "2026-11-28T12:00:00.000Z",
  bind: "bind/80",
  scheme: "http",
  version: "1.1",
  method: "GET",
  authority: "shop.example",
  headers: [],
  source: { address: "192.0.2.7", port: 40_000 },
} as const;

/** 100 requests of the shop, 10 of its administration, 12 of a client with a key, 12 with a body. */
const SAMPLES: readonly SampledRequest[] = [
  { ...BASE, weight: 50, target: "/" },
  { ...BASE, weight: 50, target: "/cart?item=7", version: "2", headers: [{ name: "cookie", digest: "aaaa" }] },
  { ...BASE, weight: 10, target: "/admin/users", headers: [{ name: "authorization", digest: "bbbb" }] },
  { ...BASE, weight: 12, target: "/api/items", headers: [{ name: "x-api-key", digest: "cccc" }] },
  { ...BASE, weight: 12, target: "/api/items", method: "POST", contentLength: 100 },
];

/** A client of the API whose upload has no announced length, one that asks for another protocol, and a WebSocket in HTTP/2. */
const UPLOAD: readonly SampledRequest[] = [
  { ...BASE, weight: 7, target: "/api/items", method: "POST", contentLength: "unknown" },
];
const OWN_PROTOCOL: readonly SampledRequest[] = [{ ...BASE, weight: 3, target: "/api/stream", upgrade: "own" }];
const WEB_SOCKET: readonly SampledRequest[] = [
  { ...BASE, weight: 4, target: "/api/live", version: "2", upgrade: "websocket" },
];

const GRPC: readonly SampledRequest[] = [
  {
    ...BASE,
    weight: 8,
    target: "/api/shop.Items/List",
    method: "POST",
    version: "2",
    contentLength: "unknown",
    headers: [{ name: "content-type", value: "application/grpc" }],
  },
];
const TUNNELS: readonly SampledRequest[] = (["1.1", "2"] as const).map((version, i) => ({
  ...BASE,
  weight: 2 + i,
  version,
  method: "CONNECT",
  authority: "db.example:5432",
  target: "",
}));
const BROWSER: readonly SampledRequest[] = [
  { ...BASE, weight: 6, target: "/api/items", headers: [{ name: "origin", value: "https://a.test" }] },
];

interface Site {
  readonly frontend?: object;
  readonly bind?: object;
  readonly listener?: object;
  readonly shop?: object;
  readonly admin?: object;
  readonly api?: object;
  readonly more?: readonly object[];
}

const backends = [{ host: "10.0.0.1:80" }];
const NEW = [{ host: "10.0.0.2:80" }];

function site({ frontend = {}, bind, listener, shop, admin, api, more = [] }: Site): object {
  const routes = [
    { name: "shop", backends, ...shop },
    { name: "admin", matches: [{ path: { pathPrefix: "/admin" } }], backends, ...admin },
    { name: "api", matches: [{ path: { pathPrefix: "/api" } }], backends, ...api },
    ...more,
  ];
  return { frontendPolicies: frontend, binds: [{ port: 80, ...bind, listeners: [{ routes, ...listener }] }] };
}

const policies = (set: object): object => ({ policies: set });
const rules = (...all: readonly object[]): object => policies({ authorization: { rules: all } });
const DENY_ADMIN = rules({ deny: 'request.path.startsWith("/admin/")' });
const AUTHZ = policies({ extAuthz: { host: "10.0.0.9:80" } });
const OTHER_AUTHZ = policies({ extAuthz: { host: "10.0.0.8:80" } });
const keyed = (key: string): object => policies({ apiKey: { mode: "strict", keys: [{ key }] } });
const limited = (maxBytes: number): object => policies({ buffer: { request: { maxBytes } } });
const HTTP2 = [{ ...backends[0], policies: { http: { version: "HTTP/2.0" } } }];
const tokens = (kid: string): object =>
  policies({
    jwtAuth: {
      providers: [
        { issuer: "https://login.test", audiences: ["shop"], jwks: JSON.stringify({ keys: [{ ...KEY, kid }] }) },
      ],
    },
  });
/** Of RFC 8037, appendix A.2. */
const KEY = { kty: "OKP", crv: "Ed25519", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" };
const calling = (key: string): object => ({
  backends: [{ ...backends[0], policies: { extAuthz: { host: "10.0.0.9:80", policies: { backendAuth: { key } } } } }],
});
const connecting = (last: number): object => ({ networkExtAuthz: { host: `10.0.0.${last}:80` } });
const authorized = (key: string): object => ({ backends: [{ ...backends[0], policies: { backendAuth: { key } } }] });
const CHANCE = policies({
  transformations: {
    request: { set: { "x-id": "uuid()", "x-share": "string(random())", "x-at": "string(request.startTime) + uuid()" } },
  },
});
const SIGNING_KEY = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({
  type: "pkcs8",
  format: "pem",
});
const signed = (sub: string): object => ({
  backends: [
    {
      ...backends[0],
      policies: { backendAuth: { jwtSign: { signingKey: SIGNING_KEY, alg: "ES256", claims: { sub } } } },
    },
  ],
});
const framing = (value: string): object =>
  policies({ transformations: { response: { set: { "x-frame-options": JSON.stringify(value) } } } });
const FRAMED = { policies: { responseHeaderModifier: { set: { "x-frame-options": "DENY" } } } };
const allowing = (origin: string): object => policies({ cors: { allowOrigins: [origin] } });
const RETRIED = { policies: { retry: { attempts: 2, codes: [200] } } };
const PROCESSED = { policies: { extProc: { host: "10.0.0.9:80" } } };
const SESSIONS = policies({ sessionPersistence: {} });
const byHeader = (name: string, value: string): object => ({
  name: "special",
  matches: [{ path: { pathPrefix: "/api" }, headers: [{ name, value: { exact: value } }] }],
  backends: NEW,
});

type Effect = { readonly [C in ChangeClass]?: number };

/** What changes, from and to, and how many requests that concerns. */
const CHANGES: readonly (readonly [
  title: string,
  before: Site,
  after: Site,
  effect: Effect,
  samples?: readonly SampledRequest[],
])[] = [
  ["nothing", {}, {}, {}],
  ["a rule denies a path", {}, { admin: DENY_ADMIN }, { refused: 10 }],
  ["the rule is gone", { admin: DENY_ADMIN }, {}, { granted: 10 }],
  ["a rule allows one method only", {}, { api: rules({ allow: 'request.method == "GET"' }) }, { refused: 12 }],
  ["the backend of a route", {}, { api: { backends: NEW } }, { movedBackend: 24 }],
  [
    "weights, 90 and 10 to 60 and 40",
    {
      shop: {
        backends: [
          { ...backends[0], weight: 9 },
          { ...NEW[0], weight: 1 },
        ],
      },
    },
    {
      shop: {
        backends: [
          { ...backends[0], weight: 6 },
          { ...NEW[0], weight: 4 },
        ],
      },
    },
    { movedBackend: 30 },
  ],
  [
    "the same weights in another order",
    { shop: { backends: [...backends, ...NEW] } },
    { shop: { backends: [...NEW, ...backends] } },
    {},
  ],
  [
    "a more specific route with another backend",
    {},
    { more: [{ name: "cart", matches: [{ path: { exact: "/cart" } }], backends: NEW }] },
    { movedRoute: 50 },
  ],
  ["a narrower match", {}, { api: { matches: [{ path: { pathPrefix: "/api/v1" } }] } }, { movedRoute: 24 }],
  ["a route that catches all is gone", {}, { shop: { matches: [{ path: { exact: "/" } }] } }, { refused: 50 }],
  ["another host", {}, { listener: { hostname: "other.example" } }, { refused: 134 }],
  ["another port", {}, { bind: { port: 81 } }, { refused: 134 }],
  [
    "a prefix that is rewritten",
    {},
    { api: policies({ urlRewrite: { path: { prefix: "/v2" } } }) },
    { changedOnTheWay: 24 },
  ],
  [
    "a header field that is added",
    {},
    { shop: policies({ requestHeaderModifier: { set: { "x-team": "shop" } } }) },
    { changedOnTheWay: 100 },
  ],
  [
    "a redirect in place of the backend",
    {},
    { admin: policies({ requestRedirect: { authority: { host: "admin.example" } } }) },
    { movedBackend: 10 },
  ],
  [
    "an error in place of the backend",
    {},
    { admin: policies({ directResponse: { status: 503, body: "closed" } }) },
    { refused: 10 },
  ],
  ["a limit on bodies", {}, { api: policies({ buffer: { request: { maxBytes: 10 } } }) }, { refused: 12 }],
  ["a client by its address", {}, { admin: rules({ deny: 'source.address == "192.0.2.7"' }) }, { refused: 10 }],
  [
    "a rule about a field that samples have",
    {},
    { shop: rules({ deny: "has(request.headers.cookie)" }) },
    { refused: 50 },
  ],
  [
    "a secret that the path makes irrelevant",
    {},
    { shop: rules({ deny: 'request.path == "/none" && request.headers["cookie"] == "a"' }) },
    {},
  ],
  ["a service that decides", {}, { admin: AUTHZ }, { maybeRefused: 10 }],
  ["the service is no longer asked", { admin: AUTHZ }, {}, { maybeGranted: 10 }],
  ["another service decides", { admin: AUTHZ }, { admin: OTHER_AUTHZ }, { unknown: 10 }],
  ["the same service, another backend", { admin: AUTHZ }, { admin: { ...AUTHZ, backends: NEW } }, { movedBackend: 10 }],
  ["another key, where samples have digests", { admin: keyed("one") }, { admin: keyed("two") }, { unknown: 10 }],
  [
    "the same key, another backend",
    { admin: keyed("one") },
    { admin: { ...keyed("one"), backends: NEW } },
    { movedBackend: 10 },
  ],
  ["another key for the whole listener", { listener: keyed("one") }, { listener: keyed("two") }, { unknown: 10 }],
  [
    "the same key for the whole listener, another backend",
    { listener: keyed("one"), admin: {} },
    { listener: keyed("one"), admin: { backends: NEW } },
    { movedBackend: 10 },
  ],
  ["another key set", { admin: tokens("one") }, { admin: tokens("two") }, { unknown: 10 }],
  [
    "a service that decides at the backend, called with another key",
    { admin: calling("one") },
    { admin: calling("two") },
    { unknown: 10 },
  ],
  [
    "the same one, called with the same key",
    { admin: calling("one") },
    { admin: { ...calling("one"), ...DENY_ADMIN } },
    { maybeRefused: 10 },
  ],
  ["another service about connections", { frontend: connecting(9) }, { frontend: connecting(8) }, { unknown: 134 }],
  [
    "the same service about connections, another backend",
    { frontend: connecting(9) },
    { frontend: connecting(9), api: { backends: NEW } },
    { movedBackend: 24 },
  ],
  ["another key for the backend", { api: authorized("one") }, { api: authorized("two") }, { changedOnTheWay: 24 }],
  [
    "a rule about the value of a secret",
    {},
    { shop: rules({ deny: 'request.headers["cookie"].contains("old=")' }) },
    { maybeRefused: 50 },
  ],
  [
    "a rule about the body",
    {},
    { api: rules({ deny: 'string(request.body).contains("<script")' }) },
    { maybeRefused: 12 },
  ],
  [
    "a rule about the values of all fields",
    {},
    { shop: rules({ deny: 'request.headers.exists(name, request.headers[name].contains("old="))' }) },
    { maybeRefused: 50 },
  ],
  [
    "a rule about a secret whose name is written in upper case",
    {},
    { shop: rules({ deny: 'request.headers["Cookie"].contains("old=")' }) },
    { maybeRefused: 50 },
  ],
  ["a route by the value of a secret", {}, { more: [byHeader("x-api-key", "s3cret")] }, { unknown: 12 }],
  ["a limit on bodies whose length is not announced", {}, { api: limited(10) }, { maybeRefused: 7 }, UPLOAD],
  ["a lower limit on them", { api: limited(20) }, { api: limited(10) }, { unknown: 7 }, UPLOAD],
  [
    "the same limit, another backend",
    { api: limited(20) },
    { api: { ...limited(20), backends: NEW } },
    { movedBackend: 7 },
    UPLOAD,
  ],
  ["a limit on all bodies", {}, { frontend: { http: { maxRequestBodySize: 10 } } }, { maybeRefused: 7 }, UPLOAD],
  [
    "a rule about a body that is there",
    {},
    { api: rules({ deny: "size(request.body) > 0" }) },
    { maybeRefused: 7 },
    UPLOAD,
  ],
  ["a backend that cannot switch protocols", {}, { api: { backends: HTTP2 } }, { refused: 3 }, OWN_PROTOCOL],
  ["a backend that can", {}, { api: { backends: HTTP2 } }, {}, WEB_SOCKET],
  [
    "WebSockets in HTTP/2 are requests like others",
    {},
    { api: rules({ allow: 'request.method == "POST"' }) },
    { refused: 4 },
    WEB_SOCKET,
  ],
  ["values from chance and time, which differ each time", { shop: CHANCE }, { shop: CHANCE }, {}],
  ["a value from chance that is added", {}, { shop: CHANCE }, { changedOnTheWay: 100 }],
  ["a token that the gateway signs", { api: signed("shop") }, { api: signed("shop") }, {}],
  ["another claim of that token", { api: signed("shop") }, { api: signed("other") }, { changedOnTheWay: 24 }],
  ["a header field that is added to responses", {}, { shop: FRAMED }, { changedOnTheWay: 100 }],
  [
    "another value of that field",
    { listener: framing("DENY") },
    { listener: framing("SAMEORIGIN") },
    { changedOnTheWay: 134 },
  ],
  [
    "the same field for the whole listener and for each route",
    { shop: FRAMED, api: FRAMED, admin: FRAMED },
    { listener: framing("DENY") },
    {},
  ],
  [
    "fields of requests and of responses",
    {},
    { shop: policies({ ...FRAMED.policies, requestHeaderModifier: { set: { "x-team": "shop" } } }) },
    { changedOnTheWay: 100 },
  ],
  [
    "the same origins are allowed, another backend",
    { api: allowing("https://a.test") },
    { api: { ...allowing("https://a.test"), backends: NEW } },
    { movedBackend: 6 },
    BROWSER,
  ],
  [
    "other origins are allowed",
    { api: allowing("https://a.test") },
    { api: allowing("https://b.test") },
    { changedOnTheWay: 6 },
    BROWSER,
  ],
  [
    "a retry of the status that backends are taken to respond with",
    { shop: RETRIED },
    { shop: { policies: { ...RETRIED.policies, ...FRAMED.policies } } },
    { changedOnTheWay: 100 },
  ],
  ["bodies of responses are held", {}, { shop: policies({ buffer: { response: {} } }) }, {}],
  [
    "a service that sees responses",
    { api: PROCESSED },
    { api: { ...PROCESSED, ...FRAMED, policies: { ...PROCESSED.policies, ...FRAMED.policies } } },
    { changedOnTheWay: 24 },
  ],
  ["sessions, whose cookies differ each time", { shop: SESSIONS }, { shop: SESSIONS }, {}],
  [
    "tunnels that clients open, to another backend",
    { frontend: { connect: { mode: "route" } } },
    { frontend: { connect: { mode: "route" } }, shop: { backends: NEW } },
    { movedBackend: 5 },
    TUNNELS,
  ],
  ["tunnels are no longer opened", { frontend: { connect: { mode: "route" } } }, {}, { refused: 5 }, TUNNELS],
  ["a field of responses to gRPC calls", {}, { api: FRAMED }, { changedOnTheWay: 8 }, GRPC],
  ["a field of responses to WebSockets, which have no status 200", {}, { api: FRAMED }, {}, WEB_SOCKET],
  [
    "a rule about the tunnel of the client",
    {},
    { api: rules({ deny: "size(source.connectHeaders) > 0" }) },
    { maybeRefused: 4 },
    WEB_SOCKET,
  ],
  [
    "a rule about its certificate, in plaintext",
    {},
    { api: rules({ deny: "source.identity != null" }) },
    {},
    WEB_SOCKET,
  ],
];

async function impact(before: object, after: object, samples = SAMPLES): Promise<Impact> {
  const was = new Rehearsal(irOf(before), SETTINGS);
  const will = new Rehearsal(irOf(after), SETTINGS);
  try {
    return await impactOf(samples, { rehearsal: was }, { rehearsal: will });
  } finally {
    was.close();
    will.close();
  }
}

/** The numbers of requests that change, by class. */
function effectOf({ classes }: Impact): Effect {
  const changed = Object.entries(classes).filter(([name, { samples }]) => name !== "unchanged" && samples > 0);
  return Object.fromEntries(changed.map(([name, { requests }]) => [name, Math.round(requests * 1e6) / 1e6]));
}

test("the impact of changes with known effects", async (context) => {
  const shown: string[] = [];
  for (const [title, before, after, effect, samples] of CHANGES) {
    const found = await impact(site(before), site(after), samples);
    await context.test(title, () => assert.deepEqual(effectOf(found), effect));
    shown.push(`# ${title}\n${impactText(found)}`);
  }
  const text = shown.join("\n");
  if (process.env.UPDATE_GOLDEN !== undefined) writeFileSync(FILE, text);
  else assert.equal(text, readFileSync(FILE, "utf8"));
});
