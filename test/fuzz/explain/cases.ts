/** Configurations and requests for explanations, at random. */
import { createHash } from "node:crypto";
import { fc } from "../../helpers/property.ts";
import type { Backends } from "./backends.ts";
import { CA_FILE, CLIENTS, SERVER, SPIFFE_ID } from "./certificates.ts";
import { type Behavior, PLACEHOLDERS } from "./services.ts";
import { AUDIENCE, ISSUER, KEYS, TOKENS } from "./tokens.ts";

/** One of the values, by their weights. */
function oneOf<Value>(
  ...weighted: readonly (readonly [weight: number, ...values: readonly Value[]])[]
): fc.Arbitrary<Value> {
  return fc.oneof(
    ...weighted.map(([weight, ...values]) => ({
      arbitrary: fc.constantFrom(...values),
      weight: weight * values.length,
    })),
  );
}

const path = fc.constantFrom("/", "/a", "/a/b", "/b", "/b/");
const header = fc.constantFrom("x-a", "x-b");
const value = fc.constantFrom("1", "2");
const pathMatch = fc.oneof(
  { arbitrary: fc.constant({ pathPrefix: "/" }), weight: 7 },
  path.map((pathPrefix) => ({ pathPrefix })),
  path.map((exact) => ({ exact })),
  fc.constantFrom("/[ab]", "/a/.*").map((regex) => ({ regex })),
);
const match = fc
  .record({
    path: pathMatch,
    method: oneOf([8, undefined], [1, "GET", "POST"]),
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
  { deny: 'request.version == "HTTP/2.0"' },
  { require: 'request.scheme == "http"' },
  { require: `source.spiffeId == "${SPIFFE_ID}"` },
);
/** Without tokens, with one, and with enough; counted for all, or for each value. */
const limit = fc
  .record({
    maxTokens: fc.constantFrom(0, 1, 100_000),
    fillInterval: fc.constant("1h"),
    key: oneOf([3, undefined], [1, "source.address", 'request.headers["x-a"]', "jwt.sub"]),
  })
  .map(({ key, ...bucket }) => (key === undefined ? bucket : { ...bucket, key }));
const shadow = oneOf<object>([3, {}], [1, { shadow: true }]);
/** `alice:wonder` */
const HTPASSWD = `alice:{SHA}${createHash("sha1").update("wonder").digest("base64")}`;
const { authorizer, checker, limiter, processor } = PLACEHOLDERS;

/** Each kind is there or not. */
const unauthenticated = fc
  .record({
    authorization: fc
      .tuple(fc.array(rule, { minLength: 1, maxLength: 2 }), shadow)
      .map(([rules, hidden]) => ({ rules, ...hidden })),
    requestHeaderModifier: fc.record({
      set: fc.constant({ "x-set": "set" }),
      remove: fc.constantFrom(["x-a"], ["x-b"], []),
    }),
    responseHeaderModifier: fc.constantFrom({ add: { "x-added": "1" } }, { set: { "x-set": "2" } }),
    urlRewrite: fc.constantFrom<object>(
      { path: { full: "/new" } },
      { path: { prefix: "/new" } },
      { authority: { full: "other.test" } },
      { authority: { port: 81 }, path: { prefix: "/" } },
    ),
    directResponse: fc.constantFrom<object>(
      { status: 204 },
      { status: 503, body: "closed" },
      {
        status: 200,
        bodyExpression: '{"path": request.path}',
        headers: { "x-host": "request.host", "x-none": "jwt.sub" },
      },
      { conditional: [{ condition: 'request.headers["x-a"] == "1"', status: 207 }] },
      { conditional: [{ condition: 'request.method == "GET"', status: 207 }, { status: 410 }] },
    ),
    requestRedirect: fc.constantFrom<object>(
      { path: { full: "/there" } },
      { path: { prefix: "/there" }, status: 301 },
      { authority: { host: "new.test" } },
      { scheme: "https", status: 308 },
    ),
    delay: fc.constantFrom({ duration: "1ms" }, { duration: 'duration(request.headers["x-a"] + "ms")' }),
    timeout: fc.constantFrom({ requestTimeout: "1m" }, { requestTimeout: "2m", backendRequestTimeout: "1m" }),
    basicAuth: fc.record({ htpasswd: fc.constant(HTPASSWD), mode: fc.constantFrom("strict", "optional") }),
    sessionPersistence: fc.constantFrom<object>({ sessionName: "s" }, { type: "Header", sessionName: "x-session" }),
    grpcWeb: fc.constant({}),
    compression: fc.constantFrom({ minSize: 0 }, { encodings: ["gzip"], minSize: 3 }),
    apiKey: fc.constant({ keys: [{ key: "abc", metadata: { team: "a" } }], mode: "strict" }),
    extAuthz: fc.constantFrom<object>(
      { host: authorizer, protocol: { http: {} } },
      { host: authorizer, protocol: { http: { includeResponseHeaders: ["x-user"] } } },
      { host: checker },
      { host: checker, includeRequestBody: { maxRequestBytes: 2, allowPartialMessage: true } },
    ),
    remoteRateLimit: fc.constantFrom<object>(
      { host: limiter, domain: "d", descriptors: [{ entries: [{ key: "path", value: "request.path" }] }] },
      { host: limiter, domain: "d", descriptors: [{ entries: [{ key: "a", value: 'request.headers["x-a"]' }] }] },
    ),
    extProc: fc.record({
      host: fc.constant(processor),
      failureMode: fc.constantFrom("failClosed", "failOpen"),
      processingOptions: fc.constantFrom<object>(
        {},
        { requestBodyMode: "none", responseBodyMode: "none" },
        { requestBodyMode: "buffered", responseBodyMode: "bufferedPartial" },
        { requestHeaderMode: "skip", responseHeaderMode: "skip" },
      ),
    }),
    requestMirror: fc.constant({ backend: { host: authorizer }, percentage: 1 }),
    buffer: fc.constantFrom<object>(
      { request: { maxBytes: 2 } },
      { request: { maxBytes: 2, failureMode: "failOpen" } },
      { request: { maxBytes: 100 }, response: {} },
    ),
    cors: fc.constantFrom<object>(
      { allowOrigins: ["http://o.test"], allowMethods: ["GET"] },
      { allowOrigins: ["*"], allowMethods: ["*"], allowHeaders: ["x-a"], maxAge: "1m" },
      { allowOrigins: ["http://*.test"], allowCredentials: true, exposeHeaders: ["x-added"] },
    ),
    csrf: fc.constantFrom({}, { additionalOrigins: ["http://o.test"] }, { shadow: true }),
    localRateLimit: fc
      .array(fc.record({ limit, shadow }), { minLength: 1, maxLength: 2 })
      .map((list) => list.map(({ limit, shadow }) => ({ ...limit, ...shadow }))),
    transformations: fc.constantFrom(
      { request: { set: { "x-path": "request.path" } } },
      { request: { set: { "x-client": "request.version + request.scheme + string(source.subjectCn)" } } },
      { response: { set: { "x-code": "string(response.code)" } } },
    ),
  })
  .chain((all) =>
    fc
      .subarray(Object.keys(all) as (keyof typeof all)[], { maxLength: 3 })
      .map((kinds) => Object.fromEntries(kinds.map((kind) => [kind, all[kind]]))),
  );

/** What reads the claims of a token. */
const ofClient = fc.constantFrom<object>(
  { authorization: { rules: [{ allow: 'jwt.sub == "alice"' }] } },
  { authorization: { rules: [{ require: '"ops" in jwt.groups' }, { deny: 'jwt.sub == "bob"' }] } },
  { directResponse: { conditional: [{ condition: 'jwt.sub == "bob"', status: 207 }] } },
  { transformations: { request: { set: { "x-sub": "jwt.sub" } } } },
);
const authenticated = fc
  .record({
    jwtAuth: fc.record({
      mode: fc.constantFrom("strict", "optional", "permissive"),
      issuer: fc.constant(ISSUER),
      audiences: fc.constant([AUDIENCE]),
      jwks: fc.constant(KEYS),
    }),
    others: unauthenticated,
    reads: ofClient,
  })
  .map(({ jwtAuth, others, reads }) => ({ ...others, jwtAuth, ...reads }));
const retry = oneOf([2, undefined], [1, 1, 2]);
const policies = fc
  .tuple(fc.oneof({ arbitrary: unauthenticated, weight: 4 }, { arbitrary: authenticated, weight: 1 }), retry)
  .map(([kinds, attempts]) => ({
    ...kinds,
    ...(attempts !== undefined && { retry: { attempts, backoff: "1ms", codes: [503] } }),
  }));

const backendTLS = { root: CA_FILE, hostname: "backend.test" };
/** Settings of each kind of backend. */
const BACKEND_POLICIES = {
  any: {},
  http1: { http: { version: "HTTP/1.1" } },
  http2: { http: { version: "HTTP/2.0" } },
  tls: { backendTLS },
  tlsHttp2: { backendTLS, http: { version: "HTTP/2.0" } },
  gone: {},
  /** Its certificate is somebody else's. */
  unverified: { backendTLS },
} as const;
type BackendKind = keyof typeof BACKEND_POLICIES;

const PORTS = {
  any: "plain",
  http1: "plain",
  http2: "plain",
  tls: "tls",
  tlsHttp2: "tls",
  gone: "gone",
  unverified: "unverified",
} as const satisfies Readonly<Record<BackendKind, keyof Outside["backends"]>>;

const route = fc
  .record({
    hosts: oneOf<readonly string[]>([6, []], [1, ["a.test"], ["*.test"]]),
    matches: fc.array(match, { minLength: 1, maxLength: 2 }),
    policies,
    weights: fc.constantFrom([1], [1], [1, 3], [0, 1]),
    backend: oneOf<BackendKind>([4, "any"], [1, "http1", "http2"], [0.5, "tls", "tlsHttp2", "gone", "unverified"]),
    /** Its backend is the group. */
    delegates: fc.constantFrom(false, false, false, true),
  })
  // What replaces a prefix must have matched one.
  .map(({ matches, ...others }) => ({
    ...others,
    matches: JSON.stringify(others.policies).includes('"prefix"') ? [{ path: { pathPrefix: "/" } }] : matches,
  }));
export const configuration = fc.record({
  policies: fc.option(
    unauthenticated.map(({ authorization, transformations }) => ({ authorization, transformations })),
    {
      nil: {},
      freq: 2,
    },
  ),
  routes: fc.array(route, { minLength: 1, maxLength: 4 }),
  /** Of a second listener, for `a.test` only. */
  narrow: fc.option(fc.array(route, { minLength: 1, maxLength: 2 }), { nil: [], freq: 2 }),
  /** Of the listeners with TLS; undefined: clients are not asked for a certificate. */
  clientCertificates: fc.constantFrom("required", "optional", undefined),
  group: fc.array(route, { minLength: 1, maxLength: 2 }),
});
/** With TLS, version 1.1 or what the gateway chooses, and a certificate or none. */
const secured = fc.record({
  scheme: fc.constant("https"),
  version: fc.constantFrom("1.1" as const, undefined),
  certificate: oneOf([6, CLIENTS.good], [1, CLIENTS.expired, CLIENTS.foreign], [2, undefined]),
});
const plain = fc.record({
  scheme: fc.constant("http"),
  version: oneOf([2, undefined], [1, "2" as const]),
  certificate: fc.constant(undefined),
});

/** Of services that decide more than yes or no. */
const REPLIES = [
  { status: 401, headers: { "www-authenticate": "Bearer" }, body: "who?" },
  { headers: { "x-user": "a", "x-a": "2" } },
];

/** A body with the fields that say what it is. */
interface Message {
  readonly body: string;
  /** Default: those of the request. */
  readonly method?: string;
  readonly target?: string;
  readonly fields?: readonly string[];
}

/** No bytes, in a frame of gRPC. */
const CALL = { method: "POST", target: "/a", body: "\0\0\0\0\0" };
const MESSAGES: readonly Message[] = [
  { body: "long".repeat(50) },
  { body: "k=v", fields: ["transfer-encoding: chunked"] },
  { body: "k=v", method: "POST", fields: ["expect: 100-continue"] },
  { ...CALL, fields: ["content-type: application/grpc", "te: trailers"] },
  { ...CALL, fields: ["content-type: application/grpc-web+proto"] },
];

const FIELDS = [
  ...["x-a: 1", "x-a: 2", "x-b: 1", "x-forwarded-for: 10.0.0.9", "accept-encoding: gzip, br"],
  ...[
    "origin: http://o.test",
    "origin: http://p.test",
    "access-control-request-method: PUT",
    "sec-fetch-site: cross-site",
  ],
];

export const written = fc.record({
  client: fc.oneof({ arbitrary: plain, weight: 5 }, { arbitrary: secured, weight: 1 }),
  method: oneOf([10, "GET"], [6, "POST"], [0.5, "OPTIONS", "TRACE"]),
  host: oneOf([12, "a.test"], [4, "b.test"], [1, "c.other"]),
  target: oneOf([6, "/", "/a"], [2, "/a/b?q=1", "/b"], [1, "/a//b", "/c"], [0.5, "/%2e%2e/a", "/a/../b"]),
  headers: fc
    .tuple(
      oneOf<readonly string[]>(
        [1, ...["abc", ...Object.values(TOKENS)].map((token) => [`authorization: Bearer ${token}`])],
        [4, []],
        [3, [`authorization: Bearer ${TOKENS.good}`]],
        [1, ...["wonder", "guess"].map((password) => [`authorization: Basic ${btoa(`alice:${password}`)}`])],
      ),
      fc.subarray(FIELDS, { maxLength: 2 }),
    )
    .map((lists) => lists.flat()),
  /** `recovers`: after one response with status 503; `talks`: its responses have bodies. */
  backend: oneOf<"works" | "talks" | "fails" | "recovers">([4, "works"], [2, "talks"], [1, "fails", "recovers"]),
  message: oneOf<Message>([14, { body: "" }], [3, { body: "k=v" }], [1, ...MESSAGES]),
  services: fc.record({
    extAuthz: oneOf<Behavior["extAuthz"]>([3, "allow"], [1, "deny", ...REPLIES]),
    remoteRateLimit: oneOf<Behavior["remoteRateLimit"]>([2, "under"], [1, "over"]),
    extProc: oneOf<Behavior["extProc"]>([3, "allow"], [1, "fail", ...REPLIES]),
  }),
});

interface ShapeRoute {
  readonly hosts: readonly string[];
  readonly matches: readonly object[];
  readonly policies: object;
  readonly weights: readonly number[];
  readonly backend: BackendKind;
  readonly delegates: boolean;
}

export interface Shape {
  readonly policies: object;
  readonly routes: readonly ShapeRoute[];
  readonly narrow: readonly ShapeRoute[];
  readonly clientCertificates: "required" | "optional" | undefined;
  /** Routes of the group. */
  readonly group: readonly ShapeRoute[];
}

export type Written = typeof written extends fc.Arbitrary<infer Value> ? Value : never;

/** Where the outside of a configuration is, except services. */
export interface Outside {
  readonly backends: Backends["ports"];
  /** Where the gateway listens for TLS. */
  readonly tls: number;
}

/** A configuration as users write it, with placeholders for the addresses of services. */
export function userConfig(
  { policies, routes, narrow, group, clientCertificates }: Shape,
  { backends, tls }: Outside,
): object {
  const listOf = (list: readonly ShapeRoute[], prefix: string): object[] =>
    list.map(({ hosts, matches, policies, weights, backend, delegates }, i) => ({
      name: `${prefix}${i}`,
      hostnames: hosts,
      matches,
      policies,
      backends:
        delegates && prefix !== "g"
          ? [{ routeGroup: "group" }]
          : // Two names of one address are two endpoints.
            weights.map((weight, at) => ({
              host: `${at === 0 ? "127.0.0.1" : "localhost"}:${backends[PORTS[backend]]}`,
              // A rehearsal without a gateway does not know the addresses of names.
              ...(at > 0 && { dns: { mode: "first" } }),
              weight,
              policies: BACKEND_POLICIES[backend],
            })),
    }));
  const { certFile, keyFile } = SERVER;
  const settings = {
    cert: certFile,
    key: keyFile,
    ...(clientCertificates !== undefined && { root: CA_FILE, clientCertificates }),
  };
  const listeners = [
    { hostname: "*.test", policies, routes: listOf(routes, "r") },
    ...(narrow.length === 0 ? [] : [{ hostname: "a.test", policies, routes: listOf(narrow, "n") }]),
  ];
  return {
    binds: [
      { port: 0, listeners },
      { port: tls, listeners: listeners.map((listener) => ({ ...listener, protocol: "HTTPS", tls: settings })) },
    ],
    routeGroups: [{ name: "group", routes: listOf(group, "g") }],
  };
}
