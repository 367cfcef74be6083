/**
 * Objects that an API server admits although they make little sense: optional fields that are absent or empty, names that exist
 * nowhere, unknown kinds, references in circles. Names come from small sets, so that many references do lead somewhere.
 */
import type { Anything } from "../../../src/controller/translate/fixtures/cluster.ts";
import { fc } from "../property.ts";

const GATEWAY_API = "gateway.networking.k8s.io";
const NAMESPACES = ["a", "a-b"];
/** `constructor` is a valid name, and a property of every object in JavaScript. */
const NAMES = ["web", "web-2", "constructor"];
const KEYS = ["tls.crt", "tls.key", "ca.crt", "constructor", "__proto__", "toString"];
const TEXTS = ["", "x", "(", "[a-", "%zz", "a b", "/", "//", "/a//b", "é", "\u0000", `${"y".repeat(2000)}`, "{{", "*."];
const PORTS = [0, 1, 53, 80, 443, 15000, 15021, 65535];

const name = fc.constantFrom(...NAMES);
const namespace = fc.constantFrom(...NAMESPACES);
const text = fc.oneof(fc.constantFrom(...TEXTS), fc.string({ maxLength: 12 }));
const port = fc.constantFrom(...PORTS);
const hostname = fc.constantFrom("", "a.example.com", "*.example.com", "A.EXAMPLE.COM", "*.com", "xn--a.b", "1.2.3.4");

type Model<T> = { readonly [K in keyof T]: fc.Arbitrary<T[K]> };

/** Every field may be absent. */
function optional<T extends object>(model: Model<T>): fc.Arbitrary<Partial<T>> {
  return fc.record(model, { requiredKeys: [] }) as fc.Arbitrary<Partial<T>>;
}

/** Some fields must be there. */
function some(
  model: Readonly<Record<string, fc.Arbitrary<unknown>>>,
  ...requiredKeys: readonly string[]
): fc.Arbitrary<object> {
  return fc.record(model, { requiredKeys: [...requiredKeys] });
}

function few<T>(each: fc.Arbitrary<T>, maxLength = 3): fc.Arbitrary<T[]> {
  return fc.array(each, { maxLength, size: "max" });
}

const reference = some(
  {
    group: fc.constantFrom("", "core", GATEWAY_API, "tracegate.dev", "multicluster.x-k8s.io", "example.com"),
    kind: fc.constantFrom(
      ...[
        "Service",
        "Secret",
        "ConfigMap",
        "ServiceImport",
        "TracegateBackend",
        "Gateway",
        "ListenerSet",
        "HTTPRoute",
        "Nothing",
      ],
    ),
    namespace,
    name,
    port,
    weight: fc.constantFrom(0, 1, 1_000_000),
  },
  "name",
);
const backend = fc.oneof(
  fc.record({ namespace: fc.constant("a"), name: fc.constant("web"), port: fc.constantFrom(53, 80) }),
  fc.record({ kind: fc.constant("TracegateBackend"), group: fc.constant("tracegate.dev"), name }),
  some({ namespace, name, port }, "name"),
  reference,
);
const parent = some(
  {
    group: fc.constantFrom(GATEWAY_API, "", "example.com"),
    kind: fc.constantFrom("Gateway", "ListenerSet", "Service", "Nothing"),
    namespace,
    name,
    sectionName: name,
    port,
  },
  "name",
);
const plainParent = fc.record({ name, namespace });
const parents = few(
  fc.oneof(
    { weight: 6, arbitrary: fc.constant({ name: "web", namespace: "a" }) },
    { weight: 1, arbitrary: plainParent },
    { weight: 1, arbitrary: parent },
  ),
  4,
);

const labels = fc.dictionary(fc.constantFrom("app", "constructor", "kubernetes.io/service-name"), name);
const requirement = some(
  {
    key: fc.constantFrom("app", "constructor"),
    operator: fc.constantFrom("In", "NotIn", "Exists", "DoesNotExist"),
    values: few(name),
  },
  "key",
  "operator",
);
const from = optional({
  from: fc.constantFrom("All", "Selector", "Same", "None"),
  selector: optional({ matchLabels: labels, matchExpressions: few(requirement) }),
});

const validation = optional({
  caCertificateRefs: few(reference),
  mode: fc.constantFrom("AllowValidOnly", "AllowInsecureFallback"),
});
const listener = some(
  {
    name,
    hostname,
    port,
    protocol: fc.constantFrom("HTTP", "HTTPS", "TLS", "TCP", "UDP", "example.com/other", "http"),
    tls: optional({
      mode: fc.constantFrom("Terminate", "Passthrough"),
      certificateRefs: few(fc.oneof(fc.record({ name }), reference)),
      options: fc.dictionary(text, text),
    }),
    allowedRoutes: optional({
      namespaces: from,
      kinds: few(
        some(
          { group: fc.constantFrom("", GATEWAY_API), kind: fc.constantFrom("HTTPRoute", "TCPRoute", "Nothing") },
          "kind",
        ),
      ),
    }),
  },
  "name",
  "port",
  "protocol",
);
const parameters = some(
  {
    group: fc.constantFrom("tracegate.dev", "example.com"),
    kind: fc.constantFrom("TracegateParameters", "ConfigMap"),
    name,
    namespace,
  },
  "group",
  "kind",
  "name",
);
const oddGateway = some(
  {
    gatewayClassName: fc.constantFrom("tracegate", "other", "constructor"),
    listeners: few(listener, 5),
    addresses: few(optional({ type: fc.constantFrom("IPAddress", "Hostname", "example.com/x"), value: text })),
    infrastructure: optional({ labels, annotations: labels, parametersRef: parameters }),
    allowedListeners: optional({ namespaces: from }),
    tls: optional({
      backend: optional({ clientCertificateRef: reference }),
      frontend: optional({
        default: optional({ validation }),
        perPort: few(some({ port, tls: optional({ validation }) }, "port")),
      }),
    }),
  },
  "gatewayClassName",
);

const valueMatch = some(
  { type: fc.constantFrom("Exact", "RegularExpression", "Other"), name: fc.oneof(name, text), value: text },
  "name",
  "value",
);
const header = fc.record({
  name: fc.constantFrom("X-A", "x-a", "__proto__", "host", ":path", "connection"),
  value: text,
});
const headers = optional({ set: few(header), add: few(header), remove: few(fc.constantFrom("X-A", "host", "")) });
const pathModifier = some(
  { type: fc.constantFrom("ReplaceFullPath", "ReplacePrefixMatch"), replaceFullPath: text, replacePrefixMatch: text },
  "type",
);
const filter = some(
  {
    type: fc.constantFrom(
      ...["RequestHeaderModifier", "ResponseHeaderModifier", "RequestRedirect", "URLRewrite", "CORS"],
      ...["RequestMirror", "ExtensionRef", "ExternalAuth", "Other"],
    ),
    requestHeaderModifier: headers,
    responseHeaderModifier: headers,
    requestMirror: some(
      {
        backendRef: backend,
        percent: fc.integer({ min: 0, max: 100 }),
        fraction: some({ numerator: fc.nat(10), denominator: fc.integer({ min: 1, max: 10 }) }, "numerator"),
      },
      "backendRef",
    ),
    requestRedirect: optional({
      scheme: fc.constantFrom("http", "https", "ftp"),
      hostname,
      path: pathModifier,
      port,
      statusCode: fc.constantFrom(301, 302, 308, 999),
    }),
    urlRewrite: optional({ hostname, path: pathModifier }),
    cors: optional({
      allowOrigins: few(fc.oneof(text, fc.constantFrom("*", "https://*.example.com", "http://a:99999"))),
      allowCredentials: fc.boolean(),
      allowMethods: few(fc.constantFrom("*", "GET", "")),
      allowHeaders: few(text),
      exposeHeaders: few(text),
      maxAge: fc.constantFrom(0, 1, 2 ** 31),
    }),
    extensionRef: fc.oneof(
      fc.record({ group: fc.constant("tracegate.dev"), kind: fc.constant("TracegatePolicy"), name }),
      fc.record({ group: text, kind: text, name }),
    ),
    externalAuth: some(
      {
        protocol: fc.constantFrom("GRPC", "HTTP"),
        backendRef: backend,
        grpc: optional({ allowedHeaders: few(text) }),
        http: optional({ path: text, allowedHeaders: few(text), allowedResponseHeaders: few(text) }),
        forwardBody: optional({ maxSize: fc.constantFrom(0, 1, 65535) }),
      },
      "protocol",
      "backendRef",
    ),
  },
  "type",
);
const backends = few(
  backend.chain((ref) => few(filter, 1).map((filters) => ({ ...ref, filters }))),
  3,
);
const ingressBackend = optional({
  service: some({ name, port: optional({ name, number: port }) }, "name"),
  resource: some({ apiGroup: fc.constantFrom("", "tracegate.dev"), kind: text, name }, "kind", "name"),
});
const duration = fc.constantFrom("0s", "10s", "1h2m3s4ms", "99999h", "", "1d");
const httpRule = optional({
  name,
  matches: few(
    optional({
      path: optional({ type: fc.constantFrom("Exact", "PathPrefix", "RegularExpression", "Other"), value: text }),
      headers: few(valueMatch),
      queryParams: few(valueMatch),
      method: fc.constantFrom("GET", "CONNECT"),
    }),
  ),
  filters: few(filter),
  backendRefs: backends,
  timeouts: optional({ request: duration, backendRequest: duration }),
  retry: optional({
    codes: few(fc.constantFrom(400, 503, 599)),
    attempts: fc.constantFrom(0, 1, 1e9),
    backoff: duration,
  }),
  sessionPersistence: fc.constant({}),
});
const grpcRule = optional({
  name,
  matches: few(
    optional({
      method: optional({ type: fc.constantFrom("Exact", "RegularExpression", "Other"), service: text, method: text }),
      headers: few(valueMatch),
    }),
  ),
  filters: few(filter),
  backendRefs: backends,
});
const connectionRule = optional({ name, backendRefs: few(backend) });

/** What users may write in fields of TracegatePolicies. */
const junk = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<unknown>;
const textRef = fc.oneof(
  fc.record({ secretKeyRef: fc.record({ name, key: fc.constantFrom(...KEYS) }) }),
  fc.record({ configMapKeyRef: fc.record({ name, key: fc.constantFrom(...KEYS) }) }),
);
const call = optional({ backendRef: backend, host: text, service: junk, backend: text });
const policies = optional<Record<string, unknown>>({
  timeout: fc.record({ requestTimeout: duration }),
  retry: optional({ attempts: fc.nat(300), codes: few(fc.nat(700)) }),
  authorization: fc.record({ rules: few(fc.oneof(text, fc.constantFrom("true", 'request.path == "/a"'))) }),
  extAuthz: fc.oneof(
    call,
    call.map((each) => ({ ...each, protocol: { grpc: {} } })),
  ),
  requestMirror: few(call),
  remoteRateLimit: call.map((each) => ({ ...each, domain: "d", descriptors: [] })),
  jwtAuth: fc.record({ issuer: text, jwks: fc.oneof(textRef, fc.record({ url: text }), text) }),
  apiKey: fc.record({ keys: few(fc.record({ key: textRef })) }),
  basicAuth: fc.record({ htpasswd: fc.oneof(textRef, text) }),
  backendTLS: optional({ cert: textRef, key: textRef, root: textRef, hostname: text }),
  backendAuth: fc.record({ key: fc.oneof(textRef, text) }),
  backendTunnel: fc.record({ proxy: call }),
  cors: fc.record({ allowOrigins: few(text) }),
  transformations: junk,
  constructor: junk,
  toString: junk,
  requestRedirect: junk,
  oidc: junk,
});
const frontend = optional<Record<string, unknown>>({
  tls: optional({
    minVersion: fc.constantFrom("TLS_V1_2", "TLS_V1_3"),
    maxVersion: fc.constantFrom("TLS_V1_2", "TLS_V1_3"),
    cipherSuites: few(text),
  }),
  networkExtAuthz: call,
  networkAuthorization: fc.record({ rules: few(fc.oneof(fc.constant("true"), text)) }),
  accessLog: junk,
  tracing: call,
  http: junk,
  constructor: junk,
});
const GROUPS: Readonly<Record<string, string>> = { Service: "", TracegateBackend: "tracegate.dev" };
const policyTarget = fc.record({
  group: fc.constantFrom("", GATEWAY_API, "tracegate.dev"),
  kind: fc.constantFrom(
    "Gateway",
    "ListenerSet",
    "HTTPRoute",
    "GRPCRoute",
    "TCPRoute",
    "UDPRoute",
    "Service",
    "TracegateBackend",
  ),
  name,
});
const targetRef = fc.record({ target: policyTarget, section: fc.constantFrom(undefined, undefined, ...NAMES, "80") });
const targetRefs = fc.array(
  targetRef.map(({ target, section }) => ({
    ...target,
    group: GROUPS[target.kind] ?? GATEWAY_API,
    ...(section !== undefined && { sectionName: section }),
  })),
  { minLength: 1, maxLength: 3 },
);
const strategy = fc.constantFrom(undefined, { inheritance: "Default" }, { inheritance: "Override" });
const policy = fc.oneof(
  junk,
  some({
    targetRefs,
    targetSelectors: few(policyTarget.map(({ name: _, ...rest }) => ({ ...rest, matchLabels: {} }))),
    strategy: junk,
    traffic: junk,
    backend: policies,
    frontend,
  }),
  ...[
    { traffic: policies },
    { traffic: policies.map((each) => ({ ...each, phase: "PreRouting" })) },
    { backend: policies },
    { frontend },
    { traffic: policies, backend: policies, frontend },
  ].map((sections) => some({ targetRefs, strategy, ...sections }, "targetRefs", ...Object.keys(sections))),
);
const tracegateBackend = fc.oneof(
  junk,
  fc.record({ static: fc.record({ host: hostname, port }), policies }),
  fc.record({ static: fc.record({ host: fc.constant("a.example.com"), port: fc.constant(80) }), policies }),
  fc.record({ static: fc.record({ unixPath: text }) }),
  fc.record({ dynamicForwardProxy: optional({ target: text }), policies }),
);

const servicePort = some(
  {
    name,
    port: fc.constantFrom(53, 80),
    protocol: fc.constantFrom("TCP", "UDP", "SCTP"),
    targetPort: fc.oneof(port, name),
    appProtocol: fc.constantFrom("http", "https", "kubernetes.io/h2c", "kubernetes.io/wss", "kubernetes.io/x", ""),
  },
  "port",
);

/** Specs by kind; an object of a kind without one has further fields at its top. */
const SPECS: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  Gateway: oddGateway,
  ListenerSet: some({ parentRef: fc.oneof(plainParent, parent), listeners: few(listener) }, "parentRef"),
  HTTPRoute: optional({ parentRefs: parents, hostnames: few(hostname), rules: few(httpRule) }),
  GRPCRoute: optional({ parentRefs: parents, hostnames: few(hostname), rules: few(grpcRule) }),
  TLSRoute: optional({ parentRefs: parents, hostnames: few(hostname), rules: few(connectionRule) }),
  TCPRoute: optional({ parentRefs: parents, rules: few(connectionRule) }),
  UDPRoute: optional({ parentRefs: parents, rules: few(connectionRule) }),
  ReferenceGrant: fc.record({
    from: few(
      fc.record({ group: fc.constantFrom("", GATEWAY_API), kind: fc.constantFrom("HTTPRoute", "Gateway"), namespace }),
    ),
    to: few(
      some(
        { group: fc.constantFrom("", "example.com"), kind: fc.constantFrom("Service", "Secret"), name },
        "group",
        "kind",
      ),
    ),
  }),
  BackendTLSPolicy: fc.record({
    targetRefs: few(
      some(
        { group: fc.constantFrom("", "x"), kind: fc.constantFrom("Service", "Other"), name, sectionName: name },
        "group",
        "kind",
        "name",
      ),
    ),
    validation: some(
      {
        hostname,
        caCertificateRefs: few(
          some(
            { group: fc.constantFrom("", "x"), kind: fc.constantFrom("ConfigMap", "Secret", "Other"), name },
            "group",
            "kind",
            "name",
          ),
        ),
        wellKnownCACertificates: fc.constantFrom("System", "Other", ""),
        subjectAltNames: few(some({ type: fc.constantFrom("Hostname", "URI"), hostname, uri: text }, "type")),
      },
      "hostname",
    ),
  }),
  XBackendTrafficPolicy: some(
    {
      targetRefs: few(
        fc.record({
          group: fc.constantFrom("", "tracegate.dev", "x"),
          kind: fc.constantFrom("Service", "TracegateBackend", "Other"),
          name,
        }),
      ),
      sessionPersistence: optional({
        type: fc.constantFrom("Cookie", "Header"),
        sessionName: text,
        absoluteTimeout: fc.constantFrom("1h", "0s", "x"),
        cookieConfig: optional({ lifetimeType: fc.constantFrom("Session", "Permanent") }),
      }),
      retryConstraint: junk,
    },
    "targetRefs",
  ),
  Ingress: optional({
    ingressClassName: fc.constantFrom("web", "constructor"),
    defaultBackend: ingressBackend,
    tls: few(optional({ hosts: few(hostname), secretName: name })),
    rules: few(
      optional({
        host: hostname,
        http: optional({
          paths: few(
            some(
              {
                path: text,
                pathType: fc.constantFrom("Exact", "Prefix", "ImplementationSpecific", "Other"),
                backend: ingressBackend,
              },
              "pathType",
              "backend",
            ),
          ),
        }),
      }),
    ),
  }),
  TracegatePolicy: policy,
  TracegateBackend: tracegateBackend,
  TracegateParameters: junk,
  Service: optional({
    type: fc.constantFrom("ClusterIP", "LoadBalancer", "ExternalName"),
    clusterIP: fc.constantFrom("", "None", "198.19.0.1"),
    ports: few(servicePort),
    trafficDistribution: fc.constantFrom("PreferClose", "constructor"),
  }),
};

const data = fc.dictionary(
  fc.constantFrom(...KEYS),
  fc.oneof(text, fc.constant("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t")),
);
const endpointSlice = some(
  {
    addressType: fc.constantFrom("IPv4", "IPv6", "FQDN"),
    // The API server sends null for lists of Go that are empty.
    endpoints: fc.oneof(
      fc.constant(null),
      few(
        some(
          {
            addresses: few(fc.constantFrom("192.0.2.1", "2001:db8::1", "a.example.com")),
            conditions: optional({ ready: fc.boolean() }),
            nodeName: name,
            targetRef: optional({ kind: fc.constantFrom("Pod", "Node"), name, namespace }),
          },
          "addresses",
        ),
      ),
    ),
    ports: fc.oneof(fc.constant(null), few(optional({ name, port, protocol: fc.constantFrom("TCP", "UDP") }))),
  },
  "addressType",
);

const meta = some({
  labels,
  creationTimestamp: fc.constantFrom("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
  generation: fc.nat(3),
});

function objectOf(kind: string): fc.Arbitrary<Anything> {
  const spec = SPECS[kind];
  const content =
    spec !== undefined
      ? spec.map((each) => ({ spec: each }))
      : kind === "EndpointSlice"
        ? endpointSlice
        : kind === "Secret" || kind === "ConfigMap"
          ? optional({ data, binaryData: data })
          : fc.constant({});
  return fc.tuple(meta, namespace, name, content).map(
    ([metadata, ns, own, rest]) =>
      ({
        apiVersion: "",
        kind,
        metadata: { ...metadata, namespace: ns, name: own },
        ...(rest as object),
      }) as unknown as Anything,
  );
}

const KINDS = [...Object.keys(SPECS), "EndpointSlice", "Secret", "ConfigMap", "Pod"];

/** With listeners that take every route, so that what is odd about routes and policies matters. */
const PLAIN_GATEWAY = {
  apiVersion: "",
  kind: "Gateway",
  metadata: { namespace: "a", name: "web" },
  spec: {
    gatewayClassName: "tracegate",
    listeners: (["HTTP", "TCP", "UDP"] as const).map((protocol, i) => ({
      name: ["web", "web-2", "udp"][i] ?? "",
      port: [80, 81, 53][i] ?? 0,
      protocol,
      allowedRoutes: { namespaces: { from: "All" as const } },
    })),
    allowedListeners: { namespaces: { from: "All" } },
  },
} as const;
const PLAIN_SERVICE = {
  apiVersion: "",
  kind: "Service",
  metadata: { namespace: "a", name: "web" },
  spec: {
    ports: [{ port: 80 }, { port: 53, protocol: "UDP" }],
  },
} as const;

const INGRESS_CLASS = {
  apiVersion: "",
  kind: "IngressClass",
  metadata: { namespace: "", name: "web" },
  spec: {
    controller: "tracegate.dev/gateway-controller",
    parameters: { apiGroup: GATEWAY_API, kind: "Gateway", namespace: "a", name: "web" },
  },
} as const;

/** Odd objects, and a Gateway and a Service `a/web` with nothing odd about them unless one of the others has its name. */
export const oddObjects: fc.Arbitrary<readonly Anything[]> = fc
  .array(fc.oneof(...KINDS.map(objectOf)), { minLength: 10, maxLength: 30, size: "max" })
  .map((objects) => [PLAIN_GATEWAY, PLAIN_SERVICE, INGRESS_CLASS, ...objects]);
