import { z } from "zod";
import type { Path } from "../../base/paths.ts";
import { isShadowable, SHADOWABLE_KINDS, whyNotShadowable } from "../../policies/contract/shadow.ts";
import type { PolicyKind } from "../../policies/policy-set.ts";
import { KINDS } from "../../policies/registry.ts";
import { POLICY_SCHEMAS } from "../../policies/schemas.ts";
import { CONNECTION_KINDS, TCP_KINDS } from "../schema/policies.ts";

const MCP = "tracegate does not speak MCP; remove it";
const MODELS = "tracegate does not route to language models; remove it";
const MESH = "tracegate does not join a service mesh; remove it";

/** Places with policies of callouts. */
const OF_CALLOUTS =
  "\\.(extAuthz|networkExtAuthz|extProc|remoteRateLimit|tracing|otlp|oauthTokenExchange|identityProvider|resourceAuthorizationServer)(\\.conditional)?\\.policies";

/** Fields of this family of gateways that this version does not support, by the object that has them. */
const FIELDS: readonly { readonly in: RegExp; readonly fields: Readonly<Record<string, string>> }[] = [
  {
    in: /^$/,
    fields: {
      ui: "there is no web UI; remove it",
      llm: MODELS,
      mcp: MCP,
    },
  },
  {
    in: /^gateways\.\*$/,
    fields: { policies: "policies of a gateway are written directly in it, next to port; move them one level up" },
  },
  {
    in: /^config$/,
    fields: {
      listener: "was renamed: write frontendPolicies at the top of the file",
      localXdsPath: "the file given with -f is the configuration; remove it",
      ...same(MESH, "spiffe", "caAddress", "caAuthToken"),
    },
  },
  {
    in: /^config\.logging$/,
    fields: {
      database: "requests are not stored in a database; remove it, or use frontendPolicies.accessLog.otlp",
    },
  },
  {
    in: /^frontendPolicies\.(accessLog|logging)$/,
    fields: { database: "requests are not stored in a database; remove it, or use otlp" },
  },
  {
    in: /^frontendPolicies\.networkExtAuthz$/,
    fields: { conditional: "is not available here; configure a single service" },
  },
  {
    in: new RegExp(`${OF_CALLOUTS}\\.transformations$`),
    fields: { response: "responses to callouts are not transformed; remove it" },
  },
  {
    in: /(^|\.)backends$/,
    fields: {
      mcp: "tracegate does not speak MCP; use host",
      ai: "tracegate does not route to language models; use host",
      aws: "cloud services are not supported as backends; use host",
    },
  },
  { in: /(^|\.)tcpRoutes\.backends$/, fields: { internal: "the admin API is HTTP; give it an HTTP route" } },
  {
    in: /\.localRateLimit$/,
    fields: same(
      "localRateLimit is a list: put - before the first field of each limit",
      ...["maxTokens", "tokensPerFill", "fillInterval", "type", "key"],
    ),
  },
  {
    in: /\.concurrencyLimit$/,
    fields: same("concurrencyLimit is a list: put - before the first field of each limit", "maxRequests", "key"),
  },
  { in: /\.apiKey\.keys$/, fields: { allowedModels: MODELS } },
  {
    in: /\.backendAuth$/,
    fields: {
      ...same(
        "needs credentials from a cloud, which tracegate does not support; use key, jwtSign or oauthTokenExchange",
        ...["gcp", "aws", "azure", "copilot"],
      ),
    },
  },
  {
    in: /\.(tls|backendTLS)$/,
    fields: { spiffe: "there is no SPIFFE agent to ask for certificates; use cert, key and root" },
  },
  {
    in: /(^|\.)tcpRoutes(\.backends)?\.policies\.health$/,
    fields: {
      unhealthyExpression: "connections have no responses, and those that fail always count as failures; remove it",
    },
  },
  {
    in: /^services$/,
    fields: {
      ...same(MESH, "waypoint", "ingressUseWaypoint"),
      endpoints: "is the name in dumps; write workloads",
      ipFamilies: "the addresses of workloads determine the address family; remove it",
      subjectAltNames: "is a matter of TLS; set it in backendTLS, which policies may attach to a service",
    },
  },
  {
    in: /^workloads$/,
    fields: same(MESH, "waypoint", "networkGateway", "networkMode", "protocol", "authorizationPolicies"),
  },
  { in: /\.target$/, fields: { listenerSet: "there are no listener sets in a file; target a gateway" } },
];

/** The same for kinds of policies, wherever policies are allowed. */
const POLICIES: Readonly<Record<string, string>> = {
  a2a: "tracegate does not speak A2A; remove it",
  ai: MODELS,
  inferenceRouting: MODELS,
  llm: MODELS,
  ...same(MCP, "mcpAuthentication", "mcpAuthorization", "mcpGuardrails"),
};

/** A better message than "unknown field" for a name that is known elsewhere; undefined for other names. */
export function absentField(path: Path, key: string): string | undefined {
  const place = placeOf(path);
  if (key === "shadow") return misplacedShadow(path);
  for (const { in: where, fields } of FIELDS) if (where.test(place) && Object.hasOwn(fields, key)) return fields[key];
  if (new RegExp(`${OF_CALLOUTS}$`).test(place))
    return Object.hasOwn(KINDS, key)
      ? "this policy applies to requests of clients, not to callouts; remove it"
      : undefined;
  return holdsPolicies(place) ? policy(key, place) : undefined;
}

function policy(key: string, place: string): string | undefined {
  if (Object.hasOwn(POLICIES, key)) return POLICIES[key];
  if (!Object.hasOwn(KINDS, key)) return undefined;
  if (/(^|\.)tcpRoutes(\.backends)?\.policies$/.test(place))
    return unusableText("connections without HTTP have", TCP_KINDS, key);
  const phases = KINDS[key as keyof typeof KINDS].phases.map((phase) => `a ${phase}`).join(" or ");
  return `this policy belongs to ${phases}; move it there`;
}

/** Why a policy does not apply to connections without HTTP, for which there are the `usable` kinds. */
export function unusableText(what: string, usable: readonly PolicyKind[], kind: string): string {
  if (CONNECTION_KINDS.includes(kind as PolicyKind))
    return `connections are checked before they have a route: attach ${kind} to the listener, or set frontendPolicies.${kind} for all ports`;
  return `${what} no such policy; they have ${usable.join(", ")}`;
}

/** Policies may only seem to be in shadow nowhere: their author relies on it that they change nothing. */
function misplacedShadow(path: Path): string {
  const kind = path.find((part) => typeof part === "string" && Object.hasOwn(KINDS, part));
  if (typeof kind !== "string" || path.some((part) => part === "frontendPolicies" || part === "frontend"))
    return `belongs to a policy of requests: write it in one of ${SHADOWABLE_KINDS}`;
  if (!isShadowable(kind)) {
    const why = whyNotShadowable(kind);
    return `${kind} cannot be in shadow${why === undefined ? "" : `, because ${why}`}; only ${SHADOWABLE_KINDS} can`;
  }
  if (path.at(-1) === "conditional" || path.at(-2) === "conditional")
    return `applies to all alternatives together; write it in ${kind}, beside conditional`;
  return isListOfItems(POLICY_SCHEMAS[kind].schema)
    ? "belongs to an item of the list"
    : `applies to the whole policy; write it in ${kind}`;
}

/** Whether users can write the policy as a list, each item with its own `shadow`. */
function isListOfItems(schema: z.ZodType): boolean {
  return schema instanceof z.ZodUnion && schema.options.some((option) => option instanceof z.ZodArray);
}

function holdsPolicies(place: string): boolean {
  return /\.policies$|^policies\.policy$|^gateways\.\*(\.listeners)?$/.test(place);
}

/** A path without indices and names, such as `gateways.*.listeners` for a listener of any gateway. */
function placeOf(path: Path): string {
  return path
    .map((part, i) => (i === 1 && path[0] === "gateways" ? "*" : part))
    .filter((part) => typeof part === "string")
    .join(".");
}

function same(message: string, ...fields: readonly string[]): Record<string, string> {
  return Object.fromEntries(fields.map((field) => [field, message]));
}

const HBONE = "tracegate does not join a service mesh";
const NATIVE = "metrics are served as text, which has no native histograms; use classic";
const ONLY_STRICT = "an alternative is satisfied by a valid credential only; remove mode, or write strict";
const OLD_TLS = "tracegate does not speak TLS before 1.2; use TLS_V1_2 or TLS_V1_3";

/** Values of this family of gateways that tracegate does not support, by the field that has them. */
const VALUES: readonly { readonly in: RegExp; readonly values: Readonly<Record<string, string>> }[] = [
  { in: /(^|\.)protocol$/, values: { HBONE: `${HBONE}; use HTTP or TCP` } },
  {
    in: /^binds\.tunnelProtocol$/,
    values: {
      hboneWaypoint: `${HBONE}; use direct`,
      hboneGateway: `${HBONE}; use direct`,
    },
  },
  {
    in: /\.target\.route\.kind$/,
    values: {
      GRPCRoute: "gRPC is routed as HTTP; use HTTPRoute",
      TLSRoute: "TLS that passes through is routed as TCP; use TCPRoute",
    },
  },
  {
    in: /\.satisfy\.any\.\w+\.mode$/,
    values: { optional: ONLY_STRICT, permissive: ONLY_STRICT },
  },
  {
    in: /\.backendAuth$/,
    values: {
      copilot:
        "needs credentials from a cloud, which tracegate does not support; use key, jwtSign or oauthTokenExchange",
    },
  },
  { in: /^config\.histograms$/, values: { native: NATIVE, both: NATIVE } },
  {
    in: /\.(min|max)(TLS)?Version$/,
    values: { TLS_V1_0: OLD_TLS, TLS_V1_1: OLD_TLS },
  },
];

/**
 * A better message than "not a known value" for a text or an object with one field that is known elsewhere; undefined for
 * others.
 */
export function absentValue(path: readonly PropertyKey[], value: unknown): string | undefined {
  const name = nameOf(value);
  if (name === undefined) return undefined;
  const place = placeOf(path);
  for (const { in: where, values } of VALUES) if (where.test(place) && Object.hasOwn(values, name)) return values[name];
  return undefined;
}

function nameOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  const [name, ...others] = typeof value === "object" && value !== null ? Object.keys(value) : [];
  return others.length === 0 ? name : undefined;
}
