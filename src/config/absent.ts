import { REGISTRY } from "../policies/registry.ts";
import { UNAVAILABLE_POLICIES } from "../policies/schemas.ts";

type Path = readonly PropertyKey[];

const LATER = "is not available in this version; remove it";

/** Fields that configurations of this family know and this version does not have, by the object they stand in. */
const ABSENT: readonly { readonly in: RegExp; readonly fields: Readonly<Record<string, string>> }[] = [
  {
    in: /^$/,
    fields: {
      ui: "there is no web UI; remove it",
      llm: "tracegate does not route to language models; remove it",
      mcp: "tracegate does not speak MCP; remove it",
    },
  },
  {
    in: /^config$/,
    fields: {
      listener: "was renamed: write frontendPolicies at the top of the file",
      localXdsPath: "the file given with -f is the configuration; remove it",
      ...same(`${LATER}; use frontendPolicies.http for limits of connections`, "hbone"),
      session: "seals sessions of MCP, which tracegate does not speak; remove it",
      mcp: "tracegate does not speak MCP; remove it",
      modelCatalog: "tracegate does not route to language models; remove it",
      database: "requests are kept in no database; remove it, or use frontendPolicies.accessLog.otlp",
      standardAttributes: "belongs to the database of requests, which tracegate does not have; remove it",
      storage: "nothing but the file is written to or read from, there is no web UI; remove it",
      ...same(
        LATER,
        ...["caAddress", "caAuthToken", "trustDomain", "additionalTrustDomains", "clusterId", "network"],
        ...[
          "skipValidateTrustDomain",
          "serviceAccount",
          "spiffe",
          "xdsAddress",
          "xdsAuthToken",
          "namespace",
          "gateway",
        ],
      ),
    },
  },
  {
    in: /^config\.logging$/,
    fields: {
      ...same("has moved to frontendPolicies.accessLog; tracegate migrate -f FILE moves it there", "filter", "fields"),
      database: "requests are kept in no database; remove it, and read the log",
    },
  },
  {
    in: /^frontendPolicies\.(accessLog|logging)$/,
    fields: { database: "requests are kept in no database; remove it, or use otlp" },
  },
  {
    in: /^frontendPolicies\.networkExtAuthz$/,
    fields: {
      ...same("there is no request yet; remove it, or use extAuthz", "includeRequestHeaders", "includeRequestBody"),
      conditional: "is not available here; write the one service",
    },
  },
  {
    in: /^frontendPolicies\.networkExtAuthz\.protocol$/,
    fields: { grpc: "asks about a request, and there is none yet; use http" },
  },
  {
    in: /^frontendPolicies\.networkExtAuthz\.protocol\.http$/,
    fields: same(
      "there is no request yet, and who is refused gets no answer; remove it, or use extAuthz",
      ...["redirect", "body", "includeResponseHeaders"],
    ),
  },
  { in: /^frontendPolicies\.tls$/, fields: same(LATER, "alpn") },
  {
    in: /^frontendPolicies\.http$/,
    fields: same(
      LATER,
      ...["http2WindowSize", "http2ConnectionWindowSize", "http2FrameSize", "http2MaxHeaderSize"],
      ...["http2KeepaliveInterval", "http2KeepaliveTimeout"],
    ),
  },
  {
    in: /(^|\.)backends$/,
    fields: {
      mcp: "tracegate does not speak MCP; use host",
      ai: "tracegate does not route to language models; use host",
      aws: "there are no backends of cloud services; use host",
      invalid: "write no backend, or directResponse with an error status, to refuse requests",
    },
  },
  { in: /(^|\.)tcpRoutes\.backends$/, fields: { internal: "the admin API is HTTP; give it an HTTP route" } },
  {
    in: /\.backendAuth$/,
    fields: same(
      "is not available in this version; use key, jwtSign or oauthTokenExchange",
      ...["gcp", "aws", "azure", "copilot", "crossAppAccess"],
    ),
  },
  { in: /\.tls$/, fields: same(LATER, "spiffe") },
  { in: /\.target$/, fields: { listenerSet: "there are no listener sets in a file; target a gateway" } },
  { in: /\.target\.backend\.backend$/, fields: { section: "a backend has one address and no sections; leave it out" } },
];

/** More than "unknown field" about a name that is known elsewhere; undefined when it is known nowhere. */
export function absentField(path: Path, key: string): string | undefined {
  const place = placeOf(path);
  for (const { in: where, fields } of ABSENT) if (where.test(place) && Object.hasOwn(fields, key)) return fields[key];
  if (/\.(extAuthz|extProc|remoteRateLimit|tracing|otlp)(\.conditional)?\.policies$/.test(place))
    return Object.hasOwn(REGISTRY, key)
      ? "this policy is for requests of clients; calls of the gateway's own do without"
      : undefined;
  return holdsPolicies(place) ? policy(key) : undefined;
}

function policy(key: string): string | undefined {
  if (UNAVAILABLE_POLICIES.includes(key)) return `this policy ${LATER}`;
  if (!Object.hasOwn(REGISTRY, key)) return undefined;
  const phases = REGISTRY[key as keyof typeof REGISTRY].phases.map((phase) => `a ${phase}`).join(" or ");
  return `this policy belongs to ${phases}; move it there`;
}

function holdsPolicies(place: string): boolean {
  return /\.policies$|^policies\.policy$|^gateways\.\*(\.listeners)?$/.test(place);
}

/** A path without indices and names: `gateways.*.listeners` for what stands in any listener of any gateway. */
export function placeOf(path: Path): string {
  return path
    .map((part, i) => (i === 1 && path[0] === "gateways" ? "*" : part))
    .filter((part) => typeof part === "string")
    .join(".");
}

function same(message: string, ...fields: readonly string[]): Record<string, string> {
  return Object.fromEntries(fields.map((field) => [field, message]));
}
